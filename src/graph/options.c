/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options of layers: given as text, validated against the class's table, read back as text or number. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "graph/instance.h"

static size_t option_count(const struct bw_xlator_class *type)
{
    size_t count = 0;
    while (type->options && type->options[count].name)
        count++;
    return count;
}

static size_t find_option(const struct bw_xlator_class *type, const char *name)
{
    size_t index = 0;
    while (index < option_count(type) && strcmp(type->options[index].name, name) != 0)
        index++;
    return index;
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

static bool parse_integer(const char *text, bool suffix_allowed, uint64_t *value)
{
    static const char suffixes[] = "KMGT";
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    if (end == text || errno || *text == '-' || *text == '+')
        return false;
    const char *suffix = *end ? strchr(suffixes, *end) : NULL;
    if (!suffix)
        return *end == '\0';
    unsigned shift = 10 * (unsigned)(suffix - suffixes + 1);
    if (!suffix_allowed || end[1] || *value > UINT64_MAX >> shift)
        return false;
    *value <<= shift;
    return true;
}

static bool parse(const struct bw_option *option, const char *text, uint64_t *value)
{
    switch (option->type) {
    case BW_OPTION_BOOL:
        return parse_bool(text, value);
    case BW_OPTION_INTEGER:
    case BW_OPTION_SIZE:
        return parse_integer(text, option->type == BW_OPTION_SIZE, value) && *value >= option->minimum &&
               *value <= option->maximum;
    case BW_OPTION_STRING:
        break;
    }
    return true;
}

static struct bw_error *bad_value(const struct bw_xlator *xlator, const struct bw_option *option,
                                  const char *text)
{
    if (option->type == BW_OPTION_BOOL)
        return bw_error_create(BW_ERROR_USAGE, "volume %s: option %s: '%s' is not on or off", xlator->name,
                               option->name, text);
    return bw_error_create(BW_ERROR_USAGE, "volume %s: option %s: '%s' is not in %" PRIu64 " to %" PRIu64,
                           xlator->name, option->name, text, option->minimum, option->maximum);
}

static struct bw_error *set_value(struct bw_xlator *xlator, size_t index, const char *text)
{
    const struct bw_option *option = &xlator->type->options[index];
    uint64_t number;
    if (!parse(option, text, &number))
        return bad_value(xlator, option, text);
    char *copy = strdup(text);
    if (!copy)
        return bw_error_no_memory();
    free(xlator->values[index]);
    xlator->values[index] = copy;
    return NULL;
}

static struct bw_error *apply_given(struct bw_xlator *xlator, const struct bw_option_value *given)
{
    for (; given && given->name; given++) {
        size_t index = find_option(xlator->type, given->name);
        if (index == option_count(xlator->type))
            return bw_error_create(BW_ERROR_USAGE, "volume %s: %s has no option %s", xlator->name,
                                   xlator->type->type, given->name);
        BW_TRY(set_value(xlator, index, given->value));
    }
    return NULL;
}

struct bw_error *bw_options_apply(struct bw_xlator *xlator, const struct bw_option_value *given)
{
    size_t count = option_count(xlator->type);
    xlator->values = calloc(count + 1, sizeof *xlator->values);
    if (!xlator->values)
        return bw_error_no_memory();
    BW_TRY(apply_given(xlator, given));
    for (size_t i = 0; i < count; i++) {
        const struct bw_option *option = &xlator->type->options[i];
        if (xlator->values[i])
            continue;
        if (!option->default_value)
            return bw_error_create(BW_ERROR_USAGE, "volume %s: option %s must be given", xlator->name,
                                   option->name);
        BW_TRY(set_value(xlator, i, option->default_value));
    }
    return NULL;
}

void bw_options_free(struct bw_xlator *xlator)
{
    for (size_t i = 0; xlator->values && i < option_count(xlator->type); i++)
        free(xlator->values[i]);
    free(xlator->values);
    xlator->values = NULL;
}

const char *bw_xlator_option_text(const struct bw_xlator *xlator, const char *name)
{
    size_t index = find_option(xlator->type, name);
    return index < option_count(xlator->type) ? xlator->values[index] : "";
}

uint64_t bw_xlator_option_number(const struct bw_xlator *xlator, const char *name)
{
    size_t index = find_option(xlator->type, name);
    uint64_t value = 0;
    if (index < option_count(xlator->type))
        parse(&xlator->type->options[index], xlator->values[index], &value);
    return value;
}
