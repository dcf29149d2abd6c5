/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A directory of this machine as one side of a comparison. It does not know which subvolumes are
 * nested in it, and numbers of hard links depend on what was copied, so they do not count.
 */
#include <stdlib.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/folder.h"
#include "diff/entries.h"
#include "fs/fs.h"

struct folder_side {
    struct bw_entries entries; /* the first member */
    struct bw_fs *reporter;
    struct bw_folder folder;
    struct bw_descent descent;
    struct bw_folder_names names;
    struct bw_folder_xattrs attributes;
    bool has_begun;
};

/* The path of an entry below the folder. */
static const char *path_below(const struct bw_side_entry *entry)
{
    return entry->path + (*entry->path == '/');
}

static struct bw_error *next_entry(struct bw_entries *entries)
{
    struct folder_side *side = (struct folder_side *)entries;
    struct bw_side_entry *entry = &entries->entry;
    struct bw_buffer *path = &side->descent.path;
    struct stat status;
    entries->ended = side->has_begun && !bw_descent_next(&side->descent);
    side->has_begun = true;
    if (path->failed || !bw_buffer_reserve(path, 1))
        return bw_error_no_memory();
    if (entries->ended)
        return NULL;
    path->data[path->length] = '\0';
    *entry = (struct bw_side_entry){.path = path->data, .path_length = path->length};
    struct bw_error *error = bw_folder_stat(&side->folder, path_below(entry), &status);
    entry->is_lost = entry->may_have_more = error;
    if (error)
        return bw_fs_report_damage(side->reporter, error);
    entry->is_empty = bw_folder_is_empty_subvolume(&side->folder, path_below(entry), &status);
    const struct bw_inode inode = {.mode = status.st_mode,
                                   .uid = status.st_uid,
                                   .gid = status.st_gid,
                                   .size = (uint64_t)status.st_size,
                                   .device = (uint64_t)major(status.st_rdev) << 20 |
                                             minor(status.st_rdev),
                                   .mtime = status.st_mtim};
    bw_entry_set_facts(&entry->facts, &inode);
    entry->facts.inode = status.st_ino;
    if (!S_ISDIR(status.st_mode))
        return NULL;
    error = bw_folder_list(&side->folder, path_below(entry), &side->names);
    entry->may_have_more = error;
    if (error)
        return bw_fs_report_damage(side->reporter, error);
    const struct bw_place none = {0};
    struct bw_level *level;
    BW_TRY(bw_descent_enter(&side->descent, &level));
    for (size_t i = 0; i < side->names.offsets.count; i++) { /* they are sorted */
        const char *name = side->names.text.data + side->names.offsets.items[i];
        BW_TRY(bw_level_add(level, name, strlen(name), &none));
    }
    return NULL;
}

static void skip_directory(struct bw_entries *entries)
{
    bw_descent_skip(&((struct folder_side *)entries)->descent);
}

static struct bw_error *read_target(struct bw_entries *entries, const struct bw_side_entry *entry,
                                    struct bw_buffer *target, bool *lost)
{
    struct folder_side *side = (struct folder_side *)entries;
    struct bw_error *error = bw_folder_readlink(&side->folder, path_below(entry), target);
    *lost = error;
    return bw_fs_report_damage(side->reporter, error);
}

static struct bw_error *read_xattrs(struct bw_entries *entries, const struct bw_side_entry *entry,
                                    struct bw_xattr_list *list, bool *lost)
{
    struct folder_side *side = (struct folder_side *)entries;
    struct bw_folder_xattrs *found = &side->attributes;
    struct bw_error *error = bw_folder_xattrs_read(&side->folder, path_below(entry), found);
    *lost |= error != NULL;
    if (error)
        return bw_fs_report_damage(side->reporter, error);
    for (size_t i = 0; i < found->list.count; i++) {
        const struct bw_folder_xattr *xattr = &found->list.items[i];
        const char *name = found->text.data + xattr->name;
        BW_TRY(bw_xattr_list_add(list, name, strlen(name), found->text.data + xattr->value,
                                 xattr->length));
    }
    return NULL;
}

static struct bw_error *open_file(struct bw_entries *entries, const struct bw_side_entry *entry,
                                  int *descriptor)
{
    struct folder_side *side = (struct folder_side *)entries;
    return bw_folder_open_file(&side->folder, path_below(entry), descriptor);
}

static void close_folder(struct bw_entries *entries)
{
    struct folder_side *side = (struct folder_side *)entries;
    bw_folder_close(&side->folder);
    bw_descent_free(&side->descent);
    bw_folder_names_free(&side->names);
    bw_folder_xattrs_free(&side->attributes);
    free(side);
}

static const struct bw_entries_class folder_class = {
    .next = next_entry,
    .skip = skip_directory,
    .target = read_target,
    .xattrs = read_xattrs,
    .open_file = open_file,
    .close = close_folder,
};

struct bw_error *bw_entries_open_folder(const char *path, struct bw_fs *reporter,
                                        struct bw_entries **result)
{
    struct folder_side *side = calloc(1, sizeof *side);
    if (!side)
        return bw_error_no_memory();
    struct bw_error *error = bw_folder_open(path, &side->folder);
    if (error) {
        free(side);
        return error;
    }
    side->reporter = reporter;
    side->entries = (struct bw_entries){
        .class = &folder_class,
        .knows = ((BW_KNOWS_BYTES << 1) - 1) & ~(unsigned)BW_KNOWS_LINKS,
        .types = BW_ENTRIES_ALL_TYPES,
        .ordinary = true,
    };
    *result = &side->entries;
    return NULL;
}
