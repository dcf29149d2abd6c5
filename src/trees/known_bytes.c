/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copies the known parts of structures, for metadumps without contents. Like record/fields.c, it
 * follows the tables of structures, but copies instead of printing.
 *
 * Only bytes that a table describes are copied, and only values that are plausible for it: numbers
 * in their range, known flags, UUIDs and times. Other numbers become the greatest possible one, and
 * the caller replaces names. A structure with several impossible values has another type than it
 * claims, and is not copied.
 */
#include "trees/metadump.h"

#include <string.h>

#include "ondisk/disk_items.h"

/* A copy that is being made. part.start and part.cursor are in the source. */
struct copy {
    struct bw_known_bytes *known;
    struct bw_part part;
    const uint8_t *source; /* the bytes of the cursor */
    uint8_t *target;       /* their copy */
    uint8_t *start;        /* the copy of the structure at part.start */
};

/* Values. */

static bool is_common(uint64_t number, size_t size)
{
    const uint64_t top = number >> (8 * size - 8);
    switch (size) {
    case sizeof(bw_le64):
        return top == 0 || top == UINT8_MAX;
    case sizeof(bw_le32):
        return top < ' ' || top == UINT8_MAX;
    default:
        return true;
    }
}

/* Sparse files can be of any size, but hardly have a strange one beyond 64 PiB. */
static bool is_file_size(uint64_t size)
{
    const uint64_t sector = BW_MIN_SECTORSIZE;
    return size < UINT64_C(1) << 56 ||
           (size <= UINT64_C(1) << 63 && (size % sector == 0 || (size + 1) % sector == 0));
}

/* UUIDs, and hashes of references, are keys whose numbers have all their bits. */
bool bw_known_key(const struct bw_key *key)
{
    if (key->type == BW_UUID_SUBVOLUME || key->type == BW_UUID_RECEIVED)
        return true;
    return is_common(key->objectid, sizeof key->objectid) &&
           (key->type == BW_EXTENT_DATA_REF || is_common(key->offset, sizeof key->offset) ||
            (key->type == BW_EXTENT_DATA && is_file_size(key->offset)));
}

uint64_t bw_known_flags(uint64_t flags, uint64_t known)
{
    const uint64_t unknown = flags & ~known;
    return (flags & known) | (unknown & -unknown);
}

static bool is_possible(const struct copy *copy, const struct bw_field *field, uint64_t number)
{
    switch (field->range) {
    case BW_RANGE_ANY:
        return true;
    case BW_RANGE_GENERATION: /* the greatest number is in place of one that was impossible */
        return number <= copy->known->generation || number == UINT64_MAX;
    case BW_RANGE_ALIGNED:
        return number % BW_MIN_SECTORSIZE == 0 && is_common(number, field->size);
    case BW_RANGE_FILE_SIZE:
        return is_file_size(number);
    case BW_RANGE_LEVEL:
        return number < BW_MAX_LEVEL;
    case BW_RANGE_16_BITS:
        return number <= UINT16_MAX;
    default:
        return is_common(number, field->size);
    }
}

/* UUIDs that are random or made from a time have version 4 or 1, and a variant. The kernel stores
 * the first parts of its UUIDs as little-endian numbers. */
bool bw_known_uuid(const struct bw_known_bytes *known, const uint8_t *uuid)
{
    static const uint8_t none[BW_UUID_SIZE];
    const unsigned version = uuid[6] >> 4, variant = uuid[8] >> 6;
    if ((version == 4 || version == 1 || uuid[7] >> 4 == 4) && variant == 2)
        return true;
    for (size_t i = 0; i < known->uuid_count; i++)
        if (memcmp(known->uuids[i], uuid, BW_UUID_SIZE) == 0)
            return true;
    return memcmp(uuid, none, BW_UUID_SIZE) == 0;
}

