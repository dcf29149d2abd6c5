/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Connections through libnbd. Its functions are called under a lock, which is released while
 * waiting for sockets: one of the waiting threads polls for all of them, and passes the replies on.
 *
 * A server processes a limited number of requests of a handle at a time. So a connection has
 * several handles, if the server allows that and there is much to do. If one of them is lost, all
 * are closed.
 */
#include "servers/connection.h"

#ifdef BW_NBD

#include <dlfcn.h>
#include <errno.h>
#include <libnbd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "servers/helper.h"

const bool bw_connection_is_built = true;

/*
 * libnbd. It is loaded when the first server is connected, and not linked: with GnuTLS and its
 * dependencies, it would triple the start time of all other libraries together.
 */

#define BW_LIBNBD_FUNCTIONS(FUNCTION) \
    FUNCTION(nbd_, aio_connect_unix)  \
    FUNCTION(nbd_, aio_connect_uri)   \
    FUNCTION(nbd_, aio_disconnect)    \
    FUNCTION(nbd_, aio_get_direction) \
    FUNCTION(nbd_, aio_get_fd)        \
    FUNCTION(nbd_, aio_in_flight)     \
    FUNCTION(nbd_, aio_is_closed)     \
    FUNCTION(nbd_, aio_is_dead)       \
    FUNCTION(nbd_, aio_is_processing) \
    FUNCTION(nbd_, aio_is_ready)      \
    FUNCTION(nbd_, aio_notify_read)   \
    FUNCTION(nbd_, aio_notify_write)  \
    FUNCTION(nbd_, aio_pread)         \
    FUNCTION(nbd_, can_multi_conn)    \
    FUNCTION(nbd_, close)             \
    FUNCTION(nbd_, create)            \
    FUNCTION(nbd_, get_block_size)    \
    FUNCTION(nbd_, get_errno)         \
    FUNCTION(nbd_, get_error)         \
    FUNCTION(nbd_, get_size)          \
    FUNCTION(nbd_, set_uri_allow_local_file)

#define LIBNBD_MEMBER(prefix, name) __typeof__(prefix##name) *name;
#define LIBNBD_NAME(prefix, name)   #prefix #name,

/* nbd.create() calls nbd_create(). */
struct libnbd {
    BW_LIBNBD_FUNCTIONS(LIBNBD_MEMBER)
};

/* The name of the library in all versions since 1.0. */
#define SONAME "libnbd.so.0"

/* A note for packaging tools, which find linked libraries by themselves:
 * https://uapi-group.org/specifications/specs/elf_dlopen_metadata/ */
#define NOTE                                                                                     \
    "[{\"feature\":\"nbd\",\"description\":\"Images on NBD servers, and in formats that need a " \
    "helper\",\"priority\":\"recommended\",\"soname\":[\"" SONAME "\"]}]"
static const struct {
    uint32_t owner_size, text_size, type;
    char owner[4], text[sizeof NOTE];
} note __attribute__((used, section(".note.dlopen"), aligned(4))) = {sizeof "FDO", sizeof NOTE,
                                                                     0x407c0c0a, "FDO", NOTE};

static struct bw_error *load_libnbd(struct libnbd *nbd)
{
    static const char *const names[] = {BW_LIBNBD_FUNCTIONS(LIBNBD_NAME) NULL};
    /* It cannot be unloaded: it leaves data of threads behind. */
    void *library = dlopen(SONAME, RTLD_NOW | RTLD_NODELETE);
    if (!library)
        return bw_error_create(BW_ERROR_SYSTEM, "libnbd is required: %s", dlerror());
    struct bw_error *error = NULL;
    char *place = (char *)nbd;
    for (size_t i = 0; !error && names[i]; i++, place += sizeof(void *)) {
        void *function = dlsym(library, names[i]);
        if (!function)
            error = bw_error_create(BW_ERROR_SYSTEM,
                                    "libnbd is required: " SONAME " is too old: it has no %s()",
                                    names[i]);
        memcpy(place, &function, sizeof function);
    }
    dlclose(library);
    return error;
}

