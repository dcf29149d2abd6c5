/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The servers of images, and how they are stacked. A helper may serve an image that another one
 * unpacks from a third: a qcow2 image, compressed, on a web server.
 */
#include "servers/servers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parts.h"
#include "base/unpack.h"
#include "base/vector.h"
#include "ondisk/disk.h"
#include "ondisk/superblock.h"
#include "servers/folders.h"
#include "servers/helper.h"

enum {
    STACK = 4,       /* helpers for one image, one above the other */
    TIMEOUT = 30000, /* milliseconds */
};

/* A server, with its address space; or the reason why it cannot be used, so that it is not tried
 * again. */
struct server {
    char *image;                      /* the given name */
    struct bw_error *failure;         /* NULL: connected */
    struct bw_connection *connection; /* to the uppermost helper, or to the server itself */
    struct bw_helper *helpers[STACK]; /* the lowest first */
    size_t helper_count;
    struct bw_spool *spool; /* where a layer will decompress it; NULL: it is not compressed */
};

BW_VECTOR(servers, struct server);

struct bw_servers {
    enum bw_helper_mode mode;
    unsigned timeout;
    struct servers servers;
};

struct bw_error *bw_servers_create(enum bw_helper_mode mode, struct bw_servers **servers)
{
    *servers = calloc(1, sizeof **servers);
    if (!*servers)
        return bw_error_no_memory();
    (*servers)->mode = mode;
    (*servers)->timeout = TIMEOUT;
    return NULL;
}

void bw_servers_set_timeout(struct bw_servers *servers, unsigned milliseconds)
{
    servers->timeout = milliseconds ? milliseconds : TIMEOUT;
}

static void end_server(struct server *server)
{
    bw_connection_close(server->connection);
    while (server->helper_count)
        bw_helper_stop(server->helpers[--server->helper_count]);
    bw_spool_destroy(server->spool);
    bw_error_free(server->failure);
    free(server->image);
}

void bw_servers_destroy(struct bw_servers *servers)
{
    if (!servers)
        return;
    for (size_t i = 0; i < servers->servers.count; i++)
        end_server(&servers->servers.items[i]);
    servers_free(&servers->servers);
    free(servers);
}

static const struct server *find_server(const struct bw_servers *servers, const char *image)
{
    for (size_t i = 0; i < servers->servers.count; i++)
        if (strcmp(servers->servers.items[i].image, image) == 0)
            return &servers->servers.items[i];
    return NULL;
}

bool bw_servers_hold(const struct bw_servers *servers, const char *image)
{
    return bw_servers_connection(servers, image);
}

struct bw_connection *bw_servers_connection(const struct bw_servers *servers, const char *image)
{
    const struct server *server = find_server(servers, image);
    return server ? server->connection : NULL;
}

struct bw_spool *bw_servers_spool(const struct bw_servers *servers, const char *image)
{
    const struct server *server = find_server(servers, image);
    return server ? server->spool : NULL;
}

enum bw_servers_need bw_servers_need(const struct bw_servers *servers)
{
    enum bw_servers_need need = BW_SERVERS_NOTHING;
    for (size_t i = 0; i < servers->servers.count; i++) {
        const struct server *server = &servers->servers.items[i];
        enum bw_servers_need own = BW_SERVERS_NOTHING;
        if (!server->connection)
            continue;
        if (server->helper_count)
            own = BW_SERVERS_TALK;
        else if (strstr(server->image, "+unix:"))
            own = BW_SERVERS_CONNECT_UNIX;
        else
            own = BW_SERVERS_CONNECT;
        if (own > need)
            need = own;
    }
    return need;
}

