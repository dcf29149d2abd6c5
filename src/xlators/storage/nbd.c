/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * storage/nbd: the bottom of the graph for an image that is not a plain file. It reads from an NBD
 * server, or from a helper program that serves the image (servers/).
 *
 * A batch is sorted by offset, neighbours become a run, and the reads of all runs are sent before
 * waiting for the first reply. A run goes straight into the buffers of its requests if these are
 * contiguous in memory, too; otherwise through a buffer of the batch. So do runs whose ends the
 * server would not accept. Ranges that the connection keeps, or has requested because they were
 * announced, are runs of their own, and are waited for at the end.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "servers/servers.h"
#include "xlators/classes.h"
#include "xlators/storage/runs.h"

struct nbd {
    const char *path; /* the option's text, owned by the layer */
    struct bw_connection *connection;
    struct bw_connection_facts facts;
    atomic_bool loss_reported; /* the permanent loss of the server was reported */
};

/* Neighbouring requests, sent to the server as one read. */
struct run {
    struct bw_request **requests;
    size_t count, length;
    uint64_t offset; /* the range to read: all requests, widened for the server's alignment */
    size_t size;
    uint8_t *buffer; /* NULL: directly into the buffers of the requests */
    bool kept;       /* one request, for a range that the connection keeps */
    struct bw_connection_read *reads;
    size_t read_count;
};

/* The connection was opened before the sandbox started. */
static struct bw_error *init(struct bw_xlator *xlator)
{
    enum { NANOSECONDS = 1000000 };
    struct nbd *nbd = bw_xlator_private(xlator);
    struct bw_servers *servers = bw_xlator_inputs(xlator)->servers;
    bool served = false;
    nbd->path = bw_xlator_option_text(xlator, "path");
    if (servers)
        BW_TRY(bw_servers_open(servers, nbd->path, &served));
    if (!served)
        return bw_error_create(BW_ERROR_USAGE,
                               "%s is neither the address of a server nor an image that an "
                               "installed helper can serve",
                               nbd->path);
    nbd->connection = bw_servers_connection(servers, nbd->path);
    nbd->facts = bw_connection_facts(nbd->connection);
    bw_xlator_set_size(xlator, nbd->facts.size);
    bw_connection_limit(nbd->connection,
                        (unsigned)(bw_xlator_option_number(xlator, "timeout") / NANOSECONDS),
                        (unsigned)bw_xlator_option_number(xlator, "attempts"));
    return NULL;
}

static bool is_one_buffer(struct bw_request *const *requests, size_t count)
{
    bool is_one = true;
    for (size_t i = 1; i < count; i++)
        is_one &= (uint8_t *)requests[i - 1]->buffer + requests[i - 1]->length ==
                  (uint8_t *)requests[i]->buffer;
    return is_one;
}

static size_t reads_for(const struct nbd *nbd, const struct run *run)
{
    return (run->size + nbd->facts.maximum - 1) / nbd->facts.maximum;
}

/* Completing requests. */

/* Reports a warning about the given image rather than its contents. */
static void report_warning(const struct bw_xlator *xlator, struct bw_error *warning)
{
    if (warning->code != BW_ERROR_NO_MEMORY) /* which is constant */
        warning->code = BW_ERROR_USAGE;
    bw_xlator_report(xlator, BW_WARNING, warning);
}

/* Tree blocks may be read again, and the beginnings of images, where formats are recognized. Data
 * are not. */
static bool may_be_reread(const struct bw_frame *frame, const struct bw_request *request)
{
    enum { SECTOR = 4096 };
    return request->kind == BW_REQUEST_SUPER || request->kind == BW_REQUEST_TREE_BLOCK ||
           frame->reread || (request->kind == BW_REQUEST_RAW && request->length < SECTOR);
}

static void read_slice(const struct bw_frame *frame, struct bw_xlator *xlator,
                       struct bw_request *requests, size_t count, bool kept);

/* Completes the requests of a run. If adjacent requests cannot be read together, reads them one by
 * one. Other threads may announce and wait for a range that cannot be read again and again, so it
 * is not looked for twice. */
