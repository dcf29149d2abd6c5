/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pass `verity`: the files that were noted while the trees were walked, several at once.
 * First the descriptor of each, then what it describes (merkle.c).
 */
#include "check/verity.h"

#include <gcrypt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/gcrypt.h"
#include "base/search.h"
#include "btree/find_leaf.h"
#include "ondisk/disk_items.h"
#include "ondisk/items.h"

#define BW_INODE_VERITY (UINT64_C(1) << 32)

struct verity_file {
    uint64_t tree;
    uint64_t inode, size;
    bool unchecked; /* it has no checksums */
};

struct bw_verity_files {
    struct verity_file *files;
    size_t count, capacity;
    size_t next; /* to be handed out */
    struct bw_check *check;
};

void bw_verity_files_free(struct bw_verity_files *files)
{
    if (files)
        free(files->files);
    free(files);
}

static bool add(struct bw_check *check, const struct verity_file *file)
{
    pthread_mutex_lock(&check->bad_lock);
    struct bw_verity_files *files =
        check->verity ? check->verity : calloc(1, sizeof *check->verity);
    check->verity = files;
    const bool added = files && BW_ARRAY_RESERVE(files->files, files->count, files->capacity);
    if (added)
        files->files[files->count++] = *file;
    pthread_mutex_unlock(&check->bad_lock);
    return added;
}

/* A file that is being deleted loses its extents, then its Merkle tree, over several transactions;
 * the next mount goes on with that. */
static bool is_wanted(const struct bw_inode *inode)
{
    return inode->flags & BW_INODE_VERITY && inode->link_count;
}

bool bw_verity_collect(struct bw_check *check, uint64_t tree, const struct bw_node *leaf)
{
    struct bw_item item;
    struct bw_inode inode;
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);)
        if (item.key.type == BW_INODE_ITEM && bw_inode_decode(&item, &inode) && is_wanted(&inode) &&
            !add(check, &(struct verity_file){tree, item.key.objectid, inode.size,
                                              inode.flags & BW_INODE_NODATASUM}))
            return false;
    return true;
}

struct bw_subject bw_verity_subject(const struct bw_data_file *file)
{
    return (struct bw_subject){.finding = {.known = BW_KNOWN_TREE | BW_KNOWN_INODE,
                                           .tree = file->subvolume->tree.id,
                                           .inode = file->inode},
                               .touches = BW_TOUCHES_INODE};
}

/* Descriptors. */

/* The levels of the tree: each has the hashes of the one below, or of data, and the topmost has one
 * block. They are stored from the top. */
static void lay_out(struct bw_verity *verity)
{
    const uint64_t hashes = verity->block_size / verity->digest_size;
    uint64_t start = 0;
    for (uint64_t blocks = verity->data_blocks; blocks > 1; verity->levels++) {
        blocks = blocks / hashes + (blocks % hashes != 0);
        verity->counts[verity->levels] = blocks;
    }
    for (unsigned level = verity->levels; level-- > 0; start += verity->counts[level])
        verity->starts[level] = start;
}

/* Decodes a descriptor; returns what is wrong with it, or NULL. */
static const char *decode(const struct bw_disk_fsverity *descriptor, uint64_t size,
                          uint64_t file_size, struct bw_verity *verity)
{
    static const struct bw_disk_fsverity none;
    const bool sha512 = descriptor->algorithm == 2;
    if (descriptor->version != 1 || descriptor->algorithm < 1 || descriptor->algorithm > 2)
        return "it has an unknown version or algorithm";
    if (descriptor->log_block_size < 10 || descriptor->log_block_size > 16)
        return "it has an impossible size of blocks";
    if (descriptor->salt_size > sizeof descriptor->salt)
        return "it has an impossible size of the salt";
    if (bw_get32(descriptor->signature_size) > size - sizeof *descriptor)
        return "its signature is cut off";
    if (memcmp(descriptor->reserved, none.reserved, sizeof none.reserved) != 0)
        return "its reserved bytes are not zero";
    if (bw_get64(descriptor->data_size) != file_size)
        return "it is of a file of another size";
    *verity = (struct bw_verity){
        .algorithm = sha512 ? GCRY_MD_SHA512 : GCRY_MD_SHA256,
        .digest_size = sha512 ? 64 : 32,
        .salt_size = !descriptor->salt_size ? 0
                     : sha512               ? 128
                                            : 64,
        .block_size = UINT32_C(1) << descriptor->log_block_size,
    };
    verity->data_blocks = file_size / verity->block_size + (file_size % verity->block_size != 0);
    memcpy(verity->salt, descriptor->salt, descriptor->salt_size);
    memcpy(verity->root, descriptor->root, sizeof verity->root);
    lay_out(verity);
    return NULL;
}

