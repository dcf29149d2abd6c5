/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file of a baseline, and searches in it. The file has numbers in little-endian order: a magic,
 * what the file system must be like, then the lists, each after its length, and a checksum of all
 * this at the end. Nothing of it is used unless the checksum is right, and even then no length may
 * exceed the rest of the file.
 */
#include "check/baseline.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "btrfs-walk/tree.h"

static const char magic[16] = "bw baseline 001\n";

struct bw_error *bw_baseline_create(struct bw_baseline **result)
{
    *result = calloc(1, sizeof **result);
    if (!*result)
        return bw_error_no_memory();
    pthread_mutex_init(&(*result)->lock, NULL);
    return NULL;
}

void bw_baseline_free(struct bw_baseline *baseline)
{
    if (!baseline)
        return;
    for (size_t i = 0; i < baseline->findings.count; i++) {
        free(baseline->findings.items[i].bytes);
        free(baseline->findings.items[i].paths);
    }
    bw_known_findings_free(&baseline->findings);
    bw_known_leaves_free(&baseline->leaves);
    bw_key_map_free(&baseline->by_address);
    bw_known_groups_free(&baseline->groups);
    bw_range_set_free(&baseline->unsummed);
    bw_range_set_free(&baseline->bad_data);
    bw_numbers_free(&baseline->full_backrefs);
    bw_numbers_free(&baseline->shared_blocks);
    pthread_mutex_destroy(&baseline->lock);
    free(baseline);
}

struct bw_baseline_info bw_baseline_info(const struct bw_baseline *baseline)
{
    struct bw_baseline_info info = {.generation = baseline->generation,
                                    .time = (int64_t)baseline->time,
                                    .findings = baseline->findings.count,
                                    .finished = baseline->finished,
                                    .has_data = baseline->has_data};
    memcpy(info.fsid, baseline->fsid, sizeof info.fsid);
    return info;
}

struct bw_error *bw_baseline_add_leaf(struct bw_baseline *baseline,
                                      const struct bw_known_leaf *leaf)
{
    pthread_mutex_lock(&baseline->lock);
    struct bw_error *error = bw_known_leaves_push(&baseline->leaves, *leaf);
    pthread_mutex_unlock(&baseline->lock);
    return error;
}

const struct bw_known_leaf *bw_baseline_leaf(const struct bw_baseline *baseline, uint64_t bytenr,
                                             uint64_t generation)
{
    const uint32_t number = bw_key_map_get(&baseline->by_address, bytenr, UINT32_MAX);
    if (number == UINT32_MAX || baseline->leaves.items[number].generation != generation)
        return NULL;
    return &baseline->leaves.items[number];
}

const struct bw_known_group *bw_baseline_group(const struct bw_baseline *baseline, uint64_t start)
{
    const struct bw_known_group *groups = baseline->groups.items;
    const size_t i = BW_FIRST_INDEX(k, baseline->groups.count, groups[k].start >= start);
    return i < baseline->groups.count && groups[i].start == start ? &groups[i] : NULL;
}

uint64_t bw_finding_identity(const struct bw_findinginfo *row)
{
    const uint64_t numbers[] = {row->tree,    row->key.objectid, row->key.type, row->key.offset,
                                row->logical, row->devid,        row->offset,   row->mirror,
                                row->inode,   row->file_offset};
    return XXH3_64bits_withSeed(numbers, sizeof numbers, XXH3_64bits(row->code, strlen(row->code)));
}

/* Completes a finding that has the numbers of its row: the texts. `bytes` is taken over; it has the
 * message and `count` paths, each followed by a NUL. */
static struct bw_error *push_finding(struct bw_baseline *baseline, struct bw_findinginfo row,
                                     char *bytes, const size_t *lengths, size_t count)
{
    struct bw_known_finding finding = {.row = row, .bytes = bytes};
    finding.paths = calloc(count + 1, sizeof *finding.paths);
    struct bw_error *error = bw_known_findings_reserve(&baseline->findings, 1);
    if (!finding.paths || error) {
        free(bytes);
        free(finding.paths);
        return error ? error : bw_error_no_memory();
    }
    const char *next = bytes + strlen(bytes) + 1;
    for (size_t i = 0; i < count; i++) {
        finding.paths[i] = (struct bw_bytes){next, lengths[i]};
        next += lengths[i] + 1;
    }
    finding.row.message = bytes;
    finding.row.paths = (struct bw_names){finding.paths, count};
    finding.row.tree_name = NULL;
    finding.row.device = (struct bw_bytes){0};
    finding.identity = bw_finding_identity(&finding.row);
    baseline->findings.items[baseline->findings.count++] = finding;
    return NULL;
}

