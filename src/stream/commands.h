/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The format of send streams. A stream is a header, then commands. A command is a header and
 * attributes without padding; an attribute has a type, a length and its bytes. In protocol 2 and
 * above, DATA is the last attribute and has no length: it ends with the command. Source: the
 * kernel's fs/btrfs/send.h.
 */
#ifndef BW_STREAM_COMMANDS_H
#define BW_STREAM_COMMANDS_H

#include "base/endian.h"
#include "ondisk/foreign.h"

/** The beginning of a stream. */
struct bw_stream_header {
    char magic[sizeof BW_STREAM_MAGIC];
    bw_le32 version;
};

/** The beginning of a command. */
struct bw_command_header {
    bw_le32 length; /**< of the attributes that follow */
    bw_le16 command;
    bw_le32 crc; /**< CRC-32C of the command with zeros here; begins with 0, and is not inverted */
};

/** The beginning of an attribute. DATA of protocol 2 has the type only. */
struct bw_attribute_header {
    bw_le16 type;
    bw_le16 length;
};

/** A time as an attribute. */
struct bw_stream_time {
    bw_le64 seconds;
    bw_le32 nanoseconds;
};

enum bw_send_attribute {
#define ATTRIBUTE(number, NAME, size) BW_ATTRIBUTE_##NAME = (number),
#include "stream/commands.def"
    BW_ATTRIBUTE_TYPES,
};

enum bw_send_command {
#define COMMAND(number, NAME, name, version, required) BW_COMMAND_##NAME = (number),
#include "stream/commands.def"
    BW_COMMAND_TYPES,
};

enum {
    BW_SEND_MAX_VERSION = 3,
    BW_SEND_DATA_V1 = 48 << 10, /**< bytes of data in a command of protocol 1 */
    BW_SEND_DATA = 128 << 10,   /**< the same, of later protocols; also the most that the bytes of
                                   an ENCODED_WRITE may become when they are decompressed */
};

/** Values of COMPRESSION, which are not those of extents: LZO is followed by sectors of 8 to 64
 * KiB. Source: the kernel's include/uapi/linux/btrfs.h. */
enum bw_encoded_compression {
    BW_ENCODED_NONE = 0,
    BW_ENCODED_ZLIB = 1,
    BW_ENCODED_ZSTD = 2,
    BW_ENCODED_LZO_4K = 3,
    BW_ENCODED_TYPES = 8,
};

#endif
