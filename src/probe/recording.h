/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading a black box (recorder_layout.h): that of a run that is over, whose bytes may be anything,
 * or the recorder's own, from a signal handler.
 */
#ifndef BW_PROBE_RECORDING_H
#define BW_PROBE_RECORDING_H

#include "base/buffer.h"
#include "base/json.h"
#include "btrfs-walk/error.h"
#include "probe/recorder_layout.h"

/** The bytes of a black box. */
struct bw_recording {
    const uint8_t *bytes;
    uint32_t header_size, slot_count, probe_count;
    uint64_t begin; /**< time that events are shown relative to */
};

/** Bytes that bw_recording_measure() needs. */
enum { BW_RECORDING_HEADER = sizeof(struct bw_box_header) };

/** Says how large a black box with this beginning is. BW_ERROR_CORRUPT: it is none, or damaged;
 * BW_ERROR_UNSUPPORTED: it is laid out in a way that is not known. */
struct bw_error *bw_recording_measure(const void *bytes, size_t length, uint64_t *size);

/** Holds all but the slots against the layout. The bytes stay the caller's. */
struct bw_error *bw_recording_open(const void *bytes, size_t length,
                                   struct bw_recording *recording);

/** The same without a doubt: of one's own. */
void bw_recording_view(const void *bytes, struct bw_recording *recording);

/** The probe with that index. It may lie anywhere: it consists of bytes. */
static inline const struct bw_box_probe *bw_recording_probe(const struct bw_recording *recording,
                                                            uint32_t index)
{
    return (const void *)(recording->bytes + sizeof(struct bw_box_header) +
                          index * sizeof(struct bw_box_probe));
}

/** Where a slot begins. */
static inline const uint8_t *bw_recording_slot_bytes(const struct bw_recording *recording,
                                                     uint32_t index)
{
    return recording->bytes + recording->header_size + index * sizeof(struct bw_box_slot);
}

/** An event. */
struct bw_recorded {
    uint64_t number; /**< from 1 on, in order */
    uint64_t begin;  /**< of the recording */
    const struct bw_box_probe *probe;
    struct bw_box_slot slot;
};

/** The sequence of its slot. */
static inline uint64_t bw_recorded_sequence(const struct bw_recorded *event)
{
    return le64toh(atomic_load_explicit(&event->slot.sequence, memory_order_relaxed));
}

enum bw_slot_state {
    BW_SLOT_EMPTY,
    BW_SLOT_GOOD,
    BW_SLOT_TORN,    /**< it was being written */
    BW_SLOT_DAMAGED, /**< holds what nobody has written */
};

/** Reads a slot; `event` is only set if it is good. */
enum bw_slot_state bw_recording_slot(const struct bw_recording *recording, uint32_t index,
                                     struct bw_recorded *event);

/** The same of a copy of a slot; whether it lies in the right one is checked by `index`. */
enum bw_slot_state bw_recording_decode(const struct bw_recording *recording, uint32_t index,
                                       struct bw_recorded *event);

/** What there is, oldest first. */
struct bw_recording_list {
    uint32_t *slots; /**< indices of the good ones */
    uint32_t count;
    uint32_t torn, damaged;
    uint64_t last;        /**< number of the last event, complete or not */
    uint64_t overwritten; /**< events before the oldest that the ring had room for */
    uint64_t missing; /**< and those after it that are in no slot: given up because two met in one
                       */
};

/** Makes the list; bw_recording_list_free() frees it. */
struct bw_error *bw_recording_sort(const struct bw_recording *recording,
                                   struct bw_recording_list *list);
void bw_recording_list_free(struct bw_recording_list *list);

/** Room that a line of text needs at most. */
enum { BW_RECORDED_ROOM = 2048 };

/** Appends an event as a line without its end: relative time, thread, probe, NAME=VALUE. Safe in a
 * signal handler if the buffer has room. */
void bw_recorded_append_text(const struct bw_recorded *event, struct bw_buffer *text);

/** Appends an event as a JSON object in one line, without the line's end. */
void bw_recorded_append_json(const struct bw_recorded *event, struct bw_buffer *text);

/** The beginning of a recording, for those who want to know whose it is. */
struct bw_recording_facts {
    char program[BW_BOX_PROGRAM + 1];
    uint32_t process, signal;
    bool ended;
    uint64_t begin_real; /**< nanoseconds since 1970 */
    uint64_t ns;         /**< from the begin to the end, or to the signal */
};
struct bw_recording_facts bw_recording_facts(const struct bw_recording *recording);

#endif
