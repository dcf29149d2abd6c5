/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text of --help, made from the table of a command, for a terminal of 80 columns; the help
 * command, which prints the same; and which command may be meant by a word that is none.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "cli/common/options.h"
#include "cli/graph/page.h"

enum { INDENT = 29, WIDTH = 79 };

const struct cmd_status cmd_statuses[] = {
    {STATUS_OK, "The answer is complete, even if the file system is degraded or has bad copies of "
                "which good ones were found."},
    {STATUS_PARTIAL, "Part of the answer is missing: lost blocks, an image that was not used, a "
                     "path that does not exist, a full disk."},
    {STATUS_CANNOT, "Wrong usage, or no file system that can be opened."},
    {STATUS_UNSUPPORTED, "The image needs a feature that is not supported; the message names it."},
    {0},
};

/* Words that begin at column `indent` of a line that is there already. */
static void print_words(const char *words, size_t length, size_t indent)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    page_append_words(&text, words, length, indent, WIDTH);
    printf("%.*s\n", (int)text.length, text.data ? text.data : "");
}

/* A paragraph is filled; one with lines that are indented is printed as it is. */
static void print_paragraph(const char *text, size_t length)
{
    if (memmem(text, length, "\n ", 2) || *text == ' ')
        printf("%.*s\n", (int)length, text);
    else
        print_words(text, length, 0);
}

static void print_details(const char *text)
{
    while (text += strspn(text, "\n"), *text) {
        const char *end = strstr(text, "\n\n");
        size_t length =
            end ? (size_t)(end - text) : strlen(text) - (text[strlen(text) - 1] == '\n');
        putchar('\n');
        print_paragraph(text, length);
        text += length;
    }
}

static void print_option(const struct cmd_option_list *list, size_t number)
{
    const struct cmd_option *option = list->items[number].option;
    const char *argument = option->argument ? option->argument : "";
    char left[64], letter[8] = "    ";
    if (option->letter && cmd_find_letter(list, option->letter) == number)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    snprintf(left, sizeof left, "%s--%s%s%s", letter, option->name,
             *argument && *argument != '[' ? " " : "", argument);
    if (strlen(left) > INDENT - 4)
        printf("  %s\n%*s", left, INDENT, "");
    else
        printf("  %-*s ", INDENT - 3, left);
    print_words(option->description, strlen(option->description), INDENT);
}

static bool have_same_heading(const char *heading, const char *other)
{
    return heading == other || (heading && other && strcmp(heading, other) == 0);
}

/* The options of a heading, at the first of them. */
static void print_heading(const struct cmd_option_list *list, size_t first)
{
    const char *heading = list->items[first].heading;
    for (size_t i = 0; i < first; i++)
        if (have_same_heading(list->items[i].heading, heading))
            return;
    printf("\n%s:\n", heading ? heading : "Options");
    for (size_t i = first; i < list->count; i++)
        if (have_same_heading(list->items[i].heading, heading))
            print_option(list, i);
}

static void print_statuses(const struct command *command)
{
    const struct cmd_status *status = command->meanings ? command->meanings : cmd_statuses;
    printf("\nExit status:\n");
    for (; status->meaning; status++) {
        printf("  %-4d", status->status);
        print_words(status->meaning, strlen(status->meaning), 6);
    }
}

static void print_commands(void)
{
    const char *topic = NULL;
    for (size_t i = 0; cmd_table[i]; topic = cmd_table[i++]->topic) {
        if (cmd_table[i]->topic != topic)
            printf("\n%s:\n", cmd_table[i]->topic);
        printf("  %-12s ", cmd_table[i]->name);
        print_words(cmd_table[i]->summary, strlen(cmd_table[i]->summary), 15);
    }
    printf("\n'btrfs-walk help COMMAND' describes a command.\n");
}

void cmd_print_help(const struct command *command, bool all)
{
    bool is_default = command == cmd_table[0], hidden = false;
    const struct cmd_option_list list = cmd_options_of(command, NULL, NULL);
    printf("Usage: btrfs-walk %s%s%s [OPTIONS] %s\n", is_default ? "[" : "", command->name,
           is_default ? "]" : "", command->operands);
    print_words(command->summary, strlen(command->summary), 0);
    print_details(command->details);
    for (size_t i = 0; i < list.count; i++) {
        if (all || !list.items[i].rare || command->topic == cmd_topic_program)
            print_heading(&list, i);
        else
            hidden = true;
    }
    print_statuses(command);
    printf("\nExamples:\n%s", command->examples);
    if (is_default)
        print_commands();
    if (hidden)
        printf("%sOptions of layers and probes are shown by --help=all.\n", is_default ? "" : "\n");
}

