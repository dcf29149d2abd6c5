/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options of layers: given as text, validated against the class's table, read back as text or
 * number. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/human.h"
#include "graph/graph.h"

static const struct bw_unit no_units[] = {{"", 1}, {NULL, 0}};

static const struct type {
    const char *name;    /* on pages */
    const char *article; /* in "'x' is not ..." */
    const struct bw_unit *units;
} types[] = {
    [BW_OPTION_BOOL] = {"bool", "one", NULL},
    [BW_OPTION_INTEGER] = {"int", "a whole number", no_units},
    [BW_OPTION_SIZE] = {"size", "a size like 64K", bw_size_units},
    [BW_OPTION_PERCENT] = {"percent", "a percentage like 0.5%", NULL},
    [BW_OPTION_TIME] = {"time", "a time like 10ms", bw_time_units},
    [BW_OPTION_ENUM] = {"enum", "one", NULL},
    [BW_OPTION_STRING] = {"string", "a text", NULL},
    [BW_OPTION_PATH] = {"path", "a path", NULL},
    [BW_OPTION_OUTPUT] = {"output", "a path", NULL},
};

const char *bw_option_type_name(enum bw_option_type type)
{
    return types[type].name;
}

const struct bw_option *bw_class_option(const struct bw_xlator_class *type, const char *name)
{
    for (const struct bw_option *option = type->options; option && option->name; option++)
        if (strcmp(option->name, name) == 0)
            return option;
    return NULL;
}

static bool parse_bool(const char *text, uint64_t *value)
{
    static const char *const words[] = {"off", "on", "no", "yes", "false", "true", "0", "1"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text, words[i]) == 0) {
            *value = i & 1;
            return true;
        }
    return false;
}

static bool parse_percent(const char *text, uint64_t *value)
{
    if (!bw_parse_digits(&text, 10, value) || *value > 100)
        return false;
    *value *= BW_PERCENT_100 / 100;
    if (*text == '.') {
        uint64_t digit = BW_PERCENT_100 / 1000;
        if (text[1] < '0' || text[1] > '9')
            return false;
        for (text++; *text >= '0' && *text <= '9' && digit; text++, digit /= 10)
            *value += (uint64_t)(*text - '0') * digit;
    }
    return (!*text || strcmp(text, "%") == 0) && *value <= BW_PERCENT_100;
}

static bool parse_choice(const char *const *choices, const char *text, uint64_t *value)
{
    for (*value = 0; choices[*value]; ++*value)
        if (strcmp(choices[*value], text) == 0)
            return true;
    return false;
}

static bool in_range(const struct bw_option *option, uint64_t value)
{
    return value >= option->minimum && value <= option->maximum;
}

bool bw_option_parse(const struct bw_option *option, const char *text, uint64_t *number)
{
    *number = 0;
    switch (option->type) {
    case BW_OPTION_BOOL:
        return parse_bool(text, number);
    case BW_OPTION_INTEGER:
    case BW_OPTION_SIZE:
    case BW_OPTION_TIME:
        return bw_parse_with_unit(text, types[option->type].units, number) &&
               in_range(option, *number);
    case BW_OPTION_PERCENT:
        return parse_percent(text, number) && in_range(option, *number);
    case BW_OPTION_ENUM:
        return parse_choice(option->choices, text, number);
    case BW_OPTION_STRING:
    case BW_OPTION_PATH:
    case BW_OPTION_OUTPUT:
        break;
    }
    return true;
}

/* The largest unit that the number is a multiple of. */
static void format_with_unit(const struct bw_unit *units, uint64_t number, struct bw_buffer *text)
{
    const struct bw_unit *unit = units;
    while (unit[1].name && (number == 0 || number % unit->factor))
        unit++;
    bw_buffer_format(text, "%" PRIu64 "%s", number / unit->factor, number ? unit->name : "");
}

static void format_number(const struct bw_option *option, uint64_t number, struct bw_buffer *text)
{
    if (option->type == BW_OPTION_PERCENT)
        bw_buffer_format(text, "%g%%", (double)number / (BW_PERCENT_100 / 100.0));
    else
        format_with_unit(types[option->type].units, number, text);
}

/* The largest number there is stands for "no limit". */
static void format_limits(const struct bw_option *option, struct bw_buffer *text)
{
    if (option->maximum == UINT64_MAX && !option->minimum)
        return;
    format_number(option, option->minimum, text);
    bw_buffer_format(text, option->maximum == UINT64_MAX ? " or more" : " to ");
    if (option->maximum != UINT64_MAX)
        format_number(option, option->maximum, text);
}

char *bw_option_range(const struct bw_option *option)
{
    struct bw_buffer text = {0};
    switch (option->type) {
    case BW_OPTION_BOOL:
        bw_buffer_format(&text, "on, off");
        break;
    case BW_OPTION_ENUM:
        for (const char *const *choice = option->choices; *choice; choice++)
            bw_buffer_format(&text, "%s%s", choice == option->choices ? "" : ", ", *choice);
        break;
    case BW_OPTION_INTEGER:
    case BW_OPTION_SIZE:
    case BW_OPTION_TIME:
    case BW_OPTION_PERCENT:
        format_limits(option, &text);
        break;
    case BW_OPTION_STRING:
    case BW_OPTION_PATH:
    case BW_OPTION_OUTPUT:
        break;
    }
    bw_buffer_append_byte(&text, '\0');
    if (text.failed)
        bw_buffer_free(&text);
    return text.data;
}

struct bw_error *bw_option_check(const struct bw_option *option, const char *text)
{
    uint64_t number;
    if (bw_option_parse(option, text, &number))
        return NULL;
    BW_AUTO_FREE char *range = bw_option_range(option);
    if (!range)
        return bw_error_no_memory();
    bool list = option->type == BW_OPTION_ENUM || option->type == BW_OPTION_BOOL;
    return bw_error_create(BW_ERROR_USAGE, "option %s: '%s' is not %s%s%s%s", option->name, text,
                           types[option->type].article,
                           !*range ? ""
                           : list  ? " of: "
                                   : " (",
                           range, list || !*range ? "" : ")");
}

/* The option of that name; a layer that asks for another one has a mistake in it. */
static const struct bw_option *own_option(const struct bw_xlator *xlator, const char *name)
{
    const struct bw_option *option = bw_class_option(xlator->type, name);
    if (!option)
        bw_xlator_report(xlator, BW_WARNING,
                         bw_error_create(BW_ERROR_USAGE,
                                         "%s asks for an option %s that it does not have",
                                         xlator->type->type, name));
    return option;
}

const char *bw_xlator_option_text(const struct bw_xlator *xlator, const char *name)
{
    const struct bw_option *option = own_option(xlator, name);
    return option ? xlator->values[option - xlator->type->options] : "";
}

uint64_t bw_xlator_option_number(const struct bw_xlator *xlator, const char *name)
{
    const struct bw_option *option = own_option(xlator, name);
    uint64_t value = 0;
    if (option)
        bw_option_parse(option, xlator->values[option - xlator->type->options], &value);
    return value;
}
