/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Listing directories. Entries are read in batches, because reading the attributes of many inodes
 * takes hardly longer than of one; each batch is larger than the previous one. The offset of an
 * entry is its index in the directory, after "." and "..", so it does not depend on values in the
 * image.
 *
 * Programs open and close directories without a request to this program, if the kernel supports
 * that: a request identifies a directory by its number. A listing that has not reached the end is
 * kept for the next request of the directory. If it no longer exists by then, the directory is read
 * from its beginning again. A listing at the end is used for another directory; it has probably
 * read the tree block with the entries already.
 *
 * The kernel accepts attributes with the first entries of each directory, even if no program needs
 * them, and creating an inode for each takes more time than everything else. Therefore, it always
 * gets the attributes of directories, which a program that descends into them needs, but attributes
 * of files only for a while after a program has requested attributes of a file.
 */
#include "mount/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/file_type.h"
#include "base/search.h"

enum {
    DOTS = 2,
    FIRST_BATCH = 64,
    LARGEST_BATCH = 1024,
    WANTED_LISTS = 256,
    KEPT = 64,     /* listings */
    PARENTS = 4096 /* directories whose parent is remembered */
};

/* An entry of the current batch. */
struct entry {
    size_t name; /* offset in `names`; NUL-terminated */
    struct bw_place place;
};

BW_VECTOR(bw_wanted_inodes, struct bw_wanted_inode);

BW_VECTOR(entries, struct entry);

/* A listing of a directory, used by one request at a time. */
struct listing {
    struct bw_mount *mount;
    fuse_ino_t node; /* the directory; 0 if the listing has ended */
    uint64_t used;   /* time of the last use, as a count of uses */
    struct bw_place place;
    struct bw_directory *directory; /* NULL before the first use */
    bool ended;
    struct entries entries; /* the current batch */
    size_t limit;           /* maximum number of entries in the next batch */
    uint64_t first;         /* offset of its first entry in the directory */
    struct bw_buffer names;
    struct bw_wanted_inodes inodes;             /* ascending by number */
    enum { NONE, DIRECTORIES, ALL } has_inodes; /* the inodes read for the batch */
    bool files;                                 /* attributes of files are needed, too */
};

/* The parent of a directory that was listed: the inode number that programs see. */
struct parent {
    fuse_ino_t node;
    uint64_t number;
};

struct bw_listings {
    pthread_mutex_t lock;
    struct listing *kept[KEPT]; /* no request uses them */
    size_t count;
    uint64_t uses;
    struct parent parents[PARENTS]; /* at the hash of the directory */
};

static void free_listing(struct listing *listing)
{
    if (!listing)
        return;
    bw_directory_close(listing->directory);
    bw_buffer_free(&listing->names);
    entries_free(&listing->entries);
    bw_wanted_inodes_free(&listing->inodes);
    free(listing);
}

struct bw_listings *bw_listings_create(void)
{
    struct bw_listings *listings = calloc(1, sizeof *listings);
    if (listings)
        pthread_mutex_init(&listings->lock, NULL);
    return listings;
}

void bw_listings_destroy(struct bw_listings *listings)
{
    if (!listings)
        return;
    for (size_t i = 0; i < listings->count; i++)
        free_listing(listings->kept[i]);
    pthread_mutex_destroy(&listings->lock);
    free(listings);
}

/* Keeps a listing; if there are too many, frees the least recently used one. */
static void keep_listing(struct bw_listings *listings, struct listing *listing)
{
    struct listing *oldest = NULL;
    size_t at = 0;
    pthread_mutex_lock(&listings->lock);
    listing->used = ++listings->uses;
    for (size_t i = 1; i < listings->count; i++)
        if (listings->kept[i]->used < listings->kept[at]->used)
            at = i;
    if (listings->count < KEPT)
        at = listings->count++;
    else
        oldest = listings->kept[at];
    listings->kept[at] = listing;
    pthread_mutex_unlock(&listings->lock);
    free_listing(oldest);
}

static struct bw_error *begin_listing(struct listing *listing)
{
    struct bw_fs *fs = listing->mount->fs;
    listing->entries.count = 0;
    listing->limit = FIRST_BATCH;
    listing->first = DOTS;
    listing->ended = false;
    if (listing->directory)
        return bw_directory_reopen(listing->directory, &listing->place, BW_DIRECTORY_START);
    return bw_directory_open(fs, &listing->place, BW_DIRECTORY_START, &listing->directory);
}

/* Gets a listing of a directory for a request; keep it after use. It is a kept listing of this
 * directory before the offset, the nearest if there are several; or the listing that ended last. */
