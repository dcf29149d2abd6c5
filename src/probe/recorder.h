/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A black box, byte by byte: the ring of the flight recorder, in memory or in a file. All
 * numbers are little-endian.
 *
 *     offset    size
 *     0         128         struct bw_box_header, then zeros
 *     4096      S * 2048    S slots: struct bw_box_slot
 *
 * The part of the header that has a checksum is written before the first event; the rest of it
 * changes when the run ends.
 *
 * A slot holds an event as two lines that are ready to be shown, text and JSON: reading needs no
 * tables of probes and works for the box of any version of the program. Events are numbered from 1.
 * Event N goes into slot (N - 1) mod S, over the one that was there. While it is written, the
 * sequence of the slot is N with bit 63 set, afterwards it is N: a slot with bit 63 was being
 * written when the run ended. A thread that finds its slot busy, or holding a later event, drops
 * its own: so the ring may lack an event, but a slot never holds parts of two.
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
    BW_BOX_SLOTS = 4096,        /**< where the slots begin */
    BW_BOX_SLOTS_MAX = 1 << 19, /**< one gigabyte of them */
};

struct bw_box_header {
    uint8_t magic[8];
    bw_le32 version;     /**< BW_BOX_VERSION */
    bw_le32 header_size; /**< BW_BOX_SLOTS */
    bw_le32 slot_size;   /**< sizeof(struct bw_box_slot) */
    bw_le32 slot_count;
    bw_le32 process;
    bw_le32 reserved;
    bw_le64 begin;       /**< of the run, by the monotonic clock: nanoseconds */
    bw_le64 begin_real;  /**< the same in nanoseconds since 1970 */
    uint8_t program[48]; /**< name and version, printable ASCII, then zeros */
    bw_le32 checksum;    /**< crc32c of all bytes before it */
    bw_le32 signal;      /**< that ended the run, if it could be noted; 0: none */
    bw_le32 ended;       /**< 1: the run ended normally */
    bw_le32 reserved_too;
    bw_le64 end; /**< when it did, or the signal came, by the monotonic clock */
    uint8_t unused[8];
};
_Static_assert(sizeof(struct bw_box_header) == 128, "part of the layout");

struct bw_box_slot {
    _Atomic uint64_t sequence; /**< little-endian; 0: never written */
    bw_le16 text_length;
    bw_le16 json_length; /**< its line follows that of the text */
    uint8_t reserved[4];
    char lines[BW_RECORDER_LINE];
};
_Static_assert(sizeof(struct bw_box_slot) == 2048, "part of the layout");

/** The checksum of a header. */
uint32_t bw_box_checksum(const struct bw_box_header *header);

#endif
