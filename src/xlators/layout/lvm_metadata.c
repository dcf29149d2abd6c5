/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A label in one of the first four sectors leads to the metadata areas of a physical volume. Each
 * area is a ring of texts, of which a header at its beginning names the current one. A text
 * consists of sections ("vg0 { ... }") and values ("extent_size = 8192"): numbers, strings and
 * lists of both.
 */
#include "xlators/layout/lvm_metadata.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/endian.h"

enum {
    SECTOR = 512,
    LABELS = 4,         /* sectors that may contain the label */
    LONGEST = 16 << 20, /* bytes of a text */
    DEEPEST = 16,       /* levels of sections in a text */
    MOST_NODES = 4 << 20,
    MOST_VOLUMES = 64 << 10,
    MOST_COPIES = 64,
    LARGEST_EXTENT = 1 << 30,
};

/* The label, followed by the header of the physical volume. */
struct disk_label {
    char magic[8];
    bw_le64 sector;
    bw_le32 checksum, header;
    char type[8];
    uint8_t rest[SECTOR - 32];
};

struct disk_physical {
    char id[BW_LVM_ID];
    bw_le64 size;
    struct {
        bw_le64 offset, size;
    } areas[1]; /* of data; after one with offset 0, of metadata */
};

struct disk_location {
    bw_le64 offset, size;
    bw_le32 checksum, flags;
};

struct disk_area {
    bw_le32 checksum;
    char magic[16];
    bw_le32 version;
    bw_le64 start, size;
    struct disk_location current;
    uint8_t rest[SECTOR - 40 - sizeof(struct disk_location)];
};

static_assert(sizeof(struct disk_label) == SECTOR, "as on disk");
static_assert(sizeof(struct disk_area) == SECTOR, "as on disk");

/* The CRC-32 of zlib, but with another initial value and without the final inversion. */
static uint32_t checksum_of(const void *bytes, size_t length)
{
    const uint32_t initial = 0xf597a6cf;
    return ~(uint32_t)crc32(~initial & UINT32_MAX, bytes, (uInt)length);
}

static bool read_bytes(const struct bw_frame *frame, struct bw_xlator *device, uint64_t offset,
                       size_t length, void *buffer)
{
    struct bw_request request = {
        .kind = BW_REQUEST_RAW, .length = (uint32_t)length, .address = offset, .buffer = buffer};
    const uint64_t size = bw_xlator_size(device);
    if (offset > size || length > size - offset || !length)
        return false;
    bw_wind(frame, device, &request, 1);
    BW_AUTO_ERROR struct bw_error *error = request.error;
    return !error;
}

/* Labels. */

static bool read_label(const struct bw_frame *frame, struct bw_xlator *device,
                       struct disk_label *label)
{
    for (uint64_t sector = 0; sector < LABELS; sector++) {
        const size_t covered = sizeof *label - offsetof(struct disk_label, header);
        if (read_bytes(frame, device, sector * SECTOR, sizeof *label, label) &&
            memcmp(label->magic, "LABELONE", 8) == 0 && memcmp(label->type, "LVM2 001", 8) == 0 &&
            bw_get64(label->sector) == sector &&
            bw_get32(label->checksum) == checksum_of(&label->header, covered) &&
            bw_get32(label->header) >= 32 && bw_get32(label->header) < SECTOR - 64)
            return true;
    }
    return false;
}

bool bw_lvm_find_label(const struct bw_frame *frame, struct bw_xlator *device,
                       char id[BW_LVM_ID + 1])
{
    struct disk_label label;
    if (!read_label(frame, device, &label))
        return false;
    if (id) {
        memcpy(id, (const char *)&label + bw_get32(label.header), BW_LVM_ID);
        id[BW_LVM_ID] = '\0';
    }
    return true;
}

/* The text as a tree. */

enum kind { KIND_SECTION, KIND_LIST, KIND_NUMBER, KIND_STRING };

