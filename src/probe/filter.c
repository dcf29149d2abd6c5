/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Filters: conditions on members of records. A filter is parsed, bound to the members of each
 * selected probe's record (records differ in offsets and sometimes in types), and evaluated. All
 * errors are found before anything is read. btrfs-walk/probe.h documents the grammar.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/condition.h"
#include "base/glob.h"
#include "base/human.h"
#include "base/lexer.h"
#include "base/nearest.h"
#include "btrfs-walk/probe.h"
#include "btrfs-walk/subvolume.h"

/* The symbols of a filter: indices in the rules of its lexer. */
enum symbol {
    AND,
    OR,
    EQUAL,
    DIFFERENT,
    LIKE, /* this and the next: only for texts */
    UNLIKE,
    LESS_EQUAL, /* this and the next three: only for numbers */
    GREATER_EQUAL,
    LESS,
    GREATER,
    NOT,
    OPEN,
    CLOSE,
    SINGLE,         /* from here on, errors: & | = */
    IS = UINT8_MAX, /* not a symbol: a member without an operator */
};

/* In the order of enum symbol; a symbol comes before its own beginning. */
static const char *const symbols[] = {"&&", "||", "==", "!=", "~", "!~", "<=", ">=", "<",
                                      ">",  "!",  "(",  ")",  "&", "|",  "=",  NULL};

static const struct bw_lexer_rules lexer_rules = {.symbols = symbols};

/* The right side of a comparison. */
struct value {
    struct bw_token token;
    bool is_number;
    bool negative;               /* less than 0 */
    bool too_large;              /* does not fit in 64 bits */
    uint64_t number;             /* two's complement if it is negative */
    const struct bw_unit *units; /* bw_size_units or bw_time_units; NULL: no unit */
};

/* Replaces the index of a member if the test is about the probe's name. */
enum { PROBE_NAME = BW_RECORD_MEMBERS };

struct test {
    struct bw_token name; /* of the member */
    enum symbol comparison;
    struct bw_text_place at; /* of the operator */
    struct value value;
    uint8_t member[BW_PROBES_MAX]; /* by number of the probe: index of the member in its record */
};

struct bw_filter {
    struct bw_probe_consumer consumer; /* added to the probe set instead of `inner` */
    struct bw_probe_consumer *inner;   /* receives the matching events */
    char *words;                       /* text of the tokens */
    struct bw_condition condition;     /* combination of the tests */
    struct test *tests;
    size_t count, capacity;
    bool typed[BW_PROBES_MAX];       /* the selected probes */
    uint64_t members[BW_PROBES_MAX]; /* members that it reads */
    struct bw_attributes attributes;
};

/* Arguments to print a word in a message: its length, limited for readability, and its text. */
#define SHOWN(token) (int)((token)->length < 64 ? (token)->length : 64), (token)->text

/* The left side of a test, for one probe. */
struct operand {
    const struct bw_member *member;
    char name[128]; /* "blockinfo.level" */
};

static const struct bw_member probe_name = {
    .name = "probe", .type = BW_TYPE_TEXT, .format = BW_FORMAT_TEXT};

static bool is_text(const struct bw_member *member)
{
    return member->type == BW_TYPE_TEXT || member->type == BW_TYPE_BYTES;
}

/* Suggestions for misspelled names. */

static const char *near_name(const struct bw_record *record, const struct bw_token *name)
{
    char wanted[65];
    struct bw_nearest nearest = {.wanted = wanted};
    snprintf(wanted, sizeof wanted, "%.*s", SHOWN(name));
    for (unsigned i = 0; i < record->member_count; i++)
        bw_nearest_try(&nearest, record->members[i].name);
    bw_nearest_try(&nearest, probe_name.name);
    return nearest.best;
}

static struct bw_error *refuse_name(const struct bw_record *record, const struct bw_token *name)
{
    const char *near = near_name(record, name);
    return bw_error_create(BW_ERROR_USAGE, "%s has no member '%.*s'%s%s%s", record->name,
                           SHOWN(name), near ? "; did you mean '" : "", near ? near : "",
                           near ? "'?" : "");
}

