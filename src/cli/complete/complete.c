/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * btrfs-walk --complete WORD...: interprets all words but the last as a command line, and prints
 * the completions of the last one, including paths, subvolumes and devices in images. It opens only
 * regular files on local disks, prints no messages, and ends soon, regardless of the images'
 * contents. CONTRIBUTING.md describes the output.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/generated.h"
#include "btrfs-walk/graph.h"
#include "btrfs-walk/image.h"
#include "btrfs-walk/inode.h"
#include "btrfs-walk/probe.h"
#include "btrfs-walk/record.h"
#include "btrfs-walk/subvolume.h"
#include "cli/command.h"
#include "cli/graph/page.h"

/* Kinds of completions. */
enum complete_kind {
    COMPLETE_WORD = 'w',  /* the whole word */
    COMPLETE_BEGIN = 'g', /* the beginning of a word: a directory, or a list */
    COMPLETE_FILES = 'f', /* names of files follow the completion's text; the shell adds them */
};

/* A command line: the word that is being completed, its completions, and what the words before it
 * say. */
struct completion {
    const char *prefix;    /* part of the word that does not change: "--subvol=", "size," */
    size_t prefix_length;  /* bytes */
    const char *value;     /* the rest of the word, which completions begin with */
    struct bw_buffer text; /* completions: kind and word, NUL, description, NUL */
    size_t count;

    const struct command *command;
    struct cmd_option_list options;
    struct cmd_common common;         /* the images, and the options to open them */
    const char *subvolume;            /* argument of --subvol; NULL: none */
    const struct cmd_option *pending; /* the previous word's option, if it needs an argument */
    const char **operands;
    size_t operand_count;
    bool only_operands; /* "--" was one of the words */
};

/* Remote files are excluded, because a server that does not reply would block the shell. */
static bool are_local_files(const struct cmd_common *common)
{
    static const uint32_t remote[] = {NFS_SUPER_MAGIC,  SMB_SUPER_MAGIC,  SMB2_SUPER_MAGIC,
                                      CIFS_SUPER_MAGIC, FUSE_SUPER_MAGIC, V9FS_MAGIC,
                                      CEPH_SUPER_MAGIC, AFS_SUPER_MAGIC};
    for (size_t i = 0; i < common->input.image_count; i++) {
        const char *path = common->input.images[i];
        struct statfs system;
        struct stat file;
        if (statfs(path, &system) || stat(path, &file) || !S_ISREG(file.st_mode))
            return false;
        for (size_t k = 0; k < sizeof remote / sizeof *remote; k++)
            if ((uint32_t)system.f_type == remote[k])
                return false;
    }
    return common->input.image_count;
}

/* Adds a completion if it begins with the value: `length` bytes of text, then `end`. */
static void complete_add(struct completion *complete, enum complete_kind kind, const char *text,
                         size_t length, const char *end, const char *description)
{
    const size_t given = strlen(complete->value), all = length + strlen(end);
    if (memchr(text, '\0', length) || given > all ||
        memcmp(text, complete->value, given < length ? given : length) != 0 ||
        (given > length && memcmp(end, complete->value + length, given - length) != 0))
        return;
    bw_buffer_append_byte(&complete->text, (char)kind);
    bw_buffer_append(&complete->text, complete->prefix, complete->prefix_length);
    bw_buffer_append(&complete->text, text, length);
    bw_buffer_append(&complete->text, end, strlen(end) + 1);
    bw_buffer_append(&complete->text, description, strlen(description) + 1);
    complete->count++;
}

static struct bw_fs *open_images(const struct completion *complete)
{
    const struct bw_fs_options options = cmd_fs_options(&complete->common);
    struct bw_fs *fs = NULL;
    if (are_local_files(&complete->common))
        bw_error_free(bw_fs_open(&options, &fs));
    return fs;
}

