/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The owner command: from addresses to files, and from the maps of --map to the affected files.
 *
 * Logical ranges are searched for directly. Ranges of a device are first converted to logical
 * ones, place by place: map_ranges() runs twice, first to gather the logical ranges, and after the
 * search to list the places without one, such as superblocks. If the ranges are bad, those that a
 * good mirror or parity still has are kept apart, because their rows are marked as repairable.
 */
#include "cli/inspect/bad_map.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/generated.h"
#include "base/search.h"
#include "btrfs-walk/format.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/subvolume.h"
#include "btrfs-walk/tree.h"
#include "cli/common/monitor.h"
#include "cli/inspect/device_row.h"

/* Ranges of a device. */
struct device_ranges {
    uint64_t devid;
    struct bad_ranges bad; /* sorted and joined if they come from a map */
};

/* A running owner command. */
struct search {
    /* The options. */
    const char *devid, *subvolume;
    bool extent, scan;

    /* While it runs. */
    struct cmd_format *format;
    const struct bw_record *record; /* ownerinfo */
    struct bw_fs *fs;
    size_t subvolume_length; /* length of the path of --subvol, which is removed from printed
                              * paths */
    bool by_map;             /* the ranges are bad, so some may be repairable */
    struct bad_ranges given; /* the ranges from the command line */
    struct device_ranges *devices;
    size_t device_count;
    struct bad_ranges ranges;     /* logical ranges; first those that no other copy has */
    struct bad_ranges repairable; /* ranges that another mirror or parity has */
    size_t lost;                  /* number of `ranges` that no other copy has */
    struct bw_device_map *device_map;
};

static const struct cmd_option options[] = {
    {0, "devid", "DEVID", "addresses are offsets on the device with this id",
     CMD_TEXT(struct search, devid)},
    {0, "extent", NULL, "also list files that use other bytes of the same extent",
     CMD_FLAG(struct search, extent)},
    {0, "subvol", "NAME|ID",
     "list only owners in this subvolume (path, id or 'default'), with paths inside it",
     CMD_TEXT(struct search, subvolume)},
    {0, "all-trees", NULL, "read all trees, even if the extent tree is good",
     CMD_FLAG(struct search, scan)},
    {0},
};

/* Rows. */

/* Appends a column, which is blank if the value is absent. */
static void append_number(struct bw_buffer *line, int width, uint64_t value)
{
    if (value == BW_ABSENT)
        bw_buffer_format(line, " %*s", width, "");
    else
        bw_buffer_format(line, " %*" PRIu64, width, value);
}

/* Columns of fixed width: there may be millions of lines, so they are not aligned afterwards. */
struct bw_error *cmd_print_owner(struct cmd_format *format, const void *record)
{
    const struct bw_ownerinfo *row = record;
    struct bw_buffer *line = &format->text;
    const bool on_device = row->logical == BW_ABSENT;
    if (!format->has_header)
        bw_buffer_format(line, "%-11s %15s %10s %6s %10s %12s  %s\n", "kind", "address", "length",
                         "tree", "inode", "offset", "path");
    format->has_header = true;
    bw_buffer_format(line, "%-11s", row->kind);
    append_number(line, 15, on_device ? row->offset : row->logical);
    append_number(line, 10, row->length);
    append_number(line, 6, row->tree);
    append_number(line, 10, row->inode);
    append_number(line, 12, row->file_offset);
    bw_buffer_append(line, "  ", 2);
    if (row->path.data)
        bw_escape_line(line, row->path.data, row->path.length);
    else if (row->level != BW_ABSENT) {
        /* A tree block has a level and a first key. */
        char key[BW_KEY_TEXT] = "";
        if (row->key.objectid != BW_ABSENT)
            bw_key_text(&row->key, key);
        bw_buffer_format(line, "level %" PRIu64 " %s", row->level, key);
    }
    if (row->repairable != BW_ABSENT && row->repairable)
        bw_buffer_format(line, "  (repairable)");
    while (line->length && line->data[line->length - 1] == ' ')
        line->length--;
    bw_buffer_append_byte(line, '\n');
    return NULL;
}

