/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Options: parsers of their arguments, the tables that all commands share, the list of a command's
 * options, and the text of --help, generated from that list for a terminal of 80 columns.
 */
#include "cli/common/options.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/human.h"
#include "base/nearest.h"
#include "cli/command.h"
#include "cli/common/keys.h"
#include "cli/common/output.h"
#include "cli/graph/page.h"

#ifndef BW_VERSION
#define BW_VERSION "unknown"
#endif

struct bw_error *cmd_bad_argument(const struct cmd_option *option, const char *argument,
                                  const char *allowed)
{
    return bw_error_create(BW_ERROR_USAGE, "invalid argument of --%s: %s (allowed: %s)",
                           option->name, argument, allowed);
}

struct bw_error *cmd_store_flag(void *flag, const struct cmd_option *option, const char *argument)
{
    (void)option;
    (void)argument;
    *(bool *)flag = true;
    return NULL;
}

struct bw_error *cmd_store_text(void *text, const struct cmd_option *option, const char *argument)
{
    *(const char **)text = argument;
    return *argument ? NULL : cmd_bad_argument(option, argument, "a text that is not empty");
}

bool cmd_parse_number(const char *text, uint64_t minimum, uint64_t maximum, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && !errno && *number >= minimum &&
           *number <= maximum;
}

struct bw_error *cmd_store_threads(void *threads, const struct cmd_option *option,
                                   const char *argument)
{
    uint64_t number;
    if (!cmd_parse_number(argument, 1, 32, &number))
        return cmd_bad_argument(option, argument, "1 to 32");
    *(unsigned *)threads = (unsigned)number;
    return NULL;
}

struct bw_error *cmd_store_part(void *target, const struct cmd_option *option, const char *argument)
{
    enum { MOST = 65536, ROOM = 8 };
    struct cmd_part *part = target;
    char first[ROOM] = "";
    uint64_t number = 0, count = 0;
    const size_t length = strcspn(argument, "/");
    if (length < ROOM)
        memcpy(first, argument, length);
    const bool good = argument[length] &&
                      cmd_parse_number(argument + length + 1, 1, MOST, &count) &&
                      cmd_parse_number(first, 1, count, &number);
    *part = (struct cmd_part){(unsigned)number, (unsigned)count};
    return good ? NULL : cmd_bad_argument(option, argument, "1/N to N/N, with N up to 65536");
}

static bool parse_hexadecimal(const char **text, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(*text, &end, 16);
    bool is_one = isxdigit((unsigned char)(*text)[2]) && !errno;
    *text = end;
    return is_one;
}

bool cmd_parse_bytes(const char **text, uint64_t *bytes)
{
    if (strncasecmp(*text, "0x", 2) == 0)
        return parse_hexadecimal(text, bytes);
    return bw_parse_size(text, bytes);
}

struct bw_error *cmd_parse_range(const char *text, uint64_t *address, uint64_t *length)
{
    const char *rest = text;
    bool good = cmd_parse_bytes(&rest, address);
    *length = 0;
    if (good && *rest == '+')
        good = cmd_parse_bytes((rest++, &rest), length) && *length;
    if (good && !*rest && *length <= UINT64_MAX - *address)
        return NULL;
    return bw_error_create(BW_ERROR_USAGE, "invalid address: %s", text);
}

struct bw_error *cmd_store_bytes(void *bytes, const struct cmd_option *option, const char *argument)
{
    const char *rest = argument;
    return cmd_parse_bytes(&rest, bytes) && !*rest
               ? NULL
               : cmd_bad_argument(option, argument,
                                  "bytes below 16E, for example 4096, 64M, 64MB or 0x1000");
}

