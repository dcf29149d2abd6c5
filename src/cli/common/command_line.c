/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a command line to a running command: options, parsed by getopt_long(), with the words of
 * find(1); and operands, which are images or paths.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/escape.h"
#include "base/map.h"
#include "cli/command.h"
#include "cli/common/keys.h"
#include "cli/common/list_file.h"
#include "cli/common/monitor.h"
#include "cli/common/options.h"
#include "cli/common/paths.h"
#include "cli/common/repeats.h"

/*
 * The tests of find(1) begin with a single dash and are parsed as the long options of the same
 * names. Only whole words that are not the argument of the option before them are replaced, so -la
 * still means -l -a. For actions of find, such as -exec, the program prints advice.
 */

/* The long options, without their first dash: words of find. getopt_long() does not change the
 * constants. */
static const char *const find_options[] = {
    "--amin",  "--atime",  "--cmin",   "--ctime",   "--empty",    "--gid",      "--group",
    "--iname", "--ipath",  "--iregex", "--links",   "--maxdepth", "--mindepth", "--mmin",
    "--mtime", "--name",   "--newer",  "--newerBt", "--newerat",  "--newerct",  "--path",
    "--perm",  "--print0", "--regex",  "--size",    "--type",     "--uid",      "--user",
};

static bool is_option(const char *name, const struct option *names)
{
    while (names->name && strcmp(names->name, name) != 0)
        names++;
    return names->name;
}

/* The option that replaces a word of find, if the command has it; else NULL. */
static const char *option_of_find_word(const char *word, const struct option *names)
{
    for (size_t i = 0; i < sizeof find_options / sizeof *find_options; i++)
        if (strcmp(find_options[i] + 1, word) == 0)
            return is_option(find_options[i] + 2, names) ? find_options[i] : NULL;
    return NULL;
}

/* Whether the last of these short options takes the next word as its argument. */
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
        {"-ls", "'ls -lR' prints long lines"},
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

/* Reports that an option, or a word of find, was removed; false if no earlier version had it. */
static bool report_removed(const struct command *command, const char *word, const char *name)
{
    const char *instead = cmd_instead_of_option(command->name, name);
    if (instead)
        fprintf(stderr, "btrfs-walk: the option %s was removed: %s\n", word, instead);
    return instead;
}

/* The name in the list of removed options of a word that joins tests of find, or that is a synonym
 * of one; "" for other words. `next`: the word after it, or NULL. */
static const char *name_of_find_word(const char *word, const char *next, const struct option *names)
{
    if (strcmp(word, "-o") == 0 || strcmp(word, "-a") == 0)
        return next && option_of_find_word(next, names) ? "or" : "";
    if (strlen(word) == 1)
        return strchr("!()", *word) ? word : "";
    return word[0] == '-' && word[1] != '-' ? word + 1 : "";
}

/* Replaces words like "-name", which getopt_long() would parse as short options. `letters` and
 * `names` are its tables. `*other` becomes the first word that find_advice() has advice for. False,
 * with a message, if there is a word that was removed. */
static bool replace_find_words(const struct command *command, int argc, char **argv,
                               const char *letters, const struct option *names, const char **other)
{
    const bool has_tests = is_option("exclude", names);
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *option = option_of_find_word(argv[i], names);
        if (option)
            argv[i] = (char *)(size_t)option;
        else if (!*other && find_advice(argv[i]))
            *other = argv[i];
        else if (has_tests &&
                 report_removed(command, argv[i], name_of_find_word(argv[i], argv[i + 1], names)))
            return false;
        i += needs_argument(argv[i], letters, names);
    }
    return true;
}

/* Options. */

/* The options as getopt_long() expects them. */
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

/* Writes only to stdout, so SIGPIPE may end the program: see cmd_write(). */
static int show_option(const struct command *command, const struct cmd_common *common,
                       const void *state, const struct cmd_option *option, const char *argument)
{
    signal(SIGPIPE, SIG_DFL);
    int status = option->show(command, state, argument);
    if (status == STATUS_OK)
        status = cmd_flush_stdout(common);
    signal(SIGPIPE, SIG_IGN);
    return cmd_exit_status(command, status);
}

enum { SHOWED_NOTHING = -1 };

/* An option like --help, whose output waits until all options are parsed. */
struct shown {
    const struct cmd_option *option; /* NULL: nothing */
    const char *argument;
};

