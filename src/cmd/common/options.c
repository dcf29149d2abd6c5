/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parsing the command line from the option tables, and writing the help text from them. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "cmd/command.h"
#include "cmd/probes/probe_list.h"

#ifndef BW_VERSION
#define BW_VERSION "unknown"
#endif

enum { MAX_OPTIONS = 96 };

/* Letters of common options that have no short form; those of the commands begin at 256. */
enum { OPTION_GRAPH = 1024, OPTION_XLATOR_OPTION, OPTION_INSERT, OPTION_STATEDUMP };

/* Of every command that opens a file system. */
static const struct cmd_option image_options[] = {
    {'d', "device", "FILE", "another device of the same file system (repeatable)"},
    {'s', "super", "N", "use superblock copy N: 0, 1 or 2 (default: the best)"},
    {OPTION_GRAPH, "graph", "FILE",
     "read through the graph of this volfile; its images, unless IMAGE is given"},
    {OPTION_XLATOR_OPTION, "xlator-option", "SETTING",
     "NAME.KEY=VALUE: an option of a layer (repeatable; see 'btrfs-walk graph --help')"},
    {OPTION_INSERT, "insert", "LAYER",
     "TYPE@VOLUME[,KEY=VALUE...]: a layer above a volume (repeatable)"},
    {OPTION_STATEDUMP, "statedump", "FILE",
     "write the state of all layers there, or to stderr (-), at the end and on SIGUSR1"},
    {0},
};

/* Of every command. */
static const struct cmd_option common_options[] = {
    {'q', "quiet", NULL, "no warnings; only what ends the command is said"},
    {'v', "verbose", NULL,
     "also say which bad copies were replaced by good ones; -vv: the way of each error"},
    {'h', "help", NULL, "this text"},
    {'V', "version", NULL, "version of the program"},
    {0},
};

/* The tables a command takes options from. */
enum { OPTION_TABLES = 4 };
struct option_tables {
    const struct cmd_option *tables[OPTION_TABLES];
};

static struct option_tables tables_of(const struct command *command)
{
    static const struct cmd_option none[] = {{0}};
    return (struct option_tables){{command->options, command->needs_no_image ? none : image_options,
                                   command->needs_no_image ? none : cmd_probe_options,
                                   common_options}};
}

bool cmd_parse_number(const char *text, unsigned long minimum, unsigned long maximum,
                      unsigned long *number)
{
    char *end;
    errno = 0;
    *number = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && !errno && *number >= minimum &&
           *number <= maximum;
}

static const char *long_name(const struct cmd_option *options, int letter)
{
    for (; options->letter; options++)
        if (options->letter == letter)
            return options->name;
    return NULL;
}

/* A letter of its own that a command has goes before the same one of all commands, as -h of ls
 * does. */
static bool has_short_form(const struct command *command, const struct cmd_option *option)
{
    const char *own = long_name(command->options, option->letter);
    return option->letter < 256 && (!own || own == option->name);
}

static void help_options(const struct command *command, const struct cmd_option *options)
{
    for (; options->letter; options++) {
        char left[48];
        int used = has_short_form(command, options)
                       ? snprintf(left, sizeof left, "-%c, ", options->letter)
                       : snprintf(left, sizeof left, "    ");
        snprintf(left + used, sizeof left - (size_t)used, "--%s%s%s", options->name,
                 options->argument && *options->argument != '[' ? " " : "",
                 options->argument ? options->argument : "");
        printf("  %-30s %s\n", left, options->description);
    }
}

void cmd_help(const struct command *command)
{
    bool is_default = command == cmd_table[0];
    printf("Usage: btrfs-walk %s%s%s [OPTIONS] %s\n%s\n", is_default ? "[" : "", command->name,
           is_default ? "]" : "", command->operands, command->summary);
    printf("%s\nOptions:\n", command->details);
    const struct option_tables all = tables_of(command);
    for (size_t i = 0; i < OPTION_TABLES; i++)
        help_options(command, all.tables[i]);
    printf("\nExamples:\n%s", command->examples);
    if (!is_default)
        return;
    printf("\nCommands:\n");
    for (size_t i = 0; cmd_table[i]; i++)
        printf("  %-22s %s\n", cmd_table[i]->name, cmd_table[i]->summary);
}

/* The tables in the form that getopt_long() wants. */
struct getopt_tables {
    char letters[2 * MAX_OPTIONS + 2];
    struct option names[MAX_OPTIONS + 1];
    size_t letter_count, name_count;
};

/* One that need not be there begins with a bracket. */
static int argument_kind(const char *argument)
{
    return !argument ? no_argument : *argument == '[' ? optional_argument : required_argument;
}

static void add_options(struct getopt_tables *tables, const struct cmd_option *options)
{
    for (; options->letter && tables->name_count < MAX_OPTIONS; options++) {
        tables->names[tables->name_count++] =
            (struct option){options->name, argument_kind(options->argument), NULL, options->letter};
        if (options->letter >= 256)
            continue;
        tables->letters[tables->letter_count++] = (char)options->letter;
        if (options->argument)
            tables->letters[tables->letter_count++] = ':';
    }
}

static int usage_error(const char *reason, const char *argument)
{
    struct bw_buffer shown = {0};
    bw_escape_words(&shown, argument ? argument : "");
    fprintf(stderr, "btrfs-walk: %s%s%.*s\nTry 'btrfs-walk --help'.\n", reason,
            argument ? ": " : "", (int)shown.length, shown.data ? shown.data : "");
    bw_buffer_free(&shown);
    return STATUS_CANNOT;
}

