/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lists of an extraction: the manifest with hashes, and the paths of missing files.
 *
 * A continued extraction appends to the manifest, so it first reads the names that are listed
 * already. Each name is written in the same way every time, so its JSON identifies it, and only the
 * hash of that is kept.
 */
#include "cli/export/extraction.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "btrfs-walk/records.h"
#include "cli/common/output_format.h"
#include "export/entry_hashes.h"

const struct cmd_option extract_list_options[] = {
    {0, "manifest", "FILE",
     "append the status and the SHA-256 of each extracted file to FILE, as JSON",
     CMD_TEXT(struct extract_list_settings, manifest)},
    {0, "missed", "FILE",
     "write the paths of files that were not extracted to FILE, for --from0 -T FILE",
     CMD_TEXT(struct extract_list_settings, missed)},
    {0, "renamed", "FILE", "like --rename, and list the names in FILE (JSON)",
     CMD_TEXT(struct extract_list_settings, renamed)},
    {0, "except", "FILE", "skip files that are complete in this other manifest (repeatable)",
     CMD_APPEND(struct extract_list_settings, except)},
    {0},
};

/* The mark of a manifest, and of a list of names; the word is documented with their records. */
#define INCOMPLETE_MANIFEST "{\"saved\":\"incomplete\"}\n"
static const struct bw_bytes manifest_mark = {INCOMPLETE_MANIFEST, sizeof INCOMPLETE_MANIFEST - 1};

/* Opens the file of a list. */
static struct bw_error *open_file(const char *name, const struct cmd_common *common,
                                  const struct bw_fs *planned, int *descriptor)
{
    struct stat status;
    const char *in_base = cmd_name_in_base(common, name);
    if (!in_base)
        return cmd_open_output(planned, common->probes.blackbox, name, descriptor);
    *descriptor = bw_open_sole(common->writing.base->descriptor, in_base);
    if (*descriptor < 0)
        return cmd_name_error(common->writing.base->descriptor, in_base, name, errno);
    if (fstat(*descriptor, &status) || !bw_fs_is_input(planned, &status))
        return NULL;
    close(*descriptor);
    return bw_error_create(BW_ERROR_USAGE, "%s is an input, which is never overwritten", name);
}

/* The member `name` or `name_bytes` in a row, without its value's last quote. */
static struct bw_bytes find_name(const char *row, size_t length)
{
    static const char lead[] = ",\"name"; /* a quote within a string follows a backslash */
    const char *name = memmem(row, length, lead, strlen(lead));
    const char *value = name ? strstr(name, ":\"") : NULL;
    if (!value)
        return (struct bw_bytes){0};
    const char *end = value + 2;
    while (*end && *end != '"')
        end += *end == '\\' && end[1] ? 2 : 1;
    return (struct bw_bytes){name + 1, (size_t)(end - name - 1)};
}

/* Adds the names in a manifest to a set, up to the mark or a row that was not completed, which is
 * at `*end`. `only_complete`: only those of complete files, also behind marks, since manifests can
 * be joined. Closes the descriptor. */
static struct bw_error *read_names(int descriptor, const char *name, bool only_complete,
                                   struct bw_key_set *names, uint64_t *end)
{
    static const char *const complete[] = {"verified", "corrected", "unverified", "linked"};
    static const char lead[] = "{\"saved\":\"";
    BW_AUTO_FREE char *line = NULL;
    size_t capacity = 0;
    ssize_t length = 0;
    struct bw_error *error = NULL;
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "r");
    if (!file) {
        error = bw_error_from_errno(errno, "cannot read %s", name);
        if (descriptor >= 0)
            close(descriptor);
        return error;
    }
    while (!error && (length = getline(&line, &capacity, file)) > 0 && line[length - 1] == '\n' &&
           (only_complete || strcmp(line, manifest_mark.data) != 0)) {
        const char *row = line; /* in joined manifests, it may follow one that was cut off */
        for (const char *next = line; (next = strstr(next + 1, lead));)
            row = next;
        const struct bw_bytes found = find_name(row, (size_t)(line + length - row));
        bool is_wanted = !only_complete, is_new;
        for (size_t i = 0; i < sizeof complete / sizeof *complete; i++)
            is_wanted |= strncmp(row, lead, strlen(lead)) == 0 &&
                         strncmp(row + strlen(lead), complete[i], strlen(complete[i])) == 0;
        if (found.data && is_wanted)
            error = bw_key_set_add(names, bw_hash_path(found.data, found.length), &is_new);
        *end += (uint64_t)length;
    }
    if (!error && ferror(file))
        error = bw_error_from_errno(errno, "cannot read %s", name);
    fclose(file);
    return error;
}

