/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists with a mark until they are complete. */
#include "cli/common/list_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/whole_io.h"
#include "cli/common/output.h"

#define INCOMPLETE_PATHS "# incomplete"

const struct bw_bytes cmd_incomplete_paths = {INCOMPLETE_PATHS, sizeof INCOMPLETE_PATHS};

/* Empty paths are ignored, so the mark may be all. */
bool cmd_list_file_take_mark(struct bw_buffer *list)
{
    const struct bw_bytes *mark = &cmd_incomplete_paths;
    if (list->length < mark->length)
        return false;
    const size_t at = list->length - mark->length;
    if (memcmp(list->data + at, mark->data, mark->length) != 0 || (at && list->data[at - 1]))
        return false;
    list->length = at;
    return true;
}

/* Allocates space after the entries. If this fails, the only risk is an incomplete list. */
static void allocate_ahead(struct cmd_list_file *list)
{
    static const uint64_t sizes[] = {1 << 20, 64 << 10, 4 << 10};
    enum { ENOUGH = 256 << 10 };
    if (list->allocated > list->end + ENOUGH)
        return;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (!bw_file_may_have(list->end + sizes[i]))
            continue;
        if (fallocate(list->descriptor, FALLOC_FL_KEEP_SIZE, (off_t)list->end, (off_t)sizes[i]) &&
            (errno == ENOSPC || errno == EDQUOT))
            continue;
        list->allocated = list->end + sizes[i]; /* or the file system cannot do that */
        return;
    }
}

static struct bw_error *write_at(const struct cmd_list_file *list, const char *bytes, size_t length)
{
    if (!bw_file_may_have(list->end + length))
        return bw_error_from_errno(errno, "cannot write to %s", list->name);
    return cmd_write_at(list->descriptor, list->name, list->end, bytes, length);
}

/* Writes the mark, and removes everything after it. */
static struct bw_error *end_with_mark(const struct cmd_list_file *list)
{
    BW_TRY(write_at(list, list->mark.data, list->mark.length));
    if (ftruncate(list->descriptor, (off_t)(list->end + list->mark.length)))
        return bw_error_from_errno(errno, "cannot write to %s", list->name);
    return NULL;
}

struct bw_error *cmd_list_file_open(struct cmd_list_file *list, int descriptor, const char *name,
                                    const struct bw_bytes *mark, uint64_t end)
{
    struct stat status;
    *list = (struct cmd_list_file){.name = name, .mark = *mark, .descriptor = descriptor};
    list->is_regular = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    if (!list->is_regular)
        return NULL;
    list->end = end;
    allocate_ahead(list);
    struct bw_error *error = end_with_mark(list);
    if (!error)
        return NULL;
    close(descriptor);
    *list = (struct cmd_list_file){.name = NULL};
    return error;
}

/* Writes all entries that were added. */
static struct bw_error *flush_list(struct cmd_list_file *list)
{
    struct bw_buffer *gathered = &list->gathered;
    const size_t length = gathered->length;
    if (!list->name || list->has_failed || (!length && !gathered->failed))
        return NULL;
    if (list->is_regular)
        bw_buffer_append(gathered, list->mark.data, list->mark.length);
    struct bw_error *error;
    if (gathered->failed)
        error = bw_error_no_memory();
    else if (list->is_regular)
        error = write_at(list, gathered->data, gathered->length);
    else
        error = cmd_write_file(list->descriptor, list->name, gathered->data, length);
    gathered->length = 0;
    if (!error) {
        list->end += length;
        if (list->is_regular)
            allocate_ahead(list);
        return NULL;
    }
    /* The write may have ended in the middle of an entry. The mark's space is allocated. */
    list->has_failed = true;
    if (list->is_regular)
        bw_error_free(end_with_mark(list));
    return error;
}

/* After an interruption, a file may be extracted but not yet listed; few bytes are gathered, so
 * there are few of these. */
struct bw_error *cmd_list_file_add(void *context, const char *bytes, size_t length)
{
    enum { GATHERED = 4 << 10 };
    struct cmd_list_file *list = context;
    bw_buffer_append(&list->gathered, bytes, length);
    if (list->gathered.length < GATHERED && !list->gathered.failed)
        return NULL;
    return flush_list(list);
}

struct bw_error *cmd_list_file_close(const struct cmd_common *common, struct cmd_list_file *list,
                                     bool complete)
{
    if (!list->name)
        return NULL;
    struct bw_error *error = flush_list(list);
    complete = complete && !list->has_failed;
    if (complete && list->is_regular && ftruncate(list->descriptor, (off_t)list->end))
        error = bw_error_first(error, bw_error_from_errno(errno, "cannot write to %s", list->name));
    if (!complete && !list->is_regular && !list->has_failed)
        error = bw_error_first(error, cmd_write_file(list->descriptor, list->name, list->mark.data,
                                                     list->mark.length));
    error = cmd_close_file(common, list->descriptor, list->name, error);
    bw_buffer_free(&list->gathered);
    list->name = NULL;
    return error;
}
