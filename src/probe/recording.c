/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading a black box (recorder.h). Nothing it says is trusted: it may be any file. */
#include <inttypes.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "probe/recorder.h"

/* A good slot; kept aside, so that sorting needs not look into the slots. */
struct place {
    uint64_t number;
    uint32_t slot;
};

struct bw_recording {
    struct bw_buffer bytes;
    struct bw_box_header header;
    struct bw_recording_facts facts;
    struct place *places; /* oldest first */
};

static struct bw_error *damaged(const char *what)
{
    return bw_error_create(BW_ERROR_CORRUPT, "the black box is damaged: %s", what);
}

static bool is_printable(const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (bytes[i] < 0x20 || bytes[i] == 0x7f || (bytes[i] == 0xc2 && bytes[i + 1] < 0xa0))
            return false;
    return true;
}

static struct bw_error *check_header(const struct bw_box_header *header)
{
    uint32_t version = bw_get32(header->version), slots = bw_get32(header->slot_count);
    if (version != BW_BOX_VERSION)
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "this black box is of version %" PRIu32 ", only %d is known",
                               version, BW_BOX_VERSION);
    if (bw_get32(header->header_size) != BW_BOX_SLOTS ||
        bw_get32(header->slot_size) != sizeof(struct bw_box_slot) || slots == 0 ||
        slots > BW_BOX_SLOTS_MAX)
        return damaged("the sizes in its header make no sense");
    if (bw_get32(header->checksum) != bw_box_checksum(header))
        return damaged("the checksum of its header does not match");
    size_t length = strnlen((const char *)header->program, sizeof header->program);
    for (size_t i = 0; i < length; i++)
        if (header->program[i] < ' ' || header->program[i] > '~')
            length = sizeof header->program;
    return length < sizeof header->program ? NULL
                                           : damaged("the name of the program makes no sense");
}

static struct bw_error *read_header(int descriptor, struct bw_recording *recording)
{
    struct bw_buffer *bytes = &recording->bytes;
    BW_TRY(bw_buffer_read(bytes, descriptor, sizeof recording->header));
    if (bytes->length < sizeof BW_BOX_MAGIC - 1 ||
        memcmp(bytes->data, BW_BOX_MAGIC, sizeof BW_BOX_MAGIC - 1) != 0)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "this is no black box: it does not begin with " BW_BOX_MAGIC);
    if (bytes->length < sizeof recording->header)
        return damaged("it ends within its header");
    memcpy(&recording->header, bytes->data, sizeof recording->header);
    return check_header(&recording->header);
}

/* One byte more would tell that the file is longer than its header says. It is read piece by piece:
 * one that is shorter costs no memory for what it lacks. */
static struct bw_error *read_slots(int descriptor, struct bw_recording *recording)
{
    enum { PIECE = 1 << 20 };
    struct bw_buffer *bytes = &recording->bytes;
    const uint64_t size = BW_BOX_SLOTS + (uint64_t)bw_get32(recording->header.slot_count) *
                                             sizeof(struct bw_box_slot);
    uint64_t wanted = bytes->length;
    while (bytes->length == wanted && wanted <= size) {
        wanted = size + 1 - wanted < PIECE ? size + 1 : wanted + PIECE;
        BW_TRY(bw_buffer_read(bytes, descriptor, (size_t)wanted));
    }
    if (bytes->length == size)
        return NULL;
    return bw_error_create(BW_ERROR_CORRUPT,
                           "the black box is %s: it has %zu bytes, and its header says %" PRIu64,
                           bytes->length < size ? "cut short" : "damaged", bytes->length, size);
}

/* Slots. */

enum slot_state { EMPTY, GOOD, TORN, DAMAGED };

static const struct bw_box_slot *slot_at(const struct bw_recording *recording, uint32_t index)
{
    const char *slots = recording->bytes.data + BW_BOX_SLOTS;
    return (const void *)(slots + index * sizeof(struct bw_box_slot));
}

static bool is_line(const char *line, size_t length)
{
    return length > 0 && bw_utf8_is_valid(line, length) &&
           is_printable((const uint8_t *)line, length);
}

