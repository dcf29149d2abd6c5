/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The output of a walk, and its order. Tasks run in parallel and each writes its own text; the
 * texts are passed on in the order of the tasks. The writer decides the format: rows, lines as of
 * `ls -l`, paths, or records in memory for visitors. A sorted walk collects everything first.
 */
#ifndef BW_WALK_OUTPUT_H
#define BW_WALK_OUTPUT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buffer.h"
#include "btrfs-walk/subvolume.h"
#include "btrfs-walk/walk.h"
#include "data/sharing.h"
#include "record/rows.h"

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

/** Sets the known values of a file's space. */
void bw_walked_file_set_space(struct bw_walked_file *file, const struct bw_sharing *sharing,
                              const struct bw_file_space *space);

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

/** Whether a number is a valid order. */
bool bw_order_is_known(enum bw_walk_order order);

#endif
