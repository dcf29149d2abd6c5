/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The space command: how much space subvolumes reference, share, and would free, computed without
 * quotas. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash_table.h"
#include "base/human.h"
#include "base/search.h"
#include "base/vector.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/space.h"
#include "btrfs-walk/subvolume.h"
#include "cli/common/monitor.h"
#include "cli/common/output_format.h"

/* The path of a subvolume, for lists of them. */
struct path {
    uint64_t id;
    char *text;
    size_t length;
};

BW_VECTOR(paths, struct path);

struct space {
    /* The options. */
    unsigned threads;
    bool shared;
    uint64_t to_free;         /* bytes; 0: --free was not given */
    struct bw_buffer free_if; /* names of subvolumes, each with a NUL */

    /* While it runs. */
    struct cmd_format *format;
    const struct bw_shares *shares;
    struct bw_buffer text;
    struct paths paths; /* by id */
};

static struct bw_error *store_to_free(void *target, const struct cmd_option *option,
                                      const char *argument)
{
    struct space *space = target;
    BW_TRY(cmd_store_bytes(&space->to_free, option, argument));
    return space->to_free ? NULL : cmd_bad_argument(option, argument, "at least one byte");
}

static struct bw_error *store_free_if(void *state, const struct cmd_option *option,
                                      const char *list)
{
    struct bw_buffer *names = &((struct space *)state)->free_if;
    for (const char *name = list;; name++) {
        const size_t length = strcspn(name, ",");
        if (!length)
            return cmd_bad_argument(option, list, "subvolumes, with commas between them");
        bw_buffer_append(names, name, length);
        bw_buffer_append_byte(names, '\0');
        name += length;
        if (!*name)
            break;
    }
    return bw_buffer_error(names);
}

static void release_state(void *state)
{
    struct space *space = state;
    bw_buffer_free(&space->free_if);
    bw_buffer_free(&space->text);
    for (size_t i = 0; i < space->paths.count; i++)
        free(space->paths.items[i].text);
    paths_free(&space->paths);
}

static const struct cmd_option options[] = {
    {0, "free-if", "SUBVOLUME,...",
     "print the space that deleting these paths or ids together would free (repeatable)",
     .store = store_free_if, .release = release_state},
    {0, "free", "SIZE", "list the snapshots to delete, oldest first, to free this much space",
     .store = store_to_free},
    {0, "shared", NULL, "list the sets of subvolumes that share data, and how much",
     CMD_FLAG(struct space, shared)},
    CMD_THREADS_OPTION(struct space, threads),
    {0},
};

/* Paths of subvolumes, for lists of them. */

enum { MOST_PATHS = 100 };

/* Adds the paths of the subvolumes with ids in a range. */
static void add_names(const struct space *space, uint64_t first, uint64_t last,
                      struct bw_bytes names[MOST_PATHS], size_t *count)
{
    size_t at = BW_FIRST_INDEX(i, space->paths.count, space->paths.items[i].id >= first);
    for (; at < space->paths.count && space->paths.items[at].id <= last && *count < MOST_PATHS;
         at++)
        names[(*count)++] =
            (struct bw_bytes){space->paths.items[at].text, space->paths.items[at].length};
}

/* Sets of subvolumes. */

static struct bw_error *write_set(void *context, const struct bw_shared_set *set)
{
    struct space *space = context;
    struct bw_bytes names[MOST_PATHS];
    size_t count = 0;
    space->text.length = 0;
    for (size_t i = 0; i < set->range_count; i++) {
        add_names(space, set->ranges[i].first, set->ranges[i].last, names, &count);
        const struct bw_subvolume_range *range = &set->ranges[i];
        bw_buffer_format(&space->text, "%s%" PRIu64, i ? "," : "", range->first);
        if (range->last > range->first)
            bw_buffer_format(&space->text, "-%" PRIu64, range->last);
    }
    BW_TRY(bw_buffer_terminate(&space->text));
    const struct bw_sharedinfo row = {.shared = set->bytes,
                                      .subvolume_count = set->subvolume_count,
                                      .subvolumes = space->text.data,
                                      .deleted = set->are_deleted,
                                      .paths = {count ? names : NULL, count}};
    return cmd_format_write(space->format, &row, sizeof row);
}

