/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * toys/single: a chunk map for file systems with the profiles single or DUP. It replaces
 * cluster/chunk-map, and shows that a layer from outside of the project receives the same messages
 * about devices and chunks. It supports neither second copies nor requests across chunks.
 */
#include <btrfs-walk/graph.h>
#include <stdlib.h>

struct chunk {
    uint64_t logical, length, offset;
    size_t child;
};

struct map {
    uint64_t devids[16]; /* by child */
    size_t device_count;
    struct chunk *chunks;
    size_t chunk_count;
};

static void fini(struct bw_xlator *xlator)
{
    struct map *map = bw_xlator_private(xlator);
    free(map->chunks);
}

static struct bw_error *add_chunk(struct map *map, const struct bw_chunk_info *chunk)
{
    struct chunk *grown = realloc(map->chunks, (map->chunk_count + 1) * sizeof *grown);
    if (!grown)
        return bw_error_no_memory();
    map->chunks = grown;
    for (size_t child = 0; child < map->device_count; child++)
        if (map->devids[child] == chunk->stripes[0].devid)
            grown[map->chunk_count++] =
                (struct chunk){chunk->logical, chunk->length, chunk->stripes[0].offset, child};
    return NULL;
}

static struct bw_error *control(struct bw_xlator *xlator, const struct bw_control *control)
{
    struct map *map = bw_xlator_private(xlator);
    if (control->kind == BW_CONTROL_CHUNK)
        return add_chunk(map, control->chunk);
    if (map->device_count == sizeof map->devids / sizeof *map->devids)
        return bw_error_create(BW_ERROR_UNSUPPORTED, "too many devices");
    map->devids[map->device_count++] = control->device->devid;
    return NULL;
}

static const struct chunk *find(const struct map *map, uint64_t address, uint32_t length)
{
    for (size_t i = 0; i < map->chunk_count; i++)
        if (address - map->chunks[i].logical < map->chunks[i].length &&
            length <= map->chunks[i].length - (address - map->chunks[i].logical))
            return &map->chunks[i];
    return NULL;
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct bw_request below = requests[i];
        const struct chunk *chunk = find(bw_xlator_private(xlator), below.address, below.length);
        if (!chunk || below.mirror > 1) {
            requests[i].error = bw_error_create(BW_ERROR_CORRUPT, "no chunk, or no such copy");
            continue;
        }
        below.address = chunk->offset + (below.address - chunk->logical);
        below.mirror = 0;
        bw_wind(frame, bw_xlator_child(xlator, chunk->child), &below, 1);
        requests[i].error = below.error;
    }
}

static struct bw_error *map(const struct bw_frame *frame, struct bw_xlator *xlator,
                            uint64_t address, uint32_t length, unsigned copy,
                            struct bw_map_reply *reply)
{
    const struct map *map = bw_xlator_private(xlator);
    const struct chunk *chunk = find(map, address, 1);
    (void)frame;
    (void)copy;
    if (!chunk)
        return bw_error_create(BW_ERROR_CORRUPT, "no chunk");
    uint64_t within = address - chunk->logical, left = chunk->length - within;
    *reply = (struct bw_map_reply){.copies = 1, .length = left < length ? (uint32_t)left : length};
    reply->location.devid = map->devids[chunk->child];
    reply->location.offset = chunk->offset + within;
    reply->location.present = true;
    return NULL;
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    const struct map *map = bw_xlator_private(xlator);
    bw_json_number(json, "chunks", map->chunk_count);
}

static const struct bw_xlator_class single_class = {
    .type = "toys/single",
    .description = "maps logical addresses to devices, for the profile single",
    .page = "Takes the place of cluster/chunk-map where every chunk has one stripe that counts.",
    .above = BW_ADDRESS_LOGICAL,
    .below = BW_ADDRESS_DEVICE,
    .minimum_children = 1,
    .maximum_children = 16,
    .private_size = sizeof(struct map),
    .takes = BW_TAKES(BW_CONTROL_DEVICE) | BW_TAKES(BW_CONTROL_CHUNK),
    .operations =
        {.fini = fini, .read = read_requests, .map = map, .control = control, .dump = dump},
};

BW_XLATOR_EXPORT(single_class);
