/* SPDX-License-Identifier: GPL-2.0-or-later */
/* References to extents, and the books that they are entered into: as the extent tree promises
 * them, and as tree blocks make them. */
#ifndef BW_CHECK_REFERENCES_H
#define BW_CHECK_REFERENCES_H

#include "check/check.h"
#include "owners/references.h"

/** Enters a reference into the books of a check: promised, or made. Safe from any thread. */
void bw_reference_promised(struct bw_check *check, const struct bw_reference *reference);
void bw_reference_made(struct bw_check *check, const struct bw_reference *reference);

/** As bw_references_of_block(), by what `space` knows of the block. */
void bw_check_references_of(struct bw_check *check, const struct bw_node *node, uint32_t first_slot,
                            bw_reference_taker *take, void *context);

#endif
