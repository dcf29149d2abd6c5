/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Output of commands that the report includes. */
#ifndef BW_CLI_INSPECT_PLANS_H
#define BW_CLI_INSPECT_PLANS_H

#include "cli/common/output_format.h"

/** For cmd_format_gather(). */
extern const struct cmd_format_plan cmd_devices_plan, cmd_usage_plan, cmd_info_plan;

#endif
