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
#include "btrfs-walk/xlator.h"

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

/** What graph to use. All zeros but the size: the default one. */
struct bw_graph_options {
    size_t struct_size; /**< sizeof(struct bw_graph_options) */
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

/**
 * Calls for each file that is opened by name after bw_fs_options.planned was called: those that
 * are read, as far as they exist, and those that layers write to (`written`). So a program can
 * confine itself to these. An error of `take` ends it and is the result.
 */
struct bw_error *
bw_fs_files(const struct bw_fs *fs,
            struct bw_error *(*take)(void *context, const char *path, bool written), void *context);

/**
 * Opens a file to write to that is no image: a report, a trace, a statedump. It is created if it
 * does not exist; `append`: writing begins at its end, otherwise at its beginning. BW_ERROR_USAGE
 * if it is a block device or holds a btrfs superblock. Ask bw_fs_is_input() as well if a file
 * system is open. The caller closes `*descriptor`.
 */
struct bw_error *bw_output_file_open(const char *path, bool append, int *descriptor);

/** The types of layers that exist: those built in, and those in shared objects, which are loaded
 * when they are first asked for. Not for use by several threads at once. */
struct bw_registry;

/** Opens the types of layers. `path` lists directories with shared objects, separated by colons;
 * NULL: those of the environment's BTRFS_WALK_XLATOR_PATH, then the library's own; "": none.
 * BW_ERROR_NO_MEMORY. */
struct bw_error *bw_registry_open(const char *path, struct bw_registry **registry);

/** Unloads the shared objects, and with them all classes found in them. NULL is allowed. */
void bw_registry_close(struct bw_registry *registry);

/** Finds a type ("features/verify"); `*found` is valid until the registry is closed.
 * BW_ERROR_USAGE if it does not exist, or its shared object cannot be used: it has another ABI, or
 * its class breaks the rules of xlator.h. */
struct bw_error *bw_registry_find(struct bw_registry *registry, const char *type,
                                  const struct bw_xlator_class **found);

/** Receives the name of a type. */
typedef struct bw_error *bw_type_visitor(void *context, const char *type);

/** Calls `visit` for every type, sorted by name, until it returns an error, which is returned.
 * Shared objects are not loaded, so bw_registry_find() may still refuse some. The names are valid
 * until the registry is closed. */
struct bw_error *bw_registry_each(struct bw_registry *registry, bw_type_visitor *visit,
                                  void *context);

/** The name of an option type: "size". */
const char *bw_option_type_name(enum bw_option_type type);

/** Which values an option allows, as text: "0 to 1T", "on, off", "any, data"; "" if any text is.
 * Freed by the caller with free(); NULL if memory ran out. */
char *bw_option_range(const struct bw_option *option);

#ifdef __cplusplus
}
#endif
#endif
