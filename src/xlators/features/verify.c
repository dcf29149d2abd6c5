/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * features/verify: passes only tree blocks that are the ones requested. It checks the checksum, the
 * file system's id and what the parent promised; on a mismatch it reads the next copy, which may be
 * computed from parity. A block without a good copy fails with an error that lists every copy.
 * verify_data.c checks file data; other kinds of requests pass.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ondisk/node.h"
#include "graph/wind.h"
#include "xlators/classes.h"
#include "xlators/features/verify_copies.h"

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct bw_verify *verify = bw_xlator_private(xlator);
    pthread_mutex_init(&verify->lock, NULL);
    return NULL;
}

static void fini(struct bw_xlator *xlator)
{
    struct bw_verify *verify = bw_xlator_private(xlator);
    pthread_mutex_destroy(&verify->lock);
    bw_map_free(&verify->reported);
    free(verify->fsids);
}

static struct bw_error *control(struct bw_xlator *xlator, const struct bw_control *control)
{
    struct bw_verify *verify = bw_xlator_private(xlator);
    const struct bw_control_file_system *facts = control->file_system;
    uint8_t(*ids)[BW_UUID_SIZE] = calloc(facts->id_count, sizeof *ids);
    if (!ids)
        return bw_error_no_memory();
    memcpy(ids, facts->ids, facts->id_count * sizeof *ids);
    free(verify->fsids);
    verify->fsids = ids;
    verify->fsid_count = facts->id_count;
    verify->checksum = facts->checksum_type;
    verify->dumped = facts->dumped;
    return NULL;
}

static bool fsid_allowed(const struct bw_verify *verify, const uint8_t *fsid)
{
    for (size_t i = 0; i < verify->fsid_count; i++)
        if (memcmp(verify->fsids[i], fsid, BW_UUID_SIZE) == 0)
            return true;
    return false;
}

static struct bw_error *check(const struct bw_verify *verify, const struct bw_request *request)
{
    const uint8_t *block = request->buffer;
    if (request->length < sizeof(struct bw_disk_header))
        return bw_error_create(BW_ERROR_CORRUPT, "%" PRIu32 " bytes are no tree block",
                               request->length);
    if (!bw_checksum_accepts_block(verify->checksum, verify->dumped, block, request->length))
        return bw_error_create(BW_ERROR_CORRUPT, "%s checksum mismatch",
                               bw_checksum_name(verify->checksum));
    if (!fsid_allowed(verify, ((const struct bw_disk_header *)block)->fsid))
        return bw_error_create(BW_ERROR_CORRUPT, "block of another file system");
    return bw_node_check(block, request->length, request->address, request->expectation);
}

/* What is wrong with a block that was read: its error from below, or one of this layer. */
static struct bw_error *check_reply(const struct bw_frame *frame, struct bw_xlator *xlator,
                                    struct bw_request *request)
{
    if (request->error)
        return request->error;
    struct bw_error *error = check(bw_xlator_private(xlator), request);
    if (error)
        bw_error_add_hop(error, bw_xlator_type(xlator), bw_xlator_name(xlator), &request->address);
    BW_PROBE(
        bw_xlator_probes(xlator), block__verify, block_copy,
        &(struct bw_block_event){{.call = frame->call, .error = error}, request, request->copy});
    return error;
}

static struct bw_error *read_copy(const struct bw_frame *frame, struct bw_xlator *xlator,
                                  struct bw_request request, unsigned copy)
{
    request.copy = (uint8_t)copy;
    request.error = NULL;
    bw_wind(frame, bw_xlator_child(xlator, 0), &request, 1);
    return check_reply(frame, xlator, &request);
}

/*
 * Reads copy after copy into the request's buffer until one is good; false if none is. `first` is
 * the error of the request itself. If that was for a certain copy, no other one is tried.
 */
static bool find_good_copy(const struct bw_frame *frame, struct bw_xlator *xlator,
                           const struct bw_request *request, struct bw_error *first,
                           struct bw_bad_copies *bad, unsigned *used)
{
    if (request->copy) {
        bw_note_bad_copy(frame, xlator, request, request->copy, first, bad);
        return false;
    }
    unsigned copies = bw_copy_count(frame, xlator, request, NULL);
    const struct bw_error *before = first;
    for (*used = 1; *used <= copies; ++*used) {
        BW_PROBE(bw_xlator_probes(xlator), block__retry, block_copy,
                 &(struct bw_block_event){{.call = frame->call, .error = before}, request, *used});
        struct bw_error *reason = read_copy(frame, xlator, *request, *used);
        if (!reason)
            break;
        bw_note_bad_copy(frame, xlator, request, *used, reason, bad);
        before = reason;
    }
    /* Every copy is good now; the first read was not. */
    if (*used <= copies && !bad->text.length) {
        bw_note_bad_copy(frame, xlator, request, *used, BW_TAKE(first), bad);
        bad->good_again = true;
    }
    bw_error_free(first);
    return *used <= copies;
}

static struct bw_error *try_copies(const struct bw_frame *frame, struct bw_xlator *xlator,
                                   const struct bw_request *request, struct bw_error *first)
{
    struct bw_bad_copies bad = {.code = BW_ERROR_CORRUPT};
    unsigned used;
    bool found = find_good_copy(frame, xlator, request, first, &bad, &used);
    struct bw_error *error = bw_explain_copies(&bad, request, found ? used : 0);
    if (!found)
        return error;
    bw_verify_note(xlator, request->address, error);
    return NULL;
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    bw_wind(frame, bw_xlator_child(xlator, 0), requests, count);
    for (size_t i = 0; i < count; i++) {
        struct bw_request *request = &requests[i];
        if (request->kind == BW_REQUEST_DATA)
            bw_verify_data(frame, xlator, request);
        if (request->kind != BW_REQUEST_TREE_BLOCK)
            continue;
        request->error = check_reply(frame, xlator, request);
        if (request->error)
            request->error = try_copies(frame, xlator, request, request->error);
    }
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    struct bw_verify *verify = bw_xlator_private(xlator);
    pthread_mutex_lock(&verify->lock);
    size_t repaired = verify->reported.count;
    pthread_mutex_unlock(&verify->lock);
    bw_json_text(json, "checksum", bw_checksum_name(verify->checksum));
    bw_json_number(json, "fsids", verify->fsid_count);
    bw_json_number(json, "repaired_blocks", repaired);
}

const struct bw_xlator_class bw_features_verify_class = {
    .type = "features/verify",
    .description = "checks tree blocks and file data, and tries their other copies",
    .page =
        "Only the tree block that was asked for passes this layer. It compares the checksum, the "
        "id of the file system, the address, and what the parent block promised: level, owner, "
        "generation and first key. If a copy is bad, the next one is read, and at last the one "
        "computed from parity. With -v, bad copies that were replaced are reported.\n\n"
        "If no copy is good, the read fails. The message lists every copy, where it is stored and "
        "what is wrong with it. File data with checksums are handled in the same way, sector by "
        "sector: a sector that is bad in one copy may be good in another.\n\n"
        "Insert a layer that corrupts reads on purpose below this one if it should notice, and "
        "above it if it should not:\n\n"
        "    btrfs-walk --insert debug/error-gen@chunk-map disk.img\n",
    BW_ONE_CHILD(BW_ADDRESS_LOGICAL),
    .private_size = sizeof(struct bw_verify),
    .takes = BW_TAKES(BW_CONTROL_FILE_SYSTEM),
    .operations =
        {.init = init, .fini = fini, .control = control, .read = read_requests, .dump = dump},
};
