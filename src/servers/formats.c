/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The commands of the helpers. Names of images are passed as values, never as words of their own:
 * "name=value" for nbdkit, JSON for qemu-nbd. So no file name can be mistaken for an option or a
 * protocol.
 *
 * Sources: docs/interop/qcow2.txt and docs/interop/qed_spec.txt of QEMU, and its handling of the
 * others; VMware's "Virtual Disk Format 5.0"; the manual pages of qemu-nbd and nbdkit.
 */
#include "servers/formats.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "base/json.h"
#include "base/utf8.h"

static bool begins_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

bool bw_is_nbd_uri(const char *image)
{
    static const char *const schemes[] = {"nbd://",       "nbds://",      "nbd+unix://",
                                          "nbds+unix://", "nbd+vsock://", "nbds+vsock://"};
    bool is_uri = false;
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        is_uri |= begins_with(image, schemes[i]);
    return is_uri;
}

/* Commands. */

static void add_word(struct bw_helper_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add_word(struct bw_helper_command *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char **word = &command->words[command->count++];
    if (vasprintf(word, format, arguments) < 0) {
        *word = NULL;
        command->failed = true;
    }
    va_end(arguments);
}

void bw_helper_command_free(struct bw_helper_command *command)
{
    for (size_t i = 0; i < command->count; i++)
        free(command->words[i]);
    *command = (struct bw_helper_command){.count = 0};
}

static void begin_nbdkit(struct bw_helper_command *command)
{
    add_word(command, "nbdkit");
    add_word(command, "--readonly");
    add_word(command, "--foreground");
}

/* A client for each time that the image is opened, and one for a helper above it. */
static void begin_qemu(struct bw_helper_command *command)
{
    add_word(command, "qemu-nbd");
    add_word(command, "--read-only");
    add_word(command, "--persistent");
    add_word(command, "--shared=0");
}

static void end_qemu(struct bw_helper_command *command, struct bw_json *json)
{
    while (json->depth)
        bw_json_end(json);
    add_word(command, "json:%.*s", (int)json->buffer->length, json->buffer->data);
    command->failed |= json->buffer->failed;
    bw_buffer_free(json->buffer);
}

/* Addresses. */

static void add_web(const char *address, struct bw_helper_command *command)
{
    begin_nbdkit(command);
    add_word(command, "curl");
    add_word(command, "protocols=http,https");
    add_word(command, "url=%s", address);
}

/* s3://BUCKET/KEY */
static void add_s3(const char *address, struct bw_helper_command *command)
{
    const char *bucket = address + strlen("s3://");
    size_t length = strcspn(bucket, "/");
    begin_nbdkit(command);
    add_word(command, "S3");
    add_word(command, "bucket=%.*s", (int)length, bucket);
    add_word(command, "key=%s", bucket + length + (bucket[length] == '/'));
}

/* rbd:POOL/IMAGE; all other settings that QEMU accepts in such a name are dropped. */
static void add_rbd(const char *address, struct bw_helper_command *command)
{
    const char *pool = address + strlen("rbd:");
    size_t length = strcspn(pool, "/");
    struct bw_buffer text = {0};
    struct bw_json json = bw_json_start(&text, false);
    begin_qemu(command);
    bw_json_begin_object(&json, NULL);
    bw_json_text(&json, "driver", "raw");
    bw_json_begin_object(&json, "file");
    bw_json_text(&json, "driver", "rbd");
    bw_json_bytes(&json, "pool", pool, length);
    bw_json_text(&json, "image", pool + length + (pool[length] == '/'));
    end_qemu(command, &json);
}

bool bw_helper_for_address(const char *image, struct bw_helper_command *command)
{
    static const struct {
        const char *scheme;
        void (*make)(const char *address, struct bw_helper_command *command);
    } schemes[] = {
        {"http://", add_web}, {"https://", add_web}, {"s3://", add_s3}, {"rbd:", add_rbd}};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (begins_with(image, schemes[i].scheme)) {
            schemes[i].make(image, command);
            return true;
        }
    return false;
}

void bw_helper_for_uri(const char *uri, struct bw_helper_command *command)
{
    begin_nbdkit(command);
    add_word(command, "nbd");
    add_word(command, "uri=%s", uri);
}

/* Containers. */

static void add_filter(const struct bw_foreign *foreign, const struct bw_source *source,
                       struct bw_helper_command *command)
{
    static const struct {
        const char *plugin, *parameter;
    } plugins[] = {
        [BW_SOURCE_FILE] = {"file", "file"},
        [BW_SOURCE_DEVICE] = {"file", "file"},
        [BW_SOURCE_SOCKET] = {"nbd", "socket"},
        [BW_SOURCE_URI] = {"nbd", "uri"},
    };
    begin_nbdkit(command);
    add_word(command, "--filter=%s", foreign->driver);
    add_word(command, "%s", plugins[source->kind].plugin);
    add_word(command, "%s=%s", plugins[source->kind].parameter, source->text);
}

static void add_file(const struct bw_source *source, struct bw_json *json)
{
    bw_json_begin_object(json, "file");
    if (source->kind == BW_SOURCE_SOCKET) {
        bw_json_text(json, "driver", "nbd");
        bw_json_begin_object(json, "server");
        bw_json_text(json, "type", "unix");
        bw_json_text(json, "path", source->text);
        bw_json_end(json);
    } else {
        bw_json_text(json, "driver", source->kind == BW_SOURCE_DEVICE ? "host_device" : "file");
        bw_json_text(json, "filename", source->text);
    }
    bw_json_end(json);
}

static void add_driver(const struct bw_foreign *foreign, const struct bw_source *source,
                       bool backing, struct bw_helper_command *command)
{
    struct bw_buffer text = {0};
    struct bw_json json = bw_json_start(&text, false);
    begin_qemu(command);
    bw_json_begin_object(&json, NULL);
    bw_json_text(&json, "driver", foreign->driver);
    if (!backing)
        bw_json_text(&json, "backing", NULL); /* even if the header has one after all */
    add_file(source, &json);
    end_qemu(command, &json);
}

struct bw_error *bw_helper_for_container(const struct bw_foreign *foreign,
                                         const struct bw_source *source, bool backing,
                                         struct bw_helper_command *command)
{
    if (foreign->helper == BW_HELPER_NBDKIT)
        add_filter(foreign, source, command);
    else if (bw_utf8_is_valid(source->text, strlen(source->text)))
        add_driver(foreign, source, backing, command);
    else
        return bw_error_create(BW_ERROR_USAGE,
                               "qemu-nbd cannot open %s, whose name is not UTF-8: rename it",
                               source->text);
    return NULL;
}

/* Other files that a container takes data from. */

static uint64_t big_endian(const uint8_t *bytes, unsigned count)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < count; i++)
        value = value << 8 | bytes[i];
    return value;
}