/* Opens the manifest. If it is a regular file, what an earlier extraction has written is kept. */
static struct bw_error *open_manifest(struct extract_lists *lists, const char *name,
                                      const struct bw_fs *planned)
{
    int descriptor, opened;
    uint64_t end = 0;
    struct stat status;
    struct bw_error *error = NULL;
    BW_TRY(open_file(name, lists->common, planned, &descriptor));
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
        if (cmd_name_in_base(lists->common, name))
            opened = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
        else
            opened = open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        error = read_names(opened, name, false, &lists->listed, &end);
    }
    if (!error)
        return cmd_list_file_open(&lists->manifest, descriptor, name, &manifest_mark, end);
    close(descriptor);
    return error;
}

/* Opens a list that does not continue an earlier one. */
static struct bw_error *open_list(const struct extract_lists *lists, const char *name,
                                  const struct bw_bytes *mark, const struct bw_fs *planned,
                                  struct cmd_list_file *list)
{
    int descriptor;
    BW_TRY(open_file(name, lists->common, planned, &descriptor));
    return cmd_list_file_open(list, descriptor, name, mark, 0);
}

struct bw_error *extract_lists_open(struct extract_lists *lists,
                                    const struct extract_list_settings *settings,
                                    const struct cmd_common *common, const struct bw_fs *planned)
{
    lists->common = common;
    lists->has_except = settings->except.count;
    for (size_t i = 0; i < settings->except.count; i++) {
        const char *name = settings->except.items[i], *in_base = cmd_name_in_base(common, name);
        uint64_t end = 0;
        int descriptor;
        if (in_base)
            descriptor = bw_open_beneath(common->writing.base->descriptor, in_base,
                                         O_RDONLY | O_NONBLOCK | O_NOCTTY, false);
        else
            descriptor = open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        BW_TRY(read_names(descriptor, name, true, &lists->except, &end));
    }
    if (settings->manifest)
        BW_TRY(open_manifest(lists, settings->manifest, planned));
    if (settings->missed)
        BW_TRY(open_list(lists, settings->missed, &cmd_incomplete_paths, planned, &lists->missed));
    const struct cmd_format_settings rows = {.style = BW_ROWS_JSON_LINES};
    if (settings->renamed) {
        BW_TRY(open_list(lists, settings->renamed, &manifest_mark, planned, &lists->renamed));
        BW_TRY(cmd_format_rows(&rows, "renamedinfo", false, false, &lists->renamed_rows));
        lists->renamed_stream = (struct bw_rows_stream){
            .rows = lists->renamed_rows, .consume = cmd_list_file_add, .context = &lists->renamed};
    }
    if (!settings->manifest)
        return NULL;
    BW_TRY(cmd_format_rows(&rows, "savedinfo", false, false, &lists->rows));
    lists->stream = (struct bw_rows_stream){
        .rows = lists->rows, .consume = cmd_list_file_add, .context = &lists->manifest};
    bw_hash_prepare();
    return bw_hash_create(BW_HASH_SHA256, &lists->hash);
}

/* The current file. */

void extract_lists_add_part(struct extract_lists *lists, const struct bw_data_part *part)
{
    bw_recoverable_add(&lists->read, part);
    if (part->kind != BW_DATA_BYTES)
        lists->zeros += part->length;
    if (!lists->hash || lists->zeros > BW_HASH_MOST_ZEROS)
        return;
    if (part->kind == BW_DATA_BYTES)
        bw_hash_add(lists->hash, part->bytes, (size_t)part->length);
    else
        bw_hash_add_zeros(lists->hash, part->length);
}

