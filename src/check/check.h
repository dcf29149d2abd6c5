/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A running check: the state that its passes share, and the functions that report findings.
 * passes.c has the table of passes; each pass is a file.
 */
#ifndef BW_CHECK_CHECK_H
#define BW_CHECK_CHECK_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/hash_table.h"
#include "base/pool.h"
#include "base/range_set.h"
#include "base/vector.h"
#include "btrfs-walk/check.h"
#include "check/codes.h"
#include "fs/fs.h"
#include "owners/tree_list.h"
#include "record/record_types.h"

/** A chunk, with the facts that passes need most often. */
struct bw_checked_chunk {
    uint64_t logical, length, type;
    unsigned copies;     /**< stored copies, without parity */
    unsigned all_copies; /**< and those that can be computed from parity */
    bool striped;        /**< it is stored in pieces of one stripe length on several devices */
    uint8_t parity;      /**< parity stripes of a row */
    uint16_t stripes;    /**< of a row, or copies */
};

/** A block group. */
struct bw_checked_group {
    uint64_t start, length, used, flags;
    uint64_t counted; /**< by `space`: bytes of extents in it */
    bool unsure;      /**< by `space`: extents in it may be lost */

    /* See unchanged.h. */
    uint64_t leaves;     /**< the sum of the leaves that describe it */
    uint64_t references; /**< the sum of the references to its extents */
    bool unchanged;      /**< since the baseline: it is not scanned */
    bool clean;          /**< it can be entered in a new baseline */
};

BW_VECTOR(bw_checked_groups, struct bw_checked_group);

/** All block groups. */
struct bw_group_list {
    struct bw_checked_groups groups; /**< ascending */
    bool incomplete;                 /**< some may be lost */
    bool loaded;
};

/** The files that a finding affects: findings.c looks up their paths. */
enum bw_touch {
    BW_TOUCHES_NOTHING,
    BW_TOUCHES_INODE, /**< row.inode of row.tree */
    BW_TOUCHES_NAME,  /**< the same inode, but only its name in the item `end_key` */
    BW_TOUCHES_DATA,  /**< the files that have data at row.logical, row.length bytes */
    BW_TOUCHES_EACH,  /**< the same files, and each of them gets its own finding */
    BW_TOUCHES_KEYS,  /**< the inodes of row.tree with items from row.key up to `end_key` */
};

BW_VECTOR(bw_finding_paths, struct bw_bytes);
BW_VECTOR_TYPE(bw_waiting_findings, struct bw_finding);

/** A flipped bit that explains a finding. */
struct bw_flip {
    bool found;
    uint64_t block; /**< address of the tree block */
    uint32_t byte;  /**< in this block */
    uint8_t bit;    /**< 0 is the least significant one */
    uint64_t value; /**< of the field, if the bit was not flipped */
};

/**
 * A finding, as a pass reports it with bw_check_find(), and as it waits for the end of the pass. In
 * `row`, the pass sets the members that describe the location; findings.c sets code, message and
 * paths, and passes `row` to the caller.
 */
struct bw_finding {
    struct bw_findinginfo row;
    enum bw_touch touches;
    struct bw_key end_key;
    struct bw_flip flip; /**< its sentence is appended to the message */

    /* Set by findings.c. */
    char *message;
    enum bw_code_number code;
    struct bw_finding_paths paths;    /**< their bytes are owned, too */
    uint64_t listed_tree;             /**< the last subvolume with a path in `paths` */
    uint64_t counted_tree;            /**< the last subvolume that was counted instead */
    struct bw_waiting_findings files; /**< with BW_TOUCHES_EACH: findings that replace this one */
    size_t present_file;              /**< the file of the last owner */
    uint64_t last_owner[4];           /**< its tree, inode, offset and logical address */
    uint64_t more_files;
};

BW_VECTOR_FUNCTIONS(bw_waiting_findings, struct bw_finding);

