/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A graph as text: as a volfile, as a picture for Graphviz, and as JSON with the state of its
 * layers. Names and values of options are arbitrary bytes, so each form has its own way to quote
 * them.
 */
#include "graph/graph.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/utf8.h"
#include "record/rows.h"

/* Whether escaping changes nothing: no white space, no control characters, valid UTF-8. If memory
 * runs out, `text` has failed. */
static bool is_clean(struct bw_buffer *text, const char *bytes, size_t length)
{
    const size_t before = text->length;
    bw_escape_append(text, bytes, length);
    const bool clean = text->length - before == length;
    text->length = before;
    return clean;
}

/* Appends a space and a word, in quotes if it needs them. Characters beyond ASCII are not escaped.
 */
static void append_word(struct bw_buffer *text, const char *word)
{
    if (*word && *word != '#' && !strchr(word, '"') && !bw_volfile_is_keyword(word) &&
        is_clean(text, word, strlen(word))) {
        bw_buffer_format(text, " %s", word);
        return;
    }
    bw_buffer_format(text, " \"");
    for (size_t left = strlen(word), length; left; word += length, left -= length) {
        const unsigned char byte = (unsigned char)*word;
        length = bw_utf8_length((const uint8_t *)word, left);
        if (length > 1 && is_clean(text, word, length)) {
            bw_buffer_append(text, word, length);
            continue;
        }
        length = 1;
        if (byte == '"' || byte == '\\')
            bw_buffer_format(text, "\\%c", byte);
        else if (byte == '\n')
            bw_buffer_format(text, "\\n");
        else if (byte == '\t')
            bw_buffer_format(text, "\\t");
        else if (byte < ' ' || byte >= 0x7f)
            bw_buffer_format(text, "\\x%02x", byte);
        else
            bw_buffer_append_byte(text, (char)byte);
    }
    bw_buffer_append_byte(text, '"');
}

void bw_graph_print(const struct bw_graph *graph, struct bw_buffer *text)
{
    for (size_t i = 0; i < graph->layers.count; i++) {
        const struct bw_xlator *layer = graph->layers.items[i];
        bw_buffer_format(text, i ? "\nvolume" : "volume");
        append_word(text, layer->name.text);
        bw_buffer_format(text, "\n    type");
        append_word(text, layer->type->type);
        const struct bw_option *option = layer->type->options;
        for (const char *const *value = layer->values; option && option->name; option++, value++) {
            /* An empty value usually means "none", and is only of interest if it is not the
             * default. */
            if (!**value && option->default_value && !*option->default_value)
                continue;
            bw_buffer_format(text, "\n    option");
            append_word(text, option->name);
            append_word(text, *value);
        }
        if (layer->children.count)
            bw_buffer_format(text, "\n    subvolumes");
        for (size_t k = 0; k < layer->children.count; k++)
            append_word(text, layer->children.items[k].layer->name.text);
        bw_buffer_format(text, "\nend-volume\n");
    }
}

/*
 * A picture. Labels are HTML-like: four characters must be written as entities, the rest is plain
 * text. Nodes are numbered, so names need no quotes.
 */

static const char head[] =
    "digraph \"btrfs-walk\" {\n"
    "    graph [rankdir=TB ordering=out nodesep=0.3 ranksep=0.4 fontname=\"Helvetica\"];\n"
    "    node [shape=box style=\"rounded,filled\" color=\"#5a6472\" penwidth=0.8\n"
    "          fontname=\"Helvetica\" fontsize=11 margin=\"0.16,0.08\"];\n"
    "    edge [color=\"#5a6472\" penwidth=0.8 arrowsize=0.6];\n";

/* A colour for each category; the last is for categories of external layers. */
static const struct colour {
    const char *category, *colour;
} colours[] = {
    {"storage/", "#d8e6f5"},  {"layout/", "#d5eeee"},      {"cluster/", "#dcefd3"},
    {"features/", "#fdf0c4"}, {"performance/", "#fbdfca"}, {"debug/", "#f3d6e2"},
    {"", "#ececec"},
};

/* Appends a text of a label. Names are arbitrary bytes; bytes that are not text are escaped as on a
 * terminal, but spaces and backslashes are not. Then backslashes are doubled, because even here
 * they begin escapes such as the name of the node. The last two characters of Unicode's first plane
 * are replaced: they are valid UTF-8, but Graphviz parses labels as XML, which excludes them. */
