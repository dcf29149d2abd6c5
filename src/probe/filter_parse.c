/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The grammar of filters, by recursive descent with one word of lookahead. What the names mean is
 * the business of filter_type.c.
 *
 * The target of a test is known only when what follows it was read. Until then, the open ends of a
 * part of the filter are chains: each end holds the number of another one.
 */
#include <ctype.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/glob.h"
#include "probe/filter.h"

enum { CHAIN_END = UINT16_MAX };

/* The open ends of a part: those taken if it does not hold, and those if it does. */
struct ends {
    uint16_t chain[2];
};

struct parser {
    struct bw_filter *filter;
    struct bw_lexer lexer;
    struct bw_filter_token token; /* the next one */
    unsigned depth;               /* of `(` and `!` */
    unsigned open;                /* of `(` alone */
    bool alone;                   /* the last word was a member: an operator may follow */
};

static struct bw_error *parse_alternatives(struct parser *parser, struct ends *ends);

static struct bw_error *advance(struct parser *parser)
{
    return bw_filter_next(&parser->lexer, false, &parser->token);
}

static struct bw_error *refuse(const struct parser *parser, const char *expected)
{
    const struct bw_filter_token *token = &parser->token;
    if (token->kind == BW_FILTER_END)
        return BW_FILTER_REFUSE(token->column, "expected %s, not the end", expected);
    if (token->kind == BW_FILTER_QUOTED)
        return BW_FILTER_REFUSE(token->column, "expected %s, not a text in quotes", expected);
    return BW_FILTER_REFUSE(token->column, "expected %s, not '%.*s'", expected,
                            BW_FILTER_SHOWN(token));
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

static struct bw_error *check_pattern(const struct bw_filter_test *test)
{
    const struct bw_filter_token *token = &test->value.token;
    bool is_pattern = test->comparison == BW_FILTER_LIKE || test->comparison == BW_FILTER_UNLIKE;
    const char *problem = is_pattern ? bw_glob_problem(token->text, token->length) : NULL;
    return problem ? BW_FILTER_REFUSE(token->column, "in the pattern: %s", problem) : NULL;
}

/* The next word is an operator, which a value follows. */
static struct bw_error *parse_comparison(struct parser *parser, struct bw_filter_test *test)
{
    test->comparison = parser->token.comparison;
    test->column = parser->token.column;
    BW_TRY(bw_filter_next(&parser->lexer, true, &parser->token));
    if (parser->token.kind != BW_FILTER_WORD && parser->token.kind != BW_FILTER_QUOTED)
        return refuse(parser, "a value");
    test->value = bw_filter_value_of(&parser->token);
    BW_TRY(check_pattern(test));
    return advance(parser);
}

static struct bw_error *parse_test(struct parser *parser, struct ends *ends)
{
    struct bw_filter_test test = {.name = parser->token};
    if (test.name.kind != BW_FILTER_WORD ||
        !(isalpha((unsigned char)*test.name.text) || *test.name.text == '_'))
        return refuse(parser, "a member, '!' or '('");
    BW_TRY(advance(parser));
    parser->alone = parser->token.kind != BW_FILTER_OPERATOR;
    if (!parser->alone)
        BW_TRY(parse_comparison(parser, &test));
    return add_test(parser, &test, ends);
}

static struct bw_error *parse_parentheses(struct parser *parser, struct ends *ends)
{
    parser->open++;
    BW_TRY(advance(parser));
    BW_TRY(parse_alternatives(parser, ends));
    if (parser->token.kind != BW_FILTER_CLOSE)
        return refuse_next(parser);
    parser->open--;
    parser->alone = false;
    return advance(parser);
}

static struct bw_error *parse_one(struct parser *parser, struct ends *ends)
{
    bool inverted = parser->token.kind == BW_FILTER_NOT;
    if (!inverted && parser->token.kind != BW_FILTER_OPEN)
        return parse_test(parser, ends);
    if (parser->depth == BW_FILTER_DEPTH)
        return BW_FILTER_REFUSE(parser->token.column, "more than %d of '(' and '!' in one another",
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
parse_list(struct parser *parser, enum bw_filter_token_kind between, bool decided,
           struct bw_error *(*parse_part)(struct parser *parser, struct ends *ends),
           struct ends *ends)
{
    BW_TRY(parse_part(parser, ends));
    while (parser->token.kind == between) {
        struct ends right;
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
    if (parser->token.kind == BW_FILTER_END)
        return bw_error_create(BW_ERROR_USAGE, "the filter is empty");
    BW_TRY(parse_alternatives(parser, &ends));
    if (parser->token.kind != BW_FILTER_END)
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