static void copy_value(const struct copy *copy, const struct bw_member *member)
{
    const struct bw_field *field = member->field;
    const uint8_t *value = copy->part.start + member->offset;
    uint8_t *target = copy->start + member->offset;
    bool possible = false;
    if (member->type == BW_TYPE_KEY) {
        const struct bw_key key = bw_key_decode((const void *)value);
        possible = bw_known_key(&key);
    } else if (member->type == BW_TYPE_BYTES) {
        if (member->format != BW_FORMAT_UUID)
            return;
        possible = bw_known_uuid(copy->known, value);
    } else if (member->format == BW_FORMAT_TIME) {
        /* Beyond some ten thousand years, zeros: all times of an inode may be wrong. */
        const struct bw_disk_timespec *time = (const void *)value;
        const int64_t seconds = (int64_t)bw_get64(time->seconds), most = INT64_C(1) << 40;
        possible = field->size < sizeof *time || bw_get32(time->nanoseconds) < 1000000000;
        if (possible && (seconds <= -most || seconds >= most))
            return;
    } else if (member->format == BW_FORMAT_FLAGS) {
        /* The known flags, and the fact that there are unknown ones. */
        const uint64_t flags = bw_number_at(value, field->size);
        uint64_t all = 0;
        for (const struct bw_value_name *word = member->values->words; word->name; word++)
            all |= word->value;
        const uint64_t kept = bw_known_flags(flags, all);
        const bw_le64 disk = bw_put64(kept);
        memcpy(target, &disk, field->size);
        copy->known->impossible += kept != flags;
        return;
    } else if (member->values) {
        const uint64_t number = bw_number_at(value, field->size);
        const struct bw_value_name *word = member->values->words;
        while (word->name && word->value != number)
            word++;
        possible = word->name;
    } else {
        possible = is_possible(copy, field, bw_number_at(value, field->size));
    }
    if (possible) {
        memcpy(target, value, field->size);
        return;
    }
    memset(target, UINT8_MAX, field->size);
    copy->known->impossible++;
}

/* Structures. */

static void copy_members(struct copy *copy, const struct bw_structure *structure);

static size_t bytes_left(const struct copy *copy)
{
    return (size_t)(copy->part.cursor.end - copy->part.cursor.next);
}

static uint8_t *target_of(const struct copy *copy, const uint8_t *source)
{
    return copy->target + (source - copy->source);
}

/* Copies the structure at the cursor. One that an old kernel wrote shorter is copied from and to
 * bytes that zeros follow. */
static void copy_structure(struct copy *copy, const struct bw_structure *structure)
{
    uint8_t padded[sizeof(struct bw_disk_root_item)] = {0};
    uint8_t padded_target[sizeof padded] = {0};
    const uint8_t *outer = copy->part.start;
    uint8_t *outer_start = copy->start;
    const unsigned outer_impossible = copy->known->impossible;
    const size_t have = bytes_left(copy);
    const bool is_short =
        have < structure->size && structure->minimum && have >= structure->minimum;
    const uint8_t *bytes = bw_cursor_take(&copy->part.cursor, is_short ? have : structure->size);
    if (!bytes)
        return;
    copy->part.start = bytes;
    copy->start = target_of(copy, bytes);
    if (is_short) {
        memcpy(padded, bytes, have);
        copy->part.start = padded;
        copy->start = padded_target;
    }
    copy->known->impossible = 0;
    copy_members(copy, structure);
    copy->part.cursor.bad |= copy->known->impossible > 1;
    copy->known->impossible = outer_impossible;
    if (is_short)
        memcpy(target_of(copy, bytes), padded_target, have);
    copy->part.start = outer;
    copy->start = outer_start;
}

