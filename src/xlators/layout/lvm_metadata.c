/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A label in one of the first four sectors leads to the metadata areas of a physical volume. Each
 * area is a ring of texts, of which a header at its beginning names the current one. A text
 * consists of sections ("vg0 { ... }") and values ("extent_size = 8192"): numbers, strings and
 * lists of both.
 *
 * All texts on all devices are read. Each is parsed into a tree of nodes, in one array, whose
 * strings stay in the text. The nodes of the group then become its volumes, segments and areas, so
 * that nothing else needs the tree. Of several descriptions of a group, the one with the highest
 * number is kept.
 *
 * Texts are as hostile as images, although they have a checksum: sections are nested to a limited
 * depth, and nodes and volumes are counted. Numbers are validated before they are multiplied.
 */
#include "xlators/layout/lvm_metadata.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/endian.h"
#include "base/hash_table.h"

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
    } areas[1]; /* data areas, then one with offset 0, then the metadata areas */
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

/* Labels. */

static bool read_label(struct bw_xlator *device, struct disk_label *label)
{
    for (uint64_t sector = 0; sector < LABELS; sector++) {
        const size_t covered = sizeof *label - offsetof(struct disk_label, header);
        if (bw_try_read_raw(NULL, device, sector * SECTOR, label, sizeof *label) &&
            memcmp(label->magic, "LABELONE", 8) == 0 && memcmp(label->type, "LVM2 001", 8) == 0 &&
            bw_get64(label->sector) == sector &&
            bw_get32(label->checksum) == checksum_of(&label->header, covered) &&
            bw_get32(label->header) >= 32 && bw_get32(label->header) < SECTOR - 64)
            return true;
    }
    return false;
}

bool bw_lvm_find_label(struct bw_xlator *device, char id[BW_LVM_ID + 1])
{
    struct disk_label label;
    if (!read_label(device, &label))
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
        const char *text; /* the bytes of a string */
        uint64_t number;
    };
    uint32_t length;
    uint32_t first, next; /* index of the first member, and of the next node; 0: none */
};

BW_VECTOR(nodes, struct node);

/* The volume with a name. */
struct named {
    bool is_logical;
    size_t index; /* SIZE_MAX: none */
};

BW_MAP(names, struct bw_bytes, struct named, bw_bytes);

struct parser {
    const char *at, *end;
    struct nodes nodes; /* the first one is the whole text, a section */
    struct names names;
};

static void parser_free(struct parser *parser)
{
    nodes_free(&parser->nodes);
    names_free(&parser->names);
}

static struct bw_error *syntax_error(const struct parser *parser, const char *problem)
{
    const size_t left = (size_t)(parser->end - parser->at);
    return bw_error_create(BW_ERROR_CORRUPT, "LVM metadata: %s at '%.*s'", problem,
                           left < 20 ? (int)left : 20, parser->at);
}

static bool is_digit(char letter)
{
    return letter >= '0' && letter <= '9';
}

