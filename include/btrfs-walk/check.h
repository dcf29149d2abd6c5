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
    const char *word; /**< what it is called: "block-checksum" */
    const char *pass; /**< the pass that finds it */
    enum bw_finding_severity severity;
    const char *description; /**< a sentence without a full stop */
};

/** All kinds, in the order of the passes; `*count` is set. */
const struct bw_finding_code *bw_finding_codes(size_t *count);

/** A pass of the check. */
struct bw_check_pass {
    const char *name;
    const char *description; /**< what it holds against what: a phrase */
    bool quick;              /**< it is part of a quick check */
    bool data;               /**< it is run only if data are to be read */
};

/** All passes, in the order in which they run; `*count` is set. */
const struct bw_check_pass *bw_check_passes(size_t *count);

/** Which members of a finding are known. */
enum bw_finding_known {
    BW_KNOWN_TREE = 1 << 0,
    BW_KNOWN_KEY = 1 << 1,
    BW_KNOWN_LOGICAL = 1 << 2,
    BW_KNOWN_LENGTH = 1 << 3,
    BW_KNOWN_DEVICE = 1 << 4, /**< devid */
    BW_KNOWN_OFFSET = 1 << 5,
    BW_KNOWN_COPY = 1 << 6,
    BW_KNOWN_INODE = 1 << 7,
    BW_KNOWN_FILE_OFFSET = 1 << 8,
    BW_KNOWN_FILE_LENGTH = 1 << 9,
};

/** Something that is wrong, or worth knowing. */
struct bw_finding {
    const struct bw_finding_code *code;
    const char *message; /**< the problem, without the addresses in the members below */
    unsigned known;      /**< bits of enum bw_finding_known */
    bool repairable;     /**< another copy, or parity, is good */
    uint64_t tree;       /**< id of the tree it is in */
    struct bw_key key;   /**< of the item; of a tree block, its first key */
    uint64_t logical;    /**< address of the tree block or of the data, in bytes */
    uint64_t length;     /**< bytes from `logical` on that are concerned */
    uint64_t devid;
    uint64_t offset;              /**< on that device, in bytes */
    unsigned copy;                /**< counted from 1 */
    uint64_t inode;               /**< number of the file in the tree */
    uint64_t file_offset;         /**< where in the file the range begins, in bytes */
    const struct bw_bytes *paths; /**< absolute paths of the files it touches, raw bytes */
    size_t path_count;
    uint64_t more_paths;      /**< number of further paths */
    uint64_t more_subvolumes; /**< number of further subvolumes that share the affected range,
                                 without a path here */
    uint64_t file_length;     /**< affected bytes of the file; for compressed data, all bytes of the
                                 file in the damaged extent */
    const char *image;        /**< path of the image with the copy, if its device has several
                                 (bw_fs_options.alternatives); otherwise NULL */
    uint64_t reserved[4];     /**< zeros: room for more members */
};

/** Receives a finding, a view that ends with the call. An error ends the check and is returned. */
typedef struct bw_error *bw_finding_visitor(void *context, const struct bw_finding *finding);

/** How far a check is. */
struct bw_check_progress {
    const char *pass;     /**< the present pass */
    uint64_t bytes;       /**< read so far by the whole check */
    uint64_t expected;    /**< by the whole check, estimated; 0: not known */
    uint64_t counts[3];   /**< findings so far, by enum bw_finding_severity */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** How to check. All zeros but the size: everything except data. */
struct bw_check_options {
    size_t struct_size; /**< sizeof(struct bw_check_options) */
    bool quick;         /**< superblocks, chunk tree and root tree only; one copy of each block */
    bool data;          /**< also every copy of the data that have checksums, and parity */
    bool all;           /**< hand out every finding, and all paths; otherwise 20 of a code in a
                             pass, with 20 paths each */
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
};

/** How often a kind of finding occurred. */
struct bw_finding_count {
    const struct bw_finding_code *code;
    uint64_t count;      /**< all of them, also those that were not handed out */
    uint64_t hidden;     /**< those that were not */
    uint64_t repairable; /**< those that another copy or parity makes good */
};

/** The outcome of a check. */
struct bw_check_summary {
    const struct bw_finding_count *counts; /**< only kinds that occurred, in the order of passes */
    size_t count;
    uint64_t totals[3];   /**< findings by enum bw_finding_severity */
    uint64_t repairable;  /**< errors that another copy or parity makes good */
    bool finished;        /**< false: it was stopped, or something could not be checked because
                             of I/O errors, missing memory or an unsupported feature */
    uint64_t blocks;      /**< tree blocks checked, each once */
    uint64_t data_bytes;  /**< data checked, all copies counted */
    uint64_t reserved[6]; /**< zeros: room for more members */
};

/**
 * Checks a file system. `*summary` is always set, to NULL if there is no summary; the caller frees
 * it with bw_check_summary_free(). Open the file system with BW_LOG_IGNORE to check the trees on
 * disk, without the changes of the log.
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
