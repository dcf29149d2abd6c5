/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The shell command: commands from a terminal, an option, a file or stdin, on images that are
 * opened once. */
#include "cli/shell/shell.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "cli/complete/complete.h"

struct shell_state {
    const char *commands; /* -c; NULL: none */
    const char *script;   /* -f; NULL: none */
    const char *target;
    bool stops; /* after the first command that fails */
};

static const struct cmd_option options[] = {
    {'c', "command", "COMMANDS", "run these commands, separated by semicolons or newlines",
     CMD_TEXT(struct shell_state, commands)},
    {'f', "file", "FILE", "run the commands in FILE; '-' is stdin",
     CMD_TEXT(struct shell_state, script)},
    {'e', "errexit", NULL, "end after the first command that fails",
     CMD_FLAG(struct shell_state, stops)},
    {'C', "directory", "DEST", "the directory that 'get' writes to (default: the current one)",
     CMD_TEXT(struct shell_state, target)},
    {0},
};

/* Completion. */

static void add_completion(struct bw_buffer *text, const char *value, const char *name)
{
    if (strncmp(value, name, strlen(value)) != 0)
        return;
    bw_buffer_append_byte(text, COMPLETE_WORD);
    bw_buffer_append(text, name, strlen(name) + 1);
    bw_buffer_append_byte(text, '\0');
}

/* Replaces a command of the shell by one of the program whose operands are completed alike. False
 * if nothing can be completed. */
static bool replace_builtin(struct shell_words *words)
{
    const struct shell_builtin *builtin = shell_find_builtin(words->items[0]);
    const char *like = !builtin ? NULL
                       : builtin->takes_subvolume || strstr(builtin->operands, "DIR") ||
                               strstr(builtin->operands, "PATH")
                           ? "ls"
                       : strstr(builtin->operands, "COMMAND") ? "help"
                                                              : "";
    if (!builtin || strcmp(like, "help") == 0)
        return shell_expand_name(words);
    if (builtin->takes_subvolume && !shell_words_insert(words, 1, "--subvol"))
        return false;
    char *copy = strdup(like);
    if (!copy)
        return false;
    free(words->items[0]);
    words->items[0] = copy;
    return *like;
}

/* Reads the last command of a line. Its last word is empty if the line ends with a space. */
static bool read_last(const char *line, struct shell_words *words, size_t *start)
{
    const char *text = line;
    bool good = true;
    do {
        shell_words_free(words);
        good = shell_words_read(words, &text);
    } while (good && *text);
    if (!good && !words->is_unfinished)
        return false;
    const bool within = words->count && (words->is_open || words->is_unfinished);
    *start = within ? (size_t)(words->last - line) : strlen(line);
    return within || shell_words_insert(words, words->count, "");
}

static void complete_line(struct shell *shell, const char *line, struct bw_buffer *text,
                          size_t *start)
{
    struct shell_words words = {.count = 0};
    if (read_last(line, &words, start)) {
        const char *value = words.items[0];
        const bool first = words.count == 1;
        for (size_t i = 0; first && shell_builtins[i].name; i++)
            if (strcmp(shell_builtins[i].name, "help") != 0)
                add_completion(text, value, shell_builtins[i].name);
        if (first) {
            add_completion(text, value, "find");
            add_completion(text, value, "tree");
        }
        if (first || replace_builtin(&words))
            shell_run_task(shell, SHELL_COMPLETE, words.items, words.count, text);
    }
    shell_words_free(&words);
}

/* Running. */

/* Runs all commands in a text; returns the worst exit status. */
static int run_text(struct shell *shell, const char *text, bool stops)
{
    int worst = STATUS_OK;
    while (*text && !shell->is_over && !(stops && worst)) {
        struct shell_words words = {.count = 0};
        int status = STATUS_OK;
        if (!shell_words_read(&words, &text)) {
            fprintf(stderr, "btrfs-walk: %s\n", words.problem);
            text += strcspn(text, "\n");
            status = STATUS_CANNOT;
        } else if (words.count) {
            status = shell_run(shell, &words);
        }
        shell_words_free(&words);
        worst = status > worst ? status : worst;
    }
    return worst;
}

static void append_prompt(const struct shell *shell, struct bw_buffer *prompt)
{
    prompt->length = 0;
    bw_escape_words(prompt, *shell->subvolume ? shell->subvolume : "5");
    bw_buffer_append_byte(prompt, ':');
    bw_escape_words(prompt, shell->directory);
    bw_buffer_format(prompt, " %" PRIu64 "> %c", shell->generation, '\0');
}