/* Skips white space, NULs and comments. */
static void skip_space(struct parser *parser)
{
    const char *at = parser->at;
    for (; at < parser->end && (*at == ' ' || (*at >= '\t' && *at <= '\r') || !*at || *at == '#');
         at++)
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

/* Adds a node after the last member of a section or list; `*last` is 0 before the first one. */
static struct bw_error *add_member(struct parser *parser, uint32_t parent, uint32_t *last)
{
    struct nodes *nodes = &parser->nodes;
    const uint32_t member = (uint32_t)nodes->count;
    if (member == MOST_NODES)
        return syntax_error(parser, "too many values");
    BW_TRY(nodes_push(nodes, (struct node){.kind = KIND_SECTION}));
    if (*last)
        nodes->items[*last].next = member;
    else
        nodes->items[parent].first = member;
    *last = member;
    return NULL;
}

/* Parses a string or a number. */
static struct bw_error *parse_scalar(struct parser *parser, uint32_t index)
{
    struct node *node = &parser->nodes.items[index];
    if (skip_character(parser, '"')) {
        /* Escapes occur in descriptions only, so their backslashes stay. */
        node->kind = KIND_STRING;
        node->text = parser->at;
        while (parser->at < parser->end && *parser->at != '"') {
            if (*parser->at == '\\' && parser->at + 1 < parser->end)
                parser->at++;
            parser->at++;
        }
        if (parser->at >= parser->end)
            return syntax_error(parser, "an open string");
        node->length = (uint32_t)(parser->at++ - node->text);
        return NULL;
    }
    if (parser->at >= parser->end || (!is_digit(*parser->at) && *parser->at != '-'))
        return syntax_error(parser, "no value");
    node->kind = KIND_NUMBER;
    const bool is_negative = skip_character(parser, '-');
    while (parser->at < parser->end && is_digit(*parser->at)) {
        const unsigned digit = (unsigned)(*parser->at++ - '0');
        if (node->number > (UINT64_MAX - digit) / 10)
            return syntax_error(parser, "a number that is too large");
        node->number = node->number * 10 + digit;
    }
    if (is_negative)
        node->number = -node->number;
    return NULL;
}

static bool is_name(char letter)
{
    const char lower = (char)(letter | 0x20);
    return (lower >= 'a' && lower <= 'z') || is_digit(letter) ||
           (letter && strchr("_.+-/@", letter));
}

/*
 * Parses the members of a section, up to its end or the end of the text:
 *
 *     members = { NAME "=" value | NAME "{" members "}" }
 *     value   = scalar | "[" [ scalar { "," scalar } [ "," ] ] "]"
 *     scalar  = STRING | NUMBER
 */
static struct bw_error *parse_members(struct parser *parser, uint32_t section, unsigned depth)
{
    uint32_t member = 0;
    for (;;) {
        skip_space(parser);
        if (parser->at >= parser->end || *parser->at == '}')
            return NULL;
        BW_TRY(add_member(parser, section, &member));
        struct node *node = &parser->nodes.items[member];
        node->name = parser->at;
        while (parser->at < parser->end && is_name(*parser->at))
            parser->at++;
        node->name_length = (uint32_t)(parser->at - node->name);
        if (!node->name_length)
            return syntax_error(parser, "no name");

        if (!skip_character(parser, '=')) {
            if (!skip_character(parser, '{') || depth == DEEPEST)
                return syntax_error(parser, "no section");
            BW_TRY(parse_members(parser, member, depth + 1));
            if (!skip_character(parser, '}'))
                return syntax_error(parser, "an open section");
            continue;
        }
        if (!skip_character(parser, '[')) {
            BW_TRY(parse_scalar(parser, member));
            continue;
        }
        node->kind = KIND_LIST;
        for (uint32_t element = 0; !skip_character(parser, ']');) {
            BW_TRY(add_member(parser, member, &element));
            BW_TRY(parse_scalar(parser, element));
            if (!skip_character(parser, ',') && (parser->at >= parser->end || *parser->at != ']'))
                return syntax_error(parser, "no comma");
        }
    }
}

static const struct node *first_of(const struct parser *parser, const struct node *node)
{
    return node && node->first ? &parser->nodes.items[node->first] : NULL;
}

static const struct node *next_of(const struct parser *parser, const struct node *node)
{
    return node->next ? &parser->nodes.items[node->next] : NULL;
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
    if (length >= size)
        length = size - 1;
    const size_t copied = strnlen(text, length);
    memcpy(to, text, copied);
    to[copied] = '\0';
}

static void copy_string(const struct parser *parser, const struct node *section, const char *name,
                        char *to, size_t size)
{
    const struct node *member = member_of(parser, section, name);
    to[0] = '\0';
    if (member && member->kind == KIND_STRING)
        copy_text(to, size, member->text, member->length);
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

/* The group. */

static struct bw_error *impossible_numbers(const char *section)
{
    return bw_error_create(BW_ERROR_CORRUPT, "LVM metadata: impossible numbers in %s", section);
}

/* If a name occurs several times, the first volume with it counts, and logical ones come first. */
static struct bw_error *add_name(struct parser *parser, const struct node *from,
                                 struct named volume)
{
    const struct bw_bytes name = {from->name, from->name_length};
    if (volume.index == MOST_VOLUMES)
        return bw_error_create(BW_ERROR_CORRUPT, "LVM metadata: more than %u volumes",
                               MOST_VOLUMES);
    const struct named known = names_get(&parser->names, name, (struct named){false, SIZE_MAX});
    if (known.index != SIZE_MAX && (known.is_logical || !volume.is_logical))
        return NULL;
    return names_put(&parser->names, name, volume);
}

/* The volume whose name a node contains. */
static struct named find_name(const struct parser *parser, const struct node *node)
{
    const struct named none = {false, SIZE_MAX};
    if (!node || node->kind != KIND_STRING)
        return none;
    return names_get(&parser->names, (struct bw_bytes){node->text, node->length}, none);
}

/* Adds an area of a segment, in the volume with this name. */
static struct bw_error *add_area(const struct parser *parser, struct bw_lvm_group *group,
                                 const struct node *name, uint64_t extents)
{
    const struct named volume = find_name(parser, name);
    if (!name)
        return impossible_numbers("a segment");
    if (name->kind != KIND_STRING)
        return bw_error_create(BW_ERROR_CORRUPT, "LVM metadata: there is no volume ''");
    if (volume.index == SIZE_MAX || extents > INT64_MAX / group->extent)
        return bw_error_create(BW_ERROR_CORRUPT, "LVM metadata: there is no volume '%.*s'",
                               (int)name->length, name->text);
    return bw_lvm_areas_push(&group->areas, (struct bw_lvm_area){.is_logical = volume.is_logical,
                                                                 .index = volume.index,
                                                                 .begin = extents * group->extent,
                                                                 .metadata = SIZE_MAX,
                                                                 .valid = UINT64_MAX});
}

/* The elements of the list of a segment's areas: pairs of a volume and the number of an extent;
 * volumes; pairs of a volume with metadata and the volume with its data; or one name, without a
 * list. */
enum list_kind { LIST_EXTENTS, LIST_IMAGES, LIST_METADATA_AND_IMAGES, LIST_NAME };

/* The types of segments that are read, and the list of their areas. */
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

/* Adds a segment at the end of a volume. The areas of a type that is not read are not needed. */
static struct bw_error *add_segment(const struct parser *parser, struct bw_lvm_group *group,
                                    struct bw_lvm_volume *volume, const struct node *from)
{
    const uint64_t begin = number_of(parser, from, "start_extent");
    const uint64_t count = number_of(parser, from, "extent_count");
    const uint64_t stripe = number_of(parser, from, "stripe_size");
    const uint64_t chunk = number_of(parser, from, "chunk_size");
    const uint64_t most = INT64_MAX / group->extent / 2;
    if (begin > most || count > most || stripe > UINT32_MAX || !count || chunk > UINT32_MAX ||
        begin * group->extent != volume->size)
        return impossible_numbers(volume->name);
    BW_TRY(
        bw_lvm_segments_push(&group->segments, (struct bw_lvm_segment){
                                                   .begin = begin * group->extent,
                                                   .length = count * group->extent,
                                                   .stripe = stripe * SECTOR,
                                                   .chunk = chunk * SECTOR,
                                                   .device = number_of(parser, from, "device_id"),
                                                   .first_area = group->areas.count,
                                               }));
    struct bw_lvm_segment *segment = &group->segments.items[group->segments.count - 1];
    volume->segment_count++;
    volume->size += segment->length;
    copy_string(parser, from, "type", segment->type, sizeof segment->type);
    segment->is_thin = strcmp(segment->type, "thin") == 0;
    segment->is_pool = strcmp(segment->type, "thin-pool") == 0;
    if (segment->is_thin && member_of(parser, from, "external_origin"))
        copy_text(segment->type, sizeof segment->type, "thin with an external origin", 28);

    const struct segment_type *type = segment_types;
    const struct segment_type *end = type + sizeof segment_types / sizeof *segment_types;
    while (type < end && strcmp(type->name, segment->type) != 0)
        type++;
    if (type == end)
        return NULL;
    segment->is_known = true;
    segment->is_mirror = type->is_mirror;

    const struct node *list = member_of(parser, from, type->list);
    if (type->kind == LIST_NAME) {
        BW_TRY(add_area(parser, group, list, 0));
        list = NULL;
    }
    for (const struct node *at = first_of(parser, list); at; at = next_of(parser, at)) {
        const struct node *first = at;
        if (type->kind != LIST_IMAGES)
            at = next_of(parser, at);
        if (!at || (type->kind == LIST_EXTENTS && at->kind != KIND_NUMBER))
            return impossible_numbers("a segment");
        if (type->kind == LIST_EXTENTS) {
            BW_TRY(add_area(parser, group, first, at->number));
            continue;
        }
        BW_TRY(add_area(parser, group, at, 0));
        const struct named metadata = find_name(parser, first);
        if (type->kind == LIST_METADATA_AND_IMAGES && metadata.is_logical)
            group->areas.items[group->areas.count - 1].metadata = metadata.index;
    }
    if (segment->is_pool)
        BW_TRY(add_area(parser, group, member_of(parser, from, "metadata"), 0));

    segment->area_count = group->areas.count - segment->first_area;
    const bool is_striped = segment->area_count > 1 && !segment->is_mirror && !segment->is_pool;
    if (!segment->area_count || (is_striped && !segment->stripe) ||
        (segment->is_mirror && segment->area_count > MOST_COPIES))
        return impossible_numbers("a segment");
    return NULL;
}

static void bw_lvm_group_free(struct bw_lvm_group *group)
{
    bw_lvm_physicals_free(&group->physicals);
    bw_lvm_volumes_free(&group->volumes);
    bw_lvm_segments_free(&group->segments);
    bw_lvm_areas_free(&group->areas);
}

/* Adds the group that a text describes, or replaces an older description of it. The group is the
 * only section with a sequence number. */
static struct bw_error *add_group(struct bw_lvm_groups *groups, const char *text, size_t length)
{
    BW_SCOPED(parser) struct parser parser = {.at = text, .end = text + length};
    BW_SCOPED(bw_lvm_group) struct bw_lvm_group group = {.number = 0};
    BW_TRY(nodes_push(&parser.nodes, (struct node){.kind = KIND_SECTION}));
    BW_TRY(parse_members(&parser, 0, 0));
    const struct node *from = first_of(&parser, parser.nodes.items);
    while (from && !(from->kind == KIND_SECTION && member_of(&parser, from, "seqno")))
        from = next_of(&parser, from);
    if (!from)
        return bw_error_create(BW_ERROR_CORRUPT, "LVM metadata without a group");

    copy_text(group.name, sizeof group.name, from->name, from->name_length);
    copy_id(&parser, from, group.id);
    group.number = number_of(&parser, from, "seqno");
    const uint64_t extent = number_of(&parser, from, "extent_size");
    const struct node *physicals = member_of(&parser, from, "physical_volumes");
    const struct node *volumes = member_of(&parser, from, "logical_volumes");
    /* Members of sections have names, unlike the elements of lists. */
    if (!extent || extent > LARGEST_EXTENT || (physicals && physicals->kind != KIND_SECTION) ||
        (volumes && volumes->kind != KIND_SECTION))
        return impossible_numbers(group.name);
    group.extent = extent * SECTOR;

    for (const struct node *at = first_of(&parser, physicals); at; at = next_of(&parser, at)) {
        const uint64_t begin = number_of(&parser, at, "pe_start");
        struct bw_lvm_physical physical = {.begin = begin * SECTOR};
        BW_TRY(add_name(&parser, at, (struct named){false, group.physicals.count}));
        copy_text(physical.name, sizeof physical.name, at->name, at->name_length);
        copy_id(&parser, at, physical.id);
        copy_string(&parser, at, "device", physical.device, sizeof physical.device);
        if (begin > INT64_MAX / SECTOR)
            return impossible_numbers(physical.name);
        BW_TRY(bw_lvm_physicals_push(&group.physicals, physical));
    }

    /* All names, before the first segment refers to them. */
    for (const struct node *at = first_of(&parser, volumes); at; at = next_of(&parser, at)) {
        struct bw_lvm_volume volume = {.size = 0};
        BW_TRY(add_name(&parser, at, (struct named){true, group.volumes.count}));
        copy_text(volume.name, sizeof volume.name, at->name, at->name_length);
        const struct node *word = first_of(&parser, member_of(&parser, at, "status"));
        for (; word; word = next_of(&parser, word))
            if (word->kind == KIND_STRING && word->length == 7 &&
                memcmp(word->text, "VISIBLE", 7) == 0)
                volume.is_visible = true;
        BW_TRY(bw_lvm_volumes_push(&group.volumes, volume));
    }

    struct bw_lvm_volume *volume = group.volumes.items;
    for (const struct node *at = first_of(&parser, volumes); at; at = next_of(&parser, at)) {
        const struct node *segment = first_of(&parser, at);
        volume->first_segment = group.segments.count;
        for (; segment; segment = next_of(&parser, segment)) {
            if (segment->kind != KIND_SECTION || strncmp(segment->name, "segment", 7) != 0)
                continue;
            /* The store of a snapshot has a name, but is not a device. */
            const struct named store = find_name(&parser, member_of(&parser, segment, "cow_store"));
            if (store.is_logical) {
                struct bw_lvm_volume *snapshot = &group.volumes.items[store.index];
                const struct node *origin = member_of(&parser, segment, "origin");
                snapshot->is_snapshot = true;
                if (origin && origin->kind == KIND_STRING)
                    copy_text(snapshot->origin, sizeof snapshot->origin, origin->text,
                              origin->length);
            }
            BW_TRY(add_segment(&parser, &group, volume, segment));
        }
        volume++;
    }

    for (size_t i = 0; i < groups->list.count; i++) {
        const struct bw_lvm_group known = groups->list.items[i];
        if (strcmp(known.id, group.id) != 0)
            continue;
        if (group.number > known.number) {
            groups->list.items[i] = group;
            group = known;
        }
        return NULL;
    }
    BW_TRY(bw_lvm_group_list_push(&groups->list, group));
    group = (struct bw_lvm_group){.number = 0};
    return NULL;
}

/* Metadata areas. */

/* Adds the group in the current text of a metadata area. The area has no text if its physical
 * volume is not in a group. */
static struct bw_error *read_area(struct bw_xlator *device, uint64_t offset,
                                  struct bw_lvm_groups *groups)
{
    static const char magic[16] = " LVM2 x[5A%r0N*>";
    struct disk_area area;
    const size_t covered = sizeof area - offsetof(struct disk_area, magic);
    const bool is_valid = bw_try_read_raw(NULL, device, offset, &area, sizeof area) &&
                          memcmp(area.magic, magic, sizeof magic) == 0 &&
                          bw_get64(area.start) == offset &&
                          bw_get32(area.checksum) == checksum_of(area.magic, covered) &&
                          bw_get64(area.size) > SECTOR && bw_get64(area.size) < INT64_MAX &&
                          bw_get64(area.current.offset) < bw_get64(area.size);
    if (!is_valid)
        return bw_error_create(BW_ERROR_CORRUPT, "the LVM metadata area at %" PRIu64 " is damaged",
                               offset);
    const uint64_t length = bw_get64(area.current.size), size = bw_get64(area.size);
    if (!length)
        return NULL;
    if (length > LONGEST || length > size - SECTOR)
        return impossible_numbers("a metadata area");
    BW_AUTO_FREE char *text = malloc(length);
    if (!text)
        return bw_error_no_memory();
    /* At the end of the ring, the text continues after the header. */
    const uint64_t start = bw_get64(area.start), begin = bw_get64(area.current.offset);
    const uint64_t first = begin + length > size ? size - begin : length;
    if (!bw_try_read_raw(NULL, device, start + begin, text, first) ||
        (first < length &&
         !bw_try_read_raw(NULL, device, start + SECTOR, text + first, length - first)) ||
        checksum_of(text, length) != bw_get32(area.current.checksum))
        return bw_error_create(BW_ERROR_CORRUPT,
                               "the LVM metadata in the area at %" PRIu64 " are damaged", offset);
    groups->text_length += length;
    return add_group(groups, text, length);
}

struct bw_error *bw_lvm_groups_read(struct bw_xlator *const *devices, size_t count,
                                    struct bw_lvm_groups *groups)
{
    struct bw_error *error = NULL;
    *groups = (struct bw_lvm_groups){.text_length = 0};
    for (size_t i = 0; i < count; i++) {
        struct disk_label label;
        if (!read_label(devices[i], &label)) {
            error = bw_error_first(error, bw_error_create(BW_ERROR_NOT_FOUND,
                                                          "%s is not a physical volume of LVM",
                                                          bw_xlator_image(devices[i])));
            continue;
        }
        /* The label lists data areas and metadata areas; an offset of 0 ends each list. */
        const size_t size = sizeof((struct disk_physical){0}).areas[0];
        size_t at = bw_get32(label.header) + offsetof(struct disk_physical, areas);
        for (unsigned lists = 0; lists < 2 && at + size <= sizeof label; at += size) {
            bw_le64 offset;
            memcpy(&offset, (const uint8_t *)&label + at, sizeof offset);
            if (!bw_get64(offset))
                lists++;
            else if (lists)
                error = bw_error_first(error, read_area(devices[i], bw_get64(offset), groups));
        }
    }

    /* The devices of the physical volumes. */
    for (size_t i = 0; i < count; i++) {
        char id[BW_LVM_ID + 1];
        if (!bw_lvm_find_label(devices[i], id))
            continue;
        for (size_t k = 0; k < groups->list.count; k++) {
            struct bw_lvm_physicals *physicals = &groups->list.items[k].physicals;
            for (size_t p = 0; p < physicals->count; p++)
                if (strcmp(physicals->items[p].id, id) == 0)
                    physicals->items[p].layer = devices[i];
        }
    }

    if (error && groups->list.count && error->code != BW_ERROR_NO_MEMORY) {
        bw_error_free(error);
        error = NULL;
    }
    if (error || groups->list.count)
        return error;
    return bw_error_create(BW_ERROR_NOT_FOUND, "the physical volumes belong to no volume group");
}

void bw_lvm_groups_free(struct bw_lvm_groups *groups)
{
    for (size_t i = 0; i < groups->list.count; i++)
        bw_lvm_group_free(&groups->list.items[i]);
    bw_lvm_group_list_free(&groups->list);
}
