/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The words of a filter: its operators, and its numbers with units. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "probe/filter.h"

/* Longer ones before their beginnings. */
static const char *const symbols[] = {"&&", "||", "==", "!=", "!~", "<=", ">=", "~", "<",
                                      ">",  "!",  "(",  ")",  "&",  "|",  "=",  NULL};

/* What each symbol means; zeros for those that mean nothing by themselves. */
static const struct meaning {
    enum bw_filter_token_kind kind;
    enum bw_filter_operator comparison;
} meanings[] = {
    {BW_FILTER_AND, 0},
    {BW_FILTER_OR, 0},
    {BW_FILTER_OPERATOR, BW_FILTER_EQUAL},
    {BW_FILTER_OPERATOR, BW_FILTER_DIFFERENT},
    {BW_FILTER_OPERATOR, BW_FILTER_UNLIKE},
    {BW_FILTER_OPERATOR, BW_FILTER_LESS_EQUAL},
    {BW_FILTER_OPERATOR, BW_FILTER_GREATER_EQUAL},
    {BW_FILTER_OPERATOR, BW_FILTER_LIKE},
    {BW_FILTER_OPERATOR, BW_FILTER_LESS},
    {BW_FILTER_OPERATOR, BW_FILTER_GREATER},
    {BW_FILTER_NOT, 0},
    {BW_FILTER_OPEN, 0},
    {BW_FILTER_CLOSE, 0},
    {0},
    {0},
    {0},
};

const struct bw_lexer_rules bw_filter_lexer_rules = {.symbols = symbols};

struct bw_error *bw_filter_next(struct bw_lexer *lexer, bool value, struct bw_filter_token *token)
{
    struct bw_token read;
    /* A `!` ends the name of a member (a!=1), but not a value that has begun ([!a]*). */
    BW_TRY(bw_lexer_next(lexer, value ? "()&|<>=~\"" : "()&|<>=~\"!", &read));
    *token = (struct bw_filter_token){
        .text = read.text, .length = read.length, .column = read.at.column};
    if (read.kind == BW_TOKEN_WORD)
        token->kind = BW_FILTER_WORD;
    if (read.kind == BW_TOKEN_QUOTED)
        token->kind = BW_FILTER_QUOTED;
    if (read.kind != BW_TOKEN_SYMBOL)
        return NULL;
    token->kind = meanings[read.symbol].kind;
    token->comparison = meanings[read.symbol].comparison;
    return token->kind ? NULL
                       : BW_FILTER_REFUSE(token->column, "expected '%s%s', not '%s' alone",
                                          token->text, token->text, token->text);
}

static const struct bw_unit *take_unit(const char *name, struct bw_filter_value *value)
{
    const size_t length = strlen(name);
    const struct bw_unit *unit = bw_unit_find(bw_size_units, name, length);
    value->unit = !length ? BW_FILTER_NO_UNIT : unit ? BW_FILTER_SIZE_UNIT : BW_FILTER_TIME_UNIT;
    return unit ? unit : bw_unit_find(bw_time_units, name, length);
}

/* Numbers are written as in C, and may be followed by a unit. */
static bool read_number(const struct bw_filter_token *token, struct bw_filter_value *value)
{
    const char *digits = token->text + (*token->text == '-');
    char *end;
    if (!isdigit((unsigned char)*digits))
        return false;
    errno = 0;
    value->number = strtoull(digits, &end, 0);
    value->too_large = errno == ERANGE;
    const struct bw_unit *unit = take_unit(end, value);
    if (!unit)
        return false;
    value->too_large |= __builtin_mul_overflow(value->number, unit->factor, &value->number);
    value->negative = digits != token->text && (value->number || value->too_large);
    /* Numbers less than -2^63 have no form in two's complement. */
    value->too_large |= value->negative && value->number > UINT64_C(1) << 63;
    value->number = value->negative ? 0 - value->number : value->number;
    return true;
}

struct bw_filter_value bw_filter_value_of(const struct bw_filter_token *token)
{
    struct bw_filter_value value = {.kind = BW_FILTER_NUMBER, .token = *token};
    if (token->kind == BW_FILTER_WORD && read_number(token, &value))
        return value;
    return (struct bw_filter_value){.kind = BW_FILTER_TEXT, .token = *token};
}
