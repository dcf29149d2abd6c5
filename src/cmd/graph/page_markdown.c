/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page of a layer in Markdown: scripts/make-manual makes docs/xlators/ of it. */
#include <string.h>

#include "cmd/graph/page.h"
#include "base/cleanup.h"
#include "btrfs-walk/graph.h"

/* The file that scripts/make-manual writes a page to. */
static void append_file_name(struct bw_buffer *text, const char *type)
{
    for (; *type; type++)
        bw_buffer_append_byte(text, *type == '/' ? '-' : *type);
    bw_buffer_format(text, ".md");
}

/* How many bytes of a word, from its beginning, are of a set. */
static size_t count_of(const char *bytes, size_t length, const char *set)
{
    size_t count = 0;
    while (count < length && strchr(set, bytes[count]))
        count++;
    return count;
}

/* Whether a word at the beginning of a line would start a list, a heading or a ruler; `*before`
 * bytes of it stand before the one that has to be escaped then. */
static bool begins_block(const char *bytes, size_t length, size_t *before)
{
    *before = 0;
    if (count_of(bytes, length, "-+=#") == length)
        return true;
    *before = length - 1;
    return length > 1 && count_of(bytes, length, "0123456789") == length - 1 &&
           (bytes[length - 1] == '.' || bytes[length - 1] == ')');
}

static void word(struct bw_buffer *text, const char *bytes, size_t length)
{
    size_t before;
    bool block = begins_block(bytes, length, &before);
    for (size_t i = 0; i < length; i++) {
        if (strchr("\\`*_~<>[]|&", bytes[i]) || (block && i == before))
            bw_buffer_append_byte(text, '\\');
        bw_buffer_append_byte(text, bytes[i]);
    }
}

/* Everything in an indented line is read as it is. */
static void word_or_example(struct bw_buffer *text, const char *bytes, size_t length)
{
    if (*bytes == ' ')
        bw_buffer_append(text, bytes, length);
    else
        word(text, bytes, length);
}

static void entry(struct bw_buffer *text, const struct bw_xlator_class *type, size_t columns)
{
    (void)columns;
    bw_buffer_format(text, "- [%s](", type->type);
    append_file_name(text, type->type);
    bw_buffer_format(text, "): ");
    page_append_words(text, &page_markdown, type->description, strlen(type->description), 2);
    bw_buffer_append_byte(text, '\n');
}

static void title(struct bw_buffer *text, const struct bw_xlator_class *type)
{
    struct page_format endless = page_markdown;
    endless.width = SIZE_MAX;
    bw_buffer_format(text, "# %s: ", type->type);
    page_append_words(text, &endless, type->description, strlen(type->description), 0);
    bw_buffer_append_byte(text, '\n');
}

/* The cells of an option but for its name. */
static void append_cells(struct bw_buffer *text, const struct bw_option *option)
{
    struct page_format endless = page_markdown;
    struct bw_buffer value = {0};
    BW_AUTO_FREE char *range = bw_option_range(option);
    endless.width = SIZE_MAX;
    page_append_default(&value, option);
    const char *allowed = range && *range ? range : "any";
    text->failed |= !range;
    bw_buffer_format(text, "| %s | ", bw_option_type_name(option->type));
    page_append_made(text, &endless, &value, 0);
    bw_buffer_format(text, " | ");
    page_append_words(text, &endless, allowed, strlen(allowed), 0);
    bw_buffer_format(text, " | ");
    page_append_words(text, &endless, option->description, strlen(option->description), 0);
    bw_buffer_format(text, " |\n");
}

static void options(struct bw_buffer *text, const struct bw_option *option)
{
    bw_buffer_format(text, "\n## Options\n\n| option | type | default | allowed | description |\n"
                           "| --- | --- | --- | --- | --- |\n");
    for (; option->name; option++) {
        bw_buffer_format(text, "| `%s` ", option->name);
        append_cells(text, option);
    }
}

const struct page_format page_markdown = {
    .name = "markdown",
    .width = 100,
    .begin = "",
    .between = "\n",
    .end = "",
    .paragraph = "\n",
    .example = "",
    .example_end = "",
    .word = word_or_example,
    .entry = entry,
    .title = title,
    .options = options,
};
