/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A walk, as its parts share it:
 *
 *     walk.c: which subvolumes
 *       |-> small_subvolumes.c: many small ones at once
 *       '-> waves.c: one subvolume, its directories (directory_table.c) in waves of tasks
 *             |-> lost_entries.c: what lost blocks held, or entries of a wrong type
 *             '-> task.c: the directories below a node, whose leaves.c are read in batches
 *                   |   selection.c: which of their entries are listed
 *                   '-> collect.c: the inodes of files --> output.c: in order, as text or records
 *
 * A subvolume is walked in waves. The directories known so far make the tasks of a wave, in key
 * order, which worker threads run; the directories that these find make the next wave. Top
 * directories, a start that is no directory, and recovered entries are listed outside of tasks.
 */
#ifndef BW_WALK_WALK_H
#define BW_WALK_WALK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/glob.h"
#include "base/number_set.h"
#include "base/packed.h"
#include "base/pool.h"
#include "base/vector.h"
#include "btree/block.h"
#include "btrfs-walk/subvolume.h"
#include "btrfs-walk/walk.h"
#include "data/sharing.h"
#include "fs/inode.h"
#include "fs/subvolume.h"
#include "record/file.h"
#include "record/rows.h"
#include "recovery/recovery.h"

struct bw_entry_cache;
struct bw_leaves;

/*
 * Directories (directory_table.c).
 *
 * The directories of a subvolume that the walk has found: the only thing that it must remember. A
 * path is built by following parents. A parent is always added before its children, so there are no
 * cycles.
 *
 * There may be millions of directories. A directory is closed when its entries, and the entries of
 * all directories below it, have been listed: the walk no longer needs its path, and keeps one bit
 * to detect a second entry. Every other directory is a packed record of some twenty bytes.
 */

enum { BW_NO_DIRECTORY = BW_NO_RECORD };
enum { BW_LAST_WAVE = UINT16_MAX };

/** Directories with longer paths are not entered: sixteen times what a system call takes. */
enum { BW_LONGEST_PATH = 64 << 10 };

/** The facts about a directory. */
struct bw_walked_directory {
    uint64_t inode;
    uint32_t parent;  /**< its number; the top directory is its own parent */
    uint32_t wave;    /**< in the table: in which it was walked, or is to be; that and all later
                           ones: BW_LAST_WAVE */
    const char *name; /**< in the table */
    size_t size;      /**< of the record */
    uint8_t name_length;
    bool walked; /**< found by a task: its entries were in reach of the task and have been walked */
};

/** The top directory, without a name, has the number 0; later ones have greater numbers. */
struct bw_directory_table {
    struct bw_packed records;
    struct bw_number_set closed; /**< inodes */
    size_t count;                /**< closed directories included */
};

/** Empties the table (keeping its memory) but for a top directory of inode `top`. */
struct bw_error *bw_directories_reset(struct bw_directory_table *table, uint64_t top);

/** Frees the memory. */
void bw_directories_free(struct bw_directory_table *table);

/** Adds a directory that is not in the table yet; `*number` is its number. `wave` is cut to
 * BW_LAST_WAVE. */
struct bw_error *bw_directories_add(struct bw_directory_table *table, uint64_t inode,
                                    uint32_t parent, const void *name, size_t name_length,
                                    uint32_t wave, uint32_t *number);

/** Closes a directory that is not in the table; `*is_new` is false if it was closed before. */
struct bw_error *bw_directories_close(struct bw_directory_table *table, uint64_t inode,
                                      bool *is_new);

/** Puts a closed directory into the table, with wave 0; it remains closed. */
struct bw_error *bw_directories_reopen(struct bw_directory_table *table, uint64_t inode,
                                       uint32_t parent, const void *name, size_t name_length,
                                       uint32_t *number);

/** Whether a directory is closed. */
bool bw_directories_is_closed(const struct bw_directory_table *table, uint64_t inode);

/** Whether an inode is in the table, or closed. */
bool bw_directories_knows(const struct bw_directory_table *table, uint64_t inode);

/** Number of an inode's directory, or BW_NO_DIRECTORY. */
uint32_t bw_directories_find(const struct bw_directory_table *table, uint64_t inode);

/** A directory. */
struct bw_walked_directory bw_directories_get(const struct bw_directory_table *table,
                                              uint32_t number);

