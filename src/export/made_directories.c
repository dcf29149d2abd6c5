/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directories of an export, and their order in archives. Each directory is stored once, in few
 * bytes: leaves, which contain nothing, in a list, all others in the store of paths. */
#include "export/made_directories.h"

#include <assert.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/compare.h"

static_assert((int)BW_PATH_DETAILS == (int)BW_LEAF_DETAILS,
              "details move from leaves to the store");

/* The list of directories without entries: records of differences. */

static void free_leaves(struct bw_leaf_list *list)
{
    bw_packed_free(&list->records);
    *list = (struct bw_leaf_list){0};
}

/* Adds a leaf; false if memory runs out. `details_length` is at most BW_LEAF_DETAILS. */
static bool add_to_leaves(struct bw_leaf_list *list, const struct bw_leaf *leaf)
{
    struct bw_leaf *last = &list->last;
    uint8_t common = 0;
    while (common < leaf->name_length && common < last->name_length &&
           leaf->name[common] == last->name[common])
        common++;
    const size_t rest = (size_t)(leaf->name_length - common);
    uint8_t *end;
    if (bw_packed_begin(&list->records, sizeof *leaf + 4 * BW_VARINT_LONGEST + BW_LEAF_DETAILS,
                        &end) == BW_NO_RECORD)
        return false;
    end = bw_varint_put(end, leaf->after - last->after);
    end = bw_varint_put_signed(end, (uint64_t)leaf->parent - last->parent);
    *end++ = common;
    *end++ = (uint8_t)rest;
    memcpy(end, leaf->name + common, rest);
    end += rest;
    *end++ = leaf->details_length;
    memcpy(end, leaf->details, leaf->details_length);
    bw_packed_end(&list->records, end + leaf->details_length);
    *last = *leaf;
    last->details = NULL;
    list->count++;
    return true;
}

/*
 * Directories. Their details are: the inode number, bits, the modification time, and everything
 * that the bits do not express.
 */

enum {
    OTHER_OWNER = BW_MADE_OWNERS, /* in the lowest bits, instead of an index of an owner */
    SAME_CTIME = 1 << 4,          /* equal to the modification time */
    SAME_ATIME = 1 << 5,
    OTHER_PLACE = 1 << 6, /* some other member of the place is not the default for directories */
    OTHER_SUBVOLUME = 1 << 7,
};

void bw_made_directories_free(struct bw_made_directories *directories)
{
    bw_subvolume_pointers_free(&directories->subvolumes);
    bw_key_map_free(&directories->subvolume_numbers);
    bw_path_store_free(&directories->paths);
    free_leaves(&directories->leaves);
    *directories = (struct bw_made_directories){0};
}

/* The index of a subvolume; UINT32_MAX if memory runs out. */
static uint32_t number_subvolume(struct bw_made_directories *directories,
                                 const struct bw_subvolume *subvolume)
{
    const uint64_t key = (uint64_t)(uintptr_t)subvolume;
    uint32_t number = bw_key_map_get(&directories->subvolume_numbers, key, UINT32_MAX);
    if (number != UINT32_MAX)
        return number;
    number = (uint32_t)directories->subvolumes.count;
    if (bw_subvolume_pointers_reserve(&directories->subvolumes, 1) ||
        bw_key_map_put(&directories->subvolume_numbers, key, number))
        return UINT32_MAX;
    directories->subvolumes.items[directories->subvolumes.count++] = subvolume;
    return number;
}

/* Stores a time as its distance from `near`. */
static uint8_t *put_time(uint8_t *at, const struct timespec *time, int64_t near)
{
    const uint32_t nanoseconds = (uint32_t)time->tv_nsec;
    at = bw_varint_put_signed(at, (uint64_t)time->tv_sec - (uint64_t)near);
    memcpy(at, &nanoseconds, sizeof nanoseconds);
    return at + sizeof nanoseconds;
}

static struct timespec get_time(const uint8_t **at, int64_t near)
{
    const uint64_t distance = bw_varint_get_signed(at);
    uint32_t nanoseconds;
    memcpy(&nanoseconds, *at, sizeof nanoseconds);
    *at += sizeof nanoseconds;
    return (struct timespec){(int64_t)(distance + (uint64_t)near), nanoseconds};
}

