/* SPDX-License-Identifier: GPL-2.0-or-later */
/* State shared by the passes: the tables of passes and codes, the list of chunks, reported bad
 * copies, progress. */
#include "check/check.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "ondisk/chunk.h"

/* The tables, made from codes.def. */

enum { QUICK, FULL, DATA, EXTERNAL };

static const struct bw_check_pass passes[] = {
#define PASS(name, when, description) \
    {#name, description, (when) == QUICK, (when) == DATA, (when) == EXTERNAL},
#define CODE(name, word, pass, severity, description)
#include "check/codes.def"
#undef PASS
#undef CODE
};

static const struct bw_finding_code codes[] = {
#define PASS(name, when, description)
#define CODE(name, word, pass, severity, description) \
    {word, #pass, BW_FINDING_##severity, description},
#include "check/codes.def"
#undef PASS
#undef CODE
};

const struct bw_finding_code *bw_finding_codes(size_t *count)
{
    *count = BW_CODES;
    return codes;
}

const struct bw_finding_code *bw_finding_code_find(const char *word)
{
    for (size_t i = 0; i < BW_CODES; i++)
        if (strcmp(codes[i].word, word) == 0)
            return &codes[i];
    return NULL;
}

const struct bw_check_pass *bw_check_passes(size_t *count)
{
    *count = BW_PASSES;
    return passes;
}

const char *bw_finding_severity_name(enum bw_finding_severity severity)
{
    static const char *const names[] = {"note", "warning", "error"};
    return names[severity];
}

/* Chunks. */

struct bw_error *bw_check_load_chunks(struct bw_check *check)
{
    const uint32_t sectorsize = check->fs->superblock.sectorsize;
    BW_SCOPED(bw_chunk_list) struct bw_chunk_list chunks = {0};
    BW_TRY(bw_fs_chunks(check->fs, &chunks));
    for (size_t i = 0; i < chunks.count; i++) {
        const struct bw_chunk_info *info = &chunks.items[i];
        const struct bw_raid_profile *profile = bw_raid_profile_of(info->type);
        unsigned computed = profile->parity_stripes;
        if (computed == 2)
            computed = info->stripe_count - 1u;
        struct bw_checked_chunk chunk = {.logical = info->logical,
                                         .length = info->length,
                                         .type = info->type,
                                         .copies =
                                             profile->copies ? profile->copies : info->stripe_count,
                                         .striped = profile->striped,
                                         .parity = profile->parity_stripes,
                                         .stripes = (uint16_t)info->stripe_count};
        chunk.all_copies = chunk.copies + computed;
        struct bw_mapping mapping = {0};
        BW_AUTO_ERROR struct bw_error *unmapped =
            bw_fs_map(check->fs, info->logical, sectorsize, 1, &mapping);
        if (!unmapped && mapping.copies != chunk.all_copies) {
            /* It was moved to another chunk. Stored copies come first, then parity. */
            chunk.all_copies = mapping.copies;
            for (chunk.copies = 0; chunk.copies < chunk.all_copies; chunk.copies++) {
                BW_AUTO_ERROR struct bw_error *error =
                    bw_fs_map(check->fs, info->logical, sectorsize, chunk.copies + 1, &mapping);
                if (error || mapping.rebuilt)
                    break;
            }
            chunk.copies += !chunk.copies;
        }
        BW_TRY(bw_checked_chunks_push(&check->chunks, chunk));
    }
    return NULL;
}

bool bw_check_should_continue(struct bw_check *check, unsigned worker)
{
    const struct bw_check_options *options = check->options;
    if (worker == 0 && options->progress && !check->stopped) {
        size_t count;
        struct bw_check_progress progress = {
            .pass = bw_check_passes(&count)[check->pass].name,
            .bytes = bw_fs_bytes_read(check->fs),
            .expected = check->expected,
        };
        /* The findings so far, by severity; other workers may add some. */
        struct bw_findings *findings = &check->findings;
        pthread_mutex_lock(&check->lock);
        for (unsigned code = 0; code < BW_CODES; code++)
            progress.counts[findings->counts[code].code->severity] += findings->counts[code].count;
        pthread_mutex_unlock(&check->lock);
        if (!options->progress(options->context, &progress))
            check->stopped = true;
    }
    return !check->stopped;
}

const struct bw_checked_chunk *bw_check_chunk(const struct bw_check *check, uint64_t logical)
{
    size_t after = BW_FIRST_INDEX(i, check->chunks.count, check->chunks.items[i].logical > logical);
    const struct bw_checked_chunk *chunk = after ? &check->chunks.items[after - 1] : NULL;
    return chunk && logical - chunk->logical < chunk->length ? chunk : NULL;
}

void bw_check_locate_copy(struct bw_check *check, uint64_t logical, unsigned copy,
                          struct bw_findinginfo *finding)
{
    struct bw_mapping mapping = {0};
    BW_AUTO_ERROR struct bw_error *error = bw_fs_map(check->fs, logical, 1, copy, &mapping);
    finding->mirror = copy;
    if (error)
        return;
    finding->devid = mapping.devid;
    finding->offset = mapping.offset;
}

struct bw_error *bw_count_alike(uint64_t *values, size_t count)
{
    BW_SCOPED(bw_key_map) struct bw_key_map first = {0};
    for (size_t i = 0; i < count; i++) {
        if (values[i] == BW_ABSENT)
            continue;
        const uint32_t known = bw_key_map_get(&first, values[i], UINT32_MAX);
        if (known == UINT32_MAX) {
            BW_TRY(bw_key_map_put(&first, values[i], (uint32_t)i));
            values[i] = 0;
        } else {
            values[known]++;
            values[i] = BW_ABSENT;
        }
    }
    return NULL;
}

/* So that a device full of errors does not fill the memory. */
enum { MOST_BAD_PLACES = 1 << 20 };

void bw_check_note_bad(struct bw_check *check, uint64_t logical, uint64_t length)
{
    pthread_mutex_lock(&check->lock);
    for (uint64_t at = logical / BW_MIN_SECTORSIZE;
         at * BW_MIN_SECTORSIZE < logical + length && check->bad_places.count < MOST_BAD_PLACES;
         at++)
        if (bw_key_map_put(&check->bad_places, at, 1))
            break;
    pthread_mutex_unlock(&check->lock);
}

bool bw_check_has_bad(struct bw_check *check, uint64_t logical, uint64_t length)
{
    bool found = false;
    pthread_mutex_lock(&check->lock);
    for (uint64_t at = logical / BW_MIN_SECTORSIZE;
         !found && at * BW_MIN_SECTORSIZE < logical + length; at++)
        found = bw_key_map_has(&check->bad_places, at);
    pthread_mutex_unlock(&check->lock);
    return found;
}
