/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `du --by`: the sums of the files that have the same owner, group, suffix or age.
 *
 * Each file of bw_du() is added to one sum, found by its label: the number of the owner, the
 * suffix, or the class of ages. Memory contains the sums, not the files. Names and owners come from
 * the image, so their number is limited: files with further labels are added to one sum for the
 * rest.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash_table.h"
#include "base/human.h"
#include "base/vector.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/subvolume.h"
#include "cli/common/generations.h"
#include "cli/common/monitor.h"
#include "cli/inspect/du.h"

enum {
    MOST_SUMS = 1 << 16,
    LONGEST_SUFFIX = 16, /* longer words after a dot are part of the name */
    LABEL_ROOM = LONGEST_SUFFIX + 8,
};

#define DAY (86400 * INT64_C(1000000000))

/* Classes of ages; the first that a file is younger than. */
static const struct {
    const char *name;
    int64_t below;
} ages[] = {
    {"future", 0},          {"<1d", DAY},           {"<7d", 7 * DAY},
    {"<30d", 30 * DAY},     {"<90d", 90 * DAY},     {"<1y", 365 * DAY},
    {"<2y", 2 * 365 * DAY}, {"<5y", 5 * 365 * DAY}, {">=5y", INT64_MAX},
};

enum { AGES = sizeof ages / sizeof *ages };

static const char rest[] = "(other)";

struct sum {
    char label[LABEL_ROOM];    /* empty: the value is unknown, or there is no suffix */
    size_t order;              /* of ages */
    uint32_t id;               /* of owners */
    struct bw_filesuminfo row; /* without the value that the label stands for */
};

BW_VECTOR(sums, struct sum *);

BW_MAP(sum_map, struct bw_bytes, struct sum *, bw_bytes);

/* A running `du --by`. */
struct summing {
    unsigned by;
    bool sharing_known;
    int64_t present; /* that ages are relative to; nanoseconds since 1970 */
    struct sums sums;
    struct sum_map by_label; /* its keys are the labels of the sums */
};

/*
 * The suffix of the last name in a path, in lower case: the word after the last dot, unless that is
 * a number, as in libc.so.6 and in rotated logs; then the word before. Empty if there is none.
 */
static void set_suffix(char label[LABEL_ROOM], const char *path, size_t length)
{
    const char *slash = memrchr(path, '/', length);
    const char *name = slash ? slash + 1 : path, *end = path + length;
    label[0] = '\0';
    while (end > name) {
        const char *dot = memrchr(name, '.', (size_t)(end - name));
        if (!dot || dot == name || end - dot - 1 > LONGEST_SUFFIX)
            return;
        bool is_word = end > dot + 1, is_number = true;
        for (const char *at = dot + 1; at < end; at++) {
            const char lower = (char)(*at | 0x20);
            const bool is_digit = *at >= '0' && *at <= '9';
            is_word = is_word && (is_digit || (lower >= 'a' && lower <= 'z') || strchr("_-+", *at));
            is_number = is_number && is_digit;
        }
        if (!is_word)
            return;
        if (!is_number) {
            for (const char *at = dot + 1; at < end; at++)
                *label++ = (char)(*at >= 'A' && *at <= 'Z' ? *at | 0x20 : *at);
            *label = '\0';
            return;
        }
        end = dot;
    }
}

/* Finds the sum with a label, or adds it. */
static struct bw_error *find_sum(struct summing *summing, const struct sum *like,
                                 struct sum **result)
{
    struct bw_bytes label = {like->label, strlen(like->label)};
    *result = sum_map_get(&summing->by_label, label, NULL);
    if (!*result && summing->sums.count >= MOST_SUMS)
        *result = sum_map_get(&summing->by_label, (struct bw_bytes){rest, strlen(rest)}, NULL);
    if (*result)
        return NULL;
    struct sum *sum = malloc(sizeof *sum);
    if (!sum)
        return bw_error_no_memory();
    *sum = *like;
    sum->row = (struct bw_filesuminfo){.uid = BW_ABSENT,
                                       .gid = BW_ABSENT,
                                       .oldest_mtime = BW_ABSENT_SIGNED,
                                       .newest_mtime = BW_ABSENT_SIGNED};
    if (summing->sums.count >= MOST_SUMS)
        strcpy(sum->label, rest);
    label = (struct bw_bytes){sum->label, strlen(sum->label)};
    struct bw_error *error = sums_push(&summing->sums, sum);
    if (error) {
        free(sum);
        return error;
    }
    *result = sum;
    return sum_map_put(&summing->by_label, label, sum);
}