enum {
    ATTEMPTS = 5,
    FIRST_PAUSE = 100, /* milliseconds before the second attempt; doubled with each */
    HANDLES = 4,
    BUSY = 16,                /* requests of a handle that qemu-nbd and nbdkit process at a time */
    FETCH = 1 << 20,          /* largest part of a range that is requested ahead */
    USUAL_MAXIMUM = 32 << 20, /* the protocol's maximum for servers that do not name one */
    SMALLEST_MAXIMUM = 512,
    LARGEST_MINIMUM = 64 << 10, /* likewise from the protocol */
};

struct bw_connection {
    struct libnbd nbd;
    char *name, *uri;
    struct bw_helper *helper;
    unsigned timeout, attempts;
    struct bw_connection_facts facts;
    pthread_mutex_t lock; /* protects all members below */
    pthread_cond_t changed;
    struct nbd_handle *handles[HANDLES]; /* the first can be used, others may not be ready yet */
    unsigned handle_count;               /* 0: the server has gone */
    unsigned handle_limit;
    uint64_t epoch;        /* counts the beginnings and ends of the first handle */
    struct bw_error *lost; /* why reconnecting was given up; NULL: it was not */
    char *reason;          /* why the last connection has ended */
    unsigned unanswered;   /* connections in turn that have answered nothing */
    bool silent;           /* the last attempt or connection has ended with a timeout */
    char silence[96];      /* the message about such a timeout */
    bool polling;          /* a thread is in poll() */
    bool finished;         /* the reads of a call are complete, and its thread was not woken yet */
    int wake;              /* an event that ends the poll() */
    struct bw_range_cache cache;
};

/*
 * A handle of libnbd, from connecting to the description of the image. Messages of failures are
 * views: valid until libnbd is called again in the same thread.
 */

/* The message of libnbd about its last failure in this thread. */
static const char *last_failure(const struct libnbd *nbd)
{
    const char *text = nbd->get_error();
    if (!text)
        return "the server has closed the connection";
    size_t function = strspn(text, "abcdefghijklmnopqrstuvwxyz_");
    return strncmp(text, "nbd_", 4) == 0 && strncmp(text + function, ": ", 2) == 0
               ? text + function + 2
               : text;
}

/* Begins to connect. The handle is the caller's in any case, to be ended with nbd_close(). Returns
 * NULL, or why that is not possible. */
static const char *begin_connecting(const struct bw_connection *connection,
                                    struct nbd_handle **handle)
{
    const struct libnbd *nbd = &connection->nbd;
    *handle = nbd->create();
    if (!*handle)
        return last_failure(nbd);
    nbd->set_uri_allow_local_file(*handle, true); /* the user has written it */
    int result;
    if (connection->uri)
        result = nbd->aio_connect_uri(*handle, connection->uri);
    else
        result = nbd->aio_connect_unix(*handle, bw_helper_socket(connection->helper));
    return result ? last_failure(nbd) : NULL;
}

/* The events that poll() has to await. */
static struct pollfd events_to_await(const struct libnbd *nbd, struct nbd_handle *handle)
{
    unsigned direction = nbd->aio_get_direction(handle);
    int events = 0;
    if (direction & LIBNBD_AIO_DIRECTION_READ)
        events |= POLLIN;
    if (direction & LIBNBD_AIO_DIRECTION_WRITE)
        events |= POLLOUT;
    return (struct pollfd){.fd = nbd->aio_get_fd(handle), .events = (short)events};
}

/* Lets libnbd read and write as its socket is ready according to poll(); false if the handle has
 * ended. */
static bool continue_handle(const struct libnbd *nbd, struct nbd_handle *handle, int ready)
{
    unsigned direction = nbd->aio_get_direction(handle);
    int result = 0;
    if ((ready & (POLLIN | POLLHUP | POLLERR)) && (direction & LIBNBD_AIO_DIRECTION_READ))
        result = nbd->aio_notify_read(handle);
    else if ((ready & (POLLOUT | POLLHUP | POLLERR)) && (direction & LIBNBD_AIO_DIRECTION_WRITE))
        result = nbd->aio_notify_write(handle);
    return result == 0 && !nbd->aio_is_dead(handle) && !nbd->aio_is_closed(handle);
}

