/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the text of a filter to its words: white space, operators, quotes and escapes, numbers with
 * units. */
#include <string.h>

#include "base/cleanup.h"
#include "probe/filter_parts.h"

#define WHITE_SPACE " \t\n\r\v\f"

/* Longer ones first. */
static const struct symbol {
    const char *text;
    enum bw_filter_token_kind kind;
    enum bw_filter_operator comparison;
} symbols[] = {
    {"&&", BW_FILTER_AND, 0},
    {"||", BW_FILTER_OR, 0},
    {"==", BW_FILTER_OPERATOR, BW_FILTER_EQUAL},
    {"!=", BW_FILTER_OPERATOR, BW_FILTER_DIFFERENT},
    {"!~", BW_FILTER_OPERATOR, BW_FILTER_UNLIKE},
    {"<=", BW_FILTER_OPERATOR, BW_FILTER_LESS_EQUAL},
    {">=", BW_FILTER_OPERATOR, BW_FILTER_GREATER_EQUAL},
    {"~", BW_FILTER_OPERATOR, BW_FILTER_LIKE},
    {"<", BW_FILTER_OPERATOR, BW_FILTER_LESS},
    {">", BW_FILTER_OPERATOR, BW_FILTER_GREATER},
    {"!", BW_FILTER_NOT, 0},
    {"(", BW_FILTER_OPEN, 0},
    {")", BW_FILTER_CLOSE, 0},
};

static struct bw_error *take_symbol(struct bw_filter_lexer *lexer, struct bw_filter_token *token)
{
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        size_t length = strlen(symbols[i].text);
        if (strncmp(token->text, symbols[i].text, length) != 0)
            continue;
        token->kind = symbols[i].kind;
        token->comparison = symbols[i].comparison;
        token->length = length;
        lexer->next += length;
        return NULL;
    }
    return BW_FILTER_REFUSE(token->column, "expected '%c%c', not '%c' alone", *token->text,
                            *token->text, *token->text);
}

static int hex_digit(char digit)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *found = digit ? strchr(digits, digit) : NULL;
    return found ? (int)((found - digits) % 16) : -1;
}

/* What stands behind a backslash; `*length` gets how many bytes of it were used, 0 if it means
 * nothing. */
static char escaped(const char *text, size_t *length)
{
    static const char names[] = "\"\\nrt", meant[] = "\"\\\n\r\t";
    const char *found = *text ? strchr(names, *text) : NULL;
    *length = found ? 1 : 0;
    if (found)
        return meant[found - names];
    if (*text != 'x' || hex_digit(text[1]) < 0 || hex_digit(text[2]) < 0)
        return 0;
    *length = 3;
    return (char)(hex_digit(text[1]) << 4 | hex_digit(text[2]));
}

/* Decodes where it stands: no text is longer than what it is written as. */
static struct bw_error *take_quoted(struct bw_filter_lexer *lexer, struct bw_filter_token *token)
{
    char *from = lexer->text + lexer->next + 1, *to = from;
    token->kind = BW_FILTER_QUOTED;
    token->text = to;
    for (; *from != '"'; to++) {
        if (!*from)
            return BW_FILTER_REFUSE(token->column, "the quote that begins here does not end");
        size_t length = 0;
        if (*from != '\\') {
            *to = *from++;
            continue;
        }
        char byte = escaped(from + 1, &length);
        if (length == 0)
            return BW_FILTER_REFUSE(
                (unsigned)(from - lexer->text) + 1,
                "expected \\\", \\\\, \\n, \\r, \\t or \\xHH after a backslash in quotes");
        *to = byte;
        from += 1 + length;
    }
    token->length = (size_t)(to - token->text);
    lexer->next = (size_t)(from - lexer->text) + 1;
    return NULL;
}

/* A `!` ends the name of a member (a!=1), but not a value that has begun ([!a]*). */
static size_t word_length(const char *text, bool value)
{
    size_t length = strcspn(text, WHITE_SPACE "()&|<>=~!\"");
    while (value && length && text[length] == '!')
        length += 1 + strcspn(text + length + 1, WHITE_SPACE "()&|<>=~!\"");
    return length;
}

struct bw_error *bw_filter_lexer_next(struct bw_filter_lexer *lexer, bool value,
                                      struct bw_filter_token *token)
{
    lexer->next += strspn(lexer->text + lexer->next, WHITE_SPACE);
    *token = (struct bw_filter_token){.text = lexer->text + lexer->next,
                                      .column = (unsigned)lexer->next + 1};
    if (!*token->text)
        return NULL;
    if (*token->text == '"')
        return take_quoted(lexer, token);
    token->length = word_length(token->text, value);
    if (token->length == 0)
        return take_symbol(lexer, token);
    token->kind = BW_FILTER_WORD;
    lexer->next += token->length;
    return NULL;
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
        hex_digit(text[2]) >= 0) {
        base = 16;
        next += 2;
    } else if (end - text > 1 && text[0] == '0') {
        base = 8;
    }
    for (; next < end && (digit = hex_digit(*next)) >= 0 && digit < base; next++)
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
