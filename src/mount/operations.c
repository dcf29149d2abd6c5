/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Listing directories. Entries are read in batches, because reading the attributes of many inodes
 * takes hardly longer than of one; each batch is larger than the previous one. The offset of an
 * entry is its index in the directory, after "." and "..", so it does not depend on values in the
 * image.
 *
 * The kernel accepts attributes with the first entries of each directory, even if no program needs
 * them, and creating an inode for each takes more time than everything else. Therefore, it always
 * gets the attributes of directories, which a program that descends into them needs, but attributes
 * of files only for a while after a program has requested attributes of a file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/array.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "btrfs-walk/inode.h"
#include "btrfs-walk/space.h"
#include "mount/internal.h"

enum { DOTS = 2, FIRST_BATCH = 64, LARGEST_BATCH = 1024, WANTED_LISTS = 256 };

/* An entry of the current batch. */
struct entry {
    size_t name; /* offset in `names`; NUL-terminated */
    struct bw_place place;
};

/* An open directory. */
struct listing {
    pthread_mutex_t lock;
    struct bw_mount *mount;
    struct bw_place place;
    uint64_t parent; /* the inode number of ".."; 0 before its first use */
    struct bw_directory *directory;
    bool ended;
    struct entry *entries;          /* the current batch */
    size_t count, capacity, wanted; /* `wanted`: maximum number of entries in the batch */
    uint64_t first;                 /* offset of its first entry in the directory */
    struct bw_buffer names;
    struct bw_wanted_inode *inodes; /* ascending by number */
    size_t inode_count, inode_capacity;
    enum { NONE, DIRECTORIES, ALL } has_inodes; /* the inodes read for the batch */
    bool files;                                 /* attributes of files are needed, too */
};

static struct listing *listing_of(const struct fuse_file_info *file)
{
    return (struct listing *)(uintptr_t)file->fh;
}

static struct bw_error *begin(struct listing *listing)
{
    bw_directory_close(BW_TAKE(listing->directory));
    listing->count = 0;
    listing->wanted = FIRST_BATCH;
    listing->first = DOTS;
    listing->ended = false;
    return bw_directory_open(listing->mount->fs, &listing->place, BW_DIRECTORY_START,
                             &listing->directory);
}

static void free_listing(struct listing *listing)
{
    bw_directory_close(listing->directory);
    bw_buffer_free(&listing->names);
    pthread_mutex_destroy(&listing->lock);
    free(listing->entries);
    free(listing->inodes);
    free(listing);
}

static struct bw_error *make_listing(struct bw_mount *mount, fuse_ino_t node,
                                     struct listing **result)
{
    struct bw_place place;
    if (!bw_mount_place(mount, node, &place))
        return bw_error_create(BW_ERROR_NOT_FOUND, "no such directory");
    place.type = BW_FILE_DIRECTORY; /* the kernel opens only directories this way */
    struct listing *listing = calloc(1, sizeof *listing);
    if (!listing)
        return bw_error_no_memory();
    *listing = (struct listing){.mount = mount, .place = place};
    pthread_mutex_init(&listing->lock, NULL);
    struct bw_error *error = begin(listing);
    if (error)
        free_listing(listing);
    else
        *result = listing;
    return error;
}

static void opendir(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *file)
{
    struct listing *listing;
    struct bw_error *error = make_listing(bw_mount_of(request), node, &listing);
    if (error) {
        bw_mount_reply(request, error);
        return;
    }
    file->fh = (uintptr_t)listing;
    file->keep_cache = file->cache_readdir = 1;
    if (fuse_reply_open(request, file))
        free_listing(listing);
}

static void releasedir(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *file)
{
    (void)node;
    free_listing(listing_of(file));
    fuse_reply_err(request, 0);
}

