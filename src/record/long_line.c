/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writing long lines. Owners are numbers, or names that the image itself has for them. */
#include "record/long_line.h"

#include <inttypes.h>
#include <sys/stat.h>

#include "base/decimal.h"
#include "base/human.h"

enum { LINKS_COLUMN = 3, OWNER_COLUMN = 5, SIZE_COLUMN = 12 };

/* Aligns the text from `at` to `end` to the right of a column, and adds a space after it. */
static char *align_right(char *at, char *end, size_t width)
{
    size_t length = (size_t)(end - at);
    if (length < width) {
        memmove(at + width - length, at, length);
        memset(at, ' ', width - length);
        end = at + width;
    }
    *end = ' ';
    return end + 1;
}

/* A name, aligned to the left as ls does; or else the number. */
static void append_owner(const char *name, uint32_t owner, struct bw_buffer *text)
{
    if (name)
        bw_buffer_format(text, "%-*s ", OWNER_COLUMN, name);
    else
        bw_buffer_format(text, "%*" PRIu32 " ", OWNER_COLUMN, owner);
}

static char *append_number(char *at, uint64_t value, size_t width)
{
    return align_right(at, bw_decimal(at, value), width);
}

/* The kernel keeps twenty bits of the minor number below the major one. */
static char *append_device(char *at, uint64_t value)
{
    char *end = bw_decimal(at, value >> 20 & 0xfff);
    *end++ = ',';
    *end++ = ' ';
    return align_right(at, bw_decimal(end, value & 0xfffff), SIZE_COLUMN);
}

static void append_unknown(const struct bw_walked_file *file, struct bw_buffer *text)
{
    /* By the numbers of BW_FILE_*. */
    static const char letters[] = "?-dcbpsl";
    bw_buffer_format(text, "%c????????? %*s %*s %*s %*s %-29s ",
                     file->type < sizeof letters - 1 ? letters[file->type] : '?', LINKS_COLUMN, "?",
                     OWNER_COLUMN, "?", OWNER_COLUMN, "?", SIZE_COLUMN, "?", "?");
}

void bw_long_line_append(const struct bw_walked_file *file, const struct bw_time_style *times,
                         struct bw_buffer *text)
{
    const struct bw_inode *inode = file->inode;
    char columns[BW_MODE_LENGTH + 5 * (BW_DECIMAL_ROOM + 3) + BW_DATE_LENGTH], *at = columns;
    if (!inode) {
        append_unknown(file, text);
        return;
    }
    at = bw_write_mode(at, inode->mode);
    *at++ = ' ';
    at = append_number(at, inode->link_count, LINKS_COLUMN);
    if (file->user || file->group) {
        bw_buffer_append(text, columns, (size_t)(at - columns));
        append_owner(file->user, inode->uid, text);
        append_owner(file->group, inode->gid, text);
        at = columns;
    } else {
        at = append_number(at, inode->uid, OWNER_COLUMN);
        at = append_number(at, inode->gid, OWNER_COLUMN);
    }
    at = S_ISCHR(inode->mode) || S_ISBLK(inode->mode) ? append_device(at, inode->device)
                                                      : append_number(at, inode->size, SIZE_COLUMN);
    if (!times)
        at = bw_write_date(at, bw_time_nanoseconds(&inode->mtime), ' ');
    bw_buffer_append(text, columns, (size_t)(at - columns));
    if (times)
        bw_time_style_append(times, &inode->mtime, text);
    bw_buffer_append_byte(text, ' ');
}