static bool set_common(struct cmd_common *common, int letter, const char *argument)
{
    unsigned long number;
    if (letter >= CMD_OPTION_PROBE && letter < CMD_OPTIONS_PROBE_END)
        return cmd_probe_set(&common->probes, letter, argument);
    switch (letter) {
    case 'd':
        common->images[common->image_count++] = argument;
        return true;
    case 's':
        if (!cmd_parse_number(argument, 0, 2, &number))
            return false;
        common->superblock_copy = (int)number;
        return true;
    case 'q':
        return common->quiet = true;
    case 'v':
        return ++common->verbose;
    case OPTION_GRAPH:
        common->graph.file = argument;
        return true;
    case OPTION_XLATOR_OPTION:
    case OPTION_INSERT:
        common->edits[common->graph.edit_count++] = (struct bw_graph_edit){
            letter == OPTION_INSERT ? BW_EDIT_INSERT : BW_EDIT_OPTION, argument};
        return true;
    case OPTION_STATEDUMP:
        common->statedump = argument;
        return *argument != '\0';
    default:
        return false;
    }
}

static int bad_argument(const struct command *command, int letter, const char *argument)
{
    const struct option_tables all = tables_of(command);
    const char *name = NULL;
    for (size_t i = 0; !name && i < OPTION_TABLES; i++)
        name = long_name(all.tables[i], letter);
    char reason[64];
    snprintf(reason, sizeof reason, "invalid argument of --%s", name);
    return usage_error(reason, argument);
}

static int flush_stdout(const struct cmd_common *common)
{
    if (!fflush(stdout))
        return STATUS_OK;
    cmd_fail(common, bw_error_from_errno(errno, "cannot write to stdout"));
    return STATUS_PARTIAL;
}

/* Whether the option that was found is --help, which not every command shares its letter with. */
static bool asks_for_help(const struct getopt_tables *tables, int index)
{
    return index >= 0 && strcmp(tables->names[index].name, "help") == 0;
}

/* Takes all options; -1 if all is well, else the exit status to end with. */
static int take_options(const struct command *command, int argc, char **argv,
                        struct cmd_common *common, void *state)
{
    /* The colon: a missing argument is told from an unknown option. */
    struct getopt_tables tables = {.letters = ":", .letter_count = 1};
    int letter, index = 0;
    const struct option_tables all = tables_of(command);
    for (size_t i = 0; i < OPTION_TABLES; i++)
        add_options(&tables, all.tables[i]);
    opterr = 0;
    while (index = -1,
           (letter = getopt_long(argc, argv, tables.letters, tables.names, &index)) != -1) {
        bool own = long_name(command->options, letter) && !asks_for_help(&tables, index);
        if (letter == 'h' && !own) {
            cmd_help(command);
            return flush_stdout(common);
        }
        if (letter == 'V') {
            puts("btrfs-walk " BW_VERSION);
            return flush_stdout(common);
        }
        if (letter == CMD_OPTION_PROBE_LIST) {
            int status = cmd_probe_list(optarg);
            return status ? status : flush_stdout(common);
        }
        if (letter == '?' || letter == ':') {
            const char short_form[] = {'-', (char)optopt, '\0'};
            bool is_short = optopt > 0 && optopt < 256 && strncmp(argv[optind - 1], "--", 2) != 0;
            return usage_error(letter == ':' ? "option without its argument" : "unknown option",
                               is_short ? short_form : argv[optind - 1]);
        }
        bool good = own ? command->set(state, letter, optarg) : set_common(common, letter, optarg);
        if (!good)
            return bad_argument(command, letter, optarg);
    }
    return -1;
}

/* IMAGE comes first, so that its file system is the one meant; devices given by -d follow. */
static void take_operands(const struct command *command, struct cmd_common *common, char **operands,
                          size_t count)
{
    size_t images = command->takes_paths ? count && !common->graph.file : count;
    memmove(common->images + images, common->images, common->image_count * sizeof *common->images);
    memcpy(common->images, operands, images * sizeof *common->images);
    common->image_count += images;
    common->paths = (const char *const *)operands + images;
    common->path_count = count - images;
}

/* -1 if the command can run, else the exit status to end with. */
static int check_operands(const struct command *command, const struct cmd_common *common,
                          bool given, bool asks)
{
    if (!given && !command->needs_no_image && !common->graph.file && !asks)
        return usage_error("no image given", NULL);
    if (command->needs_path && !common->path_count && !asks)
        return usage_error("no path given", NULL);
    return -1;
}

int cmd_run(const struct command *command, int argc, char **argv)
{
    struct cmd_common common = {.superblock_copy = BW_ANY_SUPERBLOCK_COPY};
    common.images = calloc((size_t)argc + 1, sizeof *common.images);
    common.graph.edits = common.edits = calloc((size_t)argc + 1, sizeof *common.edits);
    common.probes.patterns = calloc((size_t)argc + 1, sizeof *common.probes.patterns);
    void *state = calloc(1, command->state_size);
    int status = STATUS_CANNOT;
    cmd_statedump_prepare();
    if (!common.images || !common.edits || !common.probes.patterns || !state) {
        status = cmd_fail(&common, bw_error_no_memory());
    } else {
        status = take_options(command, argc, argv, &common, state);
        if (status < 0) {
            take_operands(command, &common, argv + optind, (size_t)(argc - optind));
            status = check_operands(command, &common, argc > optind,
                                    command->asks && command->asks(state));
            if (status < 0)
                status = command->run(&common, state);
        }
    }
    free(common.images);
    free(common.edits);
    free(common.probes.patterns);
    free(state);
    return status;
}