struct node {
    enum kind kind;
    uint32_t name_length;
    const char *name; /* not in lists */
    union {
        const char *text; /* of a string */
        uint64_t number;
    };
    uint32_t length;
    uint32_t first, next; /* index of the first member, and of the next node; 0: none */
};

/* The name of a volume; they are sorted. */
struct name {
    const char *text;
    size_t length;
    struct bw_lvm_area place; /* begins at 0 */
};

struct parser {
    const char *at, *end;
    struct node *nodes; /* the first one is the whole text, a section */
    size_t count, room;
    struct name *names;
    size_t name_count, name_room;
    unsigned depth;
};

static struct bw_error *bad_text(const struct parser *parser, const char *problem)
{
    const size_t left = (size_t)(parser->end - parser->at);
    return bw_error_create(BW_ERROR_CORRUPT, "LVM metadata: %s at '%.*s'", problem,
                           left < 20 ? (int)left : 20, parser->at);
}

static bool is_digit(char letter)
{
    return letter >= '0' && letter <= '9';
}

static bool is_space(char letter)
{
    return letter == ' ' || (letter >= '\t' && letter <= '\r') || !letter;
}

static void skip_space(struct parser *parser)
{
    const char *at = parser->at;
    for (; at < parser->end && (is_space(*at) || *at == '#'); at++)
        if (*at == '#') {
            const char *newline = memchr(at, '\n', (size_t)(parser->end - at));
            at = newline ? newline : parser->end - 1;
        }
    parser->at = at;
}

static bool skip_character(struct parser *parser, char wanted)
{
    skip_space(parser);
    bool is_there = parser->at < parser->end && *parser->at == wanted;
    parser->at += is_there;
    return is_there;
}

static struct bw_error *add_node(struct parser *parser, uint32_t *index)
{
    if (parser->count == MOST_NODES)
        return bad_text(parser, "too many values");
    if (!BW_ARRAY_RESERVE(parser->nodes, parser->count, parser->room))
        return bw_error_no_memory();
    parser->nodes[parser->count] = (struct node){.kind = KIND_SECTION};
    *index = (uint32_t)parser->count++;
    return NULL;
}

/* Escapes occur in descriptions only, so their backslashes stay. */
static struct bw_error *parse_string(struct parser *parser, struct node *node)
{
    node->kind = KIND_STRING;
    node->text = parser->at;
    while (parser->at < parser->end && *parser->at != '"')
        parser->at += *parser->at == '\\' && parser->at + 1 < parser->end ? 2 : 1;
    if (parser->at >= parser->end)
        return bad_text(parser, "an open string");
    node->length = (uint32_t)(parser->at++ - node->text);
    return NULL;
}

static struct bw_error *parse_number(struct parser *parser, struct node *node)
{
    node->kind = KIND_NUMBER;
    if (!is_digit(*parser->at) && *parser->at != '-')
        return bad_text(parser, "no value");
    bool is_negative = skip_character(parser, '-');
    while (parser->at < parser->end && is_digit(*parser->at)) {
        const unsigned digit = (unsigned)(*parser->at++ - '0');
        if (node->number > (UINT64_MAX - digit) / 10)
            return bad_text(parser, "a number that is too large");
        node->number = node->number * 10 + digit;
    }
    if (is_negative)
        node->number = -node->number;
    return NULL;
}

static struct bw_error *parse_scalar(struct parser *parser, uint32_t index)
{
    if (skip_character(parser, '"'))
        return parse_string(parser, &parser->nodes[index]);
    return parser->at < parser->end ? parse_number(parser, &parser->nodes[index])
                                    : bad_text(parser, "no value");
}

static void append_member(struct parser *parser, uint32_t parent, uint32_t *last, uint32_t member)
{
    if (*last)
        parser->nodes[*last].next = member;
    else
        parser->nodes[parent].first = member;
    *last = member;
}