/* Handles one option, which the user wrote as `name`. Returns SHOWED_NOTHING to continue with the
 * command, else the exit status. */
static int store_option(const struct command *command, const struct cmd_option_list *list,
                        size_t number, const char *name, const char *argument, struct shown *later)
{
    const struct cmd_option *option = list->items[number].option;
    struct cmd_option other;
    /* list->items[number] exists for every result.
     * NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    if (option->show && (!option->store || strcmp(argument, "help") == 0)) {
        *later = (struct shown){option, argument};
        return SHOWED_NOTHING;
    }
    if (name && option->also && strcmp(name, option->also) == 0) {
        other = *option;
        other.name = name;
        option = &other;
    }
    BW_AUTO_ERROR struct bw_error *error =
        option->store(list->items[number].settings + option->offset, option, argument);
    return error ? cmd_usage_error(command, error->message, NULL) : SHOWED_NOTHING;
}

/* Reports an unknown long option and suggests similar ones. */
static int unknown_option(const struct command *command, const struct cmd_option_list *list,
                          const char *argument)
{
    BW_AUTO_BUFFER struct bw_buffer reason = {0};
    BW_AUTO_FREE char *word = strndup(argument, strcspn(argument, "="));
    const char *name = word ? word + strspn(word, "-") : "";
    if (word && report_removed(command, word, name))
        return cmd_exit_status(command, STATUS_CANNOT);
    struct cmd_suggestion suggestion = {.message = &reason, .word = name, .prefix = "--"};
    bw_buffer_format(&reason, "unknown option: %s", argument);
    for (size_t i = 0; i < list->count; i++)
        cmd_suggest(&suggestion, list->items[i].option->name);
    bw_buffer_format(&reason, "%s%c", suggestion.count ? "?" : "", '\0');
    return cmd_usage_error(command, reason.failed ? "" : reason.data, NULL);
}

/* Reports an unknown option. `of_find`: a word of find(1) to give advice for; may be NULL. */
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
    if (is_short && report_removed(command, letter, letter + 1))
        return cmd_exit_status(command, STATUS_CANNOT);
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
    optind = 0; /* begins again, if a command runs another one */
    struct shown later = {NULL, NULL};
    int result, status = SHOWED_NOTHING, index = 0;
    fill_tables(&tables, &list);
    const char *of_find = NULL;
    if (!replace_find_words(command, argc, argv, tables.letters, tables.names, &of_find))
        return cmd_exit_status(command, STATUS_CANNOT);
    opterr = 0;
    while (status == SHOWED_NOTHING && (!later.option || later.option->store) &&
           (result = getopt_long(argc, argv, tables.letters, tables.names, &index)) != -1) {
        if (result == '?' || result == ':')
            return bad_option(command, &list, result, argv[optind - 1], of_find);
        size_t number =
            result < LONG_FORM ? cmd_find_letter(&list, result) : (size_t)(result - LONG_FORM);
        const char *name = result < LONG_FORM ? NULL : tables.names[index].name;
        status = store_option(command, &list, number, name, optarg, &later);
    }
    return status == SHOWED_NOTHING && later.option
               ? show_option(command, common, state, later.option, later.argument)
               : status;
}

/* Operands: images and paths, and the list of paths in a file. */

/* The operands of a command. */
struct operands {
    const char **paths;    /* allocated if --files-from adds paths */
    struct bw_buffer list; /* contents of the --files-from file */
    const char *stray;     /* the first path that is or may be an image, or NULL */
    bool stray_is_image;   /* `stray` has a superblock */
    bool nothing;          /* --files-from was given, and there are no paths at all */
    bool is_incomplete;    /* the list ends with the mark of an incomplete list */
};

/* Whether a file is large enough to be a device that has lost its superblocks. */
static bool may_be_device(const char *path)
{
    enum { SMALLEST_DEVICE = 16 << 20 };
    struct stat status;
    return stat(path, &status) == 0 &&
           (S_ISBLK(status.st_mode) ||
            (S_ISREG(status.st_mode) && status.st_size >= SMALLEST_DEVICE));
}

/* Counts the operands that are images: the first, and all up to the last one that belongs to the
 * same file system, or is a container. Images may have lost their superblocks; the first superblock
 * decides which file system it is. */
