/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a command line to a running command, and its exit status:
 *
 *     btrfs-walk [COMMAND] [OPTIONS] IMAGE... [PATH...]
 *
 * 1. Tests of find(1), such as -name, become the long options of the same names.
 * 2. getopt_long() parses the options; each stores its argument in the settings of its table: those
 *    of the command, or those that all commands share.
 * 3. The operands at the beginning that are images of one file system are its devices; the others
 *    are paths. --files-from adds paths.
 * 4. The command runs. If it fails although a path looks like an image, a message suggests the
 *    option for images.
 */
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
#include "cli/common/keys.h"
#include "cli/common/list_file.h"
#include "cli/common/monitor.h"
#include "cli/common/options.h"
#include "cli/common/output_format.h"
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

/* The option of getopt_long() with a name; the last entry, without one, if there is none. */
static const struct option *find_option(const char *name, const struct option *names)
{
    while (names->name && strcmp(names->name, name) != 0)
        names++;
    return names;
}

/* The option that replaces a word of find, if the command has it; else NULL. */
static const char *option_of_find_word(const char *word, const struct option *names)
{
    for (size_t i = 0; i < sizeof find_options / sizeof *find_options; i++)
        if (strcmp(find_options[i] + 1, word) == 0)
            return find_option(find_options[i] + 2, names)->name ? find_options[i] : NULL;
    return NULL;
}

/* Whether an option takes the next word as its argument: a long one, or the last of short ones. */
static bool needs_argument(const char *word, const char *letters, const struct option *names)
{
    if (word[0] != '-')
        return false;
    if (word[1] == '-')
        return find_option(word + 2, names)->has_arg == required_argument;
    for (word++; *word; word++) {
        const char *letter = *word == ':' ? NULL : strchr(letters, *word);
        if (letter && letter[1] == ':' && letter[2] != ':')
            return !word[1];
    }
    return false;
}

/* Reports a word that names a command, although it is not the first one: "the command comes first:
 * btrfs-walk du -q ...", the command, then the words that preceded it. Arguments of options and
 * existing files do not count. False if there is none. */
static bool report_late_command(int argc, char **argv, const char *letters,
                                const struct option *names)
{
    for (int at = 1; at < argc && strcmp(argv[at], "--") != 0; at++) {
        const struct command *command = cmd_find(argv[at]);
        if (command && access(argv[at], F_OK) != 0) {
            BW_AUTO_BUFFER struct bw_buffer line = {0};
            bw_buffer_format(&line, "the command comes first: btrfs-walk %s", argv[at]);
            for (int i = 1; i < at; i++)
                bw_buffer_format(&line, " %s", argv[i]);
            if (at + 1 < argc)
                bw_buffer_format(&line, " ...");
            cmd_usage_error(command, bw_buffer_text(&line), NULL);
            return true;
        }
        at += needs_argument(argv[at], letters, names);
    }
    return false;
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

/* Replaces words like "-name", which getopt_long() would parse as short options. `letters` and
 * `names` are its tables. `*other` becomes the first word that find_advice() has advice for. False,
 * with a message, if there is a word that was removed. */
static bool replace_find_words(const struct command *command, int argc, char **argv,
                               const char *letters, const struct option *names, const char **other)
{
    const bool has_tests = find_option("exclude", names)->name;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *option = option_of_find_word(argv[i], names);
        const char *word = argv[i], *next = argv[i + 1]; /* NULL after the last one */

        /* A long option that was removed may look like the abbreviation of another one. */
        BW_AUTO_FREE char *long_form = strndup(word, strcspn(word, "="));
        const bool is_long = long_form && strncmp(word, "--", 2) == 0;
        if (!option && is_long && !find_option(long_form + 2, names)->name &&
            report_removed(command, long_form, long_form + 2))
            return false;

        /* Words that join tests of find, or are synonyms of one, in the list of removed options. */
        const char *removed = "";
        if (strcmp(word, "-o") == 0 || strcmp(word, "-a") == 0)
            removed = next && option_of_find_word(next, names) ? "or" : "";
        else if (strlen(word) == 1)
            removed = strchr("!()", *word) ? word : "";
        else if (strlen(word) > 2 && word[0] == '-' && word[1] != '-')
            removed = word + 1;

        if (option)
            argv[i] = (char *)(size_t)option;
        else if (!*other && find_advice(word))
            *other = word;
        else if (has_tests && report_removed(command, word, removed))
            return false;
        i += needs_argument(argv[i], letters, names);
    }
    return true;
}

/* Options. */

/* getopt_long() returns this plus the option's number for a long option. */
enum { LONG_FORM = 256 };

