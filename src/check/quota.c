/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pass `quota`: whether the groups that others rely on exist, and whether the numbers of each
 * group are right. The referenced and exclusive bytes of each group are counted again from the
 * trees. Simple quotas count the bytes that subvolumes have allocated.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/generated.h"
#include "base/search.h"
#include "base/vector.h"
#include "btrfs-walk/space.h"
#include "btrfs-walk/subvolume.h"
#include "check/check.h"
#include "data/references.h"
#include "ondisk/disk_items.h"

/*
 * Simple quotas: each extent is charged to the subvolume that allocated it, even if other
 * subvolumes reference it now. For a tree block, that is the owner in its header; for data, the
 * EXTENT_OWNER_REF in its extent item. Extents from before quotas were enabled are not charged. A
 * group of a higher level has the sum of its members. Source: btrfs_record_squota_delta() in the
 * kernel's fs/btrfs/qgroup.c.
 *
 * Tree blocks are counted while the pass `trees` reads them, and data after it.
 */

struct bw_error *bw_simple_quota_begin(struct bw_check *check)
{
    struct bw_quota_status status;
    check->charged_since = UINT64_MAX;
    if (check->options->quick)
        return NULL;
    BW_TRY(bw_fs_quota_status(check->fs, &status));
    if (status.is_known && status.enabled && status.simple)
        check->charged_since = status.enable_generation;
    return NULL;
}

static struct bw_error *charge_subvolume(struct bw_check *check, uint64_t subvolume, uint64_t bytes)
{
    struct bw_charges_entry *charge;
    bool is_new;
    BW_TRY(bw_charges_enter(&check->charges, subvolume, &charge, &is_new));
    charge->value += bytes;
    return NULL;
}

void bw_simple_quota_block(struct bw_check *check, uint64_t owner, uint64_t generation)
{
    if (generation < check->charged_since)
        return;
    pthread_mutex_lock(&check->lock);
    if (charge_subvolume(check, owner, check->fs->reader.nodesize))
        check->no_memory = true;
    pthread_mutex_unlock(&check->lock);
}

static struct bw_finding location_of(uint64_t objectid, uint8_t type, uint64_t offset)
{
    return BW_FINDING(BW_TOUCHES_NOTHING, .tree = BW_QUOTA_TREE, .key = {objectid, type, offset});
}

struct group {
    uint64_t id, referenced, exclusive;
    uint64_t *related; /* groups: the members of it, then those that it is in */
    size_t member_count, related_count;
    bool is_counted;
    bool is_doubtful; /* one of its relations is recorded on one side only */
    size_t met;       /* with simple quotas: in the sum of which group it was met last */
};

BW_VECTOR(groups, struct group);

struct quota {
    struct bw_check *check;
    struct bw_shares *shares;
    struct groups groups;
    struct bw_numbers subvolumes; /* of the group that is being compared */
};

/* NULL: there are no items of it. */
static struct group *group_of(const struct quota *quota, uint64_t id)
{
    const size_t i = BW_FIRST_INDEX(k, quota->groups.count, quota->groups.items[k].id >= id);
    return i < quota->groups.count && quota->groups.items[i].id == id ? &quota->groups.items[i]
                                                                      : NULL;
}

/* Reports a group whose numbers are not those that were counted; does nothing if they are. */
static void compare_numbers(struct bw_check *check, const struct group *group, uint64_t referenced,
                            uint64_t exclusive)
{
    const struct bw_finding location = location_of(0, BW_QGROUP_INFO, group->id);
    if (group->referenced != referenced || group->exclusive != exclusive)
        bw_check_find(check, BW_CODE_qgroup_count, &location,
                      "group %" PRIu64 "/%" PRIu64 " has %" PRIu64 " bytes, %" PRIu64
                      " exclusive, instead of %" PRIu64 " and %" PRIu64,
                      BW_QGROUP_LEVEL(group->id), BW_QGROUP_NUMBER(group->id), group->referenced,
                      group->exclusive, referenced, exclusive);
}

static bool is_related(const struct group *group, uint64_t other)
{
    const size_t first = other < group->id ? 0 : group->member_count;
    const size_t count =
        other < group->id ? group->member_count : group->related_count - group->member_count;
    const uint64_t *others = group->related + first;
    const size_t i = BW_FIRST_INDEX(k, count, others[k] >= other);
    return i < count && others[i] == other;
}

/* The kernel creates and deletes the items of a group together. For a group without numbers, it
 * reports an inconsistent configuration, or an orphaned relation. It reads relations from the
 * member's side, and other tools from both: numbers of groups whose relations are not certain are
 * not compared. */
