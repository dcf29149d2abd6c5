/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checking a file system without writing anything: all copies of its structures are compared with
 * the format, with their checksums and with each other. The check consists of passes, and each pass
 * reports its findings.
 *
 * The code of a finding is a word that never changes its meaning. docs/check.md and
 * bw_finding_codes() list all codes.
 */
#ifndef BTRFS_WALK_CHECK_H
#define BTRFS_WALK_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"
#include "btrfs-walk/format.h"
#include "btrfs-walk/fs.h"
#include "btrfs-walk/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How much a finding matters. */
enum bw_finding_severity {
    BW_FINDING_NOTE,    /**< worth knowing: nothing is wrong */
    BW_FINDING_WARNING, /**< not as it should be, but no data or metadata are lost or wrong */
    BW_FINDING_ERROR,   /**< something contradicts the format, its checksum or another structure */
};

/** "note", "warning" or "error". */
const char *bw_finding_severity_name(enum bw_finding_severity severity);

/** A kind of finding. */
struct bw_finding_code {
    const char *word; /**< its name: "block-checksum" */
    const char *pass; /**< the pass that finds it */
    enum bw_finding_severity severity;
    const char *description; /**< a sentence without a full stop */
};

/** All kinds, in the order of the passes; `*count` is set. */
const struct bw_finding_code *bw_finding_codes(size_t *count);

/** The kind with a code ("block-checksum"); NULL if it does not exist. */
const struct bw_finding_code *bw_finding_code_find(const char *word);

/** A pass of the check. */
struct bw_check_pass {
    const char *name;
    const char *description; /**< what it compares: a phrase */
    bool quick;              /**< it is part of a quick check */
    bool data;               /**< it runs only with bw_check_options.data */
    bool external;           /**< bw_check() does not run it; `btrfs-walk check` does */
};

/** All passes, in the order in which they run; `*count` is set. */
const struct bw_check_pass *bw_check_passes(size_t *count);

/** How many findings of a code a pass lists, and how many paths of each, unless
 * bw_check_options.all is set. */
enum { BW_FINDINGS_SHOWN = 20 };

struct bw_findinginfo;

/** Receives a finding, a record of btrfs-walk/records.h: a view that ends with the call. Numbers
 * that are not known are BW_ABSENT. The message is escaped for terminals. An error ends the check
 * and is returned. */
typedef struct bw_error *bw_finding_visitor(void *context, const struct bw_findinginfo *finding);

/*
 * Baselines. A check can leave a baseline of everything that it has verified: with it, a later
 * check of the same file system reads only changes. It skips the tree blocks and block groups that
 * are provably the same as then, and adds their part from the baseline to its own sums. It does not
 * find later damage to the storage of skipped blocks.
 */

struct bw_baseline;

/** Facts about a baseline. */
struct bw_baseline_info {
    uint8_t fsid[BW_UUID_SIZE]; /**< of the file system */
    uint64_t generation;        /**< of the file system */
    int64_t time;               /**< when the check was finished: seconds since 1970 */
    uint64_t findings;          /**< their number */
    bool finished;              /**< false: the check was stopped, and nothing can be skipped */
    bool has_data;              /**< the check has also read all data */
    uint64_t reserved[4];       /**< zeros: room for more members */
};

/** Receives bytes of a baseline. */
typedef struct bw_error *bw_baseline_consumer(void *context, const char *bytes, size_t length);

/** Makes an empty baseline, for bw_check_options.save. */
struct bw_error *bw_baseline_create(struct bw_baseline **result);

/** Makes a baseline of the bytes that bw_baseline_write() has written. BW_ERROR_USAGE if they are
 * not such bytes. */
struct bw_error *bw_baseline_parse(const void *bytes, size_t size, struct bw_baseline **result);

/** Passes the bytes of a baseline to `consume`. */
struct bw_error *bw_baseline_write(const struct bw_baseline *baseline,
                                   bw_baseline_consumer *consume, void *context);

/** Facts about a baseline. */
struct bw_baseline_info bw_baseline_info(const struct bw_baseline *baseline);

/** Frees it; NULL is allowed. */
void bw_baseline_free(struct bw_baseline *baseline);

