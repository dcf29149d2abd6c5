/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --help and the help command, for a terminal of 80 columns. The help of a command has its usage,
 * summary, examples, its own options, details and exit statuses. The options that it shares with
 * other commands are on pages of their own, the topics; --help=all appends them.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
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

/* `all`: also the options that it shares with others. */
static void print_help(const struct command *command, bool all)
{
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
}

static const struct help_topic *find_topic(const char *name)
{
    for (size_t i = 0; i < TOPICS; i++)
        if (strcmp(topics[i].name, name) == 0)
            return &topics[i];
    return NULL;
}

static void print_topic(const struct command *command, const struct help_topic *topic)
{
    const struct cmd_option_list list = cmd_options_of(command, NULL, NULL);
    printf("Help about %s: %s\n", topic->name, topic->summary);
    print_paragraphs(topic->text);
    print_topic_options(&list, topic);
}

int cmd_show_help(const struct command *command, const void *state, const char *argument)
{
    const bool all = argument && strcmp(argument, "all") == 0;
    (void)state;
    if (!argument || all) {
        print_help(command, all);
        return STATUS_OK;
    }
    const struct help_topic *topic = find_topic(argument);
    const struct cmd_option_list list = cmd_options_of(command, NULL, NULL);
    if (!topic)
        return cmd_usage_error(
            command, "invalid argument of --help (allowed: options, filters, images, all)",
            argument);
    if (topic->headings[0] && !has_topic(&list, topic))
        return cmd_usage_error(command, "the command has no options of that topic", argument);
    print_topic(command, topic);
    return STATUS_OK;
}

/* The help command. */

/* Subjects that are described on the page of a command or topic. */
static const struct {
    const char *word, *page;
} subjects[] = {
    {"acl", "xattr"},
    {"backup", "diff"},
    {"bitrot", "check"},
    {"capabilities", "xattr"},
    {"ci", "check"},
    {"colour", "options"},
    {"columns", "options"},
    {"compare", "diff"},
    {"compressed", "images"},
    {"e01", "images"},
    {"encryption", "images"},
    {"ewf", "images"},
    {"exfat", "extract"},
    {"fat", "extract"},
    {"fsck", "check"},
    {"fsid", "options"},
    {"gpt", "images"},
    {"grep", "mount"},
    {"hashes", "sum"},
    {"json", "options"},
    {"junit", "check"},
    {"layers", "graph"},
    {"luks", "options"},
    {"lvm", "images"},
    {"md", "images"},
    {"mdadm", "images"},
    {"nas", "images"},
    {"ntfs", "extract"},
    {"partition", "images"},
    {"partitions", "images"},
    {"progress", "options"},
    {"qcow2", "images"},
    {"quota", "qgroups"},
    {"raid", "devices"},
    {"recover", "rescue"},
    {"recovery", "rescue"},
    {"scrub", "check"},
    {"search", "mount"},
    {"snapper", "subvolumes"},
    {"snapshot", "subvolumes"},
    {"snapshots", "subvolumes"},
    {"synology", "images"},
    {"timeline", "bodyfile"},
    {"timeshift", "subvolumes"},
    {"undelete", "deleted"},
    {"usb", "extract"},
    {"verify", "check"},
    {"vmdk", "images"},
    {"windows", "extract"},
};

const char *cmd_help_word(size_t number, const char **about)
{
    enum { SUBJECTS = sizeof subjects / sizeof *subjects };
    if (number >= TOPICS + SUBJECTS)
        return NULL;
    if (number < TOPICS) {
        *about = topics[number].summary;
        return topics[number].name;
    }
    *about = subjects[number - TOPICS].page;
    return subjects[number - TOPICS].word;
}

/* The page that describes a subject; the word itself if it is none. */
static const char *page_of(const char *word)
{
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        if (strcasecmp(subjects[i].word, word) == 0)
            return subjects[i].page;
    return word;
}

static void print_overview(void)
{
    const char *topic = NULL;
    puts("Usage: btrfs-walk [COMMAND] [OPTIONS] IMAGE...\n"
         "Reads an unmounted btrfs file system. Without COMMAND, it lists all files (walk).\n\n"
         "Examples:\n"
         "  btrfs-walk disk.img                          list all files\n"
         "  btrfs-walk check disk.img                    find damage, and affected files\n"
         "  btrfs-walk extract -C /mnt/new disk.img      save everything\n"
         "  btrfs-walk deleted disk.img                  list deleted files\n"
         "  btrfs-walk usage disk.img                    why is it full?");
    for (size_t i = 0; cmd_table[i]; topic = cmd_table[i++]->topic) {
        if (cmd_table[i]->topic != topic)
            printf("\n%s:\n", cmd_table[i]->topic);
        printf("  %-12s ", cmd_table[i]->name);
        print_words(cmd_table[i]->summary, strlen(cmd_table[i]->summary), 15);
    }
    puts("\nbtrfs-walk help COMMAND describes a command. btrfs-walk help TOPIC describes:");
    for (size_t i = 0; i < TOPICS; i++)
        printf("   %-12s%s\n", topics[i].name, topics[i].summary);
}

struct help_state {
    bool all;
};

static const struct cmd_option options[] = {
    {'a', "all", NULL, "also print the options that many commands share, as --help=all does",
     CMD_FLAG(struct help_state, all)},
    {0},
};

static int run(const struct cmd_common *common, void *state)
{
    const struct help_state *help = state;
    signal(SIGPIPE, SIG_DFL); /* let SIGPIPE end the program: only stdout is written from here on */
    for (size_t i = 0; i < common->input.image_count; i++) {
        const char *name = page_of(common->input.images[i]);
        const struct command *command = cmd_find(name);
        const struct help_topic *topic = find_topic(name);
        if (command) {
            print_help(command, help->all);
        } else if (topic) {
            print_topic(cmd_table[0], topic);
        } else {
            cmd_print_unknown_command(name, "is neither a command nor a topic of help", true);
            return STATUS_CANNOT;
        }
    }
    if (!common->input.image_count)
        print_overview();
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
    .state_size = sizeof(struct help_state),
    .needs_no_image = true,
};
