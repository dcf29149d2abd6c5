/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Connections, by libnbd. Its calls are made under a lock, which is free while sockets are waited
 * for: one of the threads that wait for answers polls for all of them, and hands on what has come.
 *
 * Servers answer so many requests of a line at a time, and no more; so there are several lines, if
 * the server allows that and there is much to do. If one of them is lost, all are given up.
 */
#include "servers/connection.h"

#ifdef BW_NBD

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "servers/helper.h"
#include "servers/libnbd.h"
#include "servers/line.h"

const bool bw_connection_is_built = true;

enum {
    ATTEMPTS = 5,
    FIRST_PAUSE = 100, /* milliseconds before the second attempt; doubled with each */
    LINES = 4,
    BUSY = 16, /* requests of a line that qemu-nbd and nbdkit work on at a time */
};

struct bw_connection {
    struct bw_libnbd nbd;
    char *name, *uri;
    struct bw_helper *helper;
    unsigned timeout, attempts;
    struct bw_connection_facts facts;
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t changed;
    struct nbd_handle *lines[LINES]; /* the first can be used, others may not be ready yet */
    unsigned line_count;             /* 0: the server has gone */
    unsigned line_limit;
    uint64_t epoch;        /* counts the beginnings and ends of the first line */
    struct bw_error *lost; /* why there is no connection, nor will be; NULL: there may be */
    char *reason;          /* why the last one has ended */
    unsigned barren;       /* connections in turn that have answered nothing */
    bool silent;           /* the last attempt or connection has ended with a timeout */
    char silence[96];      /* the message for that */
    bool polling;          /* one thread does */
    bool finished;         /* all reads of some call have been answered since that was told */
    int wake;              /* an event, for the thread that polls */
};

/* Connecting. */

static const char *socket_of(const struct bw_connection *connection)
{
    return connection->helper ? bw_helper_socket(connection->helper) : NULL;
}

static struct bw_error *describe_failure(const struct bw_connection *connection, const char *why)
{
    if (!connection->helper)
        return bw_error_create(BW_ERROR_SYSTEM, "cannot connect to %s: %s", connection->name, why);
    return bw_helper_blame(connection->helper, connection->name, why);
}

/* A helper may take its time: it may have to unpack the image first. A server that comes back must
 * have what it had. */
static struct bw_error *connect_first(struct bw_connection *connection)
{
    struct bw_connection_facts facts;
    struct nbd_handle *line;
    const struct bw_libnbd *nbd = &connection->nbd;
    const char *why = bw_line_begin(nbd, connection->uri, socket_of(connection), &line);
    if (!why)
        why = bw_line_await(nbd, line, connection->helper ? 0 : connection->timeout);
    connection->silent = why == bw_line_silent;
    why = connection->silent ? connection->silence : why;
    if (!why)
        why = bw_line_facts(nbd, line, &facts);
    if (!why && connection->epoch && facts.size != connection->facts.size)
        why = "the image has another size now";
    if (why) {
        struct bw_error *error = describe_failure(connection, why);
        nbd->close(line);
        return error;
    }
    connection->lines[0] = line;
    connection->line_count = 1;
    connection->line_limit = !connection->helper && nbd->can_multi_conn(line) > 0 ? LINES : 1;
    if (!connection->epoch)
        connection->facts = facts; /* which others may know by now */
    connection->epoch++;
    connection->barren++;
    return NULL;
}

/* If that is not possible, it is not tried again. */
static void begin_line(struct bw_connection *connection)
{
    struct nbd_handle *line;
    if (bw_line_begin(&connection->nbd, connection->uri, NULL, &line)) {
        connection->nbd.close(line);
        connection->line_limit = connection->line_count;
        return;
    }
    connection->lines[connection->line_count++] = line;
}

static void drop_line(struct bw_connection *connection, unsigned number)
{
    connection->nbd.close(connection->lines[number]);
    connection->lines[number] = connection->lines[--connection->line_count];
    connection->line_limit = connection->line_count;
}

static void close_lines(struct bw_connection *connection)
{
    while (connection->line_count)
        connection->nbd.close(connection->lines[--connection->line_count]);
}

struct bw_error *bw_connection_open(const struct bw_connection_target *target,
                                    struct bw_connection **result)
{
    struct bw_connection *connection = calloc(1, sizeof *connection);
    if (!connection)
        return bw_error_no_memory();
    connection->helper = target->helper;
    connection->name = strdup(target->name);
    connection->uri = target->uri ? strdup(target->uri) : NULL;
    bw_connection_limit(connection, target->timeout, ATTEMPTS);
    connection->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&connection->lock, NULL);
    pthread_cond_init(&connection->changed, NULL);
    struct bw_error *error =
        !connection->name || (target->uri && !connection->uri) ? bw_error_no_memory()
        : connection->wake < 0 ? bw_error_from_errno(errno, "cannot connect to %s", target->name)
                               : bw_libnbd_load(&connection->nbd);
    if (!error)
        error = connect_first(connection);
    if (error)
        bw_connection_close(connection);
    else
        *result = connection;
    return error;
}

