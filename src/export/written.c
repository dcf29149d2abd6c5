/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The record of an export's output: paths, directories and their order. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "export/written.h"

/*
 * Paths. They are split at slashes, except for a leading one: "/a/b" is "/a" and "b". The first
 * record is the empty path, the root of all others.
 */

enum {
    /* Bits of the first byte of a record. The two lowest are marks of directories. */
    HAS_DETAILS = 1 << 2, /* details follow the name, after their length */
    HAS_LINK = 1 << 3,    /* it was added as a parent of another path; the number of another record
                           * with its details follows, or NO_PATH */
    IS_DETAILS = 1 << 4,  /* a record that contains only details, no name */
    IS_DIRECTORY = HAS_DETAILS | HAS_LINK,

    MOST_DETAILS = BW_LEAF_DETAILS,
    MOST_NAME = BW_PACKED_LONGEST - MOST_DETAILS - 2 * BW_VARINT_LONGEST - 8,
};

#define NO_PATH BW_NO_RECORD

/* A decoded record. */
struct stored_name {
    uint8_t *bits;
    uint32_t parent;
    const char *name;
    size_t length;
    uint8_t *rest; /* the bytes after the name */
    size_t size;
};

/* Attributes of a directory, opaque to the store. */
struct details {
    uint8_t bytes[MOST_DETAILS];
    size_t length;
};

void bw_path_store_free(struct bw_path_store *store)
{
    bw_packed_free(&store->records);
    bw_buffer_free(&store->last);
    *store = (struct bw_path_store){0};
}

static struct stored_name get_name(const struct bw_path_store *store, uint32_t number)
{
    uint8_t *begin = bw_packed_at(&store->records, number);
    const uint8_t *at = begin + 1;
    struct stored_name name = {.bits = begin, .parent = number};
    if (!(*begin & IS_DETAILS)) {
        name.parent -= (uint32_t)bw_varint_get(&at);
        name.length = (size_t)bw_varint_get(&at);
        name.name = (const char *)at;
    }
    name.rest = begin + (at - begin) + name.length;
    name.size = (size_t)(name.rest - begin);
    if (*begin & HAS_LINK)
        name.size += sizeof(uint32_t);
    if (*begin & (HAS_DETAILS | IS_DETAILS))
        name.size += 1u + *name.rest;
    return name;
}

/* The details of a directory, or NULL. */
static const uint8_t *get_details(const struct bw_path_store *store, const struct stored_name *name)
{
    uint32_t link = NO_PATH;
    if (*name->bits & HAS_DETAILS)
        return name->rest + 1;
    if (*name->bits & HAS_LINK)
        memcpy(&link, name->rest, sizeof link);
    return link == NO_PATH ? NULL : get_name(store, link).rest + 1;
}

static uint32_t hash_name(const struct bw_path_store *store, uint32_t parent, const char *name,
                          size_t length)
{
    const uint64_t seed = store->records.multiplier ^ parent * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(XXH64(name, length, seed) >> 32);
}

static uint32_t find_in(const struct bw_path_store *store, uint32_t parent, const char *name,
                        size_t length)
{
    const uint32_t hash = hash_name(store, parent, name, length);
    size_t slot = SIZE_MAX;
    uint32_t number;
    while ((number = bw_packed_find(&store->records, hash, &slot)) != NO_PATH) {
        const struct stored_name other = get_name(store, number);
        if (other.parent == parent && other.length == length &&
            memcmp(other.name, name, length) == 0)
            break;
    }
    return number;
}

/* The length of the common beginning of two paths, in whole components. */
static size_t common_length(const struct bw_buffer *one, const char *path, size_t length)
{
    size_t common = 0, i = 0;
    for (; i < one->length && i < length && one->data[i] == path[i]; i++)
        common = path[i] == '/' ? i : common;
    bool one_ends = i == one->length || one->data[i] == '/';
    bool path_ends = i == length || path[i] == '/';
    return one_ends && path_ends ? i : common;
}

static size_t parent_length(const char *path, size_t length)
{
    const char *slash = memrchr(path, '/', length);
    return slash ? (size_t)(slash - path) : 0;
}

