/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The commands of the helpers. Names of images are passed as values, never as words of their own:
 * "name=value" for nbdkit, JSON for qemu-nbd. So no file name can be mistaken for an option or a
 * protocol.
 *
 * Sources: docs/interop/qcow2.txt and docs/interop/qed_spec.txt of QEMU, and its handling of the
 * others; VMware's "Virtual Disk Format 5.0"; the manual pages of qemu-nbd and nbdkit.
 */
#include "servers/helper.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/disk_images.h"
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

/* Ends all objects that are open. */
static void end_qemu(struct bw_helper_command *command, struct bw_json *json)
{
    while (json->depth)
        bw_json_end(json);
    add_word(command, "json:%.*s", (int)json->buffer->length, json->buffer->data);
    command->failed |= json->buffer->failed;
    bw_buffer_free(json->buffer);
}

bool bw_helper_for_address(const char *image, struct bw_helper_command *command)
{
    if (begins_with(image, "http://") || begins_with(image, "https://")) {
        begin_nbdkit(command);
        add_word(command, "curl");
        add_word(command, "protocols=http,https");
        add_word(command, "url=%s", image);
    } else if (begins_with(image, "s3://")) { /* s3://BUCKET/KEY */
        const char *bucket = image + strlen("s3://");
        const size_t length = strcspn(bucket, "/");
        begin_nbdkit(command);
        add_word(command, "S3");
        add_word(command, "bucket=%.*s", (int)length, bucket);
        add_word(command, "key=%s", bucket + length + (bucket[length] == '/'));
    } else if (begins_with(image, "rbd:")) {
        /* rbd:POOL/IMAGE; all other settings that QEMU accepts in such a name are dropped. */
        const char *pool = image + strlen("rbd:");
        const size_t length = strcspn(pool, "/");
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
    } else {
        return false;
    }
    return true;
}

bool bw_is_address(const char *image)
{
    struct bw_helper_command command = {.count = 0};
    const bool is_address = bw_is_nbd_uri(image) || bw_helper_for_address(image, &command);
    bw_helper_command_free(&command);
    return is_address;
}

void bw_helper_for_uri(const char *uri, struct bw_helper_command *command)
{
    begin_nbdkit(command);
    add_word(command, "nbd");
    add_word(command, "uri=%s", uri);
}

struct bw_error *bw_helper_for_container(const struct bw_foreign *foreign,
                                         const struct bw_source *source, bool backing,
                                         struct bw_helper_command *command)
{
    static const struct {
        const char *plugin, *parameter, *driver;
    } kinds[] = {
        [BW_SOURCE_FILE] = {"file", "file", "file"},
        [BW_SOURCE_DEVICE] = {"file", "file", "host_device"},
        [BW_SOURCE_SOCKET] = {"nbd", "socket", "nbd"},
        [BW_SOURCE_URI] = {"nbd", "uri", NULL}, /* qemu-nbd gets a socket instead */
    };
    if (foreign->helper == BW_HELPER_NBDKIT) {
        begin_nbdkit(command);
        add_word(command, "--filter=%s", foreign->driver);
        add_word(command, "%s", kinds[source->kind].plugin);
        add_word(command, "%s=%s", kinds[source->kind].parameter, source->text);
        return NULL;
    }

    if (!bw_utf8_is_valid(source->text, strlen(source->text)))
        return bw_error_create(BW_ERROR_USAGE,
                               "qemu-nbd cannot open %s, whose name is not UTF-8: rename it",
                               source->text);
    struct bw_buffer text = {0};
    struct bw_json json = bw_json_start(&text, false);
    begin_qemu(command);
    bw_json_begin_object(&json, NULL);
    bw_json_text(&json, "driver", foreign->driver);
    if (!backing)
        bw_json_text(&json, "backing", NULL); /* even if the header has one after all */
    bw_json_begin_object(&json, "file");
    bw_json_text(&json, "driver", kinds[source->kind].driver);
    if (source->kind == BW_SOURCE_SOCKET) {
        bw_json_begin_object(&json, "server");
        bw_json_text(&json, "type", "unix");
        bw_json_text(&json, "path", source->text);
    } else {
        bw_json_text(&json, "filename", source->text);
    }
    end_qemu(command, &json);
    return NULL;
}

/* Other files that a container takes data from. */

bool bw_container_needs(const struct bw_foreign *foreign, const uint8_t *head, size_t length,
                        struct bw_buffer *reason)
{
    enum { LARGEST_HEADER = 128 };
    const bool is_qcow = strcmp(foreign->driver, "qcow2") == 0;
    const bool is_qed = strcmp(foreign->driver, "qed") == 0;
    const bool is_vmdk = strcmp(foreign->driver, "vmdk") == 0;
    if (!is_qcow && !is_qed && !is_vmdk)
        return false;

    if (length < LARGEST_HEADER) {
        bw_buffer_format(reason, "it is cut off");
        return true;
    }
    if (is_qcow) {
        const struct bw_qcow2_header *qcow2 = (const void *)head;
        const uint64_t name = bw_get_be64(qcow2->backing);
        const uint64_t size = bw_get_be32(qcow2->backing_length);
        if (bw_get_be32(qcow2->version) >= 3 &&
            bw_get_be64(qcow2->incompatible) & BW_QCOW2_EXTERNAL_DATA)
            bw_buffer_format(reason, "its data are in another file");
        else if (name && name < length && size < length - name)
            bw_buffer_format(reason, "it is based on %.*s", (int)size, (const char *)head + name);
        else if (name)
            bw_buffer_format(reason, "it is based on another file");
    }
    if (is_qed && bw_get64(((const struct bw_qed_header *)head)->features) & BW_QED_BACKING_FILE)
        bw_buffer_format(reason, "it is based on another file");
    if (is_vmdk) {
        static const char parent[] = "parentFileNameHint";
        const bool is_sparse = memcmp(head, "KDMV", 4) == 0, is_old = memcmp(head, "COWD", 4) == 0;
        const struct bw_vmdk_header *vmdk = (const void *)head;
        const uint64_t sector = bw_get64(vmdk->descriptor);
        bool has_parent = false;
        if (is_sparse && sector < length >> 9)
            has_parent = memmem(head + (sector << 9), length - (size_t)(sector << 9), parent,
                                sizeof parent - 1) != NULL;
        else if (is_sparse)
            has_parent = sector != 0; /* it may: the descriptor was not read */
        /* A sparse extent without a size has only a descriptor, which names other files. */
        if (!is_old && (!is_sparse || !bw_get64(vmdk->capacity)))
            bw_buffer_format(reason, "its data are in other files");
        else if (has_parent)
            bw_buffer_format(reason, "it is based on another file");
    }
    return reason->length || reason->failed;
}
