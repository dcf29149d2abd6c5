/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writing a listing: columns as wide as their widest value, as ls does. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/decimal.h"
#include "base/human.h"
#include "base/utf8.h"
#include "cli/inspect/ls.h"

/* Bytes of the widest value of each column. */
struct widths {
    int number, acl, links, uid, gid, size, major, minor, time;
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

static int owner_width(const char *name)
{
    return (int)bw_utf8_count(name, strlen(name));
}

/* An owner or a group: its name, if it has one, or else its number. */
static void widen_for_owner(int *width, const char *name, uint32_t number)
{
    if (!name)
        widen(width, number);
    else if (owner_width(name) > *width)
        *width = owner_width(name);
}

static void widen_for_inode(struct widths *widths, const struct bw_inode *inode,
                            const struct ls_state *options)
{
    char size[BW_SIZE_ROOM];
    widen(&widths->links, inode->link_count);
    widen_for_owner(&widths->uid, bw_people_user(options->owners, inode->uid), inode->uid);
    widen_for_owner(&widths->gid, bw_people_group(options->owners, inode->gid), inode->gid);
    if (is_device(inode)) {
        widen(&widths->major, bw_inode_major(inode));
        widen(&widths->minor, bw_inode_minor(inode));
        return;
    }
    int length = write_size(size, inode->size, options->people);
    if (length > widths->size)
        widths->size = length;
}

/* Times of one style are equally long, or nearly so. */
static int time_width(const struct ls_state *options)
{
    BW_AUTO_BUFFER struct bw_buffer time = {0};
    bw_time_style_append(&options->times, &(struct timespec){0}, &time);
    return (int)time.length;
}

static struct widths widths_of(const struct ls_listing *listing, const struct ls_state *options)
{
    struct widths widths = {1, 0, 1, 1, 1, 1, 0, 0, time_width(options)};
    for (size_t i = 0; i < listing->count; i++) {
        widen(&widths.number, listing->entries[i].place.inode);
        widths.acl |= listing->entries[i].has_acl;
        if (listing->entries[i].has_inode)
            widen_for_inode(&widths, &listing->entries[i].inode, options);
    }
    /* "major, minor" is in the column of the size. */
    int device = widths.major ? widths.major + 2 + widths.minor : 0;
    if (device > widths.size)
        widths.size = device;
    return widths;
}

/* A space and a text, aligned to the right. Of long lists, printf() would be most of the work. */
static void append_right(int width, const char *bytes, int length, struct bw_buffer *text)
{
    bw_buffer_append_byte(text, ' ');
    for (; width > length; width--)
        bw_buffer_append_byte(text, ' ');
    bw_buffer_append(text, bytes, (size_t)length);
}

static void append_number(int width, uint64_t number, struct bw_buffer *text)
{
    char digits[BW_DECIMAL_ROOM];
    append_right(width, digits, (int)(bw_decimal(digits, number) - digits), text);
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
    append_right(widths->size, size, write_size(size, inode->size, people), text);
}

/* Names are aligned to the left, numbers to the right. */
static void append_owner(int width, const char *name, uint32_t number, struct bw_buffer *text)
{
    if (name)
        bw_buffer_format(text, " %s%*s", name, width - owner_width(name), "");
    else
        append_number(width, number, text);
}

static void append_columns(const struct ls_entry *entry, const struct widths *widths,
                           const struct ls_state *options, struct bw_buffer *text)
{
    const struct bw_inode *inode = &entry->inode;
    char mode[BW_MODE_LENGTH];
    if (!entry->has_inode) {
        bw_buffer_format(text, "??????????%*s %*s %*s %*s %*s %*s ", widths->acl, "", widths->links,
                         "?", widths->uid, "?", widths->gid, "?", widths->size, "?", widths->time,
                         "?");
        return;
    }
    bw_write_mode(mode, inode->mode);
    bw_buffer_append(text, mode, BW_MODE_LENGTH);
    if (widths->acl)
        bw_buffer_append_byte(text, entry->has_acl ? '+' : ' ');
    append_number(widths->links, inode->link_count, text);
    append_owner(widths->uid, bw_people_user(options->owners, inode->uid), inode->uid, text);
    append_owner(widths->gid, bw_people_group(options->owners, inode->gid), inode->gid, text);
    append_size(inode, widths, options->people, text);
    bw_buffer_append_byte(text, ' ');
    bw_time_style_append(&options->times, ls_time_of(inode, options->time), text);
    bw_buffer_append_byte(text, ' ');
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

/* What -F adds to a name; 0: nothing. */
static char indicator(uint32_t mode)
{
    return S_ISDIR(mode)                  ? '/'
           : S_ISLNK(mode)                ? '@'
           : S_ISFIFO(mode)               ? '|'
           : S_ISSOCK(mode)               ? '='
           : S_ISREG(mode) && mode & 0111 ? '*'
                                          : 0;
}

static void append_name(const struct ls_listing *listing, const struct ls_entry *entry, bool target,
                        const struct cmd_paths *paths, struct ls_state *options,
                        struct bw_buffer *text)
{
    const char *name = listing->bytes.data + (target ? entry->target : entry->name);
    const size_t length = target ? entry->target_length : entry->name_length;
    const uint32_t mode = target ? entry->target_mode : entry->inode.mode;
    if (options->color)
        ls_colors_append(&options->colors, entry, target, name, length, paths, text);
    else
        cmd_paths_append_name(paths, name, length, text);
    /* Of a link with its target, the target is classified. */
    if (options->classify && indicator(mode) && (target || !entry->target_length))
        bw_buffer_append_byte(text, indicator(mode));
}

void ls_listing_print(const struct ls_listing *listing, const struct cmd_paths *paths,
                      struct ls_state *options, bool total, struct bw_buffer *text)
{
    const struct widths widths = widths_of(listing, options);
    if (total && options->lines)
        append_total(listing, paths, options->people, text);
    for (size_t i = 0; i < listing->count; i++) {
        const struct ls_entry *entry = &listing->entries[i];
        if (options->inodes)
            bw_buffer_format(text, "%*" PRIu64 " ", widths.number, entry->place.inode);
        if (options->lines)
            append_columns(entry, &widths, options, text);
        append_name(listing, entry, false, paths, options, text);
        if (entry->target_length && options->lines) {
            bw_buffer_append(text, " -> ", 4);
            append_name(listing, entry, true, paths, options, text);
        }
        bw_buffer_append_byte(text, '\n');
    }
}
