/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parses lists of bad sectors. Sources: the chapter "Mapfile structure" of the manual of GNU
 * ddrescue, and badblocks(8). Numbers in map files are decimal, hexadecimal (0x) or octal (0). The
 * first line of a map file that is not a comment contains the state of ddrescue, which may end with
 * the number of a pass.
 */
#include "base/bad_map.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"

enum { BLOCK = 1024 /* of a list of badblocks */ };

/* The parser of a file. */
struct reader {
    const char *file;
    unsigned line;
    bool has_state;  /* the line with ddrescue's state was read, so it is a map file */
    uint64_t ranges; /* found so far */
    bw_bad_range_visitor *visit;
    void *context;
};

static struct bw_error *malformed_line(const struct reader *reader)
{
    return bw_error_create(BW_ERROR_USAGE,
                           "%s:%u: neither a line of a ddrescue map file nor the number of a block",
                           reader->file, reader->line);
}

static bool parse_number(const char *word, int base, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(word, &end, base);
    return *word >= '0' && *word <= '9' && !*end && !errno;
}

static bool is_status(const char *word, const char *allowed)
{
    return *word && !word[1] && strchr(allowed, *word);
}

/* Parses a line: position, size and status; or in a list of badblocks, the number of a block,
 * which is always decimal. */
static struct bw_error *parse_line(struct reader *reader, char *line)
{
    enum { WORDS = 4 };
    char *words[WORDS], *rest = NULL;
    unsigned count = 0;
    uint64_t start, length;
    for (char *word = strtok_r(line, " \t\r", &rest); word && *word != '#' && count < WORDS;
         word = strtok_r(NULL, " \t\r", &rest))
        words[count++] = word;
    reader->line++;
    if (!count)
        return NULL;
    if (count == 1 && !reader->has_state) {
        length = BLOCK;
        if (!parse_number(words[0], 10, &start) || __builtin_mul_overflow(start, BLOCK, &start))
            return malformed_line(reader);
    } else {
        if (count < 2 || !parse_number(words[0], 0, &start))
            return malformed_line(reader);
        if (!reader->has_state && !reader->ranges && is_status(words[1], "?*/-FG+")) {
            reader->has_state = true;
            return NULL;
        }
        if (!reader->has_state || count != 3 || !parse_number(words[1], 0, &length) ||
            !is_status(words[2], "?*/-+"))
            return malformed_line(reader);
        if (*words[2] == '+') /* rescued */
            return NULL;
    }
    if (length > UINT64_MAX - start)
        return malformed_line(reader);
    reader->ranges += length != 0;
    return length ? reader->visit(reader->context, start, length) : NULL;
}

struct bw_error *bw_bad_map_read(const char *file, bw_bad_range_visitor *visit, void *context)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    struct reader reader = {.file = file, .visit = visit, .context = context};
    BW_TRY(bw_buffer_read_file(&text, file));
    bw_buffer_append_byte(&text, '\0');
    if (text.failed)
        return bw_error_no_memory();
    for (char *line = text.data, *end; line; line = end) {
        end = strchr(line, '\n');
        if (end)
            *end++ = '\0';
        BW_TRY(parse_line(&reader, line));
    }
    return NULL;
}
