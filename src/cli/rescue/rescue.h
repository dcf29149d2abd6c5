/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rescue command: the readable files of a damaged file system, and how to save them. Its parts:
 *
 *     opening.c   opens the file system, and remembers the options that were needed
 *     problems.c  the problems, in words
 *     verified.c  data that were read for one file, and need not be read for another
 *     assess.c    reads all files, and counts by subvolume how much of them is readable
 *     unverified.c  files that can be read only in tree blocks with wrong checksums
 *     older.c     searches older generations for the unreadable files
 *     others.c    other file systems on the same images, and the sides of diverged devices
 *     steps.c     the commands that save the files, printed or run
 *     text.c      the answer for people
 *     dmesg.c     --dmesg: the messages of a kernel log, explained
 */
#ifndef BW_CLI_RESCUE_RESCUE_H
#define BW_CLI_RESCUE_RESCUE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buffer.h"
#include "base/hash_table.h"
#include "base/range_set.h"
#include "base/vector.h"
#include "btrfs-walk/file.h"
#include "btrfs-walk/history.h"
#include "btrfs-walk/records.h"
#include "cli/command.h"
#include "cli/common/generations.h"
#include "cli/common/output_format.h"
#include "cli/common/repeats.h"
#include "cli/export/export.h"

/** Settings of the options. */
struct rescue_settings {
    struct cmd_export_settings export; /**< only the number of threads */
    struct cmd_index index;
    const char *folder; /**< of --extract; NULL: nothing is extracted */
    const char *dmesg;  /**< a kernel log; NULL: none */
    bool list, no_data;
};

/** Without --scan, other file systems are searched for on images of at most this many bytes. */
#define RESCUE_SEARCHED (UINT64_C(64) << 30)

/** Kinds of files: enum bw_recoverable_kind. */
enum { RESCUE_KINDS = BW_RECOVERABLE_CORRECTED + 1 };

/** Kinds of problems that are kept; more are only counted. */
enum { RESCUE_PROBLEMS = 64 };

/** A problem, or the first of several messages that differ only in their numbers. */
struct rescue_problem {
    enum bw_severity severity;
    char *message;
    const struct cmd_message_kind *kind; /**< counts the messages; NULL: it is the only one */
};

/** The files of a subvolume, counted by enum bw_recoverable_kind. */
struct rescue_subvolume {
    uint64_t id;
    char *path; /**< NULL: it has none */
    bool is_readable;
    uint64_t files[RESCUE_KINDS], bytes[RESCUE_KINDS], bad;
};

/** A file that cannot be read completely. */
struct rescue_missed {
    size_t path; /**< where its path begins in rescue.paths; a NUL ends it */
    struct bw_place place;
    uint64_t generation; /**< of its inode */
    uint64_t size, transid, bad;
    enum bw_recoverable_kind kind;
    bool has_inode;
    bool found; /**< an older generation has it, or none is needed */
};

/** An older generation to extract from. */
struct rescue_choice {
    uint64_t generation;
    uint64_t tree_root; /**< 0: the generation has only one root tree */
};

/** An older generation with some of these files. */
struct rescue_generation {
    struct rescue_choice choice;
    int64_t changed;
    uint64_t files, bytes;
};

BW_VECTOR(rescue_generations, struct rescue_generation);

BW_VECTOR(rescue_missed_list, struct rescue_missed);

BW_VECTOR(rescue_subvolumes, struct rescue_subvolume);

enum {
    RESCUE_GENERATIONS = 3, /**< generations from which files are extracted */
    RESCUE_STEPS = 8 + RESCUE_GENERATIONS,
};

/** Another file system on the same images, or a side of devices that have diverged. */
struct rescue_other {
    bool is_side;
    uint8_t fsid[BW_UUID_SIZE]; /**< if it is not a side: bw_fs_options.fsid */
    uint64_t side;              /**< bw_fs_options.side */
    uint64_t generation;
    int64_t changed; /**< last change, in nanoseconds since 1970; 0: unknown */
    char label[257];
    char *problem;                 /**< why it cannot be opened; NULL: it was read */
    struct rescue_subvolume total; /**< its files */
};

BW_VECTOR(rescue_others, struct rescue_other);

/** The plan: only numbers, because a confined process passes it to another one, which is not. */
struct rescue_plan {
    bool whole, corrected, unverified, partly, lost, deleted; /**< there are such files */
    bool searches;        /**< a search for flipped bits has corrected tree blocks */
    bool accepts_blocks;  /**< some files can be read only with wrong checksums of tree blocks */
    bool accepts_partly;  /**< the same, but ranges of these files are lost */
    bool accepts_newer;   /**< with these blocks, a newer generation can be read */
    bool corrects_partly; /**< flipped bits of files that are partly readable are corrected */
    struct rescue_choice generations[RESCUE_GENERATIONS];
    unsigned generation_count;
    bool follows_renames; /**< these steps look for the files under their older names, too */
    /** Options that were needed to open the file system, as in struct cmd_input. */
    int superblock_copy;
    bool scan, ignores_log;
};

