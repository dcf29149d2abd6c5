/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Simple quotas: each extent is paid for by one subvolume, the one that allocated it, whoever
 * refers to it now. Of a tree block that is the owner in its header, of data the EXTENT_OWNER_REF
 * in its extent item. Extents from before quotas were enabled are paid for by nobody. A group of a
 * higher level pays what the groups in it pay. Source: btrfs_record_squota_delta() in the kernel's
 * fs/btrfs/qgroup.c.
 *
 * Tree blocks are counted while the pass `trees` meets them, and data when it has ended.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "check/quota.h"
#include "owners/references.h"

struct payer {
    uint64_t subvolume;
    uint64_t bytes;
};

struct group {
    uint64_t id;
    struct bw_quota_numbers has;
    bool is_counted;
    uint64_t *members;
    size_t member_count;
    size_t met; /* in the sum of which group it was met last */
};

struct bw_simple_quota {
    struct bw_fs *fs;
    uint64_t since; /* generation of the first extents that count */
    pthread_mutex_t lock;
    struct bw_map numbers; /* of payers, by the id of the subvolume */
    struct payer *payers;
    size_t count, capacity;
    bool no_memory;
    struct group *groups; /* by id */
    size_t group_count, group_capacity;
};

struct bw_error *bw_simple_quota_begin(struct bw_check *check)
{
    struct bw_quota_status status;
    if (check->options->quick)
        return NULL;
    BW_TRY(bw_fs_quota_status(check->fs, &status));
    if (!status.is_known || !status.enabled || !status.simple)
        return NULL;
    struct bw_simple_quota *self = calloc(1, sizeof *self);
    if (!self)
        return bw_error_no_memory();
    self->fs = check->fs;
    self->since = status.enable_generation;
    pthread_mutex_init(&self->lock, NULL);
    check->simple_quota = self;
    return NULL;
}

void bw_simple_quota_free(struct bw_simple_quota *self)
{
    if (!self)
        return;
    for (size_t i = 0; i < self->group_count; i++)
        free(self->groups[i].members);
    free(self->groups);
    free(self->payers);
    bw_map_free(&self->numbers);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

static bool pay(struct bw_simple_quota *self, uint64_t subvolume, uint64_t bytes)
{
    uint32_t number = bw_map_get(&self->numbers, subvolume);
    if (number == UINT32_MAX) {
        number = (uint32_t)self->count;
        if (!BW_ARRAY_RESERVE(self->payers, self->count, self->capacity) ||
            !bw_map_put(&self->numbers, subvolume, number))
            return false;
        self->payers[self->count++] = (struct payer){.subvolume = subvolume};
    }
    self->payers[number].bytes += bytes;
    return true;
}

void bw_simple_quota_block(struct bw_simple_quota *self, uint64_t owner, uint64_t generation,
                           uint32_t bytes)
{
    if (!self || generation < self->since)
        return;
    pthread_mutex_lock(&self->lock);
    self->no_memory |= !pay(self, owner, bytes);
    pthread_mutex_unlock(&self->lock);
}

/* Data that name an owner: that reference comes first. */
static struct bw_error *take_extent(void *context, const struct bw_item *item)
{
    struct bw_simple_quota *self = context;
    struct bw_extent_entry extent;
    struct bw_reference reference;
    if (!bw_extent_entry_decode(self->fs, item, &extent) || extent.is_block ||
        extent.generation < self->since || !bw_extent_reference_step(&extent, &reference) ||
        reference.kind)
        return NULL;
    return pay(self, reference.source, extent.length) ? NULL : bw_error_no_memory();
}

static struct bw_error *take_group(void *context, const struct bw_qgroup_info *info)
{
    struct bw_simple_quota *self = context;
    uint64_t *members = malloc((info->member_count + 1) * sizeof *members);
    if (!members || !BW_ARRAY_RESERVE(self->groups, self->group_count, self->group_capacity)) {
        free(members);
        return bw_error_no_memory();
    }
    if (info->member_count)
        memcpy(members, info->members, info->member_count * sizeof *members);
    self->groups[self->group_count++] = (struct group){.id = info->id,
                                                       .has = {info->referenced, info->exclusive},
                                                       .is_counted = info->is_counted,
                                                       .members = members,
                                                       .member_count = info->member_count};
    return NULL;
}

/* Adds what a group pays to a sum; false if that is not certain: a group in it is gone, or is in it
 * twice, which is counted once or twice depending on what came first. */
static bool add_group(struct bw_simple_quota *self, uint64_t id, size_t sum, unsigned depth,
                      uint64_t *bytes)
{
    enum { DEEPEST = 100 };
    const size_t i = BW_FIRST_INDEX(k, self->group_count, self->groups[k].id >= id);
    struct group *group = &self->groups[i];
    if (i == self->group_count || group->id != id || group->met == sum || depth > DEEPEST)
        return false;
    group->met = sum;
    if (!BW_QGROUP_LEVEL(id)) {
        const uint32_t number = bw_map_get(&self->numbers, id);
        *bytes += number == UINT32_MAX ? 0 : self->payers[number].bytes;
        return true;
    }
    for (size_t k = 0; k < group->member_count; k++)
        if (!add_group(self, group->members[k], sum, depth + 1, bytes))
            return false;
    return true;
}

/* Subvolumes that pay and have no group: the kernel keeps the group of a deleted subvolume while it
 * pays for anything, and fails when it frees an extent without one. */
static void find_without_group(const struct bw_simple_quota *self, struct bw_check *check)
{
    for (size_t i = 0; i < self->count; i++) {
        const uint64_t id = self->payers[i].subvolume;
        const size_t k = BW_FIRST_INDEX(j, self->group_count, self->groups[j].id >= id);
        const bool has_group = k < self->group_count && self->groups[k].id == id;
        const struct bw_subject subject = {.finding = {.known = BW_KNOWN_TREE | BW_KNOWN_KEY,
                                                       .tree = BW_QUOTA_TREE,
                                                       .key = {0, BW_QGROUP_INFO, id}}};
        const bool is_subvolume =
            id == BW_TOP_SUBVOLUME || (id >= BW_FIRST_SUBVOLUME && id <= BW_LAST_SUBVOLUME);
        if (is_subvolume && !(has_group && self->groups[k].is_counted))
            bw_check_find(check, BW_CODE_qgroup_owner, &subject,
                          "%" PRIu64 " bytes of extents belong to subvolume %" PRIu64
                          ", which has no group",
                          self->payers[i].bytes, id);
    }
}

struct bw_error *bw_simple_quota_check(struct bw_check *check)
{
    struct bw_simple_quota *self = check->simple_quota;
    if (!self || self->no_memory)
        return self ? bw_error_no_memory() : NULL;
    BW_TRY(bw_fs_scan(check->fs, &check->fs->extent_tree, "extent tree", take_extent, self));
    BW_TRY(bw_fs_qgroups(check->fs, false, take_group, self));
    find_without_group(self, check);
    for (size_t i = 0; i < self->group_count && bw_check_goes_on(check, 0); i++) {
        const struct group *group = &self->groups[i];
        uint64_t bytes = 0;
        if (group->is_counted && add_group(self, group->id, i + 1, 0, &bytes))
            bw_quota_compare(check, group->id, group->has, (struct bw_quota_numbers){bytes, bytes});
    }
    return NULL;
}
