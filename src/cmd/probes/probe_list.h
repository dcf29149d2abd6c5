/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --probe-list: lists the probes and their records, from the tables of both. */
#ifndef BW_CMD_PROBE_LIST_H
#define BW_CMD_PROBE_LIST_H

#include "btrfs-walk/json.h"

/** Writes the list to stdout and returns the exit status. `style` is NULL or "" for the names
 * alone, or "long", "json" or "bpftrace". */
int cmd_probe_list(const char *style);

/** Adds all probes and records to an open object of a JSON document. */
void cmd_probe_list_add(struct bw_json *json);

#endif