/* Types. */

static struct bw_error *check_operator(const struct test *test, const struct operand *operand)
{
    bool text = is_text(operand->member);
    const char *symbol = lexer_rules.symbols[test->comparison];
    if (test->comparison >= LESS_EQUAL && text)
        return BW_REFUSE(test->at, "'%s' is for numbers, but %s is a text", symbol, operand->name);
    if ((test->comparison == LIKE || test->comparison == UNLIKE) && !text)
        return BW_REFUSE(test->at, "'%s' is for texts, but %s is a number", symbol, operand->name);
    return NULL;
}

static struct bw_error *check_range(const struct value *value, const struct operand *operand)
{
    bool with_sign = operand->member->type == BW_TYPE_I64;
    bool fits = !value->too_large &&
                (with_sign ? value->negative || value->number <= INT64_MAX : !value->negative);
    return fits ? NULL
                : BW_REFUSE(value->token.at, "%.*s does not fit %s: it goes from %s",
                            SHOWN(&value->token), operand->name,
                            with_sign ? "-9223372036854775808 to 9223372036854775807"
                                      : "0 to 18446744073709551615");
}

static struct bw_error *check_unit(const struct value *value, const struct operand *operand)
{
    enum bw_member_format format = operand->member->format;
    bool time = format == BW_FORMAT_DURATION || format == BW_FORMAT_TIME;
    bool size = format == BW_FORMAT_SIZE || format == BW_FORMAT_NUMBER;
    bool is_time = value->units == bw_time_units;
    if (!value->units || (is_time ? time : size))
        return NULL;
    return BW_REFUSE(value->token.at, "%.*s is a %s, and %s is none", SHOWN(&value->token),
                     is_time ? "time" : "size", operand->name);
}

