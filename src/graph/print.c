/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A graph as a volfile: the other direction of graph/volfile.c. */
#include "graph/print.h"

#include <string.h>

#include "base/escape.h"
#include "graph/instance.h"
#include "graph/volfile.h"

/* What the escaper leaves alone holds no white space, no control bytes and nothing but UTF-8. */
static bool is_clean(const char *bytes, size_t length)
{
    struct bw_buffer escaped = {0};
    bw_escape_append(&escaped, bytes, length);
    bool clean = !escaped.failed && escaped.length == length;
    bw_buffer_free(&escaped);
    return clean;
}

static void append_byte(struct bw_buffer *text, unsigned char byte)
{
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

/* Bytes beyond ASCII stay as they are where they make sense as text. */
static void append_quoted(struct bw_buffer *text, const char *word)
{
    bw_buffer_append_byte(text, '"');
    while (*word) {
        size_t run = 0;
        while ((unsigned char)word[run] >= 0x80)
            run++;
        if (run && is_clean(word, run)) {
            bw_buffer_append(text, word, run);
            word += run;
        } else {
            for (size_t left = run ? run : 1; left > 0; left--)
                append_byte(text, (unsigned char)*word++);
        }
    }
    bw_buffer_append_byte(text, '"');
}

static void append_word(struct bw_buffer *text, const char *word)
{
    if (*word && *word != '#' && !strchr(word, '"') && !bw_volfile_is_keyword(word) &&
        is_clean(word, strlen(word)))
        bw_buffer_format(text, " %s", word);
    else {
        bw_buffer_append_byte(text, ' ');
        append_quoted(text, word);
    }
}

/* An empty text mostly means "none", and is noise if it is the default. */
static bool is_worth_telling(const struct bw_option *option, const char *value)
{
    return *value || !option->default_value || *option->default_value;
}

static void print_layer(const struct bw_xlator *layer, struct bw_buffer *text)
{
    bw_buffer_format(text, "volume");
    append_word(text, layer->name);
    bw_buffer_format(text, "\n    type");
    append_word(text, layer->type->type);
    const struct bw_option *option = layer->type->options;
    for (char *const *value = layer->values; option && option->name; option++, value++) {
        if (!is_worth_telling(option, *value))
            continue;
        bw_buffer_format(text, "\n    option");
        append_word(text, option->name);
        append_word(text, *value);
    }
    for (size_t i = 0; i < layer->child_count; i++) {
        bw_buffer_format(text, "%s", i ? "" : "\n    subvolumes");
        append_word(text, layer->children[i]->name);
    }
    bw_buffer_format(text, "\nend-volume\n");
}

void bw_graph_print(const struct bw_graph *graph, struct bw_buffer *text)
{
    for (size_t i = 0; i < graph->size; i++) {
        bw_buffer_format(text, "%s", i ? "\n" : "");
        print_layer(graph->layers[i], text);
    }
}
