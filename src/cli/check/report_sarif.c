/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The report in SARIF 2.1.0 (OASIS), which code scanning systems show: a rule for each code, a
 * result for each finding. The locations of a result are the files that it touches, relative to the
 * top of the file system, and where the bytes lie in an image. Results are written as they come.
 */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "btrfs-walk/tree.h"
#include "cli/check/check.h"

#ifndef BW_VERSION
#define BW_VERSION "unknown"
#endif

#define SCHEMA \
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

static void add_message(struct bw_json *json, const char *name, const void *text, size_t length)
{
    bw_json_begin_object(json, name);
    bw_json_bytes(json, "text", text, length);
    bw_json_end(json);
}

static void add_string(struct bw_json *json, const char *name, const char *text)
{
    add_message(json, name, text, strlen(text));
}

static void add_rule(struct bw_json *json, const struct bw_finding_code *code)
{
    bw_json_begin_object(json, NULL);
    bw_json_text(json, "id", code->word);
    add_string(json, "shortDescription", code->description);
    bw_json_begin_object(json, "defaultConfiguration");
    bw_json_text(json, "level", bw_finding_severity_name(code->severity));
    bw_json_end(json);
    bw_json_begin_object(json, "properties");
    bw_json_text(json, "pass", code->pass);
    bw_json_end(json);
    bw_json_end(json);
}

static void begin(const struct check *check, struct check_report *report)
{
    const struct bw_finding_code *code;
    (void)check;
    report->json = bw_json_start(&report->text, false);
    struct bw_json *json = &report->json;
    bw_json_begin_object(json, NULL);
    bw_json_text(json, "$schema", SCHEMA);
    bw_json_text(json, "version", "2.1.0");
    bw_json_begin_array(json, "runs");
    bw_json_begin_object(json, NULL);
    bw_json_begin_object(json, "tool");
    bw_json_begin_object(json, "driver");
    bw_json_text(json, "name", "btrfs-walk");
    bw_json_text(json, "version", BW_VERSION);
    bw_json_begin_array(json, "rules");
    for (size_t i = 0; (code = check_code(i)); i++)
        add_rule(json, code);
    bw_json_end(json);
    bw_json_end(json);
    bw_json_end(json);
    bw_json_begin_object(json, "originalUriBaseIds");
    bw_json_begin_object(json, "FILESYSTEM");
    add_string(json, "description", "The top of the file system");
    bw_json_end(json);
    bw_json_end(json);
    bw_json_begin_array(json, "results");
}

/* Bytes as part of a URI (RFC 3986). */
static void append_uri(struct bw_buffer *uri, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const uint8_t byte = (uint8_t)bytes[i];
        bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                     (byte >= '0' && byte <= '9') || (byte && strchr("-._~/", byte));
        if (plain)
            bw_buffer_append_byte(uri, (char)byte);
        else
            bw_buffer_format(uri, "%%%02X", byte);
    }
}

static void add_region(struct bw_json *json, uint64_t offset, bool has_length, uint64_t length)
{
    bw_json_begin_object(json, "region");
    bw_json_number(json, "byteOffset", offset);
    if (has_length)
        bw_json_number(json, "byteLength", length);
    bw_json_end(json);
}

static void add_artifact(struct bw_json *json, const char *before, const char *bytes, size_t length,
                         const char *base)
{
    BW_AUTO_BUFFER struct bw_buffer uri = {0};
    bw_buffer_format(&uri, "%s", before);
    append_uri(&uri, bytes, length);
    json->buffer->failed |= uri.failed;
    bw_json_begin_object(json, "artifactLocation");
    bw_json_bytes(json, "uri", uri.data, uri.length);
    if (base)
        bw_json_text(json, "uriBaseId", base);
    bw_json_end(json);
}

/* The item, as a place in the structure of the file system. */
static void add_logical(struct bw_json *json, const struct bw_finding *finding)
{
    char tree[BW_KEY_TEXT], key[BW_KEY_TEXT];
    BW_AUTO_BUFFER struct bw_buffer name = {0};
    if (!(finding->known & BW_KNOWN_TREE))
        return;
    bw_buffer_format(&name, "%s", bw_tree_id_text(finding->tree, tree));
    if (finding->known & BW_KNOWN_KEY)
        bw_buffer_format(&name, " %s", bw_key_text(&finding->key, key));
    bw_json_begin_array(json, "logicalLocations");
    bw_json_begin_object(json, NULL);
    bw_json_bytes(json, "fullyQualifiedName", name.data, name.length);
    bw_json_text(json, "kind", finding->known & BW_KNOWN_KEY ? "item" : "tree");
    bw_json_end(json);
    bw_json_end(json);
}

