/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Validates a graph in one pass over its layers, children before parents. A child that follows its
 * parent is an error, so there can be no cycles.
 */
#include "graph/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nearest.h"

/* A position, to be appended to a message; freed by the caller. NULL: out of memory. */
static char *place_text(struct bw_text_place at)
{
    struct bw_buffer text = {0};
    if (at.source && at.line)
        bw_buffer_format(&text, " (%s:%u:%u)", at.source, at.line, at.column);
    else if (at.source)
        bw_buffer_format(&text, " (%s)", at.source);
    bw_buffer_append_byte(&text, '\0');
    return text.data;
}

static const char *after_slash(const char *type)
{
    const char *slash = strrchr(type, '/');
    return slash ? slash + 1 : type;
}

/* Finds the class of the layer. An unknown type is refused with a suggestion: it may be slightly
 * misspelt, or only have the wrong category. */
static struct bw_error *find_type(struct bw_xlator *layer)
{
    struct bw_registry *registry = layer->graph->registry;
    const char *type = layer->type_name.text;
    if (!type)
        return BW_REFUSE(layer->name.at, "volume %s has no type", layer->name.text);
    BW_AUTO_ERROR struct bw_error *unknown = bw_registry_find(registry, type, &layer->type);
    if (!unknown)
        return NULL;

    struct bw_nearest nearest = {.wanted = type};
    const char *elsewhere = NULL; /* the same name in another category */
    bool exists = false;          /* but cannot be used */
    if (unknown->code == BW_ERROR_USAGE) {
        const struct bw_strings *names;
        BW_TRY(bw_registry_names(registry, &names));
        for (size_t i = 0; i < names->count; i++) {
            const char *name = names->items[i];
            exists |= strcmp(name, type) == 0;
            bw_nearest_try(&nearest, name);
            if (strcmp(after_slash(name), after_slash(type)) == 0)
                elsewhere = name;
        }
    }
    const char *best = elsewhere ? elsewhere : nearest.best;
    if (best && !exists)
        return BW_REFUSE(layer->type_name.at, "volume %s: %s; did you mean %s?", layer->name.text,
                         unknown->message, best);
    return bw_place_error(layer->type_name.at,
                          bw_error_prefix(BW_TAKE(unknown), "volume %s", layer->name.text));
}

static struct bw_error *refuse_option(const struct bw_xlator *layer, const struct bw_word *name)
{
    struct bw_nearest nearest = {.wanted = name->text};
    struct bw_buffer names = {0};
    for (const struct bw_option *option = layer->type->options; option && option->name; option++) {
        bw_nearest_try(&nearest, option->name);
        bw_buffer_format(&names, "%s%s", option == layer->type->options ? "; it has " : ", ",
                         option->name);
    }
    struct bw_error *error;
    if (nearest.best)
        error = BW_REFUSE(name->at, "volume %s: %s has no option %s; did you mean %s?",
                          layer->name.text, layer->type->type, name->text, nearest.best);
    else
        error = BW_REFUSE(name->at, "volume %s: %s has no option %s%.*s", layer->name.text,
                          layer->type->type, name->text, (int)names.length,
                          names.data ? names.data : "");
    bw_buffer_free(&names);
    return error;
}

/* Checks the options that are set, and stores the values of all options, including defaults. */
static struct bw_error *set_values(struct bw_xlator *layer)
{
    for (size_t i = 0; i < layer->settings.count; i++) {
        const struct bw_setting *setting = &layer->settings.items[i];
        const struct bw_option *option = bw_class_option(layer->type, setting->name.text);
        if (!option)
            return refuse_option(layer, &setting->name);
        struct bw_error *error = bw_option_check(option, setting->value.text);
        if (error)
            return bw_place_error(setting->value.at,
                                  bw_error_prefix(error, "volume %s", layer->name.text));
    }

    const struct bw_option *options = layer->type->options;
    size_t count = 0;
    while (options && options[count].name)
        count++;
    free(layer->values);
    layer->values = calloc(count + 1, sizeof *layer->values);
    if (!layer->values)
        return bw_error_no_memory();
    for (size_t i = 0; i < count; i++) {
        const char *given = bw_layer_option(layer, options[i].name);
        layer->values[i] = given ? given : options[i].default_value;
        if (!layer->values[i])
            return BW_REFUSE(layer->type_name.at, "volume %s: option %s must be given",
                             layer->name.text, options[i].name);
    }
    return NULL;
}

/* Children. */

static struct bw_error *refuse_child(const struct bw_xlator *layer, const struct bw_word *child)
{
    const struct bw_graph *graph = layer->graph;
    const struct bw_xlator *later = bw_graph_find(graph, child->text);
    if (later) {
        BW_AUTO_FREE char *place = place_text(later->name.at);
        return BW_REFUSE(child->at,
                         "volume %s: subvolume %s is used before it is defined%s: children come "
                         "before their parents",
                         layer->name.text, child->text, place ? place : "");
    }
    struct bw_nearest nearest = {.wanted = child->text};
    for (size_t i = 0; i < graph->layers.count; i++)
        if (graph->layers.items[i] != layer)
            bw_nearest_try(&nearest, graph->layers.items[i]->name.text);
    if (nearest.best)
        return BW_REFUSE(child->at, "volume %s: there is no volume %s; did you mean %s?",
                         layer->name.text, child->text, nearest.best);
    return BW_REFUSE(child->at, "volume %s: there is no volume %s", layer->name.text, child->text);
}