/* Reads the beginning of the source: through the connection, or of a file. */
static struct bw_error *read_beginning(const struct server *server, struct bw_source *source,
                                       uint8_t head[BW_CONTAINER_HEAD], size_t *length)
{
    *length = 0;
    if (!server->connection) {
        /* Only regular files and block devices: others may do anything when they are read. */
        const int file = open(source->text, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct stat status;
        if (file < 0)
            return NULL;
        if (fstat(file, &status) == 0 && (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode))) {
            struct bw_buffer bytes = {
                .data = (char *)head, .capacity = BW_CONTAINER_HEAD, .fixed = true};
            source->kind = S_ISBLK(status.st_mode) ? BW_SOURCE_DEVICE : BW_SOURCE_FILE;
            bw_error_free(bw_buffer_read(&bytes, file, BW_CONTAINER_HEAD));
            *length = bytes.length;
        }
        close(file);
        return NULL;
    }

    struct bw_connection *connection = server->connection;
    const struct bw_connection_facts facts = bw_connection_facts(connection);
    struct bw_connection_read read = {.buffer = head, .length = BW_CONTAINER_HEAD};
    if (read.length > facts.maximum)
        read.length = facts.maximum;
    if (read.length > facts.size)
        read.length = (uint32_t)facts.size;
    if (!read.length || facts.minimum > BW_CONTAINER_HEAD)
        return NULL;
    /* Opening an image reads its beginning first, and the superblocks. */
    bw_connection_advise(connection, 0, bw_superblock_offset(0) + BW_SUPERBLOCK_SIZE, true);
    for (unsigned copy = 1; copy < BW_SUPERBLOCK_COPIES; copy++)
        bw_connection_advise(connection, bw_superblock_offset(copy), BW_SUPERBLOCK_SIZE, true);
    if (!bw_connection_read_cached(connection, 0, read.length, head))
        bw_connection_read(connection, &read, 1);
    if (read.problem == ENOTCONN)
        return bw_connection_lost(connection);
    if (!read.problem) /* layers report read errors */
        *length = read.length;
    return NULL;
}

/* Whether a compressed file begins like an image that needs a further helper. */
static bool has_container(const uint8_t *packed, size_t packed_length)
{
    uint8_t head[BW_CONTAINER_HEAD];
    const struct bw_packing *packing = bw_packing_find(packed, packed_length);
    if (!packing)
        return false;
    const size_t length = bw_unpack_beginning(packing, packed, packed_length, head, sizeof head);
    const struct bw_foreign *foreign = bw_foreign_by_magic(head, length);
    return foreign && foreign->helper != BW_HELPER_NONE;
}

/* Helpers. */

static struct bw_error *connect_to(const struct bw_servers *servers, struct server *server,
                                   const char *uri)
{
    const struct bw_connection_target target = {
        .name = server->image,
        .uri = uri,
        .helper = uri ? NULL : server->helpers[server->helper_count - 1],
        .timeout = servers->timeout};
    bw_connection_close(server->connection);
    server->connection = NULL;
    return bw_connection_open(&target, &server->connection);
}

/* Finds a program in the directories of PATH; freed by the caller. NULL: it is not installed.
 * Relative directories are skipped: files in the working directory may belong to anybody. */
static char *find_program(const char *program)
{
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t length = strcspn(path, ":");
        char *found = NULL;
        if (*path == '/' && asprintf(&found, "%.*s/%s", (int)length, path, program) < 0)
            return NULL;
        if (found && access(found, X_OK) == 0)
            return found;
        free(found);
        path += length + (path[length] == ':');
    }
    return NULL;
}

/* Starts a helper, if it is installed, and connects to it. */
static struct bw_error *start_helper(const struct bw_servers *servers, struct server *server,
                                     const struct bw_helper_command *command, bool *started)
{
    if (command->failed)
        return bw_error_no_memory();
    BW_AUTO_FREE char *path = find_program(command->words[0]);
    *started = path && server->helper_count < STACK;
    if (!*started)
        return NULL;
    BW_TRY(bw_helper_start(path, (const char *const *)command->words,
                           &server->helpers[server->helper_count]));
    server->helper_count++;
    return connect_to(servers, server, NULL);
}

/* As long as the source begins with a container, starts a helper for it, which is the next source.
 * Makes a spool if the last source is compressed, because a layer will decompress it. */
