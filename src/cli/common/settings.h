/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Exit statuses, and what the options that all commands share have set. */
#ifndef BW_CLI_COMMON_SETTINGS_H
#define BW_CLI_COMMON_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "btrfs-walk/fs.h"
#include "btrfs-walk/rows.h"
#include "cli/probes/probes.h"

/** Exit statuses. */
enum {
    STATUS_OK = 0,
    STATUS_PARTIAL = 1,     /**< part of the answer is missing, or could not be written */
    STATUS_CANNOT = 2,      /**< wrong usage, or the file system cannot be opened */
    STATUS_UNSUPPORTED = 3, /**< the image needs a feature that is not supported */
};

/** What the options of commands that print records have set: see cli/common/answer.h. */
struct cmd_answer_settings {
    const char *columns;   /**< as given; NULL: all, if it is JSON */
    const char *separator; /**< as given; NULL: a tab */
    enum bw_rows_style style;
    bool json_header, header;
    bool iec, si, raw;
    unsigned times; /**< enum bw_rows_times */
    bool times_given;
};

/** Which file systems a command works on, and how to open them; for session.h. */
struct cmd_input {
    const char **images; /**< IMAGE, then what -d gave; for commands without operands, all arguments
                          */
    size_t image_count;
    const char *const *others; /**< images of another file system, which cmd_open_other() opens */
    size_t other_count;
    int superblock_copy;
    const char *partition;         /**< NULL: none is chosen */
    uint64_t offset;               /**< of the images in their files */
    unsigned log;                  /**< enum bw_log_mode */
    bool log_given;                /**< --log was given */
    struct bw_state_choice state;  /**< cmd_state_options */
    bool scan;                     /**< bw_fs_options.scan */
    struct bw_graph_options graph; /**< its edits are `edits` */
    struct bw_graph_edit *edits;   /**< room for one an argument */
    unsigned helpers;              /**< enum bw_helper_mode */
    unsigned timeout;              /**< of servers, in milliseconds; 0: the usual one */
    struct bw_servers *servers;    /**< of all images that the command opens */
    bool lists_states;             /**< the command searches older generations itself */
    bool lists_partitions; /**< the command lists those of disks, also if it cannot open them */
};

/** Which messages are printed; for output.h. */
struct cmd_messages {
    bool quiet;
    unsigned verbose;            /**< 1: also notes; 2: also the layers that every error passed */
    struct bw_reporter listener; /**< also receives all messages; its function may be NULL */
    /** Whether a message of the library is printed; NULL: it is. For commands that report damage
     * themselves. */
    bool (*is_selected)(enum bw_severity severity, const struct bw_error *error);
};

/** Whether the program confines itself. */
enum cmd_sandbox_mode { CMD_SANDBOX_ON, CMD_SANDBOX_OFF };

/** What a command writes to besides stdout, and so what the sandbox allows; for sandbox.h. */
struct cmd_writing {
    unsigned sandbox;   /**< enum cmd_sandbox_mode */
    bool serves;        /**< the command answers the kernel: see mount.c */
    const char *folder; /**< of a command that makes files: in which; NULL: it makes none */
    bool preserves;     /**< and files get setuid and setgid bits, capabilities and flags */
    /** Opens the outputs when it is known what will be read: in the sandbox they could not be
     * opened. NULL: nothing. */
    struct bw_error *(*open_outputs)(void *context, const struct bw_fs *planned);
    void *outputs; /**< passed to open_outputs */
};

/** What the options common to all commands have set. */
struct cmd_common {
    struct cmd_input input;
    const char *const *paths; /**< for a command that takes paths: the operands after the images,
                                 then what --files-from gave */
    size_t path_count;
    const char *files_from; /**< file with paths; NULL: none */
    bool null_separated;    /**< the paths in it end with NUL */
    struct cmd_messages messages;
    struct cmd_writing writing;
    struct cmd_probe_settings probes;
    const char *statedump;             /**< file for it; NULL: there is none */
    struct cmd_answer_settings answer; /**< of a command with a record */
};

#endif
