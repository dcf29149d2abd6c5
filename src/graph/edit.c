/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Changes a described graph as struct bw_graph_edit says: parses its text, finds the layers that
 * match, and sets their options, or puts a new layer above each. No layer runs yet, so the changed
 * graph is validated as if the user had written it. */
#include "graph/graph.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* The text as the source of error messages. */
static struct bw_text_place place_of(struct bw_graph *graph, const char *kind, const char *text)
{
    BW_AUTO_FREE char *source = NULL;
    if (asprintf(&source, "%s %s", kind, text) < 0)
        source = NULL;
    return (struct bw_text_place){.source = source ? bw_graph_source(graph, source) : NULL};
}

static struct bw_error *no_volume(const struct bw_graph *graph, const char *pattern)
{
    struct bw_buffer names = {0};
    for (size_t i = 0; i < graph->layers.count; i++)
        bw_buffer_format(&names, "%s%s", i ? ", " : "", graph->layers.items[i]->name.text);
    struct bw_error *error =
        bw_error_create(BW_ERROR_USAGE, "there is no volume %s; there are: %.*s", pattern,
                        (int)names.length, names.data ? names.data : "");
    bw_buffer_free(&names);
    return error;
}

/* Whether a volume matches a pattern, a type, or its own name, which may contain special
 * characters. */
static bool matches_pattern(const struct bw_graph *graph, size_t index, const char *pattern,
                            bool is_name)
{
    const struct bw_xlator *volume = graph->layers.items[index];
    if (is_name)
        return strcmp(volume->name.text, pattern) == 0;
    return fnmatch(pattern, volume->name.text, 0) == 0 ||
           (volume->type_name.text && strcmp(volume->type_name.text, pattern) == 0);
}

struct bw_error *bw_graph_edit_option(struct bw_graph *graph, const char *text)
{
    struct bw_text_place at = place_of(graph, "option", text);
    BW_AUTO_FREE char *name = strdup(text);
    if (!name)
        return bw_error_no_memory();
    char *value = strchr(name, '=');
    if (value)
        *value++ = '\0';
    char *key = value ? strrchr(name, '.') : NULL;
    if (!key || key == name || !key[1])
        return bw_place_error(
            at, bw_error_create(BW_ERROR_USAGE, "it must have the form NAME.KEY=VALUE"));
    *key++ = '\0';
    bool found = false, is_name = bw_graph_find(graph, name);
    for (size_t i = 0; i < graph->layers.count; i++) {
        if (!matches_pattern(graph, i, name, is_name))
            continue;
        found = true;
        BW_TRY(bw_layer_set_option(graph->layers.items[i], key, at, value, at));
    }
    return found ? NULL : bw_place_error(at, no_volume(graph, name));
}

/* Terminates the text at the next comma and decodes backslashes. Returns the text after the comma,
 * or NULL. */
static char *cut_at_comma(char *text)
{
    char *to = text;
    for (char *from = text; *from; from++) {
        if (*from == '\\' && (from[1] == ',' || from[1] == '\\'))
            from++;
        else if (*from == ',') {
            *to = '\0';
            return from + 1;
        }
        *to++ = *from;
    }
    *to = '\0';
    return NULL;
}

struct bw_error *bw_graph_insert_above(struct bw_graph *graph, size_t index, const char *type,
                                       struct bw_text_place at, struct bw_xlator **inserted)
{
    const char *slash = strrchr(type, '/');
    const char *tail = slash ? slash + 1 : type;
    BW_AUTO_FREE char *below = strdup(graph->layers.items[index]->name.text);
    BW_AUTO_FREE char *name = NULL;
    if (!below)
        return bw_error_no_memory();

    /* A name that no layer has yet. */
    for (unsigned number = 1; !name || bw_graph_find(graph, name); number++) {
        char suffix[16] = "";
        if (number > 1)
            snprintf(suffix, sizeof suffix, "-%u", number);
        free(name);
        if (asprintf(&name, "%s@%s%s", tail, below, suffix) < 0) {
            name = NULL; /* asprintf() leaves it undefined */
            return bw_error_no_memory();
        }
    }
    BW_TRY(bw_graph_add(graph, index + 1, name, at, inserted));
    BW_TRY(bw_layer_set_type(*inserted, type, at));

    /* All parents of the layer below get the new one instead. */
    for (size_t i = 0; i < graph->layers.count; i++) {
        struct bw_xlator *parent = graph->layers.items[i];
        for (size_t k = 0; parent != *inserted && k < parent->children.count; k++) {
            struct bw_child *child = &parent->children.items[k];
            if (strcmp(child->name.text, below) != 0)
                continue;
            char *copy = strdup(name);
            if (!copy)
                return bw_error_no_memory();
            free(child->name.text);
            *child = (struct bw_child){{copy, at}, *inserted};
        }
    }
    return bw_layer_add_child(*inserted, below, at);
}

struct bw_error *bw_graph_edit_insert(struct bw_graph *graph, const char *text)
{
    struct bw_text_place at = place_of(graph, "layer", text);
    BW_AUTO_FREE char *type = strdup(text);
    if (!type)
        return bw_error_no_memory();
    char *volume = strchr(type, '@');
    if (!volume || volume == type || !volume[1])
        return bw_place_error(
            at,
            bw_error_create(BW_ERROR_USAGE, "it must have the form TYPE@VOLUME[,KEY=VALUE...]"));
    *volume++ = '\0';
    char *options = cut_at_comma(volume);
    bool found = false, is_name = bw_graph_find(graph, volume);
    for (size_t i = 0; i < graph->layers.count; i++) {
        if (!matches_pattern(graph, i, volume, is_name))
            continue;
        struct bw_xlator *inserted;
        BW_AUTO_FREE char *copy = options ? strdup(options) : NULL;
        if (options && !copy)
            return bw_error_no_memory();
        BW_TRY(bw_graph_insert_above(graph, i, type, at, &inserted));
        for (char *option = copy, *next; option; option = next) {
            next = cut_at_comma(option);
            char *value = strchr(option, '=');
            if (!value || value == option)
                return bw_place_error(
                    at, bw_error_create(BW_ERROR_USAGE, "'%s' is not KEY=VALUE", option));
            *value++ = '\0';
            if (bw_layer_option(inserted, option))
                return BW_REFUSE(at, "option %s is given twice", option);
            BW_TRY(bw_layer_set_option(inserted, option, at, value, at));
        }
        found = true;
        i++; /* skips the new layer, which may match, too */
    }
    return found ? NULL : bw_place_error(at, no_volume(graph, volume));
}
