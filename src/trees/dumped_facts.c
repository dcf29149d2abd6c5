/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists the information in a metadump. */
#include "trees/dumped_facts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/compare.h"
#include "base/escape.h"
#include "base/human.h"

static const char kept[] = "kept", replaced[] = "replaced", removed[] = "removed", lost[] = "lost";

/* A running listing. */
struct listing {
    struct bw_fs *fs;
    const struct bw_metadump_options *options;
    const struct bw_dumped_facts *facts;
    const struct bw_dump_summary *summary;
    struct bw_buffer text; /* details */
    struct bw_error *error;
};

/* Passes a fact on, with the details in the buffer; nothing if its count is 0. */
static void visit_fact(struct listing *listing, const char *information, const char *treatment,
                       uint64_t count)
{
    const bool has_details = listing->text.length;
    bw_buffer_append_byte(&listing->text, '\0');
    if (listing->text.failed && !listing->error)
        listing->error = bw_error_no_memory();
    const struct bw_metadump_fact fact = {
        information, treatment, count, has_details ? listing->text.data : NULL, {0}};
    if (!listing->error && count)
        listing->error = listing->options->visit(listing->options->visit_context, &fact);
    listing->text.length = 0;
}

__attribute__((format(printf, 5, 6))) static void add(struct listing *listing,
                                                      const char *information,
                                                      const char *treatment, uint64_t count,
                                                      const char *format, ...)
{
    char details[256];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(details, sizeof details, format, arguments);
    va_end(arguments);
    if (length > 0)
        bw_buffer_append(&listing->text, details, strlen(details));
    visit_fact(listing, information, treatment, count);
}

/* Blocks. */

static void add_blocks(struct listing *listing)
{
    const struct bw_dump_summary *summary = listing->summary;
    const uint32_t nodesize = listing->fs->reader.nodesize;
    add(listing, "tree-blocks", kept, summary->block_bytes / nodesize,
        "%" PRIu64 " bytes, with the shape of all trees", summary->block_bytes);
    add(listing, "stale-blocks", kept, summary->stale_blocks,
        "older than their parents expect, possibly with deleted items");
    add(listing, "lost-blocks", lost, summary->lost_blocks, "no copy can be read");
    add(listing, "space-cache", listing->options->sanitize ? removed : kept, summary->cache_bytes,
        "bytes with lists of free space");
    add(listing, "items", removed, listing->facts->counts[BW_DUMPED_REMOVED],
        "and pointers, of unknown types, at wrong places, or with impossible contents");
}

/* Names. */

static void add_replaced_names(struct listing *listing, const char *information,
                               const char *short_ones, enum bw_dumped_count all,
                               enum bw_dumped_count changed)
{
    const uint64_t *counts = listing->facts->counts;
    add(listing, information, replaced, counts[changed],
        "by names of the same length with the same hash");
    add(listing, short_ones, kept, counts[all] - counts[changed],
        "almost all have up to 4 bytes; their hashes determine them");
}

static void add_names(struct listing *listing)
{
    const uint64_t *counts = listing->facts->counts;
    if (!listing->options->sanitize) {
        add(listing, "names", kept, counts[BW_DUMPED_NAMES], "of files, including subvolumes");
        add(listing, "subvolume-names", kept, counts[BW_DUMPED_SUBVOLUME_NAMES], "%s", "");
        return;
    }
    add_replaced_names(listing, "names", "short-names", BW_DUMPED_NAMES, BW_DUMPED_NAMES_REPLACED);
    add_replaced_names(listing, "subvolume-names", "short-subvolume-names",
                       BW_DUMPED_SUBVOLUME_NAMES, BW_DUMPED_SUBVOLUME_NAMES_REPLACED);
    add(listing, "name-hashes", kept, counts[BW_DUMPED_NAMES],
        "CRC-32C; with length and hash, guessed names can be confirmed");
}

static void add_label(struct listing *listing)
{
    const char *label = listing->fs->superblock.label;
    if (!listing->options->sanitize)
        bw_escape_line(&listing->text, label, strlen(label));
    visit_fact(listing, "label", listing->options->sanitize ? removed : kept, *label != '\0');
}

/* Extended attributes. */

static int compare_xattrs(const void *first, const void *second)
{
    const struct bw_dumped_xattr *a = first, *b = second;
    const uint16_t common = a->length < b->length ? a->length : b->length;
    const int order = memcmp(a->name, b->name, common);
    return order ? order : bw_compare(a->length, b->length);
}