static void check_relations(const struct quota *quota)
{
    for (size_t i = 0; i < quota->groups.count; i++) {
        struct group *group = &quota->groups.items[i];
        const struct bw_finding numbers = location_of(0, BW_QGROUP_INFO, group->id);
        if (!group->is_counted)
            bw_check_find(quota->check, BW_CODE_qgroup_missing, &numbers,
                          "group %" PRIu64 "/%" PRIu64 " has limits or relations, but no numbers",
                          BW_QGROUP_LEVEL(group->id), BW_QGROUP_NUMBER(group->id));
        for (size_t k = 0; k < group->related_count; k++) {
            const uint64_t id = group->related[k];
            const struct bw_finding location = location_of(group->id, BW_QGROUP_RELATION, id);
            struct group *other = group_of(quota, id);
            if (other && is_related(other, group->id))
                continue;
            if (!other) {
                bw_check_find(quota->check, BW_CODE_qgroup_missing, &location,
                              "there is no group %" PRIu64 "/%" PRIu64, BW_QGROUP_LEVEL(id),
                              BW_QGROUP_NUMBER(id));
                continue;
            }
            group->is_doubtful = other->is_doubtful = true;
            bw_check_find(quota->check, BW_CODE_qgroup_relation, &location,
                          "group %" PRIu64 "/%" PRIu64 " does not have this relation",
                          BW_QGROUP_LEVEL(id), BW_QGROUP_NUMBER(id));
        }
    }
}

/* Collects the subvolumes of a group; false if one of them no longer exists, although its numbers
 * still count. */
static bool collect_subvolumes(struct quota *quota, uint64_t id)
{
    if (!BW_QGROUP_LEVEL(id)) {
        if (bw_numbers_reserve(&quota->subvolumes, 1)) {
            quota->check->no_memory = true;
            return false;
        }
        if (!bw_shares_subvolume(quota->shares, id))
            return false;
        quota->subvolumes.items[quota->subvolumes.count++] = id;
        return true;
    }
    const struct group *group = group_of(quota, id);
    bool complete = group && !group->is_doubtful;
    for (size_t k = 0; complete && k < group->member_count; k++)
        complete = BW_QGROUP_LEVEL(group->related[k]) < BW_QGROUP_LEVEL(id) &&
                   collect_subvolumes(quota, group->related[k]);
    return complete;
}

static bool should_continue(void *check)
{
    return bw_check_should_continue(check, 0);
}

/* Counts what each group reaches, and what nothing but the group reaches. */
static struct bw_error *compare_groups(struct quota *quota)
{
    const struct bw_shares_options options = {.struct_size = sizeof options,
                                              .threads = quota->check->options->threads,
                                              .progress = should_continue,
                                              .context = quota->check};
    struct bw_shares_info info;
    BW_TRY(bw_shares_open(quota->check->fs, &options, &quota->shares));
    bw_shares_get(quota->shares, &info);
    if (info.lost_blocks)
        return NULL;
    for (size_t i = 0; i < quota->groups.count && bw_check_should_continue(quota->check, 0); i++) {
        const struct group *group = &quota->groups.items[i];
        struct bw_shares_sum sum;
        quota->subvolumes.count = 0;
        if (!group->is_counted || !collect_subvolumes(quota, group->id))
            continue;
        BW_TRY(bw_shares_of(quota->shares, quota->subvolumes.items, quota->subvolumes.count, &sum));
        compare_numbers(quota->check, group, sum.referenced, sum.exclusive);
    }
    return quota->check->no_memory ? bw_error_no_memory() : NULL;
}

/* Adds the charge of a group to a sum; false if it is uncertain: a member no longer exists, or is a
 * member twice, which the kernel counts once or twice depending on the order. */
static bool add_charge(struct quota *quota, uint64_t id, size_t sum, unsigned depth,
                       uint64_t *bytes)
{
    enum { DEEPEST = 100 };
    struct group *group = group_of(quota, id);
    if (!group || group->met == sum || depth > DEEPEST)
        return false;
    group->met = sum;
    if (!BW_QGROUP_LEVEL(id)) {
        *bytes += bw_charges_get(&quota->check->charges, id, 0);
        return true;
    }
    for (size_t k = 0; k < group->member_count; k++)
        if (!add_charge(quota, group->related[k], sum, depth + 1, bytes))
            return false;
    return true;
}

/* Without skinny-metadata, mkfs.btrfs 6.19 does not count the root of the top-level subvolume. The
 * kernel only adds and subtracts, so the difference stays; a mount accepts it. */
static bool lacks_first_block(const struct bw_check *check, const struct group *group,
                              uint64_t charged)
{
    const struct bw_superblock *superblock = &check->fs->superblock;
    return group->id == BW_TOP_SUBVOLUME && group->referenced == group->exclusive &&
           group->exclusive + superblock->nodesize == charged &&
           !(superblock->incompat_flags & BW_INCOMPAT_SKINNY_METADATA);
}

/* When all tree blocks have come: counts data, and compares the groups. */
static struct bw_error *compare_simple_groups(struct quota *quota)
{
    struct bw_check *check = quota->check;
    struct bw_item_stream stream;
    struct bw_error *error =
        bw_item_stream_begin(&stream, check->fs, &check->trees, BW_EXTENT_TREE);
    for (; !error && !stream.ended; bw_item_stream_next(&stream)) {
        struct bw_extent_entry extent;
        struct bw_reference reference;
        if (!bw_extent_entry_decode(check->fs, &stream.item, &extent) || extent.is_block ||
            extent.generation < check->charged_since)
            continue;
        /* Data that name an owner: that reference comes first. */
        if (bw_extent_reference_step(&extent, &reference) && !reference.kind)
            error = charge_subvolume(check, reference.source, extent.length);
    }
    BW_TRY(bw_item_stream_end(&stream, error));