/** The number after that of `directory`, or BW_NO_DIRECTORY after the last. */
uint32_t bw_directories_next(const struct bw_directory_table *table, uint32_t number,
                             const struct bw_walked_directory *directory);

/** Whether a directory is in `parent` under this name. */
bool bw_directories_matches(const struct bw_directory_table *table, uint32_t number,
                            uint32_t parent, const void *name, size_t name_length);

/* Directories that a task has found, which are not in the table yet. */

/** Set in the number of a directory that is the task's own. */
#define BW_FOUND_LOCAL (UINT32_C(1) << 31)

/** Adds a directory. Returns its number, with BW_FOUND_LOCAL; BW_NO_DIRECTORY if memory runs out.
 */
uint32_t bw_found_directory_add(struct bw_packed *found,
                                const struct bw_walked_directory *directory);

/** A directory that was found. */
struct bw_walked_directory bw_found_directory_get(const struct bw_packed *found, uint32_t number);

/** Stores the number in the table of a directory that was found. */
void bw_found_directory_set_place(const struct bw_packed *found, uint32_t number, uint32_t place);

/* Directories in either place. `found` may be NULL if the directory is in the table. */

/** A directory. */
static inline struct bw_walked_directory
bw_any_directory_get(const struct bw_directory_table *table, const struct bw_packed *found,
                     uint32_t number)
{
    if (number & BW_FOUND_LOCAL)
        return bw_found_directory_get(found, number);
    return bw_directories_get(table, number);
}

/** The number in the table of a directory, which was stored if it was found. */
uint32_t bw_any_directory_place(const struct bw_packed *found, uint32_t number);

/** Appends the path of a directory from the top one, a '/' after each name: "" for the top, "a/b/"
 * below it.
 */
void bw_any_directory_path(const struct bw_directory_table *table, const struct bw_packed *found,
                           uint32_t number, struct bw_buffer *path);

/*
 * Selections (selection.c): names are tested when the entries of a directory are read, inodes when
 * they have been looked up.
 */

/** An entry, with the facts from its directory. */
struct bw_named {
    const char *path; /**< absolute, with a NUL after it */
    size_t path_length;
    size_t name_length; /**< of the last name, with which the path ends; the top one is "/" */
    uint64_t number;    /**< of its inode */
    uint8_t type;       /**< BW_FILE_*, less than 8 */
};

BW_VECTOR_TYPE(bw_file_tests, struct bw_file_test);

struct bw_selection {
    struct bw_file_tests tests;
    bool has_exclude, has_inodes, has_xattrs;
    int64_t now; /**< nanoseconds since 1970 */
    struct bw_glob glob;
};

/** Whether an "exclude" matches; false if `selection` is NULL. */
bool bw_selection_excludes(const struct bw_selection *selection, const struct bw_named *named);

/** Whether all other conditions are met that need no inode. Safe from any thread, as are the
 * others. */
bool bw_selection_takes_name(const struct bw_selection *selection, const struct bw_named *named);

/** Whether the conditions are met that need one. False if there are any and the inode is not known.
 */
bool bw_selection_takes_inode(const struct bw_selection *selection,
                              const struct bw_walked_file *file);

/** Whether the conditions on extended attributes are met by a file with these; only call it if
 * has_xattrs. */
bool bw_selection_takes_xattrs(const struct bw_selection *selection, const struct bw_xattr *xattrs,
                               size_t count);

/*
 * The choice of a walk: types, depth, a selection. Tasks and recovery use it for each entry that
 * they find: whether the entry is listed, and a directory entered.
 */

/** The choice of a whole walk. It does not change while tasks run. */
struct bw_choice {
    bool is_plain;                        /**< all regular files, and nothing else */
    unsigned types;                       /**< a bit for each BW_FILE_* */
    const struct bw_selection *selection; /**< NULL: none */
    bool has_maxdepth;
    unsigned maxdepth, mindepth;
    unsigned start_depth; /**< how many names the path of the start has */
    unsigned part, parts; /**< only entries in this part of so many; 0: all */
};

/** The type in an entry, or BW_FILE_UNKNOWN if it is invalid. */
static inline uint8_t bw_known_type(uint8_t type)
{
    return type <= BW_FILE_SYMLINK ? type : BW_FILE_UNKNOWN;
}