/* The word of a row for the outcome of an extraction. */
static const char *status_word(const struct extract_lists *lists, const struct bw_fs *fs,
                               const struct bw_export_entry *item, enum extract_outcome outcome)
{
    if (!item->has_inode)
        return "lost";
    if (outcome >= EXTRACT_OMITTED)
        return "skipped";
    if (outcome == EXTRACT_LINKED)
        return "linked";
    if (lists->read.bad || item->salvaged)
        return "partly";
    const bool unchecked = item->type == S_IFREG && (item->inode.flags & BW_INODE_NODATASUM);
    const enum bw_recoverable_kind kind = bw_recoverable_kind(&lists->read, unchecked);
    /* Data that match their checksums may belong to another file, if its tree block is wrong. */
    const bool is_verified = kind == BW_RECOVERABLE_VERIFIED || kind == BW_RECOVERABLE_CORRECTED;
    if (is_verified && bw_fs_status(fs).unverified_blocks)
        return bw_recoverable_name(BW_RECOVERABLE_UNVERIFIED);
    return bw_recoverable_name(kind);
}

/* Whether the name of an item is in a set of names from manifests; false if memory runs out. */
static bool has_name(const struct bw_key_set *names, const struct bw_export_entry *item)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    struct bw_json json = bw_json_start(&text, false);
    bw_json_begin_object(&json, NULL);
    bw_json_bytes(&json, "name", bw_export_entry_name(item), bw_export_entry_name_length(item));
    /* without the brace and the last quote */
    return !text.failed && bw_key_set_has(names, bw_hash_path(text.data + 1, text.length - 2));
}

bool extract_lists_lack(const struct extract_lists *lists, const struct bw_export_entry *item)
{
    return lists->manifest.name && !has_name(&lists->listed, item);
}

bool extract_lists_except(const struct extract_lists *lists, const struct bw_export_entry *item)
{
    return lists->has_except && has_name(&lists->except, item);
}

struct bw_error *extract_lists_add(struct extract_lists *lists, const struct bw_fs *fs,
                                   const struct bw_export_entry *item, enum extract_outcome outcome)
{
    struct bw_error *error = NULL;
    if (lists->missed.name && outcome == EXTRACT_FAILED)
        error = cmd_list_file_add(&lists->missed, item->path.data, item->path.length + 1);

    /* A file gets a row if it was made now, or exists and has none. */
    if (!error && lists->rows && outcome < EXTRACT_KEPT &&
        ((outcome == EXTRACT_MADE && item->type == S_IFREG) || extract_lists_lack(lists, item))) {
        char hash[BW_HASH_TEXT] = "";
        const struct bw_bytes path = {item->path.data, item->path.length};
        struct bw_savedinfo row = {
            .saved = status_word(lists, fs, item, outcome),
            .path = path,
            .path_bytes = path,
            .name = {bw_export_entry_name(item), bw_export_entry_name_length(item)},
            .size = item->inode.size,
            .bad_bytes = lists->read.bad,
            .subvolume = bw_subvolume_id(item->place.subvolume),
            .inode = item->place.inode,
            .generation = bw_fs_status(fs).generation,
        };
        if (outcome <= EXTRACT_FOUND && item->type == S_IFREG &&
            lists->zeros <= BW_HASH_MOST_ZEROS) {
            bw_hash_end(lists->hash, hash);
            row.algorithm = bw_hash_names[BW_HASH_SHA256];
            row.hash = hash;
        }
        error = bw_rows_write(&lists->stream, &row, sizeof row);
    }

    lists->read = (struct bw_recoverable){0};
    lists->zeros = 0;
    if (lists->hash)
        bw_hash_begin(lists->hash);
    return error;
}

struct bw_error *extract_lists_add_renamed(struct extract_lists *lists, struct bw_bytes path,
                                           struct bw_bytes name)
{
    const struct bw_renamedinfo row = {.path = path, .path_bytes = path, .name = name};
    return bw_rows_write(&lists->renamed_stream, &row, sizeof row);
}

struct bw_error *extract_lists_close(struct extract_lists *lists, bool complete)
{
    struct bw_error *error = lists->rows ? bw_rows_end(&lists->stream) : NULL;
    if (lists->renamed_rows)
        error = bw_error_first(error, bw_rows_end(&lists->renamed_stream));
    error = bw_error_first(
        error, cmd_list_file_close(lists->common, &lists->manifest, complete && !error));
    error = bw_error_first(error, cmd_list_file_close(lists->common, &lists->missed, complete));
    error = bw_error_first(error, cmd_list_file_close(lists->common, &lists->renamed, complete));
    bw_rows_destroy(BW_TAKE(lists->renamed_rows));
    bw_rows_destroy(BW_TAKE(lists->rows));
    bw_hash_destroy(BW_TAKE(lists->hash));
    bw_key_set_free(&lists->listed);
    bw_key_set_free(&lists->except);
    return error;
}
