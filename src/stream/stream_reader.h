/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads send streams: one command after the other, each with its checksum verified and its
 * attributes found. Lengths are limited, so that a hostile stream cannot exhaust memory. Several
 * streams may follow each other; the reader continues with the header after END.
 */
#ifndef BW_STREAM_STREAM_READER_H
#define BW_STREAM_STREAM_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "btrfs-walk/error.h"
#include "stream/commands.h"

enum {
    /** Longest command that is read. The kernel's commands have at most 144 KiB. */
    BW_LONGEST_COMMAND = 64 << 20,
};

/** The source of a stream. */
struct bw_stream_source {
    /** Reads `length` bytes at an offset that are within the stream. */
    struct bw_error *(*read)(void *context, uint64_t offset, void *buffer, uint32_t length);
    void *context;
    uint64_t size;
};

/** Reasons for an error of bw_stream_next(). */
enum bw_stream_fault {
    BW_STREAM_NONE,
    BW_STREAM_UNREADABLE, /**< the source failed, or memory ran out */
    BW_STREAM_NO_HEADER,  /**< there is no stream at this offset */
    BW_STREAM_VERSION,    /**< an unknown version of the protocol */
    BW_STREAM_CUT_OFF,    /**< it ends within a command, or without END */
    BW_STREAM_TOO_LONG,   /**< a command exceeds the limit */
    BW_STREAM_CHECKSUM,   /**< the checksum of a command does not match */
    BW_STREAM_ATTRIBUTE,  /**< an attribute is invalid, or missing */
};

/** An attribute of a command. */
struct bw_stream_attribute {
    const uint8_t *data; /**< NULL: the command does not have it */
    uint32_t length;
    uint64_t offset; /**< of the data in the stream */
};

/** A command; valid until the next one is read. */
struct bw_stream_command {
    uint64_t offset; /**< in the stream */
    uint32_t length; /**< bytes of its attributes */
    uint16_t type;   /**< enum bw_send_command, or an unknown one */
    struct bw_stream_attribute attributes[BW_ATTRIBUTE_TYPES];
};

/** A stream that is being read. */
struct bw_stream_reader {
    struct bw_stream_source source;
    uint64_t offset;            /**< of the next command */
    uint32_t version;           /**< of the current stream; 0 before its header */
    bool ended;                 /**< the last command was END */
    enum bw_stream_fault fault; /**< of the last error */
    bool can_continue;          /**< after an error: the next command can be found */
    /* Private: a part of the stream. */
    uint8_t *window;
    size_t capacity, filled;
    uint64_t start;
};

/** Begins at the start of a stream. */
void bw_stream_reader_init(struct bw_stream_reader *reader, const struct bw_stream_source *source);

void bw_stream_reader_free(struct bw_stream_reader *reader);

/** Reads the next command; `*got` is false at the end. Errors contain the offset; afterwards,
 * `fault` is their reason, and if `can_continue` is set, the next call skips the command. Unknown
 * commands are returned without attributes. */
struct bw_error *bw_stream_next(struct bw_stream_reader *reader, struct bw_stream_command *command,
                                bool *got);

/** The name of a command in the output of btrfs receive --dump; NULL if it is unknown. */
const char *bw_command_name(uint16_t type);

/** Whether a command has an attribute. */
static inline bool bw_command_has(const struct bw_stream_command *command,
                                  enum bw_send_attribute type)
{
    return command->attributes[type].data;
}

/** The number in an attribute of 1, 4 or 8 bytes; 0 if the command does not have it. */
uint64_t bw_command_number(const struct bw_stream_command *command, enum bw_send_attribute type);

/** The time in an attribute. */
struct bw_stream_time bw_command_time(const struct bw_stream_command *command,
                                      enum bw_send_attribute type);

#endif
