/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading a black box. Nothing it says is believed: it may be the file of somebody else. */
#include "probe/recording.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "format/checksum.h"

/* Pieces are copied out, so that the bytes may begin anywhere. */
static struct bw_box_header header_of(const void *bytes)
{
    struct bw_box_header header;
    memcpy(&header, bytes, sizeof header);
    return header;
}

static struct bw_error *damaged(const char *what)
{
    return bw_error_create(BW_ERROR_CORRUPT, "the black box is damaged: %s", what);
}

/* The sizes follow from the numbers of things, so that there is one way only to lay them out. */
static bool sizes_are_good(const struct bw_box_header *header)
{
    uint32_t probes = bw_get32(header->probe_count), slots = bw_get32(header->slot_count);
    return bw_get32(header->slot_size) == sizeof(struct bw_box_slot) &&
           bw_get32(header->probe_size) == sizeof(struct bw_box_probe) &&
           probes <= BW_BOX_PROBES_MAX && slots > 0 && slots <= BW_BOX_SLOTS_MAX &&
           bw_get32(header->header_size) == bw_box_header_size(probes);
}

struct bw_error *bw_recording_measure(const void *bytes, size_t length, uint64_t *size)
{
    if (length < sizeof BW_BOX_MAGIC - 1 ||
        memcmp(bytes, BW_BOX_MAGIC, sizeof BW_BOX_MAGIC - 1) != 0)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "this is no black box: it does not begin with " BW_BOX_MAGIC);
    if (length < sizeof(struct bw_box_header))
        return damaged("it ends within its header");
    struct bw_box_header header = header_of(bytes);
    if (bw_get32(header.version) != BW_BOX_VERSION)
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "this black box is of version %" PRIu32 ", only %d is known",
                               bw_get32(header.version), BW_BOX_VERSION);
    if (!sizes_are_good(&header))
        return damaged("the sizes in its header make no sense");
    *size = bw_get32(header.header_size) +
            (uint64_t)bw_get32(header.slot_count) * sizeof(struct bw_box_slot);
    return NULL;
}

/* Only such names can be shown as they are. */
static bool is_name(const uint8_t *name, size_t size)
{
    size_t length = strnlen((const char *)name, size);
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = name[i];
        bool good = i >= length ? byte == 0
                                : (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') ||
                                      byte == '_' || byte == '-';
        if (!good)
            return false;
    }
    return length < size;
}

static bool is_member(const struct bw_box_member *member)
{
    return is_name(member->name, sizeof member->name) && member->type <= BW_BOX_WORD;
}

static struct bw_error *check_probes(const struct bw_recording *recording)
{
    for (uint32_t i = 0; i < recording->probe_count; i++) {
        const struct bw_box_probe *probe = bw_recording_probe(recording, i);
        if (!is_name(probe->name, sizeof probe->name) || !*probe->name ||
            !is_member(&probe->primary) || !is_member(&probe->secondary) ||
            !is_member(&probe->text))
            return damaged("a probe in its header has a name that is none");
    }
    return NULL;
}

static struct bw_error *check_program(const struct bw_box_header *header)
{
    for (size_t i = 0; i < sizeof header->program; i++)
        if (header->program[i] && (header->program[i] < ' ' || header->program[i] > '~'))
            return damaged("the name of the program makes no sense");
    return NULL;
}

static const uint8_t *ending_of(const struct bw_recording *recording)
{
    return recording->bytes + recording->header_size - sizeof(struct bw_box_ending);
}

static struct bw_error *check_sum(const struct bw_recording *recording)
{
    uint8_t sum[32];
    struct bw_box_ending ending;
    memcpy(&ending, ending_of(recording), sizeof ending);
    bw_checksum_compute(BW_CHECKSUM_CRC32C, recording->bytes,
                        (size_t)(ending_of(recording) - recording->bytes), sum);
    return memcmp(sum, &ending.checksum, sizeof ending.checksum) == 0
               ? NULL
               : damaged("the checksum of its header does not match");
}

void bw_recording_view(const void *bytes, struct bw_recording *recording)
{
    struct bw_box_header header = header_of(bytes);
    *recording = (struct bw_recording){
        .bytes = bytes,
        .header_size = bw_get32(header.header_size),
        .slot_count = bw_get32(header.slot_count),
        .probe_count = bw_get32(header.probe_count),
        .begin = bw_get64(header.begin),
    };
}

struct bw_error *bw_recording_open(const void *bytes, size_t length, struct bw_recording *recording)
{
    uint64_t size = 0;
    BW_TRY(bw_recording_measure(bytes, length, &size));
    if (length != size)
        return bw_error_create(
            BW_ERROR_CORRUPT,
            "the black box is %s: it has %zu bytes, and its header tells of %" PRIu64,
            length < size ? "cut short" : "damaged", length, size);
    bw_recording_view(bytes, recording);
    const struct bw_box_header header = header_of(bytes);
    BW_TRY(check_sum(recording));
    BW_TRY(check_program(&header));
    return check_probes(recording);
}

/* That of event N is (N - 1) mod the number of slots; and the words of it fit. */
static bool slot_is_good(const struct bw_recording *recording, uint32_t index, uint64_t number,
                         const struct bw_box_slot *slot)
{
    size_t words = (size_t)slot->word_length[0] + slot->word_length[1];
    return (number - 1) % recording->slot_count == index &&
           bw_get16(slot->probe) < recording->probe_count &&
           words + slot->text_length <= sizeof slot->text;
}

enum bw_slot_state bw_recording_decode(const struct bw_recording *recording, uint32_t index,
                                       struct bw_recorded *event)
{
    uint64_t number = bw_recorded_sequence(event);
    if (number == 0)
        return BW_SLOT_EMPTY;
    if (number & BW_BOX_BUSY)
        return (number & ~BW_BOX_BUSY) &&
                       ((number & ~BW_BOX_BUSY) - 1) % recording->slot_count == index
                   ? BW_SLOT_TORN
                   : BW_SLOT_DAMAGED;
    if (!slot_is_good(recording, index, number, &event->slot))
        return BW_SLOT_DAMAGED;
    event->number = number;
    event->begin = recording->begin;
    event->probe = bw_recording_probe(recording, bw_get16(event->slot.probe));
    return BW_SLOT_GOOD;
}

enum bw_slot_state bw_recording_slot(const struct bw_recording *recording, uint32_t index,
                                     struct bw_recorded *event)
{
    memcpy(&event->slot, bw_recording_slot_bytes(recording, index), sizeof event->slot);
    return bw_recording_decode(recording, index, event);
}

struct bw_recording_facts bw_recording_facts(const struct bw_recording *recording)
{
    const struct bw_box_header header = header_of(recording->bytes);
    struct bw_box_ending ending;
    memcpy(&ending, ending_of(recording), sizeof ending);
    struct bw_recording_facts facts = {
        .process = bw_get32(header.process),
        .signal = bw_get32(ending.signal),
        .ended = bw_get32(ending.ended) != 0,
        .begin_real = bw_get64(header.begin_real),
        .ns = bw_get64(ending.end) - recording->begin,
    };
    memcpy(facts.program, header.program, sizeof header.program);
    return facts;
}