/**
 * A finding that touches these files, and the known members of its row, as in
 *
 *     BW_FINDING(BW_TOUCHES_INODE, .tree = 5, .inode = 257)
 *
 * All other members are absent.
 */
#define BW_FINDING(touched, ...)                                                             \
    __extension__({                                                                          \
        _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Woverride-init\"") \
            const struct bw_finding made = {.touches = (touched),                            \
                                            .row = {.tree = BW_ABSENT,                       \
                                                    .key = {BW_ABSENT, 0, 0},                \
                                                    .logical = BW_ABSENT,                    \
                                                    .length = BW_ABSENT,                     \
                                                    .devid = BW_ABSENT,                      \
                                                    .offset = BW_ABSENT,                     \
                                                    .mirror = BW_ABSENT,                     \
                                                    .inode = BW_ABSENT,                      \
                                                    .file_offset = BW_ABSENT,                \
                                                    .file_length = BW_ABSENT,                \
                                                    .flipped_block = BW_ABSENT,              \
                                                    .flipped_byte = BW_ABSENT,               \
                                                    .flipped_bit = BW_ABSENT,                \
                                                    __VA_ARGS__}};                           \
        _Pragma("GCC diagnostic pop") made;                                                  \
    })

/** Space that the log occupies: a tree block, or data of an inode. */
struct bw_log_claim {
    uint64_t start, end;
    uint64_t subvolume, inode; /**< of data; 0: it is a tree block */
};

BW_VECTOR(bw_log_claims, struct bw_log_claim);

/** A file with fs-verity. */
struct bw_verity_file {
    uint64_t tree;
    uint64_t inode, size;
    bool unchecked; /**< it has no checksums */
};

BW_VECTOR(bw_verity_files, struct bw_verity_file);

/** Bytes that simple quotas charge, by subvolume. */
BW_MAP(bw_charges, uint64_t, uint64_t, bw_key);

/** A finding about an item of a tree, and the addresses that it describes. */
static inline struct bw_finding bw_item_location(uint64_t tree, struct bw_key key, uint64_t logical,
                                                 uint64_t length)
{
    return BW_FINDING(BW_TOUCHES_NOTHING, .tree = tree, .key = key, .logical = logical,
                      .length = length);
}

/** Random odd numbers: no image can be crafted with facts or references that cancel out. */
struct bw_fact_secrets {
    uint64_t name, number[6];
};

struct bw_visited;
struct bw_incomplete_chunk;

/** Findings that wait until their pass has ended. */
struct bw_findings {
    struct bw_waiting_findings waiting;
    struct bw_finding_count counts[BW_CODES]; /**< of the whole check */
    uint64_t in_pass[BW_CODES];               /**< of the present pass */
};

BW_VECTOR(bw_checked_chunks, struct bw_checked_chunk);

/** A running check. Passes run one after the other; within a pass, threads of the pool may use the
 * members marked as safe. */
struct bw_check {
    struct bw_fs *fs;
    const struct bw_error *why; /**< it could not be opened: only images are known; NULL: it could
                                 */
    const struct bw_check_options *options;
    struct bw_pool *pool;
    unsigned workers;
    enum bw_pass_number pass;
    atomic_bool stopped;                /**< the progress callback returned false */
    atomic_uint_fast64_t flips;         /**< findings that a flipped bit explains */
    atomic_uint_fast64_t flip_searches; /**< see flipped.c */
    atomic_bool unfinished;             /**< something could not be checked; see bw_check_summary */
    atomic_uint_fast64_t blocks;        /**< checked so far */
    atomic_uint_fast64_t found;         /**< findings so far */
    atomic_uint_fast64_t data_bytes;    /**< checked so far */
    uint64_t expected;                  /**< bytes that all passes will read; 0: not known */

