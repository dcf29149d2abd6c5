/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types of layers: validating and parsing the options of a class; classes from shared objects; and
 * the registry of all classes.
 *
 * A class may come from somebody else's shared object, so nothing in it is taken on trust: first
 * the number of the interface is compared, then check_plugin() verifies each rule of
 * btrfs-walk/graph.h on which the graph relies. A shared object is loaded when its type is looked
 * up, and never for a list of the types.
 */
#include "graph/graph.h"

#include <dirent.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/human.h"

/* Options. */

static const struct bw_unit no_units[] = {{"", 1}, {NULL, 0}};

static const struct type {
    const char *name;    /* its name in the documentation of layers */
    const char *article; /* as in "'x' is not a size" */
    const struct bw_unit *units;
} types[] = {
    [BW_OPTION_BOOL] = {"bool", "one", NULL},
    [BW_OPTION_INTEGER] = {"int", "a whole number", no_units},
    [BW_OPTION_SIZE] = {"size", "a size like 64K", bw_size_units},
    [BW_OPTION_PERCENT] = {"percent", "a percentage like 0.5%", NULL},
    [BW_OPTION_TIME] = {"time", "a time like 10ms", bw_time_units},
    [BW_OPTION_ENUM] = {"enum", "one", NULL},
    [BW_OPTION_STRING] = {"string", "a text", NULL},
    [BW_OPTION_PATH] = {"path", "a path", NULL},
    [BW_OPTION_OUTPUT] = {"output", "a path", NULL},
};

const char *bw_option_type_name(enum bw_option_type type)
{
    return types[type].name;
}

const struct bw_option *bw_class_option(const struct bw_xlator_class *type, const char *name)
{
    for (const struct bw_option *option = type->options; option && option->name; option++)
        if (strcmp(option->name, name) == 0)
            return option;
    return NULL;
}

static bool parse_percent(const char *text, uint64_t *value)
{
    if (!bw_parse_digits(&text, 10, value) || *value > 100)
        return false;
    *value *= BW_PERCENT_100 / 100;
    if (*text == '.') {
        uint64_t digit = BW_PERCENT_100 / 1000;
        if (text[1] < '0' || text[1] > '9')
            return false;
        for (text++; *text >= '0' && *text <= '9' && digit; text++, digit /= 10)
            *value += (uint64_t)(*text - '0') * digit;
    }
    return (!*text || strcmp(text, "%") == 0) && *value <= BW_PERCENT_100;
}

static bool in_range(const struct bw_option *option, uint64_t value)
{
    return value >= option->minimum && value <= option->maximum;
}

/* Parses a value; false if it does not have the option's type and range. `*number` is 0 for types
 * without numbers. */
static bool option_parse(const struct bw_option *option, const char *text, uint64_t *number)
{
    static const char *const booleans[] = {"off", "on", "no", "yes", "false", "true", "0", "1"};
    *number = 0;
    switch (option->type) {
    case BW_OPTION_BOOL:
        for (size_t i = 0; i < sizeof booleans / sizeof *booleans; i++)
            if (strcmp(text, booleans[i]) == 0) {
                *number = i & 1;
                return true;
            }
        return false;
    case BW_OPTION_INTEGER:
    case BW_OPTION_SIZE:
    case BW_OPTION_TIME:
        return bw_parse_with_unit(text, types[option->type].units, number) &&
               in_range(option, *number);
    case BW_OPTION_PERCENT:
        return parse_percent(text, number) && in_range(option, *number);
    case BW_OPTION_ENUM:
        for (; option->choices[*number]; ++*number)
            if (strcmp(option->choices[*number], text) == 0)
                return true;
        return false;
    default: /* any text */
        break;
    }
    return true;
}

/* Uses the largest unit that divides the number. */
static void format_number(const struct bw_option *option, uint64_t number, struct bw_buffer *text)
{
    if (option->type == BW_OPTION_PERCENT) {
        bw_buffer_format(text, "%g%%", (double)number / (BW_PERCENT_100 / 100.0));
        return;
    }
    const struct bw_unit *unit = types[option->type].units;
    while (unit[1].name && (number == 0 || number % unit->factor))
        unit++;
    bw_buffer_format(text, "%" PRIu64 "%s", number / unit->factor, number ? unit->name : "");
}