static uint64_t little_endian64(const uint8_t *bytes)
{
    bw_le64 value;
    memcpy(&value, bytes, sizeof value);
    return bw_get64(value);
}

static bool qcow_needs(const uint8_t *head, size_t length, struct bw_buffer *reason)
{
    enum { EXTERNAL_DATA = 1 << 2 };
    uint64_t version = big_endian(head + 4, 4), name = big_endian(head + 8, 8);
    uint64_t size = big_endian(head + 16, 4);
    if (version >= 3 && (big_endian(head + 72, 8) & EXTERNAL_DATA))
        bw_buffer_format(reason, "its data are in another file");
    else if (name && name < length && size < length - name)
        bw_buffer_format(reason, "it is based on %.*s", (int)size, (const char *)head + name);
    else if (name)
        bw_buffer_format(reason, "it is based on another file");
    return reason->length;
}

static bool qed_needs(const uint8_t *head, size_t length, struct bw_buffer *reason)
{
    enum { HAS_BACKING_FILE = 1 };
    (void)length;
    if (little_endian64(head + 16) & HAS_BACKING_FILE)
        bw_buffer_format(reason, "it is based on another file");
    return reason->length;
}

/* A sparse extent without a size has only a descriptor, which names other files. */
static bool vmdk_needs(const uint8_t *head, size_t length, struct bw_buffer *reason)
{
    static const char parent[] = "parentFileNameHint";
    bool is_sparse = memcmp(head, "KDMV", 4) == 0, is_old = memcmp(head, "COWD", 4) == 0;
    uint64_t descriptor = little_endian64(head + 28);
    if (!is_old && (!is_sparse || !little_endian64(head + 12)))
        bw_buffer_format(reason, "its data are in other files");
    else if (is_sparse && (descriptor >= length >> 9 ? descriptor != 0
                                                     : memmem(head + (descriptor << 9),
                                                              length - (size_t)(descriptor << 9),
                                                              parent, sizeof parent - 1) != NULL))
        bw_buffer_format(reason, "it is based on another file");
    return reason->length;
}

bool bw_container_needs(const struct bw_foreign *foreign, const uint8_t *head, size_t length,
                        struct bw_buffer *reason)
{
    static const struct {
        const char *driver;
        bool (*needs)(const uint8_t *head, size_t length, struct bw_buffer *reason);
    } all[] = {{"qcow2", qcow_needs}, {"qed", qed_needs}, {"vmdk", vmdk_needs}};
    enum { LARGEST_HEADER = 128 };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(all[i].driver, foreign->driver) != 0)
            continue;
        if (length >= LARGEST_HEADER)
            return all[i].needs(head, length, reason) || reason->failed;
        bw_buffer_format(reason, "it is cut off");
        return true;
    }
    return false;
}
