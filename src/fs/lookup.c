/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Looks up a path, name by name. A stack contains the directories of the path, so ".." needs no
 * search. The target of a symbolic link replaces the link at the beginning of the remaining path.
 *
 * A name is searched by its hash; if that item is lost, in all entries of the directory; if some of
 * those are lost, too, in the names that inodes have in the directory. Damage is an error only if
 * the name is not found.
 */
#include "fs/lookup.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/vector.h"
#include "fs/fs.h"
#include "fs/inode.h"
#include "ondisk/checksum.h"

/* The kernel's limit. */
enum { MAX_LINKS = 40 };

struct bw_place bw_place_top(const struct bw_subvolume *subvolume)
{
    return (struct bw_place){subvolume, BW_SUBVOLUME_ROOT_INODE, BW_FILE_DIRECTORY, 0};
}

struct bw_inode bw_empty_directory_inode(const struct bw_inode *around)
{
    return (struct bw_inode){.mode = 040755,
                             .link_count = 1,
                             .uid = around->uid,
                             .gid = around->gid,
                             .atime = around->atime,
                             .ctime = around->ctime,
                             .mtime = around->mtime,
                             .otime = around->otime};
}

struct bw_error *bw_inode_get(const struct bw_fs *fs, const struct bw_place *place,
                              struct bw_inode *inode)
{
    const struct bw_tree *tree = &place->subvolume->tree;
    if (!bw_place_is_empty(place))
        return bw_inode_read(fs, tree, place->inode, inode);
    struct bw_inode around;
    BW_TRY(bw_inode_read(fs, tree, place->directory, &around));
    *inode = bw_empty_directory_inode(&around);
    return NULL;
}

struct bw_error *bw_place_of_entry(const struct bw_fs *fs, const struct bw_subvolume *subvolume,
                                   uint64_t directory, const struct bw_dir_entry *entry,
                                   struct bw_place *place)
{
    const struct bw_key *to = &entry->location;
    if (to->type == BW_ROOT_ITEM) {
        const struct bw_subvolume *child =
            bw_subvolume_of_entry(&fs->subvolumes, subvolume->tree.id, directory, entry);
        if (child)
            *place = bw_place_top(child);
        else
            *place = (struct bw_place){subvolume, BW_EMPTY_DIRECTORY, BW_FILE_DIRECTORY, directory};
        return NULL;
    }
    if (to->type != BW_INODE_ITEM || to->objectid < BW_SUBVOLUME_ROOT_INODE)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "subvolume %" PRIu64 ": directory inode %" PRIu64
                               ": an entry points to (%" PRIu64 " %u %" PRIu64 ")",
                               subvolume->tree.id, directory, to->objectid, to->type, to->offset);
    *place = (struct bw_place){subvolume, to->objectid, entry->type, directory};
    return NULL;
}

/* A search for a name among the entries of a directory. */
struct search {
    const struct bw_fs *fs;
    const struct bw_place *directory;
    const char *name;
    size_t name_length;
    struct bw_place *place;
    struct bw_error *error; /* the first error */
    bool found;
};

static struct bw_error *compare_entry(void *context, const struct bw_dir_entry *entry)
{
    struct search *search = context;
    if (search->found || entry->name_length != search->name_length ||
        memcmp(entry->name, search->name, entry->name_length) != 0)
        return NULL;
    struct bw_error *error = bw_place_of_entry(search->fs, search->directory->subvolume,
                                               search->directory->inode, entry, search->place);
    search->found = !error;
    search->error = bw_error_first(search->error, error);
    return NULL;
}

/* Compares the entries by hash (BW_DIR_ITEM) or by index (BW_DIR_INDEX) from `first` to `last`. */
static struct bw_error *search_range(struct search *search, uint8_t type, uint64_t first,
                                     uint64_t last)
{
    const uint64_t directory = search->directory->inode;
    struct bw_item_range range;
    struct bw_error *error = NULL;
    bw_item_range_begin(&range, &search->fs->reader, &search->directory->subvolume->tree,
                        (struct bw_key){directory, type, first},
                        (struct bw_key){directory, type, last});
    while (!error && !search->found && bw_item_range_next(&range)) {
        if (range.error) {
            search->error = bw_error_first(search->error, BW_TAKE(range.error));
            continue;
        }
        struct bw_cursor cursor = bw_cursor_of(&range.item);
        struct bw_dir_entry entry;
        while (!error && bw_dir_entry_next(&cursor, &entry))
            error = compare_entry(search, &entry);
    }
    return bw_item_range_end(&range, error);
}

/* Finds a name in a directory. Returns NULL with search->found false if there is no such name. */
static struct bw_error *find_name(struct search *search)
{
    const struct bw_recovery *recovery = &search->fs->recovery;
    const struct bw_place *directory = search->directory;
    const uint64_t hash = bw_name_hash(search->name, search->name_length);
    if (search->name_length > BW_NAME_MAX || bw_place_is_empty(directory))
        return NULL;
    struct bw_error *error = search_range(search, BW_DIR_ITEM, hash, hash);
    if (!error && !search->found)
        error = search_range(search, BW_DIR_INDEX, 0, UINT64_MAX);
    if (!error && !search->found && search->error && recovery->names)
        error = recovery->names(recovery->context, directory->subvolume, directory->inode,
                                compare_entry, search);
    error = bw_error_first(search->error, error);
    if (!search->found)
        return error;
    bw_error_free(error);
    return NULL;
}