    /* Subvolumes that pay and have no group: the kernel keeps the group of a deleted subvolume
     * while it pays for anything, and fails when it frees an extent without one. */
    uint64_t id, charged;
    for (size_t position = 0; bw_charges_next(&check->charges, &position, &id, &charged);) {
        const struct group *group = group_of(quota, id);
        const struct bw_finding location = location_of(0, BW_QGROUP_INFO, id);
        if (bw_is_subvolume_id(id) && !(group && group->is_counted))
            bw_check_find(check, BW_CODE_qgroup_owner, &location,
                          "%" PRIu64 " bytes of extents belong to subvolume %" PRIu64
                          ", which has no group",
                          charged, id);
    }
    for (size_t i = 0; i < quota->groups.count && bw_check_should_continue(check, 0); i++) {
        const struct group *group = &quota->groups.items[i];
        uint64_t bytes = 0;
        if (!group->is_counted || !add_charge(quota, group->id, i + 1, 0, &bytes))
            continue;
        if (lacks_first_block(check, group, bytes)) {
            const struct bw_finding location = location_of(0, BW_QGROUP_INFO, group->id);
            bw_check_find(check, BW_CODE_qgroup_first_block, &location,
                          "group 0/5 has %" PRIu64 " bytes instead of %" PRIu64, group->exclusive,
                          bytes);
        } else {
            compare_numbers(check, group, bytes, bytes);
        }
    }
    return NULL;
}

/* Why the numbers are not to be trusted, or cannot be counted; NULL: they can. */
static const char *reason_to_skip(const struct bw_check *check,
                                  const struct bw_quota_status *status)
{
    if (status->inconsistent || status->rescanning)
        return "the numbers are marked as inconsistent, or a rescan is in progress";
    if (!check->extents_known || !check->fs->extent_tree.id)
        return "parts of the extent tree cannot be read";
    for (size_t i = 0; i < check->trees.entries.count; i++) {
        const struct bw_listed_tree *tree = &check->trees.entries.items[i];
        if (tree->tree.id == BW_TREE_RELOC)
            return "a balance was interrupted";
        if (tree->is_subvolume && !tree->references && !status->simple)
            return "a subvolume is being deleted";
        if (tree->is_subvolume && tree->incomplete)
            return "part of a subvolume is lost";
    }
    return NULL;
}

static void quota_free(struct quota *quota)
{
    for (size_t i = 0; i < quota->groups.count; i++)
        free(quota->groups.items[i].related);
    groups_free(&quota->groups);
    bw_numbers_free(&quota->subvolumes);
    bw_shares_close(quota->shares);
}

struct bw_error *bw_pass_quota(struct bw_check *check)
{
    struct bw_quota_status status;
    BW_SCOPED(quota) struct quota quota = {.check = check};
    BW_TRY(bw_fs_quota_status(check->fs, &status));
    if (!status.is_known || !status.enabled)
        return NULL;
    const char *reason = reason_to_skip(check, &status);
    struct bw_qgroups *qgroups;
    struct bw_error *error = bw_qgroups_open(check->fs, false, &qgroups);
    for (const struct bw_qgroup_info *info; !error && (info = bw_qgroups_next(qgroups));) {
        const size_t members = info->member_count, related = members + info->parent_count;
        struct group group = {.id = info->id,
                              .referenced = info->referenced,
                              .exclusive = info->exclusive,
                              .related = malloc((related + 1) * sizeof *group.related),
                              .member_count = members,
                              .related_count = related,
                              .is_counted = info->is_counted};
        for (size_t i = 0; group.related && i < related; i++)
            group.related[i] = i < members ? info->members[i] : info->parents[i - members];
        error = group.related ? groups_push(&quota.groups, group) : bw_error_no_memory();
        if (error)
            free(group.related);
    }
    BW_TRY(bw_error_first(error, bw_qgroups_close(qgroups)));
    check_relations(&quota);

    /* If the kernel has missed changes, a mount marks the numbers as inconsistent, but not those of
     * simple quotas. */
    const uint64_t present = check->fs->root_tree.root.generation;
    if (!status.inconsistent && !status.rescanning && !status.simple &&
        status.generation != present) {
        const struct bw_finding location = location_of(0, BW_QGROUP_STATUS, 0);
        bw_check_find(check, BW_CODE_qgroup_stale, &location,
                      "numbers of transaction %" PRIu64 ", the last one is %" PRIu64
                      "; a mount marks them as inconsistent",
                      status.generation, present);
        return NULL;
    }
    if (reason) {
        bw_check_find(check, BW_CODE_qgroup_unchecked, NULL, "%s", reason);
        return NULL;
    }
    return status.simple ? compare_simple_groups(&quota) : compare_groups(&quota);
}
