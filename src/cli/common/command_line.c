/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the words of a command line to a command that runs: its options by getopt_long(), with the
 * words of find(1), and its operands, which are images or paths.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/escape.h"
#include "cli/command.h"
#include "cli/common/options.h"
#include "cli/common/monitor.h"

/*
 * The tests of find(1) have one dash, and are parsed as the options of the same names. Only whole
 * words are, and only where no option before them needs an argument; so -la stays what it is. What
 * find does in addition to testing is explained.
 */

/* Words with two dashes. They are constants, but getopt_long() changes no word. Three dashes: with
 * one and with two dashes it does not mean quite the same (selection.c). */
static const struct {
    const char *word, *option;
} find_words[] = {
    {"!", "--not"},
    {"(", "--open"},
    {")", "--close"},
    {"-amin", "--amin"},
    {"-and", "--and"},
    {"-atime", "--atime"},
    {"-cmin", "--cmin"},
    {"-ctime", "--ctime"},
    {"-empty", "--empty"},
    {"-gid", "--gid"},
    {"-group", "--group"},
    {"-iname", "---iname"},
    {"-inum", "--inum"},
    {"-ipath", "--ipath"},
    {"-iregex", "--iregex"},
    {"-iwholename", "--ipath"},
    {"-links", "--links"},
    {"-maxdepth", "--maxdepth"},
    {"-mindepth", "--mindepth"},
    {"-mmin", "--mmin"},
    {"-mtime", "--mtime"},
    {"-name", "---name"},
    {"-newer", "--newer"},
    {"-newerBt", "--newerBt"},
    {"-newerat", "--newerat"},
    {"-newerct", "--newerct"},
    {"-newermt", "--newermt"},
    {"-not", "--not"},
    {"-or", "--or"},
    {"-path", "--path"},
    {"-perm", "--perm"},
    {"-print0", "--print0"},
    {"-regex", "--regex"},
    {"-size", "--size"},
    {"-type", "---type"},
    {"-uid", "--uid"},
    {"-user", "--user"},
    {"-wholename", "--wholename"},
};

static bool is_option(const char *name, const struct option *names)
{
    while (names->name && strcmp(names->name, name) != 0)
        names++;
    return names->name;
}

static const char *find_word(const char *word)
{
    for (size_t i = 0; i < sizeof find_words / sizeof *find_words; i++)
        if (strcmp(find_words[i].word, word) == 0)
            return find_words[i].option;
    return NULL;
}

/* -o and -a are operators where the command has no such letter, or one whose argument cannot be the
 * test that follows. */
static const char *find_letter(const char *word, const char *next, const char *letters)
{
    const char *letter = strchr(letters, word[1]);
    const bool is_free = !letter || (letter[1] == ':' && next && find_word(next));
    return strcmp(word, "-o") == 0 && is_free   ? "--or"
           : strcmp(word, "-a") == 0 && is_free ? "--and"
                                                : NULL;
}

/* What a word stands for, if the command has that; else NULL. `next`: the word after it, or NULL.
 */
static const char *option_of_find_word(const char *word, const char *next, const char *letters,
                                       const struct option *names)
{
    const char *option = find_word(word);
    if (!option && word[0] == '-' && word[1])
        option = find_letter(word, next, letters);
    return option && is_option(option + 2, names) ? option : NULL;
}

/* Whether the next word is the argument of the last of these short options. */
static bool cluster_needs_argument(const char *cluster, const char *letters)
{
    for (; *cluster; cluster++) {
        const char *letter = *cluster == ':' ? NULL : strchr(letters, *cluster);
        if (letter && letter[1] == ':' && letter[2] != ':')
            return !cluster[1];
    }
    return false;
}

static bool needs_argument(const char *word, const char *letters, const struct option *names)
{
    if (word[0] != '-' || word[1] != '-')
        return word[0] == '-' && cluster_needs_argument(word + 1, letters);
    while (names->name && strcmp(names->name, word + 2) != 0)
        names++;
    return names->name && names->has_arg == required_argument;
}