static void copy_text(struct copy *copy, const struct bw_member *member)
{
    const struct bw_field *field = member->field;
    const size_t length = field->size
                              ? (size_t)bw_number_at(copy->part.start + member->offset, field->size)
                              : bytes_left(copy);
    const uint8_t *bytes = bw_cursor_take(&copy->part.cursor, length);
    if (field->size)
        memcpy(copy->start + member->offset, copy->part.start + member->offset, field->size);
    if (!bytes || (field->kind == BW_READ_DATA && !length))
        return;
    if (!copy->known->copy_text || !copy->known->copy_text(copy->known->context, member, bytes,
                                                           target_of(copy, bytes), length))
        copy->part.cursor.bad = true;
}

static void copy_members(struct copy *copy, const struct bw_structure *structure)
{
    struct bw_part *part = &copy->part;
    for (unsigned i = 0; i < structure->record.member_count && !part->cursor.bad; i++) {
        const struct bw_member *member = &structure->record.members[i];
        const struct bw_field *field = member->field;
        if (!field)
            continue;
        const uint8_t *bytes = part->start + member->offset;
        union bw_value unused;
        switch (field->kind) {
        case BW_READ_VALUE:
            copy_value(copy, member);
            break;
        case BW_READ_STRUCTURE: {
            const uint8_t *outer = part->start;
            uint8_t *outer_start = copy->start;
            part->start += member->offset;
            copy->start += member->offset;
            copy_members(copy, field->structure);
            part->start = outer;
            copy->start = outer_start;
            break;
        }
        case BW_READ_NEXT:
            copy_structure(copy, field->structure);
            break;
        case BW_READ_RANGE: { /* the rest of the range remains zeros */
            const struct bw_cursor outer = part->cursor;
            const size_t wanted = field->choose ? field->choose(part) : field->size;
            part->cursor = (struct bw_cursor){
                .next = bytes, .end = bytes + (wanted < field->size ? wanted : field->size)};
            while (bytes_left(copy) && !part->cursor.bad)
                copy_structure(copy, field->structure);
            part->cursor = outer;
            break;
        }
        case BW_READ_LIST: {
            const uint64_t wanted = field->size ? bw_number_at(bytes, field->size) : UINT64_MAX;
            for (uint64_t k = 0;
                 k < wanted && !part->cursor.bad && (field->size || bytes_left(copy)); k++)
                copy_structure(copy, field->structure);
            break;
        }
        case BW_READ_CHOICE: {
            const size_t chosen = field->choose(part);
            size_t count = 0;
            while (field->structures[count])
                count++;
            if (chosen >= count)
                break;
            const struct bw_structure *more = field->structures[chosen];
            if (more->size <= structure->size ||
                bw_cursor_take(&part->cursor, (size_t)(more->size - structure->size)))
                copy_members(copy, more);
            break;
        }
        case BW_READ_NAME:
        case BW_READ_DATA:
        case BW_READ_REST:
        case BW_READ_CHECKSUMS:
            copy_text(copy, member);
            break;
        case BW_READ_COMPUTED: /* from bytes that are not copied, which it consumes */
            if (part->key && !member->lazy)
                field->compute(part, &unused);
            break;
        default: /* of the key */
            break;
        }
    }
}

bool bw_known_bytes_of_item(struct bw_known_bytes *known, const struct bw_item *item,
                            const struct bw_structure *structure, uint8_t *target)
{
    struct copy copy = {.known = known,
                        .part = {.key = &item->key,
                                 .cursor = bw_cursor_of(item),
                                 .sectorsize = known->sectorsize,
                                 .checksum_size = known->checksum_size},
                        .source = item->data,
                        .target = target};
    if (!structure)
        return false;
    copy_structure(&copy, structure);
    if (!copy.part.cursor.bad && !bytes_left(&copy))
        return true;
    memset(target, 0, item->size);
    return false;
}

void bw_known_bytes_of_structure(struct bw_known_bytes *known, const void *source,
                                 const struct bw_structure *structure, void *target)
{
    struct copy copy = {.known = known,
                        .part = {.start = source},
                        .source = source,
                        .target = target,
                        .start = target};
    copy_members(&copy, structure);
}
