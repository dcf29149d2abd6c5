/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands: what each is called, which options it takes, and what all of them share. One grammar
 * for all: btrfs-walk [COMMAND] [OPTIONS] IMAGE [OPERANDS].
 */
#ifndef BW_CLI_COMMAND_H
#define BW_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
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

struct command;

/**
 * An option as data: parsing, --help, the manual and the completions are made from it. A table ends
 * with an entry that has neither a name nor a group.
 */
struct cmd_option {
    char letter;             /**< short form; 0: none */
    const char *name;        /**< long form */
    const char *argument;    /**< name of its argument in the help text; NULL: it takes none;
                                "[=WORD]": it is optional, and then follows a '=' */
    const char *description; /**< one line */
    /** Stores the argument (NULL if there is none) at `target`, which is `offset` bytes into the
     * settings that the table is for. BW_ERROR_USAGE: the argument is invalid. */
    struct bw_error *(*take)(void *target, const struct cmd_option *option, const char *argument);
    size_t offset;
    const char *also; /**< another long form, unless an option of the command is called that */
    const char *const *words; /**< of cmd_take_word(): what may be given; ends with NULL */
    /** For options like --help: writes something to stdout and returns the exit status, so that the
     * command is not run. An option with `take` shows only if its argument is "help", and then when
     * all options are known. `state` is that of the command. May be NULL. */
    int (*show)(const struct command *command, const void *state, const char *argument);
    const struct cmd_option *group; /**< this entry stands for a table that several commands
                                       share; its settings begin at `offset` */
    const char *heading; /**< in --help and the manual: of this option and those behind it, to the
                            end of the table; NULL: as before */
    bool rare;           /**< likewise: only --help=all shows them */
    void (*release)(void *settings); /**< of a group: frees what its options have allocated, after
                                        the command; NULL: nothing */
};

/* The end of a table entry: where its argument is stored. The type of the member is checked. */
#define CMD_AT(type, member, wanted) \
    (offsetof(type, member) + _Generic(((type *)0)->member, wanted : 0))
/** A bool that becomes true. */
#define CMD_FLAG(type, member) .take = cmd_take_flag, .offset = CMD_AT(type, member, bool)
/** A text that must not be empty. */
#define CMD_TEXT(type, member) .take = cmd_take_text, .offset = CMD_AT(type, member, const char *)
/** A number of threads. */
#define CMD_THREADS(type, member) .take = cmd_take_threads, .offset = CMD_AT(type, member, unsigned)
/** Bytes, as cmd_parse_bytes() reads them. */
#define CMD_BYTES(type, member) .take = cmd_take_bytes, .offset = CMD_AT(type, member, uint64_t)
/** An enumeration: one of several words, in the order of its values. */
#define CMD_WORD(type, member, list) \
    .take = cmd_take_word, .offset = CMD_AT(type, member, unsigned), .words = (list)
/** A whole entry: the options of a table that is shared. */
#define CMD_GROUP(table, type, member)                     \
    {                                                      \
        .group = (table), .offset = offsetof(type, member) \
    }

struct bw_error *cmd_take_flag(void *flag, const struct cmd_option *option, const char *argument);
struct bw_error *cmd_take_text(void *text, const struct cmd_option *option, const char *argument);
struct bw_error *cmd_take_threads(void *threads, const struct cmd_option *option,
                                  const char *argument);
struct bw_error *cmd_take_bytes(void *bytes, const struct cmd_option *option, const char *argument);
struct bw_error *cmd_take_word(void *value, const struct cmd_option *option, const char *argument);

/** The error of a `take` function for an invalid argument; `allowed` names what is valid. */
struct bw_error *cmd_bad_argument(const struct cmd_option *option, const char *argument,
                                  const char *allowed);

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