/** The choice that the options make. */
struct bw_choice bw_choice_of(const struct bw_walk_options *options);

/** Sets the path of the directory that depth is counted from, '/' at both ends; with `single`, from
 * an entry of it. */
void bw_choice_start(struct bw_choice *choice, const char *path, size_t length, bool single);

/** How deep below the start something lies; 0 if depth does not matter. */
unsigned bw_choice_depth(const struct bw_choice *choice, const char *path, size_t length);

/** Whether the entries of a directory at this depth are wanted. */
static inline bool bw_choice_enters(const struct bw_choice *choice, unsigned depth)
{
    return !choice->has_maxdepth || depth < choice->maxdepth;
}

/** Whether an entry at this depth that is not excluded is listed, unless its inode is rejected
 * later.
 */
bool bw_choice_lists(const struct bw_choice *choice, uint64_t subvolume,
                     const struct bw_named *named, unsigned depth);

/*
 * Output (output.c).
 *
 * The output of a walk, and its order. Tasks run in parallel and each writes its own text; the
 * texts are passed on in the order of the tasks. The writer decides the format: rows, lines as of
 * `ls -l`, paths, or records in memory for visitors. A sorted walk collects everything first.
 */

/* Ordered output: the output of task n is written when all tasks before it have finished. Finished
 * output waits in a window of limited size, which also limits the memory. */

enum {
    BW_OUTPUT_WINDOW = 64,       /**< the most that `window` may be */
    BW_OUTPUT_CHUNK = 128 << 10, /**< output worth writing if it is the task's turn */
    BW_OUTPUT_LIMIT = 2 << 20,   /**< output at which a task waits for its turn */
    BW_RECORDS_LIMIT = 512 << 10 /**< the same for records: visitors are slower than the walk */
};

/** Takes text, or records. */
typedef struct bw_error *bw_bytes_visitor(void *context, const char *bytes, size_t length);

struct bw_ordered_output {
    bw_bytes_visitor *consume;
    void *context;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    size_t head;   /**< the task whose turn it is */
    size_t limit;  /**< BW_OUTPUT_LIMIT unless set before the first */
    size_t window; /**< tasks that may be under way or finished and waiting; 8 unless set before the
                      first */
    struct {
        struct bw_buffer buffer;
        bool finished;
    } held[BW_OUTPUT_WINDOW];
    struct bw_buffer spare[BW_OUTPUT_WINDOW]; /**< empty buffers with memory, to be used again */
    size_t spare_count;
    struct bw_error *error;                /**< the first error of the consumer or of a task */
    atomic_bool stopped;                   /**< set with `error`: tasks should end */
    const struct bw_walk_options *options; /**< for `proceed`; NULL: nobody decides */
    /** If set, all tasks run one after the other inside task `outer_task` of this output, and write
     * the text of that task, `text`. */
    struct bw_ordered_output *outer;
    size_t outer_task;
    struct bw_buffer text;
};

/** Starts; everything goes to `consume`. */
void bw_output_init(struct bw_ordered_output *output, bw_bytes_visitor *consume, void *context);

/** Releases the memory; returns the first error there was. The caller owns it. */
struct bw_error *bw_output_destroy(struct bw_ordered_output *output);

/** Begins task `task` of `outer`. The tasks of `output` are parts of it until it ends. */
void bw_output_enter(struct bw_ordered_output *output, struct bw_ordered_output *outer,
                     size_t task);
void bw_output_leave(struct bw_ordered_output *output);

/** Begins a new series of tasks, numbered from 0; all tasks of the previous one have ended. */
void bw_output_restart(struct bw_ordered_output *output);

/** Waits until task `number` may start, and gives it a buffer. */
void bw_output_begin(struct bw_ordered_output *output, size_t number, struct bw_buffer *buffer);

/** Writes and empties a buffer that has grown large, if it is the task's turn; waits for it only at
 * the limit. */
void bw_output_offer(struct bw_ordered_output *output, size_t number, struct bw_buffer *buffer);

/** Ends a task; takes the buffer. */
void bw_output_finish(struct bw_ordered_output *output, size_t number, struct bw_buffer *buffer);

/** Remembers an error (takes it) and asks all tasks to stop. */
void bw_output_fail(struct bw_ordered_output *output, struct bw_error *error);