/* A path begins with '/' only if the value does. */
static void add_subvolumes(struct completion *complete)
{
    struct bw_fs *fs = open_images(complete);
    struct bw_subvolume_infos *infos = NULL;
    if (fs)
        bw_error_free(bw_subvolume_infos_open(fs, true, &infos));
    for (const struct bw_subvolume_info *info; infos && (info = bw_subvolume_infos_next(infos));) {
        const size_t skip = *complete->value && *complete->value != '/' && info->path_length;
        char description[64];
        if (!info->path || info->is_deleted || info->path_length == skip)
            continue;
        const char *kind = info->is_snapshot ? "snapshot" : "subvolume";
        const char *more = info->read_only ? ", read-only" : "";
        snprintf(description, sizeof description, "%s %" PRIu64 "%s", kind, info->id, more);
        complete_add(complete, COMPLETE_WORD, info->path + skip, info->path_length - skip, "",
                     description);
    }
    bw_error_free(bw_subvolume_infos_close(infos));
    bw_fs_close(fs);
    complete_add(complete, COMPLETE_WORD, "default", 7, "", "what a mount shows");
}

static struct bw_error *add_table(void *context, const struct bw_partition_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct bw_partition_info *partition = &table->partitions[i];
        char number[16];
        int length = snprintf(number, sizeof number, "%u", partition->number);
        complete_add(context, COMPLETE_WORD, number, (size_t)length, "",
                     *partition->content ? partition->content : partition->type_name);
    }
    return NULL;
}

static void add_partitions(struct completion *complete)
{
    struct cmd_input *input = &complete->common.input;
    if (input->inside_count)
        input->inside_choices[input->inside_count - 1].partition = NULL;
    else
        input->fs.partition = NULL;
    const struct bw_fs_options options = cmd_fs_options(&complete->common);
    if (are_local_files(&complete->common))
        bw_error_free(bw_partition_tables(&options, add_table, complete));
}

static void add_devices(struct completion *complete)
{
    struct bw_fs *fs = open_images(complete);
    BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
    if (fs)
        bw_error_free(bw_fs_devices(fs, &devices));
    for (size_t i = 0; i < devices.count; i++) {
        const char *path = devices.items[i].path;
        char number[24];
        int length = snprintf(number, sizeof number, "%" PRIu64, devices.items[i].devid);
        complete_add(complete, COMPLETE_WORD, number, (size_t)length, "", path ? path : "missing");
    }
    bw_fs_close(fs);
}

/* More completions are of no use. */
enum { PATHS_MAX = 10000 };

/* Moves everything up to the last separator from the value to the prefix. */
static void complete_skip(struct completion *complete, const char *separators)
{
    for (const char *next; (next = strpbrk(complete->value, separators));
         complete->value = next + 1)
        complete->prefix_length += (size_t)(next + 1 - complete->value);
}

/* Adds the entries of the directory in the value, up to its last slash. Adds nothing if an image is
 * not a local file or cannot be opened. */
static void add_paths(struct completion *complete)
{
    struct bw_fs *fs = open_images(complete);
    if (!*complete->value) {
        complete->prefix = "/";
        complete->prefix_length = 1;
    }
    if (!fs)
        return;
    const char *path = complete->value;
    const struct bw_subvolume *from = NULL;
    struct bw_directory *directory = NULL;
    struct bw_place place;
    BW_AUTO_BUFFER struct bw_buffer parent = {0};
    complete_skip(complete, "/");
    bw_buffer_append_byte(&parent, '/');
    bw_buffer_append(&parent, path, (size_t)(complete->value - path));
    struct bw_error *error = bw_buffer_terminate(&parent);
    if (!error && complete->subvolume)
        error = bw_subvolume_by_name(fs, complete->subvolume, &from);
    if (!error)
        error = bw_lookup(fs, from, parent.data, true, &place);
    if (!error)
        error = bw_directory_open(fs, &place, BW_DIRECTORY_START, &directory);
    while (!error && complete->count < PATHS_MAX) {
        const struct bw_directory_entry *entry;
        error = bw_directory_next(directory, &entry);
        if (error || !entry)
            break;
        if (entry->place.type == BW_FILE_DIRECTORY)
            complete_add(complete, COMPLETE_BEGIN, entry->name, entry->name_length, "/", "");
        else
            complete_add(complete, COMPLETE_WORD, entry->name, entry->name_length, "", "");
    }
    bw_error_free(error);
    bw_directory_close(directory);
    bw_fs_close(fs);
}

