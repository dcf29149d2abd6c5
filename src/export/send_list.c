/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The list of subvolumes to send: which belong together, their order, and what each is a difference
 * from. A subvolume that was sent has the UUID of its stream; it becomes the parent, or a clone
 * source, of those after it.
 */
#include "export/send_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "btrfs-walk/fs.h"

/* Clone sources besides the parent. For each extent with several references, all of them are
 * searched. */
enum { MOST_SOURCES = 16 };

static struct bw_error *add(struct bw_send_list *list, struct bw_fs *fs,
                            const struct bw_subvolume *subvolume, struct bw_fs *past)
{
    static const char *const reasons[] = {
        [BW_SEND_OWN] = NULL,
        [BW_SEND_WRITABLE] = "it is writable, and may change under the same UUID",
        [BW_SEND_PAST] = "it is an older state of the subvolume",
        [BW_SEND_NO_UUID] = "it has none",
        [BW_SEND_CHANGED] = "it was changed after it was received",
    };
    struct bw_sent sent = {.side = {.fs = fs, .subvolume = subvolume}, .past = past};
    struct bw_send_identity identity;
    struct bw_error *error = bw_subvolume_get(fs, subvolume, &sent.info);
    if (!error)
        error = bw_send_identity(fs, subvolume, &identity);
    if (!error) {
        sent.reason = reasons[identity.reason];
        error = bw_sent_list_push(&list->list, sent);
    }
    if (error)
        bw_fs_close(past);
    return error;
}

struct bw_error *bw_send_list_add(struct bw_send_list *list, struct bw_fs *fs,
                                  const struct bw_subvolume *subvolume, struct bw_fs *past)
{
    BW_TRY(add(list, fs, subvolume, past));
    list->send_count++;
    return NULL;
}

struct bw_error *bw_send_list_add_base(struct bw_send_list *list, struct bw_fs *fs,
                                       const struct bw_subvolume *subvolume, struct bw_fs *past,
                                       bool force)
{
    BW_TRY(add(list, fs, subvolume, past));
    struct bw_sent *base = &list->list.items[list->list.count - 1];
    const struct bw_bytes name = bw_sent_name(base);
    base->is_there = true;
    if (force || !base->reason)
        return NULL;
    return bw_error_create(BW_ERROR_USAGE,
                           "the receiver may have other contents under the UUID of %.*s: %s; "
                           "--force uses it nevertheless",
                           (int)name.length, name.data, base->reason);
}

static bool is_same_uuid(const uint8_t a[BW_UUID_SIZE], const uint8_t b[BW_UUID_SIZE])
{
    static const uint8_t zeros[BW_UUID_SIZE];
    return memcmp(a, b, BW_UUID_SIZE) == 0 && memcmp(a, zeros, BW_UUID_SIZE) != 0;
}

struct bw_error *bw_send_list_add_relatives(struct bw_send_list *list, struct bw_fs *fs)
{
    /* Each round adds the snapshots of the subvolumes in the list, and the subvolumes inside them,
     * until there are no more. */
    for (size_t before = SIZE_MAX; before != list->list.count;) {
        const struct bw_subvolume *next = NULL;
        before = list->list.count;
        while ((next = bw_subvolume_next(fs, next))) {
            struct bw_subvolume_info info;
            bool is_relative = false, is_listed = false;
            BW_TRY(bw_subvolume_get(fs, next, &info));
            for (size_t i = 0; i < list->list.count && !is_listed; i++) {
                const struct bw_subvolume_info *other = &list->list.items[i].info;
                is_listed = other->id == info.id;
                is_relative |=
                    info.parent == other->id || is_same_uuid(info.parent_uuid, other->uuid);
            }
            if (is_relative && !is_listed && !info.is_deleted)
                BW_TRY(bw_send_list_add(list, fs, next, NULL));
        }
    }
    return NULL;
}

static struct bw_bytes usual_name(const struct bw_sent *sent)
{
    static const char top[] = "toplevel";
    if (!sent->info.name_length)
        return (struct bw_bytes){top, strlen(top)};
    return (struct bw_bytes){sent->info.name, sent->info.name_length};
}

struct bw_bytes bw_sent_name(const struct bw_sent *sent)
{
    return sent->name ? (struct bw_bytes){sent->name, strlen(sent->name)} : usual_name(sent);
}

