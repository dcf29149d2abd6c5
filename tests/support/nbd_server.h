/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An NBD server in a thread of the test, which can be told to misbehave. */
#ifndef BW_TESTS_NBD_SERVER_H
#define BW_TESTS_NBD_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/** Its misbehaviour. */
enum nbd_fault {
    NBD_RIGHT,
    NBD_NO_GREETING,     /**< it greets with nonsense */
    NBD_NO_EXPORT,       /**< it does not know the image */
    NBD_GOES,            /**< it closes each connection after `patience` reads */
    NBD_STAYS_AWAY,      /**< and takes no further connection */
    NBD_SHRINKS,         /**< and has a smaller image then */
    NBD_SILENT,          /**< it answers no read after `patience` */
    NBD_WRONG_REPLY,     /**< the magic of a reply is wrong */
    NBD_WRONG_COOKIE,    /**< a reply is to no request */
    NBD_SILENT_GREETING, /**< accepts a connection and sends nothing */
};

struct nbd_server {
    enum nbd_fault fault;
    unsigned patience;
    const uint8_t *bytes;
    uint64_t size;
    uint32_t minimum, maximum; /**< of reads; 0: it does not say */
    uint64_t bad_offset;       /**< reads of a byte from there on fail with EIO; 0: none */

    char uri[80]; /**< set by nbd_serve(), as are the following */
    char folder[40];
    int listening;
    pthread_t thread;
    atomic_uint connections, reads, misfits; /**< misfits: reads that the limits do not allow */
    atomic_uint_fast64_t largest;            /**< read, in bytes */
};

/** Starts it. */
void nbd_serve(struct nbd_server *server);

/** Ends it; its clients must have gone. */
void nbd_end(struct nbd_server *server);

#endif