    /* Threads collect these under one lock: findings, and facts for later passes. */
    pthread_mutex_t lock;
    atomic_bool no_memory; /**< something could not be kept; bw_walk_trees() and passes fail */
    struct bw_findings findings;
    struct bw_key_map bad_places; /**< 4 KiB of logical addresses each, with a bad mirror that has
                                 been reported */
    struct bw_key_map moved_directories; /**< by `trees` for `inodes`; see directories.h */
    struct bw_verity_files verity_files; /**< by `trees` for `verity` */
    size_t next_verity_file;             /**< the files before it were checked */
    struct bw_charges charges;           /**< by `trees` for `quota`: simple quotas */
    struct bw_log_claims log_claims;     /**< by `log` */
    struct bw_key_map incomplete_files;  /**< by `trees`; see incomplete_chunks.c */

    struct bw_checked_chunks chunks; /**< ascending; do not change once the check has begun */
    struct bw_tree_list trees;   /**< `total` is of bw_inode_sums; 0: its inodes are consistent */
    struct bw_group_list groups; /**< see groups.h */
    struct bw_visited *visited;  /**< tree blocks that have been checked */
    struct bw_device_histories *histories; /**< see device_histories.h; NULL: nothing to compare */

    /* Left by `space` for `trees` and `extents`. */
    struct bw_reference_counts *references; /**< references to extents: those that the extent tree
                                     has, less those that exist */
    struct bw_key_map full_backrefs; /**< addresses of tree blocks whose pointers are counted by
                                    address, not by tree */
    struct bw_key_map shared_blocks; /**< addresses of tree blocks with more than one reference */
    struct bw_range_set unsummed;    /**< data that are allocated and have no checksums */
    atomic_uint_fast64_t synology_inodes; /**< counted by `trees`: with BW_INODE_SYNOLOGY */
    bool extents_known;                   /**< nothing of the extent tree is lost */
    bool checksums_known;                 /**< nothing of the checksum trees is lost */

    /* Baselines; see unchanged.h. */
    const struct bw_baseline *since; /**< the earlier check, if it can be used */
    struct bw_baseline *save;        /**< receives leaves and block groups; NULL: not wanted */
    uint64_t since_generation;       /**< of `since`, or options->since_generation; 0: none */
    struct bw_fact_secrets secrets;  /**< of the sums of inodes and of references */
    bool skips;                      /**< unchanged leaves and block groups are not read */
    bool has_more_checksums;         /**< left by `space`: older data have got checksums */
    bool selects_data;               /**< only data in `new_data` are read */
    struct bw_range_set old_data;    /**< left by `space`: data in block groups that were scanned */
    struct bw_range_set new_data;    /**< and data of later generations than the baseline */
    atomic_uint_fast64_t carried;    /**< references of skipped blocks: promised less existing */
    atomic_uint_fast64_t skipped_blocks;
    uint64_t skipped_data;
    atomic_bool is_foreign;           /**< a leaf differs from the baseline, which is reported */
    struct bw_key_map known_findings; /**< identity to number in options->since */
    bool *met_again;                  /**< for each of these findings, whether it is still there */
    uint64_t new_findings, gone_findings;
    uint64_t new_errors; /**< of the new findings */

    struct bw_incomplete_chunk *incomplete_chunks; /**< for each chunk, what missing devices leave
                                                      of it; NULL: all chunks are complete */
    uint64_t charged_since; /**< simple quotas charge extents from this generation on; UINT64_MAX:
                               there are none */
};

/**
 * Reports a finding; a `finding` of NULL has no location. `format` is the message: the fault, with
 * its values, in the terms of the format, without a full stop. Safe from any thread.
 */
