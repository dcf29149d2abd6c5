/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * layout/compressed: shows the contents of a compressed image. Such a file can only be decompressed
 * from its beginning, so that is done once, at the start, into a spool: a temporary file that has
 * no name, or memory. If the file is damaged, the part before the damage can be read, and reads
 * after it fail with the reason.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/unpack.h"
#include "servers/servers.h"
#include "servers/spool.h"
#include "xlators/classes.h"
#include "xlators/layout/containers.h"
#include "xlators/pieces.h"

enum { INPUT = 1 << 20, OUTPUT = 1 << 20 };

struct compressed {
    struct bw_spool *own;         /* NULL: the spool of the servers is used */
    const struct bw_spool *spool; /* the decompressed image */
};

static const struct bw_packing *find_packing(struct bw_xlator *device)
{
    uint8_t bytes[BW_PACKING_HEAD];
    if (!bw_try_read_raw(NULL, device, 0, bytes, sizeof bytes))
        return NULL;
    return bw_packing_find(bytes, sizeof bytes);
}

/* Decompressing. */

/* Decompresses a whole device into a spool. */
static struct bw_error *unpack(struct bw_xlator *device, struct bw_unpacker *unpacker,
                               struct bw_spool *spool)
{
    BW_AUTO_FREE uint8_t *input = malloc(INPUT);
    BW_AUTO_FREE uint8_t *output = malloc(OUTPUT);
    const struct bw_graph_inputs *inputs = bw_xlator_inputs(device);
    const uint64_t end = bw_xlator_size(device);
    if (!input || !output)
        return bw_error_no_memory();
    for (uint64_t offset = 0; offset < end;) {
        const size_t length = end - offset < INPUT ? (size_t)(end - offset) : INPUT;
        struct bw_unpacking bytes = {.input = input, .input_length = length};
        BW_TRY(bw_read_raw(NULL, device, offset, input, length));
        do {
            bytes.output = output;
            bytes.output_length = OUTPUT;
            struct bw_error *error = bw_unpack(unpacker, &bytes);
            struct bw_error *full = bw_spool_append(spool, output, OUTPUT - bytes.output_length);
            error = bw_error_first(full, error);
            if (error)
                return error;
        } while (!bytes.output_length);
        offset += length;
        if (inputs->decompressed)
            inputs->decompressed(inputs->decompressed_context, offset, end);
    }
    if (!bw_unpacker_is_complete(unpacker))
        return bw_error_create(BW_ERROR_CORRUPT, "the compressed file is cut off");
    return NULL;
}

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct compressed *compressed = bw_xlator_private(xlator);
    struct bw_xlator *device = bw_xlator_child(xlator, 0);
    const struct bw_packing *packing = find_packing(device);
    if (!packing)
        return bw_error_create(BW_ERROR_NOT_BTRFS, "it is not compressed in a known format");
    bw_xlator_set_title(xlator, "%s", bw_packing_name(packing));

    /* The spool that was made before the program confined itself belongs to the image; anything
     * that is compressed inside of an image needs another one. */
    const struct bw_xlator *image = device;
    const struct bw_servers *servers = bw_xlator_inputs(xlator)->servers;
    struct bw_spool *spool = NULL;
    while (bw_xlator_child_count(image) && strcmp(bw_xlator_type(image), "layout/concat") == 0)
        image = bw_xlator_child(image, 0);
    if (servers && !bw_xlator_child_count(image))
        spool = bw_servers_spool(servers, bw_xlator_image(image));
    if (!spool) {
        BW_TRY(bw_spool_create(&compressed->own));
        spool = compressed->own;
    }
    compressed->spool = spool;

    if (!bw_spool_is_finished(spool)) {
        struct bw_unpacker *unpacker = NULL;
        BW_TRY(bw_spool_begin(spool));
        struct bw_error *error = bw_unpacker_create(packing, &unpacker);
        if (!error)
            error = unpack(device, unpacker, spool);
        bw_unpacker_destroy(unpacker);
        const uint64_t unpacked = bw_spool_size(spool);
        if (error && (error->code != BW_ERROR_CORRUPT || !unpacked))
            return error;
        if (error)
            error = bw_error_prefix(error, "after %" PRIu64 " decompressed bytes", unpacked);
        bw_spool_finish(spool, error);
    }
    bw_xlator_set_size(xlator, bw_spool_size(spool));
    if (bw_spool_damage(spool))
        bw_xlator_report(xlator, BW_WARNING, bw_error_copy(bw_spool_damage(spool)));
    return NULL;
}

static void fini(struct bw_xlator *xlator)
{
    struct compressed *compressed = bw_xlator_private(xlator);
    bw_spool_destroy(compressed->own);
}

/* Reading. */

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    const struct compressed *compressed = bw_xlator_private(xlator);
    const struct bw_spool *spool = compressed->spool;
    (void)frame;
    for (size_t i = 0; i < count; i++) {
        struct bw_request *request = &requests[i];
        request->error = bw_request_check_end("the image ends", bw_spool_size(spool), request);
        if (!request->error) {
            request->error =
                bw_spool_read(spool, request->address, request->buffer, request->length);
        } else if (bw_spool_damage(spool)) {
            bw_error_free(request->error);
            request->error = bw_error_copy(bw_spool_damage(spool));
        }
    }
}

static uint64_t next_stored(struct bw_xlator *xlator, uint64_t address)
{
    const struct compressed *compressed = bw_xlator_private(xlator);
    return bw_spool_next_stored(compressed->spool, address);
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    const struct compressed *compressed = bw_xlator_private(xlator);
    bw_json_text(json, "format", bw_xlator_title(xlator));
    bw_json_number(json, "size", compressed->spool ? bw_spool_size(compressed->spool) : 0);
}

/* The container. */

/* Compressing twice makes no sense, except to fill up the disk. */
static bool find(struct bw_xlator *device, struct bw_container_id *id)
{
    (void)id;
    for (const struct bw_xlator *below = device; below; below = bw_xlator_child(below, 0))
        if (strcmp(bw_xlator_type(below), "layout/compressed") == 0)
            return false;
    return find_packing(device);
}

const struct bw_container_type bw_compressed_container = {.layer = "layout/compressed",
                                                          .find = find};

static const char page[] =
    "Shows the contents of an image that is compressed with zstd, lz4, gzip or xz. The default "
    "graph contains it for images that begin as such a file, unless nbdkit reads them.\n\n"
    "    btrfs-walk disk.img.zst\n"
    "    btrfs-walk ls backup.stream.zst /\n\n"
    "Such a file can only be decompressed from its beginning. The layer does that once, when it "
    "starts, into a temporary file in $TMPDIR or /var/tmp, which has no name and ends with the "
    "program. Zeros take no space in it. The file uses at most nine tenths of the free space "
    "there. "
    "Where no file can be made, as for an image inside of another one, it uses at most a quarter "
    "of the memory. If the compressed file is damaged or cut off, the part before can be read.\n";

const struct bw_xlator_class bw_layout_compressed_class = {
    .type = "layout/compressed",
    .description = "shows the contents of a compressed image",
    .page = page,
    BW_ONE_CHILD(BW_ADDRESS_DEVICE),
    .private_size = sizeof(struct compressed),
    /* The temporary file is in the page cache, or will be read ahead by the kernel. */
    .operations = {.init = init,
                   .fini = fini,
                   .read = read_requests,
                   .advise = bw_ignore_advice,
                   .size = bw_xlator_own_size,
                   .next_stored = next_stored,
                   .dump = dump,
                   .title = bw_xlator_title},
};