static struct bw_error *parse_list(struct parser *parser, uint32_t list)
{
    uint32_t last = 0, member;
    parser->nodes[list].kind = KIND_LIST;
    while (!skip_character(parser, ']')) {
        BW_TRY(add_node(parser, &member));
        BW_TRY(parse_scalar(parser, member));
        append_member(parser, list, &last, member);
        if (!skip_character(parser, ',') && (parser->at >= parser->end || *parser->at != ']'))
            return bad_text(parser, "no comma");
    }
    return NULL;
}

static bool is_name(char letter)
{
    const char lower = (char)(letter | 0x20);
    return (lower >= 'a' && lower <= 'z') || is_digit(letter) ||
           (letter && strchr("_.+-/@", letter));
}

static struct bw_error *parse_name(struct parser *parser, struct node *node)
{
    node->name = parser->at;
    while (parser->at < parser->end && is_name(*parser->at))
        parser->at++;
    node->name_length = (uint32_t)(parser->at - node->name);
    return node->name_length ? NULL : bad_text(parser, "no name");
}

static struct bw_error *parse_members(struct parser *parser, uint32_t section);

static struct bw_error *parse_member(struct parser *parser, uint32_t member)
{
    BW_TRY(parse_name(parser, &parser->nodes[member]));
    if (skip_character(parser, '=')) {
        skip_space(parser);
        return skip_character(parser, '[') ? parse_list(parser, member)
                                           : parse_scalar(parser, member);
    }
    if (!skip_character(parser, '{') || parser->depth == DEEPEST)
        return bad_text(parser, "no section");
    parser->depth++;
    BW_TRY(parse_members(parser, member));
    parser->depth--;
    return skip_character(parser, '}') ? NULL : bad_text(parser, "an open section");
}

static struct bw_error *parse_members(struct parser *parser, uint32_t section)
{
    uint32_t last = 0, member;
    for (;;) {
        skip_space(parser);
        if (parser->at >= parser->end || *parser->at == '}')
            return NULL;
        BW_TRY(add_node(parser, &member));
        BW_TRY(parse_member(parser, member));
        append_member(parser, section, &last, member);
    }
}

static const struct node *first_of(const struct parser *parser, const struct node *node)
{
    return node && node->first ? &parser->nodes[node->first] : NULL;
}

static const struct node *next_of(const struct parser *parser, const struct node *node)
{
    return node->next ? &parser->nodes[node->next] : NULL;
}

static const struct node *member_of(const struct parser *parser, const struct node *section,
                                    const char *name)
{
    const struct node *member = first_of(parser, section);
    const size_t length = strlen(name);
    while (member && (member->name_length != length || memcmp(member->name, name, length) != 0))
        member = next_of(parser, member);
    return member;
}

static uint64_t number_of(const struct parser *parser, const struct node *section, const char *name)
{
    const struct node *member = member_of(parser, section, name);
    return member && member->kind == KIND_NUMBER ? member->number : 0;
}

static void copy_text(char *to, size_t size, const char *text, size_t length)
{
    const size_t copied = strnlen(text, length < size ? length : size - 1);
    memcpy(to, text, copied);
    to[copied] = '\0';
}

static void copy_string(const struct parser *parser, const struct node *section, const char *name,
                        char *to, size_t size)
{
    const struct node *member = member_of(parser, section, name);
    bool is_one = member && member->kind == KIND_STRING;
    copy_text(to, size, is_one ? member->text : "", is_one ? member->length : 0);
}

/* Ids have hyphens in texts, but not in labels. */
static void copy_id(const struct parser *parser, const struct node *section, char id[BW_LVM_ID + 1])
{
    char text[64];
    size_t length = 0;
    copy_string(parser, section, "id", text, sizeof text);
    for (const char *at = text; *at && length < BW_LVM_ID; at++)
        if (*at != '-')
            id[length++] = *at;
    id[length] = '\0';
}

static bool has_word(const struct parser *parser, const struct node *section, const char *name,
                     const char *word)
{
    const struct node *at = first_of(parser, member_of(parser, section, name));
    for (; at; at = next_of(parser, at))
        if (at->kind == KIND_STRING && at->length == strlen(word) &&
            memcmp(at->text, word, at->length) == 0)
            return true;
    return false;
}

