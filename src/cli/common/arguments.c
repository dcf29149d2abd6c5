/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The arguments of options: the functions of the option tables that parse and store them. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "base/nearest.h"
#include "cli/command.h"

struct bw_error *cmd_bad_argument(const struct cmd_option *option, const char *argument,
                                  const char *allowed)
{
    return bw_error_create(BW_ERROR_USAGE, "invalid argument of --%s: %s (allowed: %s)",
                           option->name, argument, allowed);
}

struct bw_error *cmd_take_flag(void *flag, const struct cmd_option *option, const char *argument)
{
    (void)option;
    (void)argument;
    *(bool *)flag = true;
    return NULL;
}

struct bw_error *cmd_take_text(void *text, const struct cmd_option *option, const char *argument)
{
    *(const char **)text = argument;
    return *argument ? NULL : cmd_bad_argument(option, argument, "a text that is not empty");
}

bool cmd_parse_number(const char *text, uint64_t minimum, uint64_t maximum, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && !errno && *number >= minimum &&
           *number <= maximum;
}

struct bw_error *cmd_take_threads(void *threads, const struct cmd_option *option,
                                  const char *argument)
{
    uint64_t number;
    if (!cmd_parse_number(argument, 1, 32, &number))
        return cmd_bad_argument(option, argument, "1 to 32");
    *(unsigned *)threads = (unsigned)number;
    return NULL;
}

static bool parse_hexadecimal(const char **text, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(*text, &end, 16);
    bool is_one = isxdigit((unsigned char)(*text)[2]) && !errno;
    *text = end;
    return is_one;
}

bool cmd_parse_bytes(const char **text, uint64_t *bytes)
{
    if (strncasecmp(*text, "0x", 2) == 0)
        return parse_hexadecimal(text, bytes);
    return bw_parse_size(text, bytes);
}

struct bw_error *cmd_parse_range(const char *text, uint64_t *address, uint64_t *length)
{
    const char *rest = text;
    bool good = cmd_parse_bytes(&rest, address);
    *length = 0;
    if (good && *rest == '+')
        good = cmd_parse_bytes((rest++, &rest), length) && *length;
    if (good && !*rest && *length <= UINT64_MAX - *address)
        return NULL;
    return bw_error_create(BW_ERROR_USAGE, "invalid address: %s", text);
}

struct bw_error *cmd_take_bytes(void *bytes, const struct cmd_option *option, const char *argument)
{
    const char *rest = argument;
    return cmd_parse_bytes(&rest, bytes) && !*rest
               ? NULL
               : cmd_bad_argument(option, argument,
                                  "bytes below 16E, for example 4096, 64M, 64MB or 0x1000");
}

static struct bw_error *bad_word(const struct cmd_option *option, const char *argument)
{
    BW_AUTO_BUFFER struct bw_buffer allowed = {0};
    for (size_t i = 0; option->words[i]; i++)
        if (*option->words[i]) /* what is meant without the option may have no name */
            bw_buffer_format(&allowed, "%s%s", allowed.length ? ", " : "", option->words[i]);
    bw_buffer_append_byte(&allowed, '\0');
    return allowed.failed ? bw_error_no_memory() : cmd_bad_argument(option, argument, allowed.data);
}

struct bw_error *cmd_take_word(void *value, const struct cmd_option *option, const char *argument)
{
    unsigned i = 0;
    while (option->words[i] && strcmp(argument, option->words[i]) != 0)
        i++;
    *(unsigned *)value = i;
    return option->words[i] ? NULL : bad_word(option, argument);
}

void cmd_append_suggestion(struct cmd_suggestion *suggestion, const char *candidate)
{
    bw_buffer_format(suggestion->message, "%s'%s%s'",
                     suggestion->count++ ? " or " : "; did you mean ", suggestion->prefix,
                     candidate);
}

void cmd_suggest(struct cmd_suggestion *suggestion, const char *candidate)
{
    if (bw_is_like(suggestion->word, candidate))
        cmd_append_suggestion(suggestion, candidate);
}
