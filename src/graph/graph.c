/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Building, checking and taking down a graph of layers. */
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "graph/check.h"
#include "graph/instance.h"

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

void bw_graph_set_probes(struct bw_graph *graph, struct bw_probes *probes)
{
    graph->probes = probes;
}

struct bw_probes *bw_graph_probes(struct bw_graph *graph)
{
    return graph->probes;
}

struct bw_probes *bw_xlator_probes(const struct bw_xlator *xlator)
{
    return xlator->graph->probes;
}

struct bw_registry *bw_graph_registry(const struct bw_graph *graph)
{
    return graph->registry;
}

static void destroy_layer(struct bw_xlator *xlator)
{
    if (!xlator)
        return;
    if (xlator->type->operations.fini)
        xlator->type->operations.fini(xlator);
    bw_options_free(xlator);
    free(xlator->children);
    free(xlator->name);
    free(xlator);
}

void bw_graph_destroy(struct bw_graph *graph)
{
    if (!graph)
        return;
    while (graph->size)
        destroy_layer(graph->layers[--graph->size]);
    pthread_mutex_destroy(&graph->report_lock);
    bw_registry_close(graph->registry); /* the layers' code may be in there */
    free(graph->layers);
    free(graph);
}

void bw_graph_remove(struct bw_graph *graph, struct bw_xlator *xlator)
{
    for (size_t i = 0; i < graph->size; i++) {
        if (graph->layers[i] != xlator)
            continue;
        graph->size--;
        memmove(graph->layers + i, graph->layers + i + 1,
                (graph->size - i) * sizeof *graph->layers);
        break;
    }
    destroy_layer(xlator);
}

static struct bw_error *check_layer(const struct bw_graph *graph, const struct bw_layer *layer,
                                    const struct bw_xlator_class *type,
                                    struct bw_standing *standing)
{
    for (size_t i = 0; i < graph->size; i++)
        if (strcmp(graph->layers[i]->name, layer->name) == 0)
            return bw_error_create(BW_ERROR_USAGE, "volume %s: name is taken", layer->name);
    BW_AUTO_FREE struct bw_child *children = calloc(layer->child_count + 1, sizeof *children);
    if (!children)
        return bw_error_no_memory();
    for (size_t i = 0; i < layer->child_count; i++)
        children[i] = (struct bw_child){layer->children[i]->name, layer->children[i]->standing};
    return bw_check_layer(type, layer, children, standing, NULL);
}

static struct bw_xlator *allocate_layer(struct bw_graph *graph, const struct bw_layer *layer,
                                        const struct bw_xlator_class *type)
{
    struct bw_xlator *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->type = type;
    made->graph = graph;
    made->name = strdup(layer->name);
    made->child_count = layer->child_count;
    made->children = calloc(layer->child_count + 1, sizeof *made->children);
    if (!made->name || !made->children) {
        free(made->children);
        free(made->name);
        free(made);
        return NULL;
    }
    if (layer->child_count)
        memcpy(made->children, layer->children, layer->child_count * sizeof *made->children);
    return made;
}

static struct bw_error *initialise(struct bw_xlator *xlator, const struct bw_layer *layer)
{
    BW_TRY(bw_options_apply(xlator, layer->options));
    return xlator->type->operations.init ? xlator->type->operations.init(xlator) : NULL;
}

struct bw_error *bw_graph_add(struct bw_graph *graph, const struct bw_layer *layer,
                              struct bw_xlator **xlator)
{
    const struct bw_xlator_class *type = NULL;
    struct bw_standing standing;
    struct bw_error *unknown = bw_registry_find(graph->registry, layer->type, &type);
    if (unknown)
        return bw_error_prefix(unknown, "volume %s", layer->name);
    BW_TRY(check_layer(graph, layer, type, &standing));
    struct bw_xlator **layers = realloc(graph->layers, (graph->size + 1) * sizeof *layers);
    if (!layers)
        return bw_error_no_memory();
    graph->layers = layers;
    struct bw_xlator *made = allocate_layer(graph, layer, type);
    if (!made)
        return bw_error_no_memory();
    made->standing = standing;
    struct bw_error *error = initialise(made, layer);
    if (error) {
        if (!error->way)
            bw_error_add_hop(error, type->type, layer->name, NULL);
        destroy_layer(made);
        return error;
    }
    graph->layers[graph->size++] = made;
    *xlator = made;
    return NULL;
}

size_t bw_graph_size(const struct bw_graph *graph)
{
    return graph->size;
}

struct bw_xlator *bw_graph_layer(const struct bw_graph *graph, size_t index)
{
    return graph->layers[index];
}

struct bw_xlator *bw_graph_find(const struct bw_graph *graph, const char *name)
{
    for (size_t i = 0; i < graph->size; i++)
        if (strcmp(graph->layers[i]->name, name) == 0)
            return graph->layers[i];
    return NULL;
}

const char *bw_graph_path(const struct bw_xlator *xlator)
{
    const struct bw_option *options = xlator->type->options;
    for (size_t i = 0; options && options[i].name; i++)
        if (options[i].type == BW_OPTION_PATH)
            return xlator->values[i];
    return NULL;
}

struct bw_standing bw_graph_standing(const struct bw_xlator *xlator)
{
    return xlator->standing;
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

void bw_graph_report(struct bw_graph *graph, enum bw_severity severity, struct bw_error *error)
{
    BW_PROBE(graph->probes, error, report,
             &(struct bw_report_event){.error = error, .severity = severity});
    if (graph->reporter.report) {
        pthread_mutex_lock(&graph->report_lock);
        graph->reporter.report(graph->reporter.context, severity, error);
        pthread_mutex_unlock(&graph->report_lock);
    }
    bw_error_free(error);
}

void bw_xlator_report(const struct bw_xlator *xlator, enum bw_severity severity,
                      struct bw_error *error)
{
    if (!error->way)
        bw_error_add_hop(error, xlator->type->type, xlator->name, NULL);
    bw_graph_report(xlator->graph, severity, error);
}

void *bw_xlator_private(const struct bw_xlator *xlator)
{
    return xlator->state;
}

void bw_xlator_set_private(struct bw_xlator *xlator, void *state)
{
    xlator->state = state;
}

const char *bw_xlator_name(const struct bw_xlator *xlator)
{
    return xlator->name;
}

const char *bw_xlator_type(const struct bw_xlator *xlator)
{
    return xlator->type->type;
}

size_t bw_xlator_child_count(const struct bw_xlator *xlator)
{
    return xlator->child_count;
}

struct bw_xlator *bw_xlator_child(const struct bw_xlator *xlator, size_t index)
{
    return index < xlator->child_count ? xlator->children[index] : NULL;
}