static struct bw_error *write_owner(void *context, const struct bw_owner *owner)
{
    const struct search *search = context;
    const uint64_t tree = owner->tree;
    struct bw_bytes path = owner->path; /* relative to the subvolume of --subvol */
    if (path.data && path.length > search->subvolume_length)
        path = (struct bw_bytes){path.data + search->subvolume_length,
                                 path.length - search->subvolume_length};
    else if (path.data)
        path = (struct bw_bytes){"/", 1};
    const bool has_inode = owner->kind == BW_OWNER_DATA || owner->kind == BW_OWNER_METADATA;
    const bool is_block = owner->kind == BW_OWNER_METADATA || owner->kind == BW_OWNER_BLOCK;
    struct bw_ownerinfo row;
    bw_record_clear(search->record, &row);
    row.kind = bw_owner_kind_name(owner->kind);
    row.logical = owner->logical;
    row.length = owner->length;
    row.path = row.path_bytes = path;
    if (has_inode || is_block) {
        row.extent_logical = owner->extent;
        row.tree = tree;
    }
    if ((has_inode || is_block) && bw_is_subvolume_id(tree))
        row.subvolume = tree;
    if (has_inode)
        row.inode = owner->inode;
    if (owner->kind == BW_OWNER_DATA) {
        row.file_offset = owner->offset;
        row.file_length = owner->file_length;
    }
    if (is_block)
        row.level = owner->level;
    if (owner->has_key)
        row.key = owner->key;
    if (search->by_map)
        row.repairable = owner->range >= search->lost;
    return cmd_format_write(search->format, &row, sizeof row);
}

/* Devices. */

static void limit_length(struct bw_device_place *place, uint64_t length)
{
    if (place->length > length)
        place->length = length;
}

/* Whether an offset on a device is bad. Shortens the place to the length for which this is
 * true. */
static bool is_bad(const struct search *search, uint64_t devid, uint64_t offset,
                   struct bw_device_place *place)
{
    const struct device_ranges *device = search->devices, *behind = device + search->device_count;
    while (device < behind && device->devid != devid)
        device++;
    if (device == behind)
        return false;
    const struct bad_ranges *bad = &device->bad;
    const size_t next = BW_FIRST_INDEX(i, bad->count, bad->items[i].logical > offset);
    const uint64_t end = next ? bad->items[next - 1].logical + bad->items[next - 1].length : 0;
    if (end > offset)
        limit_length(place, end - offset);
    else if (next < bad->count)
        limit_length(place, bad->items[next].logical - offset);
    return end > offset;
}

/* Whether another mirror, or parity, has the data of this bad mirror. Shortens the place likewise.
 */
static bool is_repairable(const struct search *search, struct bw_device_place *place)
{
    for (unsigned copy = 1;; copy++) {
        struct bw_mapping other;
        BW_AUTO_ERROR struct bw_error *none =
            bw_fs_map(search->fs, place->logical, place->length, copy, &other);
        if (none)
            return false;
        if (copy == place->copy || !other.present)
            continue;
        limit_length(place, other.length);
        if (!is_bad(search, other.devid, other.offset, place))
            return true;
    }
}

/* Iterates over the places on the ranges of the devices. With `places`, writes those without a
 * logical address; otherwise gathers the logical addresses. */
static struct bw_error *map_ranges(struct search *search, bool places)
{
    for (size_t i = 0; i < search->device_count; i++) {
        const struct device_ranges *device = &search->devices[i];
        for (size_t k = 0; k < device->bad.count; k++) {
            struct bw_address_range range = device->bad.items[k];
            while (range.length) {
                struct bw_device_place place;
                BW_TRY(bw_device_map_find(search->device_map, device->devid, range.logical,
                                          range.length, &place));
                if (!place.copy && places) {
                    struct bw_ownerinfo row;
                    bw_record_clear(search->record, &row);
                    row.kind = place.parity ? "parity" : device_use_words[place.use];
                    row.length = place.length;
                    row.devid = device->devid;
                    row.offset = range.logical;
                    BW_TRY(cmd_format_write(search->format, &row, sizeof row));
                }
                const bool repairable =
                    place.copy && search->by_map && is_repairable(search, &place);
                struct bad_ranges *ranges = repairable ? &search->repairable : &search->ranges;
                if (place.copy && !places)
                    BW_TRY(bad_ranges_push(ranges,
                                           (struct bw_address_range){place.logical, place.length}));
                range.logical += place.length;
                range.length -= place.length;
            }
        }
    }
    return NULL;
}