/* Completions of arguments, by their names in the help text. */

static void add_files(struct completion *complete)
{
    const char *value = complete->value;
    complete->value = "";
    complete_add(complete, COMPLETE_FILES, "", 0, "", "");
    complete->value = value;
}

/* Adds columns; another one can follow each. */
static void add_columns(struct completion *complete)
{
    const char *name = complete->command->record;
    const struct bw_record *record = name ? bw_record_find(name) : NULL;
    complete_skip(complete, ",");
    for (unsigned i = 0; record && i < record->member_count; i++)
        complete_add(complete, COMPLETE_BEGIN, record->members[i].name,
                     strlen(record->members[i].name), "", record->members[i].documentation);
}

static void add_probes(struct completion *complete)
{
    unsigned count;
    const struct bw_probe *probes = bw_probe_table(&count);
    complete_skip(complete, ",!");
    for (unsigned i = 0; i < count; i++)
        complete_add(complete, COMPLETE_BEGIN, probes[i].name, strlen(probes[i].name), "",
                     probes[i].documentation);
}

/* Adds types of layers, with a text after each. */
static void add_types(struct completion *complete, const char *end)
{
    struct bw_registry *registry = NULL;
    BW_SCOPED(bw_const_strings) struct bw_const_strings names = {0};
    BW_AUTO_ERROR struct bw_error *error = bw_registry_open(NULL, &registry);
    if (!error)
        error = page_types(registry, &names);
    for (size_t i = 0; i < names.count; i++) {
        const char *name = names.items[i];
        const struct bw_xlator_class *type;
        BW_AUTO_ERROR struct bw_error *unusable = bw_registry_find(registry, name, &type);
        if (!unusable)
            complete_add(complete, *end ? COMPLETE_BEGIN : COMPLETE_WORD, name, strlen(name), end,
                         type->description);
    }
    bw_registry_close(registry);
}

static void add_plain_types(struct completion *complete)
{
    add_types(complete, "");
}

/* Adds the options of the type at the beginning of the value, up to one of `ends`. */
static void add_layer_options(struct completion *complete, const char *ends)
{
    char name[128];
    size_t length = strcspn(complete->value, ends);
    const struct bw_xlator_class *type;
    struct bw_registry *registry = NULL;
    if (length >= sizeof name)
        return;
    memcpy(name, complete->value, length);
    name[length] = '\0';
    struct bw_error *error = bw_registry_open(NULL, &registry);
    if (!error)
        error = bw_registry_find(registry, name, &type);
    if (!error) {
        complete_skip(complete, ends);
        for (const struct bw_option *option = type->options; option && option->name; option++)
            complete_add(complete, COMPLETE_BEGIN, option->name, strlen(option->name), "=",
                         option->description);
    }
    bw_error_free(error);
    bw_registry_close(registry);
}

/* TYPE@VOLUME,KEY=VALUE... VOLUME can be the name of a type, too. */
static void add_layer(struct completion *complete)
{
    if (strchr(complete->value, ',')) {
        add_layer_options(complete, "@,");
    } else {
        bool second = strchr(complete->value, '@');
        complete_skip(complete, "@");
        add_types(complete, second ? "" : "@");
    }
}

/* NAME.KEY=VALUE, where NAME can be a type. */
static void add_setting(struct completion *complete)
{
    if (strchr(complete->value, '.'))
        add_layer_options(complete, ".");
    else
        add_types(complete, ".");
}

static void add_reports(struct completion *complete)
{
    if (!strchr(complete->value, '=')) {
        complete_add(complete, COMPLETE_BEGIN, "junit", 5, "=", "JUnit XML");
        return;
    }
    complete_skip(complete, "=");
    add_files(complete);
}

static void add_file_types(struct completion *complete)
{
    static const char *const types[][2] = {{"f", "regular files"},  {"d", "directories"},
                                           {"l", "symbolic links"}, {"c", "character devices"},
                                           {"b", "block devices"},  {"p", "pipes"},
                                           {"s", "sockets"}};
    complete_skip(complete, ",");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        complete_add(complete, COMPLETE_BEGIN, types[i][0], 1, "", types[i][1]);
}

