/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Formats the page of a layer as text for a terminal, with wrapped lines. */
#include "cli/graph/page.h"

#include <string.h>

#include "base/cleanup.h"

enum { WIDTH = 80 };

static const char example_indent[] = "    ";

void page_append_words(struct bw_buffer *text, const char *words, size_t length, size_t indent,
                       size_t width)
{
    static const char spaces[] = " \n\t";
    const char *end = words + length;
    size_t column = indent;
    for (size_t word;; words += word, column += word) {
        while (words < end && strchr(spaces, *words))
            words++;
        for (word = 0; words + word < end && !strchr(spaces, words[word]);)
            word++;
        if (!word)
            return;
        if (column > indent && column + 1 + word > width) {
            bw_buffer_format(text, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            bw_buffer_append_byte(text, ' ');
            column++;
        }
        bw_buffer_append(text, words, word);
    }
}

/* Wraps `words`, appends a newline, and frees them. */
static void append_made(struct bw_buffer *text, struct bw_buffer *words, size_t indent)
{
    page_append_words(text, words->data ? words->data : "", words->length, indent, WIDTH);
    bw_buffer_append_byte(text, '\n');
    text->failed |= words->failed;
    bw_buffer_free(words);
}

static bool is_example(const char *line)
{
    return strncmp(line, example_indent, strlen(example_indent)) == 0;
}

static const char *space_above(enum bw_address_space space)
{
    switch (space) {
    case BW_ADDRESS_DEVICE:
        return "device addresses";
    case BW_ADDRESS_LOGICAL:
        return "logical addresses";
    default:
        return "any addresses";
    }
}

void page_append_place(struct bw_buffer *text, const struct bw_xlator_class *type)
{
    unsigned least = type->minimum_children, most = type->maximum_children;
    const char *below = space_above(type->below);
    if (type->below == BW_ADDRESS_NONE)
        below = "nothing";
    else if (type->below == BW_ADDRESS_ANY)
        below = "the same";
    bw_buffer_format(text, "Above it: %s. Below it: %s. Subvolumes (the layers it reads from): ",
                     space_above(type->above), below);
    if (!most)
        bw_buffer_format(text, "none.");
    else if (most == 1)
        bw_buffer_format(text, "%s.", least ? "one" : "one or none");
    else if (most == UINT32_MAX)
        bw_buffer_format(text, "%u or more.", least);
    else if (least == most)
        bw_buffer_format(text, "%u.", least);
    else
        bw_buffer_format(text, "%u to %u.", least, most);
}

void page_append(struct bw_buffer *text, const struct bw_xlator_class *type)
{
    struct bw_buffer place = {0};
    bw_buffer_format(text, "%s: %s\n", type->type, type->description);

    /* The paragraphs are wrapped. The lines of an example remain unchanged. */
    const char *prose = type->page ? type->page : "";
    while (prose += strspn(prose, "\n"), *prose) {
        bw_buffer_append_byte(text, '\n');
        if (!is_example(prose)) {
            /* The paragraph ends at an empty line, at an example, or at the end of the text. */
            const char *end = prose + strcspn(prose, "\n");
            while (*end && end[1] && end[1] != '\n' && !is_example(end + 1))
                end += 1 + strcspn(end + 1, "\n");
            page_append_words(text, prose, (size_t)(end - prose), 0, WIDTH);
            bw_buffer_append_byte(text, '\n');
            prose = end;
            continue;
        }
        while (is_example(prose)) {
            const size_t length = strcspn(prose, "\n");
            bw_buffer_format(text, "%.*s\n", (int)length, prose);
            prose += length + (prose[length] == '\n');
        }
    }

    page_append_place(&place, type);
    bw_buffer_append_byte(text, '\n');
    append_made(text, &place, 0);
    if (!type->options || !type->options->name) {
        bw_buffer_format(text, "\nIt has no options.\n");
        return;
    }
    size_t columns = 0;
    for (const struct bw_option *option = type->options; option->name; option++)
        if (strlen(option->name) > columns)
            columns = strlen(option->name);
    const size_t indent = columns + 4;
    bw_buffer_format(text, "\nOptions:\n");
    for (const struct bw_option *option = type->options; option->name; option++) {
        /* "size: 0 to 1T; default 6M", or "path; must be given". */
        struct bw_buffer facts = {0};
        const char *value = option->default_value;
        BW_AUTO_FREE char *range = bw_option_range(option);
        bw_buffer_format(&facts, "%s", bw_option_type_name(option->type));
        if (range && *range)
            bw_buffer_format(&facts, ": %s", range);
        if (value)
            bw_buffer_format(&facts, "; default %s", *value ? value : "empty");
        else
            bw_buffer_format(&facts, "; must be given");
        facts.failed |= !range;
        bw_buffer_format(text, "  %-*s  ", (int)columns, option->name);
        page_append_words(text, option->description, strlen(option->description), indent, WIDTH);
        bw_buffer_format(text, "\n%*s", (int)indent, "");
        append_made(text, &facts, indent);
    }
}

static struct bw_error *add_type(void *names, const char *name)
{
    return bw_const_strings_push(names, name);
}

struct bw_error *page_types(struct bw_registry *registry, struct bw_const_strings *names)
{
    return bw_registry_each(registry, add_type, names);
}
