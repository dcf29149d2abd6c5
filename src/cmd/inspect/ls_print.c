/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writing a listing: columns as wide as their widest value, as `ls -ln --time-style=full-iso`
 * does. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/decimal.h"
#include "base/human.h"
#include "cmd/inspect/ls.h"

/* Bytes of the widest value of each column. */
struct widths {
    int number, acl, links, uid, gid, size, major, minor;
};

static void widen(int *width, uint64_t value)
{
    char digits[BW_DECIMAL_ROOM];
    int length = (int)(bw_decimal(digits, value) - digits);
    if (length > *width)
        *width = length;
}

static bool is_device(const struct bw_inode *inode)
{
    return S_ISCHR(inode->mode) || S_ISBLK(inode->mode);
}

/* Writes a size, ended by NUL, and returns its length. */
static int write_size(char text[BW_SIZE_ROOM], uint64_t size, bool people)
{
    char *end = (people ? bw_write_short_size : bw_decimal)(text, size);
    *end = '\0';
    return (int)(end - text);
}

static void widen_for_inode(struct widths *widths, const struct bw_inode *inode, bool people)
{
    char size[BW_SIZE_ROOM];
    widen(&widths->links, inode->link_count);
    widen(&widths->uid, inode->uid);
    widen(&widths->gid, inode->gid);
    if (is_device(inode)) {
        widen(&widths->major, bw_inode_major(inode));
        widen(&widths->minor, bw_inode_minor(inode));
        return;
    }
    int length = write_size(size, inode->size, people);
    if (length > widths->size)
        widths->size = length;
}

static struct widths widths_of(const struct ls_listing *listing, bool people)
{
    struct widths widths = {1, 0, 1, 1, 1, 1, 0, 0};
    for (size_t i = 0; i < listing->count; i++) {
        widen(&widths.number, listing->entries[i].place.inode);
        widths.acl |= listing->entries[i].has_acl;
        if (listing->entries[i].has_inode)
            widen_for_inode(&widths, &listing->entries[i].inode, people);
    }
    /* "major, minor" is in the column of the size. */
    int device = widths.major ? widths.major + 2 + widths.minor : 0;
    if (device > widths.size)
        widths.size = device;
    return widths;
}

static void append_size(const struct bw_inode *inode, const struct widths *widths, bool people,
                        struct bw_buffer *text)
{
    char size[BW_SIZE_ROOM];
    if (is_device(inode)) {
        bw_buffer_format(text, " %*u, %*u", widths->size - 2 - widths->minor, bw_inode_major(inode),
                         widths->minor, bw_inode_minor(inode));
        return;
    }
    write_size(size, inode->size, people);
    bw_buffer_format(text, " %*s", widths->size, size);
}

static void append_columns(const struct ls_entry *entry, const struct widths *widths, bool people,
                           struct bw_buffer *text)
{
    const struct bw_inode *inode = &entry->inode;
    char mode[BW_MODE_LENGTH], time[BW_DATE_LENGTH];
    if (!entry->has_inode) {
        bw_buffer_format(text, "??????????%*s %*s %*s %*s %*s %35s ", widths->acl, "",
                         widths->links, "?", widths->uid, "?", widths->gid, "?", widths->size, "?",
                         "?");
        return;
    }
    bw_write_mode(mode, inode->mode);
    bw_buffer_format(text, "%.*s%*s %*" PRIu32 " %*" PRIu32 " %*" PRIu32, BW_MODE_LENGTH, mode,
                     widths->acl, entry->has_acl ? "+" : "", widths->links, inode->link_count,
                     widths->uid, inode->uid, widths->gid, inode->gid);
    append_size(inode, widths, people, text);
    bw_write_date(time, bw_time_nanoseconds(&inode->mtime), ' ');
    bw_buffer_format(text, " %.*s +0000 ", BW_DATE_LENGTH, time);
}

static void append_total(const struct ls_listing *listing, const struct cmd_paths *paths,
                         bool people, struct bw_buffer *text)
{
    struct bw_superblock_info superblock;
    uint64_t total = 0;
    char size[BW_SIZE_ROOM];
    bw_fs_superblock(paths->session.fs, &superblock);
    for (size_t i = 0; i < listing->count; i++)
        total += (listing->entries[i].inode.bytes + superblock.sectorsize - 1) /
                 superblock.sectorsize * superblock.sectorsize;
    write_size(size, people ? total : total / 1024, people);
    bw_buffer_format(text, "total %s\n", size);
}

void ls_listing_print(const struct ls_listing *listing, const struct cmd_paths *paths,
                      const struct ls_state *options, bool total, struct bw_buffer *text)
{
    const struct widths widths = widths_of(listing, options->people);
    if (total && options->lines)
        append_total(listing, paths, options->people, text);
    for (size_t i = 0; i < listing->count; i++) {
        const struct ls_entry *entry = &listing->entries[i];
        if (options->inodes)
            bw_buffer_format(text, "%*" PRIu64 " ", widths.number, entry->place.inode);
        if (options->lines)
            append_columns(entry, &widths, options->people, text);
        cmd_paths_append_name(paths, listing->bytes.data + entry->name, entry->name_length, text);
        if (entry->target_length) {
            bw_buffer_append(text, " -> ", 4);
            cmd_paths_append_name(paths, listing->bytes.data + entry->target, entry->target_length,
                                  text);
        }
        bw_buffer_append_byte(text, '\n');
    }
}
