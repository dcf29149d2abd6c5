/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Options: parsers of their arguments, the tables that all commands share, and the list of a
 * command's options.
 *
 * A table describes each option and names the member that it sets. Tables include other tables
 * (`group`), whose settings are a structure within the settings of the including table. The list of
 * a command has its own options first, so that they take precedence over shared ones; the parser,
 * --help, the completions and the manual are made from it.
 */
#include "cli/common/options.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uuid/uuid.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "cli/command.h"
#include "cli/common/keys.h"

struct bw_error *cmd_bad_argument(const struct cmd_option *option, const char *argument,
                                  const char *allowed)
{
    return bw_error_create(BW_ERROR_USAGE, "invalid argument of --%s: %s (allowed: %s)",
                           option->name, *argument ? argument : "''", allowed);
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

struct bw_error *cmd_store_number(void *target, const struct cmd_option *option,
                                  const char *argument)
{
    uint64_t number;
    if (!cmd_parse_number(argument, option->least, option->most, &number))
        return cmd_bad_argument(option, argument, option->allowed);
    if (option->is_wide)
        *(uint64_t *)target = number;
    else
        *(unsigned *)target = (unsigned)number;
    return NULL;
}

struct bw_error *cmd_store_numbers(void *numbers, const struct cmd_option *option,
                                   const char *argument)
{
    uint64_t number;
    if (!cmd_parse_number(argument, option->least, option->most, &number))
        return cmd_bad_argument(option, argument, option->allowed);
    return bw_numbers_push(numbers, number);
}

struct bw_error *cmd_store_append(void *strings, const struct cmd_option *option,
                                  const char *argument)
{
    (void)option;
    return bw_const_strings_push(strings, argument);
}

void cmd_release_numbers(void *numbers)
{
    bw_numbers_free(numbers);
}

void cmd_release_strings(void *strings)
{
    bw_const_strings_free(strings);
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

bool cmd_parse_bytes(const char **text, uint64_t *bytes)
{
    if (strncasecmp(*text, "0x", 2) != 0)
        return bw_parse_size(text, bytes);
    char *end;
    errno = 0;
    *bytes = strtoull(*text, &end, 16);
    const bool is_number = isxdigit((unsigned char)(*text)[2]) && !errno;
    *text = end;
    return is_number;
}

struct bw_error *cmd_parse_range(const char *text, struct bw_address_range *range)
{
    const char *rest = text;
    *range = (struct bw_address_range){0};
    bool good = cmd_parse_bytes(&rest, &range->logical);
    if (good && *rest == '+')
        good = cmd_parse_bytes((rest++, &rest), &range->length) && range->length;
    if (good && !*rest && range->length <= UINT64_MAX - range->logical)
        return NULL;
    return bw_error_create(BW_ERROR_USAGE, "invalid address: %s", text);
}

struct bw_error *cmd_store_bytes(void *bytes, const struct cmd_option *option, const char *argument)
{
    const char *rest = argument;
    const char *usual = "bytes below 16E, for example 4096, 64M, 64MB or 0x1000";
    if (cmd_parse_bytes(&rest, bytes) && !*rest)
        return NULL;
    return cmd_bad_argument(option, argument, option->allowed ? option->allowed : usual);
}

struct bw_error *cmd_store_word(void *value, const struct cmd_option *option, const char *argument)
{
    unsigned i = 0;
    while (option->words[i] && strcmp(argument, option->words[i]) != 0)
        i++;
    *(unsigned *)value = i;
    if (option->words[i] && *argument) /* the default may have no name */
        return NULL;

    BW_AUTO_BUFFER struct bw_buffer allowed = {0}, given = {0};
    bw_buffer_format(&given, "%s=%s", option->name, argument);
    const char *setting = bw_buffer_text(&given), *instead = cmd_instead_of_option("", setting);
    if (instead)
        return bw_error_create(BW_ERROR_USAGE, "--%s was removed: %s", setting, instead);
    for (i = 0; option->words[i]; i++)
        if (*option->words[i])
            bw_buffer_format(&allowed, "%s%s", allowed.length ? ", " : "", option->words[i]);
    return cmd_bad_argument(option, argument, bw_buffer_text(&allowed));
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
    common->input.fs.superblock_copy = number ? (int)number : BW_SUPERBLOCK_COPY_0;
    return NULL;
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

static struct bw_error *store_map(void *maps, const struct cmd_option *option, const char *file)
{
    (void)option;
    return bw_const_strings_push(maps, *file ? file : NULL);
}

static struct bw_error *store_correct_bits(void *target, const struct cmd_option *option,
                                           const char *argument)
{
    struct cmd_common *common = target;
    (void)option;
    (void)argument;
    common->input.fs.correct_bits = true;
    common->input.fs.search_seconds = CMD_SEARCH_SECONDS;
    return NULL;
}

static struct bw_error *store_fsid(void *target, const struct cmd_option *option, const char *text)
{
    struct cmd_common *common = target;
    common->input.has_fsid = uuid_parse(text, common->input.fsid) == 0;
    return common->input.has_fsid ? NULL
                                  : cmd_bad_argument(option, text, "an fsid, as info prints it");
}

/* --partition, --volume and --image-offset: of the images, or after --inside of the file that it
 * names. */
static struct bw_error *store_choice(void *target, const struct cmd_option *option,
                                     const char *argument)
{
    struct cmd_input *input = &((struct cmd_common *)target)->input;
    struct bw_inside_choice *inside = NULL;
    const char **text = &input->fs.partition;
    if (input->inside_count)
        inside = &input->inside_choices[input->inside_count - 1];
    if (strcmp(option->name, "image-offset") == 0)
        return cmd_store_bytes(inside ? &inside->offset : &input->fs.offset, option, argument);
    if (strcmp(option->name, "volume") == 0)
        text = inside ? &inside->volume : &input->fs.volume;
    else if (inside)
        text = &inside->partition;
    return cmd_store_text(text, option, argument);
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

static const char *const checksum_kinds[] = {"off", "metadata", "data", "all", NULL};

/* Options of every command that opens a file system. */
const struct cmd_option cmd_image_options[] = {
    {0, "device", "FILE", "add a device of the same file system (repeatable)",
     .store = store_device, .heading = "Images"},
    {0, "super", "N", "use superblock copy 0, 1 or 2 (default: the best)",
     .store = store_superblock},
    {0, "partition", "PARTITION", "partition of a disk: number, name, label or UUID",
     .store = store_choice},
    {0, "volume", "VOLUME", "logical volume (LVM): VOLUME or GROUP/VOLUME", .store = store_choice},
    {0, "key-file", "FILE", "keys or passphrases of LUKS volumes; -: stdin",
     .store = store_key_file},
    {0, "key-fd", "N", "the same from the open file descriptor N", .store = store_key_descriptor},
    {0, "key-work", "BYTES", "limit of work for keyslots (default: 10 minutes)",
     CMD_BYTES(struct cmd_common, input.fs.key_work)},
    {0, "luks-header", "FILE", "detached header of an encrypted volume",
     CMD_TEXT(struct cmd_common, input.fs.header)},
    {0, "inside", "PATH",
     "open this file in it as an image (repeatable); --partition after it is for it",
     .store = store_inside},
    {0, "image-offset", "BYTES", "offset of the image within its file, such as 1M",
     .store = store_choice},
    {0, "log", "WORD", "replay the log of fsync (default), or ignore it",
     CMD_WORD(struct cmd_common, input.fs.log, log_modes),
     CMD_GIVEN(struct cmd_common, input.log_given)},
    {0, "helpers", "WORD", "run qemu-nbd or nbdkit: on (default), backing, off",
     CMD_WORD(struct cmd_common, input.helpers, helper_modes)},
    {0, "timeout", "TIME", "limit for servers, such as 500ms (default: 30s)",
     .store = store_timeout},
    {0, "alternatives", NULL, "images of the same device: use the good blocks",
     CMD_FLAG(struct cmd_common, input.fs.alternatives)},
    {0, "correct-bits", NULL, "also correct data in which one bit is flipped",
     .store = store_correct_bits},
    {0, "ignore-checksums", "WORD", "accept wrong checksums: metadata, data, all, off",
     CMD_WORD(struct cmd_common, input.fs.ignore_checksums, checksum_kinds)},
    {0, "side", "DEVID", "diverged devices: read those like this one",
     CMD_NUMBER(struct cmd_common, input.fs.side, 1, UINT64_MAX, "the id of a device, from 1 on")},
    {0, "map", "FILE", "ddrescue map: unread ranges are lost (repeatable)", .store = store_map,
     .offset = CMD_AT(struct cmd_common, input.maps, struct bw_const_strings),
     .release = cmd_release_strings},
    {0, "patch", "FILE", "read through this overlay of 'repair' (repeatable)",
     CMD_APPEND(struct cmd_common, input.overlays)},
    {0, "scan", NULL, "search the disks for lost trees and newer roots",
     CMD_FLAG(struct cmd_common, input.fs.scan)},
    {0, "fsid", "UUID", "open this (overwritten) fsid or chunk_tree_uuid", .store = store_fsid},
    CMD_GROUP(cmd_generation_options, struct cmd_common, input.fs.state),
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

static const char *const color_words[] = {"auto", "always", "never", NULL}; /* enum cmd_color_when
                                                                             */

static struct bw_error *store_color(void *target, const struct cmd_option *option, const char *when)
{
    struct cmd_common *common = target;
    common->messages.color = CMD_COLOR_ALWAYS;
    return when ? cmd_store_word(&common->messages.color, option, when) : NULL;
}

static const char *const sandbox_modes[] = {"on", "off", NULL}; /* enum cmd_sandbox_mode */

/* Options of every command. */
const struct cmd_option cmd_common_options[] = {
    {0, "sandbox", "WORD", "restrict files and system calls: on (default), off",
     CMD_WORD(struct cmd_common, writing.sandbox, sandbox_modes), .heading = "General"},
    {0, "fsync", NULL, "wait until written files are on the disk",
     CMD_FLAG(struct cmd_common, writing.fsync)},
    {0, "color", "[=WHEN]", "colours: auto (default), always, never", .store = store_color,
     .words = color_words},
    {'q', "quiet", NULL, "print no warnings, only fatal errors",
     CMD_FLAG(struct cmd_common, messages.quiet)},
    {'v', "verbose", NULL, "more messages; -vv: the layers each error passed",
     .store = store_verbose},
    {0, "help", "[=TOPIC]", "print help, also about a topic or all options", .show = cmd_show_help},
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
    if (command->sorts_rows)
        list_options(&list, cmd_order_options, common ? &common->format : NULL, NULL, false);
    if (command->record)
        list_options(&list, cmd_format_options, common ? &common->format : NULL, NULL, false);
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
