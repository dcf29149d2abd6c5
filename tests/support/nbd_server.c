/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The server: the fixed newstyle handshake and simple replies, one client at a time. Source: the
 * NBD protocol, doc/proto.md of the NBD project. */
#include "support/nbd_server.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define GREETING     UINT64_C(0x4e42444d41474943) /* NBDMAGIC */
#define OPTION       UINT64_C(0x49484156454f5054) /* IHAVEOPT */
#define OPTION_REPLY UINT64_C(0x0003e889045565a9)
enum { GO = 7, ACK = 1, INFO = 3, EXPORT = 0, BLOCK_SIZE = 3, READ = 0, READ_ONLY = 3 };
#define UNSUPPORTED 0x80000001u
#define UNKNOWN     0x80000006u
#define REQUEST     0x25609513u
#define REPLY       0x67446698u

static bool get(int client, void *bytes, size_t length)
{
    return recv(client, bytes, length, MSG_WAITALL) == (ssize_t)length;
}

static bool put(int client, const void *bytes, size_t length)
{
    return send(client, bytes, length, MSG_NOSIGNAL) == (ssize_t)length;
}

static bool get32(int client, uint32_t *value)
{
    bool got = get(client, value, sizeof *value);
    *value = be32toh(*value);
    return got;
}

static void put_number(uint8_t **at, uint64_t value, unsigned bytes)
{
    for (unsigned i = bytes; i-- > 0;)
        *(*at)++ = (uint8_t)(value >> (8 * i));
}

static bool reply(int client, uint32_t option, uint32_t type, const uint8_t *data, uint32_t length)
{
    uint8_t bytes[64], *at = bytes;
    put_number(&at, OPTION_REPLY, 8);
    put_number(&at, option, 4);
    put_number(&at, type, 4);
    put_number(&at, length, 4);
    if (length)
        memcpy(at, data, length);
    return put(client, bytes, 20 + length);
}

static bool tell_facts(const struct nbd_server *server, int client, bool again)
{
    uint8_t export[16], sizes[16], *at = export;
    bool smaller = server->fault == NBD_SHRINKS && again;
    put_number(&at, EXPORT, 2);
    put_number(&at, server->size - (smaller ? 4096 : 0), 8);
    put_number(&at, READ_ONLY, 2);
    if (!reply(client, GO, INFO, export, 12))
        return false;
    at = sizes;
    put_number(&at, BLOCK_SIZE, 2);
    put_number(&at, server->minimum, 4);
    put_number(&at, server->minimum > 512 ? server->minimum : 512, 4);
    put_number(&at, server->maximum, 4);
    return (!server->maximum || reply(client, GO, INFO, sizes, 14)) &&
           reply(client, GO, ACK, NULL, 0);
}

static bool negotiate(const struct nbd_server *server, int client, bool again)
{
    uint8_t greeting[18], *at = greeting, data[4096];
    uint64_t magic;
    uint32_t flags, option = 0, length;
    if (server->fault == NBD_SILENT_GREETING)
        return get(client, data, 1) && false;
    put_number(&at, server->fault == NBD_NO_GREETING ? 42 : GREETING, 8);
    put_number(&at, OPTION, 8);
    put_number(&at, 3, 2);
    if (!put(client, greeting, sizeof greeting) || !get32(client, &flags))
        return false;
    while (option != GO) {
        if (!get(client, &magic, 8) || !get32(client, &option) || !get32(client, &length) ||
            length > sizeof data || (length && !get(client, data, length)))
            return false;
        if (option != GO && !reply(client, option, UNSUPPORTED, NULL, 0))
            return false;
    }
    return server->fault == NBD_NO_EXPORT ? reply(client, GO, UNKNOWN, NULL, 0) && false
                                          : tell_facts(server, client, again);
}

struct request {
    uint32_t magic;
    uint16_t flags, type;
    uint64_t cookie, offset;
    uint32_t length;
} __attribute__((packed));

/* Notes whether a read keeps to the limits. */
static void judge(struct nbd_server *server, uint64_t offset, uint32_t length)
{
    uint32_t block = server->minimum ? server->minimum : 1;
    if (offset % block || length % block || offset + length > server->size ||
        (server->maximum && length > server->maximum))
        server->misfits++;
    if (length > server->largest)
        server->largest = length;
}

static bool answer(struct nbd_server *server, int client, const struct request *request)
{
    uint8_t head[16], *at = head;
    uint64_t offset = be64toh(request->offset);
    uint32_t length = be32toh(request->length);
    bool is_bad = server->bad_offset && offset + length > server->bad_offset;
    judge(server, offset, length);
    put_number(&at, REPLY + (server->fault == NBD_WRONG_REPLY), 4);
    put_number(&at, is_bad || offset + length > server->size ? EIO : 0, 4);
    memcpy(at, &request->cookie, 8);
    at[7] ^= server->fault == NBD_WRONG_COOKIE;
    return put(client, head, sizeof head) &&
           (is_bad || put(client, server->bytes + offset, length));
}

static void serve_client(struct nbd_server *server, int client, bool again)
{
    struct request request;
    bool goes = server->fault == NBD_GOES || server->fault == NBD_STAYS_AWAY ||
                server->fault == NBD_SHRINKS;
    if (!negotiate(server, client, again))
        return;
    for (unsigned i = 0; get(client, &request, sizeof request); i++) {
        if (be32toh(request.magic) != REQUEST || be16toh(request.type) != READ)
            return;
        server->reads++;
        if (goes && i == server->patience)
            return;
        if (server->fault == NBD_SILENT && (again || i >= server->patience))
            continue;
        if (!answer(server, client, &request))
            return;
    }
}

static void *serve(void *context)
{
    struct nbd_server *server = context;
    for (;;) {
        int client = accept(server->listening, NULL, NULL);
        if (client < 0)
            return NULL;
        serve_client(server, client, server->connections++ > 0);
        /* First, or the client is back before this. */
        if (server->fault == NBD_STAYS_AWAY)
            shutdown(server->listening, SHUT_RDWR);
        close(client);
    }
}

void nbd_serve(struct nbd_server *server)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(server->folder, "/tmp/btrfs-walk-test-XXXXXX");
    if (!mkdtemp(server->folder))
        abort();
    snprintf(address.sun_path, sizeof address.sun_path, "%s/nbd", server->folder);
    snprintf(server->uri, sizeof server->uri, "nbd+unix:///?socket=%s/nbd", server->folder);
    server->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(server->listening, (struct sockaddr *)&address, sizeof address) ||
        listen(server->listening, 4) || pthread_create(&server->thread, NULL, serve, server))
        abort();
}

void nbd_end(struct nbd_server *server)
{
    char path[64];
    shutdown(server->listening, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listening);
    snprintf(path, sizeof path, "%s/nbd", server->folder);
    unlink(path);
    rmdir(server->folder);
}
