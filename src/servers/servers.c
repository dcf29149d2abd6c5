/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The servers of images, and how they are stacked. A helper may serve an image that another one
 * unpacks from a third: a qcow2 image, compressed, on a web server.
 */
#include "servers/servers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parts.h"
#include "base/program.h"
#include "base/unpack.h"
#include "base/vector.h"
#include "ondisk/disk.h"
#include "ondisk/superblock.h"
#include "servers/folders.h"
#include "servers/formats.h"
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
    const struct server *server = find_server(servers, image);
    return server && server->connection;
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

/* The beginning of an image. */

struct beginning {
    uint8_t bytes[BW_CONTAINER_HEAD];
    size_t length;
};

/* Reads only regular files and block devices: others may do anything when they are read. */
static void read_beginning_of_file(const char *path, struct beginning *beginning,
                                   struct bw_source *source)
{
    struct stat status;
    struct bw_buffer bytes = {
        .data = (char *)beginning->bytes, .capacity = sizeof beginning->bytes, .fixed = true};
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return;
    if (fstat(file, &status) == 0 && (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode))) {
        source->kind = S_ISBLK(status.st_mode) ? BW_SOURCE_DEVICE : BW_SOURCE_FILE;
        bw_error_free(bw_buffer_read(&bytes, file, sizeof beginning->bytes));
        beginning->length = bytes.length;
    }
    close(file);
}

/* Requests what opening an image reads first: its beginning, and the superblocks. */
static void advise_first_reads(struct bw_connection *connection)
{
    bw_connection_advise(connection, 0, bw_superblock_offset(0) + BW_SUPERBLOCK_SIZE, true);
    for (unsigned copy = 1; copy < BW_SUPERBLOCK_COPIES; copy++)
        bw_connection_advise(connection, bw_superblock_offset(copy), BW_SUPERBLOCK_SIZE, true);
}