static void add_styles(struct completion *complete)
{
    static const char *const styles[] = {"full-iso", "long-iso", "iso"};
    for (size_t i = 0; i < sizeof styles / sizeof *styles; i++)
        complete_add(complete, COMPLETE_WORD, styles[i], strlen(styles[i]), "", "");
    complete_add(complete, COMPLETE_BEGIN, "+", 1, "", "a format as of date(1)");
}

static void add_subvolume_list(struct completion *complete)
{
    complete_skip(complete, ",");
    add_subvolumes(complete);
}

static void add_commands(struct completion *complete)
{
    for (size_t i = 0; cmd_table[i]; i++)
        complete_add(complete, COMPLETE_WORD, cmd_table[i]->name, strlen(cmd_table[i]->name), "",
                     cmd_table[i]->summary);
}

/* The operands of help: commands and topics, then, for a word that has begun, other words that lead
 * to one of them. */
static void add_help_pages(struct completion *complete)
{
    const char *word, *about;
    size_t i = 0;
    add_commands(complete);
    for (; (word = cmd_help_topic(i, &about)); i++)
        complete_add(complete, COMPLETE_WORD, word, strlen(word), "", about);
    for (; *complete->value && (word = cmd_help_word(i, &about)); i++)
        complete_add(complete, COMPLETE_WORD, word, strlen(word), "", about);
}

/* Adds completions for an argument of that name ("COLUMNS"). */
static void complete_argument(struct completion *complete, const char *name)
{
    static const struct {
        const char *word;
        void (*add)(struct completion *complete);
    } kinds[] = {
        {"FORM=FILE", add_reports},
        {"FILE", add_files},
        {"IMAGE", add_files},
        {"DEST", add_files},
        {"DIR", add_files},
        {"PARTITION", add_partitions},
        {"NAME|ID", add_subvolumes},
        {"SUBVOLUME,...", add_subvolume_list},
        {"A [B", add_subvolumes},
        {"COLUMN", add_columns},
        {"PATTERN", add_probes},
        {"LAYER", add_layer},
        {"SETTING", add_setting},
        {"TYPE", add_plain_types},
        {"LIST", add_file_types},
        {"DEVID", add_devices},
        {"PATH", add_paths},
        {"STYLE", add_styles},
        {"SUBVOLUME", add_subvolumes},
        {"COMMAND|TOPIC", add_help_pages},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strstr(name, kinds[i].word)) {
            kinds[i].add(complete);
            return;
        }
    }
}

/* The command line. */

/* Finds options as getopt_long() does: by their names, or by an unambiguous beginning. */
static size_t find_long(const struct cmd_option_list *list, const char *name, size_t length)
{
    size_t found = list->count, matches = 0;
    for (size_t i = 0; i < list->count; i++) {
        const char *other = list->items[i].option->name;
        if (strncmp(other, name, length) != 0)
            continue;
        if (!other[length])
            return i;
        found = i;
        matches++;
    }
    return matches == 1 ? found : list->count;
}

static bool needs_argument(const struct cmd_option *option)
{
    return option->argument && *option->argument != '[';
}

/* Applies the options that are needed to open the images, and remembers --subvol. */
static void apply_option(struct completion *complete, size_t number, const char *argument)
{
    static const char *const image_options[] = {"device", "super",      "partition", "image-offset",
                                                "log",    "generation", "tree-root", "chunk-root"};
    const struct cmd_option *option = complete->options.items[number].option;
    if (argument && strcmp(option->name, "subvol") == 0)
        complete->subvolume = argument;
    if (!complete->options.items[number].heading)
        return;
    for (size_t i = 0; argument && i < sizeof image_options / sizeof *image_options; i++)
        if (strcmp(option->name, image_options[i]) == 0)
            bw_error_free(option->store(complete->options.items[number].settings + option->offset,
                                        option, argument));
}

/* Parses short options in one word; the last may take the rest of the word as its argument. Returns
 * where the argument begins; NULL if it is not in this word. */