/** Whether tasks should end early. */
static inline bool bw_output_stopped(struct bw_ordered_output *output)
{
    const struct bw_ordered_output *top = output->outer ? output->outer : output;
    return atomic_load_explicit(&top->stopped, memory_order_relaxed);
}

/* Writers. */

/** A method of writing files. It does not change: any number of threads may use it, each with its
 * own buffer. */
struct bw_file_writer {
    /** Appends the text of a file; `repeated` is that of bw_rows_append_file(). If memory runs out,
     * the buffer remembers it. */
    void (*append)(const struct bw_file_writer *writer, const struct bw_walked_file *file,
                   struct bw_repeated *repeated, struct bw_buffer *text);
    unsigned needs; /**< BW_FILE_NEEDS_*: what must be known of a file */
    /** It writes a path and a terminator, and nothing else: tasks may do that themselves, without
     * collecting files first. */
    bool is_path;
    bool escape;                            /**< of a path */
    char terminator;                        /**< the same */
    bool is_records;                        /**< it writes records for a visitor */
    const struct bw_rows *rows;             /**< for text that is more than a path */
    const struct bw_user_names *user_names; /**< with BW_FILE_NEEDS_USER_NAMES; set before the walk
                                             */
    struct bw_sharing *sharing;             /**< with BW_FILE_NEEDS_SHARED; set before the walk */
    enum bw_walk_order order;               /**< of a writer that sorts */
    bool reverse;                           /**< the same */
    const struct bw_file_writer *inner; /**< of a writer that sorts: the writer of the sorted text
                                         */
};

/* Receivers. */

/** Receives the entries of a walk: the writer that the tasks use, and the consumer that what they
 * have written is passed to, in order. */
struct bw_receiver {
    struct bw_file_writer writer;
    bw_bytes_visitor *consume;
    void *context;

    /* For its own functions. */
    struct bw_fs *fs;
    const struct bw_walk_options *options;
    struct bw_user_names *user_names;
    struct bw_sharing *sharing;
    const struct bw_subvolume *subvolume; /**< of the last entry: usually that of the next one */
    struct bw_file_writer inner;          /**< without sorting */
    struct bw_buffer sorted;              /**< texts with their keys */
    bw_bytes_visitor *pass;               /**< receives the sorted texts */
    void *pass_context;
};

/** Opens the receiver that the options, which must outlive it, ask for: rows, paths or a visitor.
 * It must not be moved. Nothing is to be closed after an error. */
struct bw_error *bw_receiver_open(struct bw_receiver *receiver, struct bw_fs *fs,
                                  const struct bw_walk_options *options);

/** Closes it at the end of a walk, which `error` (taken) has ended, or NULL; returns the first
 * error. Sorted entries are passed on now; also after an error, those that were found before it. */
struct bw_error *bw_receiver_close(struct bw_receiver *receiver, struct bw_error *error);

/*
 * Tasks (task.c).
 *
 * One task of a walk: the directories that are stored below one internal node of level 1 (or in a
 * root that is a leaf).
 *
 * The node names its leaves with their first keys, which shows which leaves contain entries of the
 * known directories; only those are read, in batches. A directory that is found there and stored
 * below the same node is walked at once; all others wait for a later wave of tasks. Files whose
 * rows need inodes are collected until their inodes have been looked up (collect.c).
 */

/** A directory that will be walked. */
struct bw_pending {
    uint64_t inode;
    uint32_t directory; /**< index in the directory table */
};

BW_VECTOR(bw_pending_list, struct bw_pending);

/** Entries of a directory have keys from its first to its last possible DIR_INDEX key. */
static inline struct bw_key bw_first_entry_key(uint64_t inode)
{
    return (struct bw_key){inode, BW_DIR_INDEX, 0};
}
static inline struct bw_key bw_last_entry_key(uint64_t inode)
{
    return (struct bw_key){inode, BW_DIR_INDEX, UINT64_MAX};
}

