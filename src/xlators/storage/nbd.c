/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * storage/nbd: the bottom of the graph for an image that is not a plain file. It reads from an NBD
 * server, or from a helper program that serves the image (servers/).
 *
 * A batch is sorted by offset, neighbours become one read, and all reads are sent before waiting
 * for the first reply. A read goes straight into the buffers of its requests if these are
 * contiguous in memory, too; otherwise through a buffer of the batch. Reads whose ends the server
 * would not accept also use that buffer.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/cleanup.h"
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

/* A batch, or a part of one. */
struct batch {
    const struct bw_frame *frame;
    struct bw_xlator *xlator;
    struct nbd *nbd;
    struct bw_request *order[BW_BATCH]; /* sorted by offset; first those to be sent */
    size_t count;
    size_t sent; /* number of requests to be sent to the server */
    struct run runs[BW_BATCH];
    size_t run_count;
    uint64_t start; /* the time when the reads started, for probes */
};

static uint64_t size(struct bw_xlator *xlator)
{
    const struct nbd *nbd = bw_xlator_private(xlator);
    return nbd->facts.size;
}

/* The connection was opened before the sandbox started. */
static struct bw_error *init(struct bw_xlator *xlator)
{
    enum { NANOSECONDS = 1000000 };
    struct nbd *nbd = bw_xlator_private(xlator);
    struct bw_servers *servers = bw_xlator_servers(xlator);
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
    bw_connection_limit(nbd->connection,
                        (unsigned)(bw_xlator_option_number(xlator, "timeout") / NANOSECONDS),
                        (unsigned)bw_xlator_option_number(xlator, "attempts"));
    return NULL;
}

/* Planning. */

static bool is_inside(const struct nbd *nbd, const struct bw_request *request)
{
    return request->length <= nbd->facts.size &&
           request->address <= nbd->facts.size - request->length;
}

/* Moves requests for ranges that the connection keeps or has requested to the end of the order. */
static void move_kept(struct batch *batch)
{
    struct bw_request *kept[BW_BATCH];
    size_t count = 0;
    for (size_t i = 0; i < batch->count; i++) {
        struct bw_request *request = batch->order[i];
        if (bw_connection_has(batch->nbd->connection, request->address, request->length))
            kept[count++] = request;
        else
            batch->order[batch->sent++] = request;
    }
    for (size_t i = 0; i < count; i++)
        batch->order[batch->sent + i] = kept[i];
}

/* Completes requests beyond the end of the image, and removes them from the batch. `kept`: ranges
 * that the connection keeps may be used. */
static void sort_requests(struct batch *batch, struct bw_request *requests, size_t count, bool kept)
{
    for (size_t i = 0; i < count; i++) {
        if (is_inside(batch->nbd, &requests[i]))
            batch->order[batch->count++] = &requests[i];
        else
            requests[i].error = bw_error_create(
                BW_ERROR_CORRUPT, "%s ends at %" PRIu64 ", before offset %" PRIu64,
                batch->nbd->path, batch->nbd->facts.size, requests[i].address + requests[i].length);
    }
    bw_sort_by_address(batch->order, batch->count);
    if (kept)
        move_kept(batch);
    else
        batch->sent = batch->count;
}

static bool is_one_buffer(struct bw_request *const *requests, size_t count)
{
    bool is_one = true;
    for (size_t i = 1; i < count; i++)
        is_one &= (uint8_t *)requests[i - 1]->buffer + requests[i - 1]->length ==
                  (uint8_t *)requests[i]->buffer;
    return is_one;
}

/* Computes the range to request from the server; the size of the image is a multiple of its
 * blocks. */
static void widen_run(struct run *run, uint32_t block)
{
    const uint64_t begin = run->requests[0]->address, end = begin + run->length;
    const uint64_t wide_end = (end + block - 1) / block * block;
    run->offset = begin - begin % block;
    run->size = (size_t)(wide_end - run->offset);
}

static size_t reads_for(const struct batch *batch, const struct run *run)
{
    return (run->size + batch->nbd->facts.maximum - 1) / batch->nbd->facts.maximum;
}