/* await_description() returns this pointer after a timeout. */
static const char server_is_silent[] = "the server has not answered";

#define LONGER_TIMEOUT "`timeout` allows more"

/* In milliseconds. */
static int64_t now(void)
{
    return bw_clock(CLOCK_MONOTONIC) / 1000000;
}

/* Waits until the server has described the image, at most for so many milliseconds (0: without a
 * limit). Returns NULL, or why it has not. */
static const char *await_description(const struct libnbd *nbd, struct nbd_handle *handle,
                                     unsigned timeout)
{
    const int64_t end = now() + timeout;
    while (!nbd->aio_is_ready(handle)) {
        struct pollfd wanted = events_to_await(nbd, handle);
        const int64_t time = now();
        if (timeout && time >= end)
            return server_is_silent;
        int count = poll(&wanted, 1, timeout ? (int)(end - time) : -1);
        if (count < 0 && errno != EINTR)
            return strerror(errno);
        if (count > 0 && !continue_handle(nbd, handle, wanted.revents))
            return last_failure(nbd);
    }
    return NULL;
}

/* Reads the description of the image. Returns NULL or the reason why it is unusable. */
static const char *read_facts(const struct libnbd *nbd, struct nbd_handle *handle,
                              struct bw_connection_facts *facts)
{
    int64_t size = nbd->get_size(handle), least = nbd->get_block_size(handle, LIBNBD_SIZE_MINIMUM),
            most = nbd->get_block_size(handle, LIBNBD_SIZE_MAXIMUM);
    *facts = (struct bw_connection_facts){.size = (uint64_t)size, .minimum = 1};
    if (size < 0)
        return "the server does not report the size of the image";
    if (least > 1)
        facts->minimum = least > LARGEST_MINIMUM ? 0 : (uint32_t)least;
    facts->maximum = most <= 0 || most > USUAL_MAXIMUM ? USUAL_MAXIMUM : (uint32_t)most;
    if (facts->maximum < SMALLEST_MAXIMUM || !facts->minimum || facts->maximum < facts->minimum)
        return "the server reports impossible sizes of reads";
    facts->maximum -= facts->maximum % facts->minimum;
    facts->size -= facts->size % facts->minimum;
    return NULL;
}

/* Connects the first handle. The description of the image must be the same as on the first
 * connection. */
static struct bw_error *connect_first(struct bw_connection *connection)
{
    const struct libnbd *nbd = &connection->nbd;
    struct bw_connection_facts facts;
    struct nbd_handle *handle;
    const char *why = begin_connecting(connection, &handle);
    if (!why) /* a helper may have to unpack the image first, which may take its time */
        why = await_description(nbd, handle, connection->helper ? 0 : connection->timeout);
    connection->silent = why == server_is_silent;
    if (connection->silent)
        why = connection->silence;
    if (!why)
        why = read_facts(nbd, handle, &facts);
    if (!why && connection->epoch && facts.size != connection->facts.size)
        why = "the image has another size now";
    if (why) {
        struct bw_error *error;
        if (connection->helper)
            error = bw_helper_add_error(connection->helper, connection->name, why);
        else
            error =
                bw_error_create(BW_ERROR_SYSTEM, "cannot connect to %s: %s", connection->name, why);
        if (connection->silent)
            error = bw_error_advise(error, LONGER_TIMEOUT);
        nbd->close(handle);
        return error;
    }
    connection->handles[0] = handle;
    connection->handle_count = 1;
    connection->handle_limit = !connection->helper && nbd->can_multi_conn(handle) > 0 ? HANDLES : 1;
    if (!connection->epoch)
        connection->facts = facts; /* other threads may use the first ones by now */
    connection->epoch++;
    connection->unanswered++;
    return NULL;
}

static void close_handles(struct bw_connection *connection)
{
    while (connection->handle_count)
        connection->nbd.close(connection->handles[--connection->handle_count]);
}