char *bw_option_range(const struct bw_option *option)
{
    struct bw_buffer text = {0};
    switch (option->type) {
    case BW_OPTION_BOOL:
        bw_buffer_format(&text, "on, off");
        break;
    case BW_OPTION_ENUM:
        for (const char *const *choice = option->choices; *choice; choice++)
            bw_buffer_format(&text, "%s%s", choice == option->choices ? "" : ", ", *choice);
        break;
    case BW_OPTION_INTEGER:
    case BW_OPTION_SIZE:
    case BW_OPTION_TIME:
    case BW_OPTION_PERCENT:
        if (option->maximum == UINT64_MAX && option->minimum) { /* no upper limit */
            format_number(option, option->minimum, &text);
            bw_buffer_format(&text, " or more");
        } else if (option->maximum != UINT64_MAX) {
            format_number(option, option->minimum, &text);
            bw_buffer_format(&text, " to ");
            format_number(option, option->maximum, &text);
        }
        break;
    default: /* any text */
        break;
    }
    bw_buffer_append_byte(&text, '\0');
    if (text.failed)
        bw_buffer_free(&text);
    return text.data;
}

struct bw_error *bw_option_check(const struct bw_option *option, const char *text)
{
    uint64_t number;
    if (option_parse(option, text, &number))
        return NULL;
    BW_AUTO_FREE char *range = bw_option_range(option);
    if (!range)
        return bw_error_no_memory();
    const char *article = types[option->type].article;
    if (!*range)
        return bw_error_create(BW_ERROR_USAGE, "option %s: '%s' is not %s", option->name, text,
                               article);
    if (option->type == BW_OPTION_ENUM || option->type == BW_OPTION_BOOL)
        return bw_error_create(BW_ERROR_USAGE, "option %s: '%s' is not %s of: %s", option->name,
                               text, article, range);
    return bw_error_create(BW_ERROR_USAGE, "option %s: '%s' is not %s (%s)", option->name, text,
                           article, range);
}

/* Finds an option of a layer's own class. Reports a programming error in the layer if there is no
 * such option. */
static const struct bw_option *own_option(const struct bw_xlator *xlator, const char *name)
{
    const struct bw_option *option = bw_class_option(xlator->type, name);
    if (!option)
        bw_xlator_report(xlator, BW_WARNING,
                         bw_error_create(BW_ERROR_USAGE,
                                         "%s reads an option %s that it does not define",
                                         xlator->type->type, name));
    return option;
}

const char *bw_xlator_option_text(const struct bw_xlator *xlator, const char *name)
{
    const struct bw_option *option = own_option(xlator, name);
    return option ? xlator->values[option - xlator->type->options] : "";
}

uint64_t bw_xlator_option_number(const struct bw_xlator *xlator, const char *name)
{
    const struct bw_option *option = own_option(xlator, name);
    uint64_t value = 0;
    if (option)
        option_parse(option, xlator->values[option - xlator->type->options], &value);
    return value;
}

/* Layers from shared objects. The ABI number is compared before anything else in an object is
 * used. */

/* Statically linked programs cannot load shared objects. */
#ifdef BW_STATIC
enum { IS_STATIC = true };
#else
enum { IS_STATIC = false };
#endif

#define TYPE_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789-"

/* Whether this is "category/name", without characters that could lead out of the directory. */
static bool is_type_name(const char *type)
{
    size_t category = strspn(type, TYPE_LETTERS);
    if (!category || type[category] != '/')
        return false;
    size_t name = strspn(type + category + 1, TYPE_LETTERS);
    return name && !type[category + 1 + name];
}

/* Finds the first file with this name; `*found` stays NULL if none exists. */
static struct bw_error *find_file(const char *path, const char *type, char **found)
{
    while (*path && !*found) {
        size_t length = strcspn(path, ":");
        char *file = NULL;
        if (length && asprintf(&file, "%.*s/%s.so", (int)length, path, type) < 0)
            return bw_error_no_memory();
        if (file && access(file, F_OK) == 0)
            *found = file;
        else
            free(file);
        path += length + (path[length] == ':');
    }
    return NULL;
}

/* The fault of an option's declaration, or NULL. */
static const char *option_fault(const struct bw_xlator_class *xlator,
                                const struct bw_option *option)
{
    uint64_t number;
    if (!*option->name || option->name[strspn(option->name, TYPE_LETTERS)])
        return "its name has other characters than lower case letters, digits and hyphens";
    if (bw_class_option(xlator, option->name) != option)
        return "there is another one of that name";
    if (option->type > BW_OPTION_OUTPUT)
        return "its type is unknown";
    if (!option->description)
        return "it has no description";
    if (option->minimum > option->maximum)
        return "its minimum is above its maximum";
    if (option->type == BW_OPTION_ENUM && !option->choices)
        return "it has no choices";
    if (option->default_value && !option_parse(option, option->default_value, &number))
        return "its default is not allowed";
    return NULL;
}