/* Advice for words of find that are not supported, like "-exec"; NULL for other words. */
static const char *find_advice(const char *word)
{
    static const struct {
        const char *word, *advice;
    } others[] = {
        {"-delete", "images are never changed"},
        {"-exec", "pipe -0 into 'xargs -0'"},
        {"-fprint", "send stdout to a file"},
        {"-ls", "lines like those of ls are --long"},
        {"-ok", "pipe -0 into 'xargs -0'"},
        {"-print", "paths are printed anyway"},
        {"-printf", "use -o or --json to print file attributes"},
        {"-prune", "use --exclude to skip directories and their contents"},
        {"-regextype", "regular expressions are always posix-extended"},
        {"-xdev", "--nested=no stays in one subvolume"},
        {"-mount", "--nested=no stays in one subvolume"},
        {"-anewer", "times are compared with dates: --newerat"},
        {"-cnewer", "times are compared with dates: --newerct"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].word, word) == 0)
            return others[i].advice;
    return NULL;
}

/* Replaces words like "-name", where getopt_long() would take them for short options, by those that
 * it knows. `letters` and `names` are its tables. Returns the first word that there is advice for;
 * NULL if there is none. */
static const char *replace_find_words(int argc, char **argv, const char *letters,
                                      const struct option *names)
{
    const char *other = NULL;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *option = option_of_find_word(argv[i], argv[i + 1], letters, names);
        if (option)
            argv[i] = (char *)(size_t)option;
        else if (!other && find_advice(argv[i]))
            other = argv[i];
        i += needs_argument(argv[i], letters, names);
    }
    return other;
}

/* Options. */

/* The options in the form that getopt_long() wants. */
struct getopt_tables {
    char letters[2 * CMD_MAX_OPTIONS + 2];
    struct option names[2 * CMD_MAX_OPTIONS + 1];
};

/* getopt_long() returns this plus the option's number for a long option. */
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
        if (option->also && !cmd_has_option(list, option->also))
            *name++ = (struct option){option->also, kind, NULL, LONG_FORM + (int)i};
        if (option->letter)
            *letter++ = option->letter;
        if (option->letter && kind == required_argument)
            *letter++ = ':';
    }
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
    return cmd_exit_status(command, status);
}

enum { SHOWED_NOTHING = -1 };

/* Output that must wait until all options are parsed. */
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
    return error ? cmd_usage_error(command, error->message, NULL) : SHOWED_NOTHING;
}

/* Suggestions for an unknown long option. */
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
    return cmd_usage_error(command, reason.failed ? "" : reason.data, NULL);
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
        return cmd_usage_error(command, reason.failed ? "" : reason.data, argument);
    }
    if (result == '?' && !is_short)
        return unknown_option(command, list, argument);
    if (is_short && of_find && strchr(of_find, optopt))
        return cmd_usage_error(command, of_find, find_advice(of_find));
    return cmd_usage_error(command,
                           result == ':' ? "option without its argument" : "unknown option",
                           is_short ? letter : argument);
}

