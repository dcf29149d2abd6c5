/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parsing the command line from the option tables. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/human.h"
#include "cli/common/find_words.h"
#include "cli/common/options.h"
#include "cli/common/progress.h"

#ifndef BW_VERSION
#define BW_VERSION "unknown"
#endif

static struct bw_error *take_device(void *target, const struct cmd_option *option,
                                    const char *argument)
{
    struct cmd_common *common = target;
    (void)option;
    common->images[common->image_count++] = argument;
    return NULL;
}

static struct bw_error *take_superblock(void *target, const struct cmd_option *option,
                                        const char *argument)
{
    struct cmd_common *common = target;
    uint64_t number;
    if (!cmd_parse_number(argument, 0, BW_SUPERBLOCK_NUMBERS - 1, &number))
        return cmd_bad_argument(option, argument, "0, 1 or 2");
    common->superblock_copy = number ? (int)number : BW_SUPERBLOCK_COPY_0;
    return NULL;
}

static struct bw_error *take_log(void *target, const struct cmd_option *option,
                                 const char *argument)
{
    struct cmd_common *common = target;
    common->log_given = true;
    return cmd_take_word(&common->log, option, argument);
}

/* Seconds, unless it has a unit. */
static struct bw_error *take_timeout(void *target, const struct cmd_option *option,
                                     const char *argument)
{
    enum { NANOSECONDS = 1000000, MOST = 24 * 3600 * 1000 }; /* in and of milliseconds */
    struct cmd_common *common = target;
    uint64_t time;
    if (cmd_parse_number(argument, 1, MOST / 1000, &time))
        time *= 1000;
    else if (bw_parse_with_unit(argument, bw_time_units, &time))
        time /= NANOSECONDS;
    else
        time = 0;
    common->timeout = (unsigned)(time <= MOST ? time : 0);
    return common->timeout
               ? NULL
               : cmd_bad_argument(option, argument, "1ms to 24h, for example 10, 10s, 500ms or 2m");
}

static struct bw_error *take_edit(void *target, const struct cmd_option *option,
                                  const char *argument)
{
    struct cmd_common *common = target;
    bool inserts = strcmp(option->name, "insert") == 0;
    common->edits[common->graph.edit_count++] =
        (struct bw_graph_edit){inserts ? BW_EDIT_INSERT : BW_EDIT_OPTION, argument};
    return NULL;
}

static struct bw_error *take_verbose(void *target, const struct cmd_option *option,
                                     const char *argument)
{
    struct cmd_common *common = target;
    (void)option;
    (void)argument;
    common->verbose++;
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

/* Of every command that opens a file system. */
const struct cmd_option cmd_image_options[] = {
    {'d', "device", "FILE", "another device of the same file system (repeatable)",
     .take = take_device, .heading = "Images"},
    {'s', "super", "N", "use superblock copy N: 0, 1 or 2 (default: the best)",
     .take = take_superblock},
    {0, "partition", "PARTITION",
     "which partition of a disk: its number, name or UUID, or its file system's label or UUID",
     CMD_TEXT(struct cmd_common, partition)},
    {0, "image-offset", "BYTES", "where the image begins in its file, such as 1M (or: --offset)",
     CMD_BYTES(struct cmd_common, offset), .also = "offset"},
    {0, "log", "WORD",
     "what was fsynced after the last transaction: show it, as a mount does (replay, the default), "
     "or not (ignore)",
     .take = take_log, .words = log_modes},
    CMD_GROUP(cmd_state_options, struct cmd_common, state),
    {0, "helpers", "WORD",
     "start qemu-nbd or nbdkit for an image that needs one (on, the default), also if it names "
     "other files that it takes data from (backing), or never (off)",
     CMD_WORD(struct cmd_common, helpers, helper_modes)},
    {0, "timeout", "TIME",
     "how long the server of an image may be silent, in seconds or like 500ms or 2m (default: 30s)",
     .take = take_timeout},
    {0, "scan", NULL,
     "if superblocks or roots of trees are lost, search the whole devices for what can stand in "
     "for them; if not, search metadata for a newer state than the superblock names",
     CMD_FLAG(struct cmd_common, scan)},
    {0, "graph", "FILE",
     "read through the graph in this volfile; also its images, unless IMAGE is given",
     CMD_TEXT(struct cmd_common, graph.file), .heading = "Layers", .rare = true},
    {0, "xlator-option", "SETTING",
     "NAME.KEY=VALUE: set an option of a layer (repeatable; see 'btrfs-walk graph --help')",
     .take = take_edit},
    {0, "insert", "LAYER", "TYPE@VOLUME[,KEY=VALUE...]: insert a layer above a volume (repeatable)",
     .take = take_edit},
    {0, "statedump", "FILE",
     "write the state of all layers to FILE, or to stderr (-), at the end and on SIGUSR1, which "
     "then shows no progress",
     CMD_TEXT(struct cmd_common, statedump)},
    CMD_GROUP(cmd_probe_options, struct cmd_common, probes),
    {0},
};

static const char *const sandbox_modes[] = {"on", "off", NULL}; /* enum cmd_sandbox_mode */

/* Of every command. */
const struct cmd_option cmd_common_options[] = {
    {0, "sandbox", "WORD",
     "open nothing but the images, and have no use for any other system call than reading takes "
     "(on, the default), or do without that (off)",
     CMD_WORD(struct cmd_common, sandbox, sandbox_modes), .heading = "General"},
    {'q', "quiet", NULL, "no warnings, only fatal errors", CMD_FLAG(struct cmd_common, quiet)},
    {'v', "verbose", NULL,
     "also report bad copies that were replaced by good ones; -vv: the layers each error passed",
     .take = take_verbose},
    {'h', "help", "[=all]", "print this help, or one with all options", .show = show_help},
    {'V', "version", NULL, "print the version of the program", .show = show_version},
    {0},
};

/* A command's own option goes before one of that name that all commands have. */
static bool is_listed(const struct cmd_option_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].option->name, name) == 0)
            return true;
    return false;
}