/* An event that names its number and its lines in the right slot. */
static enum slot_state judge_slot(const struct bw_recording *recording, uint32_t index,
                                  uint64_t *number)
{
    const struct bw_box_slot *slot = slot_at(recording, index);
    uint64_t sequence = le64toh(atomic_load_explicit(&slot->sequence, memory_order_relaxed));
    size_t text = bw_get16(slot->text_length), json = bw_get16(slot->json_length);
    *number = sequence & ~BW_BOX_BUSY;
    if (sequence == 0)
        return EMPTY;
    if (*number == 0 || (*number - 1) % bw_get32(recording->header.slot_count) != index)
        return DAMAGED;
    if (sequence & BW_BOX_BUSY)
        return TORN;
    return text + json <= sizeof slot->lines && is_line(slot->lines, text) &&
                   is_line(slot->lines + text, json)
               ? GOOD
               : DAMAGED;
}

static int by_number(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    return (a->number > b->number) - (a->number < b->number);
}

/* The last event that is there tells how many there were. */
static void account(struct bw_recording *recording, uint32_t slots, uint64_t last)
{
    struct bw_recording_facts *facts = &recording->facts;
    uint64_t first = last > slots ? last - slots + 1 : 1, within = 0;
    for (uint32_t i = 0; i < facts->count; i++)
        within += recording->places[i].number >= first;
    uint64_t wanted = last - first + 1, known = within + facts->torn + facts->damaged;
    facts->missing = wanted > known ? wanted - known : 0;
    facts->overwritten = first - 1 - (facts->count - within);
}

static struct bw_error *sort_slots(struct bw_recording *recording)
{
    struct bw_recording_facts *facts = &recording->facts;
    const uint32_t slots = bw_get32(recording->header.slot_count);
    uint64_t number, last = 0;
    recording->places = malloc(slots * sizeof *recording->places);
    if (!recording->places)
        return bw_error_no_memory();
    for (uint32_t i = 0; i < slots; i++) {
        enum slot_state state = judge_slot(recording, i, &number);
        facts->torn += state == TORN;
        facts->damaged += state == DAMAGED;
        if (state == GOOD)
            recording->places[facts->count++] = (struct place){number, i};
        if ((state == GOOD || state == TORN) && number > last)
            last = number;
    }
    qsort(recording->places, facts->count, sizeof *recording->places, by_number);
    account(recording, slots, last);
    return NULL;
}

/* The whole. */

static void state_facts(struct bw_recording *recording)
{
    const struct bw_box_header *header = &recording->header;
    struct bw_recording_facts *facts = &recording->facts;
    memcpy(facts->program, header->program, sizeof facts->program);
    facts->process = bw_get32(header->process);
    facts->signal = bw_get32(header->signal);
    facts->ended = bw_get32(header->ended) != 0;
    facts->begin_real = bw_get64(header->begin_real);
    facts->ns = bw_get64(header->end) - bw_get64(header->begin);
}

static struct bw_error *fill(int descriptor, struct bw_recording *recording)
{
    BW_TRY(read_header(descriptor, recording));
    BW_TRY(read_slots(descriptor, recording));
    state_facts(recording);
    return sort_slots(recording);
}

struct bw_error *bw_recording_read(int descriptor, struct bw_recording **result)
{
    struct bw_recording *recording = calloc(1, sizeof *recording);
    if (!recording)
        return bw_error_no_memory();
    struct bw_error *error = fill(descriptor, recording);
    if (error)
        bw_recording_destroy(recording);
    else
        *result = recording;
    return error;
}

void bw_recording_destroy(struct bw_recording *recording)
{
    if (!recording)
        return;
    bw_buffer_free(&recording->bytes);
    free(recording->places);
    free(recording);
}

const struct bw_recording_facts *bw_recording_facts(const struct bw_recording *recording)
{
    return &recording->facts;
}

struct bw_recorded bw_recording_event(const struct bw_recording *recording, uint32_t index)
{
    const struct place *place = &recording->places[index];
    const struct bw_box_slot *slot = slot_at(recording, place->slot);
    const uint16_t text = bw_get16(slot->text_length);
    return (struct bw_recorded){.number = place->number,
                                .text = {slot->lines, text},
                                .json = {slot->lines + text, bw_get16(slot->json_length)}};
}
