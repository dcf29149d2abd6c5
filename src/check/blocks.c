/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading tree blocks for the check: each block that the trees refer to once, in all its mirrors.
 *
 * bw_visit() remembers the blocks that a walk has reached and, for blocks that snapshots share, the
 * sums of their inodes, so that another walk that comes by need not read them again. A block that
 * is reached twice and has no such sums is a finding.
 *
 * bw_check_blocks() reads a batch of blocks, mirror by mirror. A mirror is bad if it cannot be
 * read, if its checksum or its file system is wrong, or if it is not the block that its parent
 * refers to; and good mirrors must be equal. Whether a bad mirror can be repaired is known once a
 * good one has been found, which is searched at once.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/vector.h"
#include "check/blocks.h"
#include "check/device_histories.h"
#include "check/flipped.h"
#include "fs/image.h"
#include "graph/wind.h"
#include "ondisk/bit_flip.h"
#include "owners/ranges.h"
#include "xlators/classes.h"

/* A block with several parents, which must have the same generation and first key for it. */
struct shared_block {
    struct bw_inode_sums sums;
    uint64_t generation;
    size_t first_key; /* a hash; 0: unknown */
};

BW_VECTOR(shared_blocks, struct shared_block);

struct bw_visited {
    pthread_mutex_t lock;
    struct bw_block_set blocks;
    struct bw_key_map numbers; /* address to number in `shared` */
    struct shared_blocks shared;
};

struct bw_visited *bw_visited_create(void)
{
    struct bw_visited *visited = calloc(1, sizeof *visited);
    if (visited)
        pthread_mutex_init(&visited->lock, NULL);
    return visited;
}

void bw_visited_destroy(struct bw_visited *visited)
{
    if (!visited)
        return;
    bw_key_map_free(&visited->blocks.words);
    bw_key_map_free(&visited->numbers);
    shared_blocks_free(&visited->shared);
    pthread_mutex_destroy(&visited->lock);
    free(visited);
}

/* 0: the first key is unknown. */
static size_t hash_of_first_key(const struct bw_block_pointer *pointer)
{
    const struct bw_key *key = &pointer->expectation.first_key;
    if (!pointer->expectation.has_first_key)
        return 0;
    const uint64_t end = bw_key_hash(key->offset ^ (uint64_t)key->type << 56, 1);
    return bw_key_hash(key->objectid ^ end << 32, 1) | 1;
}

/* Whether a pointer to a known block expects the same as its first one. */
static bool is_same(const struct shared_block *known, const struct bw_block_pointer *pointer)
{
    const size_t first_key = hash_of_first_key(pointer);
    return known->generation == pointer->expectation.generation &&
           (known->first_key == first_key || !known->first_key || !first_key);
}

enum bw_visit bw_visit(struct bw_check *check, const struct bw_block_pointer *pointer,
                       struct bw_inode_sums *sums)
{
    struct bw_visited *visited = check->visited;
    enum bw_visit result = BW_VISIT_FIRST;
    bool added;
    pthread_mutex_lock(&visited->lock);
    if (bw_block_set_insert(&visited->blocks, pointer->bytenr, &added)) {
        result = BW_VISIT_SHARED; /* or a crafted tree would be read without end */
        check->no_memory = true;
    } else if (!added) {
        const uint32_t number = bw_key_map_get(&visited->numbers, pointer->bytenr, UINT32_MAX);
        const struct shared_block *known =
            number == UINT32_MAX ? NULL : &visited->shared.items[number];
        result = known ? BW_VISIT_SHARED : BW_VISIT_CROSSED;
        if (known && !is_same(known, pointer))
            result = BW_VISIT_FIRST; /* one of the parents is wrong */
        else if (known)
            *sums = known->sums;
    }
    pthread_mutex_unlock(&visited->lock);
    return result;
}

struct bw_error *bw_visited_in(const struct bw_check *check, uint64_t start, uint64_t end,
                               struct bw_numbers *list)
{
    struct bw_block_set_position position = {0};
    uint64_t bytenr;
    list->count = 0;
    while (bw_block_set_next(&check->visited->blocks, &position, &bytenr))
        if (bytenr >= start && bytenr < end)
            BW_TRY(bw_numbers_push(list, bytenr));
    bw_numbers_sort(list, bw_compare_first);
    return NULL;
}

