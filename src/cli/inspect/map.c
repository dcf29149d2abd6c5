/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The map command: from logical addresses to devices, and back.
 *
 * A range is translated piece by piece: bw_fs_map() and bw_device_map_find() return for how many
 * bytes their result is valid. A range without a length ends after its first piece. All ranges are
 * checked before the first row is written. --used lists the space in use instead.
 */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/generated.h"
#include "base/search.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/space.h"
#include "cli/command.h"
#include "cli/common/output_format.h"
#include "cli/inspect/device_row.h"

/* A running map command. */
struct map {
    /* The options. */
    uint64_t devid;
    bool by_device;
    bool used;

    /* While it runs. */
    struct cmd_format *format;
    struct bw_fs *fs;
    const struct bw_address_range *ranges; /* without a length: up to the end of the first piece */
    size_t range_count;
    struct bw_device_list devices;
    struct bw_chunk_list chunks;      /* empty with --devid */
    struct bw_device_map *device_map; /* only with --devid */
    const char *image;                /* with --used: of the current device */
};

static const struct cmd_option options[] = {
    {0, "devid", "DEVID",
     "ADDRESS is an offset on the device with this id; print its logical address. With --used, "
     "list only this device",
     CMD_BYTES(struct map, devid), CMD_GIVEN(struct map, by_device),
     .allowed = "the number of a device; 'devices' lists them"},
    {0, "used", NULL, "list all ranges of the devices, and whether they are in use",
     CMD_FLAG(struct map, used)},
    {0},
};

/* Addresses outside of all chunks and devices. */

/* Index of the first chunk after an address. */
static size_t chunk_after(const struct map *map, uint64_t address)
{
    return BW_FIRST_INDEX(i, map->chunks.count, map->chunks.items[i].logical > address);
}

/* Whether an address is outside of all chunks; limits `*length` to the distance to the next
 * chunk. */
static bool is_outside(const struct map *map, uint64_t address, uint64_t *length)
{
    size_t next = chunk_after(map, address);
    const struct bw_chunk_info *chunks = map->chunks.items;
    if (next && address - chunks[next - 1].logical < chunks[next - 1].length)
        return false;
    if (next < map->chunks.count && chunks[next].logical - address < *length)
        *length = chunks[next].logical - address;
    return true;
}

/* BW_ERROR_USAGE for a range that begins outside of all chunks, or of the device. */
static struct bw_error *check_range(const struct map *map, const struct bw_address_range *range)
{
    struct bw_mapping mapping;
    struct bw_device_place place;
    if (!map->by_device) {
        uint64_t length = 1;
        struct bw_buffer BW_AUTO_BUFFER text = {0};
        BW_AUTO_ERROR struct bw_error *error = bw_fs_map(map->fs, range->logical, 1, 1, &mapping);
        if (!error || !is_outside(map, range->logical, &length))
            return NULL;
        const size_t next = chunk_after(map, range->logical);
        const struct bw_chunk_info *chunks = map->chunks.items;
        if (next)
            bw_buffer_format(&text, "; the previous chunk is %" PRIu64 "+%" PRIu64,
                             chunks[next - 1].logical, chunks[next - 1].length);
        if (next < map->chunks.count)
            bw_buffer_format(&text, "; the next chunk is %" PRIu64 "+%" PRIu64,
                             chunks[next].logical, chunks[next].length);
        return bw_error_create(BW_ERROR_USAGE, "no chunk holds logical address %" PRIu64 "%s",
                               range->logical, bw_buffer_text(&text));
    }
    BW_AUTO_ERROR struct bw_error *error =
        bw_device_map_find(map->device_map, map->devid, range->logical, 1, &place);
    if (error && error->code == BW_ERROR_NOT_FOUND) {
        enum { ENOUGH = 32 };
        struct bw_buffer BW_AUTO_BUFFER text = {0};
        for (size_t i = 0; i < map->devices.count && i < ENOUGH; i++)
            bw_buffer_format(&text, "%s%" PRIu64, i ? ", " : "", map->devices.items[i].devid);
        if (map->devices.count > ENOUGH)
            bw_buffer_format(&text, ", ...");
        if (!map->devices.count)
            bw_buffer_format(&text, "none");
        return bw_error_create(BW_ERROR_USAGE,
                               "there is no device %" PRIu64 "; the file system has %s", map->devid,
                               bw_buffer_text(&text));
    }
    if (error)
        return BW_TAKE(error);
    if (place.use != BW_USE_OUTSIDE)
        return NULL;
    return bw_error_create(BW_ERROR_USAGE, "offset %" PRIu64 " is after the end of device %" PRIu64,
                           range->logical, map->devid);
}

/* Looking up. */