struct bw_error *bw_connection_open(const struct bw_connection_target *target,
                                    struct bw_connection **result)
{
    struct bw_connection *connection = calloc(1, sizeof *connection);
    if (!connection)
        return bw_error_no_memory();
    connection->helper = target->helper;
    connection->name = strdup(target->name);
    if (target->uri)
        connection->uri = strdup(target->uri);
    bw_connection_limit(connection, target->timeout, ATTEMPTS);
    connection->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const int problem = errno;
    pthread_mutex_init(&connection->lock, NULL);
    pthread_cond_init(&connection->changed, NULL);
    struct bw_error *error;
    if (!connection->name || (target->uri && !connection->uri))
        error = bw_error_no_memory();
    else if (connection->wake < 0)
        error = bw_error_from_errno(problem, "cannot connect to %s", target->name);
    else
        error = load_libnbd(&connection->nbd);
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
    for (unsigned i = 0; i < connection->handle_count; i++)
        connection->nbd.aio_disconnect(connection->handles[i], 0);
    close_handles(connection);
    bw_range_cache_free(&connection->cache);
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
    if (timeout)
        connection->timeout = timeout;
    connection->attempts = attempts;
    unsigned number = connection->timeout;
    const char *unit = "ms";
    if (number % 1000 == 0) {
        number /= 1000;
        unit = "s";
    }
    snprintf(connection->silence, sizeof connection->silence, "%s for %u %s", server_is_silent,
             number, unit);
}

/* Losing the server, and finding it again. All of this is called with the lock held. */

static void wake_poller(const struct bw_connection *connection)
{
    const uint64_t one = 1;
    /* It cannot fail but by being awake already. */
    if (connection->polling && write(connection->wake, &one, sizeof one) < 0)
        return;
}

static void end_connection(struct bw_connection *connection, const char *why)
{
    free(connection->reason);
    connection->reason = strdup(why);
    close_handles(connection);
    for (size_t i = 0; i < connection->cache.ranges.count; i++)
        connection->cache.ranges.items[i]->read.done = true; /* those on the way do not arrive */
    connection->epoch++;
    wake_poller(connection);
    pthread_cond_broadcast(&connection->changed);
}

/* Connects again, with pauses between the attempts, or sets why that is given up. A helper is not
 * started again: in a sandbox it could not be. A server that has said nothing for the whole timeout
 * gets another connection only if it has answered before on the last one, and it must not be silent
 * again. */
static bool reconnect(struct bw_connection *connection)
{
    const bool was_silent = connection->silent;
    const bool never = connection->helper || (was_silent && connection->unanswered);
    const unsigned attempts = never ? 0 : connection->attempts;
    struct bw_error *attempt = NULL;
    for (unsigned i = 0, pause = FIRST_PAUSE; i < attempts && connection->unanswered <= attempts;
         i++, pause *= 2) {
        bw_error_free(attempt);
        attempt = connect_first(connection);
        if (!attempt)
            return true;
        if (connection->silent)
            break;
        if (i + 1 < attempts)
            nanosleep(&(struct timespec){pause / 1000, (long)(pause % 1000) * 1000000}, NULL);
    }
    const char *reason = connection->reason ? connection->reason : "memory ran out";
    if (connection->helper) {
        connection->lost = bw_helper_add_error(connection->helper, connection->name, reason);
    } else if (attempt) {
        connection->lost = bw_error_create(
            BW_ERROR_SYSTEM, "lost the connection to %s (%s), and could not reconnect: %s",
            connection->name, reason, attempt->message);
        bw_error_add_cause(connection->lost, attempt);
    } else {
        connection->lost = bw_error_create(BW_ERROR_SYSTEM, "lost the connection to %s: %s",
                                           connection->name, reason);
    }
    if (was_silent || connection->silent)
        connection->lost = bw_error_advise(connection->lost, LONGER_TIMEOUT);
    pthread_cond_broadcast(&connection->changed);
    return false;
}

/* Reading. */