/* Reads the maps, each of which describes an image. */
static struct bw_error *read_maps(struct search *search, const struct cmd_common *common)
{
    search->devices = calloc(common->input.maps.count, sizeof *search->devices);
    if (!search->devices)
        return bw_error_no_memory();
    if (common->input.fs.alternatives)
        return bw_error_create(BW_ERROR_USAGE, "--alternatives: run owner with one of the images");
    BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
    BW_TRY(bw_fs_devices(search->fs, &devices));
    for (size_t i = 0; i < common->input.maps.count; i++) {
        struct device_ranges *device = &search->devices[search->device_count];
        const char *image = common->input.images[i];
        const struct bw_device_info *found = NULL;
        size_t matches = 0;
        if (!common->input.maps.items[i])
            continue;
        search->device_count++;
        BW_TRY(bad_map_read(common->input.maps.items[i], &device->bad));
        for (size_t k = 0; k < devices.count; k++) {
            if (!devices.items[k].path || strcmp(devices.items[k].path, image) != 0)
                continue;
            found = &devices.items[k];
            matches++;
        }
        /* The device begins at an offset of the image, and is stored there unchanged. */
        if (matches != 1 ||
            (found->container && (!found->partition || strchr(found->container, '>'))))
            return bw_error_create(
                BW_ERROR_UNSUPPORTED,
                "%s: a map needs an image of one device or disk, not a container", image);
        device->devid = found->devid;

        /* From offsets in the image to offsets on the device; ranges before it are dropped. */
        const uint64_t begin = found->partition_offset + common->input.fs.offset;
        struct bad_ranges *bad = &device->bad;
        size_t kept = 0;
        for (size_t k = 0; k < bad->count; k++) {
            const struct bw_address_range range = bad->items[k];
            const uint64_t cut = range.logical < begin ? begin - range.logical : 0;
            if (cut < range.length)
                bad->items[kept++] =
                    (struct bw_address_range){range.logical + cut - begin, range.length - cut};
        }
        bad->count = kept;
    }
    return NULL;
}

/* Finds the owners of the ranges of a device, once `given` and `device_map` are known. */
static struct bw_error *find_owners_on_device(struct search *search,
                                              struct bw_owner_options *owners)
{
    BW_TRY(map_ranges(search, false));
    /* Ranges that no other copy has come first. */
    bad_ranges_join(&search->ranges);
    bad_ranges_join(&search->repairable);
    search->lost = search->ranges.count;
    BW_TRY(bad_ranges_append(&search->ranges, search->repairable.items, search->repairable.count));
    owners->ranges = search->ranges.items;
    owners->count = search->ranges.count;
    cmd_progress_expect_trees(search->fs, false);
    BW_TRY(bw_owners_find(search->fs, owners));
    if (owners->subvolume)
        return NULL;
    return map_ranges(search, true);
}

static void free_search(struct search *search)
{
    bw_device_map_close(search->device_map);
    for (size_t i = 0; i < search->device_count; i++)
        bad_ranges_free(&search->devices[i].bad);
    free(search->devices);
    bad_ranges_free(&search->given);
    bad_ranges_free(&search->ranges);
    bad_ranges_free(&search->repairable);
}

struct bw_error *cmd_list_bad_owners(struct cmd_format *format, uint64_t devid,
                                     const struct bad_ranges *bad)
{
    struct device_ranges device = {devid, *bad};
    struct search search = {.record = bw_record_find("ownerinfo"),
                            .format = format,
                            .fs = format->session.fs,
                            .by_map = true,
                            .devices = &device,
                            .device_count = 1};
    struct bw_owner_options owners = {
        .struct_size = sizeof owners, .visit = write_owner, .context = &search};
    struct bw_error *error = bw_device_map_open(search.fs, &search.device_map);
    if (!error)
        error = find_owners_on_device(&search, &owners);
    search.devices = NULL;
    search.device_count = 0;
    free_search(&search);
    return error;
}

static struct bw_error *list(struct cmd_format *format, void *context)
{
    struct search *search = context;
    search->format = format;
    search->fs = format->session.fs;
    struct bw_owner_options owners = {.struct_size = sizeof owners,
                                      .whole_extents = search->extent,
                                      .no_extent_tree = search->scan,
                                      .visit = write_owner,
                                      .context = search};
    if (search->subvolume) {
        /* If the subvolume has no path, neither have the files in it. */
        BW_AUTO_FREE char *path = NULL;
        size_t length = 0;
        BW_TRY(bw_subvolume_by_name(search->fs, search->subvolume, &owners.subvolume));
        BW_AUTO_ERROR struct bw_error *error =
            bw_subvolume_path(search->fs, owners.subvolume, &path, &length);
        search->subvolume_length = !error && length > 1 ? length : 0;
    }
    if (search->devid || search->by_map) {
        BW_TRY(bw_device_map_open(search->fs, &search->device_map));
        if (search->by_map)
            BW_TRY(read_maps(search, search->format->common));
        if (!search->by_map) {
            /* The addresses are offsets on the device of --devid, which must exist. */
            struct device_ranges *device = calloc(1, sizeof *device);
            const char *rest = search->devid;
            struct bw_device_place place;
            if (!device)
                return bw_error_no_memory();
            search->devices = device;
            search->device_count = 1;
            device->bad = search->given;
            search->given = (struct bad_ranges){0};
            if (!cmd_parse_bytes(&rest, &device->devid) || *rest)
                return bw_error_create(BW_ERROR_USAGE, "invalid argument of --devid: %s",
                                       search->devid);
            struct bw_error *error =
                bw_device_map_find(search->device_map, device->devid, 0, 1, &place);
            if (error && error->code == BW_ERROR_NOT_FOUND)
                error->code = BW_ERROR_USAGE;
            BW_TRY(error);
        }
        return find_owners_on_device(search, &owners);
    }
    owners.ranges = search->given.items;
    owners.count = search->given.count;
    cmd_progress_expect_trees(search->fs, false);
    return bw_owners_find(search->fs, &owners);
}

