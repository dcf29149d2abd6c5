/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The words and the grammar of filters, by recursive descent with one word of lookahead. What the
 * names mean is the business of filter_type.c.
 *
 * The target of a test is known only when what follows it was read. Until then, the open ends of a
 * part of the filter are chains: each end holds the number of another one.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/glob.h"
#include "probe/filter.h"

/* Where words end. A `!` ends the name of a member (a!=1), but not a value ([!a]*). */
#define VALUE_ENDS "()&|<>=~\""
#define NAME_ENDS  VALUE_ENDS "!"

enum { CHAIN_END = UINT16_MAX };

/* In the order of enum bw_filter_symbol; longer ones before their beginnings. */
static const char *const symbols[] = {"&&", "||", "==", "!=", "~", "!~", "<=", ">=", "<",
                                      ">",  "!",  "(",  ")",  "&", "|",  "=",  NULL};

const struct bw_lexer_rules bw_filter_lexer_rules = {.symbols = symbols};

/* The open ends of a part: those taken if it does not hold, and those if it does. */
struct ends {
    uint16_t chain[2];
};

struct parser {
    struct bw_filter *filter;
    struct bw_lexer lexer;
    struct bw_token token; /* the next one */
    unsigned depth;        /* of `(` and `!` */
    unsigned open;         /* of `(` alone */
    bool alone;            /* the last word was a member: an operator may follow */
};

static struct bw_error *parse_alternatives(struct parser *parser, struct ends *ends);

static bool is_symbol(const struct parser *parser, enum bw_filter_symbol symbol)
{
    return parser->token.kind == BW_TOKEN_SYMBOL && parser->token.symbol == symbol;
}

static struct bw_error *take(struct parser *parser, const char *ends)
{
    struct bw_token *token = &parser->token;
    BW_TRY(bw_lexer_next(&parser->lexer, ends, token));
    if (token->kind != BW_TOKEN_SYMBOL || token->symbol < BW_FILTER_SINGLE)
        return NULL;
    return BW_REFUSE(token->at, "expected '%s%s', not '%s' alone", token->text, token->text,
                     token->text);
}

static struct bw_error *advance(struct parser *parser)
{
    return take(parser, NAME_ENDS);
}

static struct bw_error *refuse(const struct parser *parser, const char *expected)
{
    const struct bw_token *token = &parser->token;
    if (token->kind == BW_TOKEN_END)
        return BW_REFUSE(token->at, "expected %s, not the end", expected);
    if (token->kind == BW_TOKEN_QUOTED)
        return BW_REFUSE(token->at, "expected %s, not a text in quotes", expected);
    return BW_REFUSE(token->at, "expected %s, not '%.*s'", expected, BW_FILTER_SHOWN(token));
}

/* A complete test is followed by something that cannot follow. */
static struct bw_error *refuse_next(const struct parser *parser)
{
    static const char *const expected[2][2] = {
        {"'&&', '||' or the end", "'&&', '||' or ')'"},
        {"an operator, '&&', '||' or the end", "an operator, '&&', '||' or ')'"},
    };
    return refuse(parser, expected[parser->alone][parser->open > 0]);
}

/* Open ends. */

static uint16_t *end_of(struct bw_filter *filter, uint16_t end)
{
    return &filter->tests[end / 2].next[end % 2];
}

static void lead_to(struct bw_filter *filter, uint16_t chain, uint16_t target)
{
    while (chain != CHAIN_END) {
        uint16_t *end = end_of(filter, chain);
        chain = *end;
        *end = target;
    }
}

/* The second chain is the shorter one if the filter is long. */
static uint16_t joined(struct bw_filter *filter, uint16_t left, uint16_t right)
{
    uint16_t *last = &right;
    while (*last != CHAIN_END)
        last = end_of(filter, *last);
    *last = left;
    return right;
}

/* Parts of a filter. */

/* Adds a test with two open ends. The text is too short for more tests than 16 bits can number. */
static struct bw_error *add_test(struct parser *parser, const struct bw_filter_test *test,
                                 struct ends *ends)
{
    struct bw_filter *filter = parser->filter;
    if (!BW_ARRAY_RESERVE(filter->tests, filter->count, filter->capacity))
        return bw_error_no_memory();
    uint16_t number = (uint16_t)filter->count++;
    filter->tests[number] = *test;
    for (unsigned i = 0; i < 2; i++) {
        filter->tests[number].next[i] = CHAIN_END;
        ends->chain[i] = (uint16_t)(2 * number + i);
    }
    return NULL;
}

static const struct bw_unit *take_unit(const char *name, struct bw_filter_value *value)
{
    const size_t length = strlen(name);
    const struct bw_unit *unit = bw_unit_find(bw_size_units, name, length);
    value->units = !length ? NULL : unit ? bw_size_units : bw_time_units;
    return unit ? unit : bw_unit_find(bw_time_units, name, length);
}

/* Numbers are written as in C, and may be followed by a unit. */
static bool read_number(struct bw_filter_value *value)
{
    const char *digits = value->token.text + (*value->token.text == '-');
    char *end;
    if (value->token.kind != BW_TOKEN_WORD || !isdigit((unsigned char)*digits))
        return false;
    errno = 0;
    value->number = strtoull(digits, &end, 0);
    value->too_large = errno == ERANGE;
    const struct bw_unit *unit = take_unit(end, value);
    if (!unit)
        return false;
    value->too_large |= __builtin_mul_overflow(value->number, unit->factor, &value->number);
    value->negative = digits != value->token.text && (value->number || value->too_large);
    /* Numbers less than -2^63 have no form in two's complement. */
    value->too_large |= value->negative && value->number > UINT64_C(1) << 63;
    value->number = value->negative ? 0 - value->number : value->number;
    return true;
}

