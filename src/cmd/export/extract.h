/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of the extract command: an extraction under way, and the functions of its stream. */
#ifndef BW_CMD_EXTRACT_H
#define BW_CMD_EXTRACT_H

#include "cmd/common/bad_ranges.h"
#include "cmd/export/export.h"
#include "cmd/common/progress.h"
#include "export/links.h"
#include "export/target.h"

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

enum { EXTRACT_LISTED = 100 /**< of what could not be restored, so much is listed */ };

/** An extraction under way. */
struct extract {
    struct cmd_export export;
    struct bw_target target;
    struct bw_target look; /**< the same folder, for looking ahead */
    struct bw_target_file file;
    int descriptor; /**< of the link or special file that was just made */
    bool began;     /**< the file whose parts are coming */
    bool failed;    /**< and could not be */
    bool lost;      /**< because of its content */
    struct extract_names names;
    pthread_mutex_t lock;                    /**< for `again` */
    struct bw_feed_item *again, **again_end; /**< names that the stream is given once more */
    struct bw_made_directories directories;  /**< and files that are protected at the end */
    struct bw_xattr_reader *xattrs;
    struct bw_buffer text; /**< the target of a link, symbolic or hard */
    struct cmd_bad_ranges bad;
    struct cmd_progress progress;
    struct bw_error *missed[EXTRACT_LISTED];
    uint64_t missed_count;
};

/** Takes what could not be extracted or restored, to be listed at the end; takes the error.
 * `context` is the struct extract. */
void extract_miss(void *context, struct bw_error *error);

/** The functions of the stream; `context` is the struct extract. */
struct bw_error *extract_next(void *context, struct bw_stream_file *file, bool *got);
struct bw_error *extract_take(void *context, const struct bw_stream_file *file,
                              const struct bw_data_part *part);
struct bw_error *extract_finish(void *context, const struct bw_stream_file *file, bool complete);

/** Gives back what was to go through the stream once more and did not. */
void extract_drop_again(struct extract *extract);

/** Restores the attributes of all directories, at the end, and protects files. */
struct bw_error *extract_finish_directories(struct extract *extract);

#endif
