/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Leaves and block groups that a check with a baseline skips; see baseline.h. */
#ifndef BW_CHECK_UNCHANGED_H
#define BW_CHECK_UNCHANGED_H

#include "check/baseline.h"
#include "check/check.h"

/** Decides whether the baselines in check->options can be used, and sets check->since and
 * check->save; otherwise, a note says why everything is checked. */
struct bw_error *bw_unchanged_begin(struct bw_check *check);

/** Finds the block groups that are unchanged, before they are scanned. Also compares some leaves
 * with the baseline: if one differs, nothing can be skipped. */
struct bw_error *bw_unchanged_groups(struct bw_check *check);

/** Completes the facts about the data, after the scan of the block groups: which have to be read,
 * and whether checksums of older data have appeared or disappeared. */
struct bw_error *bw_unchanged_data(struct bw_check *check);

/** The leaf in the baseline, if it is the same and does not depend on anything that is not. */
const struct bw_known_leaf *bw_unchanged_leaf(struct bw_check *check,
                                              const struct bw_listed_tree *tree,
                                              const struct bw_block_pointer *pointer);

/** Compares a leaf that was read with the baseline: another block with its address and generation
 * proves that the baseline is of another history. Safe from any thread. */
void bw_unchanged_compare(struct bw_check *check, const struct bw_block_pointer *pointer,
                          const uint8_t *block);

/** The first bytes of the checksum in a block. */
uint32_t bw_block_checksum(const uint8_t *block);

/** Notes a finding that is handed out: sets its member `since`, and enters it in the new baseline.
 */
struct bw_error *bw_unchanged_finding(struct bw_check *check, enum bw_code_number code,
                                      struct bw_findinginfo *row);

/** Ends a complete check: hands out the findings that it did not find again, and completes the new
 * baseline. */
struct bw_error *bw_unchanged_end(struct bw_check *check);

#endif