/* Called by libnbd, with the lock held. A read that was cut off is not answered by that. */
static int note_answer(void *context, int *problem)
{
    struct bw_connection_read *read = context;
    if (*problem == ENOTCONN)
        return 1;
    struct bw_connection_call *call = read->call;
    read->problem = *problem;
    read->done = true;
    call->connection->unanswered = 0;
    if (--call->left == 0)
        call->connection->finished = true;
    return 1;
}

/* The handle with the fewest requests in flight. */
static struct nbd_handle *choose_handle(const struct bw_connection *connection)
{
    const struct libnbd *nbd = &connection->nbd;
    struct nbd_handle *chosen = connection->handles[0];
    int least = nbd->aio_in_flight(chosen);
    for (unsigned i = 1; i < connection->handle_count; i++) {
        struct nbd_handle *handle = connection->handles[i];
        int count = nbd->aio_in_flight(handle);
        bool is_ready = nbd->aio_is_ready(handle) || nbd->aio_is_processing(handle);
        if (is_ready && count < least) {
            chosen = handle;
            least = count;
        }
    }
    return chosen;
}

/* Sends reads that have no answer yet, and opens another handle if those are busy. */
static void send_reads(struct bw_connection *connection, struct bw_connection_read *reads,
                       size_t count)
{
    const struct libnbd *nbd = &connection->nbd;
    for (size_t i = 0; i < count; i++) {
        struct bw_connection_read *read = &reads[i];
        if (read->done)
            continue;
        struct nbd_handle *handle = choose_handle(connection);
        const nbd_completion_callback callback = {.callback = note_answer, .user_data = read};
        if (nbd->aio_pread(handle, read->buffer, read->length, read->offset, callback, 0) >= 0)
            continue;
        int problem = nbd->get_errno() ? nbd->get_errno() : EIO;
        if (nbd->aio_is_dead(handle) || nbd->aio_is_closed(handle)) {
            end_connection(connection, last_failure(nbd));
            return;
        }
        note_answer(read, &problem);
    }
    while (connection->handle_count < connection->handle_limit &&
           count > (size_t)BUSY * connection->handle_count) {
        struct nbd_handle *handle;
        if (begin_connecting(connection, &handle)) {
            nbd->close(handle);
            connection->handle_limit = connection->handle_count; /* it is not tried again */
        } else {
            connection->handles[connection->handle_count++] = handle;
        }
    }
    wake_poller(connection); /* it may have to wait for more than it does */
}

/* Waits until something has happened. The first thread that comes here polls for all of them. It
 * wakes the others when the reads of one of them are done; or its own, so that another one has to
 * poll. */
