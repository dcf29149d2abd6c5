/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debug/trace: writes a line for each request and each reply that passes between two layers. It
 * changes nothing and works in either address space.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/whole_io.h"
#include "xlators/classes.h"

struct trace {
    int descriptor;      /* -1: not open */
    bool is_file;        /* opened here; otherwise stderr */
    atomic_bool failed;  /* an error of writing was reported */
    uint64_t kind;       /* choice of the option */
    bool all_operations; /* also trace map and advise */
};

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct trace *trace = bw_xlator_private(xlator);
    trace->kind = bw_xlator_option_number(xlator, "kind");
    trace->all_operations = bw_xlator_option_number(xlator, "operations") == 1;
    trace->descriptor = -1;
    const char *path = bw_xlator_option_text(xlator, "file");
    trace->is_file = strcmp(path, "-") != 0;
    if (trace->is_file)
        return bw_output_file_open(path, true, &trace->descriptor);
    trace->descriptor = STDERR_FILENO;
    return NULL;
}

/* The first error of the output is a warning; reads continue. */
static void report_incomplete(const struct bw_xlator *xlator, struct bw_error *error)
{
    struct trace *trace = bw_xlator_private(xlator);
    if (error && !atomic_exchange(&trace->failed, true))
        bw_xlator_report(xlator, BW_WARNING,
                         bw_error_prefix(error, "output of %s to %s is incomplete",
                                         bw_xlator_name(xlator),
                                         bw_xlator_option_text(xlator, "file")));
    else
        bw_error_free(error);
}

/* Writes text with one write(2), so that lines of several threads do not mix, and frees it. */
static void write_lines(const struct bw_xlator *xlator, struct bw_buffer *text)
{
    const struct trace *trace = bw_xlator_private(xlator);
    struct bw_error *error = bw_buffer_error(text);
    if (!error && !bw_write_all(trace->descriptor, text->data, text->length))
        error = bw_error_from_errno(errno, "cannot write");
    report_incomplete(xlator, error);
    bw_buffer_free(text);
}

static void fini(struct bw_xlator *xlator)
{
    const struct trace *trace = bw_xlator_private(xlator);
    if (trace->is_file && trace->descriptor >= 0 && close(trace->descriptor))
        report_incomplete(xlator, bw_error_from_errno(errno, "cannot write"));
}

/* Appends the beginning of a line: depth, name, direction, address and length. */
static void begin_line(const struct bw_frame *frame, const struct bw_xlator *xlator, char direction,
                       const char *operation, uint64_t address, uint64_t length,
                       struct bw_buffer *text)
{
    bw_buffer_format(text, "%*s", 2 * (int)frame->depth, "");
    bw_escape_words(text, bw_xlator_name(xlator));
    bw_buffer_format(text, " %c %s address %" PRIu64 " length %" PRIu64, direction, operation,
                     address, length);
}

static void append_result(const struct bw_error *error, struct bw_buffer *text)
{
    bw_buffer_format(text, error ? " error: " : " ok");
    if (error)
        bw_escape_words(text, error->message);
}

/* Writes all lines of a batch at once. */
static void trace_batch(const struct bw_frame *frame, const struct bw_xlator *xlator,
                        char direction, const struct bw_request *requests, size_t count)
{
    struct trace *trace = bw_xlator_private(xlator);
    struct bw_buffer text = {0};
    for (size_t i = 0; i < count; i++) {
        const struct bw_request *request = &requests[i];
        const struct bw_tree_block_expectation *wanted = request->expectation;
        if (!bw_request_kind_selected(trace->kind, request->kind))
            continue;
        begin_line(frame, xlator, direction, bw_request_kind_name(request->kind), request->address,
                   request->length, &text);
        if (request->mirror)
            bw_buffer_format(&text, " mirror %u", request->mirror);
        else
            bw_buffer_format(&text, " mirror any");
        if (direction == '<')
            append_result(request->error, &text);
        else if (request->kind == BW_REQUEST_TREE_BLOCK && wanted)
            bw_buffer_format(&text, " owner %" PRIu64 " level %u generation %" PRIu64,
                             wanted->owner, wanted->level, wanted->generation);
        bw_buffer_append_byte(&text, '\n');
    }
    write_lines(xlator, &text);
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    trace_batch(frame, xlator, '>', requests, count);
    bw_wind(frame, bw_xlator_child(xlator, 0), requests, count);
    trace_batch(frame, xlator, '<', requests, count);
}