static struct bw_made_directory unpack_from(const struct bw_made_directories *directories,
                                            const uint8_t *at, const struct bw_made_before *before)
{
    struct bw_made_directory directory = {0};
    const uint8_t bits = *at++;
    directory.place = (struct bw_place){.inode = before->inode + bw_varint_get_signed(&at),
                                        .type = BW_FILE_DIRECTORY};
    directory.mtime = get_time(&at, before->mtime);
    struct bw_made_owner owner;
    if ((bits & OTHER_OWNER) == OTHER_OWNER) {
        owner.uid = (uint32_t)bw_varint_get(&at);
        owner.gid = (uint32_t)bw_varint_get(&at);
        owner.mode = (uint16_t)bw_varint_get(&at);
        owner.flags = (uint16_t)bw_varint_get(&at);
    } else {
        owner = directories->owners[bits & OTHER_OWNER];
    }
    directory.uid = owner.uid;
    directory.gid = owner.gid;
    directory.mode = owner.mode;
    directory.flags = owner.flags;
    directory.ctime = bits & SAME_CTIME ? directory.mtime : get_time(&at, directory.mtime.tv_sec);
    directory.atime = bits & SAME_ATIME ? directory.mtime : get_time(&at, directory.mtime.tv_sec);
    if (bits & OTHER_PLACE) {
        directory.place.type = *at++;
        directory.place.directory = bw_varint_get(&at);
    }
    directory.place.subvolume =
        directories->subvolumes.items[bits & OTHER_SUBVOLUME ? bw_varint_get(&at) : 0];
    return directory;
}

/* Details in the store can be read in any order. */
static struct bw_made_before before_stored(const struct bw_made_directories *directories)
{
    return (struct bw_made_before){0, directories->first_mtime};
}

static struct bw_made_directory unpack_details(const struct bw_made_directories *directories,
                                               const uint8_t *at)
{
    const struct bw_made_before before = before_stored(directories);
    return unpack_from(directories, at, &before);
}

/* Packs the details of a directory, whose subvolume and owner get a number if they have none; false
 * if memory runs out. */
static bool pack_directory(struct bw_made_directories *directories, const struct bw_place *place,
                           const struct bw_inode *inode, const struct bw_made_before *before,
                           struct bw_path_details *details)
{
    const struct bw_made_owner owner = {inode->uid, inode->gid, (uint16_t)inode->mode,
                                        (uint16_t)inode->flags};
    const uint32_t subvolume = number_subvolume(directories, place->subvolume);
    if (subvolume == UINT32_MAX)
        return false;
    unsigned owner_number = 0;
    while (owner_number < directories->owner_count &&
           memcmp(&directories->owners[owner_number], &owner, sizeof owner) != 0)
        owner_number++;
    if (owner_number == directories->owner_count && owner_number < BW_MADE_OWNERS)
        directories->owners[directories->owner_count++] = owner;

    const bool plain = place->type == BW_FILE_DIRECTORY && !place->directory;
    const bool same_ctime = bw_same_time(&inode->ctime, &inode->mtime);
    const bool same_atime = bw_same_time(&inode->atime, &inode->mtime);
    uint8_t *at = details->bytes, *bits = at++;
    *bits = (uint8_t)owner_number;
    at = bw_varint_put_signed(at, place->inode - before->inode);
    at = put_time(at, &inode->mtime, before->mtime);
    if (owner_number == OTHER_OWNER) {
        at = bw_varint_put(at, owner.uid);
        at = bw_varint_put(at, owner.gid);
        at = bw_varint_put(at, owner.mode);
        at = bw_varint_put(at, owner.flags);
    }
    if (same_ctime)
        *bits |= SAME_CTIME;
    else
        at = put_time(at, &inode->ctime, inode->mtime.tv_sec);
    if (same_atime)
        *bits |= SAME_ATIME;
    else
        at = put_time(at, &inode->atime, inode->mtime.tv_sec);
    if (!plain) {
        *bits |= OTHER_PLACE;
        *at++ = place->type;
        at = bw_varint_put(at, place->directory);
    }
    if (subvolume) {
        *bits |= OTHER_SUBVOLUME;
        at = bw_varint_put(at, subvolume);
    }
    details->length = (size_t)(at - details->bytes);
    return true;
}

/* Leaves: directories of size 0. If one contains something all the same, as in a damaged image, all
 * leaves move to the store. */

/* The leaves from the first one on. Nothing may be added meanwhile. */
struct leaves {
    const struct bw_made_directories *directories;
    uint32_t place; /* of the next leaf */
    size_t count;   /* leaves that were read */
    struct bw_made_before before;
    struct bw_leaf leaf; /* the current one */
    struct bw_made_directory directory;
};

static struct leaves first_leaf(const struct bw_made_directories *directories)
{
    return (struct leaves){.directories = directories, .before = before_stored(directories)};
}

