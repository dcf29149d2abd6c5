/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The words of a filter: its operators, and its numbers with units. */
#include <string.h>

#include "base/cleanup.h"
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

static const struct unit {
    const char *name;
    enum bw_filter_unit unit;
    uint64_t factor;
} units[] = {
    {"", BW_FILTER_NO_UNIT, 1},
    {"K", BW_FILTER_SIZE_UNIT, UINT64_C(1) << 10},
    {"M", BW_FILTER_SIZE_UNIT, UINT64_C(1) << 20},
    {"G", BW_FILTER_SIZE_UNIT, UINT64_C(1) << 30},
    {"T", BW_FILTER_SIZE_UNIT, UINT64_C(1) << 40},
    {"P", BW_FILTER_SIZE_UNIT, UINT64_C(1) << 50},
    {"E", BW_FILTER_SIZE_UNIT, UINT64_C(1) << 60},
    {"ns", BW_FILTER_TIME_UNIT, 1},
    {"us", BW_FILTER_TIME_UNIT, 1000},
    {"ms", BW_FILTER_TIME_UNIT, 1000000},
    {"s", BW_FILTER_TIME_UNIT, 1000000000},
};

static const struct unit *find_unit(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i].name) == length && memcmp(units[i].name, name, length) == 0)
            return &units[i];
    return NULL;
}

/* Reads digits as C writes numbers; returns their end, which is the start if there are none. */
static const char *read_digits(const char *text, const char *end, struct bw_filter_value *value)
{
    int base = 10, digit;
    const char *next = text;
    if (end - text > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X') &&
        bw_digit_value(text[2]) >= 0) {
        base = 16;
        next += 2;
    } else if (end - text > 1 && text[0] == '0') {
        base = 8;
    }
    for (; next < end && (digit = bw_digit_value(*next)) >= 0 && digit < base; next++)
        value->too_large |= __builtin_mul_overflow(value->number, (uint64_t)base, &value->number) ||
                            __builtin_add_overflow(value->number, (uint64_t)digit, &value->number);
    return next;
}

static bool read_number(const struct bw_filter_token *token, struct bw_filter_value *value)
{
    const char *end = token->text + token->length;
    const char *digits = token->text + (*token->text == '-');
    const char *behind = read_digits(digits, end, value);
    const struct unit *unit = find_unit(behind, (size_t)(end - behind));
    if (behind == digits || !unit)
        return false;
    value->unit = unit->unit;
    value->too_large |= __builtin_mul_overflow(value->number, unit->factor, &value->number);
    value->negative = digits != token->text && (value->number || value->too_large);
    /* What is less than -2^63 has no form in two's complement. */
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
