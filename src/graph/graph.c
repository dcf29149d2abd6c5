/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The life cycle of a graph: describing layers, starting them, and ending them. */
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
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
    while (layer->setting_count) {
        struct bw_setting *setting = &layer->settings[--layer->setting_count];
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
    while (layer->child_count)
        bw_layer_remove_child(layer, layer->child_count - 1);
    free(layer->settings);
    free(layer->children);
    free(layer->values);
    free(layer->name.text);
    free(layer->type_name.text);
    free(layer);
}

void bw_graph_destroy(struct bw_graph *graph)
{
    if (!graph)
        return;
    while (graph->size)
        destroy_layer(graph->layers[--graph->size]);
    while (graph->source_count)
        free(graph->sources[--graph->source_count]);
    pthread_mutex_destroy(&graph->report_lock);
    bw_registry_close(graph->registry); /* may unload the layers' code */
    free(graph->sources);
    free(graph->layers);
    free(graph);
}

const char *bw_graph_source(struct bw_graph *graph, const char *source)
{
    char *copy = strdup(source);
    if (!copy || !BW_ARRAY_RESERVE(graph->sources, graph->source_count, graph->source_capacity)) {
        free(copy);
        return NULL;
    }
    return graph->sources[graph->source_count++] = copy;
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
    if (graph->size == BW_GRAPH_LAYERS)
        return BW_REFUSE(at, "volume %s is one too many: a graph has at most %d", name,
                         BW_GRAPH_LAYERS);
    struct bw_xlator *made = calloc(1, sizeof *made);
    char *copy = strdup(name);
    if (!made || !copy || !BW_ARRAY_RESERVE(graph->layers, graph->size, graph->capacity)) {
        free(copy);
        free(made);
        return bw_error_no_memory();
    }
    made->graph = graph;
    made->name = (struct bw_word){copy, at};
    memmove(graph->layers + index + 1, graph->layers + index,
            (graph->size++ - index) * sizeof *graph->layers);
    *layer = graph->layers[index] = made;
    return NULL;
}

size_t bw_graph_index(const struct bw_xlator *layer)
{
    size_t index = 0;
    while (layer->graph->layers[index] != layer)
        index++;
    return index;
}

void bw_graph_remove(struct bw_graph *graph, struct bw_xlator *layer)
{
    size_t index = bw_graph_index(layer);
    memmove(graph->layers + index, graph->layers + index + 1,
            (--graph->size - index) * sizeof *graph->layers);
    for (size_t i = 0; i < layer->child_count; i++)
        if (layer->children[i].layer && layer->children[i].layer->user == layer)
            layer->children[i].layer->user = NULL;
    destroy_layer(layer);
}

struct bw_error *bw_layer_set_type(struct bw_xlator *layer, const char *type,
                                   struct bw_text_place at)
{
    return set_word(&layer->type_name, type, at);
}

struct bw_setting *bw_layer_setting(const struct bw_xlator *layer, const char *name)
{
    for (size_t i = 0; i < layer->setting_count; i++)
        if (strcmp(layer->settings[i].name.text, name) == 0)
            return &layer->settings[i];
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
    if (!BW_ARRAY_RESERVE(layer->settings, layer->setting_count, layer->setting_capacity))
        return bw_error_no_memory();
    setting = &layer->settings[layer->setting_count];
    *setting = (struct bw_setting){0};
    BW_TRY(set_word(&setting->name, name, name_at));
    layer->setting_count++;
    return set_word(&setting->value, value, value_at);
}

struct bw_error *bw_layer_add_child(struct bw_xlator *layer, const char *name,
                                    struct bw_text_place at)
{
    if (!BW_ARRAY_RESERVE(layer->children, layer->child_count, layer->child_capacity))
        return bw_error_no_memory();
    struct bw_child *child = &layer->children[layer->child_count];
    *child = (struct bw_child){0};
    BW_TRY(set_word(&child->name, name, at));
    layer->child_count++;
    return NULL;
}

struct bw_error *bw_layer_attach(struct bw_xlator *layer, struct bw_xlator *child)
{
    BW_TRY(bw_layer_add_child(layer, child->name.text, child->name.at));
    layer->children[layer->child_count - 1].layer = child;
    child->user = layer;
    return NULL;
}

void bw_layer_remove_child(struct bw_xlator *layer, size_t index)
{
    free(layer->children[index].name.text);
    memmove(layer->children + index, layer->children + index + 1,
            (--layer->child_count - index) * sizeof *layer->children);
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
    return error ? bw_place_error(layer->name.at, error) : NULL;
}

/* Marks all layers, or those below one. One pass is enough, because parents come after their
 * children. */
static void mark_below(struct bw_graph *graph, const struct bw_xlator *above)
{
    for (size_t i = 0; i < graph->size; i++)
        graph->layers[i]->marked = !above;
    for (size_t i = graph->size; i-- > 0;) {
        const struct bw_xlator *layer = graph->layers[i];
        for (size_t k = 0; (layer == above || layer->marked) && k < layer->child_count; k++)
            layer->children[k].layer->marked = true;
    }
}

struct bw_error *bw_graph_start(struct bw_graph *graph, const struct bw_xlator *above)
{
    mark_below(graph, above);
    for (size_t i = 0; i < graph->size; i++)
        if (graph->layers[i]->marked)
            BW_TRY(bw_layer_start(graph->layers[i]));
    return NULL;
}

void bw_graph_prune(struct bw_graph *graph)
{
    mark_below(graph, graph->layers[graph->size - 1]);
    for (size_t i = graph->size - 1; i-- > 0;)
        if (!graph->layers[i]->marked)
            bw_graph_remove(graph, graph->layers[i]);
}

struct bw_xlator *bw_graph_find(const struct bw_graph *graph, const char *name)
{
    for (size_t i = 0; i < graph->size; i++)
        if (strcmp(graph->layers[i]->name.text, name) == 0)
            return graph->layers[i];
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
    while (xlator->child_count)
        xlator = xlator->children[0].layer;
    const char *path = bw_graph_path(xlator);
    return path ? path : xlator->name.text;
}

struct bw_error *bw_graph_control(const struct bw_graph *graph, const struct bw_control *control)
{
    for (size_t i = 0; i < graph->size; i++) {
        const struct bw_xlator_class *type = graph->layers[i]->type;
        if (type->takes & BW_TAKES(control->kind))
            BW_TRY(type->operations.control(graph->layers[i], control));
    }
    return NULL;
}
