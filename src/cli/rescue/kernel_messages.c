/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages of the kernel: recognizing them in the lines of a log.
 *
 * kernel_messages.def lists each message with its patterns: fixed text, {name} for a number, and
 * {device} for a word. The first fixed text of a pattern is searched for in the line; from there
 * on, the line has to match the rest. The first pattern of the table that matches decides. Equal
 * messages are counted, not kept twice, and both lines and the number of messages are limited,
 * because a log may be crafted.
 */
#include "cli/rescue/kernel_messages.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { ERROR_MESSAGE = true, WARNING_MESSAGE = false };

#define MESSAGE(word, severity, explanation, advice) \
    {word, severity##_MESSAGE, explanation, advice, NULL},
#define PATTERN(pattern) {NULL, false, NULL, NULL, pattern},
const struct kernel_entry kernel_entries[] = {
#include "cli/rescue/kernel_messages.def"
};
#undef MESSAGE
#undef PATTERN

const size_t kernel_entry_count = sizeof kernel_entries / sizeof *kernel_entries;

/* Matching. */

static const char *const value_names[KERNEL_VALUES] = {"root",   "inode",    "offset", "logical",
                                                       "mirror", "physical", "sector", "devid",
                                                       "wanted", "found",    "level"};

/* Parses a number at the beginning of a text, and returns the rest; NULL without a number. */
static const char *parse_value(const char *text, uint64_t *value)
{
    char *end;
    if (!isdigit((unsigned char)text[*text == '-']))
        return NULL;
    errno = 0;
    if (*text == '-')
        *value = (uint64_t)strtoll(text, &end, 10);
    else if (text[0] == '0' && text[1] == 'x')
        *value = strtoull(text, &end, 16);
    else
        *value = strtoull(text, &end, 10);
    return errno ? NULL : end;
}

/* The word ends at a blank or where the rest of the pattern begins. */
static const char *parse_device(const char *rest, const char *text, char *device)
{
    const char ends[] = {' ', '\n', *rest, '\0'};
    const size_t length = strcspn(text, ends);
    if (!length || length >= KERNEL_DEVICE_ROOM)
        return NULL;
    memcpy(device, text, length);
    device[length] = '\0';
    return text + length;
}

/* Whether the text begins like the pattern. For {}, any text is skipped up to the rest of the
 * pattern, where that occurs first: trying all places would take too long for a crafted line. */
static bool match_pattern(const char *pattern, const char *text, struct kernel_message *message)
{
    while (text) {
        const size_t literal = strcspn(pattern, "{");
        if (strncmp(pattern, text, literal) != 0)
            return false;
        if (!pattern[literal])
            return true;
        text += literal;
        const char *name = pattern + literal + 1;
        const size_t length = strcspn(name, "}");
        enum kernel_value value = 0;
        while (value < KERNEL_VALUES && (strlen(value_names[value]) != length ||
                                         memcmp(value_names[value], name, length) != 0))
            value++;
        pattern = name + length + 1;
        if (!length && !*pattern)
            return true;
        if (!length) {
            char next[64];
            snprintf(next, sizeof next, "%.*s", (int)strcspn(pattern, "{"), pattern);
            text = strstr(text, next);
        } else if (value == KERNEL_VALUES) {
            text = parse_device(pattern, text, message->device);
        } else {
            text = parse_value(text, &message->values[value]);
            if (text)
                message->known |= 1U << value;
        }
    }
    return false;
}

/* Recognizes a line, which ends with NUL. False if it matches no pattern. */
static bool parse_message(const char *line, struct kernel_message *message)
{
    const struct kernel_entry *entry = NULL;
    for (size_t i = 0; i < kernel_entry_count; i++) {
        if (kernel_entries[i].word) {
            entry = &kernel_entries[i];
            continue;
        }
        const char *pattern = kernel_entries[i].pattern;
        char first[64];
        snprintf(first, sizeof first, "%.*s", (int)strcspn(pattern, "{"), pattern);
        for (const char *at = line; (at = strstr(at, first)); at++) {
            *message = (struct kernel_message){.entry = entry};
            if (match_pattern(pattern, at, message))
                return true;
        }
    }
    return false;
}

/* Logs. */

enum {
    LONGEST_LINE = 4096,    /* the rest of a line is skipped */
    MOST_MESSAGES = 1 << 16 /* with different values */
};

/* Adds a message, or counts it once more. */
static struct bw_error *add_message(struct kernel_log *log, const struct kernel_message *message,
                                    const char *line)
{
    const uint64_t hash = bw_hash_path((const char *)message->values, sizeof message->values) ^
                          bw_hash_path(message->device, strlen(message->device)) * 3 ^
                          (uint64_t)(message->entry - kernel_entries) << 32 ^ message->known;
    const uint32_t position = bw_key_map_get(&log->positions, hash, UINT32_MAX);
    if (position != UINT32_MAX) {
        log->entries.items[position].count++;
        return NULL;
    }
    if (log->entries.count == MOST_MESSAGES) {
        log->dropped++;
        return NULL;
    }
    BW_TRY(bw_key_map_put(&log->positions, hash, (uint32_t)log->entries.count));
    BW_TRY(kernel_log_entries_push(
        &log->entries,
        (struct kernel_log_entry){
            .message = *message, .line = log->lines, .count = 1, .text = log->texts.length}));
    bw_buffer_append(&log->texts, line, strlen(line) + 1);
    return bw_buffer_error(&log->texts);
}

/* Reads a line without its end. Bytes that are zero become '?'. False at the end. */
static bool read_line(FILE *file, char line[LONGEST_LINE])
{
    size_t length = 0;
    int byte;
    while ((byte = getc_unlocked(file)) != EOF && byte != '\n')
        if (length + 1 < LONGEST_LINE)
            line[length++] = byte ? (char)byte : '?';
    while (length && isspace((unsigned char)line[length - 1]))
        length--;
    line[length] = '\0';
    return byte != EOF || length;
}

struct bw_error *kernel_log_read(const char *name, struct kernel_log *log)
{
    const bool is_stdin = strcmp(name, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(name, "re");
    char line[LONGEST_LINE];
    struct bw_error *error = NULL;
    if (!file)
        return bw_error_from_errno(errno, "cannot open %s", name);
    while (!error && read_line(file, line)) {
        struct kernel_message message;
        log->lines++;
        if (parse_message(line, &message)) {
            error = add_message(log, &message, line);
            continue;
        }
        log->unknown++;
        log->errors += strstr(line, "BTRFS error") || strstr(line, "BTRFS warning") ||
                       strstr(line, "BTRFS critical") || strstr(line, "BTRFS: error");
    }
    if (!error && ferror(file))
        error = bw_error_from_errno(errno, "cannot read %s", name);
    if (!is_stdin)
        fclose(file);
    return error;
}

void kernel_log_free(struct kernel_log *log)
{
    kernel_log_entries_free(&log->entries);
    bw_buffer_free(&log->texts);
    bw_key_map_free(&log->positions);
}
