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

static bool parse_number(const char *word, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(word, &end, 0);
    return *word >= '0' && *word <= '9' && !*end && !errno;
}

static bool is_status(const char *word, const char *allowed)
{
    return *word && !word[1] && strchr(allowed, *word);
}

static struct bw_error *visit_range(struct reader *reader, uint64_t start, uint64_t length)
{
    if (length > UINT64_MAX - start)
        return malformed_line(reader);
    reader->ranges += length != 0;
    return length ? reader->visit(reader->context, start, length) : NULL;
}

/* Parses a line: position, size and status; or in a list of badblocks, the number of a block,
 * which is always decimal. */
static struct bw_error *parse_words(struct reader *reader, char *const words[], unsigned count)
{
    uint64_t start, length;
    if (count == 1 && !reader->has_state) {
        char *end;
        errno = 0;
        const bool is_number = *words[0] >= '0' && *words[0] <= '9';
        start = strtoull(words[0], &end, 10);
        return is_number && !*end && !errno && !__builtin_mul_overflow(start, BLOCK, &start)
                   ? visit_range(reader, start, BLOCK)
                   : malformed_line(reader);
    }
    if (count < 2 || !parse_number(words[0], &start))
        return malformed_line(reader);
    if (!reader->has_state && !reader->ranges && is_status(words[1], "?*/-FG+")) {
        reader->has_state = true;
        return NULL;
    }
    if (!reader->has_state || count != 3 || !parse_number(words[1], &length) ||
        !is_status(words[2], "?*/-+"))
        return malformed_line(reader);
    return *words[2] == '+' ? NULL : visit_range(reader, start, length);
}

static struct bw_error *parse_line(struct reader *reader, char *line)
{
    enum { WORDS = 4 };
    char *words[WORDS], *rest = NULL;
    unsigned count = 0;
    for (char *word = strtok_r(line, " \t\r", &rest); word && *word != '#' && count < WORDS;
         word = strtok_r(NULL, " \t\r", &rest))
        words[count++] = word;
    reader->line++;
    return count ? parse_words(reader, words, count) : NULL;
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