/* Names. */

static int compare_texts(const char *a, size_t a_length, const char *b, size_t b_length)
{
    const size_t length = a_length < b_length ? a_length : b_length;
    const int order = length ? memcmp(a, b, length) : 0;
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

/* If a name occurs several times, the first volume with it counts, and logical ones come first. */
static int compare_names(const void *a, const void *b)
{
    const struct name *one = a, *other = b;
    const int order = compare_texts(one->text, one->length, other->text, other->length);
    return order ? order
           : one->place.is_logical != other->place.is_logical
               ? (one->place.is_logical ? -1 : 1)
               : (one->place.index > other->place.index) - (one->place.index < other->place.index);
}

static struct bw_error *add_name(struct parser *parser, const struct node *from, bool is_logical,
                                 size_t index)
{
    if (index == MOST_VOLUMES)
        return bw_error_create(BW_ERROR_CORRUPT, "LVM metadata: more than %u volumes",
                               MOST_VOLUMES);
    if (!BW_ARRAY_RESERVE(parser->names, parser->name_count, parser->name_room))
        return bw_error_no_memory();
    parser->names[parser->name_count++] =
        (struct name){.text = from->name,
                      .length = from->name_length,
                      .place = {.is_logical = is_logical, .index = index}};
    return NULL;
}

static void sort_names(struct parser *parser)
{
    if (parser->name_count)
        qsort(parser->names, parser->name_count, sizeof *parser->names, compare_names);
}

/* The first volume with a name; NULL: none. */
static const struct name *find_name(const struct parser *parser, const struct node *wanted)
{
    size_t low = 0, high = parser->name_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct name *name = &parser->names[middle];
        const bool is_less =
            compare_texts(name->text, name->length, wanted->text, wanted->length) < 0;
        *(is_less ? &low : &high) = middle + is_less;
    }
    const struct name *name = low < parser->name_count ? &parser->names[low] : NULL;
    return name && compare_texts(name->text, name->length, wanted->text, wanted->length) == 0
               ? name
               : NULL;
}

/* The group. */

static struct bw_error *impossible_numbers(const char *section)
{
    return bw_error_create(BW_ERROR_CORRUPT, "LVM metadata: impossible numbers in %s", section);
}

static struct bw_error *add_physical(struct parser *parser, struct bw_lvm_group *group,
                                     const struct node *from)
{
    BW_TRY(add_name(parser, from, false, group->physical_count));
    if (!BW_ARRAY_RESERVE(group->physicals, group->physical_count, group->physical_room))
        return bw_error_no_memory();
    struct bw_lvm_physical *physical = &group->physicals[group->physical_count];
    const uint64_t begin = number_of(parser, from, "pe_start");
    *physical = (struct bw_lvm_physical){.begin = begin * SECTOR};
    copy_text(physical->name, sizeof physical->name, from->name, from->name_length);
    copy_id(parser, from, physical->id);
    copy_string(parser, from, "device", physical->device, sizeof physical->device);
    if (begin > INT64_MAX / SECTOR)
        return impossible_numbers(physical->name);
    group->physical_count++;
    return NULL;
}

static struct bw_error *add_volume(struct parser *parser, struct bw_lvm_group *group,
                                   const struct node *from)
{
    BW_TRY(add_name(parser, from, true, group->volume_count));
    if (!BW_ARRAY_RESERVE(group->volumes, group->volume_count, group->volume_room))
        return bw_error_no_memory();
    struct bw_lvm_volume *volume = &group->volumes[group->volume_count++];
    *volume = (struct bw_lvm_volume){.is_visible = has_word(parser, from, "status", "VISIBLE")};
    copy_text(volume->name, sizeof volume->name, from->name, from->name_length);
    return NULL;
}