static struct bw_error *bad_word(const struct cmd_option *option, const char *argument)
{
    BW_AUTO_BUFFER struct bw_buffer allowed = {0}, given = {0};
    bw_buffer_format(&given, "%s=%s%c", option->name, argument, '\0');
    const char *instead = given.failed ? NULL : cmd_instead_of_option("", given.data);
    if (instead)
        return bw_error_create(BW_ERROR_USAGE, "--%s was removed: %s", given.data, instead);
    for (size_t i = 0; option->words[i]; i++)
        if (*option->words[i]) /* the default may have no name */
            bw_buffer_format(&allowed, "%s%s", allowed.length ? ", " : "", option->words[i]);
    bw_buffer_append_byte(&allowed, '\0');
    return allowed.failed ? bw_error_no_memory() : cmd_bad_argument(option, argument, allowed.data);
}

struct bw_error *cmd_store_word(void *value, const struct cmd_option *option, const char *argument)
{
    unsigned i = 0;
    while (option->words[i] && strcmp(argument, option->words[i]) != 0)
        i++;
    *(unsigned *)value = i;
    return option->words[i] ? NULL : bad_word(option, argument);
}

/* The options that all commands share. */

const struct cmd_option cmd_list_options[] = {
    {'T', "files-from", "FILE", "also read paths from FILE, one per line; '-' is stdin",
     CMD_TEXT(struct cmd_common, files_from)},
    {0, "from0", NULL, "paths in that FILE end with a NUL byte instead of a newline",
     CMD_FLAG(struct cmd_common, null_separated)},
    {0},
};

static struct bw_error *store_device(void *target, const struct cmd_option *option,
                                     const char *argument)
{
    struct cmd_common *common = target;
    (void)option;
    common->input.images[common->input.image_count++] = argument;
    return NULL;
}

static struct bw_error *store_superblock(void *target, const struct cmd_option *option,
                                         const char *argument)
{
    struct cmd_common *common = target;
    uint64_t number;
    if (!cmd_parse_number(argument, 0, BW_SUPERBLOCK_NUMBERS - 1, &number))
        return cmd_bad_argument(option, argument, "0, 1 or 2");
    common->input.superblock_copy = number ? (int)number : BW_SUPERBLOCK_COPY_0;
    return NULL;
}

static struct bw_error *store_log(void *target, const struct cmd_option *option,
                                  const char *argument)
{
    struct cmd_common *common = target;
    common->input.log_given = true;
    return cmd_store_word(&common->input.log, option, argument);
}

/* The unit defaults to seconds. */
static struct bw_error *store_timeout(void *target, const struct cmd_option *option,
                                      const char *argument)
{
    enum { NANOSECONDS = 1000000, MOST = 24 * 3600 * 1000 }; /* per millisecond; in milliseconds */
    struct cmd_common *common = target;
    uint64_t time;
    if (cmd_parse_number(argument, 1, MOST / 1000, &time))
        time *= 1000;
    else if (bw_parse_with_unit(argument, bw_time_units, &time))
        time /= NANOSECONDS;
    else
        time = 0;
    common->input.timeout = (unsigned)(time <= MOST ? time : 0);
    return common->input.timeout
               ? NULL
               : cmd_bad_argument(option, argument, "1ms to 24h, for example 10, 10s, 500ms or 2m");
}

static struct bw_error *store_edit(void *target, const struct cmd_option *option,
                                   const char *argument)
{
    struct cmd_common *common = target;
    bool inserts = strcmp(option->name, "insert") == 0;
    common->input.edits[common->input.graph.edit_count++] =
        (struct bw_graph_edit){inserts ? BW_EDIT_INSERT : BW_EDIT_OPTION, argument};
    return NULL;
}

static struct bw_error *store_map(void *target, const struct cmd_option *option, const char *file)
{
    struct cmd_common *common = target;
    (void)option;
    common->input.maps[common->input.map_count++] = *file ? file : NULL;
    return NULL;
}

static struct bw_error *store_inside(void *target, const struct cmd_option *option,
                                     const char *path)
{
    struct cmd_common *common = target;
    (void)option;
    common->input.inside[common->input.inside_count++] = path;
    return NULL;
}