/* Reads the next batch. */
static struct bw_error *read_batch(struct listing *listing)
{
    const struct bw_directory_entry *entry;
    listing->first += listing->count;
    listing->count = listing->names.length = 0;
    listing->has_inodes = NONE;
    while (!listing->ended && listing->count < listing->wanted) {
        BW_TRY(bw_directory_next(listing->directory, &entry));
        listing->ended = !entry;
        if (!entry)
            break;
        if (!BW_ARRAY_RESERVE(listing->entries, listing->count, listing->capacity))
            return bw_error_no_memory();
        listing->entries[listing->count++] = (struct entry){listing->names.length, entry->place};
        bw_buffer_append(&listing->names, entry->name, entry->name_length);
        bw_buffer_append_byte(&listing->names, '\0');
    }
    if (listing->wanted < LARGEST_BATCH)
        listing->wanted *= 2;
    return listing->names.failed ? bw_error_no_memory() : NULL;
}

/* Makes the batch that contains an offset the current one; at the end of the directory, an empty
 * one. */
static struct bw_error *go_to(struct listing *listing, uint64_t offset)
{
    if (offset < listing->first)
        BW_TRY(begin(listing));
    while (offset >= listing->first + listing->count && !listing->ended)
        BW_TRY(read_batch(listing));
    if (offset >= listing->first + listing->count) {
        listing->first += listing->count;
        listing->count = 0;
    }
    return NULL;
}

static int by_number(const void *left, const void *right)
{
    const struct bw_wanted_inode *a = left, *b = right;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* Whether the inode of an entry is in the tree of the directory, so it can be read together with
 * others. */
static bool is_ordinary(const struct listing *listing, const struct bw_place *place)
{
    return place->subvolume == listing->place.subvolume && place->inode != BW_EMPTY_DIRECTORY;
}

static bool is_wanted(const struct listing *listing, const struct bw_place *place)
{
    return listing->files || place->type == BW_FILE_DIRECTORY;
}

/* Records that a program has requested the attributes of a file. */
static void note_attributes_requested(struct bw_mount *mount)
{
    if (atomic_load_explicit(&mount->wanted, memory_order_relaxed) != WANTED_LISTS)
        atomic_store_explicit(&mount->wanted, WANTED_LISTS, memory_order_relaxed);
}

/* Whether the next listing includes the attributes of files. */
static bool include_file_attributes(struct bw_mount *mount)
{
    unsigned left = atomic_load_explicit(&mount->wanted, memory_order_relaxed);
    if (left)
        atomic_compare_exchange_strong(&mount->wanted, &left, left - 1);
    return left;
}

/* Collects the numbers of the inodes to read, in ascending order, without duplicates. */
static struct bw_error *list_inodes(struct listing *listing)
{
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < listing->count; i++) {
        const struct bw_place *place = &listing->entries[i].place;
        if (!is_ordinary(listing, place) || !is_wanted(listing, place))
            continue;
        if (!BW_ARRAY_RESERVE(listing->inodes, count, listing->inode_capacity))
            return bw_error_no_memory();
        listing->inodes[count++].number = place->inode;
    }
    struct bw_wanted_inode *inodes = listing->inodes;
    if (count)
        qsort(inodes, count, sizeof *inodes, by_number);
    for (size_t i = 0; i < count; i++)
        if (!i || inodes[i].number != inodes[kept - 1].number)
            inodes[kept++].number = inodes[i].number;
    listing->inode_count = kept;
    return NULL;
}

static struct bw_error *read_inodes(struct listing *listing)
{
    BW_TRY(list_inodes(listing));
    listing->has_inodes = listing->files ? ALL : DIRECTORIES;
    return listing->inode_count ? bw_inodes_get(listing->mount->fs, listing->place.subvolume,
                                                listing->inodes, listing->inode_count, false)
                                : NULL;
}

/* Gets the inode of an entry; false if it cannot be read, which a lookup of the name will
 * report. */