static struct bw_error *add_area(const struct parser *parser, struct bw_lvm_group *group,
                                 const struct node *name, uint64_t extents)
{
    const struct name *found = name->kind == KIND_STRING ? find_name(parser, name) : NULL;
    if (!found || extents > INT64_MAX / group->extent)
        return bw_error_create(BW_ERROR_CORRUPT, "LVM metadata: there is no volume '%.*s'",
                               name->kind == KIND_STRING ? (int)name->length : 0,
                               name->kind == KIND_STRING ? name->text : "");
    if (!BW_ARRAY_RESERVE(group->areas, group->area_count, group->area_room))
        return bw_error_no_memory();
    struct bw_lvm_area *area = &group->areas[group->area_count++];
    *area = found->place;
    area->begin = extents * group->extent;
    area->state = SIZE_MAX;
    area->valid = UINT64_MAX;
    return NULL;
}

/* A list of pairs: a volume and the number of an extent. */
static struct bw_error *add_areas(const struct parser *parser, struct bw_lvm_group *group,
                                  const struct node *list)
{
    for (const struct node *at = first_of(parser, list); at;) {
        const struct node *extent = next_of(parser, at);
        if (!extent || extent->kind != KIND_NUMBER)
            return impossible_numbers("a segment");
        BW_TRY(add_area(parser, group, at, extent->number));
        at = next_of(parser, extent);
    }
    return NULL;
}

static void set_state(const struct parser *parser, struct bw_lvm_area *area,
                      const struct node *name)
{
    const struct name *found = name->kind == KIND_STRING ? find_name(parser, name) : NULL;
    if (found && found->place.is_logical)
        area->state = found->place.index;
}

/* A list of volumes; every second one if each follows the volume with its metadata. */
static struct bw_error *add_images(const struct parser *parser, struct bw_lvm_group *group,
                                   const struct node *list, bool has_metadata)
{
    for (const struct node *at = first_of(parser, list); at; at = next_of(parser, at)) {
        const struct node *image = has_metadata ? next_of(parser, at) : at;
        if (!image)
            return impossible_numbers("a segment");
        BW_TRY(add_area(parser, group, image, 0));
        if (has_metadata)
            set_state(parser, &group->areas[group->area_count - 1], at);
        at = image;
    }
    return NULL;
}

/* One name, in a thin volume; two, in a pool. */
static struct bw_error *add_named(const struct parser *parser, struct bw_lvm_group *group,
                                  const struct node *from, const char *name)
{
    const struct node *volume = member_of(parser, from, name);
    return volume ? add_area(parser, group, volume, 0) : impossible_numbers("a segment");
}

enum list_kind { LIST_EXTENTS, LIST_IMAGES, LIST_METADATA_AND_IMAGES, LIST_NAME };

/* The types of segments that are read, the list of their areas, and what it consists of. */
static const struct segment_type {
    const char *name, *list;
    enum list_kind kind;
    bool is_mirror;
} segment_types[] = {
    {"striped", "stripes", LIST_EXTENTS, false},
    {"linear", "stripes", LIST_EXTENTS, false},
    {"mirror", "mirrors", LIST_EXTENTS, true},
    {"raid1", "raids", LIST_METADATA_AND_IMAGES, true},
    {"raid0", "raid0_lvs", LIST_IMAGES, false},
    {"raid0_meta", "raids", LIST_METADATA_AND_IMAGES, false},
    {"thin", "thin_pool", LIST_NAME, false},
    {"thin-pool", "pool", LIST_NAME, false},
};

