/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * layout/dm-verity: shows the data of a device that dm-verity protects, and verifies each block
 * that is read. The hash tree is on the same device, behind the data, or on the second child.
 */
#include "base/cleanup.h"
#include "xlators/classes.h"
#include "xlators/layout/containers.h"
#include "xlators/layout/pieces.h"
#include "xlators/layout/verity_tree.h"

struct verity {
    struct bw_verity_tree tree;
    uint64_t size; /* of the data, whole blocks */
    bool is_verified;
};

static struct bw_error *find_offset(struct bw_xlator *xlator, uint64_t *offset)
{
    struct bw_xlator *data = bw_xlator_child(xlator, 0);
    *offset = bw_xlator_option_number(xlator, "hash-offset");
    if (*offset || bw_xlator_child_count(xlator) > 1 ||
        bw_verity_find_after_data(NULL, data, offset))
        return NULL;
    return bw_verity_has_superblock(NULL, data, 0)
               ? bw_error_create(BW_ERROR_MISSING_DEVICE,
                                 "it is a hash device of dm-verity: give its data device, too")
               : bw_error_create(BW_ERROR_NOT_FOUND, "no superblock of dm-verity was found");
}

/* A device that was cut off shows its whole blocks. */
static void set_size(struct bw_xlator *xlator)
{
    struct verity *verity = bw_xlator_private(xlator);
    const uint64_t block = verity->tree.data_block;
    const uint64_t blocks = bw_xlator_size(bw_xlator_child(xlator, 0)) / block;
    verity->size = (blocks < verity->tree.data_blocks ? blocks : verity->tree.data_blocks) * block;
}

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct verity *verity = bw_xlator_private(xlator);
    const char *root = bw_xlator_option_text(xlator, "root-hash");
    struct bw_xlator *device = bw_xlator_child(xlator, bw_xlator_child_count(xlator) - 1);
    uint64_t offset;
    BW_TRY(find_offset(xlator, &offset));
    BW_TRY(bw_verity_open(NULL, device, offset, &verity->tree));
    set_size(xlator);
    verity->is_verified = *root;
    if (verity->is_verified)
        return bw_verity_set_root(NULL, &verity->tree, root);
    bw_xlator_report(xlator, BW_NOTE,
                     bw_error_create(BW_ERROR_NOT_FOUND,
                                     "the data are not verified by dm-verity, because no root hash "
                                     "was given"));
    return NULL;
}

static void fini(struct bw_xlator *xlator)
{
    struct verity *verity = bw_xlator_private(xlator);
    bw_verity_close(&verity->tree);
}

static uint64_t size(struct bw_xlator *xlator)
{
    const struct verity *verity = bw_xlator_private(xlator);
    return verity->size;
}

/* Whether a request has to be extended to whole blocks. */
static bool is_partial(const struct verity *verity, const struct bw_request *request)
{
    return verity->is_verified &&
           (request->address | request->length) & (verity->tree.data_block - 1);
}

static struct bw_error *verify_blocks(void *context, const struct bw_frame *frame, uint8_t *bytes,
                                      uint64_t address, uint64_t length)
{
    struct verity *verity = context;
    const uint32_t block = verity->tree.data_block;
    return bw_verity_check(frame, &verity->tree, address / block, bytes, length / block);
}

static bool is_passed(const struct bw_frame *frame, struct bw_xlator *xlator,
                      struct bw_request *request, struct bw_request *copy)
{
    struct verity *verity = bw_xlator_private(xlator);
    (void)copy;
    request->error = bw_request_check_end("the data of dm-verity end", verity->size, request);
    if (request->error)
        return false;
    if (!is_partial(verity, request))
        return true;
    request->error = bw_read_blocks(frame, bw_xlator_child(xlator, 0), 0, verity->tree.data_block,
                                    request, verify_blocks, verity);
    return false;
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    struct verity *verity = bw_xlator_private(xlator);
    bw_wind_copies(frame, xlator, requests, count, is_passed);
    for (size_t i = 0; i < count && verity->is_verified; i++) {
        struct bw_request *request = &requests[i];
        if (!request->error && !is_partial(verity, request))
            request->error =
                verify_blocks(verity, frame, request->buffer, request->address, request->length);
    }
}