/** What the options common to all commands have set. */
struct cmd_common {
    const char **images; /**< IMAGE, then what -d gave; for commands without operands, all arguments
                          */
    size_t image_count;
    const char *const *others; /**< images of another file system, which cmd_open_other() opens */
    size_t other_count;
    const char *const *paths; /**< for a command that takes paths: the operands after the images,
                                 then what --files-from gave */
    size_t path_count;
    const char *files_from; /**< file with paths; NULL: none */
    bool null_separated;    /**< the paths in it end with NUL */
    int superblock_copy;
    const char *partition;         /**< NULL: none is chosen */
    uint64_t offset;               /**< of the images in their files */
    unsigned log;                  /**< enum bw_log_mode */
    bool log_given;                /**< --log was given */
    struct bw_state_choice state;  /**< cmd_state_options */
    bool scan;                     /**< bw_fs_options.scan */
    struct bw_graph_options graph; /**< its edits are `edits` */
    struct bw_graph_edit *edits;   /**< room for one an argument */
    struct cmd_probe_settings probes;
    const char *statedump;       /**< file for it; NULL: there is none */
    struct bw_reporter listener; /**< also receives all messages; its function may be NULL */
    bool lists_states;           /**< the command searches older states itself */
    bool lists_partitions; /**< the command lists those of disks, also if it cannot open them */
    /** Whether a message of the library is printed; NULL: it is. For commands that tell by
     * themselves what is damaged. */
    bool (*wants)(enum bw_severity severity, const struct bw_error *error);
    bool serves;                /**< the command answers the kernel: see mount.c */
    unsigned helpers;           /**< enum bw_helper_mode */
    unsigned timeout;           /**< of servers, in milliseconds; 0: the usual one */
    struct bw_servers *servers; /**< of all images that the command opens */
    const char *folder;         /**< of a command that makes files: in which; NULL: it makes none */
    bool preserves;             /**< and files get setuid and setgid bits, capabilities and flags */
    /** Opens what the command writes to, besides stdout, when it is known what will be read: in the
     * sandbox it could not be opened. NULL: nothing. */
    struct bw_error *(*open_outputs)(void *context, const struct bw_fs *planned);
    void *outputs;                     /**< passed to open_outputs */
    unsigned sandbox;                  /**< enum cmd_sandbox_mode */
    struct cmd_answer_settings answer; /**< of a command with a record */
    bool quiet;
    unsigned verbose; /**< 1: also notes; 2: also the way of every error */
};

/** Whether the program confines itself. */
enum cmd_sandbox_mode { CMD_SANDBOX_ON, CMD_SANDBOX_OFF };

struct cmd_statedump;

/** A file system that a command works on. */
struct cmd_session {
    struct bw_fs *fs;
    struct cmd_probes *probes;
    struct cmd_statedump *statedump;
};

/** What an exit status means; a table ends with an entry that has no meaning. */
struct cmd_status {
    int status;
    const char *meaning;
};

/** Of all commands that have no others. */
extern const struct cmd_status cmd_statuses[];

struct command {
    const char *name;
    const char *topic;                /**< one of cmd_topic_... */
    const char *operands;             /**< what follows the options in the usage line */
    const char *summary;              /**< one line */
    const char *details;              /**< text of --help between usage and options; may be empty */
    const char *examples;             /**< lines of --help after the options */
    const struct cmd_option *options; /**< of its own, for its state */
    const char *record;               /**< that it prints: it has cmd_answer_options; may be NULL */
    const char *other_record;         /**< of its rows, if its flag at `other` is set; NULL: none */
    size_t other;                     /**< CMD_AT(state, flag, bool) */
    /** Does the work; returns the exit status. */
    int (*run)(const struct cmd_common *common, void *state);
    size_t state_size;    /**< bytes of the state: what the options set, for `run` */
    const void *defaults; /**< state before any option; NULL: zeros */
    bool needs_no_image;  /**< its operands are not images; they are in cmd_common.images anyway */
    /** Its first operand is an image, or none if --graph names the images. Images of the same file
     * system that follow are its other devices; the rest are in cmd_common.paths. */
    bool takes_paths;
    bool takes_list;     /**< the same of any number of paths: it has cmd_list_options */
    const char *missing; /**< the message if it got no such operand; NULL: it needs none */
    /** Its own exit statuses in place of STATUS_OK, STATUS_PARTIAL, ...; NULL: those. `run` returns
     * its own anyway. */
    const unsigned char *statuses;
    const struct cmd_status *meanings; /**< NULL: cmd_statuses */
};

/** Headings in the list of commands. */
extern const char cmd_topic_files[], cmd_topic_export[], cmd_topic_volume[], cmd_topic_structures[],
    cmd_topic_program[];

