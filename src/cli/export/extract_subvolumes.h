/* SPDX-License-Identifier: GPL-2.0-or-later */
/* extract --subvolumes: an extraction that keeps subvolumes, snapshots and shared extents. */
#ifndef BW_CLI_EXPORT_EXTRACT_SUBVOLUMES_H
#define BW_CLI_EXPORT_EXTRACT_SUBVOLUMES_H

#include "cli/command.h"
#include "cli/export/export.h"

/** How to extract. */
struct extract_subvolumes {
    const char *folder;
    bool link_snapshots;
    enum cmd_on_error on_error; /**< CMD_ON_ERROR_FAIL: stop; otherwise unreadable data are zeros */
    unsigned threads;
};

/** Extracts the subvolumes that common->paths names, with their snapshots and the subvolumes inside
 * them; without paths, all. Returns the exit status. */
int extract_subvolumes(const struct cmd_common *common, const struct extract_subvolumes *settings);

#endif
