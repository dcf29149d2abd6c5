/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pass `extents`. */
#include "check/ledger.h"
#include "check/references.h"

struct bw_error *bw_pass_extents(struct bw_check *check)
{
    struct bw_reference root;
    for (size_t i = 0; i < check->tree_count; i++)
        if (bw_reference_to_root(&check->trees[i].tree, &root))
            bw_reference_made(check, &root);
    size_t open = bw_ledger_open_accounts(check->references);
    if (open)
        bw_check_find(check, BW_CODE_unfinished, &(struct bw_subject){0}, "%zu accounts open known %d", open, check->extents_known);
    return NULL;
}
