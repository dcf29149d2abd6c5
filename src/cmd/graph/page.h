/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The page of a layer, made from its class: description, prose, place in the graph and options. A
 * format says how its parts are written; what they say is the same in all of them. Used by
 * `btrfs-walk xlators`, from whose output the manual is made.
 */
#ifndef BW_CMD_PAGE_H
#define BW_CMD_PAGE_H

#include "base/buffer.h"
#include "btrfs-walk/xlator.h"

struct page_format {
    const char *name;      /**< as --format takes it */
    size_t width;          /**< columns of a line of prose */
    const char *begin;     /**< before the first page */
    const char *between;   /**< between two pages */
    const char *end;       /**< behind the last page */
    const char *paragraph; /**< before each paragraph and each group of example lines */
    const char *example;   /**< before the first line of an example */
    const char *example_end;
    /** Appends a word so that it is read as it is. It holds no space unless it is a line of an
     * example. */
    void (*word)(struct bw_buffer *text, const char *word, size_t length);
    /** One line of the list of types, the name in `columns` columns; NULL: the list is made of the
     * pages. */
    void (*entry)(struct bw_buffer *text, const struct bw_xlator_class *type, size_t columns);
    void (*title)(struct bw_buffer *text, const struct bw_xlator_class *type);
    /** At least one option; the table ends with a NULL name. */
    void (*options)(struct bw_buffer *text, const struct bw_option *options);
};

extern const struct page_format page_text, page_markdown, page_man;

/** The format of that name; NULL if there is none. */
const struct page_format *page_find_format(const char *name);

/** Appends the page of a layer. */
void page_append(struct bw_buffer *text, const struct page_format *format,
                 const struct bw_xlator_class *type);

/** Appends words, in lines of the format's width, all but the first behind `indent` spaces. No
 * newline at the end. */
void page_append_words(struct bw_buffer *text, const struct page_format *format, const char *words,
                       size_t length, size_t indent);

/** The same with words that were made for it, which it frees. */
void page_append_made(struct bw_buffer *text, const struct page_format *format,
                      struct bw_buffer *words, size_t indent);

/** Appends "size: 0 to 1T; default 6M" or "path; must be given", not yet made safe for any format.
 */
void page_append_facts(struct bw_buffer *text, const struct bw_option *option);

/** Appends the default in words. */
void page_append_default(struct bw_buffer *text, const struct bw_option *option);

#endif