struct bw_error *bw_baseline_add_finding(struct bw_baseline *baseline,
                                         const struct bw_findinginfo *row)
{
    BW_AUTO_BUFFER struct bw_buffer bytes = {0};
    BW_AUTO_FREE size_t *lengths = calloc(row->paths.length + 1, sizeof *lengths);
    bw_buffer_append(&bytes, row->message, strlen(row->message) + 1);
    for (size_t i = 0; i < row->paths.length; i++) {
        bw_buffer_append(&bytes, row->paths.data[i].data, row->paths.data[i].length);
        bw_buffer_append_byte(&bytes, '\0');
        if (lengths)
            lengths[i] = row->paths.data[i].length;
    }
    if (bytes.failed || !lengths)
        return bw_error_no_memory();
    return push_finding(baseline, *row, BW_TAKE(bytes.data), lengths, row->paths.length);
}

/* The numbers of a baseline, of a leaf, of its sums and of a finding, in the order of the file. */
#define BASELINE_NUMBERS(baseline)                                                            \
    {                                                                                         \
        &(baseline)->generation, &(baseline)->incompat, &(baseline)->compat_ro,               \
            &(baseline)->nodesize, &(baseline)->sectorsize, &(baseline)->replaced,            \
            &(baseline)->seed, &(baseline)->time, &(baseline)->blocks, &(baseline)->finished, \
            &(baseline)->has_data, &(baseline)->findings_hidden, NULL                         \
    }
#define LEAF_NUMBERS(leaf)                                                              \
    {                                                                                   \
        &(leaf)->bytenr, &(leaf)->generation, &(leaf)->owner, &(leaf)->references, NULL \
    }
#define SUM_NUMBERS(sums)                                                                        \
    {                                                                                            \
        &(sums)->total, &(sums)->parents, &(sums)->first_inode, &(sums)->first_start,            \
            &(sums)->first_gap, &(sums)->last_inode, &(sums)->last_end, &(sums)->last_size, NULL \
    }
#define ROW_NUMBERS(row)                                                                          \
    {                                                                                             \
        &(row)->tree, &(row)->key.objectid, &(row)->key.offset, &(row)->logical, &(row)->length,  \
            &(row)->devid, &(row)->offset, &(row)->mirror, &(row)->inode, &(row)->file_offset,    \
            &(row)->file_length, &(row)->repairable, &(row)->more_paths, &(row)->more_subvolumes, \
            NULL                                                                                  \
    }

/* Writing. */

static void put(struct bw_buffer *file, uint64_t number)
{
    const bw_le64 bytes = bw_put64(number);
    bw_buffer_append(file, &bytes, sizeof bytes);
}

static void put_all(struct bw_buffer *file, const uint64_t *const *numbers)
{
    while (*numbers)
        put(file, **numbers++);
}

static void put_numbers(struct bw_buffer *file, const struct bw_numbers *numbers)
{
    put(file, numbers->count);
    for (size_t i = 0; i < numbers->count; i++)
        put(file, numbers->items[i]);
}

static void put_ranges(struct bw_buffer *file, const struct bw_range_set *set)
{
    put(file, set->ranges.count);
    for (size_t i = 0; i < set->ranges.count; i++) {
        put(file, set->ranges.items[i].start);
        put(file, set->ranges.items[i].end);
    }
}

static void put_leaf(struct bw_buffer *file, const struct bw_known_leaf *leaf)
{
    const struct bw_inode_sums *sums = &leaf->sums;
    put_all(file, (const uint64_t *[])LEAF_NUMBERS(leaf));
    put(file, (uint64_t)leaf->checksum << 32 | (uint64_t)leaf->synology << 16 | leaf->facts);
    if (!(leaf->facts & BW_LEAF_HAS_SUMS))
        return;
    put_all(file, (const uint64_t *[])SUM_NUMBERS(sums));
    put(file, (uint64_t)sums->first_stored << 48 | (uint64_t)sums->last_most << 32 |
                  (uint64_t)sums->first_nul << 16 | sums->last_type);
}

static void put_finding(struct bw_buffer *file, const struct bw_findinginfo *row)
{
    put(file, strlen(row->code));
    bw_buffer_append(file, row->code, strlen(row->code));
    put(file, row->key.type);
    put_all(file, (const uint64_t *[])ROW_NUMBERS(row));
    put(file, strlen(row->message));
    bw_buffer_append(file, row->message, strlen(row->message));
    put(file, row->paths.length);
    for (size_t i = 0; i < row->paths.length; i++) {
        put(file, row->paths.data[i].length);
        bw_buffer_append(file, row->paths.data[i].data, row->paths.data[i].length);
    }
}