/* Finds the runs; returns the number of reads and the memory that they need. */
static void find_runs(struct batch *batch, size_t *reads, size_t *bytes)
{
    *reads = *bytes = 0;
    for (size_t first = 0; first < batch->sent;) {
        struct run *run = &batch->runs[batch->run_count++];
        run->requests = batch->order + first;
        run->count = bw_find_run(batch->order, first, batch->sent, &run->length);
        widen_run(run, batch->nbd->facts.minimum);
        *reads += reads_for(batch, run);
        if (run->size != run->length || !is_one_buffer(run->requests, run->count))
            *bytes += run->size;
        first += run->count;
    }
    for (size_t i = batch->sent; i < batch->count; i++)
        batch->runs[batch->run_count++] = (struct run){.requests = &batch->order[i],
                                                       .count = 1,
                                                       .length = batch->order[i]->length,
                                                       .offset = batch->order[i]->address,
                                                       .size = batch->order[i]->length,
                                                       .kept = true};
}

/* Gives a run its part of the memory. */
static void cut_run(const struct batch *batch, struct run *run, struct bw_connection_read **reads,
                    uint8_t **bytes)
{
    const uint32_t most = batch->nbd->facts.maximum;
    bool is_direct = run->size == run->length && is_one_buffer(run->requests, run->count);
    uint8_t *buffer = is_direct ? run->requests[0]->buffer : *bytes;
    run->buffer = is_direct ? NULL : buffer;
    *bytes += is_direct ? 0 : run->size;
    run->reads = *reads;
    run->read_count = reads_for(batch, run);
    *reads += run->read_count;
    for (size_t i = 0, done = 0; i < run->read_count; i++, done += most)
        run->reads[i] = (struct bw_connection_read){
            .offset = run->offset + done,
            .length = run->size - done < most ? (uint32_t)(run->size - done) : most,
            .buffer = buffer + done};
}

/* Completing requests. */

/* Reports a warning about the given image rather than its contents. */
static void report_warning(const struct batch *batch, struct bw_error *warning)
{
    if (warning->code != BW_ERROR_NO_MEMORY) /* which is constant */
        warning->code = BW_ERROR_USAGE;
    bw_xlator_report(batch->xlator, BW_WARNING, warning);
}

/* The loss of the server is reported once, with all known details. */
static struct bw_error *explain_failure(const struct batch *batch,
                                        const struct bw_connection_read *read)
{
    struct nbd *nbd = batch->nbd;
    if (read->problem == ENOTCONN && !atomic_exchange(&nbd->loss_reported, true))
        report_warning(batch, bw_connection_lost(nbd->connection));
    if (read->problem == ENOTCONN)
        return bw_error_create(BW_ERROR_SYSTEM, "the server of %s has ended", nbd->path);
    return bw_error_from_errno(read->problem, "cannot read %s at offset %" PRIu64, nbd->path,
                               read->offset);
}

static const struct bw_connection_read *failed_read(const struct run *run)
{
    for (size_t i = 0; i < run->read_count; i++)
        if (run->reads[i].problem)
            return &run->reads[i];
    return NULL;
}

/* Tree blocks may be read again, and the beginnings of images, where formats are recognized. Data
 * are not. */
static bool may_be_reread(const struct bw_frame *frame, const struct bw_request *request)
{
    enum { SECTOR = 4096 };
    return request->kind == BW_REQUEST_SUPER || request->kind == BW_REQUEST_TREE_BLOCK ||
           frame->reread || (request->kind == BW_REQUEST_RAW && request->length < SECTOR);
}

static void cache_run(const struct batch *batch, const struct run *run)
{
    for (size_t i = 0; i < run->count; i++) {
        const struct bw_request *request = run->requests[i];
        if (may_be_reread(batch->frame, request))
            bw_connection_cache(batch->nbd->connection, request->address, request->length,
                                request->buffer);
    }
}

static void copy_out(const struct run *run)
{
    for (size_t i = 0; run->buffer && i < run->count; i++) {
        const struct bw_request *request = run->requests[i];
        memcpy(request->buffer, run->buffer + (request->address - run->offset), request->length);
    }
}

