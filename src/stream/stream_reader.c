/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading send streams: a window that moves over the stream, and the commands in it.
 *
 * A command is returned only if its checksum is right and its attributes are: of known types, of
 * the sizes in the table, within the command, and no required one is missing. After a wrong
 * checksum or attribute, the caller may continue with the next command, because the length of the
 * command is still likely to be right; after all other errors, the stream has ended.
 */
#include "stream/stream_reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/crc32c.h"

enum { WINDOW = 1 << 20 };

/* A command in the table. */
struct command_rule {
    const char *name;
    uint64_t required; /* a bit for each attribute */
};

#define A(NAME) (UINT64_C(1) << BW_ATTRIBUTE_##NAME)

static const struct command_rule rules[BW_COMMAND_TYPES] = {
#define COMMAND(number, NAME, name, version, required) [number] = {name, required},
#include "stream/commands.def"
};

static const struct {
    const char *name;
    uint16_t size;
} attribute_rules[BW_ATTRIBUTE_TYPES] = {
#define ATTRIBUTE(number, NAME, size) [number] = {#NAME, size},
#include "stream/commands.def"
};

static const uint64_t strings = A(XATTR_NAME) | A(PATH) | A(PATH_TO) | A(PATH_LINK) | A(CLONE_PATH);

const char *bw_command_name(uint16_t type)
{
    return type < BW_COMMAND_TYPES ? rules[type].name : NULL;
}

uint64_t bw_command_number(const struct bw_stream_command *command, enum bw_send_attribute type)
{
    const struct bw_stream_attribute *attribute = &command->attributes[type];
    uint64_t value = 0;
    for (uint32_t i = attribute->length < 8 ? attribute->length : 8; i-- > 0;)
        value = value << 8 | attribute->data[i];
    return value;
}

struct bw_stream_time bw_command_time(const struct bw_stream_command *command,
                                      enum bw_send_attribute type)
{
    const struct bw_stream_attribute *attribute = &command->attributes[type];
    struct bw_stream_time time = {.seconds = bw_put64(0)};
    if (attribute->length == sizeof time)
        memcpy(&time, attribute->data, sizeof time);
    return time;
}

void bw_stream_reader_init(struct bw_stream_reader *reader, const struct bw_stream_source *source)
{
    *reader = (struct bw_stream_reader){.source = *source};
}

void bw_stream_reader_free(struct bw_stream_reader *reader)
{
    free(BW_TAKE(reader->window));
}

/* Errors. */

static struct bw_error *fail_with(struct bw_stream_reader *reader, enum bw_stream_fault fault,
                                  struct bw_error *error)
{
    reader->fault = fault;
    reader->can_continue = fault == BW_STREAM_CHECKSUM || fault == BW_STREAM_ATTRIBUTE;
    return error;
}

static struct bw_error *cut_off(struct bw_stream_reader *reader)
{
    return fail_with(reader, BW_STREAM_CUT_OFF,
                     bw_error_create(BW_ERROR_CORRUPT,
                                     "the stream is cut off: it ends at %" PRIu64
                                     ", within the command at %" PRIu64,
                                     reader->source.size, reader->offset));
}

/* The window. */

/* Gets `length` bytes at the offset of the reader, which are within the stream. The window grows to
 * contain them. */
static struct bw_error *peek_bytes(struct bw_stream_reader *reader, size_t length,
                                   const uint8_t **bytes)
{
    const uint64_t skip = reader->offset - reader->start;
    *bytes = NULL;
    if (reader->offset < reader->start || skip > reader->filled || reader->filled - skip < length) {
        const size_t capacity = length < WINDOW ? WINDOW : length;
        if (capacity > reader->capacity) {
            uint8_t *grown = malloc(capacity);
            if (!grown)
                return fail_with(reader, BW_STREAM_UNREADABLE, bw_error_no_memory());
            free(reader->window);
            reader->window = grown;
            reader->capacity = capacity;
            reader->filled = 0;
        }
        const uint64_t left = reader->source.size - reader->offset;
        const size_t wanted = left < reader->capacity ? (size_t)left : reader->capacity;
        struct bw_error *error = reader->source.read(reader->source.context, reader->offset,
                                                     reader->window, (uint32_t)wanted);
        reader->start = reader->offset;
        reader->filled = error ? 0 : wanted;
        if (error)
            return fail_with(reader, BW_STREAM_UNREADABLE, error);
    }
    *bytes = reader->window + (reader->offset - reader->start);
    return NULL;
}

/* Headers of streams. */

static struct bw_error *read_header(struct bw_stream_reader *reader)
{
    const uint64_t left = reader->source.size - reader->offset;
    const uint8_t *bytes = NULL;
    if (left >= sizeof(struct bw_stream_header))
        BW_TRY(peek_bytes(reader, sizeof(struct bw_stream_header), &bytes));
    if (!bytes || memcmp(bytes, BW_STREAM_MAGIC, sizeof BW_STREAM_MAGIC) != 0)
        return fail_with(reader, BW_STREAM_NO_HEADER,
                         bw_error_create(BW_ERROR_CORRUPT, "there is no send stream at %" PRIu64,
                                         reader->offset));
    const uint32_t version = bw_get32(((const struct bw_stream_header *)bytes)->version);
    if (version == 0 || version > BW_SEND_MAX_VERSION)
        return fail_with(reader, BW_STREAM_VERSION,
                         bw_error_create(BW_ERROR_UNSUPPORTED,
                                         "the send stream at %" PRIu64 " has version %" PRIu32,
                                         reader->offset, version));
    reader->version = version;
    reader->ended = false;
    reader->offset += sizeof(struct bw_stream_header);
    return NULL;
}