void bw_visited_keep(struct bw_check *check, const struct bw_block_pointer *pointer,
                     const struct bw_inode_sums *sums, bool is_lost)
{
    struct bw_visited *visited = check->visited;
    pthread_mutex_lock(&visited->lock);
    const size_t number = visited->shared.count;
    const struct shared_block block = {*sums, pointer->expectation.generation,
                                       hash_of_first_key(pointer)};
    if ((!is_lost || !bw_key_map_has(&visited->numbers, pointer->bytenr)) &&
        (shared_blocks_push(&visited->shared, block) || number >= UINT32_MAX ||
         bw_key_map_put(&visited->numbers, pointer->bytenr, (uint32_t)number)))
        check->no_memory = true;
    pthread_mutex_unlock(&visited->lock);
}

/*
 * Reading and checking all mirrors of tree blocks. They are read below features/verify, which would
 * hide a bad mirror behind a good one. Only if no mirror is good, the block is requested from that
 * layer, which corrects a flipped bit.
 */

struct bw_finding bw_block_location(const struct bw_tree *tree,
                                    const struct bw_block_pointer *pointer)
{
    const struct bw_tree_block_expectation *expectation = &pointer->expectation;
    struct bw_finding finding =
        BW_FINDING(BW_TOUCHES_KEYS, .tree = tree->id, .logical = pointer->bytenr, .length = 0);
    if (expectation->has_first_key)
        finding.row.key = expectation->first_key;
    finding.end_key = expectation->end_key;
    return finding;
}

static bool is_known_fsid(const struct bw_fs *fs, const uint8_t *fsid)
{
    if (bw_superblock_has_block_id(&fs->superblock, fsid))
        return true;
    for (size_t i = 0; i < fs->image_count; i++)
        if (fs->images[i].role == BW_IMAGE_SEED &&
            memcmp(fs->images[i].superblock.metadata_uuid, fsid, BW_UUID_SIZE) == 0)
            return true;
    return false;
}

/* Why a copy is bad, and the kind of finding that this is; NULL: it is good. */
static struct bw_error *check_copy(const struct bw_check *check, const uint8_t *block,
                                   const struct bw_block_pointer *pointer,
                                   enum bw_code_number *code)
{
    const struct bw_fs *fs = check->fs;
    const struct bw_disk_header *header = (const void *)block;
    const uint32_t nodesize = fs->reader.nodesize;
    *code = BW_CODE_block_checksum;
    if (!bw_checksum_accepts_block(fs->superblock.checksum_type, bw_fs_other_checksums(fs), block,
                                   nodesize))
        return bw_error_create(BW_ERROR_CORRUPT, "%s checksum mismatch",
                               bw_checksum_name(fs->superblock.checksum_type));
    *code = BW_CODE_block_foreign;
    if (!is_known_fsid(fs, header->fsid))
        return bw_error_create(BW_ERROR_CORRUPT, "block of another file system");
    struct bw_error *error = bw_node_check(block, nodesize, pointer->bytenr, &pointer->expectation);
    if (!error || bw_get64(header->bytenr) != pointer->bytenr ||
        header->level != pointer->expectation.level)
        return error;
    if (bw_get64(header->generation) != pointer->expectation.generation) {
        *code = BW_CODE_block_stale;
        return error;
    }

    /* It contradicts its parent: by its keys, or only by its owner. */
    struct bw_tree_block_expectation another = pointer->expectation;
    another.owner = bw_get64(header->owner);
    BW_AUTO_ERROR struct bw_error *wrong_keys =
        bw_node_check(block, nodesize, pointer->bytenr, &another);
    if (wrong_keys)
        *code = BW_CODE_block_keys;
    return error;
}

static void report_copy(struct bw_check *check, const struct bw_tree *tree,
                        struct bw_checked_block *block, unsigned copy, enum bw_code_number code,
                        const struct bw_flip *flip, bool repairable, const char *message)
{
    struct bw_finding location = bw_block_location(tree, &block->pointer);
    location.row.length = check->fs->reader.nodesize;
    location.row.repairable = repairable;
    location.flip = *flip;
    bw_check_note_bad(check, location.row.logical, location.row.length);
    bw_check_locate_copy(check, location.row.logical, copy, &location.row);
    bw_check_find(check, code, &location, "%s", message);
}

/* Searches the copies from `from` on for a good one, which remains in the buffer of the block.
 * False if memory runs out. */