static struct bw_error *store_key_file(void *target, const struct cmd_option *option,
                                       const char *file)
{
    struct cmd_common *common = target;
    (void)option;
    return cmd_keys_read_file(common->input.keys, file);
}

static struct bw_error *store_key_descriptor(void *target, const struct cmd_option *option,
                                             const char *argument)
{
    struct cmd_common *common = target;
    uint64_t descriptor;
    if (!cmd_parse_number(argument, 0, INT_MAX, &descriptor))
        return cmd_bad_argument(option, argument, "the number of an open file descriptor");
    return cmd_keys_read_descriptor(common->input.keys, (int)descriptor);
}

static struct bw_error *store_verbose(void *target, const struct cmd_option *option,
                                      const char *argument)
{
    struct cmd_common *common = target;
    (void)option;
    (void)argument;
    common->messages.verbose++;
    return NULL;
}

static int show_help(const struct command *command, const void *state, const char *argument);

static int show_version(const struct command *command, const void *state, const char *argument)
{
    (void)command;
    (void)state;
    (void)argument;
    puts("btrfs-walk " BW_VERSION);
    return STATUS_OK;
}

static const char *const helper_modes[] = {"off", "on", "backing", NULL}; /* enum bw_helper_mode */
static const char *const log_modes[] = {"replay", "ignore", NULL};        /* enum bw_log_mode */

/* Options of every command that opens a file system. */
const struct cmd_option cmd_image_options[] = {
    {0, "device", "FILE", "add a device of the same file system (repeatable)",
     .store = store_device, .heading = "Images"},
    {0, "super", "N", "use superblock copy 0, 1 or 2 (default: the best)",
     .store = store_superblock},
    {0, "partition", "PARTITION", "partition of a disk: number, name, label or UUID",
     CMD_TEXT(struct cmd_common, input.partition)},
    {0, "volume", "VOLUME", "logical volume (LVM): VOLUME or GROUP/VOLUME",
     CMD_TEXT(struct cmd_common, input.volume)},
    {0, "key-file", "FILE", "keys or passphrases of LUKS volumes; -: stdin",
     .store = store_key_file},
    {0, "key-fd", "N", "the same from the open file descriptor N", .store = store_key_descriptor},
    {0, "key-work", "BYTES", "limit of work for keyslots (default: 10 minutes)",
     CMD_BYTES(struct cmd_common, input.key_work)},
    {0, "luks-header", "FILE", "detached header of an encrypted volume",
     CMD_TEXT(struct cmd_common, input.header)},
    {0, "inside", "PATH", "open this file in it as an image (repeatable)", .store = store_inside},
    {0, "image-offset", "BYTES", "offset of the image within its file, such as 1M",
     CMD_BYTES(struct cmd_common, input.offset)},
    {0, "log", "WORD", "replay the log of fsync (default), or ignore it", .store = store_log,
     .words = log_modes},
    {0, "helpers", "WORD", "run qemu-nbd or nbdkit: on (default), backing, off",
     CMD_WORD(struct cmd_common, input.helpers, helper_modes)},
    {0, "timeout", "TIME", "limit for servers, such as 500ms (default: 30s)",
     .store = store_timeout},
    {0, "alternatives", NULL, "images of the same device: use the good blocks",
     CMD_FLAG(struct cmd_common, input.alternatives)},
    {0, "map", "FILE", "ddrescue map: unread ranges are lost (repeatable)", .store = store_map},
    {0, "scan", NULL, "search the disks for lost trees and newer roots",
     CMD_FLAG(struct cmd_common, input.scan)},
    CMD_GROUP(cmd_generation_options, struct cmd_common, input.state),
    {0, "graph", "FILE", "read through the graph in this volfile",
     CMD_TEXT(struct cmd_common, input.graph.file), .heading = "Layers"},
    {0, "xlator-option", "SETTING", "set an option of a layer: NAME.KEY=VALUE",
     .store = store_edit},
    {0, "insert", "LAYER", "put TYPE@VOLUME[,KEY=VALUE...] above a volume", .store = store_edit},
    {0, "statedump", "FILE", "state of all layers, at the end and on SIGUSR1",
     CMD_TEXT(struct cmd_common, statedump)},
    CMD_GROUP(cmd_probe_options, struct cmd_common, probes),
    {0},
};