static struct bw_error *set_areas(const struct parser *parser, struct bw_lvm_group *group,
                                  const struct node *from, struct bw_lvm_segment *segment)
{
    segment->first_area = group->area_count;
    for (size_t i = 0; i < sizeof segment_types / sizeof *segment_types; i++) {
        const struct segment_type *type = &segment_types[i];
        if (strcmp(type->name, segment->type) != 0)
            continue;
        const struct node *list = member_of(parser, from, type->list);
        segment->is_known = true;
        segment->is_mirror = type->is_mirror;
        BW_TRY(type->kind == LIST_NAME ? add_named(parser, group, from, type->list)
               : type->kind == LIST_EXTENTS
                   ? add_areas(parser, group, list)
                   : add_images(parser, group, list, type->kind == LIST_METADATA_AND_IMAGES));
    }
    if (segment->is_pool)
        BW_TRY(add_named(parser, group, from, "metadata"));
    segment->area_count = group->area_count - segment->first_area;
    bool is_striped = segment->area_count > 1 && !segment->is_mirror && !segment->is_pool;
    return segment->is_known && (!segment->area_count || (is_striped && !segment->stripe) ||
                                 (segment->is_mirror && segment->area_count > MOST_COPIES))
               ? impossible_numbers("a segment")
               : NULL;
}

static struct bw_error *add_segment(const struct parser *parser, struct bw_lvm_group *group,
                                    struct bw_lvm_volume *volume, const struct node *from)
{
    const uint64_t begin = number_of(parser, from, "start_extent");
    const uint64_t count = number_of(parser, from, "extent_count");
    const uint64_t stripe = number_of(parser, from, "stripe_size");
    const uint64_t most = INT64_MAX / group->extent / 2;
    if (begin > most || count > most || stripe > UINT32_MAX || !count ||
        begin * group->extent != volume->size)
        return impossible_numbers(volume->name);
    struct bw_lvm_segment segment = {
        .begin = begin * group->extent, .length = count * group->extent, .stripe = stripe * SECTOR};
    copy_string(parser, from, "type", segment.type, sizeof segment.type);
    segment.is_thin = strcmp(segment.type, "thin") == 0;
    segment.is_pool = strcmp(segment.type, "thin-pool") == 0;
    segment.device = number_of(parser, from, "device_id");
    segment.chunk = number_of(parser, from, "chunk_size");
    if (segment.chunk > UINT32_MAX)
        return impossible_numbers(volume->name);
    segment.chunk *= SECTOR;
    if (segment.is_thin && member_of(parser, from, "external_origin"))
        copy_text(segment.type, sizeof segment.type, "thin with an external origin", 28);
    BW_TRY(set_areas(parser, group, from, &segment));
    if (!BW_ARRAY_RESERVE(group->segments, group->segment_count, group->segment_room))
        return bw_error_no_memory();
    group->segments[group->segment_count++] = segment;
    volume->segment_count++;
    volume->size += segment.length;
    return NULL;
}

/* The store of a snapshot has a name, but is not a device. */
static void mark_snapshot(const struct parser *parser, struct bw_lvm_group *group,
                          const struct node *from)
{
    const struct node *store = member_of(parser, from, "cow_store");
    const struct name *found =
        store && store->kind == KIND_STRING ? find_name(parser, store) : NULL;
    if (found && found->place.is_logical)
        group->volumes[found->place.index].is_snapshot = true;
}

static struct bw_error *add_segments(const struct parser *parser, struct bw_lvm_group *group,
                                     size_t index, const struct node *from)
{
    group->volumes[index].first_segment = group->segment_count;
    for (const struct node *at = first_of(parser, from); at; at = next_of(parser, at)) {
        if (at->kind != KIND_SECTION || strncmp(at->name, "segment", 7) != 0)
            continue;
        mark_snapshot(parser, group, at);
        BW_TRY(add_segment(parser, group, &group->volumes[index], at));
    }
    return NULL;
}

/* Members of sections have names, unlike those of lists. */
static bool is_section(const struct node *node)
{
    return !node || node->kind == KIND_SECTION;
}