struct bw_error *bw_lookup_name(const struct bw_fs *fs, const struct bw_place *directory,
                                const char *name, size_t length, struct bw_place *place)
{
    struct search search = {
        .fs = fs, .directory = directory, .name = name, .name_length = length, .place = place};
    BW_TRY(find_name(&search));
    if (search.found)
        return NULL;
    return bw_error_create(BW_ERROR_NOT_FOUND,
                           "subvolume %" PRIu64 ": directory inode %" PRIu64
                           " has no entry of this name",
                           directory->subvolume->tree.id, directory->inode);
}

struct bw_error *bw_lookup_hashed(const struct bw_fs *fs, const struct bw_place *directory,
                                  const char *name, struct bw_place *place)
{
    struct search search = {.fs = fs,
                            .directory = directory,
                            .name = name,
                            .name_length = strlen(name),
                            .place = place};
    const uint64_t hash = bw_name_hash(search.name, search.name_length);
    struct bw_error *error = search_range(&search, BW_DIR_ITEM, hash, hash);
    error = bw_error_first(search.error, error);
    if (!error && !search.found)
        error = bw_error_create(BW_ERROR_NOT_FOUND, "no entry of the name %s", name);
    return error;
}

BW_VECTOR(bw_places, struct bw_place);

/* The error contains the path as on the command line, and the missing name if it is from a link. */
static struct bw_error *no_such_name(const char *path, bool from_link, const char *name,
                                     size_t length)
{
    if (from_link)
        return bw_error_in(bw_error_create(BW_ERROR_NOT_FOUND, "no such file or directory: %.*s",
                                           (int)length, name),
                           path);
    return bw_error_in(bw_error_create(BW_ERROR_NOT_FOUND, "no such file or directory"), path);
}

struct bw_error *bw_lookup(const struct bw_fs *fs, const struct bw_subvolume *from,
                           const char *path, bool follow, struct bw_place *place)
{
    if (!from)
        from = bw_subvolume_by_id(fs, BW_TOP_SUBVOLUME);
    if (!from)
        return bw_error_create(BW_ERROR_NOT_FOUND, "there is no top-level subvolume");
    if (!*path)
        return bw_error_create(BW_ERROR_NOT_FOUND, "'': no such file or directory");

    BW_SCOPED(bw_places) struct bw_places passed = {0}; /* from the top to the current directory */
    BW_AUTO_BUFFER struct bw_buffer rest = {0};         /* the path, links replaced by targets */
    size_t next = 0;                                    /* position in it */
    unsigned links = 0;
    BW_TRY(bw_places_push(&passed, bw_place_top(from)));
    bw_buffer_append(&rest, path, strlen(path));
    BW_TRY(bw_buffer_error(&rest));
    for (;;) {
        const struct bw_place *directory = &passed.items[passed.count - 1];
        const size_t slash = next;
        while (next < rest.length && rest.data[next] == '/')
            next++;
        /* A name before a slash is that of a directory, even at the end of the path. */
        if ((next < rest.length || next > slash) && directory->type != BW_FILE_DIRECTORY)
            return bw_error_in(bw_error_create(BW_ERROR_NOT_FOUND, "not a directory"), path);
        if (next == rest.length)
            break;

        const char *name = rest.data + next;
        const char *end = memchr(name, '/', rest.length - next);
        const size_t length = end ? (size_t)(end - name) : rest.length - next;
        next += length;
        if (length == 1 && name[0] == '.')
            continue;
        if (length == 2 && name[0] == '.' && name[1] == '.') {
            passed.count -= passed.count > 1;
            continue;
        }
        struct bw_place found;
        struct search search = {
            .fs = fs, .directory = directory, .name = name, .name_length = length, .place = &found};
        struct bw_error *error = find_name(&search);
        if (error)
            return bw_error_in(error, path);
        if (!search.found)
            return no_such_name(path, links, name, length);
        if (found.type != BW_FILE_SYMLINK || (!follow && next == rest.length)) {
            BW_TRY(bw_places_push(&passed, found));
            continue;
        }

        /* A symbolic link in the current directory: continue with its target. */
        if (links++ == MAX_LINKS)
            return bw_error_in(
                bw_error_create(BW_ERROR_NOT_FOUND,
                                "too many symbolic links, the last is %.*s (inode %" PRIu64
                                " of subvolume %" PRIu64 ")",
                                (int)length, name, found.inode, found.subvolume->tree.id),
                path);
        BW_AUTO_BUFFER struct bw_buffer target = {0};
        error = bw_symlink_read(fs, &found.subvolume->tree, found.inode, &target);
        if (error)
            return bw_error_in(error, path);
        if (!target.length)
            return no_such_name(path, true, "", 0);
        if (target.data[0] == '/')
            passed.count = 1;
        bw_buffer_append(&target, rest.data + next, rest.length - next);
        BW_TRY(bw_buffer_error(&target));
        bw_buffer_free(&rest);
        rest = target;
        target = (struct bw_buffer){0};
        next = 0;
    }
    *place = passed.items[passed.count - 1];
    return NULL;
}