/** State shared by the tasks of one wave. It does not change while they run, except `wanting`. */
struct bw_task_scope {
    struct bw_fs *fs;
    const struct bw_tree *tree;
    const uint8_t *root_leaf; /**< the root of the tree, if it is a leaf that was read before */
    const struct bw_directory_table *directories;
    const char *prefix; /**< path of the subvolume's top directory, with a '/' at its end; raw */
    size_t prefix_length;
    const struct bw_key_map *lost_blocks; /**< addresses of blocks that were lost in earlier waves
                                           */
    uint32_t wave;                        /**< number of the wave, from 1 on */
    bool complete; /**< nothing has been lost in earlier waves: directories may be closed */
    bool silent;   /**< list no files, only find directories and subvolumes */
    bool is_whole; /**< the walk enters all directories of the subvolume */
    struct bw_ordered_output *output;
    const struct bw_file_writer *writer; /**< what to write of files */
    const struct bw_choice *choice;      /**< which files */
    atomic_uint_fast64_t *wanting;       /**< inodes whose attributes are missing or damaged */
};

/** Reports damage of an inode in the subvolume; `kind` is what it is called. */
void bw_scope_report(const struct bw_task_scope *scope, const char *kind, uint64_t inode,
                     const char *damage);

/** A subvolume that a task has found. */
struct bw_found_subvolume {
    uint64_t id;
    uint32_t parent;      /**< number of the directory that holds the entry */
    uint32_t name_offset; /**< in the result's names */
    uint16_t name_length;
};

BW_VECTOR(bw_found_subvolumes, struct bw_found_subvolume);

struct bw_task_result {
    struct bw_packed found;  /**< directories, without those in `closed` */
    struct bw_buffer closed; /**< inodes of closed directories: varints, each the difference to the
                                previous one */
    struct bw_buffer names;  /**< names of subvolumes */
    struct bw_found_subvolumes subvolumes;
    struct bw_lost_ranges lost;
    struct bw_key_set unclaimed; /**< inodes that have entries, in the leaves that were read, but
                                    that no entry has called a directory so far */
    bool has_omitted;            /**< directories were found, but are not entered */
    uint64_t files;
};

/** A task. */
struct bw_task {
    struct bw_block_pointer pointer;  /**< to the node, or to the root leaf */
    const struct bw_pending *pending; /**< ascending by inode; all have entries below the node */
    size_t pending_count;
    uint32_t since; /**< pending directories that were walked before this wave are skipped */
    struct bw_task_result result;
};

BW_VECTOR(bw_tasks, struct bw_task);

/** The memory of a worker, which outlives a task, and the state of its task. */
struct bw_task_worker;
/** Allocates it. `lists` is NULL if no leaf is shared. */
struct bw_error *bw_task_worker_create(struct bw_fs *fs, struct bw_entry_cache *lists,
                                       const struct bw_file_writer *writer,
                                       const struct bw_choice *choice,
                                       struct bw_task_worker **worker);
/** Frees it; NULL is allowed. */
void bw_task_worker_destroy(struct bw_task_worker *worker);

/** Runs task `number` of a wave. Text and errors go to the scope's output, everything else to
 * task->result. */
void bw_task_run(const struct bw_task_scope *scope, struct bw_task_worker *worker,
                 struct bw_task *task, size_t number);

/** Frees a result. */
void bw_task_result_free(struct bw_task_result *result);

/* Collecting files (collect.c): some thousand at a time, so that their inodes are looked up in the
 * order of inodes and written in the order of names. */

/** Files that wait for their inodes; each worker has one. */
struct bw_collector;

/** Something to be collected. */
struct bw_collected {
    uint64_t number; /**< its inode */
    uint8_t type;    /**< BW_FILE_* */
    bool made_up;    /**< it is a BW_EMPTY_DIRECTORY: number is the inode of its parent directory */
};

/** Creates an empty one. The selection of `choice` also chooses by inode. */
struct bw_error *bw_collector_create(struct bw_fs *fs, const struct bw_file_writer *writer,
                                     const struct bw_choice *choice,
                                     struct bw_collector **collector);
/** Frees it; NULL is allowed. */
void bw_collector_destroy(struct bw_collector *collector);

/** Enters a directory: its path (with a '/' at the end, raw bytes) goes before the names added from
 * now on. To be called again after a flush. */
struct bw_error *bw_collector_enter(struct bw_collector *collector, const char *path,
                                    size_t length);

/** Adds an entry of that directory. */
struct bw_error *bw_collector_add(struct bw_collector *collector, const struct bw_collected *what,
                                  const void *name, size_t name_length);

/** Adds an ordinary entry of that directory, which bw_leaf_file_entry() has found: BW_COPY_SLACK
 * bytes after its name can be read. False, and nothing is added, if the name is invalid or memory
 * runs out. */