extern const struct command cmd_info, cmd_super;
extern const struct command cmd_walk, cmd_graph, cmd_xlators, cmd_blackbox, cmd_help;
extern const struct command cmd_cat, cmd_extents, cmd_dump;
extern const struct command cmd_ls, cmd_stat, cmd_readlink, cmd_xattr;
extern const struct command cmd_devices, cmd_subvolumes, cmd_qgroups, cmd_tree_stats, cmd_log;
extern const struct command cmd_space;
extern const struct command cmd_chunks, cmd_map, cmd_usage, cmd_check, cmd_owner, cmd_du,
    cmd_compression;
extern const struct command cmd_diff, cmd_deleted, cmd_versions, cmd_roots;

extern const struct command cmd_picture, cmd_report;
extern const struct command cmd_sum, cmd_tar, cmd_extract, cmd_bodyfile, cmd_mount;

/** Options that several commands have: all that open a file system (the first), and all (the
 * second). */
extern const struct cmd_option cmd_image_options[], cmd_common_options[];
/** Among the first: the options for a struct cmd_probe_settings, and for a struct bw_state_choice.
 */
extern const struct cmd_option cmd_probe_options[], cmd_state_options[];

/** Of a command that has no options of its own. */
extern const struct cmd_option cmd_no_options[];
/** The options of a command that prints records, for a struct cmd_answer_settings. */
extern const struct cmd_option cmd_answer_options[];

/** The options of a command with takes_list, for a struct cmd_common. */
extern const struct cmd_option cmd_list_options[];

/** The operands of a command, sorted. All zeros is none. */
struct cmd_operands {
    const char **paths;    /**< if there are more than those that were given */
    struct bw_buffer list; /**< of those in a file */
    const char *stray;     /**< the first path that is or may be an image; NULL: none is */
    bool stray_is_image;   /**< it has a superblock */
    bool nothing;          /**< only a file was to give paths, and there are none in it */
};

/** Tells images from paths, and reads more paths from the file of --files-from. */
struct bw_error *cmd_take_operands(const struct command *command, struct cmd_common *common,
                                   char **given, size_t count, struct cmd_operands *operands);
/** Says what may be meant by a path that is an image, if the exit status is that of a failure. */
void cmd_stray_image(const struct command *command, const struct cmd_operands *operands,
                     int status);
/** Frees what they hold. */
void cmd_free_operands(struct cmd_operands *operands);

/** Words that may be meant by a misspelt one, appended to a message as "; did you mean 'x' or 'y'".
 * All that is not named here begins as zeros. */
struct cmd_suggestion {
    struct bw_buffer *message;
    const char *word;   /**< what was written */
    const char *prefix; /**< of each word in the message: "" or "--" */
    unsigned count;     /**< of those appended */
};

/** Appends a word. */
void cmd_append_suggestion(struct cmd_suggestion *suggestion, const char *candidate);

/** Appends a word if it is similar to what was written. */
void cmd_suggest(struct cmd_suggestion *suggestion, const char *candidate);

/** Prints `word`, the reason why it is wrong, and the commands that may be meant to stderr. */
void cmd_print_unknown_command(const char *word, const char *reason);

/** The record of the rows that a command writes. */
const char *cmd_record_of(const struct command *command, const void *state);

/** All commands, those of a topic together; ends with NULL. The first is the default. */
extern const struct command *const cmd_table[];

/** Parses the arguments of a command and runs it; returns the exit status. argv[0] is skipped. */
int cmd_run(const struct command *command, int argc, char **argv);

/** Parses a decimal number from `minimum` to `maximum`; false if `text` is anything else. */
bool cmd_parse_number(const char *text, uint64_t minimum, uint64_t maximum, uint64_t *number);

/** Parses a size or an address: decimal digits with an optional unit (bw_parse_size()), or 0x and
 * hexadecimal digits. Moves on to what follows; false if there is none. */
bool cmd_parse_bytes(const char **text, uint64_t *bytes);

/** Parses ADDRESS[+LENGTH] with an end below 16E; without a length it is 0. BW_ERROR_USAGE. */
struct bw_error *cmd_parse_range(const char *text, uint64_t *address, uint64_t *length);

/** How the common options say that a file system is to be opened, without probes and a reporter;
 * the sandbox is entered then. */
struct bw_fs_options cmd_fs_options(const struct cmd_common *common);

/** Opens the file system and returns STATUS_OK; on failure prints why to stderr and returns the
 * exit status. */
int cmd_open(const struct cmd_common *common, struct cmd_session *session);