/* The component after the first `known` bytes of a path, and its end. */
static const char *next_name(const char *path, size_t length, size_t known, size_t *end)
{
    const size_t begin = known ? known + 1 : 0, from = known ? begin : 1;
    const char *slash = from < length ? memchr(path + from, '/', length - from) : NULL;
    *end = slash ? (size_t)(slash - path) : length;
    return path + begin;
}

/* Finds the path itself or its nearest parent in the store; `*known` is the length of the path
 * found. */
static uint32_t find_nearest(struct bw_path_store *store, const char *path, size_t length,
                             size_t *known)
{
    struct bw_buffer *last = &store->last;
    uint32_t number = store->last_number;
    size_t end;
    for (*known = common_length(last, path, length); last->length > *known;
         last->length = parent_length(last->data, last->length))
        number = get_name(store, number).parent;
    for (uint32_t next; *known < length; *known = end) {
        const char *name = next_name(path, length, *known, &end);
        next = find_in(store, number, name, (size_t)(path + end - name));
        if (next == NO_PATH)
            break;
        number = next;
    }
    bw_buffer_append(last, path + last->length, *known - last->length);
    store->last_number = last->failed ? 0 : number;
    if (last->failed)
        bw_buffer_free(last);
    return number;
}

static uint32_t find(struct bw_path_store *store, const char *path, size_t length)
{
    size_t known;
    if (!store->records.count)
        return NO_PATH;
    const uint32_t number = find_nearest(store, path, length, &known);
    return known == length ? number : NO_PATH;
}

static bool enlarge_index(struct bw_path_store *store)
{
    if (!bw_packed_enlarge(&store->records))
        return false;
    for (uint32_t number = bw_packed_first(&store->records, 0); number != NO_PATH;) {
        const struct stored_name name = get_name(store, number);
        if (*name.bits & IS_DIRECTORY && number)
            bw_packed_index(&store->records, hash_name(store, name.parent, name.name, name.length),
                            number);
        number = bw_packed_next(&store->records, number, name.size);
    }
    return true;
}

static uint8_t *put_details(uint8_t *at, const struct details *details)
{
    *at++ = (uint8_t)details->length;
    memcpy(at, details->bytes, details->length);
    return at + details->length;
}

/* Adds a component that is not in the store yet. */
static uint32_t add_name(struct bw_path_store *store, uint32_t parent, const char *name,
                         size_t length, uint8_t bits, const struct details *details)
{
    const uint32_t none = NO_PATH;
    uint8_t *end;
    if (length > MOST_NAME ||
        (bits & IS_DIRECTORY && !bw_packed_has_room(&store->records) && !enlarge_index(store)))
        return NO_PATH;
    const size_t longest = length + MOST_DETAILS + 2 * BW_VARINT_LONGEST + sizeof none + 2;
    const uint32_t number = bw_packed_begin(&store->records, longest, &end);
    if (number == NO_PATH)
        return NO_PATH;
    *end++ = bits;
    end = bw_varint_put(end, number - parent);
    end = bw_varint_put(end, length);
    memcpy(end, name, length);
    end += length;
    if (bits & HAS_LINK) {
        memcpy(end, &none, sizeof none);
        end += sizeof none;
    }
    bw_packed_end(&store->records, details ? put_details(end, details) : end);
    if (bits & IS_DIRECTORY && number)
        bw_packed_index(&store->records, hash_name(store, parent, name, length), number);
    return number;
}

/* Adds details to a directory that was only a parent of another one so far. */
static bool add_details(struct bw_path_store *store, uint32_t number, const struct details *details)
{
    uint8_t *end;
    const uint32_t link = bw_packed_begin(&store->records, sizeof *details + 1, &end);
    if (link == NO_PATH)
        return false;
    *end++ = IS_DETAILS;
    bw_packed_end(&store->records, put_details(end, details));
    memcpy(get_name(store, number).rest, &link, sizeof link);
    return true;
}

