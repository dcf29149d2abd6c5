/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages of the kernel: recognizing them in the lines of a log. */
#include "cli/rescue/kernel_messages.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash_table.h"
#include "base/vector.h"

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

/* The value with the name of `length` characters; KERNEL_VALUES if it is "device" or nothing. */
static enum kernel_value find_value(const char *name, size_t length)
{
    enum kernel_value value = 0;
    while (value < KERNEL_VALUES &&
           (strlen(value_names[value]) != length || memcmp(value_names[value], name, length) != 0))
        value++;
    return value;
}

/* Parses a number at the beginning of a text, and returns the rest; NULL without a number. */
static const char *parse_value(const char *text, uint64_t *value)
{
    char *end;
    const bool is_hex = text[0] == '0' && text[1] == 'x';
    if (!isdigit((unsigned char)text[*text == '-']))
        return NULL;
    errno = 0;
    *value =
        *text == '-' ? (uint64_t)strtoll(text, &end, 10) : strtoull(text, &end, is_hex ? 16 : 10);
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
static bool match_rest(const char *pattern, const char *text, struct kernel_message *message)
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
        const enum kernel_value value = find_value(name, length);
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

static bool match_line(const char *pattern, const char *line, struct kernel_message *message)
{
    char first[64];
    const size_t literal = strcspn(pattern, "{");
    snprintf(first, sizeof first, "%.*s", (int)literal, pattern);
    for (const char *at = line; (at = strstr(at, first)); at++) {
        *message = (struct kernel_message){.known = 0};
        if (match_rest(pattern, at, message))
            return true;
    }
    return false;
}

/* Recognizes a line, which ends with NUL. False if it matches no pattern. */
static bool parse_message(const char *line, struct kernel_message *message)
{
    const struct kernel_entry *entry = NULL;
    for (size_t i = 0; i < kernel_entry_count; i++) {
        if (kernel_entries[i].word)
            entry = &kernel_entries[i];
        else if (match_line(kernel_entries[i].pattern, line, message)) {
            message->entry = entry;
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

static bool add_message(struct kernel_log *log, const struct kernel_message *message,
                        const char *line)
{
    const uint64_t hash = bw_hash_path((const char *)message->values, sizeof message->values) ^
                          bw_hash_path(message->device, strlen(message->device)) * 3 ^
                          (uint64_t)(message->entry - kernel_entries) << 32 ^ message->known;
    const uint32_t position = bw_key_map_get(&log->positions, hash, UINT32_MAX);
    if (position != UINT32_MAX) {
        log->entries.items[position].count++;
        return true;
    }
    if (log->entries.count == MOST_MESSAGES) {
        log->dropped++;
        return true;
    }
    if (kernel_log_entries_reserve(&log->entries, 1) ||
        bw_key_map_put(&log->positions, hash, (uint32_t)log->entries.count))
        return false;
    log->entries.items[log->entries.count++] = (struct kernel_log_entry){
        .message = *message, .line = log->lines, .count = 1, .text = log->texts.length};
    bw_buffer_append(&log->texts, line, strlen(line) + 1);
    return !log->texts.failed;
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
    bool good = true;
    if (!file)
        return bw_error_from_errno(errno, "cannot open %s", name);
    while (good && read_line(file, line)) {
        struct kernel_message message;
        log->lines++;
        if (parse_message(line, &message)) {
            good = add_message(log, &message, line);
            continue;
        }
        log->unknown++;
        log->errors += strstr(line, "BTRFS error") || strstr(line, "BTRFS warning") ||
                       strstr(line, "BTRFS critical") || strstr(line, "BTRFS: error");
    }
    struct bw_error *error = NULL;
    if (!good)
        error = bw_error_no_memory();
    else if (ferror(file))
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
