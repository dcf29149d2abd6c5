/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Filters: conditions on members of records, parsed, given types for each probe they are for
 * (records differ in the offset of a member and sometimes in its type), and evaluated. Whatever
 * cannot work is refused before anything is read.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uuid/uuid.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/glob.h"
#include "base/nearest.h"
#include "probe/filter.h"

/* What a test is about, for one probe. */
struct subject {
    const struct bw_member *member;
    char name[128]; /* "blockinfo.level" */
};

static const struct bw_member probe_name = {
    .name = "probe", .type = BW_TYPE_TEXT, .format = BW_FORMAT_TEXT};

static bool is_text(const struct bw_member *member)
{
    return member->type == BW_TYPE_TEXT || member->type == BW_TYPE_BYTES;
}

/* What was probably meant. */

static const char *near_name(const struct bw_record *record, const struct bw_token *name)
{
    char wanted[65];
    struct bw_nearest nearest = {.wanted = wanted};
    snprintf(wanted, sizeof wanted, "%.*s", BW_FILTER_SHOWN(name));
    for (unsigned i = 0; i < record->member_count; i++)
        bw_nearest_try(&nearest, record->members[i].name);
    bw_nearest_try(&nearest, probe_name.name);
    return nearest.best;
}

static struct bw_error *refuse_name(const struct bw_record *record, const struct bw_token *name)
{
    const char *near = near_name(record, name);
    return bw_error_create(BW_ERROR_USAGE, "%s has no member '%.*s'%s%s%s", record->name,
                           BW_FILTER_SHOWN(name), near ? "; did you mean '" : "", near ? near : "",
                           near ? "'?" : "");
}

/* Types. */

static struct bw_error *check_operator(const struct bw_filter_test *test,
                                       const struct subject *subject)
{
    bool text = is_text(subject->member);
    const char *symbol = bw_filter_lexer_rules.symbols[test->comparison];
    if (test->comparison >= BW_FILTER_LESS_EQUAL && text)
        return BW_REFUSE(test->at, "'%s' is for numbers, and %s is a text", symbol, subject->name);
    if ((test->comparison == BW_FILTER_LIKE || test->comparison == BW_FILTER_UNLIKE) && !text)
        return BW_REFUSE(test->at, "'%s' is for texts, and %s is a number", symbol, subject->name);
    return NULL;
}

static struct bw_error *check_range(const struct bw_filter_value *value,
                                    const struct subject *subject)
{
    bool with_sign = subject->member->type == BW_TYPE_I64;
    bool fits = !value->too_large &&
                (with_sign ? value->negative || value->number <= INT64_MAX : !value->negative);
    return fits ? NULL
                : BW_REFUSE(value->token.at, "%.*s does not fit %s: it goes from %s",
                            BW_FILTER_SHOWN(&value->token), subject->name,
                            with_sign ? "-9223372036854775808 to 9223372036854775807"
                                      : "0 to 18446744073709551615");
}

static struct bw_error *check_unit(const struct bw_filter_value *value,
                                   const struct subject *subject)
{
    enum bw_member_format format = subject->member->format;
    bool time = format == BW_FORMAT_DURATION || format == BW_FORMAT_TIME;
    bool size = format == BW_FORMAT_SIZE || format == BW_FORMAT_NUMBER;
    bool is_time = value->units == bw_time_units;
    if (!value->units || (is_time ? time : size))
        return NULL;
    return BW_REFUSE(value->token.at, "%.*s is a %s, and %s is none",
                     BW_FILTER_SHOWN(&value->token), is_time ? "time" : "size", subject->name);
}

static struct bw_error *check_value(const struct bw_filter_value *value,
                                    const struct subject *subject)
{
    const struct bw_token *token = &value->token;
    bool text = is_text(subject->member);
    if (value->is_number && text)
        return BW_REFUSE(token->at, "%s is a text, and %.*s is a number; in quotes it is a text",
                         subject->name, BW_FILTER_SHOWN(token));
    if (text)
        return NULL;
    if (!value->is_number)
        return BW_REFUSE(token->at, "%s is a number, and '%.*s' is %s", subject->name,
                         BW_FILTER_SHOWN(token),
                         token->kind == BW_TOKEN_QUOTED ? "a text" : "none");
    BW_TRY(check_unit(value, subject));
    return check_range(value, subject);
}

/* Members. */

static bool is_probe_name(const struct bw_token *name)
{
    return name->length == strlen(probe_name.name) &&
           memcmp(name->text, probe_name.name, name->length) == 0;
}

