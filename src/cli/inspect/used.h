/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of the space in use, for `map --used`. */
#ifndef BW_CLI_INSPECT_USED_H
#define BW_CLI_INSPECT_USED_H

#include "cli/command.h"

/** Lists the ranges of all devices that have an image, or of one device (`devid`; NULL: all). Opens
 * the images; returns the exit status. */
int cmd_list_used(const struct cmd_common *common, const uint64_t *devid);

#endif