static struct bw_error *add_entry(void *context, const struct bw_du_entry *entry)
{
    struct summing *summing = context;
    const struct bw_inode *inode = entry->inode;
    struct sum like = {.label = "", .order = AGES}, *sum;
    if (entry->place.type != BW_FILE_REGULAR)
        return NULL;

    /* The label of the file, and the value that it stands for. */
    const int64_t time = inode ? bw_time_nanoseconds(&inode->mtime) : 0;
    if (summing->by == DU_BY_TYPE) {
        set_suffix(like.label, entry->path, entry->path_length);
    } else if (inode && summing->by == DU_BY_AGE) {
        int64_t age;
        if (__builtin_sub_overflow(summing->present, time, &age))
            age = time > 0 ? INT64_MIN : INT64_MAX - 1;
        for (like.order = 0; like.order < AGES - 1 && age >= ages[like.order].below;)
            like.order++;
        strcpy(like.label, ages[like.order].name);
    } else if (inode) {
        like.id = summing->by == DU_BY_USER ? inode->uid : inode->gid;
        snprintf(like.label, sizeof like.label, "%" PRIu32, like.id);
    }

    BW_TRY(find_sum(summing, &like, &sum));
    summing->sharing_known = entry->sharing_known;
    struct bw_filesuminfo *row = &sum->row;
    row->files++;
    row->total += entry->total;
    row->exclusive += entry->exclusive;
    row->shared += entry->shared;
    row->extent_count += entry->extent_count;
    row->disk += entry->disk;
    if (!inode)
        return NULL;
    row->size += inode->size;
    if (row->newest_mtime == BW_ABSENT_SIGNED || time > row->newest_mtime)
        row->newest_mtime = time;
    if (row->oldest_mtime == BW_ABSENT_SIGNED || time < row->oldest_mtime)
        row->oldest_mtime = time;
    return NULL;
}

/* By age, or the largest first. */
static int compare_sums(const void *left, const void *right)
{
    const struct sum *a = *(struct sum *const *)left, *b = *(struct sum *const *)right;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    if (a->order == AGES && a->row.total != b->row.total)
        return a->row.total > b->row.total ? -1 : 1;
    return strcmp(a->label, b->label);
}

struct bw_error *du_write_sums(struct cmd_format *format, void *context)
{
    const struct du *du = context;
    struct bw_fs *fs = format->session.fs;
    struct summing summing = {.by = du->by};
    struct bw_user_names *names = NULL;
    const struct bw_subvolume *from = NULL;
    BW_TRY(cmd_selection_prepare(&du->selection, fs));
    if (du->selection.subvolume)
        BW_TRY(bw_subvolume_by_name(fs, du->selection.subvolume, &from));
    /* Unlike the time of this machine, this is the same whenever the image is read. */
    BW_TRY(cmd_last_change(fs, &summing.present));
    if (du->by == DU_BY_USER || du->by == DU_BY_GROUP)
        BW_TRY(bw_user_names_open(fs, from, &names));

    const struct bw_du_options how = {.visit = add_entry, .context = &summing, .inodes = true};
    struct bw_error *error = du_visit(format, du, how);
    sums_sort(&summing.sums, compare_sums);
    for (size_t i = 0; i < summing.sums.count; i++) {
        struct sum *sum = summing.sums.items[i];
        struct bw_filesuminfo *row = &sum->row;
        const bool is_known = *sum->label && strcmp(sum->label, rest) != 0;
        const char *label = *sum->label ? sum->label : NULL;
        if (!summing.sharing_known)
            row->exclusive = row->shared = BW_ABSENT;
        switch (du->by) {
        case DU_BY_TYPE:
            row->suffix = label;
            break;
        case DU_BY_AGE:
            row->age = label;
            break;
        case DU_BY_USER:
            row->user = is_known ? bw_user_names_user(names, sum->id) : label;
            row->uid = is_known ? sum->id : BW_ABSENT;
            break;
        default:
            row->group = is_known ? bw_user_names_group(names, sum->id) : label;
            row->gid = is_known ? sum->id : BW_ABSENT;
        }
        if (!error)
            error = cmd_format_write(format, row, sizeof *row);
        free(sum);
    }
    sum_map_free(&summing.by_label);
    sums_free(&summing.sums);
    bw_user_names_close(names);
    return error;
}

const char *du_sum_columns(const struct du *du)
{
    static const char *const columns[] = {
        [DU_BY_USER] = "files,size,total,exclusive,disk,uid,user",
        [DU_BY_GROUP] = "files,size,total,exclusive,disk,gid,group",
        [DU_BY_TYPE] = "files,size,total,exclusive,disk,suffix",
        [DU_BY_AGE] = "files,size,total,exclusive,disk,age",
    };
    return columns[du->by];
}
