/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A list of sha512sum looks like one of b2sum. Which of both it is, its files tell: of some small
 * ones both hashes are made, until one of them is that of the list. If all of these have changed,
 * the name of the list decides.
 */
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "btrfs-walk/file.h"
#include "cli/check/check.h"
#include "export/hash.h"

enum { MOST_FILES = 64, MOST_BYTES = 1 << 20 };

/* One of both, of a file. */
struct candidate {
    enum bw_hash_algorithm algorithm;
    struct bw_hash *hash;
    bool is_bad;
};

static struct bw_error *take(void *context, const struct bw_data_part *part)
{
    struct candidate *candidate = context;
    if (part->kind == BW_DATA_BYTES)
        bw_hash_add(candidate->hash, part->bytes, (size_t)part->length);
    else if (part->kind == BW_DATA_HOLE)
        bw_hash_add_zeros(candidate->hash, part->length);
    candidate->is_bad |= part->kind == BW_DATA_BAD;
    return NULL;
}

static struct bw_error *matches(struct bw_file *file, struct candidate *candidate,
                                const char *wanted, bool *same)
{
    char text[BW_HASH_TEXT];
    BW_TRY(bw_hash_create(candidate->algorithm, &candidate->hash));
    struct bw_error *error = bw_file_read_parts(file, 0, UINT64_MAX, take, candidate);
    if (!error)
        bw_hash_end(candidate->hash, text);
    bw_hash_destroy(candidate->hash);
    *same = !error && !candidate->is_bad && strcasecmp(text, wanted) == 0;
    return error;
}

/* Sets `found` if one of both hashes is that of the entry. */
static struct bw_error *try_file(struct bw_fs *fs, const struct bw_place *place, const char *wanted,
                                 enum bw_hash_algorithm *algorithm, bool *found)
{
    static const enum bw_hash_algorithm both[] = {BW_HASH_SHA512, BW_HASH_BLAKE2B};
    struct bw_file *file;
    BW_TRY(bw_file_open(fs, place, NULL, &file));
    struct bw_error *error = NULL;
    for (size_t i = 0; i < 2 && !error && !*found; i++) {
        struct candidate candidate = {.algorithm = *algorithm = both[i]};
        error = matches(file, &candidate, wanted, found);
    }
    bw_file_close(file);
    return error;
}

static struct bw_error *try_entry(struct bw_fs *fs, const char *prefix,
                                  const struct bw_manifest_entry *entry,
                                  enum bw_hash_algorithm *algorithm, bool *found)
{
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    struct bw_place place;
    struct bw_inode inode;
    bw_buffer_format(&path, "%s/%s%c", prefix, entry->path, '\0');
    if (path.failed)
        return bw_error_no_memory();
    BW_TRY(bw_lookup(fs, bw_subvolume_by_id(fs, BW_TOP_SUBVOLUME), path.data, false, &place));
    BW_TRY(bw_inode_get(fs, &place, &inode));
    return place.type == BW_FILE_REGULAR && inode.size <= MOST_BYTES
               ? try_file(fs, &place, entry->hash, algorithm, found)
               : NULL;
}

static enum bw_hash_algorithm algorithm_of_name(const char *file)
{
    const char *slash = strrchr(file, '/');
    const char *name = slash ? slash + 1 : file;
    return strcasestr(name, "b2") || strcasestr(name, "blake") ? BW_HASH_BLAKE2B : BW_HASH_SHA512;
}

struct bw_error *check_settle_hashes(struct check *check, struct bw_fs *fs, const char *prefix)
{
    struct bw_manifest *list = &check->list;
    enum bw_hash_algorithm algorithm;
    bool found = false;
    unsigned tries = 0;
    for (size_t i = 0; i < list->count && tries < MOST_FILES && !found; i++) {
        if (!list->entries[i].is_doubtful)
            continue;
        struct bw_error *error = try_entry(fs, prefix, &list->entries[i], &algorithm, &found);
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return error;
        bw_error_free(error); /* the comparison tells what is wrong with the file */
        tries++;
    }
    if (list->is_doubtful)
        bw_manifest_settle(list, found ? algorithm : algorithm_of_name(check->settings->manifest));
    return NULL;
}
