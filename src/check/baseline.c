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

static const char magic[16] = "bw baseline 002\n";

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

/* A file that is written or read: the same functions do both, in the same order. A number behind
 * the end of a file is 0, and the cursor is then bad. */
struct baseline_file {
    bool reads;
    struct bw_buffer written;
    struct bw_cursor rest;
};

static void exchange_bytes(struct baseline_file *file, void *bytes, size_t size)
{
    if (!file->reads) {
        bw_buffer_append(&file->written, bytes, size);
        return;
    }
    const uint8_t *next = bw_cursor_take(&file->rest, size);
    memset(bytes, 0, size);
    if (next)
        memcpy(bytes, next, size);
}

static void exchange(struct baseline_file *file, uint64_t *number)
{
    bw_le64 bytes = bw_put64(*number);
    exchange_bytes(file, &bytes, sizeof bytes);
    *number = bw_get64(bytes);
}

static void exchange_all(struct baseline_file *file, uint64_t *const *numbers)
{
    while (*numbers)
        exchange(file, *numbers++);
}

/* The length of a list whose members have at least so many bytes. */
static size_t exchange_count(struct baseline_file *file, uint64_t count, size_t size)
{
    struct bw_cursor *rest = &file->rest;
    exchange(file, &count);
    if (!file->reads)
        return (size_t)count;
    rest->bad |= count > (size_t)(rest->end - rest->next) / size;
    return rest->bad ? 0 : (size_t)count;
}

/* A text, whose length is in front of it. NULL: the file ends before. */
static const void *exchange_text(struct baseline_file *file, const char *text, size_t *length)
{
    *length = exchange_count(file, *length, 1);
    if (file->reads)
        return bw_cursor_take(&file->rest, *length);
    bw_buffer_append(&file->written, text, *length);
    return text;
}

static struct bw_error *exchange_numbers(struct baseline_file *file, struct bw_numbers *numbers)
{
    uint64_t number = 0;
    const size_t count = exchange_count(file, numbers->count, sizeof(bw_le64));
    for (size_t i = 0; i < count; i++) {
        const uint64_t last = number;
        if (!file->reads)
            number = numbers->items[i];
        exchange(file, &number);
        file->rest.bad |= number < last;
        if (file->reads)
            BW_TRY(bw_numbers_push(numbers, number));
    }
    return NULL;
}

static struct bw_error *exchange_ranges(struct baseline_file *file, struct bw_range_set *set)
{
    const size_t count = exchange_count(file, set->ranges.count, 2 * sizeof(bw_le64));
    for (size_t i = 0; i < count; i++) {
        struct bw_span span = {0};
        if (!file->reads)
            span = set->ranges.items[i];
        exchange(file, &span.start);
        exchange(file, &span.end);
        file->rest.bad |= span.start >= span.end;
        if (file->reads && !file->rest.bad)
            BW_TRY(bw_range_set_insert(set, span.start, span.end));
    }
    if (file->reads)
        bw_range_set_join(set);
    return NULL;
}

static void exchange_leaf(struct baseline_file *file, struct bw_known_leaf *leaf)
{
    struct bw_inode_sums *sums = &leaf->sums;
    uint64_t rest = (uint64_t)leaf->checksum << 32 | (uint64_t)leaf->synology << 16 | leaf->facts;
    exchange_all(file, (uint64_t *[]){&leaf->bytenr, &leaf->generation, &leaf->owner,
                                      &leaf->references, &rest, NULL});
    leaf->checksum = (uint32_t)(rest >> 32);
    leaf->synology = (uint16_t)(rest >> 16);
    leaf->facts = (uint8_t)rest;
    if (!(leaf->facts & BW_LEAF_HAS_SUMS))
        return;
    uint64_t small = (uint64_t)sums->first_stored << 48 | (uint64_t)sums->last_most << 32 |
                     (uint64_t)sums->first_nul << 16 | sums->last_type;
    exchange_all(file, (uint64_t *[]){&sums->total, &sums->parents, &sums->first_inode,
                                      &sums->first_start, &sums->first_gap, &sums->last_inode,
                                      &sums->last_end, &sums->last_size, &small, NULL});
    sums->first_stored = (uint16_t)(small >> 48);
    sums->last_most = (uint16_t)(small >> 32);
    sums->first_nul = (uint16_t)(small >> 16);
    sums->last_type = (uint8_t)small;
}

/* Writes a finding with this row, or adds the next one to the baseline, for which it is cleared. */
static struct bw_error *exchange_finding(struct baseline_file *file, struct bw_baseline *baseline,
                                         struct bw_findinginfo row)
{
    BW_AUTO_BUFFER struct bw_buffer bytes = {0};

    /* The code: one that this version has, too. */
    char word[64] = "";
    size_t length = row.code ? strlen(row.code) : 0;
    const char *text = exchange_text(file, row.code, &length);
    if (text && length < sizeof word)
        memcpy(word, text, length);
    const struct bw_finding_code *code = bw_finding_code_find(word);
    uint64_t type = row.key.type;
    exchange_all(file,
                 (uint64_t *[]){&type, &row.tree, &row.key.objectid, &row.key.offset, &row.logical,
                                &row.length, &row.devid, &row.offset, &row.mirror, &row.inode,
                                &row.file_offset, &row.file_length, &row.repairable,
                                &row.more_paths, &row.more_subvolumes, NULL});
    row.key.type = (uint8_t)type;

