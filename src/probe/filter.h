/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Filters: which events of the probes a consumer is to see. A filter is read and typed once,
 * against every probe it is for; after that, asking it allocates nothing, and any number of threads
 * may.
 *
 *     filter:  filter || filter      filter && filter      ! filter      ( filter )
 *              MEMBER OPERATOR VALUE
 *              MEMBER                a number that is not 0, a text that is there and not empty
 *
 * `!` binds closest (to a comparison as a whole: `!level == 1` is `!(level == 1)`), then `&&`, then
 * `||`.
 *
 * MEMBER is a member of the records of all probes that the filter is for, or `probe`, the probe's
 * name.
 *
 * Numbers: == != < <= > >= and a value in decimal, 0x hexadecimal or 0 octal. Behind it may stand
 * K, M, G, T, P or E (powers of 1024) for sizes and plain numbers, or ns, us, ms or s for times.
 *
 * Texts: == != and ~ !~ for patterns as in base/glob.h. A value is a word, in which all bytes stand
 * for themselves, or stands in double quotes, with \" \\ \n \r \t and \xHH. What looks like a
 * number needs quotes, and so do white space and ( ) & | < > = ~ ". An id of sixteen bytes is
 * compared as it is written in text: with hyphens and small letters.
 *
 * What is not there (a text that is none, a member that could not be filled this time) equals
 * nothing: `!=` and
 * `!~` hold for it, all else does not.
 */
#ifndef BW_PROBE_FILTER_H
#define BW_PROBE_FILTER_H

#include "btrfs-walk/probe.h"

/** Limits of a filter. */
enum {
    BW_FILTER_LENGTH = 4096, /**< bytes of its text */
    BW_FILTER_DEPTH = 64,    /**< `(` and `!` in one another */
};

struct bw_filter;

/**
 * Reads a filter and types it against each of the probes selected. On success the caller owns
 * `*filter`, which does not need `text` any more. BW_ERROR_USAGE, with a column counted in bytes
 * from 1 on, if it is none, or does not fit one of the probes; BW_ERROR_NO_MEMORY.
 */
struct bw_error *bw_filter_create(const char *text, const bool selected[BW_PROBES_MAX],
                                  struct bw_filter **filter);

/** Frees it; NULL is allowed. */
void bw_filter_destroy(struct bw_filter *filter);

/** The members it reads of a probe's record, by number of the probe; for `lazy` of a consumer. */
uint64_t bw_filter_members(const struct bw_filter *filter, unsigned probe);

/** The least of all it names. */
struct bw_attributes bw_filter_attributes(const struct bw_filter *filter);

/** Whether an event matches; false if the filter was not made for its probe. */
bool bw_filter_matches(const struct bw_filter *filter, const struct bw_probe_event *event);

/** A consumer that hands on what matches. */
struct bw_filtered {
    struct bw_probe_consumer consumer; /**< the one to add to the probes, in place of the inner one
                                        */
    const struct bw_filter *filter;
    struct bw_probe_consumer *inner; /**< takes the events that match */
};

/** Puts a filter in front of a consumer, whose selection and lazy members are set; all three must
 * outlive the probes. The filter was made for that selection. */
void bw_filtered_init(struct bw_filtered *filtered, const struct bw_filter *filter,
                      struct bw_probe_consumer *inner);

#endif
