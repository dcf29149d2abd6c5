/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers that go to a file as a whole. */
#include "cmd/common/output_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_stdout(const struct cmd_output_file *file)
{
    return !file->name || strcmp(file->name, "-") == 0;
}

struct bw_error *cmd_output_file_open(void *context, const struct bw_fs *planned)
{
    struct cmd_output_file *file = context;
    return is_stdout(file) ? NULL
                           : cmd_open_output(planned, file->common->probes.blackbox, file->name,
                                             &file->descriptor);
}

struct bw_error *cmd_output_file_write(struct cmd_output_file *file, const struct bw_buffer *text)
{
    struct stat status;
    if (text->failed)
        return bw_error_no_memory();
    if (is_stdout(file)) {
        struct cmd_output output = {.at_once = true};
        return cmd_write(&output, text->data, text->length);
    }
    if (fstat(file->descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
        ftruncate(file->descriptor, 0))
        return bw_error_from_errno(errno, "cannot empty %s", file->name);
    return cmd_write_file(file->descriptor, file->name, text->data, text->length);
}

struct bw_error *cmd_output_file_close(struct cmd_output_file *file)
{
    const int descriptor = file->descriptor;
    file->descriptor = -1;
    return descriptor >= 0 && close(descriptor)
               ? bw_error_from_errno(errno, "cannot write to %s", file->name)
               : NULL;
}