static const char *const sandbox_modes[] = {"on", "off", NULL}; /* enum cmd_sandbox_mode */

/* Options of every command. */
const struct cmd_option cmd_common_options[] = {
    {0, "sandbox", "WORD", "restrict files and system calls: on (default), off",
     CMD_WORD(struct cmd_common, writing.sandbox, sandbox_modes), .heading = "General"},
    {0, "fsync", NULL, "wait until written files are on the disk",
     CMD_FLAG(struct cmd_common, writing.fsync)},
    {'q', "quiet", NULL, "print no warnings, only fatal errors",
     CMD_FLAG(struct cmd_common, messages.quiet)},
    {'v', "verbose", NULL, "more messages; -vv: the layers each error passed",
     .store = store_verbose},
    {0, "help", "[=TOPIC]", "print help, also about a topic or all options", .show = show_help},
    {'V', "version", NULL, "print the version of the program", .show = show_version},
    {0},
};

/* The options of a command. */

/* A command's own option takes precedence over a shared one of the same name. */
bool cmd_has_option(const struct cmd_option_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].option->name, name) == 0)
            return true;
    return false;
}

/* A heading applies to all entries up to the end of the table. `plain`: stop at the first group. An
 * option that is already in the list is not added again. */
static void list_options(struct cmd_option_list *list, const struct cmd_option *table,
                         void *settings, const char *heading, bool plain)
{
    for (; table->name || (table->group && !plain); table++) {
        heading = table->heading ? table->heading : heading;
        if (table->group) {
            list_options(list, table->group, settings ? (char *)settings + table->offset : NULL,
                         heading, false);
        } else if (list->count < CMD_MAX_OPTIONS && !cmd_has_option(list, table->name)) {
            list->items[list->count].option = table;
            list->items[list->count].heading = heading;
            list->items[list->count++].settings = settings;
        }
    }
}

const struct cmd_option cmd_no_options[] = {{0}};

struct cmd_option_list cmd_options_of(const struct command *command, struct cmd_common *common,
                                      void *state)
{
    struct cmd_option_list list = {.count = 0};
    list_options(&list, command->options, state, NULL, true);
    if (command->record)
        list_options(&list, cmd_answer_options, common ? &common->answer : NULL, NULL, false);
    if (command->sorts_rows)
        list_options(&list, cmd_order_options, common ? &common->answer : NULL, NULL, false);
    list_options(&list, command->options, state, NULL, false);
    if (command->takes_list)
        list_options(&list, cmd_list_options, common, NULL, false);
    if (!command->needs_no_image)
        list_options(&list, cmd_image_options, common, NULL, false);
    list_options(&list, cmd_common_options, common, NULL, false);
    return list;
}

size_t cmd_find_letter(const struct cmd_option_list *list, int letter)
{
    size_t i = 0;
    while (i < list->count && list->items[i].option->letter != letter)
        i++;
    return i;
}

/* Suggestions for misspelt words. */

/* "; did you mean 'x' or 'y'" */
static void append_suggestion(struct cmd_suggestion *suggestion, const char *candidate)
{
    bw_buffer_format(suggestion->message, "%s'%s%s'",
                     suggestion->count++ ? " or " : "; did you mean ", suggestion->prefix,
                     candidate);
}

void cmd_suggest(struct cmd_suggestion *suggestion, const char *candidate)
{
    if (bw_is_like(suggestion->word, candidate))
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

static void suggest_commands(struct cmd_suggestion *suggestion)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        for (size_t k = 0; strcmp(others[i].word, suggestion->word) == 0 && k < 2; k++)
            if (others[i].commands[k])
                append_suggestion(suggestion, others[i].commands[k]);
    const bool is_known = suggestion->count;
    for (size_t i = 0; !is_known && cmd_table[i]; i++)
        cmd_suggest(suggestion, cmd_table[i]->name);
}

