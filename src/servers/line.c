/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines to servers. */
#include "servers/line.h"

#ifdef BW_NBD

#include <errno.h>
#include <libnbd.h>
#include <string.h>
#include <time.h>

enum {
    USUAL_MAXIMUM = 32 << 20, /* of a server that names none, as the protocol has it */
    SMALLEST_MAXIMUM = 512,
    LARGEST_MINIMUM = 64 << 10, /* likewise from the protocol */
};

/* Without the name of the function. */
const char *bw_line_error(void)
{
    const char *text = nbd_get_error();
    if (!text)
        return "the server has closed the connection";
    size_t function = strspn(text, "abcdefghijklmnopqrstuvwxyz_");
    return strncmp(text, "nbd_", 4) == 0 && strncmp(text + function, ": ", 2) == 0
               ? text + function + 2
               : text;
}

const char *bw_line_begin(const char *uri, const char *socket, struct nbd_handle **handle)
{
    *handle = nbd_create();
    if (!*handle)
        return bw_line_error();
    nbd_set_uri_allow_local_file(*handle, true); /* the user has written it */
    int result = uri ? nbd_aio_connect_uri(*handle, uri) : nbd_aio_connect_unix(*handle, socket);
    return result ? bw_line_error() : NULL;
}

struct pollfd bw_line_poll(struct nbd_handle *handle)
{
    unsigned direction = nbd_aio_get_direction(handle);
    int events = (direction & LIBNBD_AIO_DIRECTION_READ ? POLLIN : 0) |
                 (direction & LIBNBD_AIO_DIRECTION_WRITE ? POLLOUT : 0);
    return (struct pollfd){.fd = nbd_aio_get_fd(handle), .events = (short)events};
}

bool bw_line_advance(struct nbd_handle *handle, int ready)
{
    unsigned direction = nbd_aio_get_direction(handle);
    int result = 0;
    if ((ready & (POLLIN | POLLHUP | POLLERR)) && (direction & LIBNBD_AIO_DIRECTION_READ))
        result = nbd_aio_notify_read(handle);
    else if ((ready & (POLLOUT | POLLHUP | POLLERR)) && (direction & LIBNBD_AIO_DIRECTION_WRITE))
        result = nbd_aio_notify_write(handle);
    return result == 0 && !nbd_aio_is_dead(handle) && !nbd_aio_is_closed(handle);
}

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

const char *bw_line_await(struct nbd_handle *handle, unsigned timeout)
{
    const uint64_t end = now() + timeout;
    while (!nbd_aio_is_ready(handle)) {
        struct pollfd wanted = bw_line_poll(handle);
        uint64_t time = now();
        if (timeout && time >= end)
            return "the server does not answer";
        int count = poll(&wanted, 1, timeout ? (int)(end - time) : -1);
        if (count < 0 && errno != EINTR)
            return strerror(errno);
        if (count > 0 && !bw_line_advance(handle, wanted.revents))
            return bw_line_error();
    }
    return NULL;
}

const char *bw_line_facts(struct nbd_handle *handle, struct bw_connection_facts *facts)
{
    int64_t size = nbd_get_size(handle), least = nbd_get_block_size(handle, LIBNBD_SIZE_MINIMUM),
            most = nbd_get_block_size(handle, LIBNBD_SIZE_MAXIMUM);
    *facts = (struct bw_connection_facts){.size = (uint64_t)size, .minimum = 1};
    if (size < 0)
        return "the server does not say how large the image is";
    if (least > 1)
        facts->minimum = least > LARGEST_MINIMUM ? 0 : (uint32_t)least;
    facts->maximum = most <= 0 || most > USUAL_MAXIMUM ? USUAL_MAXIMUM : (uint32_t)most;
    if (facts->maximum < SMALLEST_MAXIMUM || !facts->minimum || facts->maximum < facts->minimum)
        return "the server says nonsense about the size of reads";
    facts->maximum -= facts->maximum % facts->minimum;
    facts->size -= facts->size % facts->minimum;
    return NULL;
}

#endif
