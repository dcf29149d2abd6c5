/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --probe-list: what there is to watch, in several styles, each in a file probe_list_*.c. All of
 * them are made from the tables of probes and records, and so are the files that
 * scripts/make-probe-files writes with them.
 */
#ifndef BW_CMD_PROBE_LIST_H
#define BW_CMD_PROBE_LIST_H

#include "base/buffer.h"
#include "btrfs-walk/probe.h"

/** Writes the list to stdout and returns the exit status. NULL or "" as style: the names alone;
 * others are named as the functions below. */
int cmd_probe_list(const char *style);

/** What the styles append. */
void cmd_probe_list_long(struct bw_buffer *text);
void cmd_probe_list_json(struct bw_buffer *text);
void cmd_probe_list_bpftrace(struct bw_buffer *text);
void cmd_probe_list_c(struct bw_buffer *text);
void cmd_probe_list_d(struct bw_buffer *text);
void cmd_probe_list_markdown(struct bw_buffer *text);
void cmd_probe_list_man(struct bw_buffer *text);
void cmd_probe_list_offsets(struct bw_buffer *text);

/** Arguments of a USDT site; the first is the record. */
enum { CMD_PROBE_ARGUMENTS = 6 };

/** The member that is argument `number`, from 1 on. */
const struct bw_member *cmd_probe_argument(const struct bw_probe *probe, unsigned number);

/** Whether a member of the record of a probe has a translation for it. */
bool cmd_probe_translates(const struct bw_probe *probe, const struct bw_member *member);

/** Whether a record is that of any probe. */
bool cmd_record_has_probe(const struct bw_record *record);

/** The triplet of a probe with all that its record tells: the least of both. */
struct bw_attributes cmd_probe_attributes(const struct bw_probe *probe);

/** Words for a member: "uint64_t", "u64", "size"; its bytes in the structure. */
const char *cmd_member_c_type(const struct bw_member *member);
const char *cmd_member_type(const struct bw_member *member);
const char *cmd_member_format(const struct bw_member *member);
size_t cmd_member_size(const struct bw_member *member);

/** Appends a triplet: "Evolving/Evolving/Common". */
void cmd_append_attributes(struct bw_buffer *text, struct bw_attributes attributes);

#endif
