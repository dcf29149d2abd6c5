/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `walk` writes of each file, from its options: which make sense together, and what a terminal
 * changes.
 */
#include "cmd/common/rows.h"

#include <string.h>

#include "base/cleanup.h"
#include "btrfs-walk/record.h"
#include "cmd/command.h"

static const char record_name[] = "fileinfo";

/* Takes the next byte of a separator; false if a backslash is followed by anything unknown. */
static bool next_byte(const char **text, char *byte)
{
    static const char escapes[] = "tn0\\", bytes[] = "\t\n\0\\";
    *byte = *(*text)++;
    if (*byte != '\\')
        return true;
    const char *escape = **text ? strchr(escapes, *(*text)++) : NULL;
    if (escape)
        *byte = bytes[escape - escapes];
    return escape != NULL;
}

static bool separator_is_good(const char *text)
{
    char byte;
    while (*text)
        if (!next_byte(&text, &byte))
            return false;
    return true;
}

/* Bytes that a separator stands for; room for as many as it has. */
static size_t decode_separator(const char *text, char *bytes)
{
    size_t length = 0;
    while (*text)
        next_byte(&text, &bytes[length++]);
    return length;
}

static bool set_json(struct cmd_rows_settings *settings, const char *form)
{
    bool array = form && strcmp(form, "array") == 0;
    settings->style = array ? BW_ROWS_JSON_ARRAY : BW_ROWS_JSON_LINES;
    return array || !form || strcmp(form, "lines") == 0;
}

bool cmd_rows_set(struct cmd_rows_settings *settings, int letter, const char *argument)
{
    switch (letter) {
    case CMD_OPTION_OUTPUT:
        settings->columns = argument;
        return *argument != '\0';
    case CMD_OPTION_JSON:
        return set_json(settings, argument);
    case CMD_OPTION_SEPARATOR:
        settings->separator = argument;
        return separator_is_good(argument);
    case CMD_OPTION_JSON_HEADER:
        return settings->json_header = true;
    case CMD_OPTION_HEADER:
        return settings->header = true;
    case CMD_OPTION_IEC:
        return settings->iec = true;
    case CMD_OPTION_SI:
        return settings->si = true;
    case CMD_OPTION_RAW:
        return settings->raw = true;
    default:
        return false;
    }
}

/* Why the settings make no sense; NULL if they do. */
static const char *nonsense(const struct cmd_rows_settings *settings, char terminator)
{
    bool json = settings->style != BW_ROWS_TEXT;
    bool units = settings->iec || settings->si;
    const struct {
        bool is_so;
        const char *reason;
    } cases[] = {
        {settings->header && json, "--header is for columns; with --json it is --json-header"},
        {settings->separator && json, "--separator is for columns, not for --json"},
        {units && json, "--iec and --si are for columns; with --json all numbers are decimal"},
        {settings->json_header && !json,
         "--json-header is for --json; with columns it is --header"},
        {settings->iec && settings->si, "--iec and --si exclude each other"},
        {settings->raw && units, "--raw excludes --iec and --si"},
        {!json && !settings->columns && (settings->header || settings->separator || units),
         "--header, --separator, --iec and --si are for columns: which ones, -o says"},
        {settings->style == BW_ROWS_JSON_ARRAY && !terminator,
         "-0 is for lines, not for --json=array"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (cases[i].is_so)
            return cases[i].reason;
    return NULL;
}

/* Numbers for programs, units and dates for people, unless they want it otherwise. */
static struct bw_rows_options options_of(const struct cmd_rows_settings *settings, char terminator,
                                         bool terminal)
{
    bool people = terminal && !settings->raw;
    return (struct bw_rows_options){
        .members = settings->columns,
        .style = settings->style,
        .terminator = terminator,
        .header = settings->header || settings->json_header,
        .escape = terminal,
        .units = settings->si              ? BW_ROWS_SI
                 : settings->iec || people ? BW_ROWS_IEC
                                           : BW_ROWS_BYTES,
        .iso_times = people,
    };
}

/* The error of making rows, with where to look. */
static struct bw_error *with_hint(struct bw_error *error)
{
    if (!error || error->code != BW_ERROR_USAGE)
        return error;
    struct bw_error *hinted = bw_error_create(
        BW_ERROR_USAGE, "%s; 'btrfs-walk -o help' lists all columns", error->message);
    bw_error_free(error);
    return hinted;
}

struct bw_error *cmd_rows_create(const struct cmd_rows_settings *settings, char terminator,
                                 bool terminal, struct bw_rows **rows)
{
    struct bw_rows_options options = options_of(settings, terminator, terminal);
    const char *reason = nonsense(settings, terminator);
    BW_AUTO_FREE char *separator = NULL;
    *rows = NULL;
    if (reason)
        return bw_error_create(BW_ERROR_USAGE, "%s", reason);
    if (!settings->columns && settings->style == BW_ROWS_TEXT)
        return NULL;
    if (settings->separator) {
        separator = malloc(strlen(settings->separator) + 1);
        if (!separator)
            return bw_error_no_memory();
        options.separator_length = decode_separator(settings->separator, separator);
        options.separator = separator;
    }
    return with_hint(bw_rows_create(record_name, &options, rows));
}

bool cmd_rows_ask_columns(const struct cmd_rows_settings *settings)
{
    return settings->columns && strcmp(settings->columns, "help") == 0;
}

struct bw_error *cmd_rows_list_columns(void)
{
    const struct bw_record *record = bw_record_find(record_name);
    struct bw_buffer text = {0};
    struct cmd_output output = {.at_once = true};
    for (unsigned i = 0; i < record->member_count; i++)
        bw_buffer_format(&text, "%-14s %s%s\n", record->members[i].name,
                         record->members[i].documentation,
                         record->members[i].lazy ? " (only if named)" : "");
    struct bw_error *error =
        text.failed ? bw_error_no_memory() : cmd_write(&output, text.data, text.length);
    bw_buffer_free(&text);
    return error;
}
