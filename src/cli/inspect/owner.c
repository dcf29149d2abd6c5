/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The owner command: from addresses to files, and from lists of bad sectors to the affected
 * files. */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/search.h"
#include "btrfs-walk/format.h"
#include "btrfs-walk/probe_records.h"
#include "btrfs-walk/row_records.h"
#include "btrfs-walk/space.h"
#include "btrfs-walk/subvolume.h"
#include "btrfs-walk/tree.h"
#include "cli/common/answer.h"
#include "cli/common/monitor.h"
#include "cli/inspect/owner.h"
#include "cli/rescue/dmesg.h"

struct owner_state {
    const char *devid, *bad_map, *subvolume, *dmesg;
    uint64_t block_size, map_offset;
    bool extent, scan;
};

/* A running owner command. */
struct search {
    const struct owner_state *state;
    struct cmd_answer *answer;
    struct bw_fs *fs;
    size_t subvolume_length;      /* length of the path of --subvol, which is removed from printed
                                   * paths */
    struct bad_ranges given;      /* the ranges from the command line or the list */
    struct bad_ranges ranges;     /* logical ranges; first those that no other copy has */
    struct bad_ranges repairable; /* ranges that another copy or parity has */
    size_t lost;                  /* number of `ranges` that no other copy has */
    uint64_t devid, devices;
    struct bw_device_map *device_map;
};

static const struct cmd_option options[] = {
    {0, "devid", "DEVID", "addresses are offsets on the device with this id",
     CMD_TEXT(struct owner_state, devid)},
    {0, "bad-map", "FILE",
     "read bad ranges from a ddrescue(1) map (everything not rescued) or a badblocks(8) list",
     CMD_TEXT(struct owner_state, bad_map)},
    {0, "dmesg", "FILE",
     "explain the messages in this kernel log ('-': stdin), with the affected files",
     CMD_TEXT(struct owner_state, dmesg)},
    {0, "block-size", "BYTES", "block size of the badblocks list (default: 1024)",
     CMD_BYTES(struct owner_state, block_size)},
    {0, "map-offset", "BYTES", "offset of the device within the disk that the list describes",
     CMD_BYTES(struct owner_state, map_offset)},
    {0, "extent", NULL, "also list files that use other bytes of the same extent",
     CMD_FLAG(struct owner_state, extent)},
    {0, "subvol", "NAME|ID",
     "list only owners in this subvolume (path, id or 'default'), with paths inside it",
     CMD_TEXT(struct owner_state, subvolume)},
    {0, "all-trees", NULL, "read all trees, even if the extent tree is good",
     CMD_FLAG(struct owner_state, scan)},
    {0},
};

/* Rows. */

/* Appends a column, which is blank if the value is absent. */
static void append_number(struct bw_buffer *line, int width, uint64_t value, bool absent)
{
    if (absent)
        bw_buffer_format(line, " %*s", width, "");
    else
        bw_buffer_format(line, " %*" PRIu64, width, value);
}

/* A tree block: its level and first key. */
static void append_block(struct bw_buffer *line, const struct bw_ownerinfo *row, uint64_t absent)
{
    char key[BW_KEY_TEXT];
    bw_buffer_format(line, "level %" PRIu64 " %s", row->level,
                     absent & BW_MEMBER(ownerinfo, key) ? "" : bw_key_text(&row->key, key));
}

/* Columns of fixed width: there may be millions of lines, so they are not aligned afterwards. */
struct bw_error *cmd_print_owner(struct cmd_answer *answer, const void *record, uint64_t absent)
{
    const struct bw_ownerinfo *row = record;
    struct bw_buffer *line = &answer->text;
    const bool on_device = absent & BW_MEMBER(ownerinfo, logical);
    if (!answer->has_header)
        bw_buffer_format(line, "%-11s %15s %10s %6s %10s %12s  %s\n", "kind", "address", "length",
                         "tree", "inode", "offset", "path");
    answer->has_header = true;
    bw_buffer_format(line, "%-11s", row->kind);
    append_number(line, 15, on_device ? row->offset : row->logical, false);
    append_number(line, 10, row->length, false);
    append_number(line, 6, row->tree, absent & BW_MEMBER(ownerinfo, tree));
    append_number(line, 10, row->inode, absent & BW_MEMBER(ownerinfo, inode));
    append_number(line, 12, row->file_offset, absent & BW_MEMBER(ownerinfo, file_offset));
    bw_buffer_append(line, "  ", 2);
    if (row->path.data)
        bw_escape_line(line, row->path.data, row->path.length);
    else if (!(absent & BW_MEMBER(ownerinfo, level)))
        append_block(line, row, absent);
    if (row->repairable)
        bw_buffer_format(line, "  (repairable)");
    while (line->length && line->data[line->length - 1] == ' ')
        line->length--;
    bw_buffer_append_byte(line, '\n');
    return NULL;
}