static struct bw_error *check_value(const struct value *value, const struct operand *operand)
{
    const struct bw_token *token = &value->token;
    bool text = is_text(operand->member);
    if (value->is_number && text)
        return BW_REFUSE(token->at, "%s is a text, and %.*s is a number; in quotes it is a text",
                         operand->name, SHOWN(token));
    if (text)
        return NULL;
    if (!value->is_number)
        return BW_REFUSE(token->at, "%s is a number, and '%.*s' is %s", operand->name, SHOWN(token),
                         token->kind == BW_TOKEN_QUOTED ? "a text" : "none");
    BW_TRY(check_unit(value, operand));
    return check_range(value, operand);
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

/* Finds the member that a test is about. */
static struct bw_error *find_member(struct bw_filter *filter, const struct bw_token *name,
                                    const struct bw_probe *probe, uint8_t *member)
{
    const struct bw_record *record = probe->record;
    if (is_probe_name(name)) {
        *member = PROBE_NAME;
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

static struct bw_error *type_test(struct bw_filter *filter, struct test *test,
                                  const struct bw_probe *probe)
{
    struct operand operand = {.member = &probe_name, .name = "probe"};
    uint8_t *member = &test->member[probe->number];
    BW_TRY(find_member(filter, &test->name, probe, member));
    if (*member != PROBE_NAME) {
        operand.member = &probe->record->members[*member];
        snprintf(operand.name, sizeof operand.name, "%s.%s", probe->record->name,
                 operand.member->name);
    }
    if (test->comparison == IS)
        return NULL;
    BW_TRY(check_operator(test, &operand));
    return check_value(&test->value, &operand);
}

/* Finds the members of the tests in the records of the probes, and checks the types. */
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
 * The lexical rules and the grammar of filters, parsed by recursive descent with one token of
 * lookahead. Names are looked up above.
 */

/* Characters that end a word. A `!` ends the name of a member (a!=1), but not a value ([!a]*). */
#define VALUE_ENDS "()&|<>=~\""
#define NAME_ENDS  VALUE_ENDS "!"

struct parser {
    struct bw_filter *filter;
    struct bw_lexer lexer;
    struct bw_token token; /* the next one */
    unsigned depth;        /* number of open `(` and `!` */
    unsigned open;         /* number of open `(` */
    bool alone;            /* the last token was a member, so an operator may follow */
};

static struct bw_error *parse_alternatives(struct parser *parser, uint32_t *node);

static bool is_symbol(const struct parser *parser, enum symbol symbol)
{
    return parser->token.kind == BW_TOKEN_SYMBOL && parser->token.symbol == symbol;
}

static struct bw_error *read_token(struct parser *parser, const char *ends)
{
    struct bw_token *token = &parser->token;
    BW_TRY(bw_lexer_next(&parser->lexer, ends, token));
    if (token->kind != BW_TOKEN_SYMBOL || token->symbol < SINGLE)
        return NULL;
    return BW_REFUSE(token->at, "expected '%s%s', not '%s' alone", token->text, token->text,
                     token->text);
}

static struct bw_error *next_token(struct parser *parser)
{
    return read_token(parser, NAME_ENDS);
}

static struct bw_error *refuse_token(const struct parser *parser, const char *expected)
{
    const struct bw_token *token = &parser->token;
    if (token->kind == BW_TOKEN_END)
        return BW_REFUSE(token->at, "expected %s, not the end", expected);
    if (token->kind == BW_TOKEN_QUOTED)
        return BW_REFUSE(token->at, "expected %s, not a text in quotes", expected);
    return BW_REFUSE(token->at, "expected %s, not '%.*s'", expected, SHOWN(token));
}

/* The error for an invalid token after a complete test. */
static struct bw_error *refuse_next(const struct parser *parser)
{
    static const char *const expected[2][2] = {
        {"'&&', '||' or the end", "'&&', '||' or ')'"},
        {"an operator, '&&', '||' or the end", "an operator, '&&', '||' or ')'"},
    };
    return refuse_token(parser, expected[parser->alone][parser->open > 0]);
}

/* Adds a test and its node in the condition. */
static struct bw_error *add_test(struct parser *parser, const struct test *test, uint32_t *node)
{
    struct bw_filter *filter = parser->filter;
    if (!BW_ARRAY_RESERVE(filter->tests, filter->count, filter->capacity))
        return bw_error_no_memory();
    filter->tests[filter->count] = *test;
    return bw_condition_add(&filter->condition, BW_CONDITION_TEST, (uint32_t)filter->count++, node);
}

static const struct bw_unit *find_unit(const char *name, struct value *value)
{
    const size_t length = strlen(name);
    const struct bw_unit *unit = bw_unit_find(bw_size_units, name, length);
    value->units = !length ? NULL : unit ? bw_size_units : bw_time_units;
    return unit ? unit : bw_unit_find(bw_time_units, name, length);
}

/* Parses a number as in C, which a unit may follow. */
static bool read_number(struct value *value)
{
    const char *digits = value->token.text + (*value->token.text == '-');
    char *end;
    if (value->token.kind != BW_TOKEN_WORD || !isdigit((unsigned char)*digits))
        return false;
    errno = 0;
    value->number = strtoull(digits, &end, 0);
    value->too_large = errno == ERANGE;
    const struct bw_unit *unit = find_unit(end, value);
    if (!unit)
        return false;
    value->too_large |= __builtin_mul_overflow(value->number, unit->factor, &value->number);
    value->negative = digits != value->token.text && (value->number || value->too_large);
    /* numbers less than -2^63 have no representation in two's complement */
    value->too_large |= value->negative && value->number > UINT64_C(1) << 63;
    value->number = value->negative ? 0 - value->number : value->number;
    return true;
}

/* Parses an operator, which is the next token, and its value. */
static struct bw_error *parse_comparison(struct parser *parser, struct test *test)
{
    const struct bw_token *token = &parser->token;
    const char *problem = NULL;
    test->comparison = (enum symbol)token->symbol;
    test->at = token->at;
    BW_TRY(read_token(parser, VALUE_ENDS));
    if (token->kind != BW_TOKEN_WORD && token->kind != BW_TOKEN_QUOTED)
        return refuse_token(parser, "a value");
    test->value.token = *token;
    test->value.is_number = read_number(&test->value);
    if (test->comparison == LIKE || test->comparison == UNLIKE)
        problem = bw_glob_problem(token->text, token->length);
    return problem ? BW_REFUSE(token->at, "in the pattern: %s", problem) : next_token(parser);
}

static struct bw_error *parse_test(struct parser *parser, uint32_t *node)
{
    struct test test = {.name = parser->token, .comparison = IS};
    if (test.name.kind != BW_TOKEN_WORD ||
        !(isalpha((unsigned char)*test.name.text) || *test.name.text == '_'))
        return refuse_token(parser, "a member, '!' or '('");
    BW_TRY(next_token(parser));
    parser->alone = parser->token.kind != BW_TOKEN_SYMBOL || parser->token.symbol < EQUAL ||
                    parser->token.symbol > GREATER;
    if (!parser->alone)
        BW_TRY(parse_comparison(parser, &test));
    return add_test(parser, &test, node);
}

static struct bw_error *parse_parentheses(struct parser *parser, uint32_t *node)
{
    parser->open++;
    BW_TRY(next_token(parser));
    BW_TRY(parse_alternatives(parser, node));
    if (!is_symbol(parser, CLOSE))
        return refuse_next(parser);
    parser->open--;
    parser->alone = false;
    return next_token(parser);
}

static struct bw_error *parse_one(struct parser *parser, uint32_t *node)
{
    bool inverted = is_symbol(parser, NOT);
    if (!inverted && !is_symbol(parser, OPEN))
        return parse_test(parser, node);
    if (parser->depth == BW_FILTER_DEPTH)
        return BW_REFUSE(parser->token.at, "more than %d nested '(' and '!'", BW_FILTER_DEPTH);
    parser->depth++;
    if (inverted) {
        BW_TRY(next_token(parser));
        BW_TRY(parse_one(parser, node));
        parser->filter->condition.nodes[*node].negated ^= true;
    } else {
        BW_TRY(parse_parentheses(parser, node));
    }
    parser->depth--;
    return NULL;
}

/* Parses a list of parts with the same operator between them. */
static struct bw_error *
parse_list(struct parser *parser, enum symbol between, enum bw_condition_kind kind,
           struct bw_error *(*parse_part)(struct parser *parser, uint32_t *node), uint32_t *node)
{
    uint32_t more;
    BW_TRY(parse_part(parser, node));
    while (is_symbol(parser, between)) {
        BW_TRY(next_token(parser));
        BW_TRY(parse_part(parser, &more));
        BW_TRY(bw_condition_join(&parser->filter->condition, kind, *node, more));
    }
    return NULL;
}

static struct bw_error *parse_conditions(struct parser *parser, uint32_t *node)
{
    return parse_list(parser, AND, BW_CONDITION_ALL, parse_one, node);
}

static struct bw_error *parse_alternatives(struct parser *parser, uint32_t *node)
{
    return parse_list(parser, OR, BW_CONDITION_ANY, parse_conditions, node);
}

static struct bw_error *parse_all(struct parser *parser)
{
    uint32_t root;
    BW_TRY(next_token(parser));
    if (parser->token.kind == BW_TOKEN_END)
        return bw_error_create(BW_ERROR_USAGE, "the filter is empty");
    BW_TRY(parse_alternatives(parser, &root));
    return parser->token.kind == BW_TOKEN_END ? NULL : refuse_next(parser);
}

/* Parses the text of a filter. */
static struct bw_error *filter_parse(struct bw_filter *filter, const char *text)
{
    struct parser parser = {.filter = filter};
    BW_TRY(
        bw_lexer_open(&lexer_rules, (struct bw_text_place){0}, text, strlen(text), &parser.lexer));
    filter->words = parser.lexer.words;
    return parse_all(&parser);
}

/* Creating filters, and evaluating them for each event. */

static struct bw_error *compile_filter(struct bw_filter *filter, const char *text,
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
    struct bw_error *error = compile_filter(*filter, text, selected);
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
    bw_condition_free(&filter->condition);
    free(filter);
}

struct bw_attributes bw_filter_attributes(const struct bw_filter *filter)
{
    return filter->attributes;
}

/* Evaluation. */

static bool number_holds(const struct test *test, uint64_t number, bool with_sign)
{
    /* Bits: less than the value, equal, greater. */
    static const uint8_t results[] = {
        [EQUAL] = 2,      [DIFFERENT] = 5,     [LESS] = 1,
        [LESS_EQUAL] = 3, [GREATER_EQUAL] = 6, [GREATER] = 4,
    };
    uint64_t value = test->value.number;
    if (test->comparison == IS)
        return number != 0;
    /* with the sign bit inverted, signed numbers can be compared as unsigned ones */
    if (with_sign) {
        number ^= UINT64_C(1) << 63;
        value ^= UINT64_C(1) << 63;
    }
    return results[test->comparison] >> (1 + (number > value) - (number < value)) & 1;
}

/* Negations are true for a member without a value. */
static bool is_negation(const struct test *test)
{
    return test->comparison == DIFFERENT || test->comparison == UNLIKE;
}

static bool text_holds(const struct test *test, const char *text, size_t length)
{
    const struct bw_token *value = &test->value.token;
    if (!text)
        return is_negation(test);
    if (test->comparison == IS)
        return length > 0;
    bool same = test->comparison == LIKE || test->comparison == UNLIKE
                    ? bw_glob_matches(value->text, value->length, text, length)
                    : length == value->length && memcmp(text, value->text, length) == 0;
    return same != is_negation(test);
}

static bool bytes_hold(const struct test *test, const struct bw_bytes *bytes,
                       enum bw_member_format format)
{
    char uuid[BW_UUID_LENGTH];
    if (format != BW_FORMAT_UUID || bytes->length != BW_UUID_SIZE || !bytes->data)
        return text_holds(test, bytes->data, bytes->length);
    bw_write_uuid(uuid, bytes->data);
    return text_holds(test, uuid, sizeof uuid);
}

static bool member_holds(const struct test *test, const struct bw_member *member, const void *at)
{
    switch (member->type) {
    case BW_TYPE_U64:
        return number_holds(test, *(const uint64_t *)at, false);
    case BW_TYPE_I64:
        return number_holds(test, (uint64_t) * (const int64_t *)at, true);
    case BW_TYPE_BYTES:
        return bytes_hold(test, at, member->format);
    default: /* records of probes contain no other types */
        break;
    }
    const char *text = *(const char *const *)at;
    return text_holds(test, text, text ? strlen(text) : 0);
}

static bool test_holds(const struct test *test, const struct bw_probe_event *event)
{
    uint8_t index = test->member[event->probe->number];
    if (index == PROBE_NAME)
        return text_holds(test, event->probe->name, strlen(event->probe->name));
    if (!(event->members >> index & 1))
        return is_negation(test);
    const struct bw_member *member = &event->probe->record->members[index];
    return member_holds(test, member, (const char *)event->record + member->offset);
}

/* The context of an evaluation. */
struct question {
    const struct test *tests;
    const struct bw_probe_event *event;
};

static enum bw_verdict evaluate_test(const void *context, uint32_t number, bool negated)
{
    const struct question *question = context;
    return test_holds(&question->tests[number], question->event) != negated ? BW_STRONG_YES : BW_NO;
}

/* Filtering events before a consumer. */

static void forward_matching(struct bw_probe_consumer *consumer, const struct bw_probe_event *event)
{
    struct bw_filter *filter = (struct bw_filter *)consumer; /* `consumer` is its first member */
    if (filter->typed[event->probe->number] &&
        bw_condition_evaluate(&filter->condition, evaluate_test,
                              &(struct question){filter->tests, event}))
        filter->inner->visit(filter->inner, event);
}

struct bw_probe_consumer *bw_filter_before(struct bw_filter *filter,
                                           struct bw_probe_consumer *inner)
{
    filter->inner = inner;
    filter->consumer.visit = forward_matching;
    memcpy(filter->consumer.selected, inner->selected, sizeof inner->selected);
    for (unsigned i = 0; i < BW_PROBES_MAX; i++)
        filter->consumer.lazy[i] = inner->lazy[i] | filter->members[i];
    return &filter->consumer;
}