/* Adds a directory, or its details if it has none yet; `details` may be NULL. */
static bool store_directory(struct bw_path_store *store, const char *path, size_t length,
                            const struct details *details, uint32_t *number)
{
    size_t known, end;
    if (!store->records.count && add_name(store, 0, "", 0, HAS_LINK, NULL) == NO_PATH)
        return false;
    *number = find_nearest(store, path, length, &known);
    if (known == length) {
        const struct stored_name name = get_name(store, *number);
        return !details || get_details(store, &name) || add_details(store, *number, details);
    }
    for (; known < length && *number != NO_PATH; known = end) {
        const char *name = next_name(path, length, known, &end);
        const struct details *own = end == length ? details : NULL;
        *number = add_name(store, *number, name, (size_t)(path + end - name),
                           own ? HAS_DETAILS : HAS_LINK, own);
    }
    return *number != NO_PATH;
}

bool bw_path_store_directory(struct bw_path_store *store, const char *path, size_t length,
                             uint32_t *number)
{
    return store_directory(store, path, length, NULL, number);
}

bool bw_path_store_add(struct bw_path_store *store, const char *path, size_t length,
                       uint32_t *number)
{
    const size_t above = parent_length(path, length);
    size_t end;
    uint32_t directory;
    if (!bw_path_store_directory(store, path, above, &directory))
        return false;
    const char *name = next_name(path, length, above, &end);
    *number = add_name(store, directory, name, (size_t)(path + length - name), 0, NULL);
    return *number != NO_PATH;
}

void bw_path_store_append(const struct bw_path_store *store, uint32_t number,
                          struct bw_buffer *path)
{
    struct stored_name name;
    size_t length = 0;
    for (uint32_t at = number; at; at = name.parent) {
        name = get_name(store, at);
        length += name.length + (name.parent != 0);
    }
    if (!bw_buffer_reserve(path, length))
        return;
    path->length += length;
    char *end = path->data + path->length;
    for (uint32_t at = number; at; at = name.parent) {
        name = get_name(store, at);
        end -= name.length;
        memcpy(end, name.name, name.length);
        if (name.parent)
            *--end = '/';
    }
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
    free(directories->subvolumes);
    bw_map_free(&directories->subvolume_numbers);
    bw_path_store_free(&directories->paths);
    bw_leaf_list_free(&directories->leaves);
    *directories = (struct bw_made_directories){0};
}

/* The index of a subvolume; UINT32_MAX if memory runs out. */
static uint32_t number_subvolume(struct bw_made_directories *directories,
                                 const struct bw_subvolume *subvolume)
{
    const uint64_t key = (uint64_t)(uintptr_t)subvolume;
    uint32_t number = bw_map_get(&directories->subvolume_numbers, key);
    if (number != UINT32_MAX)
        return number;
    number = (uint32_t)directories->subvolume_count;
    if (!BW_ARRAY_RESERVE(directories->subvolumes, directories->subvolume_count,
                          directories->subvolume_capacity) ||
        !bw_map_put(&directories->subvolume_numbers, key, number))
        return UINT32_MAX;
    directories->subvolumes[directories->subvolume_count++] = subvolume;
    return number;
}