static struct bw_error *fill_group(struct parser *parser, const struct node *from,
                                   struct bw_lvm_group *group)
{
    const struct node *physicals = member_of(parser, from, "physical_volumes");
    const struct node *volumes = member_of(parser, from, "logical_volumes");
    size_t index = 0;
    copy_text(group->name, sizeof group->name, from->name, from->name_length);
    copy_id(parser, from, group->id);
    group->number = number_of(parser, from, "seqno");
    const uint64_t extent = number_of(parser, from, "extent_size");
    if (!extent || extent > LARGEST_EXTENT)
        return impossible_numbers(group->name);
    group->extent = extent * SECTOR;
    if (!is_section(physicals) || !is_section(volumes))
        return impossible_numbers(group->name);
    for (const struct node *at = first_of(parser, physicals); at; at = next_of(parser, at))
        BW_TRY(add_physical(parser, group, at));
    for (const struct node *at = first_of(parser, volumes); at; at = next_of(parser, at))
        BW_TRY(add_volume(parser, group, at));
    sort_names(parser);
    for (const struct node *at = first_of(parser, volumes); at; at = next_of(parser, at))
        BW_TRY(add_segments(parser, group, index++, at));
    return NULL;
}

static void free_group(struct bw_lvm_group *group)
{
    free(group->physicals);
    free(group->volumes);
    free(group->segments);
    free(group->areas);
    *group = (struct bw_lvm_group){.number = 0};
}

/* The group is the only section with an extent size. */
static struct bw_error *parse_group(const char *text, size_t length, struct bw_lvm_group *group)
{
    struct parser parser = {.at = text, .end = text + length};
    uint32_t root;
    struct bw_error *error = add_node(&parser, &root);
    if (!error)
        error = parse_members(&parser, root);
    const struct node *section = error ? NULL : first_of(&parser, &parser.nodes[root]);
    while (section && !(section->kind == KIND_SECTION && member_of(&parser, section, "seqno")))
        section = next_of(&parser, section);
    if (!error)
        error = section ? fill_group(&parser, section, group)
                        : bw_error_create(BW_ERROR_CORRUPT, "LVM metadata without a group");
    free(parser.nodes);
    free(parser.names);
    return error;
}

/* Metadata areas. */

/* Reads a text. At the end of the ring, it continues after the header. */
static bool read_ring(const struct bw_frame *frame, struct bw_xlator *device,
                      const struct disk_area *area, char *text, uint64_t length)
{
    const uint64_t start = bw_get64(area->start), size = bw_get64(area->size);
    const uint64_t offset = bw_get64(area->current.offset);
    const uint64_t first = offset + length > size ? size - offset : length;
    return read_bytes(frame, device, start + offset, first, text) &&
           (first == length ||
            read_bytes(frame, device, start + SECTOR, length - first, text + first));
}

static bool is_area(const struct disk_area *area, uint64_t offset)
{
    static const char magic[16] = " LVM2 x[5A%r0N*>";
    const size_t covered = sizeof *area - sizeof area->checksum;
    const uint64_t size = bw_get64(area->size);
    return memcmp(area->magic, magic, sizeof magic) == 0 && bw_get64(area->start) == offset &&
           bw_get32(area->checksum) == checksum_of((const uint8_t *)area + 4, covered) &&
           size > SECTOR && size < INT64_MAX && bw_get64(area->current.offset) < size;
}

/* Replaces an older description of the same group. */
static struct bw_error *add_or_replace_group(struct bw_lvm_groups *groups,
                                             struct bw_lvm_group *found)
{
    for (size_t i = 0; i < groups->count; i++) {
        struct bw_lvm_group *known = &groups->groups[i];
        if (strcmp(known->id, found->id) != 0)
            continue;
        if (found->number > known->number) {
            struct bw_lvm_group older = *known;
            *known = *found;
            *found = older;
        }
        free_group(found);
        return NULL;
    }
    if (!BW_ARRAY_RESERVE(groups->groups, groups->count, groups->room)) {
        free_group(found);
        return bw_error_no_memory();
    }
    groups->groups[groups->count++] = *found;
    return NULL;
}

static struct bw_error *add_text(struct bw_lvm_groups *groups, const char *text, uint64_t length)
{
    struct bw_lvm_group found = {.number = 0};
    struct bw_error *error = parse_group(text, length, &found);
    groups->text_length += length;
    if (error)
        free_group(&found);
    return error ? error : add_or_replace_group(groups, &found);
}

