/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --help, for a terminal of 80 columns. The help of a command has its usage, summary, examples, its
 * own options, details and exit statuses. The options that it shares with other commands are on
 * pages of their own, the topics; --help=all appends them.
 */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/graph/page.h"

/* Texts that are printed apart from the commands that they concern. */
struct help_topic {
    const char *name;
    const char *summary;
    const char *text;        /* before the options */
    const char *headings[7]; /* headings of these options; ends with NULL */
};

static const struct help_topic topics[] = {
    {"options",
     "common options, of images, columns, JSON, layers, messages",
     "",
     {"Images", "Generations", "Columns and JSON", "Layers", "Probes", "General", NULL}},
    {"filters",
     "which files: --name, --type, --size and others, as in find(1)",
     "\n"
     "The filters are those of find(1) and may be written with one dash, as in find. A file must\n"
     "meet all of them; of several patterns for one filter, such as --name, one is enough. With\n"
     "--type, directories and other types are listed as find shows them; subvolumes are\n"
     "directories.\n",
     {"Filters", NULL}},
    {"images",
     "what IMAGE can be: files, disks, containers, servers",
     "\n"
     "IMAGE is an image file, a block device or the address of a server. Several of them are the\n"
     "devices of one file system, in any order. They are opened read-only.\n\n"
     "  disk.img /dev/sdb1            an image file, a partition, a disk with partitions\n"
     "  a.img b.img c.img             the devices of one file system, or the disks of an MD\n"
     "                                array or of a volume group (LVM), as in a NAS\n"
     "  laptop.img                    also encrypted, with --key-file or a passphrase\n"
     "  disk.qcow2 disk.vmdk          also vdi, vhd and vhdx; with qemu-nbd\n"
     "  disk.img.zst disk.img.gz      also lz4 and xz\n"
     "  nbd://server/disk             an NBD server; also nbds:// and nbd+unix://\n"
     "  https://server/disk.img       also s3://bucket/key; with nbdkit\n"
     "  rbd:pool/disk                 a Ceph cluster; with qemu-nbd\n\n"
     "Of several partitions with a btrfs, --partition selects one. Mount an EWF image (E01) with\n"
     "ewfmount, and give the file that it shows. 'btrfs-walk show IMAGE...' lists what is on\n"
     "many disks.\n",
     {NULL}},
};

enum { INDENT = 29, WIDTH = 79, TOPICS = sizeof topics / sizeof *topics };

/* Appends words to the current line, wrapping at column `indent`. */
static void print_words(const char *words, size_t length, size_t indent)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    page_append_words(&text, words, length, indent, WIDTH);
    if (text.failed)
        printf("%.*s\n", (int)length, words); /* better in long lines than not at all */
    else
        printf("%s\n", bw_buffer_text(&text));
}

/* Prints paragraphs, wrapped; those with indented lines are printed unchanged. */
static void print_paragraphs(const char *text)
{
    while (text += strspn(text, "\n"), *text) {
        const char *end = strstr(text, "\n\n");
        size_t length = strlen(text) - (text[strlen(text) - 1] == '\n');
        if (end)
            length = (size_t)(end - text);
        putchar('\n');
        if (memmem(text, length, "\n ", 2) || *text == ' ')
            printf("%.*s\n", (int)length, text);
        else
            print_words(text, length, 0);
        text += length;
    }
}

static void print_left(const char *left, const char *right)
{
    if (strlen(left) > INDENT - 4)
        printf("  %s\n%*s", left, INDENT, "");
    else
        printf("  %-*s ", INDENT - 3, left);
    print_words(right, strlen(right), INDENT);
}

static bool is_below(const struct cmd_option_list *list, size_t number, const char *heading)
{
    const char *its = list->items[number].heading;
    return its == heading || (its && heading && strcmp(its, heading) == 0);
}

/* Prints the options below a heading; NULL: the command's own. */
static void print_heading(const struct cmd_option_list *list, const char *heading)
{
    bool any = false;
    for (size_t i = 0; i < list->count; i++) {
        const struct cmd_option *option = list->items[i].option;
        const char *argument = option->argument ? option->argument : "";
        char left[64], letter[8] = "    ";
        if (!is_below(list, i, heading))
            continue;
        if (!any)
            printf("\n%s:\n", heading ? heading : "Options");
        any = true;
        if (option->letter && cmd_find_letter(list, option->letter) == i)
            snprintf(letter, sizeof letter, "-%c, ", option->letter);
        snprintf(left, sizeof left, "%s--%s%s%s", letter, option->name,
                 *argument && *argument != '[' ? " " : "", argument);
        print_left(left, option->description);
    }
}

/* Whether a command has options of a topic. */
static bool has_topic(const struct cmd_option_list *list, const struct help_topic *topic)
{
    for (size_t i = 0; i < list->count; i++)
        for (size_t k = 0; topic->headings[k]; k++)
            if (is_below(list, i, topic->headings[k]))
                return true;
    return false;
}

static void print_topic_options(const struct cmd_option_list *list, const struct help_topic *topic)
{
    for (size_t i = 0; topic->headings[i]; i++)
        print_heading(list, topic->headings[i]);
}

const char *cmd_help_topic(size_t number, const char **summary)
{
    if (number >= TOPICS)
        return NULL;
    *summary = topics[number].summary;
    return topics[number].name;
}

int cmd_show_help(const struct command *command, const void *state, const char *argument)
{
    const bool all = argument && strcmp(argument, "all") == 0;
    (void)state;
    if (!argument || all) {
        const bool is_default = command == cmd_table[0];
        const struct cmd_option_list list = cmd_options_of(command, NULL, NULL);
        printf(is_default ? "Usage: btrfs-walk [%s] [OPTIONS] %s\n"
                          : "Usage: btrfs-walk %s [OPTIONS] %s\n",
               command->name, command->operands);
        print_words(command->summary, strlen(command->summary), 0);
        printf("\nExamples:\n%s", command->examples);

        print_heading(&list, NULL);
        for (size_t i = 0; all && i < TOPICS; i++)
            print_topic_options(&list, &topics[i]);
        if (!all)
            puts("\nOther options:");
        for (size_t i = 0; !all && i < TOPICS; i++) {
            char left[32];
            snprintf(left, sizeof left, "    --help=%s", topics[i].name);
            if (has_topic(&list, &topics[i]))
                print_left(left, topics[i].summary);
        }
        if (!all)
            print_left("    --help=all", "all options");
        print_paragraphs(command->details);

        printf("\nExit status:\n");
        const struct cmd_status *status = command->meanings ? command->meanings : cmd_statuses;
        for (; status->meaning; status++) {
            printf("  %-4d", status->status);
            print_words(status->meaning, strlen(status->meaning), 6);
        }

        return STATUS_OK;
    }
    const struct help_topic *topic = topics;
    while (topic < topics + TOPICS && strcmp(topic->name, argument) != 0)
        topic++;
    const struct cmd_option_list list = cmd_options_of(command, NULL, NULL);
    if (topic == topics + TOPICS)
        return cmd_usage_error(
            command, "invalid argument of --help (allowed: options, filters, images, all)",
            argument);
    if (topic->headings[0] && !has_topic(&list, topic))
        return cmd_usage_error(command, "the command has no options of that topic", argument);
    printf("Help about %s: %s\n", topic->name, topic->summary);
    print_paragraphs(topic->text);
    print_topic_options(&list, topic);
    return STATUS_OK;
}