void bw_connection_close(struct bw_connection *connection)
{
    if (!connection)
        return;
    for (unsigned i = 0; i < connection->line_count; i++)
        connection->nbd.aio_disconnect(connection->lines[i], 0);
    close_lines(connection);
    if (connection->wake >= 0)
        close(connection->wake);
    pthread_cond_destroy(&connection->changed);
    pthread_mutex_destroy(&connection->lock);
    bw_error_free(connection->lost);
    free(connection->reason);
    free(connection->name);
    free(connection->uri);
    free(connection);
}

struct bw_connection_facts bw_connection_facts(const struct bw_connection *connection)
{
    return connection->facts;
}

void bw_connection_limit(struct bw_connection *connection, unsigned timeout, unsigned attempts)
{
    connection->timeout = timeout ? timeout : connection->timeout;
    connection->attempts = attempts;
    const bool whole = connection->timeout % 1000 == 0;
    snprintf(connection->silence, sizeof connection->silence, "%s for %u %s; --timeout allows more",
             bw_line_silent, whole ? connection->timeout / 1000 : connection->timeout,
             whole ? "s" : "ms");
}

/* Losing the server, and finding it again. All of this is called with the lock held. */

static void wake_poller(const struct bw_connection *connection)
{
    const uint64_t one = 1;
    /* It cannot fail but by being awake already. */
    if (connection->polling && write(connection->wake, &one, sizeof one) < 0)
        return;
}

static void lose(struct bw_connection *connection, const char *why)
{
    free(connection->reason);
    connection->reason = strdup(why);
    close_lines(connection);
    connection->epoch++;
    wake_poller(connection);
    pthread_cond_broadcast(&connection->changed);
}

static void pause_for(unsigned milliseconds)
{
    nanosleep(&(struct timespec){milliseconds / 1000, (long)(milliseconds % 1000) * 1000000}, NULL);
}

static struct bw_error *describe_loss(const struct bw_connection *connection,
                                      struct bw_error *attempt)
{
    const char *reason = connection->reason ? connection->reason : "memory ran out";
    if (connection->helper)
        return bw_helper_blame(connection->helper, connection->name, reason);
    struct bw_error *error =
        attempt ? bw_error_create(BW_ERROR_SYSTEM,
                                  "lost the connection to %s (%s), and could not make it again: "
                                  "%s",
                                  connection->name, reason, attempt->message)
                : bw_error_create(BW_ERROR_SYSTEM, "lost the connection to %s: %s",
                                  connection->name, reason);
    bw_error_add_cause(error, attempt);
    return error;
}

/* A helper is not started again: in a sandbox it could not be. A server that has said nothing for
 * the whole timeout gets another connection only if it has answered before on the last one, and it
 * must not be silent again. */
static bool reconnect(struct bw_connection *connection)
{
    const bool never = connection->helper || (connection->silent && connection->barren);
    const unsigned attempts = never ? 0 : connection->attempts;
    struct bw_error *error = NULL;
    for (unsigned i = 0, pause = FIRST_PAUSE; i < attempts && connection->barren <= attempts;
         i++, pause *= 2) {
        bw_error_free(error);
        error = connect_first(connection);
        if (!error)
            return true;
        if (connection->silent)
            break;
        if (i + 1 < attempts)
            pause_for(pause);
    }
    connection->lost = describe_loss(connection, error);
    pthread_cond_broadcast(&connection->changed);
    return false;
}

/* Reading. */

/* A call of bw_connection_read(). */
struct bw_connection_call {
    struct bw_connection *connection;
    size_t left; /* reads that were not answered yet */
};

/* Called by libnbd, with the lock held. A read that was cut off is not answered by that. */
static int answered(void *context, int *problem)
{
    struct bw_connection_read *read = context;
    if (*problem == ENOTCONN)
        return 1;
    struct bw_connection_call *call = read->call;
    read->problem = *problem;
    read->done = true;
    call->connection->barren = 0;
    if (--call->left == 0)
        call->connection->finished = true;
    return 1;
}

/* The line that has least to do. */
static struct nbd_handle *choose_line(const struct bw_connection *connection)
{
    const struct bw_libnbd *nbd = &connection->nbd;
    struct nbd_handle *chosen = connection->lines[0];
    int least = nbd->aio_in_flight(chosen);
    for (unsigned i = 1; i < connection->line_count; i++) {
        struct nbd_handle *line = connection->lines[i];
        int count = nbd->aio_in_flight(line);
        bool is_ready = nbd->aio_is_ready(line) || nbd->aio_is_processing(line);
        if (is_ready && count < least) {
            chosen = line;
            least = count;
        }
    }
    return chosen;
}