static struct bw_error *open_containers(const struct bw_servers *servers, struct server *server,
                                        struct bw_source source)
{
    const bool has_helpers = servers->mode != BW_HELPERS_OFF && bw_connection_is_built;
    const bool backing = servers->mode == BW_HELPERS_BACKING;
    uint8_t head[BW_CONTAINER_HEAD];
    size_t length = 0;
    bool started = has_helpers || source.kind == BW_SOURCE_FILE; /* others cost a round trip */
    while (started) {
        started = false;
        BW_TRY(read_beginning(server, &source, head, &length));
        const struct bw_foreign *foreign = bw_foreign_by_magic(head, length);
        if (!foreign || foreign->helper == BW_HELPER_NONE || !has_helpers)
            break;

        /* nbdkit is needed only below another helper: it cannot join the parts of a split
         * file, reads only the first of several members of a gzip file, and refuses large blocks of
         * an xz file. */
        if (foreign->helper == BW_HELPER_NBDKIT &&
            ((source.kind == BW_SOURCE_FILE && bw_part_is_first(source.text)) ||
             (bw_packing_find(head, length) && !has_container(head, length))))
            break;

        BW_AUTO_BUFFER struct bw_buffer needs = {0};
        if (!backing && bw_container_needs(foreign, head, length, &needs))
            return bw_error_advise(
                bw_error_create(BW_ERROR_USAGE, "%s is %s, and %.*s", server->image, foreign->name,
                                (int)needs.length, needs.data ? needs.data : ""),
                "`helpers=backing` also reads the files that it names, which could be any of your "
                "files");

        BW_SCOPED(bw_helper_command) struct bw_helper_command command = {.count = 0};
        if (foreign->helper == BW_HELPER_QEMU && source.kind == BW_SOURCE_URI)
            bw_helper_for_uri(source.text, &command); /* QEMU does not know all URIs that we do */
        else
            BW_TRY(bw_helper_for_container(foreign, &source, backing, &command));
        BW_TRY(start_helper(servers, server, &command, &started));
        if (started)
            source = (struct bw_source){
                BW_SOURCE_SOCKET, bw_helper_socket(server->helpers[server->helper_count - 1])};
    }
    if (bw_packing_find(head, length))
        return bw_spool_create(&server->spool);
    return NULL;
}

static struct bw_error *open_image(const struct bw_servers *servers, struct server *server)
{
    if (bw_is_nbd_uri(server->image)) {
        BW_TRY(connect_to(servers, server, server->image));
        return open_containers(servers, server, (struct bw_source){BW_SOURCE_URI, server->image});
    }

    /* An address that only a helper can read. */
    BW_SCOPED(bw_helper_command) struct bw_helper_command command = {.count = 0};
    if (bw_helper_for_address(server->image, &command)) {
        bool started = false;
        if (servers->mode == BW_HELPERS_OFF)
            return bw_error_create(BW_ERROR_USAGE, "%s needs %s, but helpers are switched off",
                                   server->image, command.words[0]);
        BW_TRY(start_helper(servers, server, &command, &started));
        if (!started)
            return bw_error_create(BW_ERROR_USAGE, "%s needs %s, which is not installed",
                                   server->image, command.words[0]);
        return open_containers(
            servers, server,
            (struct bw_source){BW_SOURCE_SOCKET, bw_helper_socket(server->helpers[0])});
    }

    BW_AUTO_FREE char *path = realpath(server->image, NULL);
    if (!path)
        return NULL;
    return open_containers(servers, server, (struct bw_source){BW_SOURCE_FILE, path});
}

struct bw_error *bw_servers_open(struct bw_servers *servers, const char *image, bool *served)
{
    const struct server *known = find_server(servers, image);
    struct bw_error *error = NULL;
    *served = known && known->connection;
    if (known)
        return known->failure ? bw_error_copy(known->failure) : NULL;

    /* Each file in a folder of streams, as it may be compressed. */
    if (bw_is_folder(image)) {
        struct bw_strings list = {0};
        bool is_served;
        error = bw_stream_folders_expand(&image, 1, &list);
        for (size_t i = 0; !error && i < list.count; i++)
            error = bw_servers_open(servers, list.items[i], &is_served);
        bw_strings_free_all(&list);
        return error;
    }

    BW_TRY(servers_reserve(&servers->servers, 1));
    struct server server = {.image = strdup(image)};
    if (!server.image)
        return bw_error_no_memory();
    error = open_image(servers, &server);
    *served = !error && server.connection;
    if (error) {
        error = bw_error_about(error, image);
        end_server(&server);
        server = (struct server){.image = strdup(image), .failure = bw_error_copy(error)};
    }
    if (server.image && (*served || server.failure || server.spool))
        servers->servers.items[servers->servers.count++] = server;
    else
        end_server(&server);
    return error;
}
