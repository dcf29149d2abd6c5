/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writing the listings of ls: names in their colours, and columns. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/decimal.h"
#include "base/human.h"
#include "base/utf8.h"
#include "cli/inspect/ls.h"

/* Colours: LS_COLORS as dircolors(1) makes it, and which of them a file has. Files with
 * capabilities have no colour of their own: that would take a look at the attributes of each. */

/* Names of the kinds, and what they are without LS_COLORS. */
static const struct {
    char name[3];
    const char *color;
} kinds[] = {
    [LS_LEFT] = {"lc", "\33["},    [LS_RIGHT] = {"rc", "m"},       [LS_END] = {"ec", NULL},
    [LS_RESET] = {"rs", "0"},      [LS_FILE] = {"fi", NULL},       [LS_FOLDER] = {"di", "01;34"},
    [LS_LINK] = {"ln", "01;36"},   [LS_FIFO] = {"pi", "33"},       [LS_SOCKET] = {"so", "01;35"},
    [LS_BLOCK] = {"bd", "01;33"},  [LS_CHAR] = {"cd", "01;33"},    [LS_MISSING] = {"mi", NULL},
    [LS_ORPHAN] = {"or", NULL},    [LS_EXECUTE] = {"ex", "01;32"}, [LS_SETUID] = {"su", "37;41"},
    [LS_SETGID] = {"sg", "30;43"}, [LS_STICKY] = {"st", "37;44"},  [LS_OTHERS] = {"ow", "34;42"},
    [LS_BOTH] = {"tw", "30;42"},   [LS_HARD] = {"mh", NULL},
};

/* Kinds of other programs, or of newer ones, and those that are left out. */
static bool is_ignored(const char *name)
{
    static const char others[][3] = {"no", "do", "ca", "cl"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (memcmp(others[i], name, 2) == 0)
            return true;
    return false;
}

/* Reading. Sequences are decoded in place, since they only become shorter. */

static unsigned digit_of(char byte)
{
    return byte >= '0' && byte <= '9'   ? (unsigned)(byte - '0')
           : byte >= 'a' && byte <= 'f' ? (unsigned)(byte - 'a' + 10)
           : byte >= 'A' && byte <= 'F' ? (unsigned)(byte - 'A' + 10)
                                        : 16;
}

static char number_of(const char **from, unsigned base)
{
    unsigned number = 0;
    for (; digit_of(**from) < base; ++*from)
        number = number * base + digit_of(**from);
    return (char)number;
}

/* The byte after a backslash. */
static char escaped(const char **from)
{
    static const char letters[] = "abefnrtv?_", bytes[] = "\a\b\33\f\n\r\t\v\177 ";
    if (**from >= '0' && **from <= '7')
        return number_of(from, 8);
    if (**from == 'x' || **from == 'X')
        return (++*from, number_of(from, 16));
    const char *letter = **from ? strchr(letters, **from) : NULL;
    const char byte = letter ? bytes[letter - letters] : **from;
    *from += **from != '\0';
    return byte;
}

/* Takes bytes up to one of `ends`; false if there is none. */
static bool parse_bytes(char **text, const char *ends, struct ls_color *color)
{
    const char *from = *text;
    char *to = *text;
    *color = (struct ls_color){to, 0};
    while (*from && !strchr(ends, *from)) {
        char byte = *from++;
        if (byte == '\\') {
            byte = escaped(&from);
        } else if (byte == '^' && *from) {
            byte = *from == '?' ? '\177' : (char)(*from & 31);
            from++;
        }
        *to++ = byte;
    }
    color->length = (size_t)(to - color->bytes);
    *text = (char *)(size_t)from;
    return strchr(ends, *from) != NULL;
}

static bool parse_suffix(struct ls_colors *colors, char **text)
{
    struct ls_suffix suffix;
    ++*text;
    if (!parse_bytes(text, "=", &suffix.suffix) || *(*text)++ != '=' ||
        !parse_bytes(text, ":", &suffix.color) ||
        !BW_ARRAY_RESERVE(colors->suffixes, colors->count, colors->capacity))
        return false;
    colors->suffixes[colors->count++] = suffix;
    return true;
}

static bool parse_kind(struct ls_colors *colors, char **text)
{
    char name[3] = "";
    struct ls_color color;
    if (!(*text)[0] || !(*text)[1] || (*text)[2] != '=')
        return false;
    memcpy(name, *text, 2);
    *text += 3;
    if (!parse_bytes(text, ":", &color))
        return false;
    for (size_t i = 0; i < LS_COLOR_KINDS; i++)
        if (strcmp(kinds[i].name, name) == 0) {
            colors->kinds[i] = color;
            return true;
        }
    return is_ignored(name);
}

static struct bw_error *read_colors(struct ls_colors *colors)
{
    const char *variable = getenv("LS_COLORS");
    for (size_t i = 0; i < LS_COLOR_KINDS; i++)
        colors->kinds[i] =
            (struct ls_color){kinds[i].color, kinds[i].color ? strlen(kinds[i].color) : 0};
    colors->text = strdup(variable ? variable : "");
    if (!colors->text)
        return bw_error_no_memory();
    for (char *text = colors->text; *text;) {
        if (*text == ':')
            text++;
        else if (!(*text == '*' ? parse_suffix : parse_kind)(colors, &text))
            return bw_error_create(BW_ERROR_USAGE, "no colours: cannot parse LS_COLORS at '%.8s'",
                                   text);
    }
    return NULL;
}

bool ls_colors_read(const struct cmd_common *common, struct ls_colors *colors)
{
    BW_AUTO_ERROR struct bw_error *error = read_colors(colors);
    if (error)
        cmd_tell((void *)(uintptr_t)common, BW_WARNING, error);
    return !error;
}

void ls_colors_free(struct ls_colors *colors)
{
    free(colors->suffixes);
    free(colors->text);
}

/* Choosing. */

static bool has(const struct ls_colors *colors, enum ls_color_kind kind)
{
    const struct ls_color *color = &colors->kinds[kind];
    return color->length > 2 || (color->length && strspn(color->bytes, "0") < color->length);
}

static enum ls_color_kind kind_of_file(const struct ls_colors *colors, uint32_t mode,
                                       uint32_t links)
{
    return mode & S_ISUID && has(colors, LS_SETUID)   ? LS_SETUID
           : mode & S_ISGID && has(colors, LS_SETGID) ? LS_SETGID
           : mode & 0111 && has(colors, LS_EXECUTE)   ? LS_EXECUTE
           : links > 1 && has(colors, LS_HARD)        ? LS_HARD
                                                      : LS_FILE;
}

static enum ls_color_kind kind_of_folder(const struct ls_colors *colors, uint32_t mode)
{
    const bool sticky = mode & S_ISVTX, others = mode & S_IWOTH;
    return sticky && others && has(colors, LS_BOTH) ? LS_BOTH
           : others && has(colors, LS_OTHERS)       ? LS_OTHERS
           : sticky && has(colors, LS_STICKY)       ? LS_STICKY
                                                    : LS_FOLDER;
}

static enum ls_color_kind kind_of(const struct ls_colors *colors, uint32_t mode, uint32_t links)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return kind_of_file(colors, mode, links);
    case S_IFDIR:
        return kind_of_folder(colors, mode);
    case S_IFLNK:
        return LS_LINK;
    case S_IFIFO:
        return LS_FIFO;
    case S_IFSOCK:
        return LS_SOCKET;
    case S_IFBLK:
        return LS_BLOCK;
    case S_IFCHR:
        return LS_CHAR;
    default:
        return LS_ORPHAN;
    }
}