static const char *read_letters(struct completion *complete, const char *letters, size_t *number)
{
    for (; *letters; letters++) {
        *number = cmd_find_letter(&complete->options, *letters);
        if (*number == complete->options.count)
            return NULL;
        if (needs_argument(complete->options.items[*number].option))
            return letters + 1;
    }
    return NULL;
}

/* Reads a word: an argument of the option before it, an option, or an operand. */
static void read_word(struct completion *complete, const char *word)
{
    const struct cmd_option *pending = complete->pending;
    size_t number = complete->options.count;
    if (pending) {
        number = find_long(&complete->options, pending->name, strlen(pending->name));
        complete->pending = NULL;
        apply_option(complete, number, word);
        return;
    }
    if (*word != '-' || !word[1] || complete->only_operands) {
        complete->operands[complete->operand_count++] = word;
        return;
    }
    if (strcmp(word, "--") == 0) {
        complete->only_operands = true;
        return;
    }

    /* An option. An empty argument of a short option is the next word. */
    const char *argument = NULL;
    if (word[1] == '-') {
        const char *equals = strchrnul(word, '=');
        number = find_long(&complete->options, word + 2, (size_t)(equals - word) - 2);
        if (*equals)
            argument = equals + 1;
    } else {
        argument = read_letters(complete, word + 1, &number);
        if (!argument)
            return;
        if (!*argument)
            argument = NULL;
    }
    if (number == complete->options.count)
        return;
    const struct cmd_option *option = complete->options.items[number].option;
    if (!argument && needs_argument(option))
        complete->pending = option;
    else
        apply_option(complete, number, argument);
}

/* Completes `value`, the end of a word; the part before it does not change. */
static void set_value(struct completion *complete, const char *word, const char *value)
{
    complete->prefix = word;
    complete->prefix_length = (size_t)(value - word);
    complete->value = value;
}

static void complete_option_value(struct completion *complete, const struct cmd_option *option)
{
    const char *argument = option->argument;
    for (const char *const *word = option->words; word && *word; word++)
        if (**word)
            complete_add(complete, COMPLETE_WORD, *word, strlen(*word), "", "");
    if (option->words)
        return;
    if (*argument == '[' && argument[1] == '=') {
        for (argument += 2; *argument; argument += strspn(argument, "|]")) {
            size_t length = strcspn(argument, "|]");
            complete_add(complete, COMPLETE_WORD, argument, length, "", "");
            argument += length;
        }
    } else {
        complete_argument(complete, argument);
    }
}

static void complete_option(struct completion *complete, const char *word)
{
    const bool is_long = strncmp(word, "--", 2) == 0;
    const char *equals = is_long ? strchr(word, '=') : NULL;
    const char *value = NULL;
    size_t number = complete->options.count;
    if (equals) {
        value = equals + 1;
        number = find_long(&complete->options, word + 2, (size_t)(equals - word) - 2);
    } else if (word[1] && !is_long) {
        value = read_letters(complete, word + 1, &number);
    }
    if (value && number < complete->options.count &&
        complete->options.items[number].option->argument) {
        set_value(complete, word, value);
        complete_option_value(complete, complete->options.items[number].option);
        return;
    }
    complete->value = word + (word[1] ? 2 : 1);
    complete->prefix = "--";
    complete->prefix_length = 2;
    for (size_t i = 0; (!word[1] || is_long) && i < complete->options.count; i++) {
        const struct cmd_option *option = complete->options.items[i].option;
        complete_add(complete, COMPLETE_WORD, option->name, strlen(option->name), "",
                     option->description);
    }
}

static void complete_last(struct completion *complete, const char *word, bool is_first)
{
    const struct command *command = complete->command;
    const char *operands = command->operands, *first = strchr(operands, ' ');
    if (!complete->pending && !complete->only_operands && *word == '-') {
        complete_option(complete, word);
        return;
    }
    set_value(complete, word, word);
    if (is_first)
        add_commands(complete);

    /* The first operand is the image; the command decides about the others. */
    if (complete->pending)
        complete_option_value(complete, complete->pending);
    else if (command->takes_paths && complete->operand_count && first)
        complete_argument(complete, first);
    else if (command->needs_no_image)
        complete_argument(complete, operands);
    else
        complete_argument(complete, "IMAGE");
}