/* Finds the children by their names, as many as the type allows. */
static struct bw_error *find_children(struct bw_xlator *layer)
{
    const struct bw_xlator_class *type = layer->type;
    const unsigned least = type->minimum_children, most = type->maximum_children;
    if (layer->children.count < least || layer->children.count > most) {
        const bool one = least == 1 && (most == 1 || most == UINT32_MAX);
        char wanted[64];
        if (most == UINT32_MAX)
            snprintf(wanted, sizeof wanted, "at least %u", least);
        else if (least == most)
            snprintf(wanted, sizeof wanted, "%u", least);
        else
            snprintf(wanted, sizeof wanted, "%u to %u", least, most);
        return BW_REFUSE(layer->type_name.at, "volume %s: %s takes %s subvolume%s, not %zu",
                         layer->name.text, type->type, wanted, one ? "" : "s",
                         layer->children.count);
    }
    for (size_t i = 0; i < layer->children.count; i++) {
        struct bw_child *child = &layer->children.items[i];
        child->layer = bw_graph_find(layer->graph, child->name.text);
        if (!child->layer || !child->layer->height) /* unknown, or not validated yet */
            return refuse_child(layer, &child->name);
        if (child->layer->user == layer)
            return BW_REFUSE(child->name.at, "volume %s: subvolume %s is listed twice",
                             layer->name.text, child->name.text);
        child->layer->user = layer;
    }
    return NULL;
}

static const char *space_name(enum bw_address_space space)
{
    if (space == BW_ADDRESS_DEVICE)
        return "device";
    return space == BW_ADDRESS_LOGICAL ? "logical" : "no";
}

/* Checks whether the children fit below the layer, and computes its height and address space. */
static struct bw_error *check_fit(struct bw_xlator *layer)
{
    const struct bw_xlator_class *type = layer->type;
    layer->height = 1;
    for (size_t i = 0; i < layer->children.count; i++) {
        const struct bw_child *child = &layer->children.items[i];
        if (child->layer->height >= layer->height)
            layer->height = child->layer->height + 1;
        if (layer->height > BW_GRAPH_HEIGHT)
            return BW_REFUSE(layer->type_name.at,
                             "volume %s: more than %d layers one above the other", layer->name.text,
                             BW_GRAPH_HEIGHT);
        if (type->below != BW_ADDRESS_ANY && child->layer->above != type->below)
            return BW_REFUSE(child->name.at,
                             "volume %s: address spaces do not fit: %s needs %s addresses below "
                             "it, subvolume %s takes %s addresses",
                             layer->name.text, type->type, space_name(type->below),
                             child->name.text, space_name(child->layer->above));
    }
    layer->above = type->above;
    if (type->above == BW_ADDRESS_ANY)
        layer->above = layer->children.items[0].layer->above;
    return NULL;
}

struct bw_error *bw_graph_check_layer(struct bw_xlator *layer)
{
    /* The first layer of this name must be the layer itself. */
    const struct bw_xlator *other = bw_graph_find(layer->graph, layer->name.text);
    if (other != layer) {
        BW_AUTO_FREE char *place = place_text(other->name.at);
        return BW_REFUSE(layer->name.at, "volume %s: a previous volume has the same name%s",
                         layer->name.text, place ? place : "");
    }
    BW_TRY(find_type(layer));
    BW_TRY(find_children(layer));
    BW_TRY(set_values(layer));
    return check_fit(layer);
}

/* The whole graph. */

bool bw_graph_next_file(const struct bw_graph *graph, enum bw_option_type wanted,
                        struct bw_graph_file *file)
{
    while (file->next_layer < graph->layers.count) {
        const struct bw_xlator *layer = graph->layers.items[file->next_layer];
        const struct bw_option *options = layer->type->options;
        if (!options || !options[file->next_option].name) {
            file->next_layer++;
            file->next_option = 0;
            continue;
        }
        file->layer = layer;
        file->option = &options[file->next_option];
        file->path = layer->values[file->next_option++];
        const bool is_stderr = wanted == BW_OPTION_OUTPUT && strcmp(file->path, "-") == 0;
        if (file->option->type == wanted && *file->path && !is_stderr)
            return true;
    }
    return false;
}

struct bw_error *bw_graph_check(struct bw_graph *graph, struct bw_file_set *inputs)
{
    const size_t count = graph->layers.count;
    if (!count)
        return bw_error_create(BW_ERROR_USAGE, "a graph without any volume");
    for (size_t i = 0; i < count; i++)
        BW_TRY(bw_graph_check_layer(graph->layers.items[i]));
    for (size_t i = 0; i + 1 < count; i++)
        if (!graph->layers.items[i]->user)
            return BW_REFUSE(graph->layers.items[i]->name.at,
                             "no volume uses volume %s; only the last one, %s, may be on top",
                             graph->layers.items[i]->name.text,
                             graph->layers.items[count - 1]->name.text);

    /* Outputs are compared with every file that is read, by device and inode. A file that does not
     * exist yet cannot be an image. */
    for (struct bw_graph_file file = {0}; bw_graph_next_file(graph, BW_OPTION_PATH, &file);)
        BW_TRY(bw_file_set_insert(inputs, file.path));
    for (struct bw_graph_file file = {0}; bw_graph_next_file(graph, BW_OPTION_OUTPUT, &file);) {
        const struct bw_setting *setting = bw_layer_setting(file.layer, file.option->name);
        struct stat status;
        if (stat(file.path, &status) == 0 && bw_file_set_holds(inputs, &status))
            return BW_REFUSE(setting ? setting->value.at : file.layer->name.at,
                             "volume %s: option %s: %s is an input, which is never overwritten",
                             file.layer->name.text, file.option->name, file.path);
    }
    return NULL;
}
