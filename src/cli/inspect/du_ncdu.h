/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The format in which ncdu exports and imports directories (`ncdu -f`). */
#ifndef BW_CLI_INSPECT_DU_NCDU_H
#define BW_CLI_INSPECT_DU_NCDU_H

#include "base/buffer.h"
#include "btrfs-walk/space.h"
#include "cli/common/output.h"

/** A file of that format while it is being written. Set the first two members; the rest begins as
 * zeros. */
struct du_ncdu {
    struct cmd_output *output;
    const char *title;       /**< name of the top directory */
    struct bw_buffer folder; /**< path of the open directory below the top */
    struct bw_buffer text;   /**< the current piece of the output */
    bool begun;
};

/** Writes an entry; `ncdu` is a struct du_ncdu. The entries come in the order of bw_du(). */
struct bw_error *du_ncdu_write(void *ncdu, const struct bw_du_entry *entry);

/** Writes the end. */
struct bw_error *du_ncdu_end(struct du_ncdu *ncdu);

/** Frees the memory. */
void du_ncdu_free(struct du_ncdu *ncdu);

#endif
