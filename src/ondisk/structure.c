/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interpreter of structures: goes through the members of a structure and what follows it, and
 * leaves single values to structure_text.c or structure_json.c. It ends because each element of a
 * list takes at least one byte, and structures do not contain themselves.
 */
#include "ondisk/structure.h"

#include "base/decimal.h"
#include "base/escape.h"

/* Zeros behind a structure that old versions of the kernel wrote shorter. */
enum { PADDED_ROOM = sizeof(struct bw_disk_root_item) };

uint64_t bw_field_number(const struct bw_field *member, const uint8_t *start)
{
    const uint8_t *at = start + member->offset;
    switch (member->size) {
    case 1:
        return *at;
    case 2:
        return bw_get16(*(const bw_le16 *)at);
    case 4:
        return bw_get32(*(const bw_le32 *)at);
    case 8:
        return bw_get64(*(const bw_le64 *)at);
    default:
        return 0;
    }
}

static void print_members(struct bw_printer *printer, const struct bw_structure *structure,
                          const struct bw_part *part);

static size_t left(const struct bw_cursor *cursor)
{
    return (size_t)(cursor->end - cursor->next);
}

/* What does not fit is shown as it is. */
static void print_cut_off(struct bw_printer *printer, struct bw_cursor *cursor)
{
    size_t length = left(cursor);
    printer->cut_off = true;
    cursor->bad = true;
    cursor->next = cursor->end;
    if (printer->json)
        bw_json_number(printer->json, "cut_off_bytes", length);
    else
        bw_buffer_format(printer->text, BW_LINE "cut off, %zu bytes left", length);
}

/* Takes the bytes of a structure beyond the first `taken`; NULL if it is cut off. */
static const uint8_t *take(struct bw_cursor *cursor, const struct bw_structure *structure,
                           size_t taken, uint8_t padded[PADDED_ROOM])
{
    size_t have = left(cursor);
    if (have + taken >= structure->size)
        return bw_cursor_take(cursor, structure->size - taken);
    if (!structure->minimum || have < structure->minimum)
        return NULL;
    memset(padded, 0, PADDED_ROOM);
    memcpy(padded, cursor->next, have);
    cursor->next = cursor->end;
    return padded;
}

static void print_struct(struct bw_printer *printer, const struct bw_structure *structure,
                         const struct bw_part *above, uint32_t index)
{
    uint8_t padded[PADDED_ROOM];
    struct bw_part part = *above;
    part.start = take(part.cursor, structure, 0, padded);
    part.index = index;
    if (part.start)
        print_members(printer, structure, &part);
    else
        print_cut_off(printer, part.cursor);
}

/* The chosen structure begins where this one does. */
static void print_choice(struct bw_printer *printer, const struct bw_field *member,
                         const struct bw_part *part, const struct bw_structure *structure)
{
    size_t chosen = member->choose(part), count = 0;
    while (member->structures[count])
        count++;
    if (chosen >= count)
        return;
    const struct bw_structure *more = member->structures[chosen];
    bool fits = more->size <= structure->size ||
                bw_cursor_take(part->cursor, (size_t)more->size - structure->size);
    if (fits)
        print_members(printer, more, part);
    else
        print_cut_off(printer, part->cursor);
}

static void begin_json(struct bw_printer *printer, const struct bw_field *member,
                       void (*begin)(struct bw_json *json, const char *name))
{
    bw_json_name(printer->json, member->json, member->json_length);
    begin(printer->json, NULL);
}

static void print_list(struct bw_printer *printer, const struct bw_field *member,
                       const struct bw_part *part)
{
    uint64_t count = member->size ? bw_field_number(member, part->start) : UINT64_MAX;
    struct bw_cursor *cursor = part->cursor;
    if (printer->json)
        begin_json(printer, member, bw_json_begin_array);
    for (uint32_t i = 0; i < count && !cursor->bad && (member->size || left(cursor)); i++) {
        if (printer->json)
            bw_json_begin_object(printer->json, NULL);
        print_struct(printer, member->structure, part, i);
        if (printer->json)
            bw_json_end(printer->json);
    }
    if (printer->json)
        bw_json_end(printer->json);
}

/* In text, names and values are printed up to the length that a name can have, as btrfs-progs do.
 */
static void print_bytes(struct bw_printer *printer, const struct bw_field *member,
                        const struct bw_part *part)
{
    size_t length = (size_t)bw_field_number(member, part->start);
    const uint8_t *bytes = left(part->cursor) < length ? NULL : part->cursor->next;
    if (!bytes) {
        print_cut_off(printer, part->cursor);
        return;
    }
    part->cursor->next += length;
    if (member->kind == BW_KIND_DATA && !length)
        return;
    if (printer->json && !printer->hide_names)
        bw_json_bytes(printer->json, member->name, bytes, length);
    if (printer->json)
        return;
    bw_print_lead(printer, member);
    if (printer->hide_names)
        bw_buffer_append(printer->text, "HIDDEN", 6);
    else
        bw_escape_line(printer->text, bytes, length < BW_NAME_MAX ? length : BW_NAME_MAX);
}

static void print_rest(struct bw_printer *printer, const struct bw_field *member,
                       const struct bw_part *part)
{
    struct bw_cursor *cursor = part->cursor;
    size_t length = left(cursor);
    const uint8_t *bytes = bw_cursor_take(cursor, length);
    if (printer->json)
        bw_json_hex(printer->json, member->name, bytes, length);
    else if (!member->quiet)
        bw_print_lead(printer, member);
}

static void print_inner(struct bw_printer *printer, const struct bw_field *member,
                        const struct bw_part *part)
{
    struct bw_part inner = *part;
    inner.start += member->offset;
    if (printer->json)
        begin_json(printer, member, bw_json_begin_object);
    else if (!member->quiet)
        bw_print_lead(printer, member);
    if (printer->json || !member->quiet)
        print_members(printer, member->structure, &inner);
    if (printer->json)
        bw_json_end(printer->json);
}

static void print_member(struct bw_printer *printer, const struct bw_structure *structure,
                         const struct bw_field *member, const struct bw_part *part)
{
    switch (member->kind) {
    case BW_KIND_STRUCT:
        print_inner(printer, member, part);
        break;
    case BW_KIND_NAME:
    case BW_KIND_DATA:
        print_bytes(printer, member, part);
        break;
    case BW_KIND_REST:
        print_rest(printer, member, part);
        break;
    case BW_KIND_LIST:
        print_list(printer, member, part);
        break;
    case BW_KIND_CHOICE:
        print_choice(printer, member, part, structure);
        break;
    case BW_KIND_SPECIAL:
        member->write(printer, member, part);
        break;
    case BW_KIND_INDEX:
        if (printer->json)
            break;
        bw_print_lead(printer, member);
        bw_decimal_append(printer->text, part->index);
        break;
    default:
        if (printer->json)
            bw_field_json(printer, member, part->start);
        else if (!member->quiet)
            bw_field_text(printer, member, part->start);
    }
}

static void print_members(struct bw_printer *printer, const struct bw_structure *structure,
                          const struct bw_part *part)
{
    for (uint32_t i = 0; i < structure->count && !part->cursor->bad; i++)
        print_member(printer, structure, &structure->members[i], part);
}

void bw_structure_print(struct bw_printer *printer, const struct bw_structure *structure,
                        const struct bw_key *key, struct bw_cursor *cursor)
{
    const struct bw_part part = {.key = key, .cursor = cursor};
    print_struct(printer, structure, &part, 0);
}
