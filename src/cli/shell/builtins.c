/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands that only the shell has. The commands of the program get its subvolume and directory. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "cli/common/paths.h"
#include "cli/shell/shell.h"

static int usage_error(const char *message)
{
    fprintf(stderr, "btrfs-walk: %s\n", message);
    return STATUS_CANNOT;
}

/* Paths. */

static void replace_text(char **text, char *value)
{
    free(*text);
    *text = value;
}

/* Whether the directory of the shell exists; otherwise the worker prints why. */
static bool is_directory_there(struct shell *shell)
{
    return shell_run_task(shell, SHELL_ENTER, NULL, 0, NULL) == STATUS_OK;
}

static int change_directory(struct shell *shell, struct shell_words *words)
{
    if (words->count > 2)
        return usage_error("cd accepts one directory");
    char *directory = cmd_join_path(shell->directory, words->count > 1 ? words->items[1] : "/");
    if (!directory)
        return usage_error("out of memory");
    char *before = shell->directory;
    shell->directory = directory;
    if (!is_directory_there(shell)) {
        shell->directory = before;
        free(directory);
        return STATUS_PARTIAL;
    }
    free(before);
    return STATUS_OK;
}

static void print_name(const char *name)
{
    BW_AUTO_BUFFER struct bw_buffer line = {0};
    bw_escape_words(&line, name);
    printf("%.*s\n", (int)line.length, line.data ? line.data : "");
}

static int print_directory(struct shell *shell, struct shell_words *words)
{
    if (words->count > 1)
        return usage_error("pwd accepts no operands");
    print_name(shell->directory);
    return STATUS_OK;
}

/* The subvolume. */

static int change_subvolume(struct shell *shell, struct shell_words *words)
{
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    if (words->count > 2)
        return usage_error("subvolume accepts one name or id");
    if (words->count == 1) {
        print_name(*shell->subvolume ? shell->subvolume : "/");
        return STATUS_OK;
    }
    char *before = shell->subvolume;
    shell->subvolume = words->items[1];
    const int status = shell_run_task(shell, SHELL_SUBVOLUME, NULL, 0, &path);
    shell->subvolume = before;
    if (status != STATUS_OK)
        return STATUS_PARTIAL;
    bw_buffer_append_byte(&path, '\0');
    char *name = path.failed ? NULL : strdup(strcmp(path.data, "/") == 0 ? "" : path.data);
    char *directory = strdup("/");
    if (!name || !directory) {
        free(name);
        free(directory);
        return usage_error("out of memory");
    }
    replace_text(&shell->subvolume, name);
    replace_text(&shell->directory, directory);
    return STATUS_OK;
}

/* The generation. */

/* The directory, or the subvolume, may not exist in another generation. */
static void leave_missing_places(struct shell *shell)
{
    if (is_directory_there(shell))
        return;
    fprintf(stderr, "btrfs-walk: the current directory is now /\n");
    shell->directory[1] = '\0';
    if (!is_directory_there(shell))
        shell->subvolume[0] = '\0';
}

static int change_generation(struct shell *shell, struct shell_words *words)
{
    const struct bw_generation_choice before = shell->settings.input.state;
    struct bw_generation_choice state = {.generation = 0};
    if (words->count > 2)
        return usage_error("generation accepts one number, or 'current'");
    if (words->count == 1) {
        printf("%" PRIu64 "\n", shell->generation);
        return STATUS_OK;
    }
    if (strcmp(words->items[1], "current") != 0 &&
        !cmd_parse_number(words->items[1], 1, UINT64_MAX, &state.generation))
        return usage_error("generation accepts a number ('roots' lists them), or 'current'");
    shell_end_worker(shell);
    shell->settings.input.state = state;
    shell->was_open = false;
    const int status = shell_start_worker(shell);
    shell->was_open = true;
    if (status == STATUS_OK)
        leave_missing_places(shell);
    else
        shell->settings.input.state = before;
    return status;
}

/* Extracting. */

static bool rename_command(struct shell_words *words, const char *name)
{
    char *copy = strdup(name);
    if (copy)
        replace_text(&words->items[0], copy);
    return copy != NULL;
}

static size_t count_components(const char *path)
{
    size_t count = 0;
    for (; *path; path++)
        count += *path == '/' && path[1];
    return count;
}

/* Whether all operands are below the current directory. Arguments of options count as operands. */
static bool stays_below(const struct shell_words *words)
{
    bool stays = true;
    for (size_t i = 1; i < words->count; i++)
        stays &= words->items[i][0] != '/' && !strstr(words->items[i], "..");
    return stays;
}

/* get PATH... is extract -C TARGET PATH..., but paths below the current directory are created
 * without the components of the directory. */
static int get(struct shell *shell, struct shell_words *words)
{
    char strip[64];
    const size_t components = count_components(shell->directory);
    if (words->count < 2)
        return usage_error("no path given; 'get /' extracts everything");
    snprintf(strip, sizeof strip, "--strip-components=%zu", components);
    const bool good = (!components || !stays_below(words) || shell_words_insert(words, 1, strip)) &&
                      shell_words_insert(words, 1, shell->target) &&
                      shell_words_insert(words, 1, "-C") && rename_command(words, cmd_extract.name);
    return good ? shell_run(shell, words) : usage_error("out of memory");
}

/* Help. */