/* False if the line has ended. */
static bool send_read(struct nbd_handle *line, struct bw_connection_read *read)
{
    const struct bw_libnbd *nbd = &read->call->connection->nbd;
    const nbd_completion_callback callback = {.callback = answered, .user_data = read};
    if (nbd->aio_pread(line, read->buffer, read->length, read->offset, callback, 0) >= 0)
        return true;
    int problem = nbd->get_errno() ? nbd->get_errno() : EIO;
    if (nbd->aio_is_dead(line) || nbd->aio_is_closed(line))
        return false;
    answered(read, &problem);
    return true;
}

static void send_reads(struct bw_connection *connection, struct bw_connection_read *reads,
                       size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!reads[i].done && !send_read(choose_line(connection), &reads[i])) {
            lose(connection, bw_line_error(&connection->nbd));
            return;
        }
    while (connection->line_count < connection->line_limit &&
           count > (size_t)BUSY * connection->line_count)
        begin_line(connection);
    wake_poller(connection); /* it may have to wait for more than it does */
}

/* What has come on a line. */
static void take_event(struct bw_connection *connection, unsigned number, int ready)
{
    const struct bw_libnbd *nbd = &connection->nbd;
    struct nbd_handle *line = connection->lines[number];
    bool was_ready = number == 0 || nbd->aio_is_ready(line) || nbd->aio_is_processing(line);
    if (bw_line_advance(nbd, line, ready))
        return;
    if (was_ready)
        lose(connection, bw_line_error(nbd));
    else
        drop_line(connection, number);
}

static void poll_once(struct bw_connection *connection)
{
    struct pollfd wanted[LINES + 1] = {{connection->wake, POLLIN, 0}};
    const uint64_t epoch = connection->epoch;
    const unsigned lines = connection->line_count;
    uint64_t event;
    for (unsigned i = 0; i < lines; i++)
        wanted[1 + i] = bw_line_poll(&connection->nbd, connection->lines[i]);
    connection->polling = true;
    pthread_mutex_unlock(&connection->lock);
    int count = poll(wanted, 1 + lines, (int)connection->timeout);
    pthread_mutex_lock(&connection->lock);
    connection->polling = false;
    if (count > 0 && wanted[0].revents && read(connection->wake, &event, sizeof event) < 0)
        return;
    if (count == 0 && connection->epoch == epoch) {
        connection->silent = true;
        lose(connection, connection->silence);
    }
    for (unsigned i = lines; count > 0 && i-- > 0 && connection->epoch == epoch;)
        if (wanted[1 + i].revents)
            take_event(connection, i, wanted[1 + i].revents);
}

/* The thread that polls tells the others when the reads of one of them are done; or its own, so
 * that another one has to poll. */
static void await_answers(struct bw_connection *connection)
{
    if (connection->polling) {
        pthread_cond_wait(&connection->changed, &connection->lock);
        return;
    }
    poll_once(connection);
    if (connection->finished)
        pthread_cond_broadcast(&connection->changed);
    connection->finished = false;
}

unsigned bw_connection_read(struct bw_connection *connection, struct bw_connection_read *reads,
                            size_t count)
{
    struct bw_connection_call call = {connection, count};
    uint64_t sent = 0; /* the epoch in which the reads were sent */
    unsigned made = 0;
    for (size_t i = 0; i < count; i++) {
        reads[i].done = false;
        reads[i].problem = ENOTCONN;
        reads[i].call = &call;
    }
    pthread_mutex_lock(&connection->lock);
    while (call.left && !connection->lost) {
        if (!connection->line_count) {
            made += reconnect(connection);
        } else if (sent != connection->epoch) {
            sent = connection->epoch;
            send_reads(connection, reads, count);
        } else {
            await_answers(connection);
        }
    }
    pthread_mutex_unlock(&connection->lock);
    return made;
}

struct bw_error *bw_connection_lost(struct bw_connection *connection)
{
    pthread_mutex_lock(&connection->lock);
    struct bw_error *error = connection->lost ? bw_error_copy(connection->lost)
                                              : bw_error_create(BW_ERROR_SYSTEM, "not connected");
    pthread_mutex_unlock(&connection->lock);
    return error;
}

#else

const bool bw_connection_is_built = false;

struct bw_error *bw_connection_open(const struct bw_connection_target *target,
                                    struct bw_connection **connection)
{
    (void)connection;
    return bw_error_create(
        BW_ERROR_USAGE, "%s cannot be read: this program was built without libnbd", target->name);
}

void bw_connection_close(struct bw_connection *connection)
{
    (void)connection;
}

/* There are none. */

struct bw_connection_facts bw_connection_facts(const struct bw_connection *connection)
{
    (void)connection;
    return (struct bw_connection_facts){0, 1, 512};
}

void bw_connection_limit(struct bw_connection *connection, unsigned timeout, unsigned attempts)
{
    (void)connection, (void)timeout, (void)attempts;
}

unsigned bw_connection_read(struct bw_connection *connection, struct bw_connection_read *reads,
                            size_t count)
{
    (void)connection, (void)reads, (void)count;
    return 0;
}

struct bw_error *bw_connection_lost(struct bw_connection *connection)
{
    (void)connection;
    return bw_error_no_memory();
}

#endif