/* Unless --log is given, the log is ignored: replaying it would create tree blocks that are not in
 * the image. */
static int run(const struct cmd_common *common, void *state)
{
    struct search *search = state;
    const struct cmd_format_plan plan = {
        .record = cmd_owner.record, .print = cmd_print_owner, .list = list, .context = search};
    struct cmd_common own = *common;
    struct bw_error *error = NULL;
    search->record = bw_record_find("ownerinfo");
    search->by_map = !common->path_count;
    if (search->by_map && !common->input.maps.count)
        return cmd_usage_error(&cmd_owner, "no address given, and no --map", NULL);
    if (search->by_map && search->devid)
        return cmd_usage_error(&cmd_owner, "--devid is for addresses; --map names its image", NULL);
    if (!common->input.log_given)
        own.input.fs.log = BW_LOG_IGNORE;
    for (size_t i = 0; !error && i < common->path_count; i++) {
        struct bw_address_range range;
        error = cmd_parse_range(common->paths[i], &range);
        if (!error && range.logical == UINT64_MAX)
            error = bw_error_create(BW_ERROR_USAGE, "invalid address: %s", common->paths[i]);
        range.length += !range.length;
        if (!error)
            error = bad_ranges_push(&search->given, range);
    }
    int status = cmd_fail(common, error);
    if (!status)
        status = cmd_format_run(&own, &plan);
    free_search(search);
    return status;
}

const struct command cmd_owner = {
    .name = "owner",
    .topic = cmd_topic_health,
    .operands = "IMAGE [ADDRESS[+LENGTH]...]",
    .summary = "Prints which files use an address or bad sectors.",
    .details =
        "\n"
        "For each logical ADDRESS, or each byte of a range, lists all files that store data\n"
        "there, in all subvolumes and snapshots and with all hard links, with the offset in\n"
        "the file and the number of bytes. With --devid, addresses are offsets on a device.\n"
        "An ADDRESS is a decimal number with an optional K, M, G, T, P or E, or 0x and\n"
        "hexadecimal digits.\n\n"
        "With --map and without ADDRESS, lists what the bad sectors of a dying disk destroyed:\n"
        "the files that lost data, each with its bad ranges, and the files that depend on lost\n"
        "metadata. Everything that the map does not mark as rescued counts as bad. A range is\n"
        "repairable if a mirror or parity outside of the bad sectors still has its contents.\n"
        "'rescue --dmesg' names the files in the messages of the kernel.\n\n"
        "Lines are of these kinds:\n"
        "  data       data of a file; for compressed data, the whole compressed extent\n"
        "  metadata   a tree block with items of the file, or a node above such a block\n"
        "  block      a tree block, once, with its level and first key\n"
        "  hidden     part of an extent in use that no file shows; --extent shows the files\n"
        "  free, unused, outside\n"
        "             no data; no data in the whole block group; no chunk at the address\n"
        "  superblock, reserved, unallocated, parity\n"
        "             areas of a device without a logical address\n\n"
        "Files come first, sorted by tree and inode. A file without a path is in a subvolume\n"
        "that is being deleted, or belongs to the file system itself. The log is ignored,\n"
        "unless --log=replay is given.\n",
    .examples =
        "  btrfs-walk owner disk.img 13631488               users of this byte\n"
        "  btrfs-walk owner --extent disk.img 0xd00000+64K  all users of the extents\n"
        "  btrfs-walk owner --map rescue.map disk.img       files hit by bad sectors\n"
        "  btrfs-walk owner --map rescue.map -o path disk.img | sort -u  files to restore\n",
    .options = options,
    .record = "ownerinfo",
    .run = run,
    .state_size = sizeof(struct search),
    .takes_paths = true,
};