static bool inode_of(const struct listing *listing, const struct bw_place *place,
                     struct bw_inode *inode)
{
    if (!is_ordinary(listing, place)) {
        BW_AUTO_ERROR struct bw_error *error = bw_inode_get(listing->mount->fs, place, inode);
        return !error;
    }
    const size_t i =
        BW_FIRST_INDEX(k, listing->inode_count, listing->inodes[k].number >= place->inode);
    if (i == listing->inode_count || listing->inodes[i].number != place->inode ||
        !listing->inodes[i].found)
        return false;
    *inode = listing->inodes[i].inode;
    return true;
}

static mode_t mode_of_type(uint8_t type)
{
    static const mode_t modes[] = {0,       S_IFREG, S_IFDIR,  S_IFCHR,
                                   S_IFBLK, S_IFIFO, S_IFSOCK, S_IFLNK};
    return type < sizeof modes / sizeof *modes ? modes[type] : 0;
}

bool bw_mount_answer_add(struct bw_mount_answer *answer, const char *name,
                         const struct fuse_entry_out *entry, uint64_t next)
{
    const size_t length = strlen(name), before = answer->plus ? sizeof *entry : 0;
    const size_t size = FUSE_DIRENT_ALIGN(before + FUSE_NAME_OFFSET + length);
    const struct fuse_dirent head = {.ino = entry->attr.ino,
                                     .off = next,
                                     .namelen = (uint32_t)length,
                                     .type = (entry->attr.mode & S_IFMT) >> 12};
    char *to = answer->bytes + answer->used;
    if (size > answer->size - answer->used)
        return false;
    memset(to, 0, size);
    memcpy(to, entry, before);
    memcpy(to + before, &head, FUSE_NAME_OFFSET);
    memcpy(to + before + FUSE_NAME_OFFSET, name, length);
    answer->used += size;
    return true;
}

static struct bw_error *set_parent(void *context, const struct bw_inode_name *name)
{
    *(uint64_t *)context = name->directory;
    return bw_error_create(BW_ERROR_STOPPED, "a directory has one name");
}

/* The inode number of ".."; the directory's own number at the top of the mount, or if the parent is
 * unknown. */
static uint64_t parent_of(const struct listing *listing)
{
    const struct bw_mount *mount = listing->mount;
    const struct bw_place top = bw_place_top(listing->place.subvolume);
    struct bw_place parent = {top.subvolume, listing->place.directory, BW_FILE_DIRECTORY, 0};
    struct bw_subvolume_info info = {0};
    if (listing->place.inode == top.inode && top.subvolume != mount->options.top) {
        bw_error_free(bw_subvolume_get(mount->fs, top.subvolume, &info));
        parent.subvolume = bw_subvolume_by_id(mount->fs, info.parent);
        parent.inode = info.directory;
    } else if (listing->place.inode != top.inode && listing->place.inode != BW_EMPTY_DIRECTORY) {
        bw_error_free(bw_inode_names(mount->fs, &listing->place, set_parent, &parent.inode));
    }
    return bw_mount_number(mount, parent.subvolume && parent.inode ? &parent : &listing->place);
}

static bool add_dots(struct listing *listing, struct bw_mount_answer *answer, uint64_t offset)
{
    struct fuse_entry_out entry = {.attr.mode = S_IFDIR};
    entry.attr.ino = bw_mount_number(listing->mount, &listing->place);
    if (offset < 1 && !bw_mount_answer_add(answer, ".", &entry, 1))
        return false;
    if (!listing->parent)
        listing->parent = parent_of(listing);
    entry.attr.ino = listing->parent;
    return bw_mount_answer_add(answer, "..", &entry, DOTS);
}

