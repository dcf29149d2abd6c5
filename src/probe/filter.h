/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Filters: filter.c parses the text into a list of tests, looks up the members and types of each
 * test, and evaluates the tests for each event. btrfs-walk/probe.h documents the grammar.
 *
 * The tests are in the order of the text. Each has the number of the test to go on with if it
 * holds, and if it does not: `a && (b || !c)` is
 *
 *     0  a   holds: 1         else: NO_MATCH
 *     1  b   holds: MATCH     else: 2
 *     2  c   holds: NO_MATCH  else: MATCH
 *
 * so that evaluation needs neither a stack nor recursion and always ends: it only goes forward.
 */
#ifndef BW_PROBE_FILTER_H
#define BW_PROBE_FILTER_H

#include "base/human.h"
#include "base/lexer.h"
#include "btrfs-walk/probe.h"

/** The symbols of a filter, by their index in the rules of its lexer. */
enum bw_filter_symbol {
    BW_FILTER_AND,
    BW_FILTER_OR,
    BW_FILTER_EQUAL,
    BW_FILTER_DIFFERENT,
    BW_FILTER_LIKE, /**< this one and the next are for texts alone */
    BW_FILTER_UNLIKE,
    BW_FILTER_LESS_EQUAL, /**< this one and the next three are for numbers alone */
    BW_FILTER_GREATER_EQUAL,
    BW_FILTER_LESS,
    BW_FILTER_GREATER,
    BW_FILTER_NOT,
    BW_FILTER_OPEN,
    BW_FILTER_CLOSE,
    BW_FILTER_SINGLE,         /**< from here on: & | =, which mean nothing by themselves */
    BW_FILTER_IS = UINT8_MAX, /**< no symbol: a member without an operator */
};

/** How base/lexer.h cuts a filter into words. */
extern const struct bw_lexer_rules bw_filter_lexer_rules;

/** The value of a comparison. */
struct bw_filter_value {
    struct bw_token token;
    bool is_number;
    bool negative;               /**< less than 0 */
    bool too_large;              /**< for 64 bits */
    uint64_t number;             /**< in two's complement if it is negative */
    const struct bw_unit *units; /**< bw_size_units or bw_time_units; NULL: it has no unit */
};

/** Instead of a member's index: the test is about the probe's name. */
enum { BW_FILTER_PROBE_NAME = BW_RECORD_MEMBERS };

/** Where the tests end. */
enum { BW_FILTER_MATCH = UINT16_MAX, BW_FILTER_NO_MATCH = UINT16_MAX - 1 };

struct bw_filter_test {
    struct bw_token name; /**< of the member */
    enum bw_filter_symbol comparison;
    struct bw_text_place at; /**< of the operator */
    struct bw_filter_value value;
    uint16_t next[2];              /**< by whether it holds */
    uint8_t member[BW_PROBES_MAX]; /**< by number of the probe: where the member is in its record */
};

struct bw_filter {
    struct bw_probe_consumer consumer; /**< to be added to probes in place of the inner one */
    struct bw_probe_consumer *inner;   /**< takes the events that match */
    char *words;                       /**< what the tokens point to */
    struct bw_filter_test *tests;
    size_t count, capacity;
    bool typed[BW_PROBES_MAX];       /**< the probes it is for */
    uint64_t members[BW_PROBES_MAX]; /**< what it reads */
    struct bw_attributes attributes;
};

/** Whether an event matches; false if the filter was not made for its probe. */
bool bw_filter_matches(const struct bw_filter *filter, const struct bw_probe_event *event);

/** A word for a message: its length, limited so that the message stays readable, and its text. */
#define BW_FILTER_SHOWN(token) (int)((token)->length < 64 ? (token)->length : 64), (token)->text

#endif