/** Opens it with bw_fs_open() or bw_fs_open_images(), and hands an error on instead of printing it.
 */
struct bw_error *cmd_try_open(const struct cmd_common *common,
                              struct bw_error *(*open_fs)(const struct bw_fs_options *options,
                                                          struct bw_fs **fs),
                              struct cmd_session *session);

/** Opens the file system of common->others, which is not part of the session: to be closed with
 * bw_fs_close(). The options of images and of graphs are for the first one alone. */
struct bw_error *cmd_open_other(const struct cmd_common *common, struct bw_fs **fs);

/** The same without reading any tree, which is enough to print the graph. */
int cmd_wire(const struct cmd_common *common, struct cmd_session *session);

/** The same with bw_fs_open_images(): for what superblocks tell. */
int cmd_open_images(const struct cmd_common *common, struct cmd_session *session);

/** Closes it, after a last statedump if that was asked for. Returns the exit status: STATUS_PARTIAL
 * if there was damage, an image was not used, or the statedump could not be written. */
int cmd_close(const struct cmd_common *common, struct cmd_session *session);

/** The same, whatever was found: STATUS_PARTIAL only if an output could not be written. */
int cmd_close_outputs(const struct cmd_common *common, struct cmd_session *session);

/** Prints a note, warning or damage to stderr; for a bw_reporter whose context is a struct
 * cmd_common. */
void cmd_tell(void *context, enum bw_severity severity, const struct bw_error *error);

/** Prints the error that ended a command to stderr, frees it, and returns the exit status for it.
 */
int cmd_fail(const struct cmd_common *common, struct bw_error *error);

/** The same for an error of opening; where there are several file systems, lists them. */
int cmd_fail_to_open(const struct cmd_common *common, struct bw_error *error);

/** The same for an error that came when the file system was open: STATUS_CANNOT if something was
 * asked for that is not there, STATUS_PARTIAL if the answer was cut off, as by a full disk. */
int cmd_fail_answer(const struct cmd_common *common, struct bw_error *error);

/** Opens common->statedump, if there is to be one, when it is known what will be read. `*statedump`
 * is left as it is if there is none. */
struct bw_error *cmd_statedump_open(const struct cmd_common *common, const struct bw_fs *planned,
                                    struct cmd_statedump **statedump);
/** From now on there is something to write. NULL is allowed here and below. */
void cmd_statedump_start(struct cmd_statedump *statedump, const struct bw_fs *fs);
/** Writes one now. Not for several threads at once. */
void cmd_statedump_write(struct cmd_statedump *statedump);
/** Closes it after a last statedump, if it was started. */
struct bw_error *cmd_statedump_stop(struct cmd_statedump *statedump);

/** Opens an output file other than stdout. BW_ERROR_USAGE if it is a file that `fs` reads, looks
 * like an image, or is the file `taken` (NULL: none). */
struct bw_error *cmd_open_output(const struct bw_fs *fs, const char *taken, const char *name,
                                 int *descriptor);

/** Writes all of it to a file. */
struct bw_error *cmd_write_file(int descriptor, const char *name, const char *bytes, size_t length);

/** Output to stdout, in which small pieces are gathered. All zeros is empty. */
struct cmd_output {
    struct bw_buffer gathered;
    bool at_once;    /**< do not gather: it is a terminal */
    long long since; /**< when the oldest gathered byte came, in nanoseconds (monotonic) */
};

/** Writes bytes to stdout; `context` is a struct cmd_output, so that this can be the consumer of a
 * walk. If stdout is a pipe without a reader, SIGPIPE ends the program, even if it was ignored. */
struct bw_error *cmd_write(void *context, const char *bytes, size_t length);

/** Writes what is left, and frees the memory. */
struct bw_error *cmd_flush(struct cmd_output *output);

/** Writes a whole text to stdout and frees it. Returns the exit status. */
int cmd_write_text(const struct cmd_common *common, struct bw_buffer *text);

/** Completes the last of the words that follow the name of the program; see cmd/complete/. */
int cmd_complete(char **words, size_t count);
/** The same for a line of bash up to the cursor; `breaks` is COMP_WORDBREAKS. */
int cmd_complete_bash(const char *breaks, const char *line);

/** Writes all tables of the program as one JSON document, from which scripts/make-docs makes the
 * manual and the pages in docs. Returns the exit status. */
int cmd_dump_tables(void);

#endif