/* Reads the next leaf; false after the last. */
static bool next_leaf(struct leaves *leaves)
{
    const struct bw_leaf_list *list = &leaves->directories->leaves;
    struct bw_leaf *leaf = &leaves->leaf;
    if (leaves->count == list->count)
        return false;
    const uint8_t *begin = bw_packed_at(&list->records, leaves->place), *at = begin;
    leaf->after += (uint32_t)bw_varint_get(&at);
    leaf->parent += (uint32_t)bw_varint_get_signed(&at);
    const uint8_t common = *at++, rest = *at++;
    memcpy(leaf->name + common, at, rest);
    leaf->name_length = (uint8_t)(common + rest);
    at += rest;
    leaf->details_length = *at++;
    leaf->details = at;
    leaves->place =
        bw_packed_next(&list->records, leaves->place, (size_t)(at - begin) + leaf->details_length);
    leaves->count++;

    const struct bw_made_directory directory =
        unpack_from(leaves->directories, leaf->details, &leaves->before);
    leaves->before = (struct bw_made_before){directory.place.inode, directory.mtime.tv_sec};
    leaves->directory = directory;
    return true;
}

/* Moves all leaves to the store. */
static bool store_leaves(struct bw_made_directories *directories)
{
    const struct bw_made_before before = before_stored(directories);
    struct leaves leaves = first_leaf(directories);
    const struct bw_leaf *leaf = &leaves.leaf;
    bool good = true;
    while (good && next_leaf(&leaves)) {
        const struct bw_inode inode = bw_made_directory_inode(&leaves.directory);
        struct bw_path_details details;
        good = bw_path_store_find_name(&directories->paths, leaf->parent, leaf->name,
                                       leaf->name_length) != BW_NO_RECORD ||
               (pack_directory(directories, &leaves.directory.place, &inode, &before, &details) &&
                bw_path_store_add_directory(&directories->paths, leaf->parent, leaf->name,
                                            leaf->name_length, &details) != BW_NO_RECORD);
    }
    free_leaves(&directories->leaves);
    directories->failed |= !good;
    return good;
}

static bool add_leaf(struct bw_made_directories *directories, uint32_t parent, const char *name,
                     size_t length, const struct bw_place *place, const struct bw_inode *inode)
{
    /* `after` is greater than all numbers in the store. */
    const struct bw_packed *records = &directories->paths.records;
    const size_t last = records->chunks.count - 1;
    struct bw_path_details details;
    struct bw_leaf leaf = {.after = (uint32_t)(last << BW_PACKED_CHUNK_BITS) +
                                    records->chunks.items[last].used / BW_PACKED_UNIT,
                           .parent = parent,
                           .name_length = (uint8_t)length,
                           .details = details.bytes};
    if (!directories->leaves.count)
        directories->leaf_before = before_stored(directories);
    if (!pack_directory(directories, place, inode, &directories->leaf_before, &details))
        return false;
    memcpy(leaf.name, name, length);
    leaf.details_length = (uint8_t)details.length;
    directories->leaf_before = (struct bw_made_before){place->inode, inode->mtime.tv_sec};
    return add_to_leaves(&directories->leaves, &leaf);
}

struct bw_error *bw_made_directories_add(struct bw_made_directories *directories, const char *path,
                                         size_t length, const struct bw_place *place,
                                         const struct bw_inode *inode)
{
    const size_t above = bw_path_parent(path, length);
    struct bw_path_details details;
    size_t known = 0, end;
    uint32_t number = 0;
    bool good = true;
    if (!directories->owner_count)
        directories->first_mtime = inode->mtime.tv_sec;
    const struct bw_made_before before = before_stored(directories);
    if (directories->paths.records.chunks.count)
        number = bw_path_store_find_nearest(&directories->paths, path, length, &known);
    /* An archive contains a directory twice if its owner may not write to it. Such a directory
     * needs the marks of the store. */
    const bool may_be_leaf = directories->complete && directories->paths.records.chunks.count &&
                             S_ISDIR(inode->mode) && !inode->size &&
                             (inode->mode & S_IRWXU) == S_IRWXU;
    if (known == above && length > above && may_be_leaf) {
        const char *name = bw_path_next(path, length, above, &end);
        const size_t name_length = (size_t)(path + length - name);
        if (name_length <= BW_LEAF_NAME) {
            good = add_leaf(directories, number, name, name_length, place, inode);
            return good ? NULL : bw_error_no_memory();
        }
    }
    if (known < above && directories->leaves.count)
        good = store_leaves(directories);
    good = good && pack_directory(directories, place, inode, &before, &details) &&
           bw_path_store_describe(&directories->paths, path, length, &details, &number);
    return good ? NULL : bw_error_no_memory();
}