static bool add_entry(struct listing *listing, struct bw_mount_answer *answer, uint64_t offset)
{
    const struct entry *entry = &listing->entries[offset - listing->first];
    struct fuse_entry_out shown = {0};
    struct bw_inode inode;
    if (!answer->plus || !is_wanted(listing, &entry->place) ||
        !inode_of(listing, &entry->place, &inode) ||
        !bw_mount_entry(listing->mount, &entry->place, &inode, &shown)) {
        shown.nodeid = 0; /* means that there are no attributes */
        shown.attr.ino = bw_mount_number(listing->mount, &entry->place);
        shown.attr.mode = mode_of_type(entry->place.type);
    }
    return bw_mount_answer_add(answer, listing->names.data + entry->name, &shown, offset + 1);
}

/* If entries of a directory are lost, its end is an error, so that programs do not mistake the
 * listing for a complete one. */
static struct bw_error *at_end(const struct listing *listing, const struct bw_mount_answer *answer)
{
    return answer->used || bw_directory_is_complete(listing->directory)
               ? NULL
               : bw_error_create(BW_ERROR_CORRUPT, "inode %llu of subvolume %llu: entries are lost",
                                 (unsigned long long)listing->place.inode,
                                 (unsigned long long)bw_subvolume_id(listing->place.subvolume));
}

static struct bw_error *fill(struct listing *listing, struct bw_mount_answer *answer,
                             uint64_t offset)
{
    if (offset < DOTS) {
        if (!add_dots(listing, answer, offset))
            return NULL;
        offset = DOTS;
    }
    for (;; offset++) {
        BW_TRY(go_to(listing, offset));
        if (!listing->count)
            return at_end(listing, answer);
        if (answer->plus && listing->has_inodes < (listing->files ? ALL : DIRECTORIES))
            BW_TRY(read_inodes(listing));
        if (!add_entry(listing, answer, offset))
            return NULL;
    }
}

static void reply(fuse_req_t request, size_t size, off_t offset, const struct fuse_file_info *file,
                  bool plus)
{
    struct listing *listing = listing_of(file);
    BW_AUTO_FREE char *bytes = malloc(size);
    struct bw_mount_answer answer = {.bytes = bytes, .size = size, .plus = plus};
    pthread_mutex_lock(&listing->lock);
    /* the kernel requests attributes at a later offset only if it had to look up a name */
    listing->files |= plus && (offset || include_file_attributes(listing->mount));
    struct bw_error *error =
        bytes ? fill(listing, &answer, (uint64_t)offset) : bw_error_no_memory();
    pthread_mutex_unlock(&listing->lock);
    if (error)
        bw_mount_reply(request, error);
    else
        fuse_reply_buf(request, bytes, answer.used);
}

static void readdir(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset,
                    struct fuse_file_info *file)
{
    (void)node;
    reply(request, size, offset, file, false);
}

static void readdirplus(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset,
                        struct fuse_file_info *file)
{
    (void)node;
    reply(request, size, offset, file, true);
}

static void add_directories(struct fuse_lowlevel_ops *operations)
{
    operations->opendir = opendir;
    operations->readdir = readdir;
    operations->readdirplus = readdirplus;
    operations->releasedir = releasedir;
}

/* Names, attributes, links, extended attributes, and the space of the file system. */

static void init(void *context, struct fuse_conn_info *connection)
{
    const struct bw_mount *mount = context;
    const bool lists = mount->options.checks_permissions && !mount->options.squash_user &&
                       !mount->options.squash_group;
    const unsigned wanted = FUSE_CAP_ASYNC_READ | FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_READDIRPLUS |
                            FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_CACHE_SYMLINKS |
                            FUSE_CAP_IOCTL_DIR | (lists ? FUSE_CAP_POSIX_ACL : 0U);
    connection->want = wanted & connection->capable;
}

static struct bw_error *no_such_node(fuse_ino_t node)
{
    return bw_error_create(BW_ERROR_NOT_FOUND, "there is no file %llu", (unsigned long long)node);
}

static struct bw_error *find_node(const struct bw_mount *mount, fuse_ino_t node,
                                  struct bw_place *place)
{
    return bw_mount_place(mount, node, place) ? NULL : no_such_node(node);
}

