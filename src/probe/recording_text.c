/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recorded events as text and as JSON, in the words of probe/print.c. The text is also made in
 * signal handlers: nothing here but appending to a buffer that has room.
 */
#include <string.h>

#include "base/decimal.h"
#include "probe/recording.h"
#include "record/show.h"

/* Names once and with "=" in between; the program's words in 20 bytes; each byte of text as \ooo,
 * in quotes.
 */
_Static_assert(BW_BOX_PROBE_NAME + 3 * BW_BOX_MEMBER_NAME + 9 * (BW_DECIMAL_ROOM + 12) +
                       4 * BW_BOX_TEXT + 64 <
                   BW_RECORDED_ROOM,
               "a line may be longer than said");

/* The three texts of a slot: the primary and the secondary member, if they are words, and the one
 * behind. */
enum { PRIMARY, SECONDARY, TEXT };

static struct bw_bytes text_of(const struct bw_recorded *event, unsigned which)
{
    const struct bw_box_slot *slot = &event->slot;
    const size_t lengths[] = {slot->word_length[0], slot->word_length[1], slot->text_length};
    size_t offset = 0;
    for (unsigned i = 0; i < which; i++)
        offset += lengths[i];
    return (struct bw_bytes){(const char *)slot->text + offset, lengths[which]};
}

static void append_words(struct bw_buffer *text, const char *words)
{
    bw_buffer_append(text, words, strlen(words));
}

static void append_number(struct bw_buffer *text, uint64_t number)
{
    char digits[BW_DECIMAL_ROOM];
    bw_buffer_append(text, digits, (size_t)(bw_decimal(digits, number) - digits));
}

static void append_signed(struct bw_buffer *text, uint64_t number)
{
    char digits[BW_DECIMAL_ROOM + 1];
    bw_buffer_append(text, digits, (size_t)(bw_decimal_signed(digits, (int64_t)number) - digits));
}

static void append_hex(struct bw_buffer *text, uint64_t number)
{
    int shift = 60;
    append_words(text, "0x");
    while (shift > 0 && !(number >> shift))
        shift -= 4;
    for (; shift >= 0; shift -= 4)
        bw_buffer_append_byte(text, "0123456789abcdef"[number >> shift & 15]);
}

/* Names are bounded, whatever has become of the mapping meanwhile. */
static void append_name(struct bw_buffer *text, const uint8_t *name, size_t size)
{
    bw_buffer_append(text, name, strnlen((const char *)name, size));
}

static void append_equals(struct bw_buffer *text, const struct bw_box_member *member)
{
    bw_buffer_append_byte(text, ' ');
    append_name(text, member->name, sizeof member->name);
    bw_buffer_append_byte(text, '=');
}

/* A member as the tables of records have it, for what is shown as its bytes. */
static void append_bytes(struct bw_buffer *text, const struct bw_bytes *bytes)
{
    static const struct bw_member member = {.type = BW_TYPE_BYTES, .format = BW_FORMAT_NAME};
    bw_show_word(&member, bytes, text);
}

static void append_key(struct bw_buffer *text, const struct bw_recorded *event, unsigned which,
                       const struct bw_box_member *member, bw_le64 value)
{
    const struct bw_bytes word = text_of(event, which);
    append_equals(text, member);
    if (member->type == BW_BOX_WORD)
        append_bytes(text, &word);
    else if (member->type == BW_BOX_SIGNED)
        append_signed(text, bw_get64(value));
    else if (member->format == BW_FORMAT_HEX)
        append_hex(text, bw_get64(value));
    else
        append_number(text, bw_get64(value));
}

static void append_text(struct bw_buffer *text, const struct bw_recorded *event)
{
    const struct bw_bytes bytes = text_of(event, TEXT);
    bool cut = event->slot.present & BW_BOX_TEXT_CUT, end = event->probe->keeps_end;
    append_equals(text, &event->probe->text);
    append_words(text, cut && end ? "..." : "");
    append_bytes(text, &bytes);
    append_words(text, cut && !end ? "..." : "");
}