/* Exits if the images are slow, because users do not wait long for completions. */
static void exit_on_alarm(int number)
{
    (void)number;
    _exit(STATUS_OK);
}

static void silence_and_set_timer(void)
{
    const struct itimerval limit = {.it_value.tv_sec = 2};
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0)
        dup2(nowhere, STDERR_FILENO);
    signal(SIGALRM, exit_on_alarm);
    setitimer(ITIMER_REAL, &limit, NULL);
}

/* Returns the completions of the last word; the caller frees them. */
static struct bw_buffer complete_words(char **words, size_t count)
{
    BW_AUTO_FREE const char **operands = calloc(count + 1, sizeof *operands);
    BW_AUTO_FREE const char **images = calloc(2 * count + 1, sizeof *images);
    const struct command *command = count > 1 ? cmd_find(words[0]) : NULL;
    struct completion complete = {.command = command ? command : cmd_table[0],
                                  .operands = operands};
    BW_AUTO_FREE char **expanded = calloc(2 * count + 1, sizeof *expanded);
    if (!operands || !images || !expanded || !count)
        return (struct bw_buffer){0};
    complete.common = (struct cmd_common){
        .input.images = images, .input.graph.struct_size = sizeof complete.common.input.graph};
    complete.options = cmd_options_of(complete.command, &complete.common, NULL);
    for (size_t i = command ? 1 : 0; i + 1 < count; i++)
        read_word(&complete, words[i]);

    /* The operands that are images precede those of options. */
    struct cmd_input *input = &complete.common.input;
    const bool has_paths = complete.command->takes_paths && complete.operand_count;
    const size_t added = has_paths ? 1 : complete.operand_count;
    memmove(images + added, images, input->image_count * sizeof *images);
    memcpy(images, operands, added * sizeof *images);
    input->image_count += added;
    /* Shells do not expand "~/" before completion. */
    const char *home = getenv("HOME");
    for (size_t i = 0; home && i < input->image_count; i++)
        if (strncmp(images[i], "~/", 2) == 0 &&
            asprintf(&expanded[i], "%s%s", home, images[i] + 1) >= 0)
            images[i] = expanded[i];
        else
            expanded[i] = NULL; /* asprintf() leaves it undefined */
    complete_last(&complete, words[count - 1], count == 1);
    for (size_t i = 0; i < input->image_count; i++)
        free(expanded[i]);
    return complete.text;
}

int cmd_complete(char **words, size_t count)
{
    silence_and_set_timer();
    struct bw_buffer text = complete_words(words, count);
    return cmd_write_text(&text);
}

/*
 * The command line of bash, which is divided into words without quotes; and the completions, which
 * are quoted. Source: the chapters "Quoting" and "Programmable Completion" of the manual of bash.
 */

/* The words of a bash command line up to the cursor, without quotes. */
struct bash_line {
    char **words; /* ends with NULL; the last one, which may be empty, is completed */
    size_t count;
    size_t cut; /* bytes of the last word that bash does not replace */
    char quote; /* the quote that is open at the end; 0: none */
};

/* Parses a line; `breaks` is COMP_WORDBREAKS. False if memory runs out. */
static bool read_line(struct bash_line *line, const char *text, const char *breaks)
{
    size_t length = strlen(text);
    /* The words together are no longer than the line; each ends with a NUL. */
    char *bytes = calloc(2 * length + 2, 1);
    *line = (struct bash_line){.words = calloc(length + 3, sizeof *line->words)};
    if (!bytes || !line->words) {
        free(bytes);
        free(line->words);
        *line = (struct bash_line){0};
        return false;
    }
    line->words[0] = bytes;
    char *end = bytes; /* of the current word */
    bool begun = false;
    for (const char *at = text; *at; at++) {
        const char quote = line->quote;
        bool cuts = false; /* bash will replace the part of the last word after this position */
        if (quote && *at == quote) {
            line->quote = '\0';
            cuts = true;
        } else if (!quote && (*at == '\'' || *at == '"')) {
            line->quote = *at;
            begun = cuts = true;
        } else if (!quote && strchr(" \t\n", *at)) {
            if (begun)
                line->words[++line->count] = ++end;
            begun = false;
            line->cut = 0;
        } else if (quote || *at != '\\' || at[1]) {
            /* Within double quotes, a backslash is removed only before characters that it quotes.
             */
            const bool escapes =
                *at == '\\' && (!quote || (quote == '"' && at[1] && strchr("\\\"$`", at[1])));
            at += escapes;
            *end++ = *at;
            *end = '\0';
            begun = true;
            cuts = !quote && !escapes && strchr(breaks, *at);
        }
        if (cuts)
            line->cut = (size_t)(end - line->words[line->count]);
    }
    line->count++;
    return true;
}