static int parse_options(const struct command *command, int argc, char **argv,
                         struct cmd_common *common, void *state)
{
    const struct cmd_option_list list = cmd_options_of(command, common, state);
    struct getopt_tables tables = {.letters = ""};
    struct shown later = {NULL, NULL};
    int result, status = SHOWED_NOTHING, index = 0;
    fill_tables(&tables, &list);
    const char *of_find = replace_find_words(argc, argv, tables.letters, tables.names);
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

/* Operands: which of them are images, and the paths that a file lists. */

/* The operands of a command, sorted. All zeros is none. */
struct operands {
    const char **paths;    /* if there are more than those that were given */
    struct bw_buffer list; /* of those in a file */
    const char *stray;     /* the first path that is or may be an image; NULL: none is */
    bool stray_is_image;   /* it has a superblock */
    bool nothing;          /* only a file was to give paths, and there are none in it */
};

/* Whether a file may be a device that has lost its superblocks, by its size. */
static bool may_be_device(const char *path)
{
    enum { SMALLEST_DEVICE = 16 << 20 };
    struct stat status;
    return stat(path, &status) == 0 &&
           (S_ISBLK(status.st_mode) ||
            (S_ISREG(status.st_mode) && status.st_size >= SMALLEST_DEVICE));
}

/* How many operands are images: the first, and all up to the last one that is of its file system.
 * Those before it may have lost their superblocks; then the next one tells the file system. */
static size_t count_images(const struct cmd_common *common, char **given, size_t count)
{
    uint8_t first[BW_UUID_SIZE], fsid[BW_UUID_SIZE];
    bool known = false;
    if (common->input.graph.file || !count)
        return 0;
    size_t images = 1;
    for (size_t i = 0; i < count; i++) {
        const bool holds = bw_file_holds_superblock(given[i], common->input.offset, fsid);
        if (holds && !known)
            memcpy(first, fsid, sizeof fsid);
        if (holds ? memcmp(first, fsid, sizeof fsid) != 0 : !may_be_device(given[i]))
            break;
        known |= holds;
        images = holds ? i + 1 : images;
    }
    return images;
}

/* IMAGE comes first, because its file system is the one to open; devices of --device follow. */
static void sort_operands(const struct command *command, struct cmd_common *common, char **given,
                          size_t count, struct operands *operands)
{
    size_t images = command->takes_paths ? count_images(common, given, count) : count;
    memmove(common->input.images + images, common->input.images,
            common->input.image_count * sizeof *common->input.images);
    for (size_t i = 0; i < images; i++)
        common->input.images[i] = given[i];
    common->input.image_count += images;
    common->paths = (const char *const *)given + images;
    common->path_count = count - images;
    for (size_t i = images; i < count && !operands->stray; i++) {
        uint8_t fsid[BW_UUID_SIZE];
        operands->stray_is_image = bw_file_holds_superblock(given[i], common->input.offset, fsid);
        operands->stray = operands->stray_is_image || may_be_device(given[i]) ? given[i] : NULL;
    }
}

/* Makes paths of the lines of a text, which ends with NUL, and counts them. Empty ones are none.
 * `paths` may be NULL. */
static size_t split_lines(struct bw_buffer *text, char separator, const char **paths)
{
    char *end = text->data + text->length - 1;
    size_t count = 0;
    for (char *line = text->data, *next; line < end; line = next + 1) {
        next = memchr(line, separator, (size_t)(end - line));
        next = next ? next : end;
        if (paths)
            *next = '\0';
        if (next > line && paths)
            paths[count] = line;
        count += next > line;
    }
    return count;
}

/* The paths that were given stay in front of those in the file. */
static struct bw_error *add_list(struct cmd_common *common, struct operands *operands)
{
    const char separator = common->null_separated ? '\0' : '\n';
    BW_TRY(strcmp(common->files_from, "-") == 0
               ? bw_buffer_read_all(&operands->list, STDIN_FILENO)
               : bw_buffer_read_file(&operands->list, common->files_from));
    bw_buffer_append_byte(&operands->list, '\0');
    if (operands->list.failed)
        return bw_error_no_memory();
    size_t before = common->path_count, count = split_lines(&operands->list, separator, NULL);
    operands->paths = calloc(before + count + 1, sizeof *operands->paths);
    if (!operands->paths)
        return bw_error_no_memory();
    for (size_t i = 0; i < before; i++)
        operands->paths[i] = common->paths[i];
    split_lines(&operands->list, separator, operands->paths + before);
    common->paths = operands->paths;
    common->path_count = before + count;
    operands->nothing = !common->path_count;
    return NULL;
}

/* Tells images from paths, and reads more paths from the file of --files-from. */
static struct bw_error *read_operands(const struct command *command, struct cmd_common *common,
                                      char **given, size_t count, struct operands *operands)
{
    sort_operands(command, common, given, count, operands);
    if (common->files_from)
        BW_TRY(add_list(common, operands));
    if (operands->nothing && !common->messages.quiet)
        fprintf(stderr, "btrfs-walk: warning: the list of paths is empty: nothing is done\n");
    return NULL;
}

/* The image to compare with has a separate option. */
static const char *option_for_image(const struct command *command)
{
    for (const struct cmd_option *option = command->options; option->name || option->group;
         option++)
        if (option->name && strcmp(option->name, "other") == 0)
            return "other";
    return "device";
}

/* Says what may be meant by a path that is an image, if the exit status is that of a failure. */
static void report_stray_image(const struct command *command, const struct operands *operands,
                               int status)
{
    BW_AUTO_BUFFER struct bw_buffer name = {0};
    if (!status || !operands->stray)
        return;
    bw_escape_words(&name, operands->stray);
    const char *text = name.data ? name.data : "";
    fprintf(stderr, "btrfs-walk: %.*s %s an image; did you mean --%s %.*s?\n", (int)name.length,
            text, operands->stray_is_image ? "is" : "may be", option_for_image(command),
            (int)name.length, text);
}

static void free_operands(struct operands *operands)
{
    free(operands->paths);
    bw_buffer_free(&operands->list);
}

/* Running the command. */

/* Runs the command if its operands are complete. */
static int run_sorted(const struct command *command, struct cmd_common *common, void *state,
                      const struct operands *operands)
{
    if (command->missing && !common->path_count)
        return cmd_usage_error(command, command->missing, NULL);
    struct bw_error *error =
        bw_servers_create((enum bw_helper_mode)common->input.helpers, &common->input.servers);
    if (!error)
        bw_servers_set_timeout(common->input.servers, common->input.timeout);
    int status = error ? cmd_fail(common, error) : command->run(common, state);
    bw_servers_destroy(common->input.servers);
    report_stray_image(command, operands, status);
    return status;
}

/* A command name after options is parsed as an image. */
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
    struct operands operands = {0};
    if (!count && !command->needs_no_image && !common->input.graph.file)
        return cmd_usage_error(command, "no image given", NULL);
    if (count && misplaced_command(command, given[0]))
        return cmd_usage_error(command, "the command comes before all options", given[0]);
    struct bw_error *error = read_operands(command, common, given, count, &operands);
    int status = error              ? cmd_fail(common, error)
                 : operands.nothing ? STATUS_OK
                                    : run_sorted(command, common, state, &operands);
    free_operands(&operands);
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

/* Parses the options and, unless they end the command, runs it. */
static int run_command(const struct command *command, struct cmd_common *common, void *state,
                       int argc, char **argv)
{
    if (command->defaults)
        memcpy(state, command->defaults, command->state_size);
    int status = parse_options(command, argc, argv, common, state);
    if (status == SHOWED_NOTHING)
        status = run_on_operands(command, common, state, argv + optind, (size_t)(argc - optind));
    release_settings(command->options, state);
    return status;
}

int cmd_run(const struct command *command, int argc, char **argv)
{
    struct cmd_common common = {.input.helpers = BW_HELPERS_ON};
    BW_AUTO_FREE void *state = calloc(1, command->state_size);
    BW_AUTO_FREE const char **images = calloc((size_t)argc + 1, sizeof *images);
    BW_AUTO_FREE struct bw_graph_edit *edits = calloc((size_t)argc + 1, sizeof *edits);
    BW_AUTO_FREE const char **patterns = calloc((size_t)argc + 1, sizeof *patterns);
    cmd_monitor_prepare();
    if (!images || !edits || !patterns || !state)
        return cmd_fail(&common, bw_error_no_memory());
    common.input.images = images;
    common.input.graph.struct_size = sizeof common.input.graph;
    common.input.graph.edits = common.input.edits = edits;
    common.probes.patterns = patterns;
    return run_command(command, &common, state, argc, argv);
}