static bool find_good_copy(struct bw_check *check, struct bw_checked_block *block, unsigned from)
{
    const struct bw_tree_reader *reader = &check->fs->reader;
    const struct bw_frame frame = bw_frame_above_blocks(NULL, bw_xlator_probes(reader->top));
    enum bw_code_number ignored;
    for (unsigned copy = from; !block->good && copy <= block->all_copies; copy++) {
        struct bw_request request = bw_block_request(reader, &block->pointer, block->buffer);
        request.kind = BW_REQUEST_RAW;
        request.mirror = (uint8_t)copy;
        bw_wind(&frame, reader->top, &request, 1);
        BW_AUTO_ERROR struct bw_error *bad = request.error;
        if (!bad)
            bad = check_copy(check, block->buffer, &block->pointer, &ignored);
        if (bw_check_lacks_memory(check, bad))
            return false;
        block->good = !bad;
        block->bad_parity |= copy > block->copies && bad && bad->code != BW_ERROR_MISSING_DEVICE;
    }
    return true;
}

/* A copy is bad or unreadable. If no good mirror is known yet, the later ones are searched at once:
 * with a good one, the finding is repairable. The message names the bit if only one is wrong. */
static void add_bad_copy(struct bw_check *check, const struct bw_tree *tree,
                         struct bw_checked_block *block, const struct bw_request *request,
                         enum bw_code_number code, struct bw_error *why,
                         struct bw_flip flip_in_block)
{
    BW_AUTO_ERROR struct bw_error *error = why;
    if (bw_check_lacks_memory(check, error)) {
        block->bad++;
        return;
    }

    /* The bytes of the copy, which may be in the buffer that will get the good ones. */
    const uint32_t nodesize = check->fs->reader.nodesize;
    BW_AUTO_FREE uint8_t *bytes = malloc(nodesize);
    bool known = bytes;
    if (bytes && !request->error)
        memcpy(bytes, request->buffer, nodesize);
    if (!bytes)
        bw_check_lacks_memory(check, bw_error_no_memory());
    known = known && find_good_copy(check, block, request->mirror + 1u);
    if (known && !block->good && !block->bad && block->in_chunk) {
        /* The layer features/verify joins bad mirrors, or corrects a flipped bit. */
        BW_AUTO_ERROR struct bw_error *bad =
            bw_block_read(&check->fs->reader, &block->pointer, block->buffer);
        enum bw_code_number ignored;
        if (!bad)
            bad = check_copy(check, block->buffer, &block->pointer, &ignored);
        block->good = block->corrected = !bad;
        known = !bw_check_lacks_memory(check, bad);
    }
    if (known && (error->code == BW_ERROR_MISSING_DEVICE || !block->in_chunk))
        return;

    block->bad++;
    char message[160];
    struct bw_bit_flip flip;
    static const struct bw_flip no_flip;
    if (known && block->good && !request->error &&
        bw_bit_flip_compare(bytes, block->buffer, nodesize, &flip)) {
        if (block->corrected)
            code = BW_CODE_block_bit_flip;
        snprintf(message, sizeof message, "%s: bit %u of byte %" PRIu32 " is flipped",
                 error->message, flip.bit, flip.byte);
        report_copy(check, tree, block, request->mirror, code, &no_flip, true, message);
    } else if (known) {
        if (!block->good && !flip_in_block.found)
            bw_flip_find_in_address(check, tree, &block->pointer, &flip_in_block);
        report_copy(check, tree, block, request->mirror, code, &flip_in_block, block->good,
                    error->message);
    }
}

/* Whether blocks differ by their checksum or id alone. A change of these may have ended between two
 * mirrors. */
static bool has_same_contents(const uint8_t *block, const uint8_t *other, size_t size)
{
    const size_t start = offsetof(struct bw_disk_header, bytenr);
    return memcmp(block + start, other + start, size - start) == 0;
}

