/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debug/trace: writes down what passes between two layers, one line a request on its way down and
 * one on its way up. Changes nothing. Stands wherever it is put, in either address space.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/escape.h"
#include "xlators/classes.h"
#include "xlators/debug/sink.h"

struct trace {
    struct bw_sink sink;
    uint64_t kind;       /* choice of the option */
    bool all_operations; /* map and advise as well */
};

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        return bw_error_no_memory();
    trace->kind = bw_xlator_option_number(xlator, "kind");
    trace->all_operations = bw_xlator_option_number(xlator, "operations") == 1;
    bw_xlator_set_private(xlator, trace);
    return bw_sink_open(xlator, &trace->sink);
}

static void fini(struct bw_xlator *xlator)
{
    struct trace *trace = bw_xlator_private(xlator);
    if (trace)
        bw_sink_close(&trace->sink);
    free(trace);
    bw_xlator_set_private(xlator, NULL);
}

/* What every line begins with. */
static void begin_line(const struct bw_frame *frame, const struct bw_xlator *xlator, char direction,
                       struct bw_buffer *text)
{
    for (unsigned i = 0; i < frame->depth; i++)
        bw_buffer_append(text, "  ", 2);
    bw_escape_words(text, bw_xlator_name(xlator));
    bw_buffer_format(text, " %c", direction);
}

static void append_range(struct bw_buffer *text, const char *what, uint64_t address,
                         uint64_t length)
{
    bw_buffer_format(text, " %s address %" PRIu64 " length %" PRIu64, what, address, length);
}

static void append_request(const struct bw_request *request, struct bw_buffer *text)
{
    append_range(text, bw_request_kind_name(request->kind), request->address, request->length);
    if (request->copy)
        bw_buffer_format(text, " copy %u", request->copy);
    else
        bw_buffer_format(text, " copy any");
}

static void append_expectation(const struct bw_request *request, struct bw_buffer *text)
{
    const struct bw_tree_block_expectation *wanted = request->expectation;
    if (request->kind == BW_REQUEST_TREE_BLOCK && wanted)
        bw_buffer_format(text, " owner %" PRIu64 " level %u generation %" PRIu64, wanted->owner,
                         wanted->level, wanted->generation);
}

static void append_result(const struct bw_error *error, struct bw_buffer *text)
{
    bw_buffer_format(text, error ? " error: " : " ok");
    if (error)
        bw_escape_words(text, error->message);
}

/* All lines of a batch in one write. */
static void trace_batch(const struct bw_frame *frame, const struct bw_xlator *xlator,
                        char direction, const struct bw_request *requests, size_t count)
{
    struct trace *trace = bw_xlator_private(xlator);
    struct bw_buffer text = {0};
    for (size_t i = 0; i < count; i++) {
        if (!bw_request_kind_selected(trace->kind, requests[i].kind))
            continue;
        begin_line(frame, xlator, direction, &text);
        append_request(&requests[i], &text);
        if (direction == '>')
            append_expectation(&requests[i], &text);
        else
            append_result(requests[i].error, &text);
        bw_buffer_append_byte(&text, '\n');
    }
    bw_sink_write(xlator, &trace->sink, &text);
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    trace_batch(frame, xlator, '>', requests, count);
    bw_wind(frame, bw_xlator_child(xlator, 0), requests, count);
    trace_batch(frame, xlator, '<', requests, count);
}

static void append_location(const struct bw_map_reply *reply, struct bw_buffer *text)
{
    const struct bw_location *location = &reply->location;
    bw_buffer_format(text,
                     " ok: copies %u device %" PRIu64 " offset %" PRIu64 " length %" PRIu32 "%s%s",
                     reply->copies, location->devid, location->offset, reply->length,
                     location->present ? "" : " missing", location->rebuilt ? " rebuilt" : "");
}

struct question {
    uint64_t address;
    uint32_t length;
    unsigned copy;
};