/** Data that were read and verified, as a set of sectors. Snapshots share most of their data, which
 * need to be read only once: a file is whole if all its extents were read for other files. Memory
 * is limited; data that are forgotten are read again. All zeros but `sectorsize` and `lock`: empty.
 */
enum { RESCUE_VERIFIED_SECTORS = 4096 }; /**< of a page: 16 MiB of data */

struct rescue_verified_page {
    uint64_t bits[RESCUE_VERIFIED_SECTORS / 64];
};

BW_VECTOR(rescue_verified_pages, struct rescue_verified_page);

struct rescue_verified {
    pthread_mutex_t lock;
    uint32_t sectorsize;
    struct bw_key_map positions; /**< of pages in `pages`, by their number */
    struct rescue_verified_pages pages;
};

/** How much of a file can be read, while a stream delivers its parts. */
struct rescue_reading {
    struct bw_recoverable read;
    uint64_t other_bad; /**< bytes that are bad for another reason than their checksums */
};

/** A running rescue. */
struct rescue {
    struct rescue_reading now; /**< the file whose parts are being delivered; the first member */
    struct rescue_settings *settings;
    struct cmd_common common; /**< with the options that were needed to open */
    struct cmd_input given;   /**< as on the command line */
    struct cmd_format answer; /**< answer.session has only the images open */
    struct bw_fs *fs;
    struct bw_superblock_info super;
    struct rescue_plan plan;
    struct cmd_repeats repeats;
    struct rescue_problem problems[RESCUE_PROBLEMS];
    size_t problem_count;
    bool is_damaged; /**< damage was reported, and not only what is not supported */
    struct rescue_subvolumes subvolumes;
    struct cmd_export export;
    struct bw_range_set incomplete;    /**< chunks of which too many devices are missing */
    struct rescue_verified verified;   /**< data that were read for another file */
    struct rescue_verified unverified; /**< data without checksums that were read for another file
                                        */
    struct bw_extent_reader *extents, *finished_extents; /**< one for each thread */
    struct bw_data_reader *reader; /**< of files without checksums; NULL until the first such file
                                    */
    struct bw_buffer paths;
    struct rescue_missed_list missed;
    struct bw_key_map missed_paths; /**< their numbers in `missed`, by hash */
    uint64_t missed_total;          /**< including those that are not in `missed` */
    uint64_t unchecked_files;       /**< of these, files that can be read without checksums */
    uint64_t corrected_files;       /**< of these, files whose flipped bits were corrected */
    uint64_t accepted_files;        /**< of these, files in tree blocks with wrong checksums */
    uint64_t accepted_remains;      /**< files with lost ranges that only such tree blocks have */
    uint64_t accepted_directories;  /**< directories in such tree blocks; in no other number */
    uint64_t mismatched_files;      /**< of these, files whose data can be read, but do not match
                                       their checksums */
    struct rescue_generations generations;
    uint64_t hidden_files, deleted_files;
    struct rescue_others others;
    bool searched_others;
    atomic_bool no_memory; /**< memory ran out where an error cannot be returned */
};

/** Waits for the child process of `what`, and sets its status, as waitpid(2) does. `problem`: the
 * errno if `child` is negative, because fork() has failed. BW_ERROR_SYSTEM if it did not end by
 * itself. */
struct bw_error *rescue_wait(pid_t child, int problem, const char *what, int *status);

/** Remembers that memory ran out, which is no damage: rescue_all() fails then. Ignores NULL and all
 * other errors. */
static inline void rescue_note_memory(struct rescue *rescue, const struct bw_error *error)
{
    if (error && error->code == BW_ERROR_NO_MEMORY)
        atomic_store(&rescue->no_memory, true);
}

/** Opens the file system, with the first options that succeed; sets rescue->fs, and the options in
 * rescue->common and rescue->plan. Returns the error of the first attempt if all fail. */
struct bw_error *rescue_open(struct rescue *rescue);

/** Receives the messages of the library; `context` is a struct rescue. */
void rescue_note_problem(void *context, enum bw_severity severity, const struct bw_error *error);
/** Adds what the state of the devices means. */
struct bw_error *rescue_find_problems(struct rescue *rescue);
/** For rescueinfo.problems. */
struct bw_error *rescue_list_problems(void *context, struct bw_record_sink *sink);

/** Opens the file system once more, and accepts tree blocks whose checksums do not match. */
struct bw_error *rescue_open_unverified(struct rescue *rescue, struct bw_fs **fs);

