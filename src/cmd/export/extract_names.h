/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files with several names: the first name gets the content, the others become links to it. If the
 * first cannot be made, or not be linked to, the next one gets the content in its place.
 */
#ifndef BW_CMD_EXTRACT_NAMES_H
#define BW_CMD_EXTRACT_NAMES_H

#include "base/map.h"
#include "export/feed.h"
#include "export/links.h"

/** Where the content of a file is. */
enum extract_content {
    EXTRACT_COMING,  /**< with another name, which was given out before */
    EXTRACT_MADE,    /**< there */
    EXTRACT_NOWHERE, /**< the name that was to get it could not be made */
    EXTRACT_LOST,    /**< it cannot be read or written under any name */
};

/** The files so far. Only extract_names_meet() may be called while others are. */
struct extract_names {
    struct bw_links links;
    struct bw_map replaced;             /**< numbers of files that are in `others` */
    struct extract_replacement *others; /**< files whose first name is no good: the name that is
                                           instead */
    size_t count, capacity;
};

void extract_names_init(struct extract_names *names);
void extract_names_free(struct extract_names *names);

/** Meets a name of whatever is no directory. `*first`: it is the one to get the content. */
struct bw_error *extract_names_meet(struct extract_names *names, const struct bw_feed_item *item,
                                    bool *first);

/** Where the content is of a file of which this is another name; appends its path if it is made. */
struct bw_error *extract_names_find(struct extract_names *names, const struct bw_feed_item *item,
                                    enum extract_content *content, struct bw_buffer *path);

/** Gives the content to this name in place of the one before. */
struct bw_error *extract_names_replace(struct extract_names *names,
                                       const struct bw_feed_item *item);

/** Says what became of the name that was to get the content. */
struct bw_error *extract_names_end(struct extract_names *names, const struct bw_feed_item *item,
                                   enum extract_content content);

#endif