    /* The texts. The message is printed unescaped, so it must not control a terminal. */
    length = row.message ? strlen(row.message) : 0;
    text = exchange_text(file, row.message, &length);
    for (size_t i = 0; file->reads && text && i < length; i++)
        file->rest.bad |= (uint8_t)text[i] < ' ' || text[i] == 0x7f;
    if (text && !file->rest.bad)
        bw_buffer_append(&bytes, text, length);
    bw_buffer_append_byte(&bytes, '\0');
    const size_t count = exchange_count(file, row.paths.length, sizeof(bw_le64));
    BW_AUTO_FREE size_t *lengths = calloc(count + 1, sizeof *lengths);
    for (size_t i = 0; lengths && i < count; i++) {
        const struct bw_bytes path = file->reads ? (struct bw_bytes){0} : row.paths.data[i];
        lengths[i] = path.length;
        text = exchange_text(file, path.data, &lengths[i]);
        if (text)
            bw_buffer_append(&bytes, text, lengths[i]);
        bw_buffer_append_byte(&bytes, '\0');
    }
    if (bytes.failed || !lengths)
        return bw_error_no_memory();
    if (!file->reads || file->rest.bad || !code)
        return NULL;
    row.code = code->word;
    row.pass = code->pass;
    row.severity = bw_finding_severity_name(code->severity);
    return push_finding(baseline, row, BW_TAKE(bytes.data), lengths, count);
}

/* Everything between the magic and the checksum. */
static struct bw_error *exchange_baseline(struct baseline_file *file, struct bw_baseline *baseline)
{
    struct bw_cursor *rest = &file->rest;
    exchange_bytes(file, baseline->fsid, sizeof baseline->fsid);
    exchange_all(file, (uint64_t *[]){&baseline->generation, &baseline->incompat,
                                      &baseline->compat_ro, &baseline->nodesize,
                                      &baseline->sectorsize, &baseline->replaced, &baseline->seed,
                                      &baseline->time, &baseline->blocks, &baseline->finished,
                                      &baseline->has_data, &baseline->findings_hidden, NULL});
    size_t count = exchange_count(file, baseline->leaves.count, 5 * sizeof(bw_le64));
    for (size_t i = 0; i < count && !rest->bad; i++) {
        struct bw_known_leaf leaf = {0};
        if (!file->reads)
            leaf = baseline->leaves.items[i];
        exchange_leaf(file, &leaf);
        if (!file->reads)
            continue;
        BW_TRY(bw_key_map_put(&baseline->by_address, leaf.bytenr, (uint32_t)i));
        BW_TRY(bw_known_leaves_push(&baseline->leaves, leaf));
    }
    count = exchange_count(file, baseline->groups.count, 6 * sizeof(bw_le64));
    for (size_t i = 0; i < count; i++) {
        struct bw_known_group group = {0};
        if (!file->reads)
            group = baseline->groups.items[i];
        exchange_all(file, (uint64_t *[]){&group.start, &group.length, &group.used, &group.flags,
                                          &group.leaves, &group.references, NULL});
        if (file->reads)
            BW_TRY(bw_known_groups_push(&baseline->groups, group));
    }
    BW_TRY(exchange_ranges(file, &baseline->unsummed));
    BW_TRY(exchange_numbers(file, &baseline->full_backrefs));
    BW_TRY(exchange_numbers(file, &baseline->shared_blocks));
    BW_TRY(exchange_ranges(file, &baseline->bad_data));
    count = exchange_count(file, baseline->findings.count, 5 * sizeof(bw_le64));
    for (size_t i = 0; i < count && !rest->bad; i++) {
        struct bw_findinginfo row;
        bw_record_clear(bw_record_find("findinginfo"), &row);
        if (!file->reads)
            row = baseline->findings.items[i].row;
        BW_TRY(exchange_finding(file, baseline, row));
    }
    return NULL;
}

struct bw_error *bw_baseline_write(const struct bw_baseline *baseline,
                                   bw_baseline_consumer *consume, void *context)
{
    struct baseline_file file = {.reads = false};
    struct bw_buffer *written = &file.written;
    bw_buffer_append(written, magic, sizeof magic);
    struct bw_error *error = exchange_baseline(&file, (struct bw_baseline *)(uintptr_t)baseline);
    if (!error)
        error = bw_buffer_error(written);
    uint64_t sum = error ? 0 : XXH3_64bits(written->data, written->length);
    exchange(&file, &sum);
    if (!error)
        error = bw_buffer_error(written);
    if (!error)
        error = consume(context, written->data, written->length);
    bw_buffer_free(written);
    return error;
}

struct bw_error *bw_baseline_parse(const void *bytes, size_t size, struct bw_baseline **result)
{
    const uint8_t *start = bytes;
    bw_le64 sum;
    *result = NULL;
    if (size < sizeof magic + sizeof sum || memcmp(bytes, magic, strlen("bw baseline ")) != 0)
        return bw_error_create(BW_ERROR_USAGE, "it is not the baseline of a check");
    if (memcmp(bytes, magic, sizeof magic) != 0)
        return bw_error_create(BW_ERROR_USAGE, "another version of btrfs-walk wrote this baseline");
    memcpy(&sum, start + size - sizeof sum, sizeof sum);
    if (bw_get64(sum) != XXH3_64bits(bytes, size - sizeof sum))
        return bw_error_create(BW_ERROR_USAGE, "its checksum does not match: it is damaged");
    struct baseline_file file = {.reads = true,
                                 .rest = {start + sizeof magic, start + size - sizeof sum, false}};
    struct bw_baseline *baseline;
    BW_TRY(bw_baseline_create(&baseline));
    struct bw_error *error = exchange_baseline(&file, baseline);
    if (!error && (file.rest.bad || file.rest.next != file.rest.end))
        error = bw_error_create(BW_ERROR_USAGE, "it contradicts itself");
    if (!error)
        *result = baseline;
    else
        bw_baseline_free(baseline);
    return error;
}
