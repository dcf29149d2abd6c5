/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers that go to a file. */
#include "cli/common/output_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/common/output_watcher.h"

static bool is_stdout(const struct cmd_output_file *file)
{
    return !file->name || strcmp(file->name, "-") == 0;
}

int cmd_output_file_descriptor(const struct cmd_output_file *file)
{
    return is_stdout(file) ? STDOUT_FILENO : file->descriptor;
}

static bool is_regular(int descriptor)
{
    struct stat status;
    return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

struct bw_error *cmd_output_file_open(void *context, const struct bw_fs *planned)
{
    struct cmd_output_file *file = context;
    if (is_stdout(file))
        return NULL;
    bool is_new = access(file->name, F_OK) != 0;
    BW_TRY(cmd_open_output(planned, file->common->probes.blackbox, file->name, &file->descriptor));
    file->is_open = true;
    file->watcher =
        is_regular(file->descriptor) ? cmd_watcher_start(file->name, file->descriptor, is_new) : -1;
    return NULL;
}

struct bw_error *cmd_output_file_start(struct cmd_output_file *file)
{
    file->has_begun = true;
    if (is_stdout(file) || !is_regular(file->descriptor))
        return NULL;
    cmd_watcher_file_is_ours(file->watcher);
    return ftruncate(file->descriptor, 0)
               ? bw_error_from_errno(errno, "cannot empty %s", file->name)
               : NULL;
}

static struct bw_error *write_gathered(struct cmd_output_file *file)
{
    struct bw_error *error =
        cmd_write_file(file->descriptor, file->name, file->gathered.data, file->gathered.length);
    file->gathered.length = 0;
    return error;
}

struct bw_error *cmd_output_file_add(void *context, const char *bytes, size_t length)
{
    enum { GATHER = 64 << 10 };
    struct cmd_output_file *file = context;
    if (is_stdout(file))
        return cmd_write(&file->output, bytes, length);
    if (file->gathered.length + length > GATHER)
        BW_TRY(write_gathered(file));
    if (length > GATHER)
        return cmd_write_file(file->descriptor, file->name, bytes, length);
    bw_buffer_append(&file->gathered, bytes, length);
    return file->gathered.failed ? bw_error_no_memory() : NULL;
}

struct bw_error *cmd_output_file_write(struct cmd_output_file *file, const struct bw_buffer *text)
{
    if (text->failed)
        return bw_error_no_memory();
    BW_TRY(cmd_output_file_start(file));
    return cmd_output_file_add(file, text->data, text->length);
}

struct bw_error *cmd_output_file_close(struct cmd_output_file *file, struct bw_error *error)
{
    if (is_stdout(file))
        return bw_error_first(error, cmd_flush(&file->output));
    if (file->is_open && !error)
        error = write_gathered(file);
    if (file->is_open && close(file->descriptor) && !error)
        error = bw_error_from_errno(errno, "cannot write to %s", file->name);
    if (file->is_open)
        cmd_watcher_end(file->watcher, !error && file->has_begun);
    file->is_open = false;
    bw_buffer_free(&file->gathered);
    return error;
}