static void free_line(struct bash_line *line)
{
    if (line->words)
        free(line->words[0]);
    free(line->words);
}

/* Appends a word, quoted as needed inside of `quote`. */
static void append_quoted(struct bw_buffer *text, const char *word, size_t length, char quote)
{
    static const char special[] = " \\'\"`$&|;()<>*?[]{}!#~";
    bool has_control = false;
    for (size_t i = 0; i < length; i++)
        has_control |= (unsigned char)word[i] < ' ' || word[i] == 127;
    if (has_control && !quote) {
        /* The only form for control characters that readline does not interpret. */
        bw_buffer_format(text, "$'");
        for (size_t i = 0; i < length; i++) {
            if ((unsigned char)word[i] < ' ' || word[i] == 127)
                bw_buffer_format(text, "\\%03o", (unsigned char)word[i]);
            else if (strchr("\\'", word[i]))
                bw_buffer_format(text, "\\%c", word[i]);
            else
                bw_buffer_append_byte(text, word[i]);
        }
        bw_buffer_append_byte(text, '\'');
        return;
    }
    for (size_t i = 0; i < length; i++) {
        const char byte = word[i];
        if (quote == '\'' && byte == '\'')
            bw_buffer_format(text, "'\\''");
        else if (quote == '"' && byte == '!') /* it would recall a line even in double quotes */
            bw_buffer_format(text, "\"'!'\"");
        else if ((quote == '"' && strchr("\\\"$`", byte)) || (!quote && strchr(special, byte)))
            bw_buffer_format(text, "\\%c", byte);
        else
            bw_buffer_append_byte(text, byte);
    }
}

/* The completion after one: behind the NULs of its word and of its description. */
static const char *next_completion(const char *at)
{
    at += strlen(at) + 1;
    return at + strlen(at) + 1;
}

/* A single completion is quoted here, because bash would mistake a path in an image for one of the
 * system. If there are several, bash must find their common beginning before it quotes ("q"). */
int cmd_complete_bash(const char *breaks, const char *given)
{
    struct bash_line line = {0};
    struct bw_buffer out = {0}, text = {0};
    silence_and_set_timer();
    if (read_line(&line, given, breaks) && line.count > 1)
        text = complete_words(line.words + 1, line.count - 1);

    const char *end = text.data;
    if (!text.failed && text.length) /* without completions, the data are NULL */
        end += text.length;
    size_t count = 0;
    bool files = false, more = false;
    for (const char *at = text.data; at < end; at = next_completion(at), count++) {
        files |= *at == COMPLETE_FILES;
        more |= *at == COMPLETE_BEGIN;
    }
    count -= files;
    bw_buffer_append(&out, "f", files);
    bw_buffer_append(&out, "n", more);
    bw_buffer_append(&out, "q", count > 1);
    bw_buffer_append(&out, "", !text.failed); /* a NUL */
    for (const char *at = text.data; at < end; at = next_completion(at)) {
        const size_t length = strlen(at + 1);
        if (*at == COMPLETE_FILES || length < line.cut)
            continue;
        if (count > 1)
            bw_buffer_append(&out, at + 1 + line.cut, length - line.cut);
        else
            append_quoted(&out, at + 1 + line.cut, length - line.cut, line.quote);
        bw_buffer_append_byte(&out, '\0');
    }
    bw_buffer_free(&text);
    free_line(&line);
    return cmd_write_text(&out);
}
