/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text of --help, made from the table of a command, for a terminal of 80 columns. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
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
    printf("\n'btrfs-walk COMMAND --help' describes a command.\n");
}

void cmd_help(const struct command *command, bool all)
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