static bool has_good_spaces(const struct bw_xlator_class *xlator)
{
    if (xlator->above == BW_ADDRESS_NONE || xlator->above > BW_ADDRESS_ANY ||
        xlator->below > BW_ADDRESS_ANY || xlator->minimum_children > xlator->maximum_children)
        return false;
    if (xlator->above == BW_ADDRESS_ANY || xlator->below == BW_ADDRESS_ANY)
        return xlator->above == xlator->below && xlator->minimum_children == 1 &&
               xlator->maximum_children == 1;
    return (xlator->below == BW_ADDRESS_NONE) == (xlator->maximum_children == 0);
}

/* Verifies what a shared object exports. */
static struct bw_error *check_plugin(const struct bw_xlator_api *api, const char *type)
{
    if (!api)
        return bw_error_create(BW_ERROR_USAGE, "it exports no bw_xlator_api");
    if (api->abi != BW_XLATOR_ABI)
        return bw_error_create(
            BW_ERROR_USAGE,
            "it was built for version %u of the layer interface, this is version %u: rebuild it",
            api->abi, BW_XLATOR_ABI);
    if (api->size != sizeof *api)
        return bw_error_create(BW_ERROR_USAGE,
                               "its bw_xlator_api has %u bytes, not %zu: rebuild it", api->size,
                               sizeof *api);
    const struct bw_xlator_class *xlator = api->xlator;
    if (!xlator || !xlator->type || !xlator->description || !xlator->page)
        return bw_error_create(BW_ERROR_USAGE, "its class lacks a type, a description or a page");
    if (strcmp(xlator->type, type) != 0)
        return bw_error_create(BW_ERROR_USAGE, "it holds the layer %s", xlator->type);
    for (const struct bw_option *option = xlator->options; option && option->name; option++) {
        const char *fault = option_fault(xlator, option);
        if (fault)
            return bw_error_create(BW_ERROR_USAGE, "its option '%s': %s", option->name, fault);
    }
    if (!has_good_spaces(xlator))
        return bw_error_create(BW_ERROR_USAGE,
                               "its address spaces and children break the rules of graph.h");
    /* Missing operations are passed to the only child. A class with no child, or with several, must
     * have all operations. */
    const bool passes = xlator->minimum_children == 1 && xlator->maximum_children == 1;
    const bool measures = xlator->above != BW_ADDRESS_DEVICE || xlator->operations.size;
    if (!passes && !(xlator->operations.read && measures))
        return bw_error_create(BW_ERROR_USAGE, "it lacks the operation read or size");
    if (xlator->takes && !xlator->operations.control)
        return bw_error_create(BW_ERROR_USAGE,
                               "it takes messages, but lacks the operation control");
    return NULL;
}

/* The registry: built-in classes and plug-ins. */

#ifndef BW_XLATOR_DIRECTORY
#define BW_XLATOR_DIRECTORY "/usr/local/lib/btrfs-walk/xlator"
#endif

/* A type of layer. */
struct plugin {
    void *handle; /* its shared object; NULL if it is built-in */
    const struct bw_xlator_class *xlator;
};

BW_VECTOR(plugins, struct plugin);

struct bw_registry {
    char *path;
    struct plugins types;
    struct bw_strings names; /* names of all types, sorted; filled on the first request */
};

/* Without a path, it is BTRFS_WALK_XLATOR_PATH and then the library's own directory. */
struct bw_error *bw_registry_create(const char *path, struct bw_registry **registry)
{
    const char *given = secure_getenv("BTRFS_WALK_XLATOR_PATH");
    struct bw_registry *made = calloc(1, sizeof *made);
    if (!made)
        return bw_error_no_memory();
    if (path)
        made->path = strdup(path);
    else if (!given || !*given)
        made->path = strdup(BW_XLATOR_DIRECTORY);
    else if (asprintf(&made->path, "%s:%s", given, BW_XLATOR_DIRECTORY) < 0)
        made->path = NULL;
    if (!made->path) {
        free(made);
        return bw_error_no_memory();
    }
    *registry = made;
    return NULL;
}