static size_t count_devices(const struct cmd_common *common, char **given, size_t count)
{
    uint8_t first[BW_UUID_SIZE], fsid[BW_UUID_SIZE];
    bool known = false;
    size_t images = 1;
    for (size_t i = 0; i < count; i++) {
        const bool holds = bw_file_holds_superblock(given[i], common->input.offset, fsid);
        if (bw_file_holds_container(given[i], common->input.offset)) {
            images = i + 1; /* whose file system is not known yet */
            continue;
        }
        if (holds && !known)
            memcpy(first, fsid, sizeof fsid);
        if (holds ? memcmp(first, fsid, sizeof fsid) != 0 : !may_be_device(given[i]))
            break;
        known |= holds;
        images = holds ? i + 1 : images;
    }
    return images;
}

static bool is_same_file(const char *one, const char *other)
{
    struct stat a, b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* Counts the send streams at the beginning. A stream is often named after its subvolume, so a
 * second operand of the same name is a path. */
static size_t count_streams(char **given, size_t count)
{
    size_t streams = 0;
    bool is_new = true;
    while (is_new && streams < count && bw_file_holds_stream(given[streams])) {
        for (size_t i = 0; is_new && i < streams; i++)
            is_new = !is_same_file(given[i], given[streams]);
        streams += is_new;
    }
    return streams;
}

static size_t count_images(const struct cmd_common *common, char **given, size_t count)
{
    if (common->input.graph.file || !count)
        return 0;
    const size_t streams = count_streams(given, count);
    return streams ? streams : count_devices(common, given, count);
}

/* IMAGE comes first, because its file system is opened; the devices of --device follow. */
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
        operands->stray_is_image = bw_file_holds_superblock(given[i], common->input.offset, fsid) ||
                                   bw_file_holds_container(given[i], common->input.offset) ||
                                   bw_file_holds_stream(given[i]);
        operands->stray = operands->stray_is_image || may_be_device(given[i]) ? given[i] : NULL;
    }
}

/* Splits a NUL-terminated text into paths and counts them; empty lines are ignored. `paths` may be
 * NULL, to count only. */
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

static struct bw_error *read_list(const struct cmd_common *common, struct bw_buffer *list)
{
    const char *name = common->files_from, *in_base = cmd_name_in_base(common, name);
    struct stat status;
    if (strcmp(name, "-") == 0)
        return bw_buffer_read_all(list, STDIN_FILENO);
    if (!in_base)
        return bw_buffer_read_file(list, name);
    const int descriptor =
        bw_open_beneath(common->writing.base->descriptor, in_base, O_RDONLY | O_NONBLOCK, false);
    if (descriptor < 0)
        return cmd_name_error(common->writing.base->descriptor, in_base, name, errno);
    struct bw_error *error = NULL;
    if (fstat(descriptor, &status) || !S_ISREG(status.st_mode))
        error = bw_error_create(BW_ERROR_USAGE, "%s is not a regular file", name);
    if (!error)
        error = bw_buffer_read_all(list, descriptor);
    close(descriptor);
    return error;
}

/* Removes the mark of an incomplete list from its end, and reports it. Empty lines are ignored, so
 * the mark may be the only one. */
static void remove_mark(const struct cmd_common *common, struct operands *operands)
{
    const struct bw_bytes *mark = &cmd_incomplete_paths;
    struct bw_buffer *list = &operands->list;
    if (!common->null_separated || list->length < mark->length)
        return;
    const size_t at = list->length - mark->length;
    if (memcmp(list->data + at, mark->data, mark->length) != 0 || (at && list->data[at - 1]))
        return;
    list->length = at;
    operands->is_incomplete = true;
    BW_AUTO_BUFFER struct bw_buffer name = {0};
    bw_escape_words(&name, common->files_from);
    fprintf(stderr,
            "btrfs-walk: %.*s is incomplete: the extraction that wrote it did not end; repeat it\n",
            (int)name.length, name.data ? name.data : "");
}

