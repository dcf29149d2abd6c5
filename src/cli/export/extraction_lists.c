/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lists of an extraction: the manifest with hashes, and the paths of missing files. */
#include "cli/export/extraction_lists.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "btrfs-walk/row_records.h"
#include "cli/common/answer.h"
#include "cli/export/hashing.h"

const struct cmd_option extract_list_options[] = {
    {0, "manifest", "FILE",
     "append the status and the SHA-256 of each extracted file to FILE, as JSON",
     CMD_TEXT(struct extract_list_settings, manifest)},
    {0, "missed", "FILE",
     "write the paths of files that were not extracted to FILE, for --from0 -T FILE",
     CMD_TEXT(struct extract_list_settings, missed)},
    {0},
};

/* The files. */

static struct bw_error *flush_list(struct extract_list *list)
{
    if (!list->name)
        return NULL;
    struct bw_error *error = list->gathered.failed
                                 ? bw_error_no_memory()
                                 : cmd_write_file(list->descriptor, list->name, list->gathered.data,
                                                  list->gathered.length);
    list->gathered.length = 0;
    return error;
}

/* After an interruption, a file may be extracted but not yet listed; few bytes are gathered, so
 * there are few of these. */
static struct bw_error *append_bytes(void *context, const char *bytes, size_t length)
{
    enum { GATHERED = 4 << 10 };
    struct extract_list *list = context;
    bw_buffer_append(&list->gathered, bytes, length);
    return list->gathered.length >= GATHERED ? flush_list(list) : NULL;
}

static struct bw_error *open_list(struct extract_list *list, const char *name, bool continues,
                                  const struct cmd_common *common, const struct bw_fs *planned)
{
    if (!name)
        return NULL;
    BW_TRY(cmd_open_output(planned, common->probes.blackbox, name, &list->descriptor));
    list->name = name;
    const bool seekable = lseek(list->descriptor, 0, SEEK_END) >= 0;
    if (seekable && !continues && ftruncate(list->descriptor, 0))
        return bw_error_from_errno(errno, "cannot empty %s", name);
    return NULL;
}

static struct bw_error *close_list(const struct cmd_common *common, struct extract_list *list)
{
    struct bw_error *error = flush_list(list);
    bw_buffer_free(&list->gathered);
    if (list->name)
        error = cmd_close_file(common, list->descriptor, list->name, error);
    list->name = NULL;
    return error;
}

static struct bw_error *begin_manifest(struct extract_lists *lists)
{
    const struct cmd_answer_settings settings = {.style = BW_ROWS_JSON_LINES};
    BW_TRY(cmd_answer_rows(&settings, "savedinfo", '\n', false, &lists->rows));
    lists->stream = (struct bw_rows_stream){
        .rows = lists->rows, .consume = append_bytes, .context = &lists->manifest};
    bw_hash_prepare();
    return bw_hash_create(BW_HASH_SHA256, &lists->hash);
}

struct bw_error *extract_lists_open(struct extract_lists *lists,
                                    const struct extract_list_settings *settings,
                                    const struct cmd_common *common, const struct bw_fs *planned)
{
    lists->common = common;
    BW_TRY(open_list(&lists->manifest, settings->manifest, true, common, planned));
    BW_TRY(open_list(&lists->missed, settings->missed, false, common, planned));
    return settings->manifest ? begin_manifest(lists) : NULL;
}

/* The current file. */

static void begin_file(struct extract_lists *lists)
{
    lists->read = (struct bw_recoverable){0};
    lists->zeros = 0;
    if (lists->hash)
        bw_hash_begin(lists->hash);
}

void extract_lists_add_part(struct extract_lists *lists, const struct bw_data_part *part)
{
    bw_recoverable_add(&lists->read, part);
    if (part->kind != BW_DATA_BYTES)
        lists->zeros += part->length;
    if (!lists->hash || lists->zeros > CMD_HASHING_MOST_ZEROS)
        return;
    if (part->kind == BW_DATA_BYTES)
        bw_hash_add(lists->hash, part->bytes, (size_t)part->length);
    else
        bw_hash_add_zeros(lists->hash, part->length);
}

static const char *status_of(const struct extract_lists *lists, const struct bw_export_entry *item,
                             enum extract_outcome outcome)
{
    const bool unchecked = item->unchecked || item->inode.flags & BW_INODE_NODATASUM;
    return !item->has_inode             ? "lost"
           : outcome >= EXTRACT_OMITTED ? "skipped"
           : outcome == EXTRACT_LINKED  ? "linked"
           : lists->read.bad || item->salvaged
               ? "partly"
               : bw_recoverable_name(bw_recoverable_kind(&lists->read, unchecked));
}

static struct bw_error *write_row(struct extract_lists *lists, const struct bw_fs *fs,
                                  const struct bw_export_entry *item, enum extract_outcome outcome)
{
    char hash[BW_HASH_TEXT] = "";
    const bool hashed =
        outcome == EXTRACT_MADE && item->type == S_IFREG && lists->zeros <= CMD_HASHING_MOST_ZEROS;
    if (hashed)
        bw_hash_end(lists->hash, hash);
    const struct bw_bytes path = {item->path.data, item->path.length};
    const struct bw_savedinfo row = {
        .saved = status_of(lists, item, outcome),
        .path = path,
        .path_bytes = path,
        .name = {bw_export_entry_name(item), bw_export_entry_name_length(item)},
        .size = item->inode.size,
        .bad_bytes = lists->read.bad,
        .algorithm = hashed ? bw_hash_names[BW_HASH_SHA256] : NULL,
        .hash = hashed ? hash : NULL,
        .subvolume = bw_subvolume_id(item->place.subvolume),
        .inode = item->place.inode,
        .generation = bw_fs_status(fs).generation,
    };
    return bw_rows_write(&lists->stream, &row, sizeof row, 0);
}

struct bw_error *extract_lists_add(struct extract_lists *lists, const struct bw_fs *fs,
                                   const struct bw_export_entry *item, enum extract_outcome outcome)
{
    struct bw_error *error = NULL;
    if (lists->missed.name && outcome == EXTRACT_FAILED)
        error = append_bytes(&lists->missed, item->path.data, item->path.length + 1);
    if (!error && lists->rows && (outcome == EXTRACT_MADE || outcome == EXTRACT_LINKED))
        error = write_row(lists, fs, item, outcome);
    begin_file(lists);
    return error;
}

struct bw_error *extract_lists_close(struct extract_lists *lists, struct bw_error *error)
{
    if (lists->rows)
        error = bw_error_first(error, bw_rows_end(&lists->stream));
    error = bw_error_first(error, close_list(lists->common, &lists->manifest));
    error = bw_error_first(error, close_list(lists->common, &lists->missed));
    bw_rows_destroy(BW_TAKE(lists->rows));
    bw_hash_destroy(BW_TAKE(lists->hash));
    return error;
}