const struct command *cmd_find(const char *name)
{
    size_t i = 0;
    while (cmd_table[i] && strcmp(cmd_table[i]->name, name) != 0)
        i++;
    return cmd_table[i];
}

void cmd_print_unknown_command(const char *word, const char *reason)
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
    suggest_commands(&suggestion);
    fprintf(stderr, "btrfs-walk: %.*s%s\n'btrfs-walk help' lists all commands.\n", (int)line.length,
            line.data ? line.data : "", suggestion.count ? "?" : "");
}

/* Usage errors. */

int cmd_exit_status(const struct command *command, int status)
{
    return command->statuses && status >= 0 ? command->statuses[status] : status;
}

int cmd_usage_error(const struct command *command, const char *reason, const char *argument)
{
    bool is_default = command == cmd_table[0];
    BW_AUTO_BUFFER struct bw_buffer shown = {0};
    bw_escape_words(&shown, reason);
    bw_buffer_format(&shown, "%s", argument ? ": " : "");
    bw_escape_words(&shown, argument ? argument : "");
    fprintf(stderr, "btrfs-walk: %.*s\nTry 'btrfs-walk %s%s--help'.\n", (int)shown.length,
            shown.data ? shown.data : "", is_default ? "" : command->name, is_default ? "" : " ");
    return cmd_exit_status(command, STATUS_CANNOT);
}

/*
 * The text of --help: usage, a sentence, examples, the command's own options. Options that
 * commands share have a page of their own.
 */

/* Texts that are printed apart from the commands that they concern. */
struct help_topic {
    const char *name;
    const char *summary;
    const char *text;        /* before the options */
    const char *headings[7]; /* of these options; ends with NULL */
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
     "  a.img b.img c.img             the devices of one file system\n"
     "  disk.qcow2 disk.vmdk          also vdi, vhd and vhdx; with qemu-nbd\n"
     "  disk.img.zst disk.img.gz      also lz4 and xz\n"
     "  nbd://server/disk             an NBD server; also nbds:// and nbd+unix://\n"
     "  https://server/disk.img       also s3://bucket/key; with nbdkit\n"
     "  rbd:pool/disk                 a Ceph cluster; with qemu-nbd\n",
     {NULL}},
};

enum { INDENT = 29, WIDTH = 79, TOPICS = sizeof topics / sizeof *topics };

/* Appends words to the current line, wrapping at column `indent`. */
static void print_words(const char *words, size_t length, size_t indent)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    page_append_words(&text, words, length, indent, WIDTH);
    printf("%.*s\n", (int)text.length, text.data ? text.data : "");
}

/* Wraps a paragraph; a paragraph with indented lines is printed unchanged. */
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

static void print_left(const char *left, const char *right)
{
    if (strlen(left) > INDENT - 4)
        printf("  %s\n%*s", left, INDENT, "");
    else
        printf("  %-*s ", INDENT - 3, left);
    print_words(right, strlen(right), INDENT);
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
    print_left(left, option->description);
}

static bool have_same_heading(const char *heading, const char *other)
{
    return heading == other || (heading && other && strcmp(heading, other) == 0);
}

/* Prints the options under a heading; NULL: the command's own. Returns whether there are any. */
static bool print_heading(const struct cmd_option_list *list, const char *heading)
{
    bool any = false;
    for (size_t i = 0; i < list->count; i++) {
        if (!have_same_heading(list->items[i].heading, heading))
            continue;
        if (!any)
            printf("\n%s:\n", heading ? heading : "Options");
        any = true;
        print_option(list, i);
    }
    return any;
}