/** Adds the subvolumes of a file system that are not known yet. */
struct bw_error *rescue_add_subvolumes(struct rescue *rescue, struct bw_fs *fs);
/** Reads all files. With --list, writes a row for each. */
struct bw_error *rescue_assess(struct rescue *rescue);
/** The file at this path that could not be read completely; NULL: there is none. */
struct rescue_missed *rescue_find_missed(const struct rescue *rescue, const char *path,
                                         size_t length);
/** Adds a file or directory of which more can be read with wrong checksums of tree blocks. With
 * --list, writes a row for a file. */
struct bw_error *rescue_count_accepted(struct rescue *rescue, const struct bw_export_entry *item,
                                       enum bw_recoverable_kind kind,
                                       const struct bw_recoverable *read);
/** Reads the data of a file without its checksums, as --ignore-checksums data does. `*reader`: NULL
 * until the first file. */
struct bw_error *rescue_read_as_is(struct bw_fs *fs, struct bw_data_reader **reader,
                                   const struct bw_export_entry *item, struct bw_recoverable *read);
/** For bw_stream.visit: counts a part. `context` begins with a struct rescue_reading. */
struct bw_error *rescue_visit_part(void *context, const struct bw_stream_file *file,
                                   const struct bw_data_part *part);
/** Whether files or tree blocks are lost. */
bool rescue_has_damage(const struct rescue *rescue);
/** Whether an older generation is read because the current one cannot be. */
bool rescue_is_older(const struct rescue *rescue);
/** The sum over all subvolumes. */
struct rescue_subvolume rescue_total(const struct rescue *rescue);

/** Finds the files that can be read only if wrong checksums of tree blocks are ignored. */
struct bw_error *rescue_find_unverified(struct rescue *rescue);

/** Searches older generations for files that cannot be read, and for deleted ones. */
struct bw_error *rescue_look_back(struct rescue *rescue);

/** A rescue that has not begun; NULL: memory ran out. */
struct rescue *rescue_create(const struct cmd_common *common, struct rescue_settings *settings);
void rescue_destroy(struct rescue *rescue);

/** Opens and reads the other file systems on the same images, or the sides of devices that have
 * diverged. `why`: the error if no file system could be opened. */
struct bw_error *rescue_find_others(struct rescue *rescue, const struct bw_error *why);
/** For rescueinfo.others. */
struct bw_error *rescue_list_others(void *context, struct bw_record_sink *sink);

/* The commands that save the readable files. `rescue` prints them, and `rescue --extract` runs the
 * same ones. */

/** The folder in the printed commands. */
#define RESCUE_FOLDER "saved"

/** The number of steps of a plan. */
size_t rescue_step_count(const struct rescue_plan *plan);

/** The kind of a step: "whole", "corrected", "unverified", "unverified-partly", "older", "partly",
 * "lost" or "deleted". */
const char *rescue_step_name(const struct rescue_plan *plan, size_t step);

/** Adds the options that were needed to open the file system to the command line's. False
 * if they contradict each other. */
bool rescue_apply_plan(const struct rescue_plan *plan, struct cmd_input *input);

/** The options that rescue_apply_plan() adds, as text: "--scan". NULL: none. */
const char *rescue_open_option(const struct rescue_plan *plan);

/** Appends the shell command of a step, for the images and options of `common`. `folder` is the
 * target. */
void rescue_append_step(struct bw_buffer *text, const struct rescue_plan *plan, size_t step,
                        const struct cmd_common *common, const char *folder);

/** Appends a shell command for the images and options of `common`. `own`: its name and its own
 * options; ends with NULL. */
void rescue_append_command(struct bw_buffer *text, const struct cmd_common *common,
                           const char *const *own);

/** Appends the command `rescue` for another file system. */
void rescue_append_other(struct bw_buffer *text, const struct rescue *rescue,
                         const struct rescue_other *other);

/** The options on the command line, with the option that opens another file system. */
struct cmd_input rescue_input_of(const struct rescue *rescue, const struct rescue_other *other);

/** Runs all steps, each in a separate process, and lists the files that none has saved. Returns the
 * worst exit status. Confines the process; it can run no other command. */
int rescue_run_steps(const struct rescue_plan *plan, const struct cmd_common *common,
                     const struct cmd_folder *base);

/** Whether all data of an extent were verified. */
bool rescue_verified_has(struct rescue_verified *verified, const struct bw_extent *extent);

/** Adds the data of an extent. False if memory runs out. */
bool rescue_verified_add(struct rescue_verified *verified, const struct bw_extent *extent);

void rescue_verified_free(struct rescue_verified *verified);

/** Appends the answer for people. */
struct bw_error *rescue_print(struct cmd_format *answer, const void *record);

/** Reads a kernel log ("-": stdin), opens the file system, and writes a row of the record
 * `kernelmessageinfo` for each message. Returns the exit status. */
int dmesg_run(const struct cmd_common *common, const char *file);

#endif