/* Appends the paths of --files-from to the operands. */
static struct bw_error *add_list(struct cmd_common *common, struct operands *operands)
{
    const char separator = common->null_separated ? '\0' : '\n';
    BW_TRY(read_list(common, &operands->list));
    remove_mark(common, operands);
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

bool cmd_works_on_paths(const struct command *command)
{
    const struct cmd_option_list list = cmd_options_of(command, NULL, NULL);
    return cmd_has_option(&list, "subvol") && strstr(command->operands, "PATH");
}

/* Separates images from paths, and reads the paths of --files-from. */
static struct bw_error *read_operands(const struct command *command, struct cmd_common *common,
                                      char **given, size_t count, struct operands *operands)
{
    sort_operands(command, common, given, count, operands);
    if (common->files_from)
        BW_TRY(add_list(common, operands));
    if (operands->nothing && !common->messages.quiet)
        fprintf(stderr, "btrfs-walk: warning: the list of paths is empty: nothing to do\n");
    return NULL;
}

/* The option that accepts another image: --other if the command has it, else --device. */
static const char *option_for_image(const struct command *command)
{
    for (const struct cmd_option *option = command->options; option->name || option->group;
         option++)
        if (option->name && strcmp(option->name, "other") == 0)
            return "other";
    return "device";
}

/* If the command failed and a path looks like an image, suggests the option for images. */
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

static int run_sorted(const struct command *command, struct cmd_common *common, void *state,
                      const struct operands *operands)
{
    const bool needs_path =
        command->missing && !(command->needs_no_path && command->needs_no_path(state));
    if (needs_path && !common->path_count)
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

/* Returns an operand that is the name of a command, if the command line does not begin with one. */
static const char *misplaced_command(const struct command *command, char **given, size_t count)
{
    for (size_t i = 0; command == cmd_table[0] && i < count; i++)
        if (cmd_find(given[i]) && access(given[i], F_OK) != 0)
            return given[i];
    return NULL;
}

static int run_on_operands(const struct command *command, struct cmd_common *common, void *state,
                           char **given, size_t count)
{
    struct operands operands = {0};
    if (!count && !command->needs_no_image && !common->input.graph.file)
        return cmd_usage_error(command, "no image given", NULL);
    const char *misplaced = misplaced_command(command, given, count);
    if (misplaced)
        return cmd_usage_error(command, "the command has to come first", misplaced);
    struct bw_error *error = read_operands(command, common, given, count, &operands);
    int status = error              ? cmd_fail(common, error)
                 : operands.nothing ? STATUS_OK
                                    : run_sorted(command, common, state, &operands);
    if (status == STATUS_OK && operands.is_incomplete)
        status = command->statuses ? command->statuses[STATUS_PARTIAL] : STATUS_PARTIAL;
    free_operands(&operands);
    error = cmd_sync_file(common, STDOUT_FILENO, "stdout");
    if (!error)
        return status;
    cmd_fail(common, error);
    return status ? status : STATUS_PARTIAL;
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

/* Arrays that the options of a command line fill. */
struct room {
    const char **images, **patterns, **maps, **inside;
    struct bw_graph_edit *edits;
};

static bool make_room(struct room *room, int argc)
{
    const size_t words = (size_t)argc + 1;
    room->images = calloc(words, sizeof *room->images);
    room->edits = calloc(words, sizeof *room->edits);
    room->patterns = calloc(words, sizeof *room->patterns);
    room->maps = calloc(words, sizeof *room->maps);
    room->inside = calloc(words, sizeof *room->inside);
    return room->images && room->edits && room->patterns && room->maps && room->inside;
}

static void free_room(struct room *room)
{
    free(room->images);
    free(room->edits);
    free(room->patterns);
    free(room->maps);
    free(room->inside);
}

int cmd_run_step(struct cmd_keys *given, const struct cmd_base *base, const struct command *command,
                 int argc, char **argv)
{
    struct cmd_repeats repeats = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct cmd_keys keys = {.count = 0};
    struct cmd_common common = {.messages.repeats = &repeats,
                                .input.keys = given ? given : &keys,
                                .input.helpers = BW_HELPERS_ON,
                                .writing.base = base};
    struct room room = {.images = NULL};
    BW_AUTO_FREE void *state = calloc(1, command->state_size);
    int status;
    cmd_monitor_prepare();
    if (make_room(&room, argc) && state) {
        common.input.images = room.images;
        common.input.graph.struct_size = sizeof common.input.graph;
        common.input.graph.edits = common.input.edits = room.edits;
        common.input.maps = room.maps;
        common.input.inside = room.inside;
        common.probes.patterns = room.patterns;
        status = run_command(command, &common, state, argc, argv);
    } else {
        status = cmd_fail(&common, bw_error_no_memory());
    }
    free_room(&room);
    cmd_keys_free(&keys);
    cmd_repeats_print(&repeats);
    return status;
}

int cmd_run(const struct command *command, int argc, char **argv)
{
    return cmd_run_step(NULL, NULL, command, argc, argv);
}
