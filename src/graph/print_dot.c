/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A graph as a picture. Labels are HTML-like, where four characters have to be written as entities
 * and all else is text; nodes are numbered, so that names need no quoting.
 */
#include <string.h>

#include "base/escape.h"
#include "graph/instance.h"
#include "graph/print.h"

static const char head[] =
    "digraph \"btrfs-walk\" {\n"
    "    graph [rankdir=TB ordering=out nodesep=0.3 ranksep=0.4 fontname=\"Helvetica\"];\n"
    "    node [shape=box style=\"rounded,filled\" color=\"#5a6472\" penwidth=0.8\n"
    "          fontname=\"Helvetica\" fontsize=11 margin=\"0.16,0.08\"];\n"
    "    edge [color=\"#5a6472\" penwidth=0.8 arrowsize=0.6];\n";

/* One colour a category; the last one is for those that other people make. */
static const struct colour {
    const char *category, *colour;
} colours[] = {
    {"storage/", "#d8e6f5"},  {"layout/", "#d5eeee"},      {"cluster/", "#dcefd3"},
    {"features/", "#fdf0c4"}, {"performance/", "#fbdfca"}, {"debug/", "#f3d6e2"},
    {"", "#ececec"},
};

static const char *colour_of(const char *type)
{
    const struct colour *colour = colours;
    while (strncmp(type, colour->category, strlen(colour->category)) != 0)
        colour++;
    return colour->colour;
}

/* A backslash begins the name of a node or graph even here, so it is doubled. The last two
 * characters of Unicode's first plane are valid UTF-8, but not in XML, which is what labels are
 * read as. */
static void append_markup(struct bw_buffer *text, const char *bytes, size_t length)
{
    for (const char *end = bytes + length; bytes < end; bytes++) {
        if (*bytes == '\\')
            bw_buffer_format(text, "\\\\");
        else if (strchr("&<>\"", *bytes))
            bw_buffer_format(text, "&#%d;", *bytes);
        else if (end - bytes >= 3 &&
                 (memcmp(bytes, "\xef\xbf\xbe", 3) == 0 || memcmp(bytes, "\xef\xbf\xbf", 3) == 0)) {
            bw_buffer_format(text, "\\\\357\\\\277\\\\%o", (unsigned char)bytes[2]);
            bytes += 2;
        } else
            bw_buffer_append_byte(text, *bytes);
    }
}

/* Names are bytes; what is no text is shown the way a terminal shows it. */
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
    if (shown.length)
        append_markup(text, shown.data, shown.length);
    text->failed |= shown.failed;
    bw_buffer_free(&shown);
}

static void print_options(const struct bw_xlator *layer, struct bw_buffer *text)
{
    const struct bw_option *option = layer->type->options;
    for (char *const *value = layer->values; option && option->name; option++, value++) {
        if (option->default_value && strcmp(option->default_value, *value) == 0)
            continue;
        bw_buffer_format(text, "<br/><font point-size=\"9\">");
        append_text(text, option->name);
        bw_buffer_format(text, " = ");
        append_text(text, *value);
        bw_buffer_format(text, "</font>");
    }
}

static void print_node(const struct bw_xlator *layer, size_t index, struct bw_buffer *text)
{
    bw_buffer_format(text, "    n%zu [fillcolor=\"%s\" label=<<b>", index,
                     colour_of(layer->type->type));
    append_text(text, layer->name);
    bw_buffer_format(text, "</b><br/>");
    append_text(text, layer->type->type);
    print_options(layer, text);
    bw_buffer_format(text, ">];\n");
}

static size_t index_of(const struct bw_graph *graph, const struct bw_xlator *layer)
{
    size_t index = 0;
    while (graph->layers[index] != layer)
        index++;
    return index;
}

/* The top comes first: Graphviz draws in the order it reads. */
void bw_graph_print_dot(const struct bw_graph *graph, struct bw_buffer *text)
{
    bw_buffer_append(text, head, sizeof head - 1);
    for (size_t i = graph->size; i-- > 0;)
        print_node(graph->layers[i], i, text);
    for (size_t i = graph->size; i-- > 0;)
        for (size_t child = 0; child < graph->layers[i]->child_count; child++)
            bw_buffer_format(text, "    n%zu -> n%zu;\n", i,
                             index_of(graph, graph->layers[i]->children[child]));
    bw_buffer_format(text, "}\n");
}