static void append_text(struct bw_buffer *text, const char *bytes)
{
    struct bw_buffer shown = {0};
    while (*bytes) {
        size_t plain = strcspn(bytes, "\\ ");
        bw_escape_append(&shown, bytes, plain);
        bytes += plain;
        if (*bytes)
            bw_buffer_append_byte(&shown, *bytes++);
    }
    for (size_t i = 0; i < shown.length; i++) {
        const char *next = shown.data + i;
        if (*next == '\\') {
            bw_buffer_format(text, "\\\\");
        } else if (strchr("&<>\"", *next)) {
            bw_buffer_format(text, "&#%d;", *next);
        } else if (shown.length - i >= 3 &&
                   (memcmp(next, "\xef\xbf\xbe", 3) == 0 || memcmp(next, "\xef\xbf\xbf", 3) == 0)) {
            bw_buffer_format(text, "\\\\357\\\\277\\\\%o", (unsigned char)next[2]);
            i += 2;
        } else {
            bw_buffer_append_byte(text, *next);
        }
    }
    text->failed |= shown.failed;
    bw_buffer_free(&shown);
}

/* Prints the top first, because Graphviz draws in the order of its input. */
void bw_graph_print_dot(const struct bw_graph *graph, struct bw_buffer *text)
{
    bw_buffer_append(text, head, sizeof head - 1);
    for (size_t i = graph->layers.count; i-- > 0;) {
        const struct bw_xlator *layer = graph->layers.items[i];
        const char *type = layer->type->type;
        const struct colour *colour = colours;
        while (strncmp(type, colour->category, strlen(colour->category)) != 0)
            colour++;
        bw_buffer_format(text, "    n%zu [fillcolor=\"%s\" label=<<b>", i, colour->colour);
        append_text(text, layer->name.text);
        bw_buffer_format(text, "</b><br/>");
        append_text(text, type);
        const struct bw_option *option = layer->type->options;
        for (const char *const *value = layer->values; option && option->name; option++, value++) {
            if (option->default_value && strcmp(option->default_value, *value) == 0)
                continue;
            bw_buffer_format(text, "<br/><font point-size=\"9\">");
            append_text(text, option->name);
            bw_buffer_format(text, " = ");
            append_text(text, *value);
            bw_buffer_format(text, "</font>");
        }
        bw_buffer_format(text, ">];\n");
    }
    for (size_t i = graph->layers.count; i-- > 0;)
        for (size_t child = 0; child < graph->layers.items[i]->children.count; child++)
            bw_buffer_format(text, "    n%zu -> n%zu;\n", i,
                             bw_graph_index(graph->layers.items[i]->children.items[child].layer));
    bw_buffer_format(text, "}\n");
}

/* Rows and a statedump. */

static void dump_options(const struct bw_xlator *xlator, struct bw_json *json, const char *name)
{
    const struct bw_option *options = xlator->type->options;
    bw_json_begin_object(json, name);
    for (size_t i = 0; options && options[i].name; i++)
        bw_json_text(json, options[i].name, xlator->values[i]);
    bw_json_end(json);
}

static void write_options(void *xlator, struct bw_json *json)
{
    dump_options(xlator, json, NULL);
}

struct bw_error *bw_graph_write_rows(const struct bw_graph *graph, struct bw_rows_stream *stream)
{
    if (bw_rows_record(stream->rows) != &bw_layerinfo_record)
        return bw_error_create(BW_ERROR_USAGE, "the rows of a graph are of the record layerinfo");
    for (size_t i = 0; i < graph->layers.count; i++) {
        struct bw_xlator *layer = graph->layers.items[i];
        BW_AUTO_FREE struct bw_bytes *names = calloc(layer->children.count + 1, sizeof *names);
        if (!names)
            return bw_error_no_memory();
        for (size_t k = 0; k < layer->children.count; k++) {
            const char *name = layer->children.items[k].layer->name.text;
            names[k] = (struct bw_bytes){name, strlen(name)};
        }
        const struct bw_layerinfo row = {.layer = layer->name.text,
                                         .layer_type = layer->type->type,
                                         .option_values = {write_options, layer},
                                         .child_layers = {names, layer->children.count}};
        BW_TRY(bw_rows_write(stream, &row, sizeof row));
    }
    return NULL;
}

void bw_graph_dump(const struct bw_graph *graph, struct bw_json *json)
{
    for (size_t i = 0; i < graph->layers.count; i++) {
        struct bw_xlator *xlator = graph->layers.items[i];
        bw_json_begin_object(json, NULL);
        bw_json_text(json, "name", xlator->name.text);
        bw_json_text(json, "type", xlator->type->type);
        dump_options(xlator, json, "options");

        bw_json_begin_array(json, "subvolumes");
        for (size_t k = 0; k < xlator->children.count; k++)
            bw_json_text(json, NULL, xlator->children.items[k].layer->name.text);
        bw_json_end(json);

        if (xlator->started && xlator->type->operations.dump) {
            const unsigned depth = json->depth;
            bw_json_begin_object(json, "state");
            xlator->type->operations.dump(xlator, json);
            while (json->depth > depth) /* also ends objects that the layer has not ended */
                bw_json_end(json);
        }

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
        bw_json_end(json);
    }
}
