/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The operands of a command, before anything is opened: which of them are images, and the paths
 * that a file lists.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "cli/command.h"

const struct cmd_option cmd_list_options[] = {
    {'T', "files-from", "FILE", "also the paths that FILE lists, one a line; '-' is stdin",
     CMD_TEXT(struct cmd_common, files_from)},
    {'0', "null", NULL, "paths in that FILE end with a NUL byte instead of a newline",
     CMD_FLAG(struct cmd_common, null_separated), .also = "from0"},
    {0},
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
    if (common->graph.file || !count)
        return 0;
    size_t images = 1;
    for (size_t i = 0; i < count; i++) {
        const bool holds = bw_file_holds_superblock(given[i], common->offset, fsid);
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
static void sort(const struct command *command, struct cmd_common *common, char **given,
                 size_t count, struct cmd_operands *operands)
{
    size_t images = command->takes_paths ? count_images(common, given, count) : count;
    memmove(common->images + images, common->images, common->image_count * sizeof *common->images);
    for (size_t i = 0; i < images; i++)
        common->images[i] = given[i];
    common->image_count += images;
    common->paths = (const char *const *)given + images;
    common->path_count = count - images;
    for (size_t i = images; i < count && !operands->stray; i++) {
        uint8_t fsid[BW_UUID_SIZE];
        operands->stray_is_image = bw_file_holds_superblock(given[i], common->offset, fsid);
        operands->stray = operands->stray_is_image || may_be_device(given[i]) ? given[i] : NULL;
    }
}

/* Makes paths of the lines of a text, which ends with NUL, and counts them. Empty ones are none.
 * `paths` may be NULL. */
static size_t split(struct bw_buffer *text, char separator, const char **paths)
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
static struct bw_error *add_list(struct cmd_common *common, struct cmd_operands *operands)
{
    const char separator = common->null_separated ? '\0' : '\n';
    BW_TRY(strcmp(common->files_from, "-") == 0
               ? bw_buffer_read_all(&operands->list, STDIN_FILENO)
               : bw_buffer_read_file(&operands->list, common->files_from));
    bw_buffer_append_byte(&operands->list, '\0');
    if (operands->list.failed)
        return bw_error_no_memory();
    size_t before = common->path_count, count = split(&operands->list, separator, NULL);
    operands->paths = calloc(before + count + 1, sizeof *operands->paths);
    if (!operands->paths)
        return bw_error_no_memory();
    for (size_t i = 0; i < before; i++)
        operands->paths[i] = common->paths[i];
    split(&operands->list, separator, operands->paths + before);
    common->paths = operands->paths;
    common->path_count = before + count;
    operands->nothing = !common->path_count;
    return NULL;
}

struct bw_error *cmd_take_operands(const struct command *command, struct cmd_common *common,
                                   char **given, size_t count, struct cmd_operands *operands)
{
    sort(command, common, given, count, operands);
    if (common->files_from)
        BW_TRY(add_list(common, operands));
    if (operands->nothing && !common->quiet)
        fprintf(stderr, "btrfs-walk: warning: the list of paths is empty: nothing is done\n");
    return NULL;
}

/* An image to compare with has an option of its own. */
static const char *option_of(const struct command *command)
{
    for (const struct cmd_option *option = command->options; option->name || option->group;
         option++)
        if (option->name && strcmp(option->name, "other") == 0)
            return "other";
    return "device";
}

void cmd_stray_image(const struct command *command, const struct cmd_operands *operands, int status)
{
    BW_AUTO_BUFFER struct bw_buffer name = {0};
    if (!status || !operands->stray)
        return;
    bw_escape_words(&name, operands->stray);
    const char *text = name.data ? name.data : "";
    fprintf(stderr, "btrfs-walk: %.*s %s an image; did you mean --%s %.*s?\n", (int)name.length,
            text, operands->stray_is_image ? "is" : "may be", option_of(command), (int)name.length,
            text);
}

void cmd_free_operands(struct cmd_operands *operands)
{
    free(operands->paths);
    bw_buffer_free(&operands->list);
}