static void add_file(struct bw_json *json, const struct bw_finding *finding, size_t number)
{
    const char *path = finding->paths[number].data;
    size_t length = finding->paths[number].length;
    bool absolute = length > 1 && *path == '/';
    bw_json_begin_object(json, NULL);
    bw_json_begin_object(json, "physicalLocation");
    add_artifact(json, "", path + absolute, length - absolute, "FILESYSTEM");
    if (finding->known & BW_KNOWN_FILE_OFFSET)
        add_region(json, finding->file_offset, finding->known & BW_KNOWN_FILE_LENGTH,
                   finding->file_length);
    bw_json_end(json);
    if (number == 0)
        add_logical(json, finding);
    bw_json_end(json);
}

/* The image of a device; NULL if it is not known. */
static const char *image_of(const struct check *check, const struct bw_finding *finding)
{
    for (size_t i = 0; finding->known & BW_KNOWN_DEVICE && i < check->device_count; i++)
        if (check->devices[i].devid == finding->devid)
            return check->devices[i].path;
    return NULL;
}

static void add_image(struct bw_json *json, const struct bw_finding *finding, const char *image,
                      bool is_place)
{
    bw_json_begin_object(json, NULL);
    bw_json_begin_object(json, "physicalLocation");
    add_artifact(json, *image == '/' ? "file://" : "", image, strlen(image), NULL);
    if (is_place && finding->known & BW_KNOWN_OFFSET)
        add_region(json, finding->offset, finding->known & BW_KNOWN_LENGTH, finding->length);
    bw_json_end(json);
    if (!finding->path_count)
        add_logical(json, finding);
    bw_json_end(json);
}

/* There is always one: a result without a place is not shown by some readers. */
static void add_locations(struct bw_json *json, const struct check *check,
                          const struct bw_finding *finding)
{
    const char *image = image_of(check, finding);
    bw_json_begin_array(json, "locations");
    for (size_t i = 0; i < finding->path_count; i++)
        add_file(json, finding, i);
    if (image)
        add_image(json, finding, image, true);
    else if (!finding->path_count && bw_fs_image_count(check->session.fs))
        add_image(json, finding, bw_fs_image_path(check->session.fs, 0), false);
    bw_json_end(json);
}

static void add_properties(struct bw_json *json, const struct bw_finding *finding)
{
    const struct {
        unsigned known;
        const char *name;
        uint64_t value;
    } members[] = {
        {BW_KNOWN_TREE, "tree", finding->tree},
        {BW_KNOWN_LOGICAL, "logical", finding->logical},
        {BW_KNOWN_LENGTH, "length", finding->length},
        {BW_KNOWN_DEVICE, "devid", finding->devid},
        {BW_KNOWN_OFFSET, "offset", finding->offset},
        {BW_KNOWN_COPY, "copy", finding->copy},
        {BW_KNOWN_INODE, "inode", finding->inode},
    };
    bw_json_begin_object(json, "properties");
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (finding->known & members[i].known)
            bw_json_number(json, members[i].name, members[i].value);
    bw_json_bool(json, "mendable", finding->mendable);
    if (finding->more_paths)
        bw_json_number(json, "morePaths", finding->more_paths);
    if (finding->more_subvolumes)
        bw_json_number(json, "moreSubvolumes", finding->more_subvolumes);
    bw_json_end(json);
}

static void add(const struct check *check, struct check_report *report,
                const struct bw_finding *finding)
{
    struct bw_json *json = &report->json;
    BW_AUTO_BUFFER struct bw_buffer message = {0};
    check_append_message(&message, finding);
    report->text.failed |= message.failed;
    bw_json_begin_object(json, NULL);
    bw_json_text(json, "ruleId", finding->code->word);
    bw_json_number(json, "ruleIndex", check_code_number(finding->code));
    bw_json_text(json, "level", bw_finding_severity_name(finding->code->severity));
    add_message(json, "message", message.data, message.length);
    add_locations(json, check, finding);
    add_properties(json, finding);
    bw_json_end(json);
}

static void end(const struct check *check, struct check_report *report, int status)
{
    struct bw_json *json = &report->json;
    const struct bw_finding_count *count;
    bw_json_end(json);
    bw_json_begin_array(json, "invocations");
    bw_json_begin_object(json, NULL);
    bw_json_bool(json, "executionSuccessful", check_is_finished(check));
    bw_json_signed(json, "exitCode", status);
    bw_json_end(json);
    bw_json_end(json);
    bw_json_begin_object(json, "properties");
    bw_json_begin_object(json, "counts");
    for (size_t i = 0; (count = check_count(check, i)); i++)
        bw_json_number(json, count->code->word, count->count);
    while (json->depth)
        bw_json_end(json);
    bw_buffer_append_byte(&report->text, '\n');
}

const struct check_report_form check_sarif = {
    .name = "sarif", .begin = begin, .add = add, .end = end};