static void note_member(struct bw_filter *filter, const struct bw_probe *probe, int index)
{
    struct bw_attributes attributes = probe->record->attributes;
    enum bw_stability own = probe->record->members[index].stability;
    attributes =
        bw_attributes_least(attributes, (struct bw_attributes){own, own, attributes.depends});
    filter->attributes = bw_attributes_least(filter->attributes, attributes);
    filter->members[probe->number] |= UINT64_C(1) << index;
}

/* Finds what a test is about. */
static struct bw_error *find_member(struct bw_filter *filter, const struct bw_token *name,
                                    const struct bw_probe *probe, uint8_t *member)
{
    const struct bw_record *record = probe->record;
    if (is_probe_name(name)) {
        *member = BW_FILTER_PROBE_NAME;
        filter->attributes = bw_attributes_least(filter->attributes, probe->attributes);
        return NULL;
    }
    int index = bw_record_member(record, name->text, name->length);
    if (index < 0)
        return refuse_name(record, name);
    if (!(bw_probe_members(probe) >> index & 1))
        return bw_error_create(BW_ERROR_USAGE, "%s.%s has no translation from %s (probe %s)",
                               record->name, record->members[index].name, bw_probe_input(probe),
                               probe->name);
    *member = (uint8_t)index;
    note_member(filter, probe, index);
    return NULL;
}

static struct bw_error *type_test(struct bw_filter *filter, struct bw_filter_test *test,
                                  const struct bw_probe *probe)
{
    struct subject subject = {.member = &probe_name, .name = "probe"};
    uint8_t *member = &test->member[probe->number];
    BW_TRY(find_member(filter, &test->name, probe, member));
    if (*member != BW_FILTER_PROBE_NAME) {
        subject.member = &probe->record->members[*member];
        snprintf(subject.name, sizeof subject.name, "%s.%s", probe->record->name,
                 subject.member->name);
    }
    if (test->comparison == BW_FILTER_IS)
        return NULL;
    BW_TRY(check_operator(test, &subject));
    return check_value(&test->value, &subject);
}

/* Finds the members of the tests in the records of the probes, and checks that everything fits. */
static struct bw_error *filter_type(struct bw_filter *filter, const bool selected[BW_PROBES_MAX])
{
    unsigned count;
    const struct bw_probe *probes = bw_probe_table(&count);
    filter->attributes =
        (struct bw_attributes){BW_STABILITY_STANDARD, BW_STABILITY_STANDARD, BW_CLASS_COMMON};
    for (size_t i = 0; i < filter->count; i++)
        for (unsigned number = 0; number < count; number++)
            if (selected[number])
                BW_TRY(type_test(filter, &filter->tests[i], &probes[number]));
    memcpy(filter->typed, selected, sizeof filter->typed);
    return NULL;
}

/*
 * The words and the grammar of filters, by recursive descent with one word of lookahead. What the
 * names mean is decided above.
 *
 * The target of a test is known only when what follows it was read. Until then, the open ends of a
 * part of the filter are chains: each end holds the number of another one.
 */

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

static struct bw_error *accept(struct parser *parser, const char *ends)
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
    return accept(parser, NAME_ENDS);
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
    BW_TRY(accept(parser, VALUE_ENDS));
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

/* Makes the tests of a filter from its text. */
static struct bw_error *filter_parse(struct bw_filter *filter, const char *text)
{
    struct parser parser = {.filter = filter};
    BW_TRY(bw_lexer_open(&bw_filter_lexer_rules, (struct bw_text_place){0}, text, strlen(text),
                         &parser.lexer));
    filter->words = parser.lexer.words;
    return parse_all(&parser);
}

/* Creating a filter, and evaluating it for each event of a probe that is watched with one. */

static struct bw_error *fill(struct bw_filter *filter, const char *text,
                             const bool selected[BW_PROBES_MAX])
{
    if (strnlen(text, BW_FILTER_LENGTH + 1) > BW_FILTER_LENGTH)
        return bw_error_create(BW_ERROR_USAGE, "the filter is longer than %d bytes",
                               BW_FILTER_LENGTH);
    BW_TRY(filter_parse(filter, text));
    return filter_type(filter, selected);
}

struct bw_error *bw_filter_create(const char *text, const bool selected[BW_PROBES_MAX],
                                  struct bw_filter **filter)
{
    *filter = calloc(1, sizeof **filter);
    if (!*filter)
        return bw_error_no_memory();
    struct bw_error *error = fill(*filter, text, selected);
    if (error)
        bw_filter_destroy(BW_TAKE(*filter));
    return error;
}

void bw_filter_destroy(struct bw_filter *filter)
{
    if (!filter)
        return;
    free(filter->words);
    free(filter->tests);
    free(filter);
}