static struct bw_error *write_row(struct search *search, const struct bw_ownerinfo *row,
                                  uint64_t absent)
{
    return cmd_answer_write(search->answer, row, sizeof *row, absent);
}

enum absent_members {
    NO_EXTENT = 1 << 0,
    NO_FILE = 1 << 1,
    NO_OFFSET = 1 << 2,
    NO_BLOCK = 1 << 3,
};

/* The members that each kind lacks. */
static const unsigned lacks[] = {
    [BW_OWNER_DATA] = NO_BLOCK,
    [BW_OWNER_METADATA] = NO_OFFSET,
    [BW_OWNER_BLOCK] = NO_FILE | NO_OFFSET,
    [BW_OWNER_HIDDEN] = NO_EXTENT | NO_FILE | NO_OFFSET | NO_BLOCK,
    [BW_OWNER_FREE] = NO_EXTENT | NO_FILE | NO_OFFSET | NO_BLOCK,
    [BW_OWNER_UNUSED] = NO_EXTENT | NO_FILE | NO_OFFSET | NO_BLOCK,
    [BW_OWNER_OUTSIDE] = NO_EXTENT | NO_FILE | NO_OFFSET | NO_BLOCK,
};

static const uint64_t no_device = BW_MEMBER(ownerinfo, devid) | BW_MEMBER(ownerinfo, offset);

static uint64_t absent_members(unsigned lack, bool has_key)
{
    uint64_t absent = 0;
    if (lack & NO_EXTENT)
        absent |= BW_MEMBER(ownerinfo, extent_logical) | BW_MEMBER(ownerinfo, tree) |
                  BW_MEMBER(ownerinfo, subvolume);
    if (lack & NO_FILE)
        absent |= BW_MEMBER(ownerinfo, inode);
    if (lack & NO_OFFSET)
        absent |= BW_MEMBER(ownerinfo, file_offset) | BW_MEMBER(ownerinfo, file_length);
    if (lack & NO_BLOCK)
        absent |= BW_MEMBER(ownerinfo, level);
    if (!has_key)
        absent |= BW_MEMBER(ownerinfo, key);
    return absent;
}

/* The printed path: relative to the subvolume of --subvol. */
static struct bw_bytes path_of(const struct search *search, const struct bw_owner *owner)
{
    const size_t skipped = search->subvolume_length;
    const char *path = owner->path.data;
    if (!path || !skipped)
        return owner->path;
    return owner->path.length > skipped
               ? (struct bw_bytes){path + skipped, owner->path.length - skipped}
               : (struct bw_bytes){"/", 1};
}

static bool is_subvolume(uint64_t tree)
{
    return tree == BW_TOP_SUBVOLUME || (tree >= BW_FIRST_SUBVOLUME && tree <= BW_LAST_SUBVOLUME);
}

static struct bw_error *write_owner(void *context, const struct bw_owner *owner)
{
    const struct search *search = context;
    const struct bw_bytes path = path_of(search, owner);
    const struct bw_ownerinfo row = {
        .kind = bw_owner_kind_name(owner->kind),
        .logical = owner->logical,
        .length = owner->length,
        .extent_logical = owner->extent,
        .tree = owner->tree,
        .subvolume = owner->tree,
        .inode = owner->inode,
        .file_offset = owner->offset,
        .file_length = owner->file_length,
        .path = path,
        .path_bytes = path,
        .level = owner->level,
        .key = owner->key,
        .repairable = search->state->bad_map && owner->range >= search->lost,
    };
    return write_row(context, &row,
                     (search->state->bad_map ? 0 : BW_MEMBER(ownerinfo, repairable)) | no_device |
                         (is_subvolume(owner->tree) ? 0 : BW_MEMBER(ownerinfo, subvolume)) |
                         absent_members(lacks[owner->kind], owner->has_key));
}

/* Devices. */

static struct bw_error *write_place(struct search *search, uint64_t offset,
                                    const struct bw_device_place *place)
{
    static const char *const uses[] = {[BW_USE_CHUNK] = "unused",
                                       [BW_USE_UNALLOCATED] = "unallocated",
                                       [BW_USE_RESERVED] = "reserved",
                                       [BW_USE_SUPERBLOCK] = "superblock",
                                       [BW_USE_OUTSIDE] = "outside"};
    const struct bw_ownerinfo row = {.kind = place->parity ? "parity" : uses[place->use],
                                     .length = place->length,
                                     .devid = search->devid,
                                     .offset = offset};
    return write_row(search, &row,
                     BW_MEMBER(ownerinfo, repairable) | BW_MEMBER(ownerinfo, logical) |
                         absent_members(lacks[BW_OWNER_FREE], false));
}