static int run_terminal(struct shell *shell)
{
    BW_AUTO_BUFFER struct bw_buffer prompt = {0};
    struct shell_editor *editor = shell_editor_create(shell, complete_line);
    const char *line = "";
    if (!editor)
        return cmd_fail(&shell->settings, bw_error_no_memory());
    shell_catch_interrupts();
    while (line && !shell->is_over) {
        append_prompt(shell, &prompt);
        line = prompt.failed ? NULL : shell_editor_read(editor, prompt.data);
        if (line)
            run_text(shell, line, false);
    }
    if (!line)
        putchar('\n');
    shell_editor_destroy(editor);
    return cmd_flush_stdout(&shell->settings);
}

static int run_script(struct shell *shell, const char *file, bool stops)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    struct bw_error *error = strcmp(file, "-") == 0 ? bw_buffer_read_all(&text, STDIN_FILENO)
                                                    : bw_buffer_read_file(&text, file);
    bw_buffer_append_byte(&text, '\0');
    if (!error && text.failed)
        error = bw_error_no_memory();
    if (!error && memchr(text.data, '\0', text.length - 1))
        error = bw_error_create(BW_ERROR_USAGE, "%s is not a script: it contains a NUL byte", file);
    return error ? cmd_fail(&shell->settings, error) : run_text(shell, text.data, stops);
}

static int run_shell(struct shell *shell, const struct shell_state *state)
{
    const int status = shell_start_worker(shell);
    return status                  ? status
           : state->commands       ? run_text(shell, state->commands, state->stops)
           : state->script         ? run_script(shell, state->script, state->stops)
           : shell->is_interactive ? run_terminal(shell)
                                   : run_script(shell, "-", state->stops);
}

static int run(const struct cmd_common *common, void *settings)
{
    const struct shell_state *state = settings;
    struct shell shell = {
        .settings = *common,
        .directory = strdup("/"),
        .subvolume = strdup(""),
        .target = state->target ? state->target : ".",
        .is_interactive = !state->commands && !state->script && isatty(STDIN_FILENO),
        .reads_stdin = !state->commands && (!state->script || strcmp(state->script, "-") == 0),
    };
    int status = STATUS_CANNOT;
    if (state->commands && state->script)
        cmd_fail(common, bw_error_create(BW_ERROR_USAGE, "-c and -f exclude each other"));
    else if (!shell.directory || !shell.subvolume)
        cmd_fail(common, bw_error_no_memory());
    else
        status = run_shell(&shell, state);
    shell_end_worker(&shell);
    free(shell.directory);
    free(shell.subvolume);
    return status;
}

static const struct cmd_status meanings[] = {
    {STATUS_OK, "All commands succeeded, or the shell was interactive."},
    {STATUS_PARTIAL, "The worst exit status of a command is 1."},
    {STATUS_CANNOT, "Wrong usage, or the file system cannot be opened; or the worst status is 2."},
    {STATUS_UNSUPPORTED, "The image needs a feature that is not supported; the message names it."},
    {128, "A signal has ended a command: 128 and the number of the signal."},
    {0},
};

const struct command cmd_shell = {
    .name = "shell",
    .topic = cmd_topic_program,
    .operands = "IMAGE...",
    .summary = "Runs commands on an open file system, also from a script.",
    .details =
        "\n"
        "Opens the images once and runs commands on them. Each command of btrfs-walk works\n"
        "with its options; IMAGE is left out, and relative paths begin in the current\n"
        "directory. cd, pwd, subvolume, generation, get and help are further commands; 'help'\n"
        "lists all. Words are quoted as in sh(1), # begins a comment, and ; separates commands.\n"
        "There are no pipes, redirections, variables or patterns.\n\n"
        "A terminal has a prompt with the subvolume, the directory and the generation, and\n"
        "completion with Tab. Ctrl-C ends the running command, Ctrl-D the shell. Without a\n"
        "terminal, commands are read from stdin. A script continues after a command that\n"
        "fails; the exit status is the worst one.\n\n"
        "A confined process reads the images and runs the commands. Commands that write files\n"
        "or read other files run in processes of their own, which open the images again.\n",
    .examples = "  btrfs-walk shell disk.img                            prompts for commands\n"
                "  btrfs-walk shell -c 'cd /docs; ls -l; stat a b' disk.img\n"
                "  btrfs-walk shell -f commands.txt disk1.img disk2.img  a script\n",
    .options = options,
    .meanings = meanings,
    .run = run,
    .state_size = sizeof(struct shell_state),
};