bool bw_collector_add_file(struct bw_collector *collector, const struct bw_disk_dir_item *entry);

bool bw_collector_is_empty(const struct bw_collector *collector);

/** Whether to flush while the leaves with the entries are still in memory: they may contain inodes,
 * too. */
bool bw_collector_is_worth_flushing(const struct bw_collector *collector);

/** Uses these leaves to look up inodes. */
void bw_collector_use_leaves(struct bw_collector *collector, struct bw_leaves *leaves);

/** Whether it is time to flush. */
bool bw_collector_is_full(const struct bw_collector *collector);

/** Looks the inodes up and appends the files to `text`, which is offered to the output as task
 * `number`'s. Empties the collector. Adds to `*written` how many files that were. */
struct bw_error *bw_collector_flush(struct bw_collector *collector,
                                    const struct bw_task_scope *scope, size_t number,
                                    struct bw_buffer *text, uint64_t *written);

/** Reports, at the end of a subvolume, how many more inodes were damaged than those reported. */
void bw_collector_report_rest(const struct bw_task_scope *scope);

/* The walk. */

/** Where the walk of a subvolume begins. */
struct bw_walk_top {
    const struct bw_subvolume *subvolume;
    uint64_t inode;     /**< of a directory there */
    const char *prefix; /**< its absolute path, '/' at both ends */
    size_t prefix_length;
    const uint8_t *root_leaf; /**< as in struct bw_task_scope */
    bool silent;              /**< nothing in it is listed */
    bool shallow;             /**< list it, but not its contents */
};

/** A directory entry that leads into another subvolume. */
struct bw_subvolume_entry {
    uint64_t id;
    size_t path_offset, path_length; /**< absolute path, '/' at both ends, in `paths` */
};

BW_VECTOR(bw_subvolume_entry_list, struct bw_subvolume_entry);

/** Some of them, in the order in which they were found. All zeros is empty. */
struct bw_subvolume_entries {
    struct bw_subvolume_entry_list list;
    struct bw_buffer paths;
};

/** Adds an entry whose path was appended to `paths`, from an offset to the end. Fails only if
 * memory runs out. */
struct bw_error *bw_subvolume_entries_add(struct bw_subvolume_entries *entries, uint64_t id,
                                          size_t path_offset);

/** Frees them, and leaves none. */
void bw_subvolume_entries_free(struct bw_subvolume_entries *entries);

/** State of a walk; reused from subvolume to subvolume. */
struct bw_subvolume_walk {
    struct bw_fs *fs;
    const struct bw_walk_options *options;
    unsigned threads;
    struct bw_walk_summary *summary;
    const struct bw_subvolume_walk *outer; /**< that owns `workers` and `lists`; or NULL */
    const struct bw_file_writer *writer;
    struct bw_choice choice; /**< the files to list */
    struct bw_ordered_output output;
    struct bw_pool *pool;
    struct bw_task_worker **workers; /**< one for each thread, created when first needed */
    struct bw_entry_cache *lists;    /**< NULL if there are no snapshots */

    /* Of the subvolume being walked. */
    struct bw_task_scope scope;
    struct bw_directory_table directories;
    struct bw_pending_list pending; /**< directories of the next wave */
    uint32_t wave; /**< the wave under way; between waves, the next; never more than BW_LAST_WAVE */
    struct bw_tasks tasks;
    struct bw_lost_ranges lost;
    struct bw_key_set unclaimed;   /**< those of the tasks that ended */
    bool has_omitted;              /**< some of `unclaimed` may be below directories that an entry
                                    * names, but which are not entered */
    struct bw_key_map lost_blocks; /**< addresses of those of `lost` that are blocks */
    struct bw_adopted adopted;     /**< leaves below lost nodes */
    struct bw_collector *listed;   /**< files listed outside of tasks */
    atomic_uint_fast64_t wanting;  /**< inodes whose attributes are missing or damaged */

    struct bw_subvolume_entries found; /**< to be walked later */
};

/* One subvolume (waves.c). */

/** Prepares a walk whose output goes to a receiver. To be destroyed also after an error. */
struct bw_error *bw_subvolume_walk_init(struct bw_subvolume_walk *walk, struct bw_fs *fs,
                                        const struct bw_walk_options *options,
                                        const struct bw_receiver *receiver,
                                        struct bw_walk_summary *summary);