static void read_slice(const struct bw_frame *frame, struct bw_xlator *xlator,
                       struct bw_request *requests, size_t count, bool kept);

/* If adjacent requests cannot be read together, reads them one by one. Other threads may announce
 * and wait for a range that cannot be read again and again, so it is not looked for twice. */
static void answer_run(const struct batch *batch, const struct run *run)
{
    struct bw_request *first = run->requests[0];
    if (run->kept) {
        if (!bw_connection_read_cached(batch->nbd->connection, first->address, first->length,
                                       first->buffer))
            read_slice(batch->frame, batch->xlator, first, 1, false);
        return;
    }
    const struct bw_connection_read *failed = failed_read(run);
    if (!failed) {
        copy_out(run);
        cache_run(batch, run);
    }
    for (size_t i = 0; failed && i < run->count; i++) {
        if (run->count == 1 || failed->problem == ENOTCONN)
            run->requests[i]->error = explain_failure(batch, failed);
        else
            read_slice(batch->frame, batch->xlator, run->requests[i], 1, false);
    }
}

static struct bw_io_event event_of(const struct batch *batch, const struct run *run)
{
    return (struct bw_io_event){
        {.call = batch->frame->call}, batch->nbd->path, run->offset, run->size, run->count};
}

static void fire_start(struct batch *batch)
{
    struct bw_probes *probes = bw_xlator_probes(batch->xlator);
    batch->start = BW_PROBE_START(probes, dev__read__done);
    for (size_t i = 0; BW_PROBE_ON(probes, dev__read__start) && i < batch->run_count; i++) {
        const struct bw_io_event event = event_of(batch, &batch->runs[i]);
        BW_PROBE(probes, dev__read__start, io_start, &event);
    }
}

/* The reads of a batch are in flight together, so each takes the time of the whole batch. */
static void fire_end(const struct batch *batch)
{
    struct bw_probes *probes = bw_xlator_probes(batch->xlator);
    for (size_t i = 0; BW_PROBE_ON(probes, dev__read__done) && i < batch->run_count; i++) {
        struct bw_io_event event = event_of(batch, &batch->runs[i]);
        event.event.ns = batch->start ? bw_probes_now(probes) - batch->start : 0;
        event.event.error = bw_run_error(batch->runs[i].requests, batch->runs[i].count);
        BW_PROBE(probes, dev__read__done, io_done, &event);
    }
}

static void read_runs(struct batch *batch, struct bw_connection_read *reads, size_t count)
{
    fire_start(batch);
    if (count && bw_connection_read(batch->nbd->connection, reads, count))
        report_warning(batch, bw_error_create(BW_ERROR_USAGE,
                                              "%s: reconnected after the connection was lost",
                                              batch->nbd->path));
    for (size_t i = 0; i < batch->run_count; i++)
        answer_run(batch, &batch->runs[i]);
    fire_end(batch);
}

static void read_slice(const struct bw_frame *frame, struct bw_xlator *xlator,
                       struct bw_request *requests, size_t count, bool kept)
{
    struct batch batch = {.frame = frame, .xlator = xlator, .nbd = bw_xlator_private(xlator)};
    size_t read_count, bytes;
    sort_requests(&batch, requests, count, kept);
    find_runs(&batch, &read_count, &bytes);
    if (!batch.run_count)
        return;
    BW_AUTO_FREE struct bw_connection_read *reads = calloc(read_count + 1, sizeof *reads);
    BW_AUTO_FREE uint8_t *memory = malloc(bytes + 1);
    for (size_t i = 0; (!reads || !memory) && i < batch.count; i++)
        batch.order[i]->error = bw_error_no_memory();
    if (!reads || !memory)
        return;
    struct bw_connection_read *next_read = reads;
    uint8_t *next_byte = memory;
    for (size_t i = 0; i < batch.run_count && !batch.runs[i].kept; i++)
        cut_run(&batch, &batch.runs[i], &next_read, &next_byte);
    read_runs(&batch, reads, read_count);
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
    .operations =
        {.init = init, .read = read_requests, .advise = advise, .size = size, .dump = dump},
};