/* Seconds since the begin, with nine digits; an event of another clock may lie before it. */
static void append_time(struct bw_buffer *text, const struct bw_recorded *event)
{
    uint64_t time = bw_get64(event->slot.time);
    bool before = time < event->begin;
    uint64_t since = before ? event->begin - time : time - event->begin;
    uint32_t below = (uint32_t)(since % 1000000000);
    char digits[9];
    digits[0] = (char)('0' + below / 100000000);
    bw_decimal_eight(digits + 1, below % 100000000);
    for (uint64_t limit = 1000; limit > 1 && since / 1000000000 < limit; limit /= 10)
        bw_buffer_append_byte(text, ' ');
    append_words(text, before ? "-" : "");
    append_number(text, since / 1000000000);
    bw_buffer_append_byte(text, '.');
    bw_buffer_append(text, digits, sizeof digits);
}

static void append_result(struct bw_buffer *text, const struct bw_box_slot *slot)
{
    if (slot->present & BW_BOX_HAS_CALL) {
        append_words(text, " call=");
        append_number(text, bw_get64(slot->call));
    }
    if (slot->present & BW_BOX_HAS_ERROR) {
        append_words(text, " error=");
        append_signed(text, (uint64_t)(int64_t)(int32_t)bw_get32(slot->error));
    }
    if (slot->present & BW_BOX_HAS_NS) {
        append_words(text, " ns=");
        append_number(text, bw_get64(slot->ns));
    }
}

void bw_recorded_append_text(const struct bw_recorded *event, struct bw_buffer *text)
{
    const struct bw_box_slot *slot = &event->slot;
    append_time(text, event);
    bw_buffer_append_byte(text, ' ');
    append_number(text, bw_get32(slot->thread));
    bw_buffer_append_byte(text, ' ');
    append_name(text, event->probe->name, sizeof event->probe->name);
    append_result(text, slot);
    if (slot->present & BW_BOX_HAS_PRIMARY)
        append_key(text, event, PRIMARY, &event->probe->primary, slot->primary);
    if (slot->present & BW_BOX_HAS_SECONDARY)
        append_key(text, event, SECONDARY, &event->probe->secondary, slot->secondary);
    if (slot->present & BW_BOX_HAS_TEXT)
        append_text(text, event);
}

/* Names have an end: bw_recording_open() has looked at them. */
static const char *name_of(const struct bw_box_member *member)
{
    return (const char *)member->name;
}

static void add_key(struct bw_json *json, const struct bw_recorded *event, unsigned which,
                    const struct bw_box_member *member, bw_le64 value)
{
    const struct bw_bytes word = text_of(event, which);
    if (member->type == BW_BOX_WORD)
        bw_json_bytes(json, name_of(member), word.data, word.length);
    else if (member->type == BW_BOX_SIGNED)
        bw_json_signed(json, name_of(member), (int64_t)bw_get64(value));
    else
        bw_json_number(json, name_of(member), bw_get64(value));
}

static void add_result(struct bw_json *json, const struct bw_box_slot *slot)
{
    if (slot->present & BW_BOX_HAS_CALL)
        bw_json_number(json, "call", bw_get64(slot->call));
    if (slot->present & BW_BOX_HAS_ERROR)
        bw_json_signed(json, "error", (int32_t)bw_get32(slot->error));
    if (slot->present & BW_BOX_HAS_NS)
        bw_json_number(json, "ns", bw_get64(slot->ns));
}

void bw_recorded_append_json(const struct bw_recorded *event, struct bw_buffer *text)
{
    const struct bw_box_slot *slot = &event->slot;
    const struct bw_bytes bytes = text_of(event, TEXT);
    struct bw_json json = bw_json_start(text, false);
    bw_json_begin_object(&json, NULL);
    bw_json_number(&json, "number", event->number);
    bw_json_text(&json, "probe", (const char *)event->probe->name);
    bw_json_number(&json, "time", bw_get64(slot->time));
    bw_json_number(&json, "thread", bw_get32(slot->thread));
    add_result(&json, slot);
    if (slot->present & BW_BOX_HAS_PRIMARY)
        add_key(&json, event, PRIMARY, &event->probe->primary, slot->primary);
    if (slot->present & BW_BOX_HAS_SECONDARY)
        add_key(&json, event, SECONDARY, &event->probe->secondary, slot->secondary);
    if (slot->present & BW_BOX_HAS_TEXT)
        bw_json_bytes(&json, name_of(&event->probe->text), bytes.data, bytes.length);
    if (slot->present & BW_BOX_TEXT_CUT)
        bw_json_bool(&json, "cut", true);
    bw_json_end(&json);
}
