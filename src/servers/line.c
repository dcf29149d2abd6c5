/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines to servers. */
#include "servers/line.h"

#ifdef BW_NBD

#include <errno.h>
#include <string.h>
#include <time.h>

#include "servers/libnbd.h"

enum {
    USUAL_MAXIMUM = 32 << 20, /* of a server that names none, as the protocol has it */
    SMALLEST_MAXIMUM = 512,
    LARGEST_MINIMUM = 64 << 10, /* likewise from the protocol */
};

/* Without the name of the function. */
const char *bw_line_error(const struct bw_libnbd *nbd)
{
    const char *text = nbd->get_error();
    if (!text)
        return "the server has closed the connection";
    size_t function = strspn(text, "abcdefghijklmnopqrstuvwxyz_");
    return strncmp(text, "nbd_", 4) == 0 && strncmp(text + function, ": ", 2) == 0
               ? text + function + 2
               : text;
}

const char *bw_line_begin(const struct bw_libnbd *nbd, const char *uri, const char *socket,
                          struct nbd_handle **handle)
{
    *handle = nbd->create();
    if (!*handle)
        return bw_line_error(nbd);
    nbd->set_uri_allow_local_file(*handle, true); /* the user has written it */
    int result = uri ? nbd->aio_connect_uri(*handle, uri) : nbd->aio_connect_unix(*handle, socket);
    return result ? bw_line_error(nbd) : NULL;
}

struct pollfd bw_line_poll(const struct bw_libnbd *nbd, struct nbd_handle *handle)
{
    unsigned direction = nbd->aio_get_direction(handle);
    int events = (direction & LIBNBD_AIO_DIRECTION_READ ? POLLIN : 0) |
                 (direction & LIBNBD_AIO_DIRECTION_WRITE ? POLLOUT : 0);
    return (struct pollfd){.fd = nbd->aio_get_fd(handle), .events = (short)events};
}

bool bw_line_advance(const struct bw_libnbd *nbd, struct nbd_handle *handle, int ready)
{
    unsigned direction = nbd->aio_get_direction(handle);
    int result = 0;
    if ((ready & (POLLIN | POLLHUP | POLLERR)) && (direction & LIBNBD_AIO_DIRECTION_READ))
        result = nbd->aio_notify_read(handle);
    else if ((ready & (POLLOUT | POLLHUP | POLLERR)) && (direction & LIBNBD_AIO_DIRECTION_WRITE))
        result = nbd->aio_notify_write(handle);
    return result == 0 && !nbd->aio_is_dead(handle) && !nbd->aio_is_closed(handle);
}

const char bw_line_silent[] = "the server has not answered";

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

const char *bw_line_await(const struct bw_libnbd *nbd, struct nbd_handle *handle, unsigned timeout)
{
    const uint64_t end = now() + timeout;
    while (!nbd->aio_is_ready(handle)) {
        struct pollfd wanted = bw_line_poll(nbd, handle);
        uint64_t time = now();
        if (timeout && time >= end)
            return bw_line_silent;
        int count = poll(&wanted, 1, timeout ? (int)(end - time) : -1);
        if (count < 0 && errno != EINTR)
            return strerror(errno);
        if (count > 0 && !bw_line_advance(nbd, handle, wanted.revents))
            return bw_line_error(nbd);
    }
    return NULL;
}

const char *bw_line_facts(const struct bw_libnbd *nbd, struct nbd_handle *handle,
                          struct bw_connection_facts *facts)
{
    int64_t size = nbd->get_size(handle), least = nbd->get_block_size(handle, LIBNBD_SIZE_MINIMUM),
            most = nbd->get_block_size(handle, LIBNBD_SIZE_MAXIMUM);
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
