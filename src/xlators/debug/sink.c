/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Output of debug layers. */
#include "xlators/debug/sink.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/whole_io.h"

struct bw_error *bw_sink_open(const struct bw_xlator *xlator, struct bw_sink *sink)
{
    const char *path = bw_xlator_option_text(xlator, "file");
    *sink = (struct bw_sink){.descriptor = -1};
    if (strcmp(path, "-") == 0) {
        sink->descriptor = STDERR_FILENO;
        return NULL;
    }
    BW_TRY(bw_output_file_open(path, true, &sink->descriptor));
    sink->owned = true;
    return NULL;
}

/* Reports the first error. */
static void report_incomplete(const struct bw_xlator *xlator, struct bw_sink *sink,
                              struct bw_error *error)
{
    if (error && !atomic_exchange(&sink->failed, true))
        bw_xlator_report(xlator, BW_WARNING,
                         bw_error_prefix(error, "output of %s to %s is incomplete",
                                         bw_xlator_name(xlator),
                                         bw_xlator_option_text(xlator, "file")));
    else
        bw_error_free(error);
}

void bw_sink_write(const struct bw_xlator *xlator, struct bw_sink *sink, struct bw_buffer *text)
{
    struct bw_error *error = bw_buffer_error(text);
    /* Without a descriptor, bw_sink_open() failed, and the layer is being destroyed. */
    if (!error && sink->descriptor >= 0 &&
        !bw_write_all(sink->descriptor, text->data, text->length))
        error = bw_error_from_errno(errno, "cannot write");
    report_incomplete(xlator, sink, error);
    bw_buffer_free(text);
}

void bw_sink_close(const struct bw_xlator *xlator, struct bw_sink *sink)
{
    if (sink->owned && close(sink->descriptor))
        report_incomplete(xlator, sink, bw_error_from_errno(errno, "cannot write"));
    *sink = (struct bw_sink){.descriptor = -1};
}