/** How far a check is. */
struct bw_check_progress {
    const char *pass;     /**< the present pass */
    uint64_t bytes;       /**< read so far by the whole check */
    uint64_t expected;    /**< estimated bytes of the whole check; 0: unknown */
    uint64_t counts[3];   /**< findings so far, by enum bw_finding_severity */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** How to check. All zeros but the size: everything except data. */
struct bw_check_options {
    size_t struct_size; /**< sizeof(struct bw_check_options) */
    bool quick;         /**< superblocks, chunk tree and root tree only; one mirror of each block */
    bool data;          /**< also every mirror of the data that have checksums, and parity */
    bool all;           /**< list every finding, and all paths; otherwise only the first
                             BW_FINDINGS_SHOWN */
    unsigned threads;   /**< 0: one for each processor, at most 8 */
    bw_finding_visitor *visit; /**< receives findings, in the order of the passes; from the calling
                               thread. May be NULL */
    /** Called now and then, from any thread, but never twice at once; returns false to stop the
     * check. May be NULL. */
    bool (*progress)(void *context, const struct bw_check_progress *progress);
    void *context;
    /** With `data`: read only part `part` of `parts` of the data and their parity, counted from 1.
     * The parts get ranges of 1 GiB in turn. Part 1 includes everything else that is checked. 0 and
     * 0: read everything. */
    unsigned part, parts;
    /** Read only what has changed since this baseline was made; if it is not of the same file
     * system, everything, with a note. bw_findinginfo.since of a finding is then "new" or "same";
     * at the end, `visit` also receives those that are "gone". Excludes `quick` and `parts`. NULL:
     * read everything. */
    const struct bw_baseline *since;
    /** Receives the baseline of this check; empty before. Excludes `quick` and `parts`. May be
     * NULL. */
    struct bw_baseline *save;
    /** Read only tree blocks of later generations than this, and the data of later extents. No
     * comparison that needs all blocks is made: the passes `space`, `extents`, `inodes` and `quota`
     * do not run. 0: read everything. Excludes `since`, `save`, `quick` and `parts`. */
    uint64_t since_generation;
};

/** How often a kind of finding occurred. */
struct bw_finding_count {
    const struct bw_finding_code *code;
    uint64_t count;      /**< all of them, including the hidden ones */
    uint64_t hidden;     /**< those beyond BW_FINDINGS_SHOWN: not passed to `visit` */
    uint64_t repairable; /**< those that another mirror or parity can repair */
};

/** The outcome of a check. */
struct bw_check_summary {
    const struct bw_finding_count *counts; /**< only kinds that occurred, in the order of passes */
    size_t count;
    uint64_t totals[3];      /**< findings by enum bw_finding_severity */
    uint64_t repairable;     /**< errors that another mirror or parity can repair */
    bool finished;           /**< false: it was stopped, or something could not be checked because
                                of I/O errors, missing memory or an unsupported feature */
    uint64_t blocks;         /**< tree blocks checked, each once */
    uint64_t data_bytes;     /**< data checked, all copies counted */
    uint64_t skipped_blocks; /**< leaves that were not read, because they are the same as before */
    uint64_t skipped_data;   /**< bytes of data with checksums that were not read */
    uint64_t new_findings;   /**< passed to `visit`, and not in options->since */
    uint64_t gone_findings;  /**< in options->since, but not found again */
    uint64_t reserved[2];    /**< zeros: room for more members */
};

/**
 * Checks a file system. `*summary` is always set, to NULL if there is no summary; the caller frees
 * it with bw_check_summary_free(). Open the file system with BW_LOG_IGNORE to check the trees on
 * disk, without the changes of the log. If the root tree was rebuilt, no other thread may use the
 * file system meanwhile.
 *
 * Damage is not an error of this function. Errors: BW_ERROR_STOPPED if options->progress returned
 * false; the error of options->visit; BW_ERROR_USAGE if the options are wrong.
 */
struct bw_error *bw_check(struct bw_fs *fs, const struct bw_check_options *options,
                          struct bw_check_summary **summary);

/**
 * The same for a file system that cannot be opened: `fs` comes from bw_fs_open_images(), and only
 * its superblocks are checked. `why` is the error of bw_fs_open(), which stays the caller's; it
 * becomes a finding.
 */
struct bw_error *bw_check_images(struct bw_fs *fs, const struct bw_error *why,
                                 const struct bw_check_options *options,
                                 struct bw_check_summary **summary);

/** Frees it; NULL is allowed. */
void bw_check_summary_free(struct bw_check_summary *summary);

#ifdef __cplusplus
}
#endif
#endif