static void add_copy(struct bw_check *check, const struct bw_tree *tree,
                     struct bw_checked_block *block, struct bw_request *request)
{
    struct bw_flip flip = {0};
    const uint32_t nodesize = check->fs->reader.nodesize;
    if (request->error) {
        add_bad_copy(check, tree, block, request, BW_CODE_block_unreadable, request->error, flip);
        return;
    }
    if (block->good && memcmp(block->buffer, request->buffer, nodesize) == 0) {
        bw_device_histories_same(check, &block->pointer, request->mirror);
        return;
    }
    enum bw_code_number code;
    struct bw_error *error = check_copy(check, request->buffer, &block->pointer, &code);
    if (error) {
        const struct bw_disk_header *header = (const void *)request->buffer;
        const bool is_valid = code != BW_CODE_block_checksum &&
                              is_known_fsid(check->fs, header->fsid) &&
                              bw_get64(header->bytenr) == block->pointer.bytenr;
        bw_device_histories_other(check, &block->pointer, request->mirror, 0,
                                  is_valid ? request->buffer : NULL);
        if (code != BW_CODE_block_checksum)
            bw_flip_find_in_block(check, tree, &block->pointer, request->buffer, &flip);
        add_bad_copy(check, tree, block, request, code, error, flip);
    } else if (block->good) {
        if (has_same_contents(block->buffer, request->buffer, nodesize))
            bw_device_histories_same(check, &block->pointer, request->mirror);
        else
            bw_device_histories_other(check, &block->pointer, request->mirror, block->good_copy,
                                      request->buffer);
        report_copy(check, tree, block, request->mirror, BW_CODE_block_differs, &flip, true,
                    "valid, but differs from mirror 1");
    } else {
        if (request->buffer != block->buffer)
            memcpy(block->buffer, request->buffer, nodesize);
        block->good = true;
        block->good_copy = request->mirror;
        bw_device_histories_same(check, &block->pointer, request->mirror);
    }
}

void bw_check_blocks(struct bw_check *check, struct bw_copy_buffers *buffers,
                     const struct bw_tree *tree, struct bw_checked_block *blocks, unsigned count)
{
    const struct bw_tree_reader *reader = &check->fs->reader;
    unsigned copies = 1;
    for (struct bw_checked_block *block = blocks; block < blocks + count; block++) {
        /* The replacement of a lost tree is in memory. */
        const uint8_t *bytes = bw_memory_block(reader->memory, block->pointer.bytenr);
        if (bytes && !block->skipped) {
            memcpy(block->buffer, bytes, reader->nodesize);
            block->good = true;
        }
        if (bytes)
            continue;
        const struct bw_checked_chunk *chunk = bw_check_chunk(check, block->pointer.bytenr);
        block->in_chunk = chunk;
        block->copies = chunk ? chunk->copies : 1;
        block->all_copies = chunk ? chunk->all_copies : 1;
        copies = block->copies > copies ? block->copies : copies;
    }
    if (check->options->quick)
        copies = 1;
    if (copies > 1 && !buffers->copies)
        buffers->copies = bw_block_buffer(reader, bw_block_batch(reader));
    if (copies > 1 && !buffers->copies) {
        check->no_memory = true;
        return;
    }

    /* One mirror of each block that has it after the other. The first copy goes into the block's
     * buffer, the others into additional memory. */
    const struct bw_frame frame = bw_frame_above_blocks(NULL, bw_xlator_probes(reader->top));
    for (unsigned copy = 1; copy <= copies; copy++) {
        struct bw_request requests[BW_BATCH];
        unsigned numbers[BW_BATCH], wanted = 0;
        for (unsigned i = 0; i < count; i++) {
            uint8_t *buffer = blocks[i].buffer;
            if (blocks[i].skipped || copy > blocks[i].copies)
                continue;
            if (copy > 1)
                buffer = buffers->copies + (size_t)i * reader->nodesize;
            requests[wanted] = bw_block_request(reader, &blocks[i].pointer, buffer);
            requests[wanted].kind = BW_REQUEST_RAW;
            requests[wanted].mirror = (uint8_t)copy;
            numbers[wanted++] = i;
        }
        bw_wind(&frame, reader->top, requests, wanted);
        for (unsigned i = 0; i < wanted; i++)
            add_copy(check, tree, &blocks[numbers[i]], &requests[i]);
    }

    /* Blocks without a good mirror: those with bad ones have been reported already. */
    for (struct bw_checked_block *block = blocks; block < blocks + count; block++) {
        check->blocks += !block->skipped;
        if (block->good || block->skipped || block->bad)
            continue;
        struct bw_finding location = bw_block_location(tree, &block->pointer);
        location.row.length = reader->nodesize;
        const char *message = "all mirrors are on missing devices";
        if (!block->in_chunk)
            message = "no chunk contains its address";
        else if (block->bad_parity)
            message = "all mirrors are on missing devices, and the block from parity is bad";
        if (!block->in_chunk)
            bw_flip_find_in_address(check, tree, &block->pointer, &location.flip);
        bw_check_find(check, BW_CODE_block_missing, &location, "%s", message);
    }
}