struct bw_error *bw_registry_add(struct bw_registry *registry,
                                 const struct bw_xlator_class *const *classes)
{
    for (; *classes; classes++)
        BW_TRY(plugins_push(&registry->types, (struct plugin){NULL, *classes}));
    return NULL;
}

void bw_registry_close(struct bw_registry *registry)
{
    if (!registry)
        return;
    for (size_t i = 0; i < registry->types.count; i++)
        if (registry->types.items[i].handle)
            dlclose(registry->types.items[i].handle);
    bw_strings_free_all(&registry->names);
    plugins_free(&registry->types);
    free(registry->path);
    free(registry);
}

struct bw_error *bw_registry_find(struct bw_registry *registry, const char *type,
                                  const struct bw_xlator_class **found)
{
    for (size_t i = 0; i < registry->types.count; i++) {
        *found = registry->types.items[i].xlator;
        if (strcmp((*found)->type, type) == 0)
            return NULL;
    }
    *found = NULL;
    BW_AUTO_FREE char *file = NULL;
    if (is_type_name(type))
        BW_TRY(find_file(registry->path, type, &file));
    if (!file)
        return bw_error_create(BW_ERROR_USAGE, "unknown type %s", type);
    if (IS_STATIC)
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "cannot load the layer %s: this program is linked statically", file);
    BW_TRY(plugins_reserve(&registry->types, 1));
    /* It is never unloaded, because a confined program could not load it again. */
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle)
        return bw_error_create(BW_ERROR_USAGE, "cannot load a layer: %s", dlerror());
    const struct bw_xlator_api *api = dlsym(handle, "bw_xlator_api");
    struct bw_error *error = check_plugin(api, type);
    if (error) {
        dlclose(handle);
        return bw_error_prefix(error, "cannot use the layer %s", file);
    }
    *found = api->xlator;
    return plugins_push(&registry->types, (struct plugin){handle, api->xlator});
}

/* Adds a name that is not there yet. */
static struct bw_error *add_name(struct bw_registry *registry, const char *type)
{
    for (size_t i = 0; i < registry->names.count; i++)
        if (strcmp(registry->names.items[i], type) == 0)
            return NULL;
    return bw_strings_push_copy(&registry->names, type);
}

/* Adds the names of the files CATEGORY/NAME.so in a directory. */
static struct bw_error *add_names_of(struct bw_registry *registry, const char *directory)
{
    struct bw_error *error = NULL;
    DIR *categories = opendir(directory);
    for (struct dirent *category; categories && !error && (category = readdir(categories));) {
        BW_AUTO_FREE char *path = NULL;
        if (strspn(category->d_name, TYPE_LETTERS) != strlen(category->d_name) ||
            asprintf(&path, "%s/%s", directory, category->d_name) < 0)
            continue;
        DIR *files = opendir(path);
        for (struct dirent *file; files && !error && (file = readdir(files));) {
            BW_AUTO_FREE char *type = NULL;
            const size_t length = strlen(file->d_name);
            if (length >= 4 && strcmp(file->d_name + length - 3, ".so") == 0 &&
                asprintf(&type, "%s/%.*s", category->d_name, (int)length - 3, file->d_name) >= 0 &&
                is_type_name(type))
                error = add_name(registry, type);
        }
        if (files)
            closedir(files);
    }
    if (categories)
        closedir(categories);
    return error;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct bw_error *bw_registry_names(struct bw_registry *registry, const struct bw_strings **names)
{
    /* Names may be missing: types may have been added meanwhile, or an error has ended the last
     * search. */
    for (size_t i = 0; i < registry->types.count; i++)
        BW_TRY(add_name(registry, registry->types.items[i].xlator->type));
    for (const char *path = registry->path; *path;) {
        const size_t length = strcspn(path, ":");
        BW_AUTO_FREE char *directory = strndup(path, length);
        if (!directory)
            return bw_error_no_memory();
        if (length)
            BW_TRY(add_names_of(registry, directory));
        path += length + (path[length] == ':');
    }
    bw_strings_sort(&registry->names, by_name);
    *names = &registry->names;
    return NULL;
}

struct bw_error *bw_registry_each(struct bw_registry *registry, bw_type_visitor *visit,
                                  void *context)
{
    const struct bw_strings *names;
    BW_TRY(bw_registry_names(registry, &names));
    for (size_t i = 0; i < names->count; i++)
        BW_TRY(visit(context, names->items[i]));
    return NULL;
}