/* Reports an option that getopt_long() has rejected with `result`. `of_find`: a word of find(1) to
 * give advice for; may be NULL. Returns the exit status. */
static int bad_option(const struct command *command, const struct cmd_option_list *list, int result,
                      const char *argument, const char *of_find)
{
    BW_AUTO_BUFFER struct bw_buffer reason = {0};
    const char letter[] = {'-', (char)optopt, '\0'};
    if (result == '?' && optopt >= LONG_FORM) {
        const struct cmd_option *option = list->items[optopt - LONG_FORM].option;
        /* list->items has an entry for every result of getopt_long().
         * NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
        bw_buffer_format(&reason, "--%s takes no argument, and is: %s", option->name,
                         option->description);
        return cmd_usage_error(command, bw_buffer_text(&reason), argument);
    }

    /* A letter. */
    if (optopt > 0 && optopt < LONG_FORM && strncmp(argument, "--", 2) != 0) {
        if (report_removed(command, letter, letter + 1))
            return STATUS_CANNOT;
        if (of_find && strchr(of_find, optopt))
            return cmd_usage_error(command, of_find, find_advice(of_find));
        argument = letter;
    }
    if (result == ':')
        return cmd_usage_error(command, "option without its argument", argument);
    if (argument == letter)
        return cmd_usage_error(command, "unknown option", letter);

    /* A word that is misspelt. */
    BW_AUTO_FREE char *word = strndup(argument, strcspn(argument, "="));
    const char *name = word ? word + strspn(word, "-") : "";
    struct cmd_suggestion suggestion = {.message = &reason, .word = name, .prefix = "--"};
    bw_buffer_format(&reason, "unknown option: %s", argument);
    for (size_t i = 0; i < list->count; i++)
        cmd_suggest(&suggestion, list->items[i].option->name);
    if (suggestion.count)
        bw_buffer_append_byte(&reason, '?');

    /* Or the first commands that have an option of this name. */
    enum { NAMED = 4 };
    size_t count = 0;
    for (size_t i = 0; !suggestion.count && cmd_table[i]; i++) {
        const struct cmd_option_list others = cmd_options_of(cmd_table[i], NULL, NULL);
        const bool has_it = cmd_has_option(&others, name);
        count += has_it;
        if (has_it && count <= NAMED)
            bw_buffer_format(&reason, "%s%s", count == 1 ? "; it is an option of " : ", ",
                             cmd_table[i]->name);
    }
    if (count > NAMED)
        bw_buffer_format(&reason, " and %zu more", count - NAMED);
    return cmd_usage_error(command, bw_buffer_text(&reason), NULL);
}

enum { SHOWED_NOTHING = -1 };

/* Stores the options of a command line. Returns SHOWED_NOTHING to continue with the operands, which
 * begin at `optind`; otherwise the exit status, after an error or an option like --help. */
static int parse_options(const struct command *command, int argc, char **argv,
                         struct cmd_common *common, void *state)
{
    const struct cmd_option_list list = cmd_options_of(command, common, state);

    /* The tables of getopt_long(). The first ':' distinguishes a missing argument from an unknown
     * option. */
    char letters[2 * CMD_MAX_OPTIONS + 2] = ":", *letter = letters + 1;
    struct option names[2 * CMD_MAX_OPTIONS + 1] = {{0}}, *name = names;
    for (size_t i = 0; i < list.count; i++) {
        const struct cmd_option *option = list.items[i].option;
        int kind = no_argument;
        if (option->argument)
            kind = *option->argument == '[' ? optional_argument : required_argument;
        *name++ = (struct option){option->name, kind, NULL, LONG_FORM + (int)i};
        if (option->alias && !cmd_has_option(&list, option->alias))
            *name++ = (struct option){option->alias, kind, NULL, LONG_FORM + (int)i};
        if (option->letter)
            *letter++ = option->letter;
        if (option->letter && kind == required_argument)
            *letter++ = ':';
    }

    /* Without a command, argv[0] is the name of the program. */
    if (command == cmd_table[0] && strcmp(argv[0], command->name) != 0 &&
        report_late_command(argc, argv, letters, names))
        return STATUS_CANNOT;

    const char *of_find = NULL;
    if (!replace_find_words(command, argc, argv, letters, names, &of_find))
        return STATUS_CANNOT;

    /* Output like that of '-o help', which depends on other options, waits until all are parsed. */
    const struct cmd_option *shown = NULL;
    const char *shown_argument = NULL;
    int result, index = 0;
    optind = 0; /* begins again, if a command runs another one */
    opterr = 0;
    while ((!shown || shown->store) &&
           (result = getopt_long(argc, argv, letters, names, &index)) != -1) {
        if (result == '?' || result == ':')
            return bad_option(command, &list, result, argv[optind - 1], of_find);
        const bool is_long = result >= LONG_FORM;
        const size_t number =
            is_long ? (size_t)(result - LONG_FORM) : cmd_find_letter(&list, result);
        struct cmd_option option = *list.items[number].option;
        if (option.show && (!option.store || strcmp(optarg, "help") == 0)) {
            shown = list.items[number].option;
            shown_argument = optarg;
            continue;
        }
        if (is_long)
            option.name = names[index].name; /* messages name it as the user wrote it */
        BW_AUTO_ERROR struct bw_error *error =
            option.store(list.items[number].settings + option.offset, &option, optarg);
        if (error)
            return cmd_usage_error(command, error->message, NULL);
        if (option.given)
            *(bool *)(list.items[number].settings + option.given) = true;
    }
    if (!shown)
        return SHOWED_NOTHING;

    /* Only stdout is written from here on, so SIGPIPE may end the program: see cmd_write(). */
    signal(SIGPIPE, SIG_DFL);
    int status = shown->show(command, state, shown_argument);
    if (status == STATUS_OK)
        status = cmd_flush_stdout(common);
    signal(SIGPIPE, SIG_IGN);
    return status;
}

/* Operands: images and paths, and the list of paths in a file. */

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
 * same file system, or whose contents are not known yet: a container, a disk with partitions, a
 * compressed file, an address. Images may have lost their superblocks; the first superblock decides
 * which file system it is, unless one is that of a seed device, which has another fsid. */
static size_t count_devices(const struct cmd_common *common, char **given, size_t count)
{
    uint8_t first[BW_UUID_SIZE], fsid[BW_UUID_SIZE];
    bool known = false, has_seed = false;
    size_t images = 1;
    for (size_t i = 0; i < count; i++) {
        const bool holds = bw_file_holds_superblock(given[i], common->input.fs.offset, fsid);
        has_seed |= holds && bw_file_holds_seed(given[i], common->input.fs.offset);
        if (holds && known && !has_seed && memcmp(first, fsid, sizeof fsid) != 0)
            break;
        if (holds && !known)
            memcpy(first, fsid, sizeof fsid);
        known |= holds;
        /* No file system has both devices and streams; a stream often has its subvolume's name. */
        if (holds ||
            (bw_is_image(given[i], common->input.fs.offset) && !bw_file_holds_stream(given[i])))
            images = i + 1;
        else if (!may_be_device(given[i]))
            break;
    }
    return images;
}

/* Counts the send streams at the beginning. A stream is often named after its subvolume, so a
 * second operand that is the same file is a path. */
static size_t count_streams(char **given, size_t count)
{
    struct stat stream, before;
    for (size_t streams = 0; streams < count; streams++) {
        if (!bw_file_holds_stream(given[streams]) || stat(given[streams], &stream))
            return streams;
        for (size_t i = 0; i < streams; i++)
            if (stat(given[i], &before) == 0 && before.st_dev == stream.st_dev &&
                before.st_ino == stream.st_ino)
                return streams;
    }
    return count;
}

/* Separates the images, which come first, from the paths. Images of --device follow IMAGE, because
 * IMAGE decides which file system is opened. */
static void sort_operands(const struct command *command, struct cmd_common *common, char **given,
                          size_t count)
{
    size_t images = count;
    if (command->takes_paths) {
        images = common->input.graph.file ? 0 : count_streams(given, count);
        if (!images && count && !common->input.graph.file)
            images = count_devices(common, given, count);
        /* A walk takes other images in place of those of the graph. */
        while (command == cmd_table[0] && common->input.graph.file && images < count &&
               bw_is_image(given[images], common->input.fs.offset))
            images++;
        /* Most walks have no PATH, so a large file without a superblock is a damaged device. */
        while (command == cmd_table[0] && images && images < count && may_be_device(given[images]))
            images++;
    }
    memmove(common->input.images + images, common->input.images,
            common->input.image_count * sizeof *common->input.images);
    for (size_t i = 0; i < images; i++)
        common->input.images[i] = given[i];
    common->input.image_count += images;
    common->paths = (const char *const *)given + images;
    common->path_count = count - images;
}

/* Appends the paths of --files-from to the operands, in `paths`; `list` gets the bytes of the file.
 * In the folder of a command that runs others, no link is followed, and only a regular file is
 * read. */
static struct bw_error *add_list(struct cmd_common *common, struct bw_const_strings *paths,
                                 struct bw_buffer *list, bool *is_incomplete)
{
    const char *name = common->files_from, *in_base = cmd_name_in_base(common, name);
    const char separator = common->null_separated ? '\0' : '\n';
    if (strcmp(name, "-") == 0)
        BW_TRY(bw_buffer_read_all(list, STDIN_FILENO));
    else if (in_base)
        BW_TRY(cmd_read_in_base(common->writing.base, in_base, name, list));
    else
        BW_TRY(bw_buffer_read_file(list, name));
    *is_incomplete = common->null_separated && cmd_list_file_take_mark(list);
    if (*is_incomplete) {
        BW_AUTO_BUFFER struct bw_buffer escaped = {0};
        bw_escape_words(&escaped, name);
        fprintf(stderr,
                "btrfs-walk: %s is incomplete: the extraction that wrote it did not end; repeat "
                "it\n",
                bw_buffer_text(&escaped));
    }

    BW_TRY(bw_buffer_terminate(list));
    BW_TRY(bw_const_strings_append(paths, common->paths, common->path_count));
    char *end = list->data + list->length - 1;
    for (char *line = list->data, *next; line < end; line = next + 1) {
        next = memchr(line, separator, (size_t)(end - line));
        next = next ? next : end;
        *next = '\0';
        if (next > line) /* empty lines are ignored */
            BW_TRY(bw_const_strings_push(paths, line));
    }
    common->paths = paths->items;
    common->path_count = paths->count;
    return NULL;
}

/* Whether the first operand cannot be an image, but a later one is: PATH IMAGE. */
static bool are_swapped(const struct cmd_common *common, char **given, size_t count)
{
    struct stat status;
    const bool exists = stat(given[0], &status) == 0;
    if ((exists && (!S_ISDIR(status.st_mode) || bw_folder_holds_streams(given[0]))) ||
        bw_is_image(given[0], common->input.fs.offset))
        return false;
    for (size_t i = 1; i < count; i++)
        if (bw_is_image(given[i], common->input.fs.offset))
            return true;
    return false;
}

/* Names the other reading of an operand, after a failure: a path that looks like an image may be
 * the argument of an option, and one of the first `operands` images may be meant as a path.
 * `stray`: the first path that is an image (`is_image`), or may be one; or NULL. */
static void suggest_reading(const struct command *command, const struct cmd_common *common,
                            size_t operands, const char *stray, bool is_image)
{
    const struct cmd_option_list list = cmd_options_of(command, NULL, NULL);
    BW_AUTO_BUFFER struct bw_buffer line = {0};
    uint8_t fsid[BW_UUID_SIZE];
    struct stat status;
    const char *image = NULL, *path = NULL;
    for (size_t i = 1; command->takes_paths && i < operands && !image; i++)
        if (stat(common->input.images[i], &status) == 0 &&
            !bw_file_holds_superblock(common->input.images[i], common->input.fs.offset, fsid))
            image = common->input.images[i];
    for (size_t i = 0; i < common->path_count && !path; i++)
        if (stat(common->paths[i], &status) == 0 && S_ISREG(status.st_mode))
            path = common->paths[i];
    if (stray) {
        bw_escape_words(&line, stray);
        const char *option = cmd_has_option(&list, "other") ? "other" : "device";
        bw_buffer_format(&line, " %s an image; did you mean --%s ", is_image ? "is" : "may be",
                         option);
        bw_escape_words(&line, stray);
        bw_buffer_append_byte(&line, '?');
    } else if (path) {
        bw_escape_words(&line, path);
        bw_buffer_format(&line, " is a path in the image; the file of this machine is no image");
    } else if (image && cmd_has_option(&list, "files-from")) {
        bw_escape_words(&line, image);
        bw_buffer_format(&line, " was opened as an image; --files-from reads paths in the image");
    }
    if (line.length)
        fprintf(stderr, "btrfs-walk: %s\n", bw_buffer_text(&line));
}

/* Runs a command whose options are parsed: sorts its operands, adds those of --files-from, and
 * connects to the servers of the images. Returns the exit status. */
static int run_on_operands(const struct command *command, struct cmd_common *common, void *state,
                           char **given, size_t count)
{
    if (!count && !command->needs_no_image && !common->input.graph.file)
        return cmd_usage_error(command, "no image given", NULL);
    if (command->takes_paths && count && !common->input.graph.file &&
        are_swapped(common, given, count))
        return cmd_usage_error(command, "the image comes first, but there is no image of this name",
                               given[0]);

    sort_operands(command, common, given, count);
    const size_t image_operands = count - common->path_count;
    for (size_t i = 0; i < common->input.image_count && !command->needs_no_image; i++)
        if (!*common->input.images[i])
            return cmd_usage_error(command, "the name of an image is empty", NULL);
    const char *stray = NULL;
    bool stray_is_image = false;
    for (size_t i = 0; i < common->path_count && !stray; i++) {
        stray_is_image = bw_is_image(common->paths[i], common->input.fs.offset);
        if (stray_is_image || may_be_device(common->paths[i]))
            stray = common->paths[i];
    }

    BW_SCOPED(bw_const_strings) struct bw_const_strings paths = {0};
    BW_AUTO_BUFFER struct bw_buffer list = {0};
    struct bw_error *error = NULL;
    int status = STATUS_OK;
    bool is_incomplete = false;
    if (common->files_from)
        error = add_list(common, &paths, &list, &is_incomplete);
    const bool needs_path =
        command->missing && !(command->needs_no_path && command->needs_no_path(state));
    if (error) {
        status = cmd_fail(common, error);
    } else if (common->files_from && !common->path_count) {
        if (!common->messages.quiet)
            fprintf(stderr, "btrfs-walk: warning: the list of paths is empty: nothing to do\n");
    } else if (needs_path && !common->path_count) {
        status = cmd_usage_error(command, command->missing, NULL);
        /* An image to compare with may be a copy, a seed or a sprout: a device, by its looks. */
        const struct cmd_option_list options = cmd_options_of(command, NULL, NULL);
        if (count > 1 && cmd_has_option(&options, "other")) {
            stray = given[1];
            stray_is_image = true;
        }
    } else {
        error = bw_servers_create((enum bw_helper_mode)common->input.helpers,
                                  &common->input.fs.servers);
        if (error) {
            status = cmd_fail(common, error);
        } else {
            bw_servers_set_timeout(common->input.fs.servers, common->input.timeout);
            const char *mistake =
                command->find_mistake ? command->find_mistake(common, state) : NULL;
            if (mistake)
                status = cmd_refuse(common, mistake);
            else if (command->run)
                status = command->run(common, state);
            else
                status = cmd_run_plan(common, command, state);
            bw_servers_destroy(common->input.fs.servers);
        }
    }
    if (status)
        suggest_reading(command, common, image_operands, stray, stray_is_image);
    if (is_incomplete)
        status = cmd_worse_status(status, STATUS_PARTIAL);
    error = cmd_sync_file(common, STDOUT_FILENO, "stdout");
    if (error)
        status = cmd_worse_status(status, cmd_miss(common, error));
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

int cmd_run_step(const struct cmd_input *given, const struct cmd_folder *base,
                 const struct command *command, int argc, char **argv)
{
    /* Images, and the options of those inside of them, have room for all words of the command
     * line. */
    const size_t words = (size_t)argc + 1;
    BW_AUTO_FREE const char **images = calloc(words, sizeof *images);
    BW_AUTO_FREE const char **inside = calloc(words, sizeof *inside);
    BW_AUTO_FREE struct bw_inside_choice *choices = calloc(words, sizeof *choices);
    BW_AUTO_FREE struct bw_graph_edit *edits = calloc(words, sizeof *edits);
    BW_AUTO_FREE void *state = calloc(1, command->state_size);

    struct cmd_repeats repeats = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct cmd_keys *keys = given ? NULL : cmd_keys_create();
    struct cmd_common common = {
        .messages.repeats = &repeats,
        .input = {.keys = given ? given->keys : keys,
                  .never_asks = given, /* what led to the step has asked */
                  .fs.search_limit = given ? given->fs.search_limit : NULL,
                  .helpers = BW_HELPERS_ON,
                  .images = images,
                  .inside = inside,
                  .inside_choices = choices,
                  .edits = edits,
                  .graph = {.struct_size = sizeof common.input.graph, .edits = edits}},
        .writing.base = base,
    };
    int status;
    cmd_monitor_prepare();
    if (images && inside && choices && edits && state && common.input.keys) {
        if (command->defaults)
            memcpy(state, command->defaults, command->state_size);
        status = parse_options(command, argc, argv, &common, state);
        if (status == SHOWED_NOTHING)
            status =
                run_on_operands(command, &common, state, argv + optind, (size_t)(argc - optind));
        release_settings(command->options, state);
        release_settings(cmd_image_options, &common);
    } else {
        status = cmd_fail(&common, bw_error_no_memory());
    }
    cmd_keys_free(keys);
    cmd_repeats_print(&repeats);
    if (command->exit_status)
        status = command->exit_status(state, status);
    return status;
}

int cmd_run(const struct command *command, int argc, char **argv)
{
    return cmd_run_step(NULL, NULL, command, argc, argv);
}