struct bw_error *bw_baseline_write(const struct bw_baseline *baseline,
                                   bw_baseline_consumer *consume, void *context)
{
    BW_AUTO_BUFFER struct bw_buffer file = {0};
    bw_buffer_append(&file, magic, sizeof magic);
    bw_buffer_append(&file, baseline->fsid, sizeof baseline->fsid);
    put_all(&file, (const uint64_t *[])BASELINE_NUMBERS(baseline));
    put(&file, baseline->leaves.count);
    for (size_t i = 0; i < baseline->leaves.count; i++)
        put_leaf(&file, &baseline->leaves.items[i]);
    put(&file, baseline->groups.count);
    for (size_t i = 0; i < baseline->groups.count; i++) {
        const struct bw_known_group *group = &baseline->groups.items[i];
        put(&file, group->start);
        put(&file, group->length);
        put(&file, group->used);
        put(&file, group->flags);
        put(&file, group->leaves);
        put(&file, group->references);
    }
    put_ranges(&file, &baseline->unsummed);
    put_numbers(&file, &baseline->full_backrefs);
    put_numbers(&file, &baseline->shared_blocks);
    put_ranges(&file, &baseline->bad_data);
    put(&file, baseline->findings.count);
    for (size_t i = 0; i < baseline->findings.count; i++)
        put_finding(&file, &baseline->findings.items[i].row);
    if (file.failed)
        return bw_error_no_memory();
    put(&file, XXH3_64bits(file.data, file.length));
    return file.failed ? bw_error_no_memory() : consume(context, file.data, file.length);
}

/* Reading. A number behind the end is 0, and the cursor is then bad. */

static uint64_t get(struct bw_cursor *file)
{
    bw_le64 number = {0};
    const uint8_t *bytes = bw_cursor_take(file, sizeof number);
    if (bytes)
        memcpy(&number, bytes, sizeof number);
    return bw_get64(number);
}

static void get_all(struct bw_cursor *file, uint64_t *const *numbers)
{
    while (*numbers)
        **numbers++ = get(file);
}

/* The length of a list whose members have at least so many bytes. */
static size_t get_count(struct bw_cursor *file, size_t size)
{
    const uint64_t count = get(file);
    file->bad |= count > (size_t)(file->end - file->next) / size;
    return file->bad ? 0 : (size_t)count;
}

static struct bw_error *get_numbers(struct bw_cursor *file, struct bw_numbers *numbers)
{
    uint64_t last = 0;
    for (size_t left = get_count(file, sizeof(bw_le64)); left; left--) {
        const uint64_t number = get(file);
        file->bad |= number < last;
        last = number;
        BW_TRY(bw_numbers_push(numbers, number));
    }
    return NULL;
}

static struct bw_error *get_ranges(struct bw_cursor *file, struct bw_range_set *set)
{
    for (size_t left = get_count(file, 2 * sizeof(bw_le64)); left; left--) {
        const uint64_t start = get(file), end = get(file);
        file->bad |= start >= end;
        if (!file->bad)
            BW_TRY(bw_range_set_insert(set, start, end));
    }
    bw_range_set_join(set);
    return NULL;
}

static struct bw_error *get_leaf(struct bw_cursor *file, struct bw_baseline *baseline)
{
    struct bw_known_leaf leaf = {0};
    struct bw_inode_sums *sums = &leaf.sums;
    get_all(file, (uint64_t *[])LEAF_NUMBERS(&leaf));
    const uint64_t rest = get(file);
    leaf.checksum = (uint32_t)(rest >> 32);
    leaf.synology = (uint16_t)(rest >> 16);
    leaf.facts = (uint8_t)rest;
    if (leaf.facts & BW_LEAF_HAS_SUMS) {
        get_all(file, (uint64_t *[])SUM_NUMBERS(sums));
        const uint64_t small = get(file);
        sums->first_stored = (uint16_t)(small >> 48);
        sums->last_most = (uint16_t)(small >> 32);
        sums->first_nul = (uint16_t)(small >> 16);
        sums->last_type = (uint8_t)small;
    }
    BW_TRY(bw_key_map_put(&baseline->by_address, leaf.bytenr, (uint32_t)baseline->leaves.count));
    return bw_known_leaves_push(&baseline->leaves, leaf);
}

