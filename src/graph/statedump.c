/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state of a graph in JSON: what each layer was told, what it holds, and what it was asked so
 * far. */
#include "base/json.h"
#include "graph/instance.h"

static void dump_options(const struct bw_xlator *xlator, struct bw_json *json)
{
    const struct bw_option *options = xlator->type->options;
    bw_json_begin_object(json, "options");
    for (size_t i = 0; options && options[i].name; i++)
        bw_json_text(json, options[i].name, xlator->values[i]);
    bw_json_end(json);
}

static void dump_children(const struct bw_xlator *xlator, struct bw_json *json)
{
    bw_json_begin_array(json, "subvolumes");
    for (size_t i = 0; i < xlator->child_count; i++)
        bw_json_text(json, NULL, xlator->children[i]->name);
    bw_json_end(json);
}

static void dump_state(struct bw_xlator *xlator, struct bw_json *json)
{
    if (!xlator->type->operations.dump)
        return;
    unsigned depth = json->depth;
    bw_json_begin_object(json, "state");
    xlator->type->operations.dump(xlator, json);
    while (json->depth > depth) /* also what the layer has forgotten */
        bw_json_end(json);
}

static void dump_counters(const struct bw_xlator *xlator, struct bw_json *json)
{
    bw_json_begin_object(json, "counters");
    for (unsigned kind = 0; kind < BW_REQUEST_KINDS; kind++) {
        struct bw_counters counters = bw_xlator_counters(xlator, (enum bw_request_kind)kind);
        if (!counters.calls)
            continue;
        bw_json_begin_object(json, bw_request_kind_name((enum bw_request_kind)kind));
        bw_json_number(json, "calls", counters.calls);
        bw_json_number(json, "requests", counters.requests);
        bw_json_number(json, "bytes", counters.bytes);
        bw_json_number(json, "errors", counters.errors);
        bw_json_end(json);
    }
    bw_json_end(json);
}

void bw_graph_dump(const struct bw_graph *graph, struct bw_json *json)
{
    for (size_t i = 0; i < graph->size; i++) {
        struct bw_xlator *xlator = graph->layers[i];
        bw_json_begin_object(json, NULL);
        bw_json_text(json, "name", xlator->name);
        bw_json_text(json, "type", xlator->type->type);
        dump_options(xlator, json);
        dump_children(xlator, json);
        dump_state(xlator, json);
        dump_counters(xlator, json);
        bw_json_end(json);
    }
}