static void append_xattr_names(struct listing *listing)
{
    const struct bw_dumped_facts *facts = listing->facts;
    if (facts->xattr_name_count)
        qsort(facts->xattr_names, facts->xattr_name_count, sizeof *facts->xattr_names,
              compare_xattrs);
    for (size_t i = 0; i < facts->xattr_name_count; i++) {
        bw_buffer_append(&listing->text, ", ", i ? 2 : 0);
        bw_escape_append(&listing->text, facts->xattr_names[i].name, facts->xattr_names[i].length);
    }
    if (facts->xattr_name_count == BW_DUMPED_XATTRS)
        bw_buffer_format(&listing->text, ", and maybe others");
}

static void add_xattrs(struct listing *listing)
{
    const uint64_t *counts = listing->facts->counts;
    const uint64_t all = counts[BW_DUMPED_XATTR_NAMES],
                   changed = counts[BW_DUMPED_XATTR_NAMES_REPLACED];
    append_xattr_names(listing);
    visit_fact(listing, "xattr-names", kept, all - changed);
    add(listing, "xattr-names", replaced, changed, "those that users choose");
    add(listing, "xattr-values", listing->options->sanitize ? removed : kept, all, "%s",
        listing->options->sanitize
            ? "except btrfs.compression; access lists become valid ones of the same length"
            : "");
}

/* Inodes. */

static void append_day(struct bw_buffer *text, int64_t seconds)
{
    struct tm day;
    const time_t time = seconds;
    if (gmtime_r(&time, &day))
        bw_buffer_format(text, "%04d-%02d-%02d", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
    else
        bw_buffer_format(text, "%" PRId64, seconds);
}

static void append_owners(struct bw_buffer *text, const char *name, const struct bw_key_map *owners)
{
    enum { SHOWN = 16 };
    uint64_t ids[BW_DUMPED_OWNERS], id;
    size_t count = 0, next = 0;
    uint32_t unused;
    while (count < BW_DUMPED_OWNERS && bw_key_map_next(owners, &next, &id, &unused))
        ids[count++] = id == UINT64_MAX ? 0 : id; /* one key of a map */
    if (count)
        qsort(ids, count, sizeof *ids, bw_compare_first);
    bw_buffer_format(text, "%s", name);
    for (size_t i = 0; i < count && i < SHOWN; i++)
        bw_buffer_format(text, "%s%" PRIu64, i ? ", " : " ", ids[i]);
    if (count > SHOWN)
        bw_buffer_format(text, " and %zu%s others", count - SHOWN,
                         count == BW_DUMPED_OWNERS ? " or more" : "");
}

static void add_inodes(struct listing *listing)
{
    const struct bw_dumped_facts *facts = listing->facts;
    const uint64_t inodes = facts->counts[BW_DUMPED_INODES];
    add(listing, "sizes", kept, inodes, "with permissions, link counts, and addresses of contents");
    if (facts->oldest) {
        append_day(&listing->text, facts->oldest);
        bw_buffer_format(&listing->text, " to ");
        append_day(&listing->text, facts->newest);
    }
    visit_fact(listing, "times", kept, inodes);
    append_owners(&listing->text, "users:", &facts->users);
    append_owners(&listing->text, "; groups:", &facts->groups);
    visit_fact(listing, "owners", kept, inodes);
}

/* Contents, and ids. */

static void add_contents(struct listing *listing)
{
    const uint64_t *counts = listing->facts->counts;
    const char *treatment = listing->options->checksums ? kept : removed;
    add(listing, "contents", removed, counts[BW_DUMPED_INLINE],
        "in tree blocks: of small files, and targets of symbolic links; no others are read");
    add(listing, "checksums", treatment, counts[BW_DUMPED_CHECKSUMS], "items, for data");
    add(listing, "verity-hashes", listing->options->sanitize ? removed : treatment,
        counts[BW_DUMPED_VERITY], "items of fs-verity");
}

static void add_ids(struct listing *listing)
{
    const struct bw_superblock *superblock = &listing->fs->superblock;
    char fsid[BW_UUID_LENGTH + 1];
    bw_uuid_text(superblock->fsid, fsid);
    add(listing, "uuids", kept,
        1 + superblock->device_count + listing->facts->counts[BW_DUMPED_SUBVOLUMES],
        "of the file system (%s), its devices and trees", fsid);
    add(listing, "devices", kept, superblock->device_count,
        "sizes and chunks; the superblock is that of device %" PRIu64,
        listing->summary->superblock_devid);
}

struct bw_error *bw_dumped_facts_list(struct bw_fs *fs, const struct bw_metadump_options *options,
                                      const struct bw_dumped_facts *facts,
                                      const struct bw_dump_summary *summary)
{
    struct listing listing = {.fs = fs, .options = options, .facts = facts, .summary = summary};
    add_blocks(&listing);
    add_contents(&listing);
    add_names(&listing);
    add_label(&listing);
    add_xattrs(&listing);
    add_inodes(&listing);
    add_ids(&listing);
    bw_buffer_free(&listing.text);
    return listing.error;
}
