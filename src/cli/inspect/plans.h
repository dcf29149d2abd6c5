/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What commands answer without options, for the report, which says the same on one page. */
#ifndef BW_CMD_ANSWERS_H
#define BW_CMD_ANSWERS_H

#include "btrfs-walk/space.h"
#include "cli/common/answer.h"

/** For cmd_answer_gather(). */
extern const struct cmd_answer_plan cmd_devices_plan, cmd_subvolumes_plan, cmd_space_plan;

/** The lines of `info`, "Name: value", with names escaped. The caller frees the text. */
struct bw_error *cmd_info_lines(const struct cmd_common *common, struct bw_fs *fs,
                                struct bw_buffer *text);

/** Appends the lines of `usage`. */
void cmd_usage_append(struct bw_buffer *text, const struct bw_usage *usage);

#endif
