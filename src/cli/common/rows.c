/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows from options: which of them make sense together, and what a terminal changes. */
#include "cli/common/rows.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "btrfs-walk/record.h"

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

/* Decodes a separator; `bytes` has room for as many as the text has. */
static size_t decode_separator(const char *text, char *bytes)
{
    size_t length = 0;
    while (*text)
        next_byte(&text, &bytes[length++]);
    return length;
}

/* '-o help' lists the columns. */
static int show_columns(const struct command *command, const void *state, const char *argument)
{
    const struct bw_record *record = bw_record_find(cmd_record_of(command, state));
    (void)argument;
    for (unsigned i = 0; i < record->member_count; i++)
        printf("%-14s %s%s\n", record->members[i].name, record->members[i].documentation,
               record->members[i].lazy ? " (only if named)" : "");
    return STATUS_OK;
}

static struct bw_error *take_json(void *target, const struct cmd_option *option, const char *form)
{
    struct cmd_rows_settings *settings = target;
    bool array = form && strcmp(form, "array") == 0;
    settings->style = array ? BW_ROWS_JSON_ARRAY : BW_ROWS_JSON_LINES;
    return array || !form || strcmp(form, "lines") == 0
               ? NULL
               : cmd_bad_argument(option, form, "lines, array");
}

static struct bw_error *take_separator(void *target, const struct cmd_option *option,
                                       const char *text)
{
    struct cmd_rows_settings *settings = target;
    settings->separator = text;
    return separator_is_good(text)
               ? NULL
               : cmd_bad_argument(option, text, "a text; escapes in it are \\t, \\n, \\0 and \\\\");
}

static const char *const times[] = {"ns", "iso", "seconds", NULL}; /* enum bw_rows_times */

static struct bw_error *take_times(void *target, const struct cmd_option *option, const char *word)
{
    struct cmd_rows_settings *settings = target;
    settings->times_given = true;
    return cmd_take_word(&settings->times, option, word);
}

const struct cmd_option cmd_rows_options[] = {
    {'o', "output", "COLUMNS", "write these columns, separated by commas ('-o help' lists all)",
     CMD_TEXT(struct cmd_rows_settings, columns), .show = show_columns,
     .heading = "Columns and JSON"},
    {0, "json", "[=array]",
     "write all columns, or those of -o, as JSON: one object per line, or one array",
     .take = take_json},
    {0, "json-header", NULL, "begin with the versions of the program and of the record, as JSON",
     CMD_FLAG(struct cmd_rows_settings, json_header)},
    {0, "header", NULL, "begin with the names of the columns",
     CMD_FLAG(struct cmd_rows_settings, header)},
    {0, "separator", "TEXT", "separator of columns (default: a tab)", .take = take_separator},
    {0, "times", "WORD",
     "times in columns and JSON: nanoseconds since 1970 (ns, the default), iso, or seconds",
     .take = take_times, .words = times},
    {0, "iec", NULL, "print sizes like 1.50MiB (default on a terminal, together with dates)",
     CMD_FLAG(struct cmd_rows_settings, iec)},
    {0, "si", NULL, "print sizes like 1.57MB", CMD_FLAG(struct cmd_rows_settings, si)},
    {'b', "raw", NULL, "print sizes and times as plain numbers (default unless on a terminal)",
     CMD_FLAG(struct cmd_rows_settings, raw)},
    {0},
};

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
         "--header, --separator, --iec and --si are for columns, which -o chooses"},
        {!json && !settings->columns && settings->times_given,
         "--times is for columns and JSON, which -o and --json choose"},
        {settings->style == BW_ROWS_JSON_ARRAY && !terminator,
         "-0 is for lines, not for --json=array"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (cases[i].is_so)
            return cases[i].reason;
    return NULL;
}

/* Programs get numbers, people units and dates, unless options say otherwise. */
static struct bw_rows_options options_of(const struct cmd_rows_settings *settings, char terminator,
                                         bool terminal)
{
    bool people = terminal && !settings->raw;
    return (struct bw_rows_options){
        .struct_size = sizeof(struct bw_rows_options),
        .members = settings->columns,
        .style = settings->style,
        .terminator = terminator,
        .header = settings->header || settings->json_header,
        .escape = terminal,
        .units = settings->si              ? BW_ROWS_SI
                 : settings->iec || people ? BW_ROWS_IEC
                                           : BW_ROWS_BYTES,
        .iso_times = people && !settings->times_given,
        .times = settings->times,
    };
}

/* The error of bw_rows_create(), with a hint. */
static struct bw_error *with_hint(struct bw_error *error)
{
    if (!error || error->code != BW_ERROR_USAGE)
        return error;
    struct bw_error *hinted =
        bw_error_create(BW_ERROR_USAGE, "%s; '-o help' lists all columns", error->message);
    bw_error_free(error);
    return hinted;
}

struct bw_error *cmd_rows_create(const struct cmd_rows_settings *settings, const char *record,
                                 char terminator, bool terminal, struct bw_rows **rows)
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
    return with_hint(bw_rows_create(record, &options, rows));
}

const char *cmd_record_of(const struct command *command, const void *state)
{
    const bool *other = (const void *)((const char *)state + command->other);
    return command->other_record && *other ? command->other_record : command->record;
}