/* Layers report read errors, except if the connection was lost. */
static struct bw_error *read_beginning_of_server(struct bw_connection *connection,
                                                 struct beginning *beginning)
{
    const struct bw_connection_facts facts = bw_connection_facts(connection);
    const uint32_t most = facts.maximum < BW_CONTAINER_HEAD ? facts.maximum : BW_CONTAINER_HEAD;
    struct bw_connection_read read = {.length = facts.size < most ? (uint32_t)facts.size : most,
                                      .buffer = beginning->bytes};
    if (!read.length || facts.minimum > BW_CONTAINER_HEAD)
        return NULL;
    advise_first_reads(connection);
    if (!bw_connection_read_cached(connection, 0, read.length, beginning->bytes))
        bw_connection_read(connection, &read, 1);
    beginning->length = read.problem ? 0 : read.length;
    return read.problem == ENOTCONN ? bw_connection_lost(connection) : NULL;
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

/* Starts a helper, if it is installed, and connects to it. */
static struct bw_error *start_helper(const struct bw_servers *servers, struct server *server,
                                     const struct bw_helper_command *command, bool *started)
{
    if (command->failed)
        return bw_error_no_memory();
    BW_AUTO_FREE char *path = bw_program_find(command->words[0]);
    *started = path && server->helper_count < STACK;
    if (!*started)
        return NULL;
    BW_TRY(bw_helper_start(path, (const char *const *)command->words,
                           &server->helpers[server->helper_count]));
    server->helper_count++;
    return connect_to(servers, server, NULL);
}

static struct bw_error *refuse_backing_files(const struct server *server,
                                             const struct bw_foreign *foreign,
                                             const struct bw_buffer *needs)
{
    return bw_error_create(BW_ERROR_USAGE,
                           "%s is %s, and %.*s: --helpers=backing also reads the files that it "
                           "names, which could be any of your files",
                           server->image, foreign->name, (int)needs->length,
                           needs->data ? needs->data : "");
}

/* QEMU does not know all URIs that we do. */
static struct bw_error *put_relay(const struct bw_servers *servers, struct server *server,
                                  struct bw_source *source, bool *started)
{
    struct bw_helper_command command = {.count = 0};
    bw_helper_for_uri(source->text, &command);
    struct bw_error *error = start_helper(servers, server, &command, started);
    bw_helper_command_free(&command);
    if (!error && *started)
        *source = (struct bw_source){BW_SOURCE_SOCKET, bw_helper_socket(server->helpers[0])};
    return error;
}

/* nbdkit cannot join the parts of a split file. */
static bool may_help(const struct bw_servers *servers, const struct bw_foreign *foreign,
                     const struct bw_source *source)
{
    return servers->mode != BW_HELPERS_OFF && bw_connection_is_built &&
           foreign->helper != BW_HELPER_NONE &&
           !(foreign->helper == BW_HELPER_NBDKIT && source->kind == BW_SOURCE_FILE &&
             bw_part_is_first(source->text));
}

/* Makes a spool if a layer will decompress the image. */
static struct bw_error *prepare_spool(const struct beginning *beginning, struct server *server)
{
    return bw_packing_find(beginning->bytes, beginning->length) ? bw_spool_create(&server->spool)
                                                                : NULL;
}

/* Whether a compressed file begins like an image that needs a further helper. */
static bool has_container(const struct beginning *packed)
{
    uint8_t head[BW_CONTAINER_HEAD];
    struct bw_unpacker *unpacker;
    const struct bw_packing *packing = bw_packing_find(packed->bytes, packed->length);
    struct bw_unpacking bytes = {packed->bytes, packed->length, head, sizeof head};
    BW_AUTO_ERROR struct bw_error *error =
        packing ? bw_unpacker_create(packing, &unpacker)
                : bw_error_create(BW_ERROR_NOT_FOUND, "it is not compressed");
    if (error)
        return false;
    bw_error_free(bw_unpack(unpacker, &bytes));
    bw_unpacker_destroy(unpacker);
    const struct bw_foreign *foreign = bw_foreign_by_magic(head, sizeof head - bytes.output_length);
    return foreign && foreign->helper != BW_HELPER_NONE;
}

/* nbdkit reads only the first of several members of a gzip file. */
static bool is_better_spooled(const struct bw_foreign *foreign, const struct beginning *beginning)
{
    return foreign->driver && strcmp(foreign->driver, "gzip") == 0 && !has_container(beginning);
}

/* If the source begins with a container, starts a helper for it; then that is the source. */
static struct bw_error *open_container(const struct bw_servers *servers, struct server *server,
                                       struct bw_source *source, bool *started)
{
    struct beginning beginning = {.length = 0};
    struct bw_helper_command command = {.count = 0};
    BW_AUTO_BUFFER struct bw_buffer needs = {0};
    const bool backing = servers->mode == BW_HELPERS_BACKING;
    *started = false;
    if (server->connection)
        BW_TRY(read_beginning_of_server(server->connection, &beginning));
    else
        read_beginning_of_file(source->text, &beginning, source);
    const struct bw_foreign *foreign = bw_foreign_by_magic(beginning.bytes, beginning.length);
    if (!foreign || !may_help(servers, foreign, source) || is_better_spooled(foreign, &beginning))
        return prepare_spool(&beginning, server);
    if (!backing && bw_container_needs(foreign, beginning.bytes, beginning.length, &needs))
        return refuse_backing_files(server, foreign, &needs);
    if (foreign->helper == BW_HELPER_QEMU && source->kind == BW_SOURCE_URI)
        return put_relay(servers, server, source, started);
    struct bw_error *error = bw_helper_for_container(foreign, source, backing, &command);
    if (!error)
        error = start_helper(servers, server, &command, started);
    bw_helper_command_free(&command);
    if (error || !*started)
        return error ? error : prepare_spool(&beginning, server);
    *source = (struct bw_source){BW_SOURCE_SOCKET,
                                 bw_helper_socket(server->helpers[server->helper_count - 1])};
    return NULL;
}

static struct bw_error *open_containers(const struct bw_servers *servers, struct server *server,
                                        struct bw_source source)
{
    const bool has_helpers = servers->mode != BW_HELPERS_OFF && bw_connection_is_built;
    bool more = has_helpers || source.kind == BW_SOURCE_FILE; /* other sources cost a round trip */
    while (more)
        BW_TRY(open_container(servers, server, &source, &more));
    return NULL;
}

/* An address that can only be read with a helper. */
static struct bw_error *open_address(const struct bw_servers *servers, struct server *server,
                                     const struct bw_helper_command *command)
{
    bool started = false;
    if (servers->mode == BW_HELPERS_OFF)
        return bw_error_create(BW_ERROR_USAGE, "%s needs %s, but helpers are switched off",
                               server->image, command->words[0]);
    BW_TRY(start_helper(servers, server, command, &started));
    if (!started)
        return bw_error_create(BW_ERROR_USAGE, "%s needs %s, which is not installed", server->image,
                               command->words[0]);
    const struct bw_source source = {BW_SOURCE_SOCKET, bw_helper_socket(server->helpers[0])};
    return open_containers(servers, server, source);
}

static struct bw_error *open_image(const struct bw_servers *servers, struct server *server)
{
    struct bw_helper_command command = {.count = 0};
    if (bw_is_nbd_uri(server->image)) {
        BW_TRY(connect_to(servers, server, server->image));
        return open_containers(servers, server, (struct bw_source){BW_SOURCE_URI, server->image});
    }
    bool is_address = bw_helper_for_address(server->image, &command);
    struct bw_error *error = is_address ? open_address(servers, server, &command) : NULL;
    bw_helper_command_free(&command);
    BW_AUTO_FREE char *path = is_address ? NULL : realpath(server->image, NULL);
    return path ? open_containers(servers, server, (struct bw_source){BW_SOURCE_FILE, path})
                : error;
}

/* Every file in a folder of streams, as it may be compressed. */
static struct bw_error *open_folder(struct bw_servers *servers, const char *folder)
{
    struct bw_strings list = {0};
    bool served;
    struct bw_error *error = bw_stream_folders_expand(&folder, 1, &list);
    for (size_t i = 0; !error && i < list.count; i++)
        error = bw_servers_open(servers, list.items[i], &served);
    bw_strings_free_all(&list);
    return error;
}

struct bw_error *bw_servers_open(struct bw_servers *servers, const char *image, bool *served)
{
    const struct server *known = find_server(servers, image);
    struct server server = {.image = NULL};
    *served = known && known->connection;
    if (known)
        return known->failure ? bw_error_copy(known->failure) : NULL;
    if (bw_is_folder(image))
        return open_folder(servers, image);
    BW_TRY(servers_reserve(&servers->servers, 1));
    server.image = strdup(image);
    if (!server.image)
        return bw_error_no_memory();
    struct bw_error *error = open_image(servers, &server);
    *served = !error && server.connection;
    if (error) {
        end_server(&server);
        server = (struct server){.image = strdup(image), .failure = bw_error_copy(error)};
    }
    if (server.image && (*served || server.failure || server.spool))
        servers->servers.items[servers->servers.count++] = server;
    else
        end_server(&server);
    return error;
}