/* Writes a row. `alternative`: number of the image of the device; 0: it has only one. */
static struct bw_error *write_row(const struct map *map, struct bw_placeinfo *row,
                                  uint64_t alternative)
{
    const char *path = alternative ? bw_fs_alternative(map->fs, row->devid, alternative) : NULL;
    if (row->devid != BW_ABSENT)
        for (size_t i = 0; !path && i < map->devices.count; i++)
            if (map->devices.items[i].devid == row->devid)
                path = map->devices.items[i].path;
    row->device = row->device_bytes = (struct bw_bytes){path, path ? strlen(path) : 0};
    if (!row->mirror)
        row->mirror = BW_ABSENT;
    return cmd_format_write(map->format, row, sizeof *row);
}

/* Writes the location of the first contiguous piece of a range, and removes it from the range. */
static struct bw_error *map_logical(const struct map *map, struct bw_address_range *rest)
{
    static const char *const kinds[] = {"copy", "P", "Q"};
    struct bw_mapping place;
    uint64_t logical = rest->logical, length = rest->length;
    struct bw_error *error = bw_fs_map(map->fs, logical, rest->length, 1, &place);
    const bool no_location = error && error->code == BW_ERROR_NOT_FOUND;
    const bool outside = no_location && is_outside(map, logical, &length);
    if (no_location)
        bw_error_free(BW_TAKE(error));
    if (error)
        return error;
    if (!outside)
        length = place.length;
    rest->logical += length;
    rest->length -= length;
    if (no_location) {
        struct bw_placeinfo row = {.logical = logical,
                                   .length = length,
                                   .kind = outside ? "outside" : "unused",
                                   .devid = BW_ABSENT,
                                   .offset = BW_ABSENT};
        return write_row(map, &row, 0);
    }

    /* The copies, then the parity of the row: the first rebuilt copy is located at P, the first one
     * at another place at Q. Further ones, of more images or of other ways to rebuild, have no
     * place of their own. */
    unsigned parity = 0;
    uint64_t devid = 0, offset = 0; /* where the copy before is */
    for (unsigned copy = 1; copy <= place.copies && parity < 2; copy++) {
        BW_TRY(bw_fs_map(map->fs, logical, length, copy, &place));
        if (place.rebuilt && parity && place.devid == devid && place.offset == offset)
            continue;
        parity += place.rebuilt;
        devid = place.devid;
        offset = place.offset;
        struct bw_placeinfo row = {.logical = logical,
                                   .length = place.length,
                                   .kind = kinds[parity],
                                   .mirror = place.rebuilt ? 0 : copy,
                                   .devid = place.devid,
                                   .offset = place.offset};
        BW_TRY(write_row(map, &row, place.rebuilt ? 0 : place.alternative));
    }
    return NULL;
}

/* The same for a range of the device. */
static struct bw_error *map_device(const struct map *map, struct bw_address_range *rest)
{
    struct bw_device_place place;
    BW_TRY(bw_device_map_find(map->device_map, map->devid, rest->logical, rest->length, &place));
    const char *kind = device_use_words[place.use];
    if (place.parity)
        kind = place.parity == 1 ? "P" : "Q";
    else if (place.copy)
        kind = "copy";
    const bool has_logical = place.copy || place.parity;
    struct bw_placeinfo row = {.logical = has_logical ? place.logical : BW_ABSENT,
                               .length = place.length,
                               .kind = kind,
                               .mirror = place.copy,
                               .devid = map->devid,
                               .offset = rest->logical};
    rest->logical += place.length;
    rest->length -= place.length;
    return write_row(map, &row, 0);
}

static struct bw_error *list(struct cmd_format *format, void *context)
{
    struct map *map = context;
    struct bw_fs *fs = map->fs = format->session.fs;
    map->format = format;
    struct bw_error *error = bw_fs_devices(fs, &map->devices);
    if (!error && map->by_device)
        error = bw_device_map_open(fs, &map->device_map);
    else if (!error)
        error = bw_fs_chunks(fs, &map->chunks);
    for (size_t i = 0; !error && i < map->range_count; i++)
        error = check_range(map, &map->ranges[i]);
    for (size_t i = 0; !error && i < map->range_count; i++) {
        struct bw_address_range rest = map->ranges[i];
        const bool is_whole = rest.length;
        if (!is_whole)
            rest.length = UINT64_MAX - rest.logical;
        do {
            if (map->by_device)
                error = map_device(map, &rest);
            else
                error = map_logical(map, &rest);
        } while (!error && is_whole && rest.length);
    }
    bw_device_map_close(map->device_map);
    bw_chunk_list_free(&map->chunks);
    bw_device_list_free(&map->devices);
    return error;
}

/* The list of the space in use, for --used. */

