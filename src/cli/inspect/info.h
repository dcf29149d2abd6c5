/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the info command share. */
#ifndef BW_CMD_INFO_H
#define BW_CMD_INFO_H

#include "btrfs-walk/fs.h"
#include "cli/common/sheet.h"

/** Puts what a superblock tells into the answer, but for the transaction. */
void info_put_superblock(struct sheet *sheet, const struct bw_superblock_info *super);

/** Puts a UUID into it. `label`: NULL, it has no line. */
void info_put_uuid(struct sheet *sheet, const char *label, const char *name,
                   const uint8_t uuid[BW_UUID_SIZE]);

#endif