/** Prepares a walk for worker `worker` of another one, of which it uses the memory, and into whose
 * output it writes; see bw_output_enter(). To be destroyed before it. */
struct bw_error *bw_subvolume_walk_init_inner(struct bw_subvolume_walk *walk,
                                              const struct bw_subvolume_walk *outer,
                                              unsigned worker);

/** Releases everything; returns the error that ended the output, if one did. */
struct bw_error *bw_subvolume_walk_destroy(struct bw_subvolume_walk *walk);

/** Walks a subvolume, or everything below a directory of it, and its recoverable lost entries. */
struct bw_error *bw_subvolume_walk_run(struct bw_subvolume_walk *walk,
                                       const struct bw_walk_top *top);

/** Lists a single entry with the name in the directory `top`. */
struct bw_error *bw_subvolume_walk_single(struct bw_subvolume_walk *walk,
                                          const struct bw_walk_top *top,
                                          const struct bw_collected *what, const char *name,
                                          size_t name_length);

/** Whether entries of a type are listed at all. */
bool bw_subvolume_walk_lists(const struct bw_subvolume_walk *walk, uint8_t type);

/** Whether directories in a directory (index in the table) are entered, and not too deep. */
bool bw_subvolume_walk_enters(const struct bw_subvolume_walk *walk, uint32_t directory);

/** Lists an entry of a directory (index in the table) outside of tasks, if it is one of those
 * listed. `*included`: whether it, and what may be below it, is not excluded. */
struct bw_error *bw_subvolume_walk_list(struct bw_subvolume_walk *walk, uint32_t directory,
                                        const struct bw_collected *what, const void *name,
                                        size_t name_length, bool *included);

/* Waves of directories. */

/** Adds a directory to the table, at `*index`, and to the next wave. */
struct bw_error *bw_waves_add_directory(struct bw_subvolume_walk *walk, uint64_t inode,
                                        uint32_t parent, const void *name, size_t name_length,
                                        uint32_t *index);

/** Notes that a subvolume has the entry `name` in directory `directory` (index in the table). */
struct bw_error *bw_waves_add_subvolume(struct bw_subvolume_walk *walk, uint64_t id,
                                        uint32_t directory, const char *name, size_t name_length);

/** Notes that a block is lost, and which keys with it. */
struct bw_error *bw_waves_report_lost(struct bw_subvolume_walk *walk,
                                      const struct bw_lost_range *range);

/** Runs waves until no directory is pending. */
struct bw_error *bw_waves_run(struct bw_subvolume_walk *walk);

/** Walks all directories known so far through the adopted leaves alone. */
struct bw_error *bw_waves_walk_adopted(struct bw_subvolume_walk *walk);

/* Lost entries (lost_entries.c). */

/** Lists the entries of blocks that the walk has lost, as far as the rest of the tree has them, and
 * walks the directories among them, and those that no entry calls a directory. Costs nothing if no
 * block was lost. */
struct bw_error *bw_lost_entries_list(struct bw_subvolume_walk *walk);

/*
 * Small subvolumes (small_subvolumes.c): the tree of each has at most one node, so its waves have
 * one task. Many of them are walked at once, each by one worker, and a worker reads the roots of
 * several with one batch. They are listed in their order, as by separate walks one after the other.
 */

/** The walkers of small subvolumes. */
struct bw_small_subvolumes;

/** The greatest number of subvolumes to walk at once. */
enum { BW_MOST_SMALL_SUBVOLUMES = 1024 };

/** Whether a subvolume is small. */
static inline bool bw_subvolume_is_small(const struct bw_subvolume *subvolume)
{
    return subvolume->tree.root.level <= 1;
}

/** Makes walkers for the workers of a walk, which must outlive them. */
struct bw_error *bw_small_subvolumes_create(struct bw_subvolume_walk *walk,
                                            struct bw_small_subvolumes **small);
/** Frees them; NULL is allowed. */
void bw_small_subvolumes_destroy(struct bw_small_subvolumes *small);

/** Walks subvolumes, adds the subvolumes found in them to walk->found, and counts them in its
 * summary. Their prefixes may be views of walk->found.paths. */
struct bw_error *bw_small_subvolumes_run(struct bw_small_subvolumes *small,
                                         struct bw_walk_top *tops, size_t count);

#endif