struct bw_error *bw_send_list_name(struct bw_send_list *list)
{
    for (size_t i = 0; i < list->list.count; i++) {
        struct bw_sent *subvolume = &list->list.items[i];
        const struct bw_bytes name = usual_name(subvolume);
        bool unique = true;
        size_t length;
        for (size_t j = 0; j < list->list.count; j++) {
            const struct bw_bytes other = usual_name(&list->list.items[j]);
            unique &= i == j || name.length != other.length ||
                      memcmp(name.data, other.data, name.length) != 0;
        }
        if (unique)
            continue;
        if (!subvolume->info.name_length) { /* another subvolume is called "toplevel" */
            subvolume->name = strdup("toplevel-5");
            if (!subvolume->name)
                return bw_error_no_memory();
            continue;
        }
        BW_TRY(bw_subvolume_path(subvolume->side.fs, subvolume->side.subvolume, &subvolume->name,
                                 &length));
        memmove(subvolume->name, subvolume->name + 1, length);
        for (char *at = subvolume->name; *at; at++)
            if (*at == '/')
                *at = '-';
    }
    return NULL;
}

static int by_transaction(const void *a, const void *b)
{
    const struct bw_subvolume_info *left = &((const struct bw_sent *)a)->info,
                                   *right = &((const struct bw_sent *)b)->info;
    return BW_COMPARE_ALL(((uint64_t[]){left->ctransid, left->id}),
                          ((uint64_t[]){right->ctransid, right->id}));
}

void bw_send_list_sort(struct bw_send_list *list)
{
    bw_sent_list_sort(&list->list, by_transaction);
}

const struct bw_sent *bw_send_list_parent(const struct bw_send_list *list, size_t number)
{
    const struct bw_sent *sent = &list->list.items[number], *best = NULL;
    uint64_t best_distance = UINT64_MAX;
    for (size_t i = 0; i < list->list.count; i++) {
        const struct bw_sent *other = &list->list.items[i];
        const uint64_t older = other->info.ctransid, newer = sent->info.ctransid;
        const uint64_t distance = older < newer ? newer - older : older - newer;
        const bool is_same =
            other->side.fs == sent->side.fs && other->side.subvolume == sent->side.subvolume;
        /* One is a snapshot of the other, or both are snapshots of a third. */
        const struct bw_subvolume_info *a = &other->info, *b = &sent->info;
        const bool are_related = is_same_uuid(a->parent_uuid, b->uuid) ||
                                 is_same_uuid(b->parent_uuid, a->uuid) ||
                                 is_same_uuid(a->parent_uuid, b->parent_uuid);
        if (!other->is_there || is_same || !are_related)
            continue;
        if (!best || distance < best_distance) {
            best = other;
            best_distance = distance;
        }
    }
    return best;
}

struct bw_error *bw_send_list_send(struct bw_send_list *list, size_t number,
                                   const struct bw_send_options *options,
                                   const struct bw_sent *parent, bool share)
{
    struct bw_sent *sent = &list->list.items[number];
    struct bw_send_side sources[MOST_SOURCES];
    struct bw_send_options how = *options;
    struct bw_send_summary summary;
    for (size_t i = list->list.count; share && i-- > 0 && how.source_count < MOST_SOURCES;)
        if (i != number && list->list.items[i].is_there)
            sources[how.source_count++] = list->list.items[i].side;
    if (parent)
        how.parent = &parent->side;
    how.sources = sources;
    how.name = sent->name;
    BW_TRY(bw_send(&sent->side, &how, &summary));
    memcpy(sent->uuid, summary.uuid, sizeof sent->uuid);
    sent->side.uuid = sent->uuid;
    sent->is_there = true;
    sent->size = (uint64_t)summary.growth;
    if (parent)
        sent->size += parent->size;
    return NULL;
}

bool bw_send_list_free(struct bw_send_list *list)
{
    bool damaged = false;
    for (size_t i = 0; i < list->list.count; i++) {
        struct bw_sent *sent = &list->list.items[i];
        damaged |= sent->past && bw_fs_status(sent->past).damages;
        bw_fs_close(sent->past);
        free(sent->name);
        free(sent->place);
    }
    bw_sent_list_free(&list->list);
    *list = (struct bw_send_list){0};
    return damaged;
}
