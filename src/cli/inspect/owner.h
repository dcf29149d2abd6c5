/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rows of `owner --map`, for commands that find bad ranges themselves. */
#ifndef BW_CLI_INSPECT_OWNER_H
#define BW_CLI_INSPECT_OWNER_H

#include "cli/common/output_format.h"
#include "cli/inspect/bad_map.h"

/** Prints a row; for plan->print. */
struct bw_error *cmd_print_owner(struct cmd_format *format, const void *record);

/** Writes a record (ownerinfo) for each owner of bad ranges of a device, and for each part without
 * an owner. The ranges are sorted and joined. */
struct bw_error *cmd_list_bad_owners(struct cmd_format *format, uint64_t devid,
                                     const struct bad_ranges *bad);

#endif