static void complete_run(const struct bw_frame *frame, struct bw_xlator *xlator,
                         const struct run *run)
{
    struct nbd *nbd = bw_xlator_private(xlator);
    const struct bw_connection_read *failed = NULL;
    if (run->kept) {
        struct bw_request *request = run->requests[0];
        if (!bw_connection_read_cached(nbd->connection, request->address, request->length,
                                       request->buffer))
            read_slice(frame, xlator, request, 1, false);
        return;
    }
    for (size_t i = 0; i < run->read_count && !failed; i++)
        if (run->reads[i].problem)
            failed = &run->reads[i];
    for (size_t i = 0; i < run->count; i++) {
        struct bw_request *request = run->requests[i];
        if (failed && failed->problem == ENOTCONN) {
            /* The loss of the server is reported once, with all known details. */
            if (!atomic_exchange(&nbd->loss_reported, true))
                report_warning(xlator, bw_connection_lost(nbd->connection));
            request->error =
                bw_error_create(BW_ERROR_SYSTEM, "the server of %s has ended", nbd->path);
        } else if (failed && run->count == 1) {
            request->error = bw_error_from_errno(
                failed->problem, "cannot read %s at offset %" PRIu64, nbd->path, failed->offset);
        } else if (failed) {
            read_slice(frame, xlator, request, 1, false);
        } else {
            if (run->buffer)
                memcpy(request->buffer, run->buffer + (request->address - run->offset),
                       request->length);
            if (may_be_reread(frame, request))
                bw_connection_cache(nbd->connection, request->address, request->length,
                                    request->buffer);
        }
    }
}

static struct bw_io_event event_of(const struct bw_frame *frame, const struct nbd *nbd,
                                   const struct run *run)
{
    return (struct bw_io_event){
        {.call = frame->call}, nbd->path, run->offset, run->size, run->count};
}

/* Reads up to BW_BATCH requests. `kept`: ranges that the connection keeps may be used. */
static void read_slice(const struct bw_frame *frame, struct bw_xlator *xlator,
                       struct bw_request *requests, size_t count, bool kept)
{
    struct nbd *nbd = bw_xlator_private(xlator);
    struct bw_probes *probes = bw_xlator_probes(xlator);
    struct bw_request *order[BW_BATCH], *others[BW_BATCH];
    struct run runs[BW_BATCH];
    size_t inside = 0, sent = 0, other_count = 0, run_count = 0;

    /* In the order of addresses, first the requests to send, then the ranges that the connection
     * keeps. Requests beyond the end of the image are complete. */
    for (size_t i = 0; i < count; i++) {
        const uint64_t end = requests[i].address + requests[i].length;
        if (requests[i].length <= nbd->facts.size &&
            requests[i].address <= nbd->facts.size - requests[i].length)
            order[inside++] = &requests[i];
        else
            requests[i].error =
                bw_error_create(BW_ERROR_CORRUPT, "%s ends at %" PRIu64 ", before offset %" PRIu64,
                                nbd->path, nbd->facts.size, end);
    }
    bw_sort_by_address(order, inside);
    for (size_t i = 0; i < inside; i++) {
        if (kept && bw_connection_has(nbd->connection, order[i]->address, order[i]->length))
            others[other_count++] = order[i];
        else
            order[sent++] = order[i];
    }
    memcpy(order + sent, others, other_count * sizeof *others);

    /* The runs, and the number of reads and the memory that they need. The size of the image is a
     * multiple of the server's blocks. */
    const uint32_t block = nbd->facts.minimum;
    size_t read_count = 0, bytes = 0;
    for (size_t first = 0; first < sent; first += runs[run_count++].count) {
        struct run *run = &runs[run_count];
        *run = (struct run){.requests = order + first};
        run->count = bw_find_run(order, first, sent, &run->length);
        const uint64_t begin = order[first]->address, end = begin + run->length;
        run->offset = begin - begin % block;
        run->size = (size_t)((end + block - 1) / block * block - run->offset);
        read_count += reads_for(nbd, run);
        if (run->size != run->length || !is_one_buffer(run->requests, run->count))
            bytes += run->size;
    }
    for (size_t i = sent; i < inside; i++)
        runs[run_count++] = (struct run){.requests = &order[i],
                                         .count = 1,
                                         .length = order[i]->length,
                                         .offset = order[i]->address,
                                         .size = order[i]->length,
                                         .kept = true};
    if (!run_count)
        return;
    BW_AUTO_FREE struct bw_connection_read *reads = calloc(read_count + 1, sizeof *reads);
    BW_AUTO_FREE uint8_t *memory = malloc(bytes + 1);
    if (!reads || !memory) {
        for (size_t i = 0; i < inside; i++)
            order[i]->error = bw_error_no_memory();
        return;
    }