struct bw_attributes bw_filter_attributes(const struct bw_filter *filter)
{
    return filter->attributes;
}

/* Evaluating. */

static bool number_holds(const struct bw_filter_test *test, uint64_t number, bool with_sign)
{
    /* Bits: less than the value, equal, greater. */
    static const uint8_t results[] = {
        [BW_FILTER_EQUAL] = 2,      [BW_FILTER_DIFFERENT] = 5,     [BW_FILTER_LESS] = 1,
        [BW_FILTER_LESS_EQUAL] = 3, [BW_FILTER_GREATER_EQUAL] = 6, [BW_FILTER_GREATER] = 4,
    };
    uint64_t value = test->value.number;
    if (test->comparison == BW_FILTER_IS)
        return number != 0;
    /* Inverting the sign bit gives signed numbers the order of unsigned ones. */
    if (with_sign) {
        number ^= UINT64_C(1) << 63;
        value ^= UINT64_C(1) << 63;
    }
    return results[test->comparison] >> (1 + (number > value) - (number < value)) & 1;
}

/* Negations: they hold for a member without a value, which equals nothing. */
static bool is_negation(const struct bw_filter_test *test)
{
    return test->comparison == BW_FILTER_DIFFERENT || test->comparison == BW_FILTER_UNLIKE;
}

static bool text_holds(const struct bw_filter_test *test, const char *text, size_t length)
{
    const struct bw_token *value = &test->value.token;
    if (!text)
        return is_negation(test);
    if (test->comparison == BW_FILTER_IS)
        return length > 0;
    bool same = test->comparison == BW_FILTER_LIKE || test->comparison == BW_FILTER_UNLIKE
                    ? bw_glob_matches(value->text, value->length, text, length)
                    : length == value->length && memcmp(text, value->text, length) == 0;
    return same != is_negation(test);
}

static bool bytes_hold(const struct bw_filter_test *test, const struct bw_bytes *bytes,
                       enum bw_member_format format)
{
    char uuid[UUID_STR_LEN];
    if (format != BW_FORMAT_UUID || bytes->length != sizeof(uuid_t) || !bytes->data)
        return text_holds(test, bytes->data, bytes->length);
    uuid_unparse_lower((const unsigned char *)bytes->data, uuid);
    return text_holds(test, uuid, sizeof uuid - 1);
}

static bool member_holds(const struct bw_filter_test *test, const struct bw_member *member,
                         const void *at)
{
    switch (member->type) {
    case BW_TYPE_U64:
        return number_holds(test, *(const uint64_t *)at, false);
    case BW_TYPE_I64:
        return number_holds(test, (uint64_t) * (const int64_t *)at, true);
    case BW_TYPE_BYTES:
        return bytes_hold(test, at, member->format);
    case BW_TYPE_TEXT:
    case BW_TYPE_STRIPES: /* of no probe */
    case BW_TYPE_NAMES:
        break;
    }
    const char *text = *(const char *const *)at;
    return text_holds(test, text, text ? strlen(text) : 0);
}

static bool test_holds(const struct bw_filter_test *test, const struct bw_probe_event *event)
{
    uint8_t index = test->member[event->probe->number];
    if (index == BW_FILTER_PROBE_NAME)
        return text_holds(test, event->probe->name, strlen(event->probe->name));
    if (!(event->members >> index & 1))
        return is_negation(test);
    const struct bw_member *member = &event->probe->record->members[index];
    return member_holds(test, member, (const char *)event->record + member->offset);
}

bool bw_filter_matches(const struct bw_filter *filter, const struct bw_probe_event *event)
{
    if (!filter->typed[event->probe->number])
        return false;
    unsigned next = 0;
    while (next < filter->count)
        next = filter->tests[next].next[test_holds(&filter->tests[next], event)];
    return next == BW_FILTER_MATCH;
}

/* Before a consumer. */

static void take(struct bw_probe_consumer *consumer, const struct bw_probe_event *event)
{
    struct bw_filter *filter = (struct bw_filter *)consumer; /* its first member */
    if (bw_filter_matches(filter, event))
        filter->inner->take(filter->inner, event);
}

struct bw_probe_consumer *bw_filter_before(struct bw_filter *filter,
                                           struct bw_probe_consumer *inner)
{
    filter->inner = inner;
    filter->consumer.take = take;
    memcpy(filter->consumer.selected, inner->selected, sizeof inner->selected);
    for (unsigned i = 0; i < BW_PROBES_MAX; i++)
        filter->consumer.lazy[i] = inner->lazy[i] | filter->members[i];
    return &filter->consumer;
}