static void limit_length(struct bw_device_place *place, uint64_t length)
{
    if (place->length > length)
        place->length = length;
}

/* Whether an offset on the device is bad. Shortens the place so that the answer holds for its whole
 * length. */
static bool is_bad(const struct search *search, uint64_t offset, struct bw_device_place *place)
{
    const struct bad_ranges *bad = &search->given;
    const size_t next = BW_FIRST_INDEX(i, bad->count, bad->items[i].logical > offset);
    const uint64_t end = next ? bad->items[next - 1].logical + bad->items[next - 1].length : 0;
    if (end > offset)
        limit_length(place, end - offset);
    else if (next < bad->count)
        limit_length(place, bad->items[next].logical - offset);
    return end > offset;
}

/* Whether another copy, or parity, has the data of this bad copy. Shortens the place likewise. */
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
        if (other.devid != search->devid || !is_bad(search, other.offset, place))
            return true;
    }
}

/* Iterates over the places on a range of the device. With `places`, writes those without a logical
 * address; otherwise gathers the logical addresses. */
static struct bw_error *map_range(struct search *search, struct bw_address_range range, bool places)
{
    while (range.length) {
        struct bw_device_place place;
        BW_TRY(bw_device_map_find(search->device_map, search->devid, range.logical, range.length,
                                  &place));
        if (!place.copy && places)
            BW_TRY(write_place(search, range.logical, &place));
        const bool repairable =
            place.copy && search->state->bad_map && is_repairable(search, &place);
        if (place.copy && !places &&
            !bad_ranges_add(repairable ? &search->repairable : &search->ranges, place.logical,
                            place.length))
            return bw_error_no_memory();
        range.logical += place.length;
        range.length -= place.length;
    }
    return NULL;
}

static struct bw_error *map_ranges(struct search *search, bool places)
{
    for (size_t i = 0; i < search->given.count; i++)
        BW_TRY(map_range(search, search->given.items[i], places));
    return NULL;
}

static struct bw_error *count_device(void *context, const struct bw_device_info *device)
{
    struct search *search = context;
    search->devices++;
    if (!search->state->devid)
        search->devid = device->devid;
    return NULL;
}

static struct bw_error *find_device(struct search *search)
{
    const char *rest = search->state->devid;
    BW_TRY(bw_fs_devices(search->fs, count_device, search));
    if (rest && (!cmd_parse_bytes(&rest, &search->devid) || *rest))
        return bw_error_create(BW_ERROR_USAGE, "invalid argument of --devid: %s",
                               search->state->devid);
    if (!rest && search->devices != 1)
        return bw_error_create(BW_ERROR_USAGE, "the list does not name its device; "
                                               "select it with --devid ('devices' lists them)");
    struct bw_device_place place;
    BW_TRY(bw_device_map_open(search->fs, &search->device_map));
    struct bw_error *error = bw_device_map_find(search->device_map, search->devid, 0, 1, &place);
    if (error && error->code == BW_ERROR_NOT_FOUND)
        error->code = BW_ERROR_USAGE;
    return error;
}

/* The steps of the command. */

/* Converts offsets on a disk to offsets on a partition that begins at `by`. */
static void shift_ranges(struct bad_ranges *ranges, uint64_t by)
{
    size_t kept = 0;
    for (size_t i = 0; i < ranges->count; i++) {
        struct bw_address_range range = ranges->items[i];
        const uint64_t cut = range.logical < by ? by - range.logical : 0;
        if (cut >= range.length)
            continue;
        ranges->items[kept++] =
            (struct bw_address_range){range.logical + cut - by, range.length - cut};
    }
    ranges->count = kept;
}

static struct bw_error *join_ranges(struct search *search)
{
    bad_ranges_join(&search->ranges);
    bad_ranges_join(&search->repairable);
    search->lost = search->ranges.count;
    for (size_t i = 0; i < search->repairable.count; i++)
        if (!bad_ranges_add(&search->ranges, search->repairable.items[i].logical,
                            search->repairable.items[i].length))
            return bw_error_no_memory();
    return NULL;
}

/* Finds the subvolume of --subvol. If it has no path, neither have the files in it. */
static struct bw_error *find_subvolume(struct search *search, const char *name,
                                       const struct bw_subvolume **subvolume)
{
    BW_AUTO_FREE char *path = NULL;
    size_t length = 0;
    BW_TRY(bw_subvolume_by_name(search->fs, name, subvolume));
    BW_AUTO_ERROR struct bw_error *error =
        bw_subvolume_path(search->fs, *subvolume, &path, &length);
    search->subvolume_length = !error && length > 1 ? length : 0;
    return NULL;
}

