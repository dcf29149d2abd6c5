/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kinds of requests as choices of an option, for all debug layers. */
#include "xlators/debug/filter.h"

const char *const bw_kind_choices[] = {
    "any",
    [1 + BW_REQUEST_SUPER] = "super",
    [1 + BW_REQUEST_TREE_BLOCK] = "tree-block",
    [1 + BW_REQUEST_DATA] = "data",
    [1 + BW_REQUEST_RAW] = "raw",
    [1 + BW_REQUEST_KINDS] = NULL,
};

const char *bw_kind_name(enum bw_request_kind kind)
{
    return bw_kind_choices[1 + kind];
}
