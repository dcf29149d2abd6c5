/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The names that backup programs give to snapshots. Sources: the manuals of Snapper, which keeps
 * the snapshot N of a subvolume in .snapshots/N/snapshot and describes it in .snapshots/N/info.xml;
 * of btrbk, which names a snapshot NAME.YYYYMMDD[Thhmm[ss][+zzzz]][_N]; and of Timeshift, which has
 * one directory for each date.
 */
#include "cli/common/snapshot_names.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "btrfs-walk/file.h"

/* Snapper. */

enum { LONGEST_XML = 64 << 10 };

static bool read_text(struct bw_fs *fs, const char *path, char text[LONGEST_XML])
{
    struct bw_place place;
    struct bw_file *file;
    size_t got = 0;
    BW_AUTO_ERROR struct bw_error *error = bw_lookup(fs, NULL, path, false, &place);
    if (!error)
        error = bw_file_open(fs, &place, NULL, &file);
    if (error)
        return false;
    error = bw_file_read(file, 0, text, LONGEST_XML - 1, &got);
    bw_file_close(file);
    text[got] = '\0';
    return !error;
}

/* Appends characters, of which XML has replaced some. */
static void append_decoded(struct bw_buffer *text, const char *at, const char *end)
{
    static const struct {
        const char *name;
        char character;
    } entities[] = {
        {"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
    while (at < end) {
        size_t i = 0;
        while (i < 5 && strncmp(at, entities[i].name, strlen(entities[i].name)) != 0)
            i++;
        if (i < 5) {
            bw_buffer_append_byte(text, entities[i].character);
            at += strlen(entities[i].name);
        } else {
            bw_buffer_append_byte(text, *at++);
        }
    }
}

/* Appends the contents of an element, if the file contains it. */
static void append_element(struct bw_buffer *text, const char *xml, const char *before,
                           const char *name)
{
    char tag[32];
    snprintf(tag, sizeof tag, "<%s>", name);
    const char *begin = strstr(xml, tag);
    if (!begin)
        return;
    begin += strlen(tag);
    const char *end = strstr(begin, "</");
    if (!end || end == begin)
        return;
    bw_buffer_format(text, "%s", before);
    append_decoded(text, begin, end);
}

/* Whether a path ends with /N/snapshot; sets where N begins. */
static bool is_of_snapper(const char *path, const char **number)
{
    const char *end = strrchr(path, '/');
    if (!end || strcmp(end, "/snapshot") != 0 || end == path)
        return false;
    const char *at = end;
    while (at > path && isdigit((unsigned char)at[-1]))
        at--;
    *number = at;
    return at < end && at > path && at[-1] == '/';
}

static bool append_snapper(struct bw_buffer *text, struct bw_fs *fs, const char *path)
{
    const char *number;
    char info[PATH_MAX];
    if (!is_of_snapper(path, &number))
        return false;
    const size_t folder = strlen(path) - strlen("snapshot");
    BW_AUTO_FREE char *xml = malloc(LONGEST_XML);
    if ((size_t)snprintf(info, sizeof info, "%.*sinfo.xml", (int)folder, path) >= sizeof info ||
        !xml || !read_text(fs, info, xml) || !strstr(xml, "<snapshot>"))
        return false;
    bw_buffer_format(text, "snapper %d", atoi(number));
    append_element(text, xml, ", ", "date");
    append_element(text, xml, ": ", "description");
    return true;
}

/* btrbk and Timeshift. */

/* Matches the beginning of a text with a pattern, in which 0 is any digit. Returns the rest of the
 * text, or NULL. */
static const char *match_digits(const char *text, const char *pattern)
{
    for (; *pattern; pattern++, text++) {
        const bool is_digit = isdigit((unsigned char)*text);
        if (*pattern == '0' && !is_digit)
            return NULL;
        if (*pattern != '0' && *text != *pattern)
            return NULL;
    }
    return text;
}

static const char *skip_digits(const char *text, const char *pattern)
{
    const char *rest = match_digits(text, pattern);
    return rest ? rest : text;
}

static bool append_btrbk(struct bw_buffer *text, const char *path)
{
    const char *dot = strrchr(path, '.');
    if (!dot || dot == path || dot[-1] == '/')
        return false;
    const char *rest = match_digits(dot + 1, "00000000");
    if (!rest)
        return false;
    if (match_digits(rest, "T0000"))
        rest = skip_digits(skip_digits(rest, "T0000"), "00");
    if (*rest == '+' || *rest == '-')
        rest = skip_digits(rest + 1, "0000");
    if (match_digits(rest, "_0"))
        rest += 1 + strspn(rest + 1, "0123456789");
    if (*rest)
        return false;
    bw_buffer_format(text, "btrbk %s", dot + 1);
    return true;
}

static bool append_timeshift(struct bw_buffer *text, const char *path)
{
    static const char folder[] = "/timeshift-btrfs/snapshots/";
    const char *begin = strstr(path, folder);
    if (!begin)
        return false;
    begin += strlen(folder);
    const char *end = match_digits(begin, "0000-00-00_00-00-00");
    if (!end)
        return false;
    bw_buffer_format(text, "timeshift %.*s", (int)(end - begin), begin);
    return true;
}

void cmd_append_snapshot_name(struct bw_buffer *text, struct bw_fs *fs, const char *path)
{
    if (!append_snapper(text, fs, path) && !append_timeshift(text, path))
        append_btrbk(text, path);
}