/* Reads the descriptor: its size in the first item, itself from the next one on. `*lost`: some of
 * it cannot be read. Sets how many bytes there are, at most those of the structure. */
static struct bw_error *read_descriptor(const struct bw_check *check,
                                        const struct bw_data_file *file,
                                        struct bw_disk_fsverity *descriptor, uint64_t *size,
                                        size_t *length, bool *lost)
{
    const struct bw_key first = {file->inode, BW_VERITY_DESC_ITEM, 0},
                        last = {file->inode, BW_VERITY_DESC_ITEM, UINT64_MAX};
    struct bw_item_range range;
    bw_item_range_begin(&range, &check->fs->reader, &file->subvolume->tree, first, last);
    while (!*lost && *length < sizeof *descriptor && bw_item_range_next(&range)) {
        const struct bw_item *item = &range.item;
        *lost = range.error != NULL;
        if (*lost)
            break;
        const struct bw_disk_verity_descriptor *head = (const void *)item->data;
        if (!item->key.offset) {
            *size = item->size >= sizeof *head ? bw_get64(head->size) : 0;
            continue;
        }
        if (item->key.offset != *length + 1)
            break;
        const size_t room = sizeof *descriptor - *length;
        const size_t count = item->size < room ? item->size : room;
        memcpy((uint8_t *)descriptor + *length, item->data, count);
        *length += count;
    }
    return bw_item_range_end(&range, NULL);
}

static struct bw_error *check_file(struct bw_check *check, const struct bw_data_file *file,
                                   struct bw_data_reader *reader)
{
    struct bw_verity verity;
    struct bw_disk_fsverity descriptor = {0};
    uint64_t size = 0;
    size_t length = 0;
    bool lost = false;
    BW_TRY(read_descriptor(check, file, &descriptor, &size, &length, &lost));
    if (lost)
        return NULL;
    const char *problem = !length ? "there is none"
                          : length < sizeof descriptor || size < sizeof descriptor
                              ? "it is cut off"
                              : decode(&descriptor, size, file->size, &verity);
    const struct bw_subject subject = bw_verity_subject(file);
    if (problem)
        bw_check_find(check, BW_CODE_verity_descriptor, &subject, "the descriptor of fs-verity: %s",
                      problem);
    return problem ? NULL : bw_merkle_check(check, &verity, file, reader);
}

/* The files. */

static const struct bw_subvolume *find_subvolume(const struct bw_fs *fs, uint64_t id)
{
    const struct bw_subvolume_table *table = &fs->subvolumes;
    const size_t i = BW_FIRST_INDEX(k, table->count, table->items[k].tree.id >= id);
    return i < table->count && table->items[i].tree.id == id ? &table->items[i] : NULL;
}

static struct bw_error *next_file(void *context, struct bw_stream_file *file, bool *got)
{
    struct bw_verity_files *files = context;
    *got = false;
    while (!*got && files->next < files->count && bw_check_goes_on(files->check, 0)) {
        const struct verity_file *next = &files->files[files->next++];
        *file = (struct bw_stream_file){
            .data = {.subvolume = find_subvolume(files->check->fs, next->tree),
                     .inode = next->inode,
                     .size = next->size < INT64_MAX ? next->size : INT64_MAX,
                     .unchecked = next->unchecked},
            .length = UINT64_MAX};
        *got = file->data.subvolume != NULL;
    }
    return NULL;
}

static struct bw_error *work(void *context, struct bw_data_reader *reader,
                             const struct bw_stream_file *file)
{
    struct bw_check *check = ((struct bw_verity_files *)context)->check;
    return check_file(check, &file->data, check->options->data ? reader : NULL);
}

struct bw_error *bw_pass_verity(struct bw_check *check)
{
    struct bw_verity_files *files = check->verity;
    if (!files)
        return NULL;
    files->check = check;
    if (!(check->fs->superblock.compat_ro_flags & BW_COMPAT_RO_VERITY))
        bw_check_find(check, BW_CODE_verity_feature, &(struct bw_subject){0},
                      "%zu files have fs-verity, and compat_ro_flags lacks VERITY", files->count);
    const struct bw_stream stream = {.struct_size = sizeof stream,
                                     .threads = check->workers,
                                     .next = next_file,
                                     .work = work,
                                     .work_limit = UINT64_MAX,
                                     .context = files};
    BW_TRY(bw_gcrypt_prepare());
    return bw_stream_run(check->fs, &stream);
}