/* Whether a record is a directory that was added with details and, if `marks` is not 0, has one of
 * them. */
static bool is_made(const struct bw_path_store *paths, const struct bw_stored_name *name,
                    uint8_t marks)
{
    return (!marks || *name->bits & marks) && bw_path_store_details(paths, name);
}

/* Visits directories in reverse order: subdirectories have greater numbers than their parents.
 * Records can be read only forwards, so the numbers of a chunk are collected first. */
static struct bw_error *visit_marked(const struct bw_made_directories *directories, uint8_t marks,
                                     bw_made_directory_visitor *visit, void *context)
{
    const struct bw_path_store *paths = &directories->paths;
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    BW_SCOPED(bw_sizes) struct bw_sizes numbers = {0};
    for (size_t chunk = paths->records.chunks.count; chunk--;) {
        for (uint32_t number = bw_packed_first(&paths->records, chunk); number != BW_NO_RECORD;) {
            const struct bw_stored_name name = bw_path_store_get(paths, number);
            if (is_made(paths, &name, marks))
                BW_TRY(bw_sizes_push(&numbers, number));
            number = bw_packed_next_in_chunk(&paths->records, number, name.size);
        }
        while (numbers.count) {
            const uint32_t number = (uint32_t)bw_sizes_pop(&numbers);
            const struct bw_stored_name name = bw_path_store_get(paths, number);
            const struct bw_made_directory directory =
                unpack_details(directories, bw_path_store_details(paths, &name));
            BW_TRY(bw_path_store_read(paths, number, &path));
            BW_TRY(visit(context, path.data, path.length, &directory));
        }
    }
    return NULL;
}

/* Gets the path of a leaf. The first `*above` bytes of `path` are already the path of directory
 * `*parent`. */
static struct bw_error *read_leaf_path(const struct bw_made_directories *directories,
                                       const struct bw_leaf *leaf, uint32_t *parent, size_t *above,
                                       struct bw_buffer *path)
{
    if (*parent != leaf->parent) {
        path->length = 0;
        bw_path_store_append(&directories->paths, leaf->parent, path);
        *above = path->length;
        *parent = leaf->parent;
    }
    path->length = *above;
    if (*above)
        bw_buffer_append_byte(path, '/');
    bw_buffer_append(path, leaf->name, leaf->name_length);
    return bw_buffer_end_text(path);
}

struct bw_error *bw_made_directories_visit(const struct bw_made_directories *directories,
                                           bw_made_directory_visitor *visit, void *context)
{
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    struct leaves leaves = first_leaf(directories);
    uint32_t parent = BW_NO_RECORD;
    size_t above = 0;
    while (next_leaf(&leaves)) {
        BW_TRY(read_leaf_path(directories, &leaves.leaf, &parent, &above, &path));
        BW_TRY(visit(context, path.data, path.length, &leaves.directory));
    }
    return visit_marked(directories, 0, visit, context);
}

struct bw_inode bw_made_directory_inode(const struct bw_made_directory *directory)
{
    return (struct bw_inode){.atime = directory->atime,
                             .ctime = directory->ctime,
                             .mtime = directory->mtime,
                             .flags = directory->flags,
                             .link_count = 1,
                             .uid = directory->uid,
                             .gid = directory->gid,
                             .mode = directory->mode};
}

/* Which directories are written before an entry, and which are written again. */

/* Marks of directories. */
enum { WRITTEN = 1 << 0, AGAIN = 1 << 1 };

void bw_directory_order_free(struct bw_directory_order *order)
{
    bw_made_directories_free(&order->all);
    bw_buffer_free(&order->open);
    bw_buffer_free(&order->path);
    bw_sizes_free(&order->pending);
}

/* Finds a directory; false if it is not part of the archive, or if order->all.failed. */
static bool find_directory(struct bw_directory_order *order, const char *path, size_t length,
                           struct bw_stored_name *name)
{
    struct bw_path_store *paths = &order->all.paths;
    uint32_t number = bw_path_store_find(paths, path, length);
    if (number == BW_NO_RECORD && order->all.leaves.count && store_leaves(&order->all))
        number = bw_path_store_find(paths, path, length);
    if (number == BW_NO_RECORD)
        return false;
    *name = bw_path_store_get(paths, number);
    return bw_path_store_details(paths, name);
}

/* tar finishes a directory when an entry outside of it follows. */
static void finish_outside(struct bw_directory_order *order, const char *path, size_t length)
{
    order->open.length = bw_path_common(&order->open, path, length);
    while (order->pending.count &&
           order->pending.items[order->pending.count - 1] > order->open.length)
        order->pending.count--;
}

