/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The format of a black box: the ring of the flight recorder, in memory or in a file. All numbers
 * are little-endian.
 *
 * offset  size
 * 0       128       struct bw_box_header, then zeros
 * 4096    S * 2048  S slots: struct bw_box_slot
 *
 * The part of the header with a checksum is written before the first event; the rest changes when
 * the run ends.
 *
 * A slot contains an event as two formatted lines, text and JSON, so a reader needs no tables of
 * probes and can read recordings of any version. Events are numbered from 1. Event N is stored in
 * slot (N - 1) mod S, and replaces the previous event there. While it is written, the sequence of
 * the slot is N with bit 63 set; afterwards, it is N. Bit 63 in a recording means that the slot was
 * being written when the run ended. A thread that finds its slot busy, or with a later event, drops
 * its own event: the ring may lack events, but a slot never mixes two.
 */
#ifndef BW_PROBE_RECORDER_H
#define BW_PROBE_RECORDER_H

#include <stdatomic.h>

#include "base/endian.h"
#include "btrfs-walk/probe.h"

#define BW_BOX_MAGIC "BWALKBOX"
#define BW_BOX_BUSY  (UINT64_C(1) << 63)

enum {
    BW_BOX_VERSION = 2,
    BW_BOX_SLOTS = 4096,        /**< offset of the slots */
    BW_BOX_SLOTS_MAX = 1 << 19, /**< total size of one gigabyte */
};

struct bw_box_header {
    uint8_t magic[8];
    bw_le32 version;     /**< BW_BOX_VERSION */
    bw_le32 header_size; /**< BW_BOX_SLOTS */
    bw_le32 slot_size;   /**< sizeof(struct bw_box_slot) */
    bw_le32 slot_count;
    bw_le32 process;
    bw_le32 reserved;
    bw_le64 begin;       /**< of the run: nanoseconds of the monotonic clock */
    bw_le64 begin_real;  /**< the same time in nanoseconds since 1970 */
    uint8_t program[48]; /**< name and version, printable ASCII, then zeros */
    bw_le32 checksum;    /**< crc32c of all bytes before it */
    bw_le32 signal;      /**< signal that ended the run, if it could be recorded; 0: none */
    bw_le32 ended;       /**< 1: the run ended normally */
    bw_le32 reserved_too;
    bw_le64 end; /**< time of the end or of the signal, by the monotonic clock */
    uint8_t unused[8];
};
_Static_assert(sizeof(struct bw_box_header) == 128, "part of the layout");

struct bw_box_slot {
    _Atomic uint64_t sequence; /**< little-endian; 0: never written */
    bw_le16 text_length;
    bw_le16 json_length; /**< the JSON line follows the text */
    uint8_t reserved[4];
    char lines[BW_RECORDER_LINE];
};
_Static_assert(sizeof(struct bw_box_slot) == 2048, "part of the layout");

/** The checksum of a header. */
uint32_t bw_box_checksum(const struct bw_box_header *header);

#endif