/* Treats a missing item as damage, because something refers to it. */
static struct bw_error *missing_is_damage(struct bw_error *error)
{
    if (!error || error->code != BW_ERROR_NOT_FOUND)
        return error;
    struct bw_error *damage = bw_error_create(BW_ERROR_CORRUPT, "%s", error->message);
    bw_error_free(error);
    return damage;
}

static void reply_nothing(fuse_req_t request)
{
    const struct fuse_entry_out none = {.entry_valid = BW_MOUNT_FOREVER};
    fuse_reply_buf(request, (const char *)&none, sizeof none);
}

static struct bw_error *look_up(const struct bw_mount *mount, fuse_ino_t parent, const char *name,
                                struct bw_place *place, struct bw_inode *inode)
{
    struct bw_place directory;
    BW_TRY(find_node(mount, parent, &directory));
    BW_TRY(bw_lookup_name(mount->fs, &directory, name, strlen(name), place));
    return missing_is_damage(bw_inode_get(mount->fs, place, inode));
}

static void lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    const struct bw_mount *mount = bw_mount_of(request);
    struct bw_place place;
    struct bw_inode inode;
    struct fuse_entry_out entry;
    struct bw_error *error = look_up(mount, parent, name, &place, &inode);
    if (error && error->code == BW_ERROR_NOT_FOUND) {
        bw_error_free(error);
        reply_nothing(request);
    } else if (error) {
        bw_mount_reply(request, error);
    } else if (!bw_mount_entry(mount, &place, &inode, &entry)) {
        fuse_reply_err(request, EOVERFLOW);
    } else {
        if (!S_ISDIR(inode.mode))
            note_attributes_requested(bw_mount_of(request));
        fuse_reply_buf(request, (const char *)&entry, sizeof entry);
    }
}

/* Does nothing, because there is no state for the kernel's numbers. */
static void forget(fuse_req_t request, fuse_ino_t node, uint64_t count)
{
    (void)node, (void)count;
    fuse_reply_none(request);
}

static void forget_many(fuse_req_t request, size_t count, struct fuse_forget_data *forgets)
{
    (void)count, (void)forgets;
    fuse_reply_none(request);
}

static void getattr(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *file)
{
    const struct bw_mount *mount = bw_mount_of(request);
    struct bw_place place;
    struct bw_inode inode;
    struct fuse_attr_out answer = {.attr_valid = BW_MOUNT_FOREVER};
    (void)file;
    struct bw_error *error = find_node(mount, node, &place);
    if (!error)
        error = bw_inode_get(mount->fs, &place, &inode);
    if (error) {
        bw_mount_reply(request, error);
        return;
    }
    bw_mount_attributes(mount, &place, &inode, &answer.attr);
    fuse_reply_buf(request, (const char *)&answer, sizeof answer);
}

static void readlink(fuse_req_t request, fuse_ino_t node)
{
    const struct bw_mount *mount = bw_mount_of(request);
    struct bw_place place;
    BW_AUTO_FREE char *target = NULL;
    struct bw_error *error = find_node(mount, node, &place);
    if (!error)
        error = missing_is_damage(bw_inode_readlink(mount->fs, &place, &target, NULL));
    if (error)
        bw_mount_reply(request, error);
    else
        fuse_reply_readlink(request, target);
}

/* Extended attributes. */

/* A search for an attribute, or a list of all names. */
struct attributes {
    const char *name; /* NULL: list all names */
    size_t name_length;
    struct bw_buffer bytes; /* the value, or NUL-terminated names */
    bool found;
};