static struct bw_error *find_listing(struct bw_mount *mount, fuse_ino_t node, uint64_t offset,
                                     struct listing **result)
{
    struct bw_listings *listings = mount->listings;
    struct listing *nearest = NULL, *ended = NULL;
    pthread_mutex_lock(&listings->lock);
    for (size_t i = 0; i < listings->count; i++) {
        struct listing *kept = listings->kept[i];
        if (kept->node == node && offset && kept->first <= offset &&
            (!nearest || kept->first > nearest->first))
            nearest = kept;
        if (!kept->node && (!ended || kept->used > ended->used))
            ended = kept;
    }
    struct listing *listing = nearest ? nearest : ended;
    for (size_t i = 0; listing && i < listings->count; i++)
        if (listings->kept[i] == listing)
            listings->kept[i] = listings->kept[--listings->count];
    pthread_mutex_unlock(&listings->lock);

    if (!listing)
        listing = calloc(1, sizeof *listing);
    if (!listing)
        return bw_error_no_memory();
    listing->mount = mount;
    struct bw_error *error = NULL;
    if (!listing->node) {
        listing->node = node;
        listing->files = false;
        if (bw_mount_place(mount, node, &listing->place)) {
            listing->place.type = BW_FILE_DIRECTORY; /* the kernel lists only directories */
            error = begin_listing(listing);
        } else {
            error = bw_error_create(BW_ERROR_NOT_FOUND, "no such directory");
        }
    }
    if (error)
        free_listing(listing);
    else
        *result = listing;
    return error;
}

/* Makes the batch that contains an offset the current one; at the end of the directory, an empty
 * one. */
