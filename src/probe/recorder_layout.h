/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A black box, byte by byte: the ring of the flight recorder, in memory or in the file of
 * --blackbox. All numbers are little-endian, and nothing in it depends on the version of the
 * program: it names what it holds.
 *
 *     offset              size
 *     0                   128        header: struct bw_box_header
 *     128                 P * 128    P probes: struct bw_box_probe; zeros behind them
 *     header_size - 32    32         ending: struct bw_box_ending
 *     header_size         S * 256    S slots: struct bw_box_slot
 *
 * The file ends there; header_size is a multiple of 4096. All before the slots is written before
 * the first event, and has a checksum; only the rest of the ending changes when the run ends.
 *
 * Events are numbered from 1 on. Event N goes into slot (N - 1) mod S, over the one that was there.
 * While it is written, the slot's sequence is N with bit 63 set, then it is N: a slot that has bit
 * 63 was being written when the run ended. A thread that finds a slot busy, or holding a later
 * event, drops its own: so the ring may lack an event, but never holds parts of two in one slot.
 */
#ifndef BW_PROBE_RECORDER_LAYOUT_H
#define BW_PROBE_RECORDER_LAYOUT_H

#include <stdatomic.h>

#include "base/endian.h"

#define BW_BOX_MAGIC "BWALKBOX"
#define BW_BOX_BUSY  (UINT64_C(1) << 63)

enum {
    BW_BOX_VERSION = 1,
    BW_BOX_PAGE = 4096,
    BW_BOX_PROBE_NAME = 32,
    BW_BOX_MEMBER_NAME = 24,
    BW_BOX_PROGRAM = 48,
    BW_BOX_TEXT = 192,
    BW_BOX_SLOTS_MAX = 1 << 22, /**< one gigabyte of them */
    BW_BOX_PROBES_MAX = 256,
};

struct bw_box_header {
    uint8_t magic[8];
    bw_le32 version; /**< BW_BOX_VERSION; another one is laid out in another way */
    bw_le32 header_size;
    bw_le32 slot_size; /**< sizeof(struct bw_box_slot) */
    bw_le32 slot_count;
    bw_le32 probe_size; /**< sizeof(struct bw_box_probe) */
    bw_le32 probe_count;
    bw_le32 process;
    bw_le32 reserved;
    bw_le64 begin; /**< of the run, by the monotonic clock, which that of the events is: nanoseconds
                    */
    bw_le64 begin_real;              /**< the same in nanoseconds since 1970 */
    uint8_t program[BW_BOX_PROGRAM]; /**< name and version, printable ASCII, zeros behind */
    uint8_t unused[24];
};
_Static_assert(sizeof(struct bw_box_header) == 128, "part of the layout");

struct bw_box_ending {
    bw_le32 checksum; /**< crc32c of all bytes before it */
    bw_le32 signal;   /**< that ended the run, as far as it could be noted; 0: none */
    bw_le32 ended;    /**< 1: the run ended by itself */
    bw_le32 reserved;
    bw_le64 end; /**< when it did, or the signal came, by the monotonic clock */
    uint8_t unused[8];
};
_Static_assert(sizeof(struct bw_box_ending) == 32, "part of the layout");

/** The name of a member (a to z, 0 to 9, _), zeros behind; all zeros: there is none. */
struct bw_box_member {
    uint8_t name[BW_BOX_MEMBER_NAME];
    uint8_t type;   /**< BW_BOX_NUMBER, ... */
    uint8_t format; /**< enum bw_member_format: 3 is hexadecimal, anything else is decimal or a name
                     */
};

enum { BW_BOX_NUMBER = 0, BW_BOX_SIGNED = 1, BW_BOX_WORD = 2 };

struct bw_box_probe {
    uint8_t name[BW_BOX_PROBE_NAME]; /**< as a member's, with - as well */
    struct bw_box_member primary, secondary;
    struct bw_box_member text; /**< type BW_BOX_WORD */
    uint8_t keeps_end;         /**< 1: of a text that is too long its end was kept */
    uint8_t reserved[17];
};
_Static_assert(sizeof(struct bw_box_probe) == 128, "part of the layout");

/** What a slot has; for members without a translation, and text that is nothing, the bit is 0. */
enum bw_box_present {
    BW_BOX_HAS_CALL = 1 << 0,
    BW_BOX_HAS_ERROR = 1 << 1,
    BW_BOX_HAS_NS = 1 << 2,
    BW_BOX_HAS_PRIMARY = 1 << 3,
    BW_BOX_HAS_SECONDARY = 1 << 4,
    BW_BOX_HAS_TEXT = 1 << 5,
    BW_BOX_TEXT_CUT = 1 << 6, /**< the text was longer */
};

struct bw_box_slot {
    _Atomic uint64_t sequence; /**< little-endian; 0: never written */
    bw_le64 time;
    bw_le64 call;
    bw_le64 primary, secondary; /**< 0 if the member is a word */
    bw_le64 ns;
    bw_le32 error; /**< signed */
    bw_le32 thread;
    bw_le16 probe;          /**< index into the probes of the header */
    uint8_t present;        /**< enum bw_box_present */
    uint8_t word_length[2]; /**< of a primary and a secondary member that are words: first in `text`
                             */
    uint8_t text_length;    /**< of the text that follows them */
    uint8_t reserved[2];
    uint8_t text[BW_BOX_TEXT];
};
_Static_assert(sizeof(struct bw_box_slot) == 256, "part of the layout");

/** Size of all before the slots. */
static inline uint32_t bw_box_header_size(uint32_t probes)
{
    size_t bytes = sizeof(struct bw_box_header) + probes * sizeof(struct bw_box_probe) +
                   sizeof(struct bw_box_ending);
    return (uint32_t)((bytes + BW_BOX_PAGE - 1) / BW_BOX_PAGE * BW_BOX_PAGE);
}

#endif
