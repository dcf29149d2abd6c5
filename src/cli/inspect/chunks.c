/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The chunks command: chunks and how much of each is used, or devices and how much of each is
 * allocated. */
#include "base/cleanup.h"
#include "base/generated.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/space.h"
#include "cli/common/output_format.h"

struct chunks_state {
    unsigned by;
};

enum { BY_CHUNK, BY_DEVICE };
static const char *const orders[] = {
    [BY_CHUNK] = "chunk", [BY_DEVICE] = "device", [BY_DEVICE + 1] = NULL};

static const struct cmd_option options[] = {
    {0, "by", "WORD",
     "chunk: a line for each chunk (default); device: one for each stripe and gap of the devices",
     CMD_WORD(struct chunks_state, by, orders)},
    {0},
};

/* Finds out how many bytes of a chunk are used, if that is known. */
static struct bw_error *find_used(struct cmd_format *format, struct bw_block_groups *groups,
                                  struct bw_spaceinfo *row)
{
    struct bw_block_group_info group = {.used = 0};
    struct bw_error *error = bw_block_groups_find(groups, row->logical, &group);
    row->used = cmd_if_known(!error, group.used);
    if (error && error->code == BW_ERROR_NOT_FOUND)
        bw_fs_report(format->session.fs, BW_DAMAGE, BW_TAKE(error));
    return bw_error_tolerate(error); /* reported when the block groups were read */
}

static struct bw_error *list_all(struct cmd_format *format, void *context)
{
    const struct chunks_state *state = context;
    struct bw_block_groups *groups;
    BW_TRY(bw_block_groups_open(format->session.fs, &groups));
    struct bw_error *error;
    if (state->by == BY_DEVICE) {
        struct bw_device_map *map;
        error = bw_device_map_open(format->session.fs, &map);
        for (size_t i = 0; !error && i < bw_device_map_count(map); i++) {
            const struct bw_device_range *range = bw_device_map_range(map, i);
            const bool is_chunk = range->use == BW_USE_CHUNK;
            struct bw_spaceinfo row = {.devid = range->devid,
                                       .offset = range->offset,
                                       .stripe_length = range->length,
                                       .chunk_type = range->use == BW_USE_RESERVED ? "reserved"
                                                                                   : "unallocated",
                                       .logical = cmd_if_known(is_chunk, range->logical),
                                       .length = cmd_if_known(is_chunk, range->chunk_length),
                                       .used = BW_ABSENT,
                                       .profile = range->profile,
                                       .flags = cmd_if_known(is_chunk, range->type),
                                       .stripe = cmd_if_known(is_chunk, range->stripe)};
            if (is_chunk) {
                row.chunk_type = bw_chunk_type_name(range->type);
                error = find_used(format, groups, &row);
            }
            if (!error)
                error = cmd_format_write(format, &row, sizeof row);
        }
        bw_device_map_close(map);
    } else {
        BW_SCOPED(bw_chunk_list) struct bw_chunk_list chunks = {0};
        error = bw_fs_chunks(format->session.fs, &chunks);
        for (size_t i = 0; !error && i < chunks.count; i++) {
            const struct bw_chunk_info *chunk = &chunks.items[i];
            struct bw_spaceinfo row = {.logical = chunk->logical,
                                       .length = chunk->length,
                                       .chunk_type = bw_chunk_type_name(chunk->type),
                                       .profile = chunk->profile,
                                       .stripes = {chunk->stripes, chunk->stripe_count},
                                       .stripe_length = bw_chunk_stripe_length(chunk),
                                       .flags = chunk->type,
                                       .devid = BW_ABSENT,
                                       .offset = BW_ABSENT,
                                       .stripe = BW_ABSENT};
            error = find_used(format, groups, &row);
            if (!error)
                error = cmd_format_write(format, &row, sizeof row);
        }
    }
    bw_block_groups_close(groups);
    return error;
}

static struct cmd_format_plan plan_of(const void *state)
{
    const struct chunks_state *chunks = state;
    const char *by_chunk = "logical,length,chunk_type,profile,used,stripes",
               *by_device = "devid,offset,stripe_length,chunk_type,profile,logical,length,used";
    return (struct cmd_format_plan){.columns = chunks->by == BY_DEVICE ? by_device : by_chunk,
                                    .list = list_all};
}

const struct command cmd_chunks = {
    .name = "chunks",
    .topic = cmd_topic_structures,
    .operands = "IMAGE...",
    .summary = "Lists the chunks, how full they are, and where they are.",
    .details =
        "\n"
        "For each chunk, prints its logical address and length, its type, its RAID profile, how\n"
        "much of it is used, and DEVID:OFFSET of each of its stripes. With --by device, each\n"
        "line is a range of a device: a stripe of a chunk, or the space between stripes.\n\n"
        "Used bytes are counted once, not for each mirror. On zoned devices, space that cannot be\n"
        "written again before a zone reset is not counted, because only a mounted file system\n"
        "keeps track of it.\n",
    .examples = "  btrfs-walk chunks disk.img                             a table\n"
                "  btrfs-walk chunks --by device disk.img                 also the gaps\n"
                "  btrfs-walk chunks --json disk.img | jq .stripes        for programs\n"
                "  btrfs-walk chunks -o logical,chunk_type,used disk.img  columns\n",
    .options = options,
    .record = "spaceinfo",
    .sorts_rows = true,
    .plan_of = plan_of,
    .state_size = sizeof(struct chunks_state),
};
