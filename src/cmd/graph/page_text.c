/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page of a layer as a terminal shows it: `btrfs-walk xlators TYPE`. */
#include <string.h>

#include "cmd/graph/page.h"

static void word(struct bw_buffer *text, const char *bytes, size_t length)
{
    bw_buffer_append(text, bytes, length);
}

static void entry(struct bw_buffer *text, const struct bw_xlator_class *type, size_t columns)
{
    bw_buffer_format(text, "%-*s  %s\n", (int)columns, type->type, type->description);
}

static void title(struct bw_buffer *text, const struct bw_xlator_class *type)
{
    bw_buffer_format(text, "%s: %s\n", type->type, type->description);
}

static size_t longest_name(const struct bw_option *options)
{
    size_t longest = 0;
    for (; options->name; options++)
        if (strlen(options->name) > longest)
            longest = strlen(options->name);
    return longest;
}

static void options(struct bw_buffer *text, const struct bw_option *option)
{
    const size_t columns = longest_name(option), indent = columns + 4;
    bw_buffer_format(text, "\nOptions:\n");
    for (; option->name; option++) {
        struct bw_buffer facts = {0};
        page_append_facts(&facts, option);
        bw_buffer_format(text, "  %-*s  ", (int)columns, option->name);
        page_append_words(text, &page_text, option->description, strlen(option->description),
                          indent);
        bw_buffer_format(text, "\n%*s", (int)indent, "");
        page_append_made(text, &page_text, &facts, indent);
        bw_buffer_append_byte(text, '\n');
    }
}

const struct page_format page_text = {
    .name = "text",
    .width = 80,
    .begin = "",
    .between = "\n\n",
    .end = "",
    .paragraph = "\n",
    .example = "",
    .example_end = "",
    .word = word,
    .entry = entry,
    .title = title,
    .options = options,
};
