/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pages of layers as the manual page btrfs-walk-xlators(7), in the macros of man(7). There is
 * no separate list: the page holds every layer, or those that were asked for.
 */
#include <string.h>

#include "cmd/graph/page.h"

#ifndef BW_VERSION
#define BW_VERSION "unknown"
#endif

/* Characters that roff would take for something else, or that it would print as typographic ones.
 */
static const struct {
    char byte;
    const char *escaped;
} escapes[] = {{'\\', "\\e"},  {'-', "\\-"},   {'\'', "\\(aq"}, {'`', "\\(ga"},
               {'^', "\\(ha"}, {'~', "\\(ti"}, {'"', "\\(dq"}};

static void append_escaped(struct bw_buffer *text, char byte)
{
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++)
        if (escapes[i].byte == byte) {
            bw_buffer_format(text, "%s", escapes[i].escaped);
            return;
        }
    bw_buffer_append_byte(text, byte);
}

static void word(struct bw_buffer *text, const char *bytes, size_t length)
{
    /* At the beginning of a line, where any word may come to stand, it would be a request. */
    if (*bytes == '.')
        bw_buffer_format(text, "\\&");
    for (size_t i = 0; i < length; i++)
        append_escaped(text, bytes[i]);
}

/* The indentation of an example is that of its region. */
static void word_or_example(struct bw_buffer *text, const char *bytes, size_t length)
{
    const size_t indent = 4;
    bool example = length >= indent && memcmp(bytes, "    ", indent) == 0;
    word(text, bytes + (example ? indent : 0), length - (example ? indent : 0));
}

static void title(struct bw_buffer *text, const struct bw_xlator_class *type)
{
    bw_buffer_format(text, ".SS ");
    word(text, type->type, strlen(type->type));
    bw_buffer_format(text, "\n\\fI");
    page_append_words(text, &page_man, type->description, strlen(type->description), 0);
    bw_buffer_format(text, "\\fR\n");
}

static void options(struct bw_buffer *text, const struct bw_option *option)
{
    bw_buffer_format(text, ".PP\nOptions:\n");
    for (; option->name; option++) {
        struct bw_buffer facts = {0};
        page_append_facts(&facts, option);
        bw_buffer_format(text, ".TP\n.B ");
        word(text, option->name, strlen(option->name));
        bw_buffer_append_byte(text, '\n');
        page_append_words(text, &page_man, option->description, strlen(option->description), 0);
        bw_buffer_format(text, "\n.br\n");
        page_append_made(text, &page_man, &facts, 0);
        bw_buffer_append_byte(text, '\n');
    }
}

static const char begin[] =
    ".\\\" Made by btrfs-walk xlators --format man.\n"
    ".TH BTRFS\\-WALK\\-XLATORS 7 \"\" \"btrfs\\-walk " BW_VERSION "\"\n"
    ".SH NAME\n"
    "btrfs\\-walk\\-xlators \\- the layers that btrfs\\-walk reads through\n"
    ".SH DESCRIPTION\n"
    ".BR btrfs\\-walk (1)\n"
    "reads an image through a graph of layers, which are called translators\n"
    "or xlators.\n"
    "A read goes in at the top.\n"
    "Each layer answers it, or hands it on to the layers below, its subvolumes.\n"
    "The bottom layers read the images.\n"
    "Logical addresses are those of the file system, device addresses are\n"
    "offsets on one device; a graph in which they do not fit is refused.\n"
    ".PP\n"
    "The value of an option is of the type that stands behind its description.\n"
    "A size is a number of bytes, with K, M, G, T, P or E for powers of 1024;\n"
    "a time is a number with its unit, ns, us, ms, s, m or h;\n"
    "an output is a file that is appended to, or \\- for stderr.\n"
    ".SH LAYERS\n";

const struct page_format page_man = {
    .name = "man",
    .width = 72,
    .begin = begin,
    .between = "",
    .end = ".SH SEE ALSO\n.BR btrfs\\-walk (1)\n",
    .paragraph = ".PP\n",
    .example = ".RS 4\n.nf\n",
    .example_end = ".fi\n.RE\n",
    .word = word_or_example,
    .title = title,
    .options = options,
};
