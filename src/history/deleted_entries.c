/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From deleted inodes to entries: what each held and was called in the state that had it last. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "fs/inode.h"
#include "fs/inode_paths.h"
#include "history/deleted.h"

/* The inode at hand, and who receives its entries. */
struct visiting {
    const struct bw_deleted *deleted;
    bw_entry_visitor *visit;
    void *context;
    const struct bw_deleted_inode *inode;
    struct bw_inode attributes;
    bool named;
    struct bw_buffer path; /* with a NUL */
};

static bool is_below(const struct bw_buffer *top, const char *path, size_t length)
{
    return length >= top->length && memcmp(path, top->data, top->length) == 0 &&
           (length == top->length || path[top->length] == '/');
}

static bool has_depth(const struct bw_deleted_options *options, unsigned depth)
{
    return depth >= options->mindepth && (!options->has_maxdepth || depth <= options->maxdepth);
}

static bool is_wanted(const struct visiting *visiting, const struct bw_entry *entry)
{
    const struct bw_selection *selection = visiting->deleted->options.selection;
    const struct bw_buffer *top = &visiting->deleted->path;
    if (top->length && !is_below(top, entry->path, entry->path_length))
        return false;
    if (!has_depth(&visiting->deleted->options, bw_path_names(entry->path, entry->path_length) -
                                                    bw_path_names(top->data, top->length)))
        return false;
    return !selection || (!bw_selection_excludes_entry(selection, entry) &&
                          bw_selection_accepts_name(selection, entry) &&
                          bw_selection_accepts_inode(selection, entry));
}

static struct bw_error *take_path(void *context, const char *path, size_t length)
{
    struct visiting *visiting = context;
    visiting->named = true;
    visiting->path.length = 0;
    bw_buffer_append(&visiting->path, path, length);
    bw_buffer_append_byte(&visiting->path, '\0');
    if (visiting->path.failed)
        return bw_error_no_memory();
    const struct bw_entry entry = {
        .path = visiting->path.data,
        .path_length = length,
        .place = {.subvolume = visiting->inode->subvolume,
                  .inode = visiting->inode->number,
                  .type = bw_file_type_of_mode(visiting->attributes.mode)},
        .inode = &visiting->attributes,
    };
    return is_wanted(visiting, &entry) ? visiting->visit(visiting->context, &entry) : NULL;
}

static struct bw_error *visit_inode(struct visiting *visiting, struct bw_inode_paths *paths)
{
    const struct bw_deleted_inode *inode = visiting->inode;
    char name[24];
    visiting->named = false;
    if (visiting->attributes.link_count || inode->number == BW_SUBVOLUME_ROOT_INODE)
        BW_TRY(bw_inode_paths_list(paths, inode->subvolume, inode->number, take_path, visiting));
    if (visiting->named)
        return NULL;
    int length = snprintf(name, sizeof name, "#%" PRIu64, inode->number);
    return bw_inode_paths_join(paths, inode->subvolume, BW_SUBVOLUME_ROOT_INODE, name,
                               (size_t)length, take_path, visiting);
}

/* Of all inodes, in the order of which the tree of each is read. */
static struct bw_error *visit_all(struct visiting *visiting, struct bw_inode_paths *paths,
                                  unsigned types)
{
    const struct bw_deleted *deleted = visiting->deleted;
    for (size_t i = 0; i < deleted->count; i++) {
        const struct bw_deleted_inode *inode = visiting->inode = &deleted->inodes[i];
        struct bw_error *error = bw_inode_read(deleted->state, &inode->subvolume->tree,
                                               inode->number, &visiting->attributes);
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return error;
        const bool lost = error;
        bw_error_free(error);
        if (!lost && types >> bw_file_type_of_mode(visiting->attributes.mode) & 1)
            BW_TRY(visit_inode(visiting, paths));
    }
    return NULL;
}

struct bw_error *bw_deleted_visit(struct bw_deleted *deleted, unsigned types,
                                  bw_entry_visitor *visit, void *context)
{
    struct visiting visiting = {.deleted = deleted, .visit = visit, .context = context};
    struct bw_inode_paths paths = {.fs = deleted->state, .with_deleted = true};
    struct bw_error *error = visit_all(&visiting, &paths, types ? types : BW_WALK_ALL);
    bw_inode_paths_free(&paths);
    bw_buffer_free(&visiting.path);
    return error;
}