/* Whether tar has yet to restore the attributes of a directory. If it has finished the directory
 * before, it may be a parent of `open` all the same. The top directory is never pending, because no
 * name begins with it. */
static bool is_pending(const struct bw_directory_order *order, const char *path, size_t length)
{
    size_t i = order->pending.count;
    while (i && order->pending.items[i - 1] > length)
        i--;
    return length && i && order->pending.items[i - 1] == length &&
           bw_path_common(&order->open, path, length) == length;
}

/* Handles an entry in a directory: if tar has already finished it, it must be written again. */
static void mark_reentered(struct bw_directory_order *order, const char *path, size_t length)
{
    struct bw_stored_name name;
    if (find_directory(order, path, length, &name) && !is_pending(order, path, length))
        *name.bits |= AGAIN;
}

/* Writes a directory, after the parent directories. */
static struct bw_error *write_new(struct bw_directory_order *order, const char *path, size_t length,
                                  const struct bw_made_directory *directory)
{
    if (length)
        mark_reentered(order, path, bw_path_parent(path, length));
    finish_outside(order, path, length);
    BW_TRY(bw_buffer_set(&order->open, path, length));
    BW_TRY(bw_buffer_end_text(&order->open));
    BW_TRY(bw_sizes_push(&order->pending, length));
    return order->write(order->context, order->open.data, directory, BW_DIRECTORY_FIRST);
}

/* Writes a directory after all its parents, unless they were written before. */
static struct bw_error *write_up_to(struct bw_directory_order *order, const char *path,
                                    size_t length)
{
    struct bw_stored_name name;
    size_t end = length;
    while (end && !(find_directory(order, path, end, &name) && *name.bits & WRITTEN))
        end = bw_path_parent(path, end);
    finish_outside(order, path, length);
    for (; end <= length; end++) {
        if (end && end < length && path[end] != '/')
            continue;
        if (!find_directory(order, path, end, &name) || *name.bits & WRITTEN)
            continue;
        const struct bw_made_directory directory =
            unpack_details(&order->all, bw_path_store_details(&order->all.paths, &name));
        *name.bits |= WRITTEN;
        if ((directory.mode & S_IRWXU) != S_IRWXU)
            *name.bits |= AGAIN;
        BW_TRY(write_new(order, path, end, &directory));
    }
    return NULL;
}

struct bw_error *bw_directory_order_enter(struct bw_directory_order *order, const char *path,
                                          size_t length)
{
    size_t parent = bw_path_parent(path, length);
    if (order->open.length == parent && is_pending(order, path, parent))
        return NULL;
    BW_TRY(write_up_to(order, path, parent));
    mark_reentered(order, path, parent);
    return order->all.failed ? bw_error_no_memory() : NULL;
}

static struct bw_error *write_again(void *context, const char *path, size_t length,
                                    const struct bw_made_directory *directory)
{
    struct bw_directory_order *order = context;
    (void)length;
    return order->write(order->context, path, directory, BW_DIRECTORY_AGAIN);
}

struct bw_error *bw_directory_order_end(struct bw_directory_order *order)
{
    /* Directories without entries, in the order in which they were added: before each of the store
     * the leaves that precede it, and the other leaves at the end. */
    const struct bw_path_store *paths = &order->all.paths;
    struct leaves leaves = first_leaf(&order->all);
    const struct bw_leaf *leaf = &leaves.leaf;
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    size_t above = 0;
    bool has_leaf = next_leaf(&leaves);
    for (uint32_t number = bw_packed_first(&paths->records, 0), parent = BW_NO_RECORD;;) {
        for (; has_leaf && leaf->after <= number; has_leaf = next_leaf(&leaves)) {
            BW_TRY(read_leaf_path(&order->all, leaf, &parent, &above, &path));
            BW_TRY(write_up_to(order, path.data, above));
            BW_TRY(write_new(order, path.data, path.length, &leaves.directory));
        }
        if (number == BW_NO_RECORD)
            break;
        const struct bw_stored_name name = bw_path_store_get(paths, number);
        if (is_made(paths, &name, 0) && !(*name.bits & WRITTEN)) {
            BW_TRY(bw_path_store_read(paths, number, &order->path));
            BW_TRY(write_up_to(order, order->path.data, order->path.length));
        }
        number = bw_packed_next(&paths->records, number, name.size);
    }
    free_leaves(&order->all.leaves);
    return visit_marked(&order->all, AGAIN, write_again, order);
}