static struct bw_error *get_finding(struct bw_cursor *file, struct bw_baseline *baseline)
{
    struct bw_findinginfo row;
    bw_record_clear(bw_record_find("findinginfo"), &row);
    BW_AUTO_BUFFER struct bw_buffer bytes = {0};

    /* The code: one that this version has, too. */
    char word[64] = "";
    size_t length = get_count(file, 1);
    const uint8_t *text = bw_cursor_take(file, length);
    if (text && length < sizeof word)
        memcpy(word, text, length);
    const struct bw_finding_code *code = bw_finding_code_find(word);
    const uint64_t type = get(file);
    get_all(file, (uint64_t *[])ROW_NUMBERS(&row));
    row.key.type = (uint8_t)type;

    /* The texts. The message is printed unescaped, so it must not control a terminal. */
    length = get_count(file, 1);
    text = bw_cursor_take(file, length);
    for (size_t i = 0; text && i < length; i++)
        file->bad |= text[i] < ' ' || text[i] == 0x7f;
    if (text && !file->bad)
        bw_buffer_append(&bytes, text, length);
    bw_buffer_append_byte(&bytes, '\0');
    const size_t count = get_count(file, sizeof(bw_le64));
    BW_AUTO_FREE size_t *lengths = calloc(count + 1, sizeof *lengths);
    for (size_t i = 0; lengths && i < count; i++) {
        lengths[i] = get_count(file, 1);
        text = bw_cursor_take(file, lengths[i]);
        if (text)
            bw_buffer_append(&bytes, text, lengths[i]);
        bw_buffer_append_byte(&bytes, '\0');
    }
    if (bytes.failed || !lengths)
        return bw_error_no_memory();
    if (file->bad || !code)
        return NULL;
    row.code = code->word;
    row.pass = code->pass;
    row.severity = bw_finding_severity_name(code->severity);
    return push_finding(baseline, row, BW_TAKE(bytes.data), lengths, count);
}

/* Reads everything behind the magic; whether that was possible is in the cursor. */
static struct bw_error *get_baseline(struct bw_cursor *file, struct bw_baseline *baseline)
{
    const uint8_t *fsid = bw_cursor_take(file, sizeof baseline->fsid);
    if (fsid)
        memcpy(baseline->fsid, fsid, sizeof baseline->fsid);
    get_all(file, (uint64_t *[])BASELINE_NUMBERS(baseline));
    for (size_t left = get_count(file, 5 * sizeof(bw_le64)); left && !file->bad; left--)
        BW_TRY(get_leaf(file, baseline));
    for (size_t left = get_count(file, 6 * sizeof(bw_le64)); left; left--) {
        const uint64_t start = get(file), length = get(file), used = get(file), flags = get(file);
        const uint64_t leaves = get(file), references = get(file);
        BW_TRY(bw_known_groups_push(
            &baseline->groups,
            (struct bw_known_group){start, length, used, flags, leaves, references}));
    }
    BW_TRY(get_ranges(file, &baseline->unsummed));
    BW_TRY(get_numbers(file, &baseline->full_backrefs));
    BW_TRY(get_numbers(file, &baseline->shared_blocks));
    BW_TRY(get_ranges(file, &baseline->bad_data));
    for (size_t left = get_count(file, 5 * sizeof(bw_le64)); left && !file->bad; left--)
        BW_TRY(get_finding(file, baseline));
    file->bad |= file->next != file->end;
    return NULL;
}

struct bw_error *bw_baseline_parse(const void *bytes, size_t size, struct bw_baseline **result)
{
    const uint8_t *start = bytes;
    bw_le64 sum;
    *result = NULL;
    if (size < sizeof magic + sizeof sum || memcmp(bytes, magic, sizeof magic) != 0)
        return bw_error_create(BW_ERROR_USAGE, "it is not the baseline of a check");
    memcpy(&sum, start + size - sizeof sum, sizeof sum);
    if (bw_get64(sum) != XXH3_64bits(bytes, size - sizeof sum))
        return bw_error_create(BW_ERROR_USAGE, "its checksum does not match: it is damaged");
    struct bw_cursor file = {start + sizeof magic, start + size - sizeof sum, false};
    struct bw_baseline *baseline;
    BW_TRY(bw_baseline_create(&baseline));
    struct bw_error *error = get_baseline(&file, baseline);
    if (!error && file.bad)
        error = bw_error_create(BW_ERROR_USAGE, "it contradicts itself");
    if (!error)
        *result = baseline;
    else
        bw_baseline_free(baseline);
    return error;
}
