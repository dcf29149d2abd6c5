/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The life cycle of a graph: describing layers, starting them, and ending them. */
#include "graph/graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct bw_error *bw_graph_create(struct bw_registry *registry, struct bw_reporter reporter,
                                 struct bw_graph **graph)
{
    struct bw_graph *made = calloc(1, sizeof *made);
    if (!made) {
        bw_registry_close(registry);
        return bw_error_no_memory();
    }
    made->registry = registry;
    made->reporter = reporter;
    bw_probes_init(&made->silent);
    made->probes = &made->silent;
    pthread_mutex_init(&made->report_lock, NULL);
    *graph = made;
    return NULL;
}

void bw_layer_clear_options(struct bw_xlator *layer)
{
    while (layer->settings.count) {
        struct bw_setting *setting = &layer->settings.items[--layer->settings.count];
        free(setting->name.text);
        free(setting->value.text);
    }
}

static void destroy_layer(struct bw_xlator *layer)
{
    if (layer->started && layer->type->operations.fini)
        layer->type->operations.fini(layer);
    if (layer->started && layer->type->private_size)
        free(layer->state);
    bw_layer_clear_options(layer);
    while (layer->children.count)
        bw_layer_remove_child(layer, layer->children.count - 1);
    bw_settings_free(&layer->settings);
    bw_children_free(&layer->children);
    free(layer->values);
    free(layer->name.text);
    free(layer->type_name.text);
    free(layer);
}

void bw_graph_destroy(struct bw_graph *graph)
{
    if (!graph)
        return;
    while (graph->layers.count)
        destroy_layer(graph->layers.items[--graph->layers.count]);
    bw_strings_free_all(&graph->sources);
    pthread_mutex_destroy(&graph->report_lock);
    bw_registry_close(graph->registry); /* may unload the layers' code */
    bw_xlators_free(&graph->layers);
    free(graph);
}

const char *bw_graph_source(struct bw_graph *graph, const char *source)
{
    BW_AUTO_ERROR struct bw_error *error = bw_strings_push_copy(&graph->sources, source);
    return error ? NULL : graph->sources.items[graph->sources.count - 1];
}

static struct bw_error *set_word(struct bw_word *word, const char *text, struct bw_text_place at)
{
    char *copy = strdup(text);
    if (!copy)
        return bw_error_no_memory();
    free(word->text);
    *word = (struct bw_word){copy, at};
    return NULL;
}

struct bw_error *bw_graph_add(struct bw_graph *graph, size_t index, const char *name,
                              struct bw_text_place at, struct bw_xlator **layer)
{
    if (graph->layers.count == BW_GRAPH_LAYERS)
        return BW_REFUSE(at, "volume %s is one too many: a graph has at most %d", name,
                         BW_GRAPH_LAYERS);
    BW_AUTO_FREE struct bw_xlator *made = calloc(1, sizeof *made);
    BW_AUTO_FREE char *copy = strdup(name);
    if (!made || !copy)
        return bw_error_no_memory();
    BW_TRY(bw_xlators_insert(&graph->layers, index, made));
    made->graph = graph;
    made->name = (struct bw_word){BW_TAKE(copy), at};
    *layer = BW_TAKE(made);
    return NULL;
}

size_t bw_graph_index(const struct bw_xlator *layer)
{
    size_t index = 0;
    while (layer->graph->layers.items[index] != layer)
        index++;
    return index;
}

void bw_graph_remove(struct bw_graph *graph, struct bw_xlator *layer)
{
    size_t index = bw_graph_index(layer);
    bw_xlators_remove(&graph->layers, index);
    for (size_t i = 0; i < layer->children.count; i++)
        if (layer->children.items[i].layer && layer->children.items[i].layer->user == layer)
            layer->children.items[i].layer->user = NULL;
    destroy_layer(layer);
}

struct bw_error *bw_layer_set_type(struct bw_xlator *layer, const char *type,
                                   struct bw_text_place at)
{
    return set_word(&layer->type_name, type, at);
}

struct bw_setting *bw_layer_setting(const struct bw_xlator *layer, const char *name)
{
    for (size_t i = 0; i < layer->settings.count; i++)
        if (strcmp(layer->settings.items[i].name.text, name) == 0)
            return &layer->settings.items[i];
    return NULL;
}

const char *bw_layer_option(const struct bw_xlator *layer, const char *name)
{
    const struct bw_setting *setting = bw_layer_setting(layer, name);
    return setting ? setting->value.text : NULL;
}

