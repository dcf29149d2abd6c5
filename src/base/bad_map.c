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

struct bw_error *bw_bad_map_read(const char *file, bw_bad_range_visitor *visit, void *context,
                                 struct bw_bad_map_extent *extent)
{
    enum { WORDS = 4 };
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    BW_TRY(bw_buffer_read_file(&text, file));
    BW_TRY(bw_buffer_terminate(&text));

    bool has_state = false; /* the line with ddrescue's state was read, so it is a map file */
    uint64_t ranges = 0;    /* found so far */
    struct bw_bad_map_extent known = {.end = UINT64_MAX};
    unsigned number = 0;
    for (char *line = text.data, *end; line; line = end) {
        char *words[WORDS], *rest = NULL;
        unsigned count = 0;
        end = strchr(line, '\n');
        if (end)
            *end++ = '\0';
        number++;
        for (char *word = strtok_r(line, " \t\r", &rest); word && *word != '#' && count < WORDS;
             word = strtok_r(NULL, " \t\r", &rest))
            words[count++] = word;
        if (!count)
            continue;

        /* Position, size and status; or in a list of badblocks, the number of a block, which is
         * always decimal. */
        uint64_t start, length = BLOCK;
        bool is_valid;
        if (count == 1 && !has_state) {
            is_valid =
                parse_number(words[0], 10, &start) && !__builtin_mul_overflow(start, BLOCK, &start);
        } else {
            is_valid = count >= 2 && parse_number(words[0], 0, &start);
            if (is_valid && !has_state && !ranges && is_status(words[1], "?*/-FG+")) {
                has_state = true;
                known.end = 0;
                continue;
            }
            is_valid = is_valid && has_state && count == 3 && parse_number(words[1], 0, &length) &&
                       is_status(words[2], "?*/-+");
            if (is_valid && !known.line && start != known.end)
                known.line = number;
            if (is_valid && length <= UINT64_MAX - start)
                known.end = start + length > known.end ? start + length : known.end;
            if (is_valid && *words[2] == '+') /* rescued */
                continue;
        }
        if (!is_valid || length > UINT64_MAX - start)
            return bw_error_create(
                BW_ERROR_USAGE,
                "%s:%u: neither a line of a ddrescue map file nor the number of a block", file,
                number);
        ranges += length != 0;
        if (length)
            BW_TRY(visit(context, start, length));
    }
    if (extent)
        *extent = known;
    return NULL;
}