static void await_answers(struct bw_connection *connection)
{
    if (connection->polling) {
        pthread_cond_wait(&connection->changed, &connection->lock);
        return;
    }
    const struct libnbd *nbd = &connection->nbd;
    const uint64_t epoch = connection->epoch;
    const unsigned handles = connection->handle_count;
    struct pollfd wanted[HANDLES + 1] = {{connection->wake, POLLIN, 0}};
    for (unsigned i = 0; i < handles; i++)
        wanted[1 + i] = events_to_await(nbd, connection->handles[i]);
    connection->polling = true;
    pthread_mutex_unlock(&connection->lock);
    int count = poll(wanted, 1 + handles, (int)connection->timeout);
    pthread_mutex_lock(&connection->lock);
    connection->polling = false;

    if (count > 0 && wanted[0].revents) {
        uint64_t event;
        if (read(connection->wake, &event, sizeof event) < 0)
            count = 0;
    } else if (count == 0 && connection->epoch == epoch) {
        connection->silent = true;
        end_connection(connection, connection->silence);
    }
    for (unsigned i = handles; count > 0 && i-- > 0 && connection->epoch == epoch;) {
        struct nbd_handle *handle = connection->handles[i];
        bool was_ready = i == 0 || nbd->aio_is_ready(handle) || nbd->aio_is_processing(handle);
        if (!wanted[1 + i].revents || continue_handle(nbd, handle, wanted[1 + i].revents))
            continue;
        if (was_ready) {
            end_connection(connection, last_failure(nbd));
        } else { /* a further handle that the server does not accept */
            nbd->close(handle);
            connection->handles[i] = connection->handles[--connection->handle_count];
            connection->handle_limit = connection->handle_count;
        }
    }

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
        if (!connection->handle_count) {
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

/* Ranges that are kept. */

void bw_connection_advise(struct bw_connection *connection, uint64_t offset, uint64_t length,
                          bool stays)
{
    const struct bw_connection_facts *facts = &connection->facts;
    const uint32_t most = facts->maximum < FETCH ? facts->maximum : FETCH - FETCH % facts->minimum;
    uint64_t end = facts->size;
    if (offset > end)
        return;
    if (length < end - offset)
        end = offset + length;
    struct bw_cached_range *range;
    offset -= offset % facts->minimum;
    end += (facts->minimum - end % facts->minimum) % facts->minimum;
    pthread_mutex_lock(&connection->lock);
    while (offset < end && connection->handle_count &&
           (range = bw_range_cache_add(&connection->cache, &offset, end, most, stays))) {
        range->call = (struct bw_connection_call){connection, 1};
        range->read.call = &range->call;
        range->read.problem = ENOTCONN;
        range->left = range->read.length;
        send_reads(connection, &range->read, 1);
    }
    pthread_mutex_unlock(&connection->lock);
}

void bw_connection_cache(struct bw_connection *connection, uint64_t offset, uint32_t length,
                         const uint8_t *bytes)
{
    const uint64_t start = offset, end = offset + length;
    struct bw_cached_range *range;
    pthread_mutex_lock(&connection->lock);
    while (offset < end &&
           (range = bw_range_cache_add(&connection->cache, &offset, end, length, true))) {
        memcpy(range->bytes, bytes + (range->read.offset - start), range->read.length);
        range->read.done = true;
    }
    pthread_mutex_unlock(&connection->lock);
}

bool bw_connection_has(struct bw_connection *connection, uint64_t offset, uint32_t length)
{
    pthread_mutex_lock(&connection->lock);
    const bool has = bw_range_cache_has(&connection->cache, offset, length);
    pthread_mutex_unlock(&connection->lock);
    return has;
}

bool bw_connection_read_cached(struct bw_connection *connection, uint64_t offset, uint32_t length,
                               uint8_t *buffer)
{
    bool failed = false;
    struct bw_cached_range *range;
    pthread_mutex_lock(&connection->lock);
    while (length && !failed && (range = bw_range_cache_find(&connection->cache, offset))) {
        const uint64_t inside = offset - range->read.offset, rest = range->read.length - inside;
        const uint32_t part = rest < length ? (uint32_t)rest : length;
        range->users++;
        range->hit = true;
        while (!range->read.done)
            await_answers(connection);
        failed = range->read.problem;
        if (!failed) { /* its user keeps the range while it is copied without the lock */
            pthread_mutex_unlock(&connection->lock);
            memcpy(buffer, range->bytes + inside, part);
            pthread_mutex_lock(&connection->lock);
        }
        range->left -= range->left < part ? range->left : part;
        if (--range->users == 0 && (failed || (!range->left && !range->stays)))
            bw_range_cache_remove(&connection->cache, range);
        offset += part;
        buffer += part;
        length -= part;
    }
    pthread_mutex_unlock(&connection->lock);
    return !length && !failed;
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

void bw_connection_advise(struct bw_connection *connection, uint64_t offset, uint64_t length,
                          bool stays)
{
    (void)connection, (void)offset, (void)length, (void)stays;
}

void bw_connection_cache(struct bw_connection *connection, uint64_t offset, uint32_t length,
                         const uint8_t *bytes)
{
    (void)connection, (void)offset, (void)length, (void)bytes;
}

bool bw_connection_has(struct bw_connection *connection, uint64_t offset, uint32_t length)
{
    (void)connection, (void)offset, (void)length;
    return false;
}

bool bw_connection_read_cached(struct bw_connection *connection, uint64_t offset, uint32_t length,
                               uint8_t *buffer)
{
    (void)connection, (void)offset, (void)length, (void)buffer;
    return false;
}

struct bw_error *bw_connection_lost(struct bw_connection *connection)
{
    (void)connection;
    return bw_error_no_memory();
}

#endif