void bw_check_find(struct bw_check *check, enum bw_code_number code,
                   const struct bw_finding *finding, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/** Says that something could not be checked: the check is not finished. Takes the error, whose
 * message becomes a finding. Safe from any thread. */
void bw_check_unable(struct bw_check *check, struct bw_error *error);

/** Whether an error, which may be NULL and remains the caller's, is a lack of memory. In this case,
 * reports that the check is unfinished: it is no damage. */
bool bw_check_lacks_memory(struct bw_check *check, const struct bw_error *error);

/** Whether to continue. Passes call this for each piece of work; worker 0 also reports the
 * progress. Safe from any thread. */
bool bw_check_should_continue(struct bw_check *check, unsigned worker);

/** The chunk that contains a logical address; NULL if no chunk does. */
const struct bw_checked_chunk *bw_check_chunk(const struct bw_check *check, uint64_t logical);

/** Sets the location of a copy of a logical address in a finding: devid, offset, mirror. */
void bw_check_locate_copy(struct bw_check *check, uint64_t logical, unsigned copy,
                          struct bw_findinginfo *finding);

/** Notes that a bad mirror of a range is reported, so that its parity is not; and asks for it. Safe
 * from any thread. */
void bw_check_note_bad(struct bw_check *check, uint64_t logical, uint64_t length);
bool bw_check_has_bad(struct bw_check *check, uint64_t logical, uint64_t length);

/**
 * Finds equal numbers in an array, whose members may be BW_ABSENT: replaces the first of each
 * value by the number of the later ones, and those by BW_ABSENT.
 */
struct bw_error *bw_count_alike(uint64_t *values, size_t count);

/* passes.c */
/** Prepares what passes share; and frees it, whether or not that was complete. */
struct bw_error *bw_check_begin(struct bw_check *check);
void bw_check_end(struct bw_check *check);

/** Lists the chunks; before all passes. */
struct bw_error *bw_check_load_chunks(struct bw_check *check);

/* log.c */
/** A tree block of the log, or a whole stored extent that an inode of a subvolume has in it. Safe
 * from any thread. */
void bw_log_claim_space(struct bw_check *check, uint64_t start, uint64_t length, uint64_t subvolume,
                        uint64_t inode);

/** Adds the data that the log refers to, before the pass `log`: the checksum tree may already have
 * their checksums. False in `*complete`: part of the log is lost. */
struct bw_error *bw_log_data_ranges(struct bw_check *check, struct bw_range_set *ranges,
                                    bool *complete);

/** Compares the claims of the log with each other, with the chunks and with the extent tree. Fails
 * only if memory runs out. */
struct bw_error *bw_log_check_space(struct bw_check *check);

/* quota.c */
/** Finds out whether simple quotas charge tree blocks: check->charged_since. */
struct bw_error *bw_simple_quota_begin(struct bw_check *check);

/** Charges a tree block to its owner. Safe from any thread. */
void bw_simple_quota_block(struct bw_check *check, uint64_t owner, uint64_t generation);

/* verity.c */
/** Notes the file of an INODE_ITEM if it has fs-verity, which is returned; once for all subvolumes
 * that share the leaf. Safe from any thread. */
bool bw_verity_note(struct bw_check *check, uint64_t tree, const struct bw_item *item);

/* trees.c */
/** Checks all blocks of trees, as the pass `trees` does, and sets what they add up to. */
struct bw_error *bw_walk_trees(struct bw_check *check, struct bw_listed_tree *trees, size_t count,
                               bool in_log);

/* findings.c */
void bw_findings_init(struct bw_check *check);
void bw_findings_free(struct bw_check *check);
/** Passes what the pass has found to the caller, with the paths. */
struct bw_error *bw_findings_flush(struct bw_check *check);

/* The passes. They return an error only if the check cannot continue. */
struct bw_error *bw_pass_superblocks(struct bw_check *check);
struct bw_error *bw_pass_chunks(struct bw_check *check);
struct bw_error *bw_pass_space(struct bw_check *check);
struct bw_error *bw_pass_trees(struct bw_check *check);
struct bw_error *bw_pass_extents(struct bw_check *check);
struct bw_error *bw_pass_inodes(struct bw_check *check);
struct bw_error *bw_pass_roots(struct bw_check *check);
struct bw_error *bw_pass_quota(struct bw_check *check);
struct bw_error *bw_pass_log(struct bw_check *check);
struct bw_error *bw_pass_parity(struct bw_check *check);
struct bw_error *bw_pass_verity(struct bw_check *check);
struct bw_error *bw_pass_data(struct bw_check *check);

#endif