/* Commands that do what other programs, or users, call by another name. */
static const struct {
    const char *word;
    const char *commands[2];
} others[] = {
    {"archive", {"tar"}},
    {"compsize", {"compression"}},
    {"cp", {"extract"}},
    {"copy", {"extract"}},
    {"df", {"usage"}},
    {"dump-super", {"super"}},
    {"dump-tree", {"dump"}},
    {"export", {"extract", "tar"}},
    {"files", {"walk"}},
    {"find", {"walk"}},
    {"fsck", {"check"}},
    {"generations", {"roots"}},
    {"getfattr", {"xattr"}},
    {"grep", {"mount", "cat"}},
    {"heatmap", {"picture --by heatmap"}},
    {"history", {"versions", "roots"}},
    {"list", {"ls", "walk"}},
    {"md5sum", {"sum"}},
    {"recover", {"extract", "deleted --extract"}},
    {"rescue", {"extract", "extract --scan"}},
    {"restore", {"extract"}},
    {"scrub", {"check --data"}},
    {"search", {"walk --name"}},
    {"send", {"tar", "diff"}},
    {"sha256sum", {"sum"}},
    {"snapshots", {"subvolumes --snapshots"}},
    {"tree", {"ls -R", "subvolumes --tree"}},
    {"undelete", {"deleted --extract"}},
    {"verify", {"check", "check --data"}},
    {"version", {"--version"}},
};

static void suggest_commands(struct cmd_suggestion *suggestion)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        for (size_t k = 0; strcmp(others[i].word, suggestion->word) == 0 && k < 2; k++)
            if (others[i].commands[k])
                cmd_append_suggestion(suggestion, others[i].commands[k]);
    const bool is_known = suggestion->count;
    for (size_t i = 0; !is_known && cmd_table[i]; i++)
        cmd_suggest(suggestion, cmd_table[i]->name);
}

void cmd_print_unknown_command(const char *word, const char *reason)
{
    BW_AUTO_BUFFER struct bw_buffer line = {0};
    bw_escape_words(&line, word);
    bw_buffer_format(&line, " %s", reason);
    struct cmd_suggestion suggestion = {.message = &line, .word = word, .prefix = ""};
    suggest_commands(&suggestion);
    fprintf(stderr, "btrfs-walk: %.*s%s\n'btrfs-walk help' lists all commands.\n", (int)line.length,
            line.data ? line.data : "", suggestion.count ? "?" : "");
}

static int print_command_help(const char *name, bool all)
{
    size_t i = 0;
    while (cmd_table[i] && strcmp(cmd_table[i]->name, name) != 0)
        i++;
    if (cmd_table[i]) {
        cmd_print_help(cmd_table[i], all);
        return STATUS_OK;
    }
    cmd_print_unknown_command(name, "is no command");
    return STATUS_CANNOT;
}

struct help_state {
    bool all;
};

static const struct cmd_option options[] = {
    {'a', "all", NULL, "also print options of layers and probes, as --help=all does",
     CMD_FLAG(struct help_state, all)},
    {0},
};

static int run(const struct cmd_common *common, void *state)
{
    const struct help_state *help = state;
    int status = STATUS_OK;
    signal(SIGPIPE, SIG_DFL); /* nothing but a reader that has gone can end this */
    for (size_t i = 0; status == STATUS_OK && i < common->image_count; i++)
        status = print_command_help(common->images[i], help->all);
    if (!common->image_count) {
        puts("Usage: btrfs-walk [COMMAND] [OPTIONS] IMAGE...\n"
             "Reads an unmounted btrfs file system. Without COMMAND, it lists all files (walk).");
        print_commands();
    }
    return status == STATUS_OK ? cmd_flush_stdout(common) : status;
}

static const struct cmd_status meanings[] = {
    {STATUS_OK, "The help was printed."},
    {STATUS_PARTIAL, "The output cannot be written."},
    {STATUS_CANNOT, "Wrong usage, or no such command."},
    {0},
};

const struct command cmd_help = {
    .name = "help",
    .topic = cmd_topic_program,
    .operands = "[COMMAND...]",
    .summary = "Lists all commands, or describes a command.",
    .details = "\n'btrfs-walk help COMMAND' and 'btrfs-walk COMMAND --help' print the same.\n",
    .examples = "  btrfs-walk help                              list all commands\n"
                "  btrfs-walk help check                        what check does, and its options\n",
    .options = options,
    .meanings = meanings,
    .run = run,
    .state_size = sizeof(struct help_state),
    .needs_no_image = true,
};