/* `reply` is NULL on the way down, and may be anything if there is an error. */
static void trace_map(const struct bw_frame *frame, const struct bw_xlator *xlator,
                      const struct question *asked, const struct bw_map_reply *reply,
                      const struct bw_error *error)
{
    struct trace *trace = bw_xlator_private(xlator);
    struct bw_buffer text = {0};
    begin_line(frame, xlator, reply ? '<' : '>', &text);
    append_range(&text, "map", asked->address, asked->length);
    bw_buffer_format(&text, " copy %u", asked->copy);
    if (reply && error)
        append_result(error, &text);
    else if (reply)
        append_location(reply, &text);
    bw_buffer_append_byte(&text, '\n');
    bw_sink_write(xlator, &trace->sink, &text);
}

static struct bw_error *map(const struct bw_frame *frame, struct bw_xlator *xlator,
                            uint64_t address, uint32_t length, unsigned copy,
                            struct bw_map_reply *reply)
{
    const struct trace *trace = bw_xlator_private(xlator);
    const struct question asked = {address, length, copy};
    if (trace->all_operations)
        trace_map(frame, xlator, &asked, NULL, NULL);
    struct bw_error *error =
        bw_wind_map(frame, bw_xlator_child(xlator, 0), address, length, copy, reply);
    if (trace->all_operations)
        trace_map(frame, xlator, &asked, reply, error);
    return error;
}

static void advise(const struct bw_frame *frame, struct bw_xlator *xlator,
                   const struct bw_range *ranges, size_t count)
{
    struct trace *trace = bw_xlator_private(xlator);
    struct bw_buffer text = {0};
    for (size_t i = 0; trace->all_operations && i < count; i++) {
        begin_line(frame, xlator, '>', &text);
        append_range(&text, "advise", ranges[i].address, ranges[i].length);
        bw_buffer_append_byte(&text, '\n');
    }
    bw_sink_write(xlator, &trace->sink, &text);
    bw_wind_advise(frame, bw_xlator_child(xlator, 0), ranges, count);
}

static const char *const operation_choices[] = {"read", "all", NULL};

static const struct bw_option options[] = {
    {.name = "file",
     .type = BW_OPTION_OUTPUT,
     .default_value = "-",
     .description = "where to write: - is stderr; a file is appended to"},
    {.name = "kind",
     .type = BW_OPTION_ENUM,
     .default_value = "any",
     .description = "which reads to write down",
     .choices = bw_request_kind_choices},
    {.name = "operations",
     .type = BW_OPTION_ENUM,
     .default_value = "read",
     .description = "reads only, or mappings and hints as well",
     .choices = operation_choices},
    {0},
};

static const char page[] =
    "Writes a line for each request (>) and each reply (<) that passes: the name of the volume, "
    "the kind of "
    "read, address and length in bytes, and the copy. A request for a tree block also tells the "
    "owner, level "
    "and generation its parent promises; a reply ends with ok or with the error. Lines are "
    "indented by the "
    "depth of the call. A batch is written at once, so threads do not mix their lines within it.\n"
    "\n"
    "Use it to see what a layer asks of the one below it, and in what order. Addresses are those "
    "of the "
    "place it stands in: logical above the chunk map, offsets on one device below it.\n"
    "\n"
    "    btrfs-walk --insert debug/trace@verify,kind=tree-block image.img\n"
    "    btrfs-walk --insert debug/trace@device-1,file=device-1.trace image.img\n"
    "\n"
    "With operations=all the questions for the place of a block (map) and the hints that ranges "
    "will be read "
    "soon (advise) are written as well; kind does not concern them.\n";

const struct bw_xlator_class bw_debug_trace_class = {
    .type = "debug/trace",
    .description = "writes down each request and its reply",
    .page = page,
    .above = BW_ADDRESS_ANY,
    .below = BW_ADDRESS_ANY,
    .minimum_children = 1,
    .maximum_children = 1,
    .options = options,
    .operations = {.init = init, .fini = fini, .read = read_requests, .map = map, .advise = advise},
};