static struct bw_error *write_range(void *context, const struct bw_used_range *range)
{
    const struct map *map = context;
    const struct bw_bytes path = {map->image, map->image ? strlen(map->image) : 0};
    const struct bw_usedinfo row = {.start = range->offset,
                                    .length = range->length,
                                    .present = range->in_use,
                                    .zero = !range->in_use,
                                    .data = range->in_use,
                                    .offset = range->offset,
                                    .kind = bw_used_kind_name(range->kind),
                                    .devid = range->devid,
                                    .device = path,
                                    .device_bytes = path};
    return cmd_format_write(map->format, &row, sizeof row);
}

static struct bw_error *list_devices(struct cmd_format *format, void *context)
{
    struct map *map = context;
    struct bw_fs *fs = format->session.fs;
    struct bw_used_map *used;
    map->format = format;
    BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
    bool found = false;
    BW_TRY(bw_used_map_open(fs, NULL, &used));
    struct bw_error *error = bw_fs_devices(fs, &devices);
    for (size_t i = 0; !error && i < devices.count; i++) {
        const struct bw_device_info *device = &devices.items[i];
        if (map->by_device ? device->devid != map->devid : !device->path)
            continue;
        found = true;
        map->image = device->path;
        error = bw_used_map_device(used, device->devid, write_range, map);
    }
    if (!error && map->by_device && !found)
        error = bw_error_create(BW_ERROR_USAGE,
                                "there is no device %" PRIu64 "; 'devices' lists them", map->devid);
    bw_used_map_close(used);
    return error;
}

static struct cmd_format_plan plan_of(const void *state)
{
    const struct map *map = state;
    if (map->used)
        return (struct cmd_format_plan){.record = "usedinfo",
                                        .columns = "devid,start,length,data,kind,device",
                                        .list = list_devices};
    const char *columns = map->by_device ? "devid,offset,length,kind,logical,mirror"
                                         : "logical,length,kind,mirror,devid,offset,device";
    return (struct cmd_format_plan){.columns = columns, .list = list};
}

static int run(const struct cmd_common *common, void *state)
{
    struct map *map = state;
    const size_t count = common->path_count;
    if (map->used) {
        /* Without addresses, all operands are images; the array has room for them. */
        struct cmd_common own = *common;
        for (size_t i = 0; i < count; i++)
            own.input.images[own.input.image_count++] = common->paths[i];
        return cmd_run_plan(&own, &cmd_map, map);
    }
    if (!count)
        return cmd_usage_error(&cmd_map, "no address given", NULL);
    BW_AUTO_FREE struct bw_address_range *ranges = calloc(count, sizeof *ranges);
    if (!ranges)
        return cmd_fail(common, bw_error_no_memory());
    map->ranges = ranges;
    map->range_count = count;
    for (size_t i = 0; i < count; i++) {
        struct bw_error *error = cmd_parse_range(common->paths[i], &ranges[i]);
        if (error)
            return cmd_fail(common, error);
    }
    return cmd_run_plan(common, &cmd_map, map);
}

const struct command cmd_map = {
    .name = "map",
    .topic = cmd_topic_structures,
    .operands = "IMAGE [ADDRESS[+LENGTH]]...",
    .summary = "Translates logical addresses to device offsets, or back.",
    .details =
        "\n"
        "For each logical ADDRESS, prints the device and offset of each mirror and, for RAID5 and\n"
        "RAID6, of the parity blocks P and Q of its row, and for how many bytes this mapping is\n"
        "valid. With +LENGTH, the whole range is mapped, in pieces. With --devid, ADDRESS is an\n"
        "offset on that device and is translated to a logical address. An offset without a\n"
        "logical address is a superblock, reserved (the first MiB), unallocated, or unused:\n"
        "allocated to a chunk, but without data.\n\n"
        "With --used, lists the ranges of all devices with an image, and their contents.\n"
        "A range is in use (data) if a copy of the device needs it, as 'copy' makes one. Damage\n"
        "never removes ranges from those in use. --json has the members of 'qemu-img map\n"
        "--output=json', and --json=array its form.\n\n"
        "An ADDRESS is a decimal number with an optional K, M, G, T, P or E, or 0x and\n"
        "hexadecimal digits. Further devices follow IMAGE; if --graph names the images, all\n"
        "operands are addresses.\n",
    .examples = "  btrfs-walk map disk.img 30408704               its mirrors\n"
                "  btrfs-walk map a.img b.img c.img 0x6500000+1M  each piece of a range\n"
                "  btrfs-walk map --devid 1 disk.img 64M          a device offset\n"
                "  btrfs-walk map --used disk.img                 the space in use\n",
    .options = options,
    .record = "placeinfo",
    .plan_of = plan_of,
    .run = run,
    .state_size = sizeof(struct map),
    .takes_paths = true,
};