    /* The reads of each run. */
    struct bw_connection_read *read = reads;
    uint8_t *next = memory;
    for (size_t i = 0; i < run_count && !runs[i].kept; i++) {
        struct run *run = &runs[i];
        uint8_t *buffer = run->requests[0]->buffer;
        if (run->size != run->length || !is_one_buffer(run->requests, run->count)) {
            run->buffer = buffer = next;
            next += run->size;
        }
        run->reads = read;
        run->read_count = reads_for(nbd, run);
        for (size_t done = 0; done < run->size; done += nbd->facts.maximum) {
            const uint32_t length = (uint32_t)bw_min(run->size - done, nbd->facts.maximum);
            *read++ = (struct bw_connection_read){
                .offset = run->offset + done, .length = length, .buffer = buffer + done};
        }
    }

    /* They are in flight together, so each takes the time of the whole batch. */
    const uint64_t start = BW_PROBE_START(probes, dev__read__done);
    for (size_t i = 0; BW_PROBE_ON(probes, dev__read__start) && i < run_count; i++) {
        const struct bw_io_event event = event_of(frame, nbd, &runs[i]);
        BW_PROBE(probes, dev__read__start, io_start, &event);
    }
    if (read_count && bw_connection_read(nbd->connection, reads, read_count))
        report_warning(xlator,
                       bw_error_create(BW_ERROR_USAGE,
                                       "%s: reconnected after the connection was lost", nbd->path));
    for (size_t i = 0; i < run_count; i++)
        complete_run(frame, xlator, &runs[i]);
    for (size_t i = 0; BW_PROBE_ON(probes, dev__read__done) && i < run_count; i++) {
        struct bw_io_event event = event_of(frame, nbd, &runs[i]);
        event.event.ns = start ? bw_probes_now(probes) - start : 0;
        event.event.error = bw_run_error(runs[i].requests, runs[i].count);
        BW_PROBE(probes, dev__read__done, io_done, &event);
    }
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    for (size_t done = 0; done < count; done += BW_BATCH)
        read_slice(frame, xlator, requests + done, bw_next_batch(count - done), true);
}

static void advise(const struct bw_frame *frame, struct bw_xlator *xlator,
                   const struct bw_range *ranges, size_t count, unsigned copy)
{
    const struct nbd *nbd = bw_xlator_private(xlator);
    (void)copy;
    for (size_t i = 0; i < count; i++)
        bw_connection_advise(nbd->connection, ranges[i].address, ranges[i].length, frame->reread);
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    const struct nbd *nbd = bw_xlator_private(xlator);
    bw_json_number(json, "size", nbd->facts.size);
    bw_json_number(json, "block_size", nbd->facts.minimum);
    bw_json_number(json, "largest_read", nbd->facts.maximum);
}

static const struct bw_option options[] = {
    {"path", BW_OPTION_PATH, NULL, 0, 0,
     "address of a server, or an image that a helper program serves; see below", NULL},
    {"timeout", BW_OPTION_TIME, "0", 0, UINT64_C(3600000000000),
     "a server that sends nothing for this long during a read counts as lost; 0: the timeout for "
     "connecting, which --timeout sets",
     NULL},
    {"attempts", BW_OPTION_INTEGER, "5", 0, 20,
     "number of attempts to reconnect to a lost server; the pauses between them start at 100 ms "
     "and double each time",
     NULL},
    {0},
};

static const char page[] =
    "Reads the bytes of an image from an NBD server, or from a helper program that serves "
    "an image in another format. The default graph contains this layer if an image is given "
    "as the address of a server, a container like qcow2, or a compressed image:\n\n"
    "    btrfs-walk nbd://server/disk\n"
    "    btrfs-walk disk.qcow2\n\n"
    "A batch of reads is sorted by offset, and neighbours become one read. The layer sends "
    "all requests before it waits for the first reply, and several threads share one "
    "connection. It respects the server's limits for the size and alignment of reads. Ranges "
    "that the layers above announce are requested at once, and kept until they are read. Tree "
    "blocks are kept longer. The limit is 128 MiB.\n\n"
    "If the connection is lost, the layer connects again, with a warning. If that fails, "
    "all further reads fail at once. They also fail if a server is silent for the whole "
    "timeout, unless it has replied on that connection before. A helper that has ended is "
    "not started again.\n";

const struct bw_xlator_class bw_storage_nbd_class = {
    .type = "storage/nbd",
    .description = "reads from an NBD server or a helper program",
    .page = page,
    .above = BW_ADDRESS_DEVICE,
    .below = BW_ADDRESS_NONE,
    .private_size = sizeof(struct nbd),
    .options = options,
    .operations = {.init = init,
                   .read = read_requests,
                   .advise = advise,
                   .size = bw_xlator_own_size,
                   .dump = dump},
};