static struct bw_error *append_attribute(void *context, const struct bw_xattr *xattr)
{
    struct attributes *attributes = context;
    if (memchr(xattr->name, '\0', xattr->name_length)) /* no system call can specify this name */
        return NULL;
    if (!attributes->name) {
        bw_buffer_append(&attributes->bytes, xattr->name, xattr->name_length);
        bw_buffer_append_byte(&attributes->bytes, '\0');
    } else if (!attributes->found && xattr->name_length == attributes->name_length &&
               memcmp(xattr->name, attributes->name, xattr->name_length) == 0) {
        attributes->found = true;
        bw_buffer_append(&attributes->bytes, xattr->value, xattr->value_length);
    }
    return attributes->bytes.failed ? bw_error_no_memory() : NULL;
}

/* Replies with the number of bytes if `size` is 0. */
static void reply_bytes(fuse_req_t request, const struct bw_buffer *bytes, size_t size)
{
    if (!size)
        fuse_reply_xattr(request, bytes->length);
    else if (bytes->length > size)
        fuse_reply_err(request, ERANGE);
    else
        fuse_reply_buf(request, bytes->data, bytes->length);
}

static void reply_attributes(fuse_req_t request, fuse_ino_t node, struct attributes *attributes,
                             size_t size)
{
    const struct bw_mount *mount = bw_mount_of(request);
    struct bw_place place;
    struct bw_error *error = find_node(mount, node, &place);
    if (!error && place.inode != BW_EMPTY_DIRECTORY)
        error = bw_inode_xattrs(mount->fs, &place, append_attribute, attributes);
    if (error)
        bw_mount_reply(request, error);
    else if (attributes->name && !attributes->found)
        fuse_reply_err(request, ENODATA);
    else
        reply_bytes(request, &attributes->bytes, size);
    bw_buffer_free(&attributes->bytes);
}

static void getxattr(fuse_req_t request, fuse_ino_t node, const char *name, size_t size)
{
    struct attributes attributes = {.name = name, .name_length = strlen(name)};
    reply_attributes(request, node, &attributes, size);
}

static void listxattr(fuse_req_t request, fuse_ino_t node, size_t size)
{
    struct attributes attributes = {0};
    reply_attributes(request, node, &attributes, size);
}

/* Space. */

/* Computes the result of statfs(2), which counts only one copy of redundant data, as on a mount.
 * The kernel also subtracts a reserve from the free space, which only it knows. */
static struct bw_error *sum_space(struct bw_mount *mount)
{
    struct bw_usage *usage;
    BW_TRY(bw_fs_usage(mount->fs, &usage));
    const uint64_t block = mount->sectorsize;
    const double ratio = usage->data_ratio > 1 ? usage->data_ratio : 1;
    const uint64_t size = (uint64_t)((double)usage->device_size / ratio),
                   used = (uint64_t)((double)usage->used / ratio);
    mount->space = (struct statvfs){
        .f_bsize = (unsigned long)block,
        .f_frsize = (unsigned long)block,
        .f_blocks = size / block,
        .f_bfree = (size > used ? size - used : 0) / block,
        .f_bavail = usage->free_estimated / block,
        .f_namemax = 255,
    };
    mount->has_space = true;
    bw_usage_free(usage);
    return NULL;
}

static void statfs(fuse_req_t request, fuse_ino_t node)
{
    struct bw_mount *mount = bw_mount_of(request);
    struct bw_error *error = NULL;
    (void)node;
    pthread_mutex_lock(&mount->lock);
    if (!mount->has_space)
        error = sum_space(mount);
    pthread_mutex_unlock(&mount->lock);
    if (error)
        bw_mount_reply(request, error);
    else
        fuse_reply_statfs(request, &mount->space);
}

struct fuse_lowlevel_ops bw_mount_operations(void)
{
    struct fuse_lowlevel_ops operations = {
        .init = init,
        .lookup = lookup,
        .forget = forget,
        .forget_multi = forget_many,
        .getattr = getattr,
        .readlink = readlink,
        .getxattr = getxattr,
        .listxattr = listxattr,
        .statfs = statfs,
    };
    add_directories(&operations);
    bw_mount_add_contents(&operations);
    return operations;
}