/* Commands. */

static struct bw_error *bad_attribute(const struct bw_stream_command *command, uint16_t type,
                                      const char *problem)
{
    return bw_error_create(BW_ERROR_CORRUPT, "command %s at %" PRIu64 ": %s %s",
                           rules[command->type].name, command->offset, attribute_rules[type].name,
                           problem);
}

static struct bw_error *cut_attribute(const struct bw_stream_command *command)
{
    return bw_error_create(BW_ERROR_CORRUPT,
                           "command %s at %" PRIu64 ": an attribute is longer than the command",
                           rules[command->type].name, command->offset);
}

/* Reads the attributes of a command, and verifies them. Since version 2, the data have no length:
 * they are the rest of the command. */
static struct bw_error *read_attributes(const struct bw_stream_reader *reader,
                                        struct bw_stream_command *command, const uint8_t *bytes)
{
    if (!bw_command_name(command->type))
        return NULL;
    for (uint32_t at = 0; at < command->length;) {
        const struct bw_attribute_header *header = (const void *)(bytes + at);
        uint32_t left = command->length - at;
        if (left < sizeof header->type)
            return cut_attribute(command);
        const uint16_t type = bw_get16(header->type);
        if (type == 0 || type >= BW_ATTRIBUTE_TYPES)
            return bw_error_create(BW_ERROR_UNSUPPORTED,
                                   "command %s at %" PRIu64 ": unknown attribute %u",
                                   rules[command->type].name, command->offset, type);
        const bool is_rest = reader->version >= 2 && type == BW_ATTRIBUTE_DATA;
        const uint32_t head = is_rest ? sizeof header->type : sizeof *header;
        if (left < head)
            return cut_attribute(command);
        left -= head;
        const uint32_t length = is_rest ? left : bw_get16(header->length);
        if (length > left)
            return cut_attribute(command);

        const uint8_t *data = bytes + at + head;
        const uint16_t size = attribute_rules[type].size;
        command->attributes[type] = (struct bw_stream_attribute){
            data, length, command->offset + sizeof(struct bw_command_header) + at + head};
        if (size && length != size)
            return bad_attribute(command, type, "has a wrong size");
        if (strings >> type & 1 && memchr(data, 0, length))
            return bad_attribute(command, type, "contains a NUL");
        at += head + length;
    }
    const uint64_t required = rules[command->type].required;
    for (uint16_t type = 1; type < BW_ATTRIBUTE_TYPES; type++)
        if (required >> type & 1 && !command->attributes[type].data)
            return bad_attribute(command, type, "is missing");
    return NULL;
}

struct bw_error *bw_stream_next(struct bw_stream_reader *reader, struct bw_stream_command *command,
                                bool *got)
{
    *got = false;
    if (reader->version == 0 || (reader->ended && reader->offset < reader->source.size))
        BW_TRY(read_header(reader));
    if (reader->ended)
        return NULL;
    const uint64_t left = reader->source.size - reader->offset;
    const struct bw_command_header *header;
    const uint8_t *bytes;

    /* The header, and whether the stream has all bytes of the command. */
    if (left == 0)
        return fail_with(reader, BW_STREAM_CUT_OFF,
                         bw_error_create(BW_ERROR_CORRUPT,
                                         "the stream is cut off: it ends at %" PRIu64
                                         ", without END",
                                         reader->offset));
    if (left < sizeof *header)
        return cut_off(reader);
    BW_TRY(peek_bytes(reader, sizeof *header, &bytes));
    header = (const void *)bytes;
    *command = (struct bw_stream_command){.offset = reader->offset,
                                          .length = bw_get32(header->length),
                                          .type = bw_get16(header->command)};
    if (command->length > left - sizeof *header)
        return cut_off(reader);
    if (command->length > BW_LONGEST_COMMAND)
        return fail_with(reader, BW_STREAM_TOO_LONG,
                         bw_error_create(BW_ERROR_UNSUPPORTED,
                                         "the command at %" PRIu64 " has %" PRIu32
                                         " bytes, more than the limit of 64 MiB",
                                         command->offset, command->length));

    /* The whole command. From here on, errors are only of this command, and the next one can be
     * read. */
    BW_TRY(peek_bytes(reader, sizeof *header + command->length, &bytes));
    header = (const void *)bytes;
    reader->offset += sizeof *header + command->length;
    reader->ended = command->type == BW_COMMAND_END;
    struct bw_command_header covered = *header; /* with a checksum of zero */
    covered.crc = bw_put32(0);
    const uint32_t crc =
        bw_crc32c(bw_crc32c(0, &covered, sizeof covered), bytes + sizeof covered, command->length);
    if (bw_get32(header->crc) != crc)
        return fail_with(reader, BW_STREAM_CHECKSUM,
                         bw_error_create(BW_ERROR_CORRUPT,
                                         "checksum mismatch of the command at %" PRIu64,
                                         command->offset));
    struct bw_error *error = read_attributes(reader, command, bytes + sizeof *header);
    *got = !error;
    return error ? fail_with(reader, BW_STREAM_ATTRIBUTE, error) : NULL;
}