/* The next word is an operator, which a value follows. */
static struct bw_error *parse_comparison(struct parser *parser, struct bw_filter_test *test)
{
    const struct bw_token *token = &parser->token;
    const char *problem = NULL;
    test->comparison = (enum bw_filter_symbol)token->symbol;
    test->at = token->at;
    BW_TRY(take(parser, VALUE_ENDS));
    if (token->kind != BW_TOKEN_WORD && token->kind != BW_TOKEN_QUOTED)
        return refuse(parser, "a value");
    test->value.token = *token;
    test->value.is_number = read_number(&test->value);
    if (test->comparison == BW_FILTER_LIKE || test->comparison == BW_FILTER_UNLIKE)
        problem = bw_glob_problem(token->text, token->length);
    return problem ? BW_REFUSE(token->at, "in the pattern: %s", problem) : advance(parser);
}

static struct bw_error *parse_test(struct parser *parser, struct ends *ends)
{
    struct bw_filter_test test = {.name = parser->token, .comparison = BW_FILTER_IS};
    if (test.name.kind != BW_TOKEN_WORD ||
        !(isalpha((unsigned char)*test.name.text) || *test.name.text == '_'))
        return refuse(parser, "a member, '!' or '('");
    BW_TRY(advance(parser));
    parser->alone = parser->token.kind != BW_TOKEN_SYMBOL ||
                    parser->token.symbol < BW_FILTER_EQUAL ||
                    parser->token.symbol > BW_FILTER_GREATER;
    if (!parser->alone)
        BW_TRY(parse_comparison(parser, &test));
    return add_test(parser, &test, ends);
}

static struct bw_error *parse_parentheses(struct parser *parser, struct ends *ends)
{
    parser->open++;
    BW_TRY(advance(parser));
    BW_TRY(parse_alternatives(parser, ends));
    if (!is_symbol(parser, BW_FILTER_CLOSE))
        return refuse_next(parser);
    parser->open--;
    parser->alone = false;
    return advance(parser);
}

static struct bw_error *parse_one(struct parser *parser, struct ends *ends)
{
    bool inverted = is_symbol(parser, BW_FILTER_NOT);
    if (!inverted && !is_symbol(parser, BW_FILTER_OPEN))
        return parse_test(parser, ends);
    if (parser->depth == BW_FILTER_DEPTH)
        return BW_REFUSE(parser->token.at, "more than %d of '(' and '!' in one another",
                         BW_FILTER_DEPTH);
    parser->depth++;
    if (inverted) {
        BW_TRY(advance(parser));
        BW_TRY(parse_one(parser, ends));
        *ends = (struct ends){{ends->chain[true], ends->chain[false]}};
    } else {
        BW_TRY(parse_parentheses(parser, ends));
    }
    parser->depth--;
    return NULL;
}

/* Parts joined by the same operator. `decided` is the result of the left part with which the right
 * one does not matter. */
static struct bw_error *
parse_list(struct parser *parser, enum bw_filter_symbol between, bool decided,
           struct bw_error *(*parse_part)(struct parser *parser, struct ends *ends),
           struct ends *ends)
{
    struct ends right = {0};
    *ends = right;
    BW_TRY(parse_part(parser, ends));
    while (is_symbol(parser, between)) {
        lead_to(parser->filter, ends->chain[!decided], (uint16_t)parser->filter->count);
        BW_TRY(advance(parser));
        BW_TRY(parse_part(parser, &right));
        ends->chain[!decided] = right.chain[!decided];
        ends->chain[decided] = joined(parser->filter, ends->chain[decided], right.chain[decided]);
    }
    return NULL;
}

static struct bw_error *parse_conditions(struct parser *parser, struct ends *ends)
{
    return parse_list(parser, BW_FILTER_AND, false, parse_one, ends);
}

static struct bw_error *parse_alternatives(struct parser *parser, struct ends *ends)
{
    return parse_list(parser, BW_FILTER_OR, true, parse_conditions, ends);
}

static struct bw_error *parse_all(struct parser *parser)
{
    struct ends ends;
    BW_TRY(advance(parser));
    if (parser->token.kind == BW_TOKEN_END)
        return bw_error_create(BW_ERROR_USAGE, "the filter is empty");
    BW_TRY(parse_alternatives(parser, &ends));
    if (parser->token.kind != BW_TOKEN_END)
        return refuse_next(parser);
    lead_to(parser->filter, ends.chain[false], BW_FILTER_NO_MATCH);
    lead_to(parser->filter, ends.chain[true], BW_FILTER_MATCH);
    return NULL;
}

struct bw_error *bw_filter_parse(struct bw_filter *filter, const char *text)
{
    struct parser parser = {.filter = filter};
    BW_TRY(bw_lexer_open(&bw_filter_lexer_rules, (struct bw_text_place){0}, text, strlen(text),
                         &parser.lexer));
    filter->words = parser.lexer.words;
    return parse_all(&parser);
}