static struct bw_error *map(const struct bw_frame *frame, struct bw_xlator *xlator,
                            uint64_t address, uint32_t length, unsigned copy,
                            struct bw_map_reply *reply)
{
    struct trace *trace = bw_xlator_private(xlator);
    struct bw_buffer requested = {0}, answered = {0};
    if (trace->all_operations) {
        begin_line(frame, xlator, '>', "map", address, length, &requested);
        bw_buffer_format(&requested, " mirror %u\n", copy);
        write_lines(xlator, &requested);
    }
    struct bw_error *error =
        bw_wind_map(frame, bw_xlator_child(xlator, 0), address, length, copy, reply);
    if (trace->all_operations) {
        begin_line(frame, xlator, '<', "map", address, length, &answered);
        bw_buffer_format(&answered, " mirror %u", copy);
        append_result(error, &answered);
        if (!error) {
            const struct bw_location *location = &reply->location;
            bw_buffer_format(&answered,
                             ": mirrors %u device %" PRIu64 " offset %" PRIu64 " length %" PRIu32,
                             reply->copies, location->devid, location->offset, reply->length);
            if (!location->present)
                bw_buffer_format(&answered, " missing");
            if (location->rebuilt)
                bw_buffer_format(&answered, " rebuilt");
        }
        bw_buffer_append_byte(&answered, '\n');
        write_lines(xlator, &answered);
    }
    return error;
}

static void advise(const struct bw_frame *frame, struct bw_xlator *xlator,
                   const struct bw_range *ranges, size_t count, unsigned copy)
{
    struct trace *trace = bw_xlator_private(xlator);
    struct bw_buffer text = {0};
    for (size_t i = 0; trace->all_operations && i < count; i++) {
        begin_line(frame, xlator, '>', "advise", ranges[i].address, ranges[i].length, &text);
        if (copy)
            bw_buffer_format(&text, " mirror %u", copy);
        bw_buffer_append_byte(&text, '\n');
    }
    write_lines(xlator, &text);
    bw_wind_advise(frame, bw_xlator_child(xlator, 0), ranges, count, copy);
}

static const char *const operation_choices[] = {"read", "all", NULL};

static const struct bw_option options[] = {
    {"file", BW_OPTION_OUTPUT, "-", 0, 0, "where to write: - is stderr; a file is appended to",
     NULL},
    {"kind", BW_OPTION_ENUM, "any", 0, 0, "which reads are written", bw_request_kind_choices},
    {"operations", BW_OPTION_ENUM, "read", 0, 0, "reads only, or mappings and read-ahead as well",
     operation_choices},
    {0},
};

static const char page[] =
    "Writes a line for each request (>) and each reply (<): the name of the volume, the "
    "kind of read, address and length in bytes, and the mirror. The line of a request for a "
    "tree block also has the owner, level and generation expected by its parent. The line "
    "of a reply ends with ok or with the error. Lines are indented by the depth of the "
    "call. The lines of a batch are never mixed with lines of other threads.\n\n"
    "Use it to see the requests of a layer to the layer below it, and their order. "
    "Addresses are logical if this layer is above the chunk map, and offsets on one device "
    "below it.\n\n"
    "    btrfs-walk --insert debug/trace@verify,kind=tree-block image.img\n"
    "    btrfs-walk --insert debug/trace@device-1,file=device-1.trace image.img\n\n"
    "With operations=all, it also writes mappings of addresses (map) and read-ahead "
    "(advise); kind does not apply to them.\n";

const struct bw_xlator_class bw_debug_trace_class = {
    .type = "debug/trace",
    .description = "writes a line for each request and each reply",
    .page = page,
    BW_ONE_CHILD(BW_ADDRESS_ANY),
    .private_size = sizeof(struct trace),
    .options = options,
    .operations = {.init = init, .fini = fini, .read = read_requests, .map = map, .advise = advise},
};
