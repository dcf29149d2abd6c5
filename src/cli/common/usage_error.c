/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages about wrong command lines: an error in an option, with the command whose --help to read;
 * a word that is no command, with those that are similar, or that other programs call so.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/nearest.h"
#include "cli/command.h"

int cmd_usage_error(const struct command *command, const char *reason, const char *argument)
{
    BW_AUTO_BUFFER struct bw_buffer shown = {0};
    bw_escape_words(&shown, reason);
    if (argument) {
        bw_buffer_format(&shown, ": ");
        bw_escape_words(&shown, argument);
    }
    fprintf(stderr, "btrfs-walk: %s\nTry 'btrfs-walk ",
            shown.length ? bw_buffer_text(&shown) : "out of memory");
    if (command != cmd_table[0])
        fprintf(stderr, "%s ", command->name);
    fprintf(stderr, "--help'.\n");
    return STATUS_CANNOT;
}

/* "; did you mean 'x' or 'y'" */
static void append_suggestion(struct cmd_suggestion *suggestion, const char *candidate)
{
    bw_buffer_format(suggestion->message, "%s'%s%s'",
                     suggestion->count++ ? " or " : "; did you mean ", suggestion->prefix,
                     candidate);
}

void cmd_suggest(struct cmd_suggestion *suggestion, const char *candidate)
{
    if (bw_is_suggestion(suggestion->word, candidate))
        append_suggestion(suggestion, candidate);
}

/* Names that other programs, or users, give to commands. */
static const struct {
    const char *word;
    const char *commands[2];
} others[] = {
    {"archive", {"tar"}},
    {"compsize", {"compression"}},
    {"cp", {"extract"}},
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
    {"recover", {"rescue", "deleted --extract"}},
    {"restore", {"extract"}},
    {"scrub", {"check --data"}},
    {"search", {"walk --name"}},
    {"sha256sum", {"sum"}},
    {"snapshots", {"subvolumes --snapshots"}},
    {"tree", {"ls -R", "subvolumes --tree"}},
    {"undelete", {"deleted --extract"}},
    {"verify", {"check", "check --data"}},
    {"version", {"--version"}},
};

void cmd_print_unknown_command(const char *word, const char *reason, bool for_help)
{
    BW_AUTO_BUFFER struct bw_buffer line = {0};
    const char *instead = cmd_instead_of_command(word);
    if (instead) {
        fprintf(stderr, "btrfs-walk: the command %s was removed: %s\n", word, instead);
        return;
    }
    bw_escape_words(&line, word);
    bw_buffer_format(&line, " %s", reason);
    struct cmd_suggestion suggestion = {.message = &line, .word = word, .prefix = ""};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        for (size_t k = 0; strcmp(others[i].word, word) == 0 && k < 2; k++)
            if (others[i].commands[k])
                append_suggestion(&suggestion, others[i].commands[k]);
    const bool is_known = suggestion.count;
    for (size_t i = 0; !is_known && cmd_table[i]; i++)
        cmd_suggest(&suggestion, cmd_table[i]->name);
    const char *subject, *about;
    for (size_t i = 0; for_help && !is_known && (subject = cmd_help_word(i, &about)); i++)
        cmd_suggest(&suggestion, subject);
    if (suggestion.count)
        bw_buffer_append_byte(&line, '?');
    fprintf(stderr, "btrfs-walk: %s\n'btrfs-walk help' lists all commands.\n",
            line.length ? bw_buffer_text(&line) : "out of memory");
}
