/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared objects as layers: nothing of one is used before its ABI number was compared. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "graph/graph.h"

/* A program that is linked statically cannot load anything. */
#ifdef BW_STATIC
enum { IS_STATIC = true };
#else
enum { IS_STATIC = false };
#endif

#define TYPE_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789-"

/* "category/name": nothing that could lead out of a directory. */
static bool is_type_name(const char *type)
{
    size_t category = strspn(type, TYPE_LETTERS);
    if (!category || type[category] != '/')
        return false;
    size_t name = strspn(type + category + 1, TYPE_LETTERS);
    return name && !type[category + 1 + name];
}

/* The first file of that name; `*found` stays NULL if there is none. */
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

/* What is wrong with an option; NULL: nothing. */
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
    if (option->default_value && !bw_option_parse(option, option->default_value, &number))
        return "its default is not allowed";
    return NULL;
}

static struct bw_error *check_options(const struct bw_xlator_class *xlator)
{
    for (const struct bw_option *option = xlator->options; option && option->name; option++) {
        const char *fault = option_fault(xlator, option);
        if (fault)
            return bw_error_create(BW_ERROR_USAGE, "its option '%s': %s", option->name, fault);
    }
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

/* What is left out is passed on to the only child; where there is none, or several, nothing may be
 * left out.
 */
static bool has_good_operations(const struct bw_xlator_class *xlator)
{
    bool passes = xlator->minimum_children == 1 && xlator->maximum_children == 1;
    bool measures = xlator->above != BW_ADDRESS_DEVICE || xlator->operations.size;
    return passes || (xlator->operations.read && measures);
}

static struct bw_error *check_class(const struct bw_xlator_class *xlator, const char *type)
{
    if (!xlator || !xlator->type || !xlator->description || !xlator->page)
        return bw_error_create(BW_ERROR_USAGE, "its class lacks a type, a description or a page");
    if (strcmp(xlator->type, type) != 0)
        return bw_error_create(BW_ERROR_USAGE, "it holds the layer %s", xlator->type);
    BW_TRY(check_options(xlator));
    if (!has_good_spaces(xlator))
        return bw_error_create(BW_ERROR_USAGE,
                               "its address spaces and children break the rules of xlator.h");
    if (!has_good_operations(xlator))
        return bw_error_create(BW_ERROR_USAGE, "it lacks the operation read or size");
    if (xlator->takes && !xlator->operations.control)
        return bw_error_create(BW_ERROR_USAGE,
                               "it takes messages, but lacks the operation control");
    return NULL;
}

static struct bw_error *check_api(const struct bw_xlator_api *api, const char *type)
{
    if (!api)
        return bw_error_create(BW_ERROR_USAGE, "it exports no bw_xlator_api");
    if (api->abi != BW_XLATOR_ABI)
        return bw_error_create(
            BW_ERROR_USAGE,
            "it was built for version %u of the layer interface, this is version %u: "
            "build it anew",
            api->abi, BW_XLATOR_ABI);
    if (api->size != sizeof *api)
        return bw_error_create(BW_ERROR_USAGE,
                               "its bw_xlator_api has %u bytes, not %zu: build it anew", api->size,
                               sizeof *api);
    return check_class(api->xlator, type);
}

static struct bw_error *load(const char *file, const char *type, struct bw_plugin *plugin)
{
    if (IS_STATIC)
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "cannot load the layer %s: this program is linked statically", file);
    /* It stays: a program that has confined itself could not load it again. */
    plugin->handle = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!plugin->handle)
        return bw_error_create(BW_ERROR_USAGE, "cannot load a layer: %s", dlerror());
    const struct bw_xlator_api *api = dlsym(plugin->handle, "bw_xlator_api");
    struct bw_error *error = check_api(api, type);
    if (error) {
        bw_plugin_unload(plugin);
        return bw_error_prefix(error, "cannot use the layer %s", file);
    }
    plugin->xlator = api->xlator;
    return NULL;
}

struct bw_error *bw_plugin_load(const char *path, const char *type, struct bw_plugin *plugin)
{
    *plugin = (struct bw_plugin){0};
    BW_AUTO_FREE char *file = NULL;
    if (is_type_name(type))
        BW_TRY(find_file(path, type, &file));
    return file ? load(file, type, plugin)
                : bw_error_create(BW_ERROR_USAGE, "unknown type %s", type);
}

void bw_plugin_unload(struct bw_plugin *plugin)
{
    if (plugin->handle)
        dlclose(plugin->handle);
    *plugin = (struct bw_plugin){0};
}

/* Calls for the files CATEGORY/NAME.so of one category. */
static struct bw_error *search_category(const char *directory, const char *category,
                                        bw_type_visitor *visit, void *context)
{
    BW_AUTO_FREE char *path = NULL;
    struct bw_error *error = NULL;
    DIR *files = asprintf(&path, "%s/%s", directory, category) < 0 ? NULL : opendir(path);
    for (struct dirent *entry; files && !error && (entry = readdir(files));) {
        BW_AUTO_FREE char *type = NULL;
        size_t length = strlen(entry->d_name);
        if (length < 4 || strcmp(entry->d_name + length - 3, ".so") != 0 ||
            asprintf(&type, "%s/%.*s", category, (int)length - 3, entry->d_name) < 0)
            continue;
        if (is_type_name(type))
            error = visit(context, type);
    }
    if (files)
        closedir(files);
    return error;
}

static struct bw_error *search_directory(const char *directory, bw_type_visitor *visit,
                                         void *context)
{
    struct bw_error *error = NULL;
    DIR *categories = opendir(directory);
    for (struct dirent *entry; categories && !error && (entry = readdir(categories));)
        if (strspn(entry->d_name, TYPE_LETTERS) == strlen(entry->d_name))
            error = search_category(directory, entry->d_name, visit, context);
    if (categories)
        closedir(categories);
    return error;
}

struct bw_error *bw_plugin_search(const char *path, bw_type_visitor *visit, void *context)
{
    while (*path) {
        size_t length = strcspn(path, ":");
        BW_AUTO_FREE char *directory = strndup(path, length);
        if (!directory)
            return bw_error_no_memory();
        if (length)
            BW_TRY(search_directory(directory, visit, context));
        path += length + (path[length] == ':');
    }
    return NULL;
}