struct bw_error *bw_layer_set_option(struct bw_xlator *layer, const char *name,
                                     struct bw_text_place name_at, const char *value,
                                     struct bw_text_place value_at)
{
    struct bw_setting *setting = bw_layer_setting(layer, name);
    if (setting)
        return set_word(&setting->value, value, value_at);
    struct bw_setting made = {0};
    BW_TRY(bw_settings_reserve(&layer->settings, 1));
    BW_TRY(set_word(&made.name, name, name_at));
    BW_TRY(bw_settings_push(&layer->settings, made));
    return set_word(&layer->settings.items[layer->settings.count - 1].value, value, value_at);
}

struct bw_error *bw_layer_add_child(struct bw_xlator *layer, const char *name,
                                    struct bw_text_place at)
{
    struct bw_child child = {0};
    BW_TRY(bw_children_reserve(&layer->children, 1));
    BW_TRY(set_word(&child.name, name, at));
    return bw_children_push(&layer->children, child);
}

struct bw_error *bw_layer_attach(struct bw_xlator *layer, struct bw_xlator *child)
{
    BW_TRY(bw_layer_add_child(layer, child->name.text, child->name.at));
    layer->children.items[layer->children.count - 1].layer = child;
    child->user = layer;
    return NULL;
}

void bw_layer_remove_child(struct bw_xlator *layer, size_t index)
{
    free(layer->children.items[index].name.text);
    bw_children_remove(&layer->children, index);
}

struct bw_error *bw_layer_start(struct bw_xlator *layer)
{
    const size_t step = 64, size = (layer->type->private_size + step - 1) / step * step;
    if (layer->started)
        return NULL;
    if (size && !(layer->state = aligned_alloc(step, size)))
        return bw_error_no_memory();
    if (size)
        memset(layer->state, 0, size);
    layer->started = true;
    struct bw_error *error =
        layer->type->operations.init ? layer->type->operations.init(layer) : NULL;
    if (error && !error->way)
        bw_error_add_hop(error, layer->type->type, layer->name.text, NULL);
    if (error && bw_graph_path(layer))
        error = bw_error_about(error, bw_graph_path(layer));
    return error ? bw_place_error(layer->name.at, error) : NULL;
}

/* Marks all layers, or those below one. One pass is enough, because parents come after their
 * children. */
static void mark_below(struct bw_graph *graph, const struct bw_xlator *above)
{
    for (size_t i = 0; i < graph->layers.count; i++)
        graph->layers.items[i]->marked = !above;
    for (size_t i = graph->layers.count; i-- > 0;) {
        const struct bw_xlator *layer = graph->layers.items[i];
        for (size_t k = 0; (layer == above || layer->marked) && k < layer->children.count; k++)
            layer->children.items[k].layer->marked = true;
    }
}

struct bw_error *bw_graph_start(struct bw_graph *graph, const struct bw_xlator *above)
{
    mark_below(graph, above);
    for (size_t i = 0; i < graph->layers.count; i++)
        if (graph->layers.items[i]->marked)
            BW_TRY(bw_layer_start(graph->layers.items[i]));
    return NULL;
}

void bw_graph_prune(struct bw_graph *graph)
{
    mark_below(graph, graph->layers.items[graph->layers.count - 1]);
    for (size_t i = graph->layers.count - 1; i-- > 0;)
        if (!graph->layers.items[i]->marked)
            bw_graph_remove(graph, graph->layers.items[i]);
}

struct bw_xlator *bw_graph_find(const struct bw_graph *graph, const char *name)
{
    for (size_t i = 0; i < graph->layers.count; i++)
        if (strcmp(graph->layers.items[i]->name.text, name) == 0)
            return graph->layers.items[i];
    return NULL;
}

const char *bw_graph_path(const struct bw_xlator *layer)
{
    const struct bw_option *options = layer->type->options;
    for (size_t i = 0; options && options[i].name; i++)
        if (options[i].type == BW_OPTION_PATH)
            return layer->values[i];
    return NULL;
}

const char *bw_xlator_image(const struct bw_xlator *xlator)
{
    while (xlator->children.count)
        xlator = xlator->children.items[0].layer;
    const char *path = bw_graph_path(xlator);
    return path ? path : xlator->name.text;
}

void bw_xlator_set_title(struct bw_xlator *xlator, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(xlator->title, sizeof xlator->title, format, arguments);
    va_end(arguments);
}

const char *bw_xlator_title(struct bw_xlator *xlator)
{
    return xlator->title;
}

void bw_xlator_set_size(struct bw_xlator *xlator, uint64_t size)
{
    xlator->size = size;
}

uint64_t bw_xlator_own_size(struct bw_xlator *xlator)
{
    return xlator->size;
}

struct bw_error *bw_graph_control(const struct bw_graph *graph, const struct bw_control *control)
{
    for (size_t i = 0; i < graph->layers.count; i++) {
        const struct bw_xlator_class *type = graph->layers.items[i]->type;
        if (type->takes & BW_TAKES(control->kind))
            BW_TRY(type->operations.control(graph->layers.items[i], control));
    }
    return NULL;
}