/* The index of an owner, or OTHER_OWNER. */
static unsigned number_owner(struct bw_made_directories *directories,
                             const struct bw_made_owner *owner)
{
    unsigned number = 0;
    for (; number < directories->owner_count; number++)
        if (memcmp(&directories->owners[number], owner, sizeof *owner) == 0)
            return number;
    if (number < BW_MADE_OWNERS)
        directories->owners[directories->owner_count++] = *owner;
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

static bool is_same_time(const struct timespec *one, const struct timespec *other)
{
    return one->tv_sec == other->tv_sec && one->tv_nsec == other->tv_nsec;
}

static uint8_t *put_owner(uint8_t *at, const struct bw_made_owner *owner)
{
    at = bw_varint_put(at, owner->uid);
    at = bw_varint_put(at, owner->gid);
    at = bw_varint_put(at, owner->mode);
    return bw_varint_put(at, owner->flags);
}

static struct bw_made_owner get_owner(const uint8_t **at)
{
    struct bw_made_owner owner = {.uid = (uint32_t)bw_varint_get(at)};
    owner.gid = (uint32_t)bw_varint_get(at);
    owner.mode = (uint16_t)bw_varint_get(at);
    owner.flags = (uint16_t)bw_varint_get(at);
    return owner;
}

static void pack_details(unsigned owner_number, uint32_t subvolume, const struct bw_place *place,
                         const struct bw_inode *inode, const struct bw_made_before *before,
                         struct details *details)
{
    const struct bw_made_owner owner = {inode->uid, inode->gid, (uint16_t)inode->mode,
                                        (uint16_t)inode->flags};
    const bool plain = place->type == BW_FILE_DIRECTORY && !place->directory;
    const bool same_ctime = is_same_time(&inode->ctime, &inode->mtime);
    const bool same_atime = is_same_time(&inode->atime, &inode->mtime);
    uint8_t *at = details->bytes;
    *at++ = (uint8_t)(owner_number | (same_ctime ? SAME_CTIME : 0) | (same_atime ? SAME_ATIME : 0) |
                      (plain ? 0 : OTHER_PLACE) | (subvolume ? OTHER_SUBVOLUME : 0));
    at = bw_varint_put_signed(at, place->inode - before->inode);
    at = put_time(at, &inode->mtime, before->mtime);
    if (owner_number == OTHER_OWNER)
        at = put_owner(at, &owner);
    if (!same_ctime)
        at = put_time(at, &inode->ctime, inode->mtime.tv_sec);
    if (!same_atime)
        at = put_time(at, &inode->atime, inode->mtime.tv_sec);
    if (!plain) {
        *at++ = place->type;
        at = bw_varint_put(at, place->directory);
    }
    if (subvolume)
        at = bw_varint_put(at, subvolume);
    details->length = (size_t)(at - details->bytes);
}

static struct bw_made_directory unpack_from(const struct bw_made_directories *directories,
                                            const uint8_t *at, const struct bw_made_before *before)
{
    struct bw_made_directory directory = {0};
    const uint8_t bits = *at++;
    directory.place = (struct bw_place){.inode = before->inode + bw_varint_get_signed(&at),
                                        .type = BW_FILE_DIRECTORY};
    directory.mtime = get_time(&at, before->mtime);
    const unsigned owner_number = bits & OTHER_OWNER;
    const struct bw_made_owner owner =
        owner_number == OTHER_OWNER ? get_owner(&at) : directories->owners[owner_number];
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
        directories->subvolumes[bits & OTHER_SUBVOLUME ? bw_varint_get(&at) : 0];
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

static bool pack(struct bw_made_directories *directories, const struct bw_place *place,
                 const struct bw_inode *inode, const struct bw_made_before *before,
                 struct details *details)
{
    const struct bw_made_owner owner = {inode->uid, inode->gid, (uint16_t)inode->mode,
                                        (uint16_t)inode->flags};
    const uint32_t subvolume = number_subvolume(directories, place->subvolume);
    if (subvolume != UINT32_MAX)
        pack_details(number_owner(directories, &owner), subvolume, place, inode, before, details);
    return subvolume != UINT32_MAX;
}

/* Leaves: directories of size 0. If one contains something all the same, as in a damaged image, all
 * leaves move to the store. */

struct leaves {
    const struct bw_made_directories *directories;
    struct bw_leaf_reader reader;
    struct bw_made_before before;
    struct bw_made_directory directory; /* the current leaf */
};

static struct leaves first_leaf(const struct bw_made_directories *directories)
{
    return (struct leaves){.directories = directories,
                           .reader = {.list = &directories->leaves},
                           .before = before_stored(directories)};
}

static bool next_leaf(struct leaves *leaves)
{
    if (!bw_leaf_reader_next(&leaves->reader))
        return false;
    const struct bw_made_directory directory =
        unpack_from(leaves->directories, leaves->reader.leaf.details, &leaves->before);
    leaves->before = (struct bw_made_before){directory.place.inode, directory.mtime.tv_sec};
    leaves->directory = directory;
    return true;
}

/* Moves all leaves to the store. */
static bool store_leaves(struct bw_made_directories *directories)
{
    const struct bw_made_before before = before_stored(directories);
    struct leaves leaves = first_leaf(directories);
    const struct bw_leaf *leaf = &leaves.reader.leaf;
    bool good = true;
    while (good && next_leaf(&leaves)) {
        const struct bw_inode inode = bw_made_directory_inode(&leaves.directory);
        struct details details;
        good =
            find_in(&directories->paths, leaf->parent, leaf->name, leaf->name_length) != NO_PATH ||
            (pack(directories, &leaves.directory.place, &inode, &before, &details) &&
             add_name(&directories->paths, leaf->parent, leaf->name, leaf->name_length, HAS_DETAILS,
                      &details) != NO_PATH);
    }
    bw_leaf_list_free(&directories->leaves);
    directories->failed |= !good;
    return good;
}

/* A number that is greater than all numbers in the store. */
static uint32_t end_of(const struct bw_packed *records)
{
    return (uint32_t)((records->count - 1) << BW_PACKED_CHUNK_BITS) +
           records->chunks[records->count - 1].used / BW_PACKED_UNIT;
}

static bool add_leaf(struct bw_made_directories *directories, uint32_t parent, const char *name,
                     size_t length, const struct bw_place *place, const struct bw_inode *inode)
{
    struct details details;
    struct bw_leaf leaf = {.after = end_of(&directories->paths.records),
                           .parent = parent,
                           .name_length = (uint8_t)length,
                           .details = details.bytes};
    if (!directories->leaves.count)
        directories->leaf_before = before_stored(directories);
    if (!pack(directories, place, inode, &directories->leaf_before, &details))
        return false;
    memcpy(leaf.name, name, length);
    leaf.details_length = (uint8_t)details.length;
    directories->leaf_before = (struct bw_made_before){place->inode, inode->mtime.tv_sec};
    return bw_leaf_list_add(&directories->leaves, &leaf);
}

/* An archive contains a directory twice if its owner may not write to it. Such a directory needs
 * the marks of the store. */
static bool may_be_leaf(const struct bw_made_directories *directories, const struct bw_inode *inode)
{
    return directories->complete && directories->paths.records.count && S_ISDIR(inode->mode) &&
           !inode->size && (inode->mode & S_IRWXU) == S_IRWXU;
}

static bool add_directory(struct bw_made_directories *directories, const char *path, size_t length,
                          const struct bw_place *place, const struct bw_inode *inode)
{
    const struct bw_made_before before = before_stored(directories);
    const size_t above = parent_length(path, length);
    struct details details;
    size_t known = 0, end;
    uint32_t number = 0;
    if (directories->paths.records.count)
        number = find_nearest(&directories->paths, path, length, &known);
    if (known == above && length > above && may_be_leaf(directories, inode)) {
        const char *name = next_name(path, length, above, &end);
        if (path + length - name <= BW_LEAF_NAME)
            return add_leaf(directories, number, name, (size_t)(path + length - name), place,
                            inode);
    }
    if (known < above && directories->leaves.count && !store_leaves(directories))
        return false;
    return pack(directories, place, inode, &before, &details) &&
           store_directory(&directories->paths, path, length, &details, &number);
}

struct bw_error *bw_made_directories_add(struct bw_made_directories *directories, const char *path,
                                         size_t length, const struct bw_place *place,
                                         const struct bw_inode *inode)
{
    if (!directories->owner_count)
        directories->first_mtime = inode->mtime.tv_sec;
    return add_directory(directories, path, length, place, inode) ? NULL : bw_error_no_memory();
}

/* Whether a record is a directory that was added with details and, if `marks` is not 0, has one of
 * them. */
static bool is_made(const struct bw_path_store *paths, const struct stored_name *name,
                    uint8_t marks)
{
    return *name->bits & IS_DIRECTORY && (!marks || *name->bits & marks) &&
           get_details(paths, name);
}

/* Gets a path by its number, NUL-terminated. */
static struct bw_error *read_path(const struct bw_path_store *paths, uint32_t number,
                                  struct bw_buffer *path)
{
    path->length = 0;
    bw_path_store_append(paths, number, path);
    bw_buffer_append_byte(path, '\0');
    path->length -= !path->failed;
    return path->failed ? bw_error_no_memory() : NULL;
}

static struct bw_error *visit_made(const struct bw_made_directories *directories, uint32_t number,
                                   struct bw_buffer *path, bw_made_directory_visitor *visit,
                                   void *context)
{
    const struct stored_name name = get_name(&directories->paths, number);
    const struct bw_made_directory directory =
        unpack_details(directories, get_details(&directories->paths, &name));
    BW_TRY(read_path(&directories->paths, number, path));
    return visit(context, path->data, path->length, &directory);
}

/* Visits the directories of a chunk in reverse order: subdirectories have greater numbers than
 * their parents. Records can be read only forwards, so the numbers are collected first. */
static struct bw_error *visit_chunk(const struct bw_made_directories *directories, size_t chunk,
                                    uint8_t marks, struct bw_buffer *path,
                                    bw_made_directory_visitor *visit, void *context)
{
    const struct bw_path_store *paths = &directories->paths;
    BW_AUTO_FREE uint32_t *numbers = NULL;
    size_t count = 0, capacity = 0;
    for (uint32_t number = bw_packed_first(&paths->records, chunk); number != NO_PATH;) {
        const struct stored_name name = get_name(paths, number);
        if (is_made(paths, &name, marks)) {
            if (!BW_ARRAY_RESERVE(numbers, count, capacity))
                return bw_error_no_memory();
            numbers[count++] = number;
        }
        number = bw_packed_next_in_chunk(&paths->records, number, name.size);
    }
    while (count--)
        BW_TRY(visit_made(directories, numbers[count], path, visit, context));
    return NULL;
}

static struct bw_error *visit_marked(const struct bw_made_directories *directories, uint8_t marks,
                                     bw_made_directory_visitor *visit, void *context)
{
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    for (size_t chunk = directories->paths.records.count; chunk--;)
        BW_TRY(visit_chunk(directories, chunk, marks, &path, visit, context));
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
    bw_buffer_append_byte(path, '\0');
    path->length -= !path->failed;
    return path->failed ? bw_error_no_memory() : NULL;
}

static struct bw_error *visit_leaves(const struct bw_made_directories *directories,
                                     bw_made_directory_visitor *visit, void *context)
{
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    struct leaves leaves = first_leaf(directories);
    uint32_t parent = NO_PATH;
    size_t above = 0;
    while (next_leaf(&leaves)) {
        BW_TRY(read_leaf_path(directories, &leaves.reader.leaf, &parent, &above, &path));
        BW_TRY(visit(context, path.data, path.length, &leaves.directory));
    }
    return NULL;
}

struct bw_error *bw_made_directories_visit(const struct bw_made_directories *directories,
                                           bw_made_directory_visitor *visit, void *context)
{
    BW_TRY(visit_leaves(directories, visit, context));
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
}

struct bw_error *bw_directory_order_add(struct bw_directory_order *order, const char *path,
                                        size_t length, const struct bw_place *place,
                                        const struct bw_inode *inode)
{
    return bw_made_directories_add(&order->all, path, length, place, inode);
}

/* Finds a directory; false if it is not part of the archive, or if order->all.failed. */
static bool find_directory(struct bw_directory_order *order, const char *path, size_t length,
                           struct stored_name *name)
{
    struct bw_path_store *paths = &order->all.paths;
    uint32_t number = find(paths, path, length);
    if (number == NO_PATH && order->all.leaves.count && store_leaves(&order->all))
        number = find(paths, path, length);
    if (number == NO_PATH)
        return false;
    *name = get_name(paths, number);
    return get_details(paths, name);
}

/* Handles an entry in a directory that tar has already finished: the directory must be written
 * again. This includes the top directory, because no name begins with it. */
static void mark_reentered(struct bw_directory_order *order, const char *path, size_t length)
{
    struct stored_name name;
    if (find_directory(order, path, length, &name) &&
        (!length || common_length(&order->open, path, length) != length))
        *name.bits |= AGAIN;
}

/* Writes a directory, after the parent directories. */
static struct bw_error *write_new(struct bw_directory_order *order, const char *path, size_t length,
                                  const struct bw_made_directory *directory)
{
    if (length)
        mark_reentered(order, path, parent_length(path, length));
    order->open.length = 0;
    bw_buffer_append(&order->open, path, length);
    bw_buffer_append_byte(&order->open, '\0');
    if (order->open.failed)
        return bw_error_no_memory();
    order->open.length--;
    return order->write(order->context, order->open.data, directory, BW_DIRECTORY_FIRST);
}

static struct bw_error *write_first(struct bw_directory_order *order,
                                    const struct stored_name *name, const char *path, size_t length)
{
    const struct bw_made_directory directory =
        unpack_details(&order->all, get_details(&order->all.paths, name));
    *name->bits |= WRITTEN | ((directory.mode & S_IRWXU) != S_IRWXU ? AGAIN : 0);
    return write_new(order, path, length, &directory);
}

/* Writes a directory after all its parents, unless they were written before. */
static struct bw_error *write_up_to(struct bw_directory_order *order, const char *path,
                                    size_t length)
{
    struct stored_name name;
    size_t end = length;
    while (end && !(find_directory(order, path, end, &name) && *name.bits & WRITTEN))
        end = parent_length(path, end);
    order->open.length = common_length(&order->open, path, length);
    for (; end <= length; end++) {
        if (end && end < length && path[end] != '/')
            continue;
        if (find_directory(order, path, end, &name) && !(*name.bits & WRITTEN))
            BW_TRY(write_first(order, &name, path, end));
    }
    return NULL;
}

struct bw_error *bw_directory_order_enter(struct bw_directory_order *order, const char *path,
                                          size_t length)
{
    size_t parent = parent_length(path, length);
    if (parent && order->open.length == parent && memcmp(order->open.data, path, parent) == 0)
        return NULL;
    BW_TRY(write_up_to(order, path, parent));
    mark_reentered(order, path, parent);
    return order->all.failed ? bw_error_no_memory() : NULL;
}

/* The leaves that have not been written yet. */
struct unwritten_leaves {
    struct leaves leaves;
    bool any; /* `leaves` has a current leaf */
    uint32_t parent;
    size_t above;
    struct bw_buffer path;
};

/* Writes the leaves that were added before the directory `number` of the store. */
static struct bw_error *write_leaves(struct bw_directory_order *order,
                                     struct unwritten_leaves *unwritten, uint32_t number)
{
    struct leaves *leaves = &unwritten->leaves;
    struct bw_buffer *path = &unwritten->path;
    const struct bw_leaf *leaf = &leaves->reader.leaf;
    for (; unwritten->any && leaf->after <= number; unwritten->any = next_leaf(leaves)) {
        BW_TRY(read_leaf_path(&order->all, leaf, &unwritten->parent, &unwritten->above, path));
        BW_TRY(write_up_to(order, path->data, unwritten->above));
        BW_TRY(write_new(order, path->data, path->length, &leaves->directory));
    }
    return NULL;
}

static struct bw_error *write_both(struct bw_directory_order *order,
                                   struct unwritten_leaves *unwritten)
{
    const struct bw_path_store *paths = &order->all.paths;
    for (uint32_t number = bw_packed_first(&paths->records, 0); number != NO_PATH;) {
        const struct stored_name name = get_name(paths, number);
        BW_TRY(write_leaves(order, unwritten, number));
        if (is_made(paths, &name, 0) && !(*name.bits & WRITTEN)) {
            BW_TRY(read_path(paths, number, &order->path));
            BW_TRY(write_up_to(order, order->path.data, order->path.length));
        }
        number = bw_packed_next(&paths->records, number, name.size);
    }
    return write_leaves(order, unwritten, NO_PATH);
}

/* Writes directories without entries, in the order in which they were added. */
static struct bw_error *write_empty(struct bw_directory_order *order)
{
    struct unwritten_leaves unwritten = {.leaves = first_leaf(&order->all), .parent = NO_PATH};
    unwritten.any = next_leaf(&unwritten.leaves);
    struct bw_error *error = write_both(order, &unwritten);
    bw_buffer_free(&unwritten.path);
    return error;
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
    BW_TRY(write_empty(order));
    bw_leaf_list_free(&order->all.leaves);
    return visit_marked(&order->all, AGAIN, write_again, order);
}
