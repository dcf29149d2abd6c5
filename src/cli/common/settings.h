/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The settings of the options that all commands share. */
#ifndef BW_CLI_COMMON_SETTINGS_H
#define BW_CLI_COMMON_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "btrfs-walk/fs.h"
#include "btrfs-walk/record.h"
#include "cli/probes/probes.h"

/** Settings of the options of commands that print records: see cli/common/output_format.h. */
struct cmd_format_settings {
    const char *columns;   /**< as given; NULL: all columns, if the output is JSON */
    const char *separator; /**< as given; NULL: a tab */
    enum bw_rows_style style;
    bool header;
    bool null; /**< rows, or the lines that replace them, end with NUL */
    bool iec, si, raw;
    unsigned times; /**< enum bw_rows_times */
    bool times_given;
    const char *sort; /**< a column, with a '-' before it for descending order; NULL: unsorted */
    uint64_t top;     /**< how many rows to print; 0: all */
};

/** How long commands search flipped bits that no checksum names, with --correct-bits. */
enum { CMD_SEARCH_SECONDS = 60 };

struct cmd_index;

/** Which file systems a command works on, and how to open them; for session.h. */
struct cmd_input {
    const char **images; /**< IMAGE, then the arguments of --device; all operands if the command
                          * needs no image */
    size_t image_count;
    const char *const *others; /**< images of another file system, which cmd_open_other() opens */
    size_t other_count;
    const char *other_partition; /**< NULL: not given */
    uint64_t other_side;         /**< bw_fs_options.side of the others */
    bool is_other;               /**< these are the settings of cmd_open_other() */
    const char *folder; /**< a directory of this machine that the command also reads; NULL: none */
    struct bw_fs_options fs; /**< set by options of the same names; cmd_fs_options() adds the rest
                              */
    struct cmd_keys *keys;   /**< keys of encrypted volumes */
    const char **inside;     /**< bw_fs_options.inside: room for one per argument */
    struct bw_inside_choice *inside_choices; /**< one for each, with the same room */
    size_t inside_count;
    bool log_given;                         /**< --log was given */
    bool has_fsid;                          /**< --fsid was given */
    uint8_t fsid[BW_UUID_SIZE];             /**< bw_fs_options.fsid */
    struct bw_const_strings maps, overlays; /**< bw_fs_options.maps, overlays */
    struct bw_graph_options graph;          /**< its edits are `edits` */
    struct bw_graph_edit *edits;            /**< room for one edit per command-line argument */
    unsigned helpers;                       /**< enum bw_helper_mode */
    unsigned timeout;        /**< limit for servers, in milliseconds; 0: the default */
    bool never_asks;         /**< never prompt for passphrases */
    bool lists_states;       /**< the command searches for historic roots itself */
    struct cmd_index *index; /**< for that search; NULL: it needs none */
    bool lists_partitions;   /**< the command lists the partitions of disks, even of disks that it
                              * cannot open */
};

/** --color: when text has colours. */
enum cmd_color_when { CMD_COLOR_AUTO, CMD_COLOR_ALWAYS, CMD_COLOR_NEVER };

/** Which messages are printed; for output.h. */
struct cmd_messages {
    bool quiet;
    unsigned color;   /**< enum cmd_color_when, also for results */
    unsigned verbose; /**< 1: also print notes; 2: also the layers that each error passed */
    struct bw_reporter listener; /**< receives all messages, even those not printed; its function
                                  * may be NULL */
    /** Whether to print a message of the library; NULL: always. For commands that report damage
     * themselves. */
    bool (*is_selected)(enum bw_severity severity, const struct bw_error *error);
    struct cmd_repeats *repeats; /**< counts similar messages; NULL: all are printed */
};

/** --sandbox. */
enum cmd_sandbox_mode { CMD_SANDBOX_ON, CMD_SANDBOX_OFF };

/** A folder in which a command makes files. Other users may be able to change its contents. */
struct cmd_folder {
    const char *path;
    int descriptor;
};

struct cmd_output_file;

/** The outputs of a command other than stdout, which determine what the sandbox allows. */
struct cmd_writing {
    unsigned sandbox;          /**< enum cmd_sandbox_mode */
    bool serves;               /**< the command serves requests of the kernel: see mount.c */
    struct cmd_folder *folder; /**< for the command's files; NULL: it makes none. If it has a path,
                                * the session opens and closes it; otherwise open_outputs opens it
                                */
    const struct cmd_folder *base; /**< of a command that runs others: paths that begin with
                                    * base->path are opened below its descriptor, and no link is
                                    * followed; NULL: none */
    bool has_receiver; /**< a child makes the files; the command itself needs no folder */
    bool fsync;        /**< wait until the written files are on the disk */
    bool preserves;    /**< these files get setuid and setgid bits, capabilities and flags */
    /** Opens the outputs after the files to be read are known and before the sandbox, which would
     * not allow it, is entered. May be NULL. */
    struct bw_error *(*open_outputs)(void *context, const struct bw_fs *planned);
    void *outputs;                /**< passed to open_outputs */
    struct cmd_output_file *file; /**< opened before them; NULL: none */
};

struct cmd_keys;

/** Settings of the options that all commands share. */
struct cmd_common {
    struct cmd_input input;
    const char *const *paths; /**< operands after the images, then the paths of --files-from */
    size_t path_count;
    const char *files_from; /**< file with paths; NULL: none */
    bool null_separated;    /**< the paths in it end with NUL */
    struct cmd_messages messages;
    struct cmd_writing writing;
    struct cmd_probe_settings probes;
    const char *statedump;             /**< file for statedumps; NULL: none */
    struct cmd_format_settings format; /**< if the command has a record */
};

#endif