/* Whether links are shown as what they lead to. */
static bool as_target(const struct ls_colors *colors)
{
    const struct ls_color *link = &colors->kinds[LS_LINK];
    return link->length == 6 && memcmp(link->bytes, "target", 6) == 0;
}

bool ls_colors_follow(const struct ls_colors *colors)
{
    return has(colors, LS_ORPHAN) || has(colors, LS_MISSING) || as_target(colors);
}

static const struct ls_color *color_of_name(const struct ls_colors *colors, const char *name,
                                            size_t length)
{
    for (size_t i = colors->count; i-- > 0;) {
        const struct ls_color *suffix = &colors->suffixes[i].suffix;
        if (suffix->length <= length &&
            strncasecmp(name + length - suffix->length, suffix->bytes, suffix->length) == 0)
            return &colors->suffixes[i].color;
    }
    return &colors->kinds[LS_FILE];
}

static const struct ls_color *color_of(const struct ls_colors *colors, const struct ls_entry *entry,
                                       bool target, const char *name, size_t length)
{
    const bool leads = entry->target_mode != 0;
    const bool is_other = target || (leads && as_target(colors));
    enum ls_color_kind kind =
        target && !leads && has(colors, LS_MISSING)
            ? LS_MISSING
            : kind_of(colors, is_other ? entry->target_mode : entry->inode.mode,
                      is_other ? 1 : entry->inode.link_count);
    if (kind == LS_FILE)
        return color_of_name(colors, name, length);
    if (kind == LS_LINK && !leads && (as_target(colors) || has(colors, LS_ORPHAN)))
        kind = LS_ORPHAN;
    return &colors->kinds[kind];
}

/* Writing. */

static void append_kind(const struct ls_colors *colors, enum ls_color_kind kind,
                        struct bw_buffer *text)
{
    if (colors->kinds[kind].length)
        bw_buffer_append(text, colors->kinds[kind].bytes, colors->kinds[kind].length);
}

static void append_end(const struct ls_colors *colors, struct bw_buffer *text)
{
    if (colors->kinds[LS_END].bytes) {
        append_kind(colors, LS_END, text);
        return;
    }
    append_kind(colors, LS_LEFT, text);
    append_kind(colors, LS_RESET, text);
    append_kind(colors, LS_RIGHT, text);
}

/* Appends a name, or the target of a link, in its colour. */
static void append_colored(struct ls_colors *colors, const struct ls_entry *entry, bool target,
                           const char *name, size_t length, const struct cmd_paths *paths,
                           struct bw_buffer *text)
{
    const struct ls_color *color = color_of(colors, entry, target, name, length);
    if (!color->bytes) {
        cmd_paths_append_name(paths, name, length, text);
        return;
    }
    if (!colors->used)
        append_end(colors, text);
    colors->used = true;
    append_kind(colors, LS_LEFT, text);
    bw_buffer_append(text, color->bytes, color->length);
    append_kind(colors, LS_RIGHT, text);
    cmd_paths_append_name(paths, name, length, text);
    append_end(colors, text);
}

/* Writing a listing: columns as wide as their widest value, as ls does. */

const struct timespec *ls_time_of(const struct bw_inode *inode, enum ls_time time)
{
    return time == LS_ATIME   ? &inode->atime
           : time == LS_CTIME ? &inode->ctime
           : time == LS_OTIME ? &inode->otime
                              : &inode->mtime;
}

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
        append_colored(&options->colors, entry, target, name, length, paths, text);
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
