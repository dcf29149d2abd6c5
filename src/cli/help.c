/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The help command: the list of all commands, or the help of the given ones (common/help.c). */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/command.h"

struct help {
    bool all;
};

static const struct cmd_option options[] = {
    {'a', "all", NULL, "also print the options that many commands share, as --help=all does",
     CMD_FLAG(struct help, all)},
    {0},
};

/* Words that the page of a command or topic describes. */
enum { MOST_WORDS = 14 };
static const struct {
    const char *page, *words[MOST_WORDS];
} subjects[] = {
    {"bodyfile", {"timeline"}},
    {"check", {"bitrot", "ci", "fsck", "junit", "scrub", "verify"}},
    {"deleted", {"undelete"}},
    {"devices", {"raid"}},
    {"diff", {"backup", "compare"}},
    {"extract", {"exfat", "fat", "ntfs", "usb", "windows"}},
    {"graph", {"layers"}},
    {"images",
     {"compressed", "e01", "encryption", "ewf", "gpt", "lvm", "md", "mdadm", "nas", "partition",
      "partitions", "qcow2", "synology", "vmdk"}},
    {"mount", {"grep", "search"}},
    {"options", {"colour", "columns", "fsid", "json", "luks", "progress"}},
    {"qgroups", {"quota"}},
    {"rescue", {"recover", "recovery"}},
    {"subvolumes", {"snapper", "snapshot", "snapshots", "timeshift"}},
    {"sum", {"hashes"}},
    {"xattr", {"acl", "capabilities"}},
};

enum { SUBJECTS = sizeof subjects / sizeof *subjects };

/* The word with a number, from 0, and its page; NULL after the last one. */
static const char *find_subject(size_t number, const char **page)
{
    for (size_t i = 0; i < SUBJECTS; i++)
        for (size_t k = 0; k < MOST_WORDS && subjects[i].words[k]; k++)
            if (number-- == 0) {
                *page = subjects[i].page;
                return subjects[i].words[k];
            }
    return NULL;
}

const char *cmd_help_word(size_t number, const char **about)
{
    size_t topics = 0;
    for (const char *topic; (topic = cmd_help_topic(topics, about)); topics++)
        if (topics == number)
            return topic;
    return find_subject(number - topics, about);
}

static int run(const struct cmd_common *common, void *state)
{
    const struct help *help = state;
    signal(SIGPIPE, SIG_DFL); /* let SIGPIPE end the program: only stdout is written from here on */
    for (size_t i = 0; i < common->input.image_count; i++) {
        const char *word = common->input.images[i], *topic, *summary;
        const char *subject, *page;
        for (size_t k = 0; (subject = find_subject(k, &page)); k++)
            if (strcasecmp(subject, word) == 0)
                word = page;
        const struct command *command = cmd_find(word);
        size_t k = 0;
        while ((topic = cmd_help_topic(k, &summary)) && strcmp(topic, word) != 0)
            k++;
        if (command) {
            cmd_show_help(command, NULL, help->all ? "all" : NULL);
        } else if (topic) {
            cmd_show_help(cmd_table[0], NULL, topic);
        } else {
            cmd_print_unknown_command(word, "is neither a command nor a topic of help", true);
            return STATUS_CANNOT;
        }
    }
    if (!common->input.image_count) {
        const char *heading = NULL, *topic, *summary;
        puts("Usage: btrfs-walk [COMMAND] [OPTIONS] IMAGE...\n"
             "Reads an unmounted btrfs file system. Without COMMAND, it lists all files (walk).\n\n"
             "Examples:\n"
             "  btrfs-walk disk.img                          list all files\n"
             "  btrfs-walk check disk.img                    find damage, and affected files\n"
             "  btrfs-walk extract -C /mnt/new disk.img      save everything\n"
             "  btrfs-walk deleted disk.img                  list deleted files\n"
             "  btrfs-walk usage disk.img                    why is it full?");
        for (size_t i = 0; cmd_table[i]; heading = cmd_table[i++]->topic) {
            if (cmd_table[i]->topic != heading)
                printf("\n%s:\n", cmd_table[i]->topic);
            printf("  %-12s %s\n", cmd_table[i]->name, cmd_table[i]->summary);
        }
        puts("\nbtrfs-walk help COMMAND describes a command. btrfs-walk help TOPIC describes:");
        for (size_t i = 0; (topic = cmd_help_topic(i, &summary)); i++)
            printf("   %-12s%s\n", topic, summary);
    }
    return cmd_flush_stdout(common);
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
    .operands = "[COMMAND|TOPIC...]",
    .summary = "Lists all commands, or describes a command or topic.",
    .details =
        "\n'btrfs-walk help COMMAND' and 'btrfs-walk COMMAND --help' print the same. The topics\n"
        "are options, filters and images.\n",
    .examples = "  btrfs-walk help          list all commands\n"
                "  btrfs-walk help check    what check does, and its options\n"
                "  btrfs-walk help options  the options that commands share\n",
    .options = options,
    .meanings = meanings,
    .run = run,
    .state_size = sizeof(struct help),
    .needs_no_image = true,
};