/* A heading is that of all entries up to the end of the table. `plain`: only what comes before the
 * first group; an entry that is listed is not listed again. */
static void list_options(struct cmd_option_list *list, const struct cmd_option *table,
                         void *settings, const char *heading, bool plain)
{
    bool rare = false;
    for (; table->name || (table->group && !plain); table++) {
        heading = table->heading ? table->heading : heading;
        rare |= table->rare;
        if (table->group) {
            list_options(list, table->group, (char *)settings + table->offset, heading, false);
        } else if (list->count < CMD_MAX_OPTIONS && !is_listed(list, table->name)) {
            list->items[list->count].option = table;
            list->items[list->count].heading = heading;
            list->items[list->count].rare = rare;
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
        list_options(&list, cmd_answer_options, &common->answer, NULL, false);
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

/* The options in the form that getopt_long() wants. */
struct getopt_tables {
    char letters[2 * CMD_MAX_OPTIONS + 2];
    struct option names[2 * CMD_MAX_OPTIONS + 1];
};

/* What getopt_long() returns for the long form of an option is this and its number. */
enum { LONG_FORM = 256 };

static void fill_tables(struct getopt_tables *tables, const struct cmd_option_list *list)
{
    char *letter = tables->letters;
    struct option *name = tables->names;
    *letter++ = ':'; /* distinguishes a missing argument from an unknown option */
    for (size_t i = 0; i < list->count; i++) {
        const struct cmd_option *option = list->items[i].option;
        int kind = !option->argument          ? no_argument
                   : *option->argument == '[' ? optional_argument
                                              : required_argument;
        *name++ = (struct option){option->name, kind, NULL, LONG_FORM + (int)i};
        if (option->also && !is_listed(list, option->also))
            *name++ = (struct option){option->also, kind, NULL, LONG_FORM + (int)i};
        if (option->letter)
            *letter++ = option->letter;
        if (option->letter && kind == required_argument)
            *letter++ = ':';
    }
}

/* The status of a command for one of all commands. */
static int status_of(const struct command *command, int status)
{
    return command->statuses && status >= 0 ? command->statuses[status] : status;
}

static int usage_error(const struct command *command, const char *reason, const char *argument)
{
    bool is_default = command == cmd_table[0];
    BW_AUTO_BUFFER struct bw_buffer shown = {0};
    bw_escape_words(&shown, reason);
    bw_buffer_format(&shown, "%s", argument ? ": " : "");
    bw_escape_words(&shown, argument ? argument : "");
    fprintf(stderr, "btrfs-walk: %.*s\nTry 'btrfs-walk %s%s--help'.\n", (int)shown.length,
            shown.data ? shown.data : "", is_default ? "" : command->name, is_default ? "" : " ");
    return status_of(command, STATUS_CANNOT);
}

static int show_help(const struct command *command, const void *state, const char *argument)
{
    (void)state;
    if (argument && strcmp(argument, "all") != 0)
        return usage_error(command, "invalid argument of --help (allowed: all)", argument);
    cmd_print_help(command, argument);
    return STATUS_OK;
}

int cmd_flush_stdout(const struct cmd_common *common)
{
    bool flushed = !fflush(stdout); /* what was written before may have failed, and is gone */
    if (flushed && !ferror(stdout))
        return STATUS_OK;
    cmd_fail(common, bw_error_from_errno(flushed ? EIO : errno, "cannot write to stdout"));
    return STATUS_PARTIAL;
}

/* Only stdout is written here, so that SIGPIPE may end the program: see cmd_write(). */
static int show(const struct command *command, const struct cmd_common *common, const void *state,
                const struct cmd_option *option, const char *argument)
{
    signal(SIGPIPE, SIG_DFL);
    int status = option->show(command, state, argument);
    if (status == STATUS_OK)
        status = cmd_flush_stdout(common);
    signal(SIGPIPE, SIG_IGN);
    return status_of(command, status);
}

enum { SHOWED_NOTHING = -1 };

/* What is shown when all options are known. */
struct shown {
    const struct cmd_option *option; /* NULL: nothing */
    const char *argument;
};

/* Handles one option, `name` being what it was called; SHOWED_NOTHING if the command goes on, else
 * the exit status. */
static int use_option(const struct command *command, const struct cmd_option_list *list,
                      size_t number, const char *name, const char *argument, struct shown *later)
{
    const struct cmd_option *option = list->items[number].option;
    struct cmd_option other;
    /* getopt_long() knows no others. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    if (option->show && (!option->take || strcmp(argument, "help") == 0)) {
        *later = (struct shown){option, argument};
        return SHOWED_NOTHING;
    }
    if (name && option->also && strcmp(name, option->also) == 0) {
        other = *option;
        other.name = name;
        option = &other;
    }
    BW_AUTO_ERROR struct bw_error *error =
        option->take(list->items[number].settings + option->offset, option, argument);
    return error ? usage_error(command, error->message, NULL) : SHOWED_NOTHING;
}

/* What may be meant by a long option that there is not. */
static int unknown_option(const struct command *command, const struct cmd_option_list *list,
                          const char *argument)
{
    BW_AUTO_BUFFER struct bw_buffer reason = {0};
    BW_AUTO_FREE char *word = strndup(argument, strcspn(argument, "="));
    struct cmd_suggestion suggestion = {
        .message = &reason, .word = word ? word + strspn(word, "-") : "", .prefix = "--"};
    bw_buffer_format(&reason, "unknown option: %s", argument);
    for (size_t i = 0; i < list->count; i++)
        cmd_suggest(&suggestion, list->items[i].option->name);
    bw_buffer_format(&reason, "%s%c", suggestion.count ? "?" : "", '\0');
    return usage_error(command, reason.failed ? "" : reason.data, NULL);
}

/* `of_find`: a word of find(1) that may be meant. */
static int bad_option(const struct command *command, const struct cmd_option_list *list, int result,
                      const char *argument, const char *of_find)
{
    const char letter[] = {'-', (char)optopt, '\0'};
    bool is_short = optopt > 0 && optopt < LONG_FORM && strncmp(argument, "--", 2) != 0;
    if (result == '?' && optopt >= LONG_FORM) {
        const struct cmd_option *option = list->items[optopt - LONG_FORM].option;
        BW_AUTO_BUFFER struct bw_buffer reason = {0};
        /* As above. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
        bw_buffer_format(&reason, "--%s takes no argument, and is: %s", option->name,
                         option->description);
        bw_buffer_append_byte(&reason, '\0');
        return usage_error(command, reason.failed ? "" : reason.data, argument);
    }
    if (result == '?' && !is_short)
        return unknown_option(command, list, argument);
    if (is_short && of_find && strchr(of_find, optopt))
        return usage_error(command, of_find, cmd_find_advice(of_find));
    return usage_error(command, result == ':' ? "option without its argument" : "unknown option",
                       is_short ? letter : argument);
}

static int take_options(const struct command *command, int argc, char **argv,
                        struct cmd_common *common, void *state)
{
    const struct cmd_option_list list = cmd_options_of(command, common, state);
    struct getopt_tables tables = {.letters = ""};
    struct shown later = {NULL, NULL};
    int result, status = SHOWED_NOTHING, index = 0;
    fill_tables(&tables, &list);
    const char *of_find = cmd_find_words(argc, argv, tables.letters, tables.names);
    opterr = 0;
    while (status == SHOWED_NOTHING && (!later.option || later.option->take) &&
           (result = getopt_long(argc, argv, tables.letters, tables.names, &index)) != -1) {
        if (result == '?' || result == ':')
            return bad_option(command, &list, result, argv[optind - 1], of_find);
        size_t number =
            result < LONG_FORM ? cmd_find_letter(&list, result) : (size_t)(result - LONG_FORM);
        const char *name = result < LONG_FORM ? NULL : tables.names[index].name;
        status = use_option(command, &list, number, name, optarg, &later);
    }
    return status == SHOWED_NOTHING && later.option
               ? show(command, common, state, later.option, later.argument)
               : status;
}

/* The command itself, if it has all that it needs. */
static int run_sorted(const struct command *command, struct cmd_common *common, void *state,
                      const struct cmd_operands *operands)
{
    if (command->missing && !common->path_count)
        return usage_error(command, command->missing, NULL);
    struct bw_error *error =
        bw_servers_create((enum bw_helper_mode)common->helpers, &common->servers);
    if (!error)
        bw_servers_set_timeout(common->servers, common->timeout);
    int status = error ? cmd_fail(common, error) : command->run(common, state);
    bw_servers_destroy(common->servers);
    cmd_stray_image(command, operands, status);
    return status;
}

/* Options that stand before a command make an image of it. */
static const char *misplaced_command(const struct command *command, const char *word)
{
    if (command != cmd_table[0] || access(word, F_OK) == 0)
        return NULL;
    for (size_t i = 1; cmd_table[i]; i++)
        if (strcmp(cmd_table[i]->name, word) == 0)
            return word;
    return NULL;
}

static int run_on_operands(const struct command *command, struct cmd_common *common, void *state,
                           char **given, size_t count)
{
    struct cmd_operands operands = {0};
    if (!count && !command->needs_no_image && !common->graph.file)
        return usage_error(command, "no image given", NULL);
    if (count && misplaced_command(command, given[0]))
        return usage_error(command, "the command comes before all options", given[0]);
    struct bw_error *error = cmd_take_operands(command, common, given, count, &operands);
    int status = error              ? cmd_fail(common, error)
                 : operands.nothing ? STATUS_OK
                                    : run_sorted(command, common, state, &operands);
    cmd_free_operands(&operands);
    return status;
}

static void release_settings(const struct cmd_option *table, void *settings)
{
    for (; table->name || table->group; table++) {
        if (table->group)
            release_settings(table->group, (char *)settings + table->offset);
        if (table->release)
            table->release((char *)settings + table->offset);
    }
}

/* Takes the options and, unless they end the command, runs it. */
static int run_command(const struct command *command, struct cmd_common *common, void *state,
                       int argc, char **argv)
{
    if (command->defaults)
        memcpy(state, command->defaults, command->state_size);
    int status = take_options(command, argc, argv, common, state);
    if (status == SHOWED_NOTHING)
        status = run_on_operands(command, common, state, argv + optind, (size_t)(argc - optind));
    release_settings(command->options, state);
    return status;
}

int cmd_run(const struct command *command, int argc, char **argv)
{
    struct cmd_common common = {.helpers = BW_HELPERS_ON};
    BW_AUTO_FREE void *state = calloc(1, command->state_size);
    BW_AUTO_FREE const char **images = calloc((size_t)argc + 1, sizeof *images);
    BW_AUTO_FREE struct bw_graph_edit *edits = calloc((size_t)argc + 1, sizeof *edits);
    BW_AUTO_FREE const char **patterns = calloc((size_t)argc + 1, sizeof *patterns);
    cmd_progress_prepare();
    if (!images || !edits || !patterns || !state)
        return cmd_fail(&common, bw_error_no_memory());
    common.images = images;
    common.graph.struct_size = sizeof common.graph;
    common.graph.edits = common.edits = edits;
    common.probes.patterns = patterns;
    return run_command(command, &common, state, argc, argv);
}
