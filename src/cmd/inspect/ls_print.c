/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writing a listing: columns as wide as what stands in them, as `ls -ln --time-style=full-iso`
 * does. */
#include <inttypes.h>
#include <stdio.h>

#include "base/human.h"
#include "cmd/inspect/inode_text.h"
#include "cmd/inspect/ls.h"
#include "fs/fs.h"

/* Bytes of the widest value of each column. */
struct widths {
    int number, acl, links, uid, gid, size, major, minor;
};

static void widen(int *width, uint64_t value)
{
    int digits = 1;
    for (; value >= 10; value /= 10)
        digits++;
    if (digits > *width)
        *width = digits;
}

static void widen_for_inode(struct widths *widths, const struct bw_inode *inode, bool people)
{
    char size[CMD_SIZE_LENGTH];
    widen(&widths->links, inode->link_count);
    widen(&widths->uid, inode->uid);
    widen(&widths->gid, inode->gid);
    if (cmd_mode_is_device(inode->mode)) {
        widen(&widths->major, bw_inode_major(inode));
        widen(&widths->minor, bw_inode_minor(inode));
        return;
    }
    cmd_size_text(inode->size, people, size);
    if ((int)strlen(size) > widths->size)
        widths->size = (int)strlen(size);
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
    /* "major, minor" stands in the column of the size. */
    int device = widths.major ? widths.major + 2 + widths.minor : 0;
    if (device > widths.size)
        widths.size = device;
    return widths;
}

static void append_size(const struct bw_inode *inode, const struct widths *widths, bool people,
                        struct bw_buffer *text)
{
    char size[CMD_SIZE_LENGTH];
    if (cmd_mode_is_device(inode->mode)) {
        bw_buffer_format(text, " %*" PRIu32 ", %*" PRIu32, widths->size - 2 - widths->minor,
                         bw_inode_major(inode), widths->minor, bw_inode_minor(inode));
        return;
    }
    cmd_size_text(inode->size, people, size);
    bw_buffer_format(text, " %*s", widths->size, size);
}

/* "2024-02-29 12:00:00.000000000 +0000" */
static void append_time(int64_t time, struct bw_buffer *text)
{
    char value[BW_DATE_LENGTH];
    bw_write_date(value, time, ' ');
    bw_buffer_format(text, " %.*s +0000 ", BW_DATE_LENGTH, value);
}

static void append_columns(const struct ls_entry *entry, const struct widths *widths, bool people,
                           struct bw_buffer *text)
{
    const struct bw_inode *inode = &entry->inode;
    char mode[CMD_MODE_LENGTH + 1];
    if (!entry->has_inode) {
        bw_buffer_format(text, "??????????%*s %*s %*s %*s %*s %35s ", widths->acl, "",
                         widths->links, "?", widths->uid, "?", widths->gid, "?", widths->size, "?",
                         "?");
        return;
    }
    cmd_mode_text(inode->mode, mode);
    bw_buffer_format(text, "%s%*s %*" PRIu32 " %*" PRIu32 " %*" PRIu32, mode, widths->acl,
                     entry->has_acl ? "+" : "", widths->links, inode->link_count, widths->uid,
                     inode->uid, widths->gid, inode->gid);
    append_size(inode, widths, people, text);
    append_time(bw_time_nanoseconds(&inode->mtime), text);
}

static void append_total(const struct ls_listing *listing, const struct cmd_paths *paths,
                         bool people, struct bw_buffer *text)
{
    uint64_t total = 0, sector = paths->session.fs->superblock.sectorsize;
    char size[CMD_SIZE_LENGTH];
    for (size_t i = 0; i < listing->count; i++)
        total += (listing->entries[i].inode.bytes + sector - 1) / sector * sector;
    cmd_size_text(people ? total : total / 1024, people, size);
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