/* Whether a command has options of a topic. */
static bool has_topic(const struct cmd_option_list *list, const struct help_topic *topic)
{
    for (size_t i = 0; i < list->count; i++)
        for (size_t k = 0; topic->headings[k]; k++)
            if (have_same_heading(list->items[i].heading, topic->headings[k]))
                return true;
    return false;
}

static void print_topic_options(const struct cmd_option_list *list, const struct help_topic *topic)
{
    for (size_t i = 0; topic->headings[i]; i++)
        print_heading(list, topic->headings[i]);
}

static void print_options(const struct cmd_option_list *list, bool all)
{
    print_heading(list, NULL);
    for (size_t i = 0; all && i < TOPICS; i++)
        print_topic_options(list, &topics[i]);
    if (all)
        return;
    puts("\nOther options:");
    for (size_t i = 0; i < TOPICS; i++) {
        char left[32];
        snprintf(left, sizeof left, "    --help=%s", topics[i].name);
        if (has_topic(list, &topics[i]))
            print_left(left, topics[i].summary);
    }
    print_left("    --help=all", "all options");
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
}

static void print_help(const struct command *command, bool all)
{
    const bool is_default = command == cmd_table[0];
    const struct cmd_option_list list = cmd_options_of(command, NULL, NULL);
    printf("Usage: btrfs-walk %s%s%s [OPTIONS] %s\n", is_default ? "[" : "", command->name,
           is_default ? "]" : "", command->operands);
    print_words(command->summary, strlen(command->summary), 0);
    printf("\nExamples:\n%s", command->examples);
    print_options(&list, all);
    print_details(command->details);
    print_statuses(command);
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
    print_details(topic->text);
    print_topic_options(&list, topic);
}

static int show_help(const struct command *command, const void *state, const char *argument)
{
    const bool all = argument && strcmp(argument, "all") == 0;
    const struct help_topic *topic = argument && !all ? find_topic(argument) : NULL;
    const struct cmd_option_list list = cmd_options_of(command, NULL, NULL);
    (void)state;
    if (topic && topic->headings[0] && !has_topic(&list, topic))
        return cmd_usage_error(command, "the command has no options of that topic", argument);
    if (argument && !all && !topic)
        return cmd_usage_error(
            command, "invalid argument of --help (allowed: options, filters, images, all)",
            argument);
    if (topic)
        print_topic(command, topic);
    else
        print_help(command, all);
    return STATUS_OK;
}

/* The help command. */

static int print_command_help(const char *name, bool all)
{
    size_t i = 0;
    while (cmd_table[i] && strcmp(cmd_table[i]->name, name) != 0)
        i++;
    if (cmd_table[i]) {
        print_help(cmd_table[i], all);
        return STATUS_OK;
    }
    const struct help_topic *topic = find_topic(name);
    if (topic) {
        print_topic(cmd_table[0], topic);
        return STATUS_OK;
    }
    cmd_print_unknown_command(name, "is neither a command nor a topic of help");
    return STATUS_CANNOT;
}

static void print_overview(void)
{
    puts("Usage: btrfs-walk [COMMAND] [OPTIONS] IMAGE...\n"
         "Reads an unmounted btrfs file system. Without COMMAND, it lists all files (walk).\n\n"
         "Examples:\n"
         "  btrfs-walk disk.img                          list all files\n"
         "  btrfs-walk check disk.img                    find damage, and affected files\n"
         "  btrfs-walk extract -C /mnt/new disk.img      save everything\n"
         "  btrfs-walk deleted disk.img                  list deleted files\n"
         "  btrfs-walk usage disk.img                    why is it full?");
    print_commands();
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
    int status = STATUS_OK;
    signal(SIGPIPE, SIG_DFL); /* let SIGPIPE end the program: only stdout is written from here on */
    for (size_t i = 0; status == STATUS_OK && i < common->input.image_count; i++)
        status = print_command_help(common->input.images[i], help->all);
    if (!common->input.image_count)
        print_overview();
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