static void advise(const struct bw_frame *frame, struct bw_xlator *xlator,
                   const struct bw_range *ranges, size_t count, unsigned copy)
{
    bw_wind_advise(frame, bw_xlator_child(xlator, 0), ranges, count, copy);
}

static uint64_t next_stored(struct bw_xlator *xlator, uint64_t address)
{
    const struct verity *verity = bw_xlator_private(xlator);
    const uint64_t next = bw_xlator_next_stored(bw_xlator_child(xlator, 0), address);
    return next < verity->size ? next : UINT64_MAX;
}

static const char *title(struct bw_xlator *xlator)
{
    const struct verity *verity = bw_xlator_private(xlator);
    return verity->is_verified ? "dm-verity" : "dm-verity (not verified)";
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    const struct verity *verity = bw_xlator_private(xlator);
    const struct bw_verity_tree *tree = &verity->tree;
    bw_json_bool(json, "verified", verity->is_verified);
    bw_json_text(json, "hash", tree->algorithm_name);
    bw_json_number(json, "data_block", tree->data_block);
    bw_json_number(json, "data_blocks", tree->data_blocks);
    bw_json_number(json, "hash_block", tree->hash_block);
    bw_json_number(json, "levels", tree->levels);
}

/* The container. */

/* A hash device counts as one, so that it is reported if its data device is missing. */
static bool find(const struct bw_frame *frame, struct bw_xlator *device, struct bw_container_id *id)
{
    uint64_t offset;
    (void)id;
    return bw_verity_has_superblock(frame, device, 0) ||
           bw_verity_find_after_data(frame, device, &offset);
}

const struct bw_container_type bw_verity_container = {
    .layer = "layout/dm-verity", .at_end = true, .find = find};

static const struct bw_option options[] = {
    {"root-hash", BW_OPTION_STRING, "", 0, 0,
     "root hash, in hexadecimal digits; empty: nothing is verified", NULL},
    {"hash-offset", BW_OPTION_SIZE, "0", 0, INT64_MAX,
     "offset of the superblock of dm-verity, on the last child; 0: after the btrfs on a single "
     "child, at the start of a second one",
     NULL},
    {0},
};

static const char page[] =
    "Shows the data of a device that dm-verity protects. The root hash, which --verity-root-hash "
    "gives, verifies all data that are read. Then a wrong or damaged block is an error, which "
    "names the block and the level of the hash tree. Without a root hash, the data are not "
    "verified.\n\n"
    "    btrfs-walk --verity-root-hash 4392...a08c data.img hash.img\n"
    "    btrfs-walk --verity-root-hash 4392...a08c data-and-hash.img\n\n"
    "The data are the first child of the layer. The hash tree begins with a superblock. The "
    "default graph contains the layer if the superblock follows a btrfs on the same device, "
    "or is at the start of another image or partition whose hashes fit the data. It may be "
    "anywhere, as veritysetup --hash-offset makes it, if a volfile or an option gives the "
    "offset:\n\n"
    "    btrfs-walk --insert layout/dm-verity@device-1,hash-offset=64M,root-hash=4392...a08c "
    "data-and-hash.img\n\n"
    "Data blocks and hash blocks have 512 bytes to 64 KiB. The hash types 0 and 1 are read, and "
    "all hashes of "
    "libgcrypt, such as sha1, sha256 and sha512. Error correction data (FEC) "
    "are ignored: damaged blocks are not repaired. Hash trees without a superblock "
    "(--no-superblock) are not read.\n";

const struct bw_xlator_class bw_layout_dm_verity_class = {
    .type = "layout/dm-verity",
    .description = "verifies the data of a device with dm-verity",
    .page = page,
    .above = BW_ADDRESS_DEVICE,
    .below = BW_ADDRESS_DEVICE,
    .minimum_children = 1,
    .maximum_children = 2,
    .private_size = sizeof(struct verity),
    .options = options,
    .operations = {.init = init,
                   .fini = fini,
                   .read = read_requests,
                   .advise = advise,
                   .size = size,
                   .next_stored = next_stored,
                   .dump = dump,
                   .title = title},
};
