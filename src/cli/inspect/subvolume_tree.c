/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tree of `subvolumes --tree`. In the order of paths, each subvolume follows the one it is
 * nested in, so only the chain around the current subvolume has to be searched. */
#include "cli/inspect/subvolume_tree.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/vector.h"

void subvolume_tree_free(struct subvolume_tree *tree)
{
    subvolume_branches_free(&tree->branches);
    bw_buffer_free(&tree->texts);
}

struct bw_error *subvolume_tree_add(struct subvolume_tree *tree,
                                    const struct bw_subvolume_info *info, const char *attributes)
{
    const struct subvolume_branch branch = {
        .id = info->id, .path = tree->texts.length, .path_length = info->path_length};
    bw_buffer_append(&tree->texts, info->path, info->path_length);
    bw_buffer_append(&tree->texts, attributes ? attributes : "",
                     attributes ? strlen(attributes) + 1 : 1);
    if (tree->texts.failed)
        return bw_error_no_memory();
    return subvolume_branches_push(&tree->branches, branch);
}

/* Sorts by path, with '/' before all other bytes. Subvolumes without a path come last, by id. */
static int compare_paths(const void *left, const void *right, void *texts)
{
    const struct subvolume_branch *a = left, *b = right;
    const uint8_t *p = (const uint8_t *)texts + a->path, *q = (const uint8_t *)texts + b->path;
    size_t length = a->path_length < b->path_length ? a->path_length : b->path_length, i = 0;
    while (i < length && p[i] == q[i])
        i++;
    if (!a->path_length != !b->path_length)
        return a->path_length ? -1 : 1;
    if (i < length)
        return (p[i] == '/' ? 0 : p[i]) - (q[i] == '/' ? 0 : q[i]);
    if (a->path_length != b->path_length)
        return a->path_length < b->path_length ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static bool is_inside(const char *texts, const struct subvolume_branch *inner,
                      const struct subvolume_branch *outer)
{
    size_t length = outer->path_length == 1 ? 0 : outer->path_length;
    return outer->path_length && inner->path_length > outer->path_length &&
           texts[inner->path + length] == '/' &&
           memcmp(texts + inner->path, texts + outer->path, length) == 0;
}

/* Finds the innermost branch around this one: the previous branch, or one of those around it. */
static void find_branch_around(struct subvolume_tree *tree, size_t number)
{
    struct subvolume_branch *branch = &tree->branches.items[number];
    uint32_t around = (uint32_t)number;
    while (around && !is_inside(tree->texts.data, branch, &tree->branches.items[around - 1]))
        around = tree->branches.items[around - 1].around;
    branch->around = around;
    branch->depth = around ? tree->branches.items[around - 1].depth + 1 : 0;
}

/* Appends the path relative to the branch around this one, the id and the attributes. */
static void append_line(const struct subvolume_tree *tree, const struct subvolume_branch *branch,
                        struct bw_buffer *line)
{
    const char *path = tree->texts.data + branch->path, *attributes = path + branch->path_length;
    size_t outer = branch->around ? tree->branches.items[branch->around - 1].path_length : 0;
    size_t skip = outer > 1 ? outer + 1 : outer;
    bw_buffer_format(line, "%*s", (int)(branch->depth < 64 ? 2 * branch->depth : 128), "");
    if (branch->path_length)
        bw_escape_append(line, path + skip, branch->path_length - skip);
    else
        bw_buffer_append_byte(line, '-');
    bw_buffer_format(line, "  (%" PRIu64 "%s%s)\n", branch->id, *attributes ? " " : "", attributes);
}

struct bw_error *subvolume_tree_write(struct subvolume_tree *tree, struct cmd_output *output)
{
    struct bw_buffer BW_AUTO_BUFFER line = {0};
    if (tree->branches.count)
        qsort_r(tree->branches.items, tree->branches.count, sizeof *tree->branches.items,
                compare_paths, tree->texts.data);
    for (size_t i = 0; i < tree->branches.count; i++) {
        find_branch_around(tree, i);
        line.length = 0;
        append_line(tree, &tree->branches.items[i], &line);
        if (line.failed)
            return bw_error_no_memory();
        BW_TRY(cmd_write(output, line.data, line.length));
    }
    return NULL;
}
