/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state of a shell, in the process that reads commands. This process never reads an image. */
#ifndef BW_CLI_SHELL_SHELL_H
#define BW_CLI_SHELL_SHELL_H

#include <sys/types.h>

#include "cli/command.h"
#include "cli/shell/channel.h"
#include "cli/shell/words.h"

/** A running shell. */
struct shell {
    struct cmd_common settings; /**< to open the file system; its generation can change */
    char *directory;            /**< an absolute path; only "/" ends with a '/' */
    char *subvolume;            /**< path where all paths begin; empty: the top-level subvolume */
    uint64_t generation;        /**< of the open file system */
    const char *target;         /**< folder of the host that `get` writes to */
    pid_t worker;               /**< 0: none runs */
    int channel;                /**< to the worker */
    bool was_open;              /**< the messages of opening were printed */
    bool is_interactive;        /**< commands come from a terminal */
    bool reads_stdin;           /**< commands come from stdin, so they cannot read it */
    bool is_over;               /**< `quit` was entered */
};

/* The processes of a shell: process.c */

/** From now on, SIGINT ends the command that runs next, and not the shell. */
void shell_catch_interrupts(void);

/** SIGINT until now does not end the next command. */
void shell_forget_interrupts(void);

/** Starts the worker if none runs; returns the exit status. */
int shell_start_worker(struct shell *shell);

/** Ends the worker and waits for it. The next request starts another one. */
void shell_end_worker(struct shell *shell);

/** Sends the words to the worker, which is started if necessary. Returns the exit status. `text`
 * gets the reply's text; it may be NULL. If the command cannot run in the worker, runs it in a
 * separate process. */
int shell_run_task(struct shell *shell, enum shell_task task, char **words, size_t count,
                   struct bw_buffer *text);

/** Runs a command in a separate process, which opens the images itself. */
int shell_run_apart(struct shell *shell, const struct command *command, char **words, size_t count);

/* Commands: builtins.c */

/** Commands that only the shell has. */
struct shell_builtin {
    const char *name, *operands, *summary;
    /** Runs it; returns the exit status. It may change the words. */
    int (*run)(struct shell *shell, struct shell_words *words);
    bool takes_subvolume; /**< its operand is a subvolume, not a directory */
};

/** The table; ends with an entry without a name. */
extern const struct shell_builtin shell_builtins[];

/** The builtin with a name; NULL if it does not exist. */
const struct shell_builtin *shell_find_builtin(const char *name);

/** Replaces a name that only the shell knows, such as find, by a command of the program. False if
 * memory runs out. */
bool shell_expand_name(struct shell_words *words);

/** Runs a command; returns the exit status. It may change the words. */
int shell_run(struct shell *shell, struct shell_words *words);

/* Reading lines: editor.c */

/** Appends the completions of the end of a line, as cmd_complete_in() returns them, and sets
 * `start`: where the last word begins. */
typedef void shell_completer(struct shell *shell, const char *line, struct bw_buffer *text,
                             size_t *start);

/** A line editor. */
struct shell_editor;

/** Creates an editor for a terminal; NULL if memory runs out. */
struct shell_editor *shell_editor_create(struct shell *shell, shell_completer *complete);
void shell_editor_destroy(struct shell_editor *editor);

/** Shows the prompt and reads a line; NULL at the end. The line ends with the next call. */
const char *shell_editor_read(struct shell_editor *editor, const char *prompt);

#endif