static struct bw_error *read_area(const struct bw_frame *frame, struct bw_xlator *device,
                                  uint64_t offset, struct bw_lvm_groups *groups)
{
    struct disk_area area;
    if (!read_bytes(frame, device, offset, sizeof area, &area) || !is_area(&area, offset))
        return bw_error_create(BW_ERROR_CORRUPT, "the LVM metadata area at %" PRIu64 " is damaged",
                               offset);
    const uint64_t length = bw_get64(area.current.size);
    if (!length)
        return NULL; /* the physical volume is not in a group */
    BW_AUTO_FREE char *text = length <= LONGEST ? malloc(length) : NULL;
    if (length > LONGEST || length > bw_get64(area.size) - SECTOR)
        return impossible_numbers("a metadata area");
    if (!text)
        return bw_error_no_memory();
    if (!read_ring(frame, device, &area, text, length) ||
        checksum_of(text, length) != bw_get32(area.current.checksum))
        return bw_error_create(BW_ERROR_CORRUPT,
                               "the LVM metadata in the area at %" PRIu64 " are damaged", offset);
    return add_text(groups, text, length);
}

/* Reads the metadata areas that a label lists behind the data areas. */
static struct bw_error *read_areas(const struct bw_frame *frame, struct bw_xlator *device,
                                   struct bw_lvm_groups *groups)
{
    struct disk_label label;
    struct bw_error *error = NULL;
    if (!read_label(frame, device, &label))
        return bw_error_create(BW_ERROR_NOT_FOUND, "%s is not a physical volume of LVM",
                               bw_xlator_image(device));
    const size_t header = bw_get32(label.header);
    bool is_metadata = false;
    for (size_t at = header + offsetof(struct disk_physical, areas);
         at + sizeof((struct disk_physical){0}).areas[0] <= sizeof label;
         at += sizeof((struct disk_physical){0}).areas[0]) {
        bw_le64 offset;
        memcpy(&offset, (const uint8_t *)&label + at, sizeof offset);
        if (!bw_get64(offset) && is_metadata)
            break;
        if (!bw_get64(offset))
            is_metadata = true;
        else if (is_metadata)
            error = bw_error_first(error, read_area(frame, device, bw_get64(offset), groups));
    }
    return error;
}

/* Finds the devices of the physical volumes. */
static void set_layers(const struct bw_frame *frame, struct bw_xlator *const *devices, size_t count,
                       struct bw_lvm_groups *groups)
{
    for (size_t i = 0; i < count; i++) {
        char id[BW_LVM_ID + 1];
        if (!bw_lvm_find_label(frame, devices[i], id))
            continue;
        for (size_t k = 0; k < groups->count; k++)
            for (size_t p = 0; p < groups->groups[k].physical_count; p++)
                if (strcmp(groups->groups[k].physicals[p].id, id) == 0)
                    groups->groups[k].physicals[p].layer = devices[i];
    }
}

struct bw_error *bw_lvm_groups_read(const struct bw_frame *frame, struct bw_xlator *const *devices,
                                    size_t count, struct bw_lvm_groups *groups)
{
    struct bw_error *error = NULL;
    *groups = (struct bw_lvm_groups){.count = 0};
    for (size_t i = 0; i < count; i++)
        error = bw_error_first(error, read_areas(frame, devices[i], groups));
    set_layers(frame, devices, count, groups);
    if (error && groups->count && error->code != BW_ERROR_NO_MEMORY) {
        bw_error_free(error);
        error = NULL;
    }
    if (error || groups->count)
        return error;
    return bw_error_create(BW_ERROR_NOT_FOUND, "the physical volumes belong to no volume group");
}

void bw_lvm_groups_free(struct bw_lvm_groups *groups)
{
    for (size_t i = 0; i < groups->count; i++)
        free_group(&groups->groups[i]);
    free(groups->groups);
    *groups = (struct bw_lvm_groups){.count = 0};
}
