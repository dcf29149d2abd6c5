/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The graph of layers that a file system is read through, from outside: giving another one,
 * changing it, printing it, and looking into it while it works. What a layer is says
 * btrfs-walk/xlator.h.
 */
#ifndef BTRFS_WALK_GRAPH_H
#define BTRFS_WALK_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "btrfs-walk/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bw_fs;
struct bw_fs_options;

/** How a graph is changed. */
enum bw_graph_edit_kind {
    BW_EDIT_OPTION, /**< "NAME.KEY=VALUE": NAME is a volume, a type, or a pattern for names of
                       volumes */
    BW_EDIT_INSERT, /**< "TYPE@VOLUME[,KEY=VALUE...]": a new layer above a volume, or above each
                       that the type or pattern VOLUME fits; it is called after both: "trace@verify"
                     */
};

/** One change, as text. */
struct bw_graph_edit {
    enum bw_graph_edit_kind kind;
    const char *text;
};

/** What graph to use. All zeros: the default one. */
struct bw_graph_options {
    /**
     * A volfile (the grammar of GlusterFS); NULL: the default graph. The paths of the images come
     * from the volfile, or, if any are given besides, take the place of those in its storage
     * volumes, in order.
     */
    const char *file;
    const struct bw_graph_edit *edits; /**< made in order */
    size_t edit_count;
    /** Directories with layers in shared objects, separated by colons; NULL: those of the
     * environment's BTRFS_WALK_XLATOR_PATH, then the library's own. */
    const char *xlator_path;
};

/** How to print a graph. */
enum bw_graph_format {
    BW_GRAPH_VOLFILE, /**< can be given back as bw_graph_options.file */
    BW_GRAPH_DOT,     /**< for Graphviz */
};

/** Receives text in pieces; an error it returns ends the printing and is what the caller gets. */
typedef struct bw_error *bw_consumer(void *context, const char *text, size_t length);

/**
 * Opens the images and makes the graph, but reads no tree: enough to print it. Close the result
 * with bw_fs_close(); all else that takes a file system needs one from bw_fs_open(). Errors as
 * there.
 */
struct bw_error *bw_fs_wire(const struct bw_fs_options *options, struct bw_fs **fs);

/** Prints the graph. */
struct bw_error *bw_fs_print_graph(const struct bw_fs *fs, enum bw_graph_format format,
                                   bw_consumer *consume, void *context);

/** Writes the state of the file system and of each layer (options in force, what it holds,
 * counters) as one JSON object. May be called from any thread, also while others read. */
struct bw_error *bw_fs_statedump(const struct bw_fs *fs, bw_consumer *consume, void *context);

/** Whether a file, as stat() tells of it, is one of those that were given to be read: images,
 * whether they turned out to be of use or not, and the volfile. Such a file must not be written to.
 */
bool bw_fs_is_input(const struct bw_fs *fs, const struct stat *status);

#ifdef __cplusplus
}
#endif
#endif