static int help(struct shell *shell, struct shell_words *words)
{
    for (size_t i = 1; i < words->count; i++) {
        const struct shell_builtin *builtin = shell_find_builtin(words->items[i]);
        if (builtin)
            printf("%s %s\n%s\n", builtin->name, builtin->operands, builtin->summary);
    }
    if (words->count > 1)
        return words->count == 2 && shell_find_builtin(words->items[1])
                   ? STATUS_OK
                   : shell_run_apart(shell, &cmd_help, words->items, words->count);
    puts("Commands of the shell:");
    for (const struct shell_builtin *builtin = shell_builtins; builtin->name; builtin++) {
        const int length = printf("  %s %s", builtin->name, builtin->operands);
        printf("%*s%s\n", length < 26 ? 26 - length : 1, "", builtin->summary);
    }
    puts("\nfind is walk below the current directory; tree is ls -R. All commands of btrfs-walk\n"
         "work, without IMAGE; 'help COMMAND' describes one:");
    for (size_t i = 0; cmd_table[i]; i++)
        if (cmd_table[i] != &cmd_shell)
            printf("  %-23s %s\n", cmd_table[i]->name, cmd_table[i]->summary);
    return STATUS_OK;
}

static int quit(struct shell *shell, struct shell_words *words)
{
    (void)words;
    shell->is_over = true;
    return STATUS_OK;
}

const struct shell_builtin shell_builtins[] = {
    {"cd", "[DIR]", "Change the current directory; without DIR, to /.", change_directory, false},
    {"pwd", "", "Print the current directory.", print_directory, false},
    {"subvolume", "[NAME|ID]", "Begin all paths at a subvolume; '/': the top-level one.",
     change_subvolume, true},
    {"generation", "[N|current]", "Open an older generation, or the current one again.",
     change_generation, false},
    {"get", "PATH...", "Extract files and directories to the folder of -C.", get, false},
    {"help", "[COMMAND...]", "List the commands, or describe one.", help, false},
    {"quit", "", "End the shell, like exit and Ctrl-D.", quit, false},
    {"exit", "", "End the shell.", quit, false},
    {0},
};

const struct shell_builtin *shell_find_builtin(const char *name)
{
    for (const struct shell_builtin *builtin = shell_builtins; builtin->name; builtin++)
        if (strcmp(builtin->name, name) == 0)
            return builtin;
    return NULL;
}

/* Commands of the program. */

bool shell_expand_name(struct shell_words *words)
{
    if (words->count && strcmp(words->items[0], "find") == 0)
        return rename_command(words, "walk");
    if (words->count && strcmp(words->items[0], "tree") == 0)
        return shell_words_insert(words, 1, "-R") && rename_command(words, "ls");
    return true;
}

/* A pattern for everything below a directory. */
static void append_pattern(struct bw_buffer *text, const char *directory)
{
    for (; *directory; directory++) {
        if (strchr("*?[\\", *directory))
            bw_buffer_append_byte(text, '\\');
        bw_buffer_append_byte(text, *directory);
    }
    bw_buffer_append(text, "/*", 3);
}

/* The tests of the user are in parentheses if one of them is an alternative. */
static bool find_below(const struct shell *shell, struct shell_words *words)
{
    BW_AUTO_BUFFER struct bw_buffer pattern = {0};
    bool has_or = false;
    if (strcmp(shell->directory, "/") == 0)
        return true;
    for (size_t i = 1; i < words->count; i++)
        has_or |= strcmp(words->items[i], "-o") == 0 || strcmp(words->items[i], "-or") == 0 ||
                  strcmp(words->items[i], "--or") == 0;
    append_pattern(&pattern, shell->directory);
    return !pattern.failed &&
           (!has_or ||
            (shell_words_insert(words, words->count, ")") && shell_words_insert(words, 1, "("))) &&
           shell_words_insert(words, 1, pattern.data) && shell_words_insert(words, 1, "--path");
}

/* Options that come later take precedence, so the user can choose another subvolume. */
static bool add_subvolume(const struct shell *shell, const struct command *command,
                          struct shell_words *words)
{
    BW_AUTO_BUFFER struct bw_buffer option = {0};
    if (!*shell->subvolume || !(cmd_works_on_paths(command) || command == cmd_table[0]))
        return true;
    bw_buffer_format(&option, "--subvol=%s%c", shell->subvolume, '\0');
    return !option.failed && shell_words_insert(words, 1, option.data);
}

static int run_command(struct shell *shell, struct shell_words *words)
{
    const bool finds = strcmp(words->items[0], "find") == 0;
    if (!shell_expand_name(words) || (finds && !find_below(shell, words)))
        return usage_error("out of memory");
    const struct command *command = cmd_find(words->items[0]);
    if (!command) {
        cmd_print_unknown_command(words->items[0], "is not a command");
        return STATUS_CANNOT;
    }
    if (command == &cmd_shell)
        return usage_error("this is a shell already");
    if (!add_subvolume(shell, command, words))
        return usage_error("out of memory");
    return command->needs_no_image
               ? shell_run_apart(shell, command, words->items, words->count)
               : shell_run_task(shell, SHELL_RUN, words->items, words->count, NULL);
}

int shell_run(struct shell *shell, struct shell_words *words)
{
    const struct shell_builtin *builtin = shell_find_builtin(words->items[0]);
    const int status = builtin ? builtin->run(shell, words) : run_command(shell, words);
    fflush(stdout);
    return status;
}
