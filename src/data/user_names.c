/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The names of users and groups in an image: /etc/passwd and /etc/group, read whole and kept as
 * sorted arrays. They come from the subvolume that the caller prefers, else from the default or the
 * top-level one, else from the first that has them and is not a snapshot.
 */
#include "btrfs-walk/subvolume.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/escape.h"
#include "base/human.h"
#include "base/search.h"
#include "base/vector.h"
#include "btrfs-walk/inode.h"
#include "data/reader.h"

enum { LARGEST_FILE = 8 << 20, LONGEST_NAME = 255 };

struct named_id {
    uint32_t number;
    uint32_t line;    /* of several with one number, the first counts */
    const char *name; /* in the text */
};

BW_VECTOR(named_ids, struct named_id);

/* The names in a file. All zeros: none. */
struct id_list {
    struct bw_buffer text;  /* of the file; a NUL follows each name */
    struct named_ids names; /* by number, then line */
};

struct bw_user_names {
    struct id_list users, groups;
    char *place;
};

/* Adds the name in a line NAME:PASSWORD:NUMBER..., unless it is invalid, or cannot be printed in a
 * column without escaping. */
static struct bw_error *add_line(struct id_list *list, char *line, struct bw_buffer *escaped)
{
    char *colon = strchr(line, ':');
    const char *digits = colon ? strchr(colon + 1, ':') : NULL;
    uint64_t number;
    if (!digits)
        return NULL;
    digits++;
    if (!bw_parse_digits(&digits, 10, &number) || number > UINT32_MAX ||
        (*digits && *digits != ':'))
        return NULL;
    *colon = '\0';
    const size_t length = strlen(line);
    if (!length || length > LONGEST_NAME)
        return NULL;
    escaped->length = 0;
    bw_escape_append(escaped, line, length);
    if (escaped->length != length || memcmp(escaped->data, line, length) != 0)
        return NULL;
    return named_ids_push(&list->names,
                          (struct named_id){(uint32_t)number, (uint32_t)list->names.count, line});
}

/* By number, then by line. */
static int compare_ids(const void *a, const void *b)
{
    const struct named_id *left = a, *right = b;
    return BW_COMPARE_ALL(((uint64_t[]){left->number, left->line}),
                          ((uint64_t[]){right->number, right->line}));
}

/* Reads a file, up to a limit, and adds its lines to a list. */
static struct bw_error *read_list(struct bw_fs *fs, const struct bw_place *place,
                                  struct id_list *list)
{
    struct bw_buffer *text = &list->text;
    BW_TRY(bw_data_read_text(fs, place, LARGEST_FILE, text));
    BW_TRY(bw_buffer_terminate(text));

    BW_AUTO_BUFFER struct bw_buffer escaped = {0};
    for (char *line = text->data; line && *line;) {
        char *end = line + strcspn(line, "\n");
        const bool is_last = !*end;
        *end = '\0';
        BW_TRY(add_line(list, line, &escaped));
        line = is_last ? NULL : end + 1;
    }
    named_ids_sort(&list->names, compare_ids);
    return NULL;
}

/* The subvolume that has the files. */

static bool has_users(const struct bw_fs *fs, const struct bw_subvolume *from)
{
    struct bw_place place;
    BW_AUTO_ERROR struct bw_error *error = bw_lookup(fs, from, "/etc/passwd", true, &place);
    return !error && place.type == BW_FILE_REGULAR;
}

/* The subvolume whose names are used; NULL: none has any. */
static const struct bw_subvolume *find_subvolume(struct bw_fs *fs, const struct bw_subvolume *from)
{
    const struct bw_subvolume *preferred[] = {from, NULL, bw_subvolume_by_id(fs, BW_TOP_SUBVOLUME)};
    const struct bw_subvolume *next = NULL;
    bw_error_free(bw_subvolume_by_name(fs, "default", &preferred[1]));
    for (size_t i = 0; i < sizeof preferred / sizeof *preferred; i++)
        if (preferred[i] && has_users(fs, preferred[i]))
            return preferred[i];
    while ((next = bw_subvolume_next(fs, next))) {
        struct bw_subvolume_info info;
        BW_AUTO_ERROR struct bw_error *error = bw_subvolume_get(fs, next, &info);
        if (!error && !info.is_snapshot && !info.is_deleted && has_users(fs, next))
            return next;
    }
    return NULL;
}

struct bw_error *bw_user_names_open(struct bw_fs *fs, const struct bw_subvolume *from,
                                    struct bw_user_names **result)
{
    struct bw_place place;
    size_t length;
    struct bw_user_names *names = calloc(1, sizeof *names);
    if (!names)
        return bw_error_no_memory();
    const struct bw_subvolume *found = find_subvolume(fs, from);
    struct bw_error *error = NULL;
    if (found)
        error = bw_subvolume_path(fs, found, &names->place, &length);
    if (found && !error && length == 1)
        *names->place = '\0';
    if (found && !error)
        error = bw_lookup(fs, found, "/etc/passwd", true, &place);
    if (found && !error)
        error = read_list(fs, &place, &names->users);
    if (found && !error) {
        BW_AUTO_ERROR struct bw_error *missing = bw_lookup(fs, found, "/etc/group", true, &place);
        if (!missing)
            error = read_list(fs, &place, &names->groups);
    }
    if (error) {
        bw_user_names_close(names);
        return bw_error_prefix(error, "names of users and groups");
    }
    *result = names;
    return NULL;
}

void bw_user_names_close(struct bw_user_names *names)
{
    if (!names)
        return;
    bw_buffer_free(&names->users.text);
    named_ids_free(&names->users.names);
    bw_buffer_free(&names->groups.text);
    named_ids_free(&names->groups.names);
    free(names->place);
    free(names);
}

const char *bw_user_names_place(const struct bw_user_names *names)
{
    return names->place ? names->place : "";
}

/* Asking. */

/* The first of that number. */
static const char *find_name(const struct id_list *list, uint32_t number)
{
    const struct named_id *names = list->names.items;
    const size_t count = list->names.count;
    const size_t index = BW_FIRST_INDEX(i, count, names[i].number >= number);
    return index < count && names[index].number == number ? names[index].name : NULL;
}

static bool find_number(const struct id_list *list, const char *name, uint32_t *number)
{
    uint32_t line = UINT32_MAX;
    for (size_t i = 0; i < list->names.count; i++)
        if (list->names.items[i].line < line && strcmp(list->names.items[i].name, name) == 0) {
            line = list->names.items[i].line;
            *number = list->names.items[i].number;
        }
    return line != UINT32_MAX;
}

const char *bw_user_names_user(const struct bw_user_names *names, uint32_t number)
{
    return names ? find_name(&names->users, number) : NULL;
}

const char *bw_user_names_group(const struct bw_user_names *names, uint32_t number)
{
    return names ? find_name(&names->groups, number) : NULL;
}

bool bw_user_names_find_user(const struct bw_user_names *names, const char *name, uint32_t *number)
{
    return find_number(&names->users, name, number);
}

bool bw_user_names_find_group(const struct bw_user_names *names, const char *name, uint32_t *number)
{
    return find_number(&names->groups, name, number);
}