/* Space freed by deletion. */

/*
 * --free: which snapshots to delete.
 *
 * The oldest snapshots are deleted, as many as needed. Of these, each is kept that is not needed,
 * the newest first: then no snapshot of the rest can be kept. If a recent snapshot has most of the
 * space, only that remains.
 */

BW_VECTOR(snapshots, struct bw_subvolume_info);

static int compare_snapshots(const void *left, const void *right)
{
    const struct bw_subvolume_info *a = left, *b = right;
    if (a->otransid != b->otransid)
        return a->otransid < b->otransid ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

/* The ids of the snapshots to delete. `*freed`: the bytes that this frees, less than requested if
 * even all snapshots are not enough. */
static struct bw_error *choose_snapshots(const struct bw_shares *shares, uint64_t to_free,
                                         struct bw_numbers *ids, uint64_t *freed)
{
    struct bw_shares_sum sum;
    size_t least = 0, most = ids->count;
    BW_TRY(bw_shares_of(shares, ids->items, ids->count, &sum));
    *freed = sum.exclusive;
    if (*freed < to_free)
        return NULL;

    /* As few of the oldest as possible: more snapshots never free less. */
    while (least < most) {
        const size_t middle = least + (most - least) / 2;
        BW_TRY(bw_shares_of(shares, ids->items, middle, &sum));
        if (sum.exclusive >= to_free)
            most = middle;
        else
            least = middle + 1;
    }
    ids->count = most;

    /* Keep those that are not needed. */
    for (size_t i = ids->count; i-- > 0;) {
        const uint64_t id = ids->items[i];
        bw_numbers_remove(ids, i);
        BW_TRY(bw_shares_of(shares, ids->items, ids->count, &sum));
        if (sum.exclusive >= to_free)
            continue;
        BW_TRY(bw_numbers_insert(ids, i, id));
    }
    BW_TRY(bw_shares_of(shares, ids->items, ids->count, &sum));
    *freed = sum.exclusive;
    return NULL;
}

/* Writes a row for each snapshot to delete. */
static struct bw_error *write_steps(const struct space *space, const struct snapshots *snapshots)
{
    const uint64_t to_free = space->to_free;
    BW_SCOPED(bw_numbers) struct bw_numbers ids = {0};
    struct bw_shares_sum sum = {0};
    uint64_t freed, before = 0;
    for (size_t i = 0; i < snapshots->count; i++)
        if (bw_shares_subvolume(space->shares, snapshots->items[i].id))
            BW_TRY(bw_numbers_push(&ids, snapshots->items[i].id));
    BW_TRY(choose_snapshots(space->shares, to_free, &ids, &freed));
    for (size_t i = 0, at = 0; i < ids.count; i++, at++) {
        struct bw_bytes path[MOST_PATHS] = {{NULL, 0}};
        size_t count = 0;
        while (snapshots->items[at].id != ids.items[i])
            at++;
        BW_TRY(bw_shares_of(space->shares, ids.items, i + 1, &sum));
        add_names(space, ids.items[i], ids.items[i], path, &count);
        const struct bw_freestepinfo row = {.subvolume = ids.items[i],
                                            .otime =
                                                bw_time_nanoseconds(&snapshots->items[at].otime),
                                            .freed = sum.exclusive - before,
                                            .freed_total = sum.exclusive,
                                            .subvolume_path = path[0],
                                            .subvolume_path_bytes = path[0],
                                            .lost_blocks = sum.lost_blocks};
        before = sum.exclusive;
        BW_TRY(cmd_format_write(space->format, &row, sizeof row));
    }
    if (freed >= to_free)
        return NULL;
    cmd_format_miss(space->format,
                    bw_error_create(BW_ERROR_NOT_FOUND,
                                    "deleting the %zu snapshot%s that can be deleted frees only %s "
                                    "of %s",
                                    ids.count, bw_plural(ids.count), cmd_size(NULL, freed).text,
                                    cmd_size(NULL, to_free).text));
    return NULL;
}

static struct bw_error *write_answer(struct space *space, const struct bw_numbers *ids,
                                     const struct snapshots *snapshots)
{
    struct bw_shares_sum sum;
    struct bw_bytes names[MOST_PATHS];
    size_t count = 0;
    if (space->to_free)
        return write_steps(space, snapshots);
    if (space->shared)
        return bw_shares_sets(space->shares, write_set, space);
    if (!space->free_if.length) {
        struct bw_subvolume_infos *infos;
        struct bw_error *error = bw_subvolume_infos_open(space->format->session.fs, true, &infos);
        for (const struct bw_subvolume_info *info;
             !error && (info = bw_subvolume_infos_next(infos));) {
            const struct bw_subvolume_space *known = bw_shares_subvolume(space->shares, info->id);
            if (!known)
                continue;
            const struct bw_bytes path = {info->path, info->path_length};
            const struct bw_shareinfo row = {.subvolume = info->id,
                                             .referenced = known->referenced,
                                             .exclusive = known->exclusive,
                                             .shared = known->referenced - known->exclusive,
                                             .subvolume_path = path,
                                             .subvolume_path_bytes = path,
                                             .deleted = known->is_deleted,
                                             .lost_blocks = known->lost_blocks};
            error = cmd_format_write(space->format, &row, sizeof row);
        }
        return bw_error_first(error, bw_subvolume_infos_close(infos));
    }
    for (size_t i = 0; i < ids->count; i++)
        add_names(space, ids->items[i], ids->items[i], names, &count);
    BW_TRY(bw_shares_of(space->shares, ids->items, ids->count, &sum));
    const struct bw_freeinfo row = {.subvolumes = space->text.data,
                                    .referenced = sum.referenced,
                                    .freed = sum.exclusive,
                                    .lost_blocks = sum.lost_blocks,
                                    .paths = {count ? names : NULL, count}};
    return cmd_format_write(space->format, &row, sizeof row);
}

/* Names are looked up first, because the rest takes long. */
static struct bw_error *list(struct cmd_format *format, void *context)
{
    struct space *space = context;
    struct bw_fs *fs = format->session.fs;
    const struct bw_shares_options wanted = {.struct_size = sizeof wanted,
                                             .threads = space->threads};
    struct bw_shares *shares;
    BW_SCOPED(bw_numbers) struct bw_numbers ids = {0};
    BW_SCOPED(snapshots) struct snapshots snapshots = {0};
    space->format = format;

    /* The ids of the subvolumes of --free-if; as text, with commas between them. */
    for (size_t at = 0; at < space->free_if.length; at += strlen(space->free_if.data + at) + 1) {
        const struct bw_subvolume *subvolume;
        BW_TRY(bw_subvolume_by_name(fs, space->free_if.data + at, &subvolume));
        bw_buffer_format(&space->text, "%s%" PRIu64, ids.count ? "," : "",
                         bw_subvolume_id(subvolume));
        BW_TRY(bw_numbers_push(&ids, bw_subvolume_id(subvolume)));
    }
    BW_TRY(bw_buffer_terminate(&space->text));
    if (space->free_if.length || space->shared || space->to_free) {
        /* Paths of subvolumes, for names in the output. */
        struct bw_subvolume_infos *infos;
        struct bw_error *error = bw_subvolume_infos_open(space->format->session.fs, true, &infos);
        for (const struct bw_subvolume_info *info;
             !error && (info = bw_subvolume_infos_next(infos));) {
            if (!info->path)
                continue;
            struct path path = {info->id, strndup(info->path, info->path_length),
                                info->path_length};
            error = path.text ? paths_push(&space->paths, path) : bw_error_no_memory();
            if (error)
                free(path.text);
        }
        BW_TRY(bw_error_first(error, bw_subvolume_infos_close(infos)));
    }
    if (space->to_free) {
        /* The snapshots that can be deleted, the oldest first. The kernel deletes neither the
         * default subvolume nor one that contains others. */
        const struct bw_subvolume *next = NULL;
        struct bw_subvolume_info info;
        bool is_new;
        BW_SCOPED(bw_key_set) struct bw_key_set parents = {0};
        while ((next = bw_subvolume_next(fs, next))) {
            BW_TRY(bw_subvolume_get(fs, next, &info));
            if (info.parent)
                BW_TRY(bw_key_set_add(&parents, info.parent, &is_new));
        }
        while ((next = bw_subvolume_next(fs, next))) {
            BW_TRY(bw_subvolume_get(fs, next, &info));
            if (!info.is_snapshot || info.is_deleted || info.is_default ||
                bw_key_set_has(&parents, info.id))
                continue;
            BW_TRY(snapshots_push(&snapshots, info));
        }
        snapshots_sort(&snapshots, compare_snapshots);
    }
    cmd_progress_expect_trees(fs, false);
    BW_TRY(bw_shares_open(fs, &wanted, &shares));
    space->shares = shares;
    struct bw_error *error = write_answer(space, &ids, &snapshots);
    bw_shares_close(shares);
    return error;
}

static struct cmd_format_plan plan_of(const void *state)
{
    const struct space *space = state;
    struct cmd_format_plan plan = {.columns = "subvolume,referenced,exclusive,subvolume_path",
                                   .list = list};
    if (space->free_if.length) {
        plan.record = "freeinfo";
        plan.columns = "freed,referenced,subvolumes,paths";
    } else if (space->to_free) {
        plan.record = "freestepinfo";
        plan.columns = "subvolume,otime,freed,freed_total,subvolume_path";
    } else if (space->shared) {
        plan.record = "sharedinfo";
        plan.columns = "shared,subvolume_count,subvolumes,paths";
    }
    return plan;
}

static const char *find_mistake(const struct cmd_common *common, const void *state)
{
    const struct space *space = state;
    const bool excludes = (space->free_if.length > 0) + (space->to_free > 0) + space->shared > 1;
    (void)common;
    return excludes ? "--free, --free-if and --shared exclude each other" : NULL;
}

const struct command cmd_space = {
    .name = "space",
    .topic = cmd_topic_space,
    .operands = "IMAGE...",
    .summary = "Prints the space that subvolumes use, share, and would free.",
    .details =
        "\n"
        "For each subvolume, prints the bytes that it references, and the bytes that no other\n"
        "subvolume references (exclusive). The numbers equal those of 'btrfs qgroup show'\n"
        "after a rescan, but need no quotas. Extents count with their stored size, as a whole\n"
        "even if a file uses only a part of them. Tree blocks count, too.\n\n"
        "--free-if computes how much space deleting several subvolumes together would free.\n"
        "That is more than the sum of their exclusive bytes if they share data only with each\n"
        "other. --free lists which snapshots to delete to free some space: the oldest, except\n"
        "those that need not be deleted. Each line has the bytes that its deletion frees after\n"
        "those above it. --shared lists which subvolumes share how much; FIRST-LAST means all\n"
        "subvolumes with ids in that range.\n\n"
        "Each tree block is read once, however many snapshots share it. A subvolume that is\n"
        "being deleted counts with the bytes that nothing else references. If blocks are\n"
        "lost, a message names the affected subvolumes: their numbers are lower bounds, and\n"
        "the exit status is 1.\n",
    .examples = "  btrfs-walk space disk.img                        a table\n"
                "  btrfs-walk space --free-if /old,/older disk.img  space freed together\n"
                "  btrfs-walk space --free 5G disk.img              what to delete for 5 GiB\n"
                "  btrfs-walk space --shared disk.img               sets that share data\n"
                "  btrfs-walk space -o exclusive,subvolume_path disk.img | sort -n\n",
    .options = options,
    .record = "shareinfo",
    .sorts_rows = true,
    .plan_of = plan_of,
    .find_mistake = find_mistake,
    .state_size = sizeof(struct space),
};
