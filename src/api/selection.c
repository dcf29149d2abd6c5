/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Selections for programs that list directories by themselves: entries of the public headers are
 * what select/ calls names and files. */
#include "btrfs-walk/selection.h"

#include <string.h>

#include "select/choice.h"

static struct bw_named name_of(const struct bw_entry *entry)
{
    const char *slash = memrchr(entry->path, '/', entry->path_length);
    bool is_top = entry->path_length == 1;
    size_t before = slash && !is_top ? (size_t)(slash + 1 - entry->path) : 0;
    return (struct bw_named){.path = entry->path,
                             .path_length = entry->path_length,
                             .name_length = entry->path_length - before,
                             .number = entry->place.inode,
                             .type = bw_known_type(entry->place.type)};
}

bool bw_selection_excludes_entry(const struct bw_selection *selection, const struct bw_entry *entry)
{
    const struct bw_named named = name_of(entry);
    return bw_selection_excludes(selection, &named);
}

bool bw_selection_accepts_name(const struct bw_selection *selection, const struct bw_entry *entry)
{
    const struct bw_named named = name_of(entry);
    return bw_selection_takes_name(selection, &named);
}

bool bw_selection_needs_inode(const struct bw_selection *selection)
{
    return bw_selection_needs(selection);
}

bool bw_selection_accepts_inode(const struct bw_selection *selection, const struct bw_entry *entry)
{
    const struct bw_walked_file file = {.number = entry->place.inode,
                                        .type = bw_known_type(entry->place.type),
                                        .inode = entry->inode};
    return bw_selection_takes_inode(selection, &file);
}
