/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What all formats of a layer's page have in common: its parts, and prose that is cut into words
 * and lines.
 */
#include "cmd/graph/page.h"

#include <string.h>

#include "base/cleanup.h"
#include "btrfs-walk/graph.h"

static const char example_indent[] = "    ";

const struct page_format *page_find_format(const char *name)
{
    static const struct page_format *const formats[] = {&page_text, &page_markdown, &page_man};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i]->name, name) == 0)
            return formats[i];
    return NULL;
}

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\t';
}

/* The length of the next word of a text; `*words` then points to it. 0: there is none. */
static size_t next_word(const char **words, const char *end)
{
    size_t length = 0;
    while (*words < end && is_space(**words))
        ++*words;
    while (*words + length < end && !is_space((*words)[length]))
        length++;
    return length;
}

void page_append_words(struct bw_buffer *text, const struct page_format *format, const char *words,
                       size_t length, size_t indent)
{
    const char *end = words + length;
    size_t column = indent;
    for (size_t word; (word = next_word(&words, end)); words += word, column += word) {
        if (column > indent && column + 1 + word > format->width) {
            bw_buffer_format(text, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            bw_buffer_append_byte(text, ' ');
            column++;
        }
        format->word(text, words, word);
    }
}

void page_append_made(struct bw_buffer *text, const struct page_format *format,
                      struct bw_buffer *words, size_t indent)
{
    page_append_words(text, format, words->data ? words->data : "", words->length, indent);
    text->failed |= words->failed;
    bw_buffer_free(words);
}

static void append_paragraph(struct bw_buffer *text, const struct page_format *format,
                             const char *words, size_t length)
{
    bw_buffer_format(text, "%s", format->paragraph);
    page_append_words(text, format, words, length, 0);
    bw_buffer_append_byte(text, '\n');
}

static bool is_example(const char *line)
{
    return strncmp(line, example_indent, strlen(example_indent)) == 0;
}

/* Appends the lines of an example; returns what follows them. */
static const char *append_example(struct bw_buffer *text, const struct page_format *format,
                                  const char *prose)
{
    bw_buffer_format(text, "%s%s", format->paragraph, format->example);
    while (is_example(prose)) {
        size_t length = strcspn(prose, "\n");
        format->word(text, prose, length);
        bw_buffer_append_byte(text, '\n');
        prose += length + (prose[length] == '\n');
    }
    bw_buffer_format(text, "%s", format->example_end);
    return prose;
}

/* A paragraph ends with an empty line, with an example, or with the text. */
static size_t paragraph_length(const char *prose)
{
    const char *end = prose + strcspn(prose, "\n");
    while (*end && end[1] && end[1] != '\n' && !is_example(end + 1))
        end += 1 + strcspn(end + 1, "\n");
    return (size_t)(end - prose);
}

static void append_prose(struct bw_buffer *text, const struct page_format *format,
                         const char *prose)
{
    while (prose += strspn(prose, "\n"), *prose) {
        if (is_example(prose)) {
            prose = append_example(text, format, prose);
        } else {
            size_t length = paragraph_length(prose);
            append_paragraph(text, format, prose, length);
            prose += length;
        }
    }
}

static const char *space_above(enum bw_address_space space)
{
    return space == BW_ADDRESS_DEVICE    ? "device addresses"
           : space == BW_ADDRESS_LOGICAL ? "logical addresses"
                                         : "any addresses";
}

static const char *space_below(enum bw_address_space space)
{
    return space == BW_ADDRESS_NONE  ? "nothing"
           : space == BW_ADDRESS_ANY ? "the same"
                                     : space_above(space);
}

/* Where the layer fits into a graph. */
static void append_place(struct bw_buffer *text, const struct page_format *format,
                         const struct bw_xlator_class *type)
{
    unsigned least = type->minimum_children, most = type->maximum_children;
    struct bw_buffer place = {0};
    bw_buffer_format(&place, "Above it: %s. Below it: %s. Subvolumes (the layers it reads from): ",
                     space_above(type->above), space_below(type->below));
    if (!most)
        bw_buffer_format(&place, "none.");
    else if (most == 1)
        bw_buffer_format(&place, "%s.", least ? "one" : "one or none");
    else if (most == UINT32_MAX)
        bw_buffer_format(&place, "%u or more.", least);
    else if (least == most)
        bw_buffer_format(&place, "%u.", least);
    else
        bw_buffer_format(&place, "%u to %u.", least, most);
    bw_buffer_format(text, "%s", format->paragraph);
    page_append_made(text, format, &place, 0);
    bw_buffer_append_byte(text, '\n');
}

void page_append_default(struct bw_buffer *text, const struct bw_option *option)
{
    const char *value = option->default_value;
    bw_buffer_format(text, "%s", !value ? "must be given" : *value ? value : "empty");
}

void page_append_facts(struct bw_buffer *text, const struct bw_option *option)
{
    bw_buffer_format(text, "%s", bw_option_type_name(option->type));
    BW_AUTO_FREE char *range = bw_option_range(option);
    text->failed |= !range;
    if (range && *range)
        bw_buffer_format(text, ": %s", range);
    bw_buffer_format(text, "; %s", option->default_value ? "default " : "");
    page_append_default(text, option);
}

void page_append(struct bw_buffer *text, const struct page_format *format,
                 const struct bw_xlator_class *type)
{
    format->title(text, type);
    append_prose(text, format, type->page ? type->page : "");
    append_place(text, format, type);
    if (type->options && type->options->name)
        format->options(text, type->options);
    else
        append_paragraph(text, format, "It has no options.", strlen("It has no options."));
}