/* Finds the owners of the ranges of a device, once `given` and `device_map` are known. */
static struct bw_error *find_owners_on_device(struct search *search,
                                              struct bw_owner_options *owners)
{
    BW_TRY(map_ranges(search, false));
    BW_TRY(join_ranges(search));
    owners->ranges = search->ranges.items;
    owners->count = search->ranges.count;
    cmd_progress_expect_trees(search->fs, false);
    BW_TRY(bw_owners_find(search->fs, owners));
    return owners->subvolume ? NULL : map_ranges(search, true);
}

static struct bw_error *find_owners(struct search *search)
{
    const struct owner_state *state = search->state;
    struct bw_owner_options owners = {.struct_size = sizeof owners,
                                      .whole_extents = state->extent,
                                      .no_extent_tree = state->scan,
                                      .visit = write_owner,
                                      .context = search};
    const bool by_device = state->devid || state->bad_map;
    if (state->subvolume)
        BW_TRY(find_subvolume(search, state->subvolume, &owners.subvolume));
    if (by_device) {
        BW_TRY(find_device(search));
        return find_owners_on_device(search, &owners);
    }
    owners.ranges = search->given.items;
    owners.count = search->given.count;
    cmd_progress_expect_trees(search->fs, false);
    return bw_owners_find(search->fs, &owners);
}

struct bw_error *cmd_list_bad_owners(struct cmd_answer *answer, uint64_t devid,
                                     const struct bad_ranges *bad)
{
    static const struct owner_state state = {.bad_map = ""};
    struct search search = {
        .state = &state, .answer = answer, .fs = answer->session.fs, .given = *bad, .devid = devid};
    struct bw_owner_options owners = {
        .struct_size = sizeof owners, .visit = write_owner, .context = &search};
    struct bw_error *error = bw_device_map_open(search.fs, &search.device_map);
    if (!error)
        error = find_owners_on_device(&search, &owners);
    bw_device_map_close(search.device_map);
    free(search.ranges.items);
    free(search.repairable.items);
    return error;
}

static struct bw_error *list(struct cmd_answer *answer, void *context)
{
    struct search *search = context;
    search->answer = answer;
    search->fs = answer->session.fs;
    struct bw_error *error = find_owners(search);
    bw_device_map_close(search->device_map);
    return error;
}

static struct bw_error *parse_operands(const struct cmd_common *common, struct search *search)
{
    const struct owner_state *state = search->state;
    if (state->bad_map)
        BW_TRY(bad_map_read(state->bad_map, state->block_size, &search->given));
    shift_ranges(&search->given, state->map_offset);
    for (size_t i = 0; i < common->path_count; i++) {
        uint64_t address, length;
        BW_TRY(cmd_parse_range(common->paths[i], &address, &length));
        if (address == UINT64_MAX)
            return bw_error_create(BW_ERROR_USAGE, "invalid address: %s", common->paths[i]);
        if (!bad_ranges_add(&search->given, address, length ? length : 1))
            return bw_error_no_memory();
    }
    return NULL;
}

/* Unless --log is given, the log is ignored: replaying it would create tree blocks that are not in
 * the image. */
static int run(const struct cmd_common *common, void *state)
{
    struct search search = {.state = state};
    const struct cmd_answer_plan plan = {
        .record = cmd_owner.record, .print = cmd_print_owner, .list = list, .context = &search};
    struct cmd_common own = *common;
    if (search.state->dmesg)
        return dmesg_run(common, search.state->dmesg, search.state->map_offset);
    if (!common->path_count && !search.state->bad_map)
        return cmd_usage_error(&cmd_owner, "no address given", NULL);
    if (!common->input.log_given)
        own.input.log = BW_LOG_IGNORE;
    struct bw_error *error = parse_operands(common, &search);
    const int status = error ? cmd_fail(common, error) : cmd_answer_run(&own, &plan);
    free(search.given.items);
    free(search.ranges.items);
    free(search.repairable.items);
    return status;
}

static const char *record_of(const void *state)
{
    const struct owner_state *settings = state;
    return settings->dmesg ? "kernelmessageinfo" : cmd_owner.record;
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
        "--bad-map lists what bad sectors of a dying disk destroyed: the files that lost\n"
        "data, each with its bad ranges, and the files that depend on lost metadata. If the\n"
        "file system has several devices, --devid selects the device that the list describes.\n"
        "Sectors that were not tried count as bad. A range is repairable if a copy or parity\n"
        "outside of the bad sectors still has its contents.\n\n"
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
        "  btrfs-walk owner --bad-map rescue.map disk.img   files hit by bad sectors\n"
        "  btrfs-walk owner --bad-map rescue.map -o path disk.img | sort -u  files to restore\n",
    .options = options,
    .record = "ownerinfo",
    .record_of = record_of,
    .run = run,
    .state_size = sizeof(struct owner_state),
    .defaults = &(const struct owner_state){.block_size = 1024},
    .takes_paths = true,
};
