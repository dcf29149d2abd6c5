/* SPDX-License-Identifier: GPL-2.0-or-later */
/* copy --format nbd */
#ifndef BW_CLI_EXPORT_COPY_NBD_H
#define BW_CLI_EXPORT_COPY_NBD_H

#include "cli/command.h"

/** Serves the devices at a socket, until a signal; with `history`, also the space of older
 * generations. Returns the exit status. */
int copy_nbd(const struct cmd_common *common, const char *socket, bool history);

#endif
