/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a filter consists of. filter_lexer.c cuts the text into words, filter_parse.c makes a list
 * of tests from them, filter_type.c finds the members and checks the tests against their types,
 * filter.c evaluates them for each event. btrfs-walk/probe.h documents the grammar.
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

#include "base/lexer.h"
#include "btrfs-walk/probe.h"

enum bw_filter_operator {
    BW_FILTER_IS, /**< a member without an operator */
    BW_FILTER_EQUAL,
    BW_FILTER_DIFFERENT,
    BW_FILTER_LIKE,
    BW_FILTER_UNLIKE,
    BW_FILTER_LESS, /**< this one and those below are for numbers alone */
    BW_FILTER_LESS_EQUAL,
    BW_FILTER_GREATER,
    BW_FILTER_GREATER_EQUAL,
};

enum bw_filter_token_kind {
    BW_FILTER_END,
    BW_FILTER_WORD,
    BW_FILTER_QUOTED,
    BW_FILTER_OPERATOR,
    BW_FILTER_NOT,
    BW_FILTER_AND,
    BW_FILTER_OR,
    BW_FILTER_OPEN,
    BW_FILTER_CLOSE,
};

/** A word of the text. */
struct bw_filter_token {
    enum bw_filter_token_kind kind;
    enum bw_filter_operator comparison; /**< of BW_FILTER_OPERATOR */
    const char *text;                   /**< without quotes and escapes */
    size_t length;
    unsigned column;
};

/** How base/lexer.h cuts a filter into words. */
extern const struct bw_lexer_rules bw_filter_lexer_rules;

/** Reads the next word; at the end, again and again BW_FILTER_END. `value`: it is the value of a
 * comparison, which may hold a `!`. */
struct bw_error *bw_filter_next(struct bw_lexer *lexer, bool value, struct bw_filter_token *token);

/** What the value of a comparison is. */
enum bw_filter_value_kind { BW_FILTER_NOTHING, BW_FILTER_NUMBER, BW_FILTER_TEXT };

/** What may follow a number. */
enum bw_filter_unit { BW_FILTER_NO_UNIT, BW_FILTER_SIZE_UNIT, BW_FILTER_TIME_UNIT };

struct bw_filter_value {
    enum bw_filter_value_kind kind;
    struct bw_filter_token token;
    uint64_t number; /**< in two's complement if it is negative */
    bool negative;   /**< less than 0 */
    bool too_large;  /**< for 64 bits */
    enum bw_filter_unit unit;
};

/** Reads the value of a comparison. */
struct bw_filter_value bw_filter_value_of(const struct bw_filter_token *token);

/** Instead of a member's index: the test is about the probe's name. */
enum { BW_FILTER_PROBE_NAME = BW_RECORD_MEMBERS };

/** Where the tests end. */
enum { BW_FILTER_MATCH = UINT16_MAX, BW_FILTER_NO_MATCH = UINT16_MAX - 1 };

struct bw_filter_test {
    struct bw_filter_token name; /**< of the member */
    enum bw_filter_operator comparison;
    unsigned column; /**< of the operator */
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

/** Makes the tests of a filter from its text. */
struct bw_error *bw_filter_parse(struct bw_filter *filter, const char *text);

/** Finds the members of the tests in the records of the probes, and checks that everything fits. */
struct bw_error *bw_filter_type(struct bw_filter *filter, const bool selected[BW_PROBES_MAX]);

/** Whether an event matches; false if the filter was not made for its probe. */
bool bw_filter_matches(const struct bw_filter *filter, const struct bw_probe_event *event);

/** A refusal with a place. */
#define BW_FILTER_REFUSE(column, format, ...) \
    bw_error_create(BW_ERROR_USAGE, "column %u: " format, (column), ##__VA_ARGS__)

/** A word for a message: its length, limited so that the message stays readable, and its text. */
#define BW_FILTER_SHOWN(token) (int)((token)->length < 64 ? (token)->length : 64), (token)->text

#endif