static struct bw_error *go_to(struct listing *listing, uint64_t offset)
{
    struct entries *entries = &listing->entries;
    const struct bw_directory_entry *entry;
    if (offset < listing->first)
        BW_TRY(begin_listing(listing));
    while (offset >= listing->first + entries->count && !listing->ended) {
        listing->first += entries->count;
        entries->count = listing->names.length = 0;
        listing->has_inodes = NONE;
        while (!listing->ended && entries->count < listing->limit) {
            BW_TRY(bw_directory_next(listing->directory, &entry));
            listing->ended = !entry;
            if (!entry)
                break;
            BW_TRY(entries_push(entries, (struct entry){listing->names.length, entry->place}));
            bw_buffer_append(&listing->names, entry->name, entry->name_length);
            bw_buffer_append_byte(&listing->names, '\0');
        }
        if (listing->limit < LARGEST_BATCH)
            listing->limit *= 2;
        BW_TRY(bw_buffer_error(&listing->names));
    }
    if (offset >= listing->first + entries->count) {
        listing->first += entries->count;
        entries->count = 0;
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

void bw_mount_note_attributes(struct bw_mount *mount)
{
    if (atomic_load_explicit(&mount->wanted, memory_order_relaxed) != WANTED_LISTS)
        atomic_store_explicit(&mount->wanted, WANTED_LISTS, memory_order_relaxed);
}

/* Reads the inodes of the batch that are needed: in ascending order, without duplicates. */
static struct bw_error *read_inodes(struct listing *listing)
{
    size_t kept = 0;
    listing->inodes.count = 0;
    for (size_t i = 0; i < listing->entries.count; i++) {
        const struct bw_place *place = &listing->entries.items[i].place;
        if (!is_ordinary(listing, place) || !is_wanted(listing, place))
            continue;
        BW_TRY(bw_wanted_inodes_push(&listing->inodes,
                                     (struct bw_wanted_inode){.number = place->inode}));
    }
    struct bw_wanted_inode *inodes = listing->inodes.items;
    const size_t count = listing->inodes.count;
    if (count)
        qsort(inodes, count, sizeof *inodes, by_number);
    for (size_t i = 0; i < count; i++)
        if (!i || inodes[i].number != inodes[kept - 1].number)
            inodes[kept++].number = inodes[i].number;
    listing->inodes.count = kept;
    listing->has_inodes = listing->files ? ALL : DIRECTORIES;
    if (!kept)
        return NULL;
    return bw_inodes_get(listing->mount->fs, listing->place.subvolume, inodes, kept, false);
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
        BW_FIRST_INDEX(k, listing->inodes.count, listing->inodes.items[k].number >= place->inode);
    if (i == listing->inodes.count || listing->inodes.items[i].number != place->inode ||
        !listing->inodes.items[i].found)
        return false;
    *inode = listing->inodes.items[i].inode;
    return true;
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

/* Parents are remembered, because a directory is often listed soon after its parent. */
static struct parent *slot_of_parent(struct bw_listings *listings, fuse_ino_t node)
{
    return &listings->parents[node * UINT64_C(0x9E3779B97F4A7C15) >> 52];
}

static bool add_dots(struct listing *listing, struct bw_mount_answer *answer, uint64_t offset)
{
    struct bw_listings *listings = listing->mount->listings;
    struct fuse_entry_out entry = {.attr.mode = S_IFDIR};
    entry.attr.ino = bw_mount_number(listing->mount, &listing->place);
    if (offset < 1 && !bw_mount_answer_add(answer, ".", &entry, 1))
        return false;
    pthread_mutex_lock(&listings->lock);
    const struct parent parent = *slot_of_parent(listings, listing->node);
    pthread_mutex_unlock(&listings->lock);
    if (parent.node == listing->node) {
        entry.attr.ino = parent.number;
    } else {
        const struct bw_place place = bw_mount_parent(listing->mount, &listing->place);
        entry.attr.ino = bw_mount_number(listing->mount, &place);
    }
    return bw_mount_answer_add(answer, "..", &entry, DOTS);
}

static bool add_entry(struct listing *listing, struct bw_mount_answer *answer, uint64_t offset)
{
    const struct entry *entry = &listing->entries.items[offset - listing->first];
    struct fuse_entry_out shown = {0};
    struct bw_inode inode;
    if (!answer->plus || !is_wanted(listing, &entry->place) ||
        !inode_of(listing, &entry->place, &inode) ||
        !bw_mount_entry(listing->mount, &entry->place, &inode, &shown)) {
        shown.nodeid = 0; /* means that there are no attributes */
        shown.attr.ino = bw_mount_number(listing->mount, &entry->place);
        shown.attr.mode = bw_mode_of_file_type(entry->place.type);
    } else if (entry->place.type == BW_FILE_DIRECTORY) {
        struct bw_listings *listings = listing->mount->listings;
        const uint64_t number = bw_mount_number(listing->mount, &listing->place);
        pthread_mutex_lock(&listings->lock);
        *slot_of_parent(listings, shown.nodeid) = (struct parent){shown.nodeid, number};
        pthread_mutex_unlock(&listings->lock);
    }
    return bw_mount_answer_add(answer, listing->names.data + entry->name, &shown, offset + 1);
}

/* Adds entries from an offset on, until the answer is full or the directory ends. */
static struct bw_error *fill_answer(struct listing *listing, struct bw_mount_answer *answer,
                                    uint64_t offset)
{
    if (offset < DOTS) {
        if (!add_dots(listing, answer, offset))
            return NULL;
        offset = DOTS;
    }
    for (;; offset++) {
        BW_TRY(go_to(listing, offset));
        if (!listing->entries.count)
            break;
        if (answer->plus && listing->has_inodes < (listing->files ? ALL : DIRECTORIES))
            BW_TRY(read_inodes(listing));
        if (!add_entry(listing, answer, offset))
            return NULL;
    }
    /* If entries of a directory are lost, its end is an error, so that programs do not mistake the
     * listing for a complete one. */
    if (answer->used || bw_directory_is_complete(listing->directory))
        return NULL;
    return bw_error_create(BW_ERROR_CORRUPT, "inode %llu of subvolume %llu: entries are lost",
                           (unsigned long long)listing->place.inode,
                           (unsigned long long)bw_subvolume_id(listing->place.subvolume));
}

static void reply_entries(fuse_req_t request, fuse_ino_t node, size_t size, off_t from, bool plus)
{
    struct bw_mount *mount = bw_mount_of(request);
    const uint64_t offset = (uint64_t)from;
    BW_AUTO_FREE char *bytes = malloc(size);
    struct bw_mount_answer answer = {.bytes = bytes, .size = size, .plus = plus};
    struct listing *listing;
    struct bw_error *error = NULL;
    if (bytes)
        error = find_listing(mount, node, offset, &listing);
    else
        error = bw_error_no_memory();
    if (error) {
        bw_mount_reply(request, error);
        return;
    }

    /* The kernel requests attributes at a later offset only if it had to look up a name. At the
     * first one, attributes of files are included in a limited number of listings. */
    if (plus && offset) {
        listing->files = true;
    } else if (plus && !listing->files) {
        unsigned left = atomic_load_explicit(&mount->wanted, memory_order_relaxed);
        if (left)
            atomic_compare_exchange_strong(&mount->wanted, &left, left - 1);
        listing->files = left;
    }
    error = fill_answer(listing, &answer, offset);
    if (error || !answer.used)
        listing->node = 0;
    keep_listing(mount->listings, listing);
    if (error)
        bw_mount_reply(request, error);
    else
        fuse_reply_buf(request, bytes, answer.used);
}

static void readdir(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset,
                    struct fuse_file_info *file)
{
    (void)file;
    reply_entries(request, node, size, offset, false);
}

static void readdirplus(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset,
                        struct fuse_file_info *file)
{
    (void)file;
    reply_entries(request, node, size, offset, true);
}

/* After this error, the kernel opens all directories itself, with the same flags. */
static void opendir(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *file)
{
    (void)node;
    file->keep_cache = file->cache_readdir = 1;
    if (bw_mount_of(request)->kernel_opens)
        fuse_reply_err(request, ENOSYS);
    else
        fuse_reply_open(request, file);
}

void bw_mount_add_directories(struct fuse_lowlevel_ops *operations)
{
    operations->opendir = opendir;
    operations->readdir = readdir;
    operations->readdirplus = readdirplus;
}
