/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Options as data: values are text, validated against the class's table and read as numbers by it.
 * The same tables make the pages of the layers.
 */
#ifndef BW_GRAPH_OPTIONS_H
#define BW_GRAPH_OPTIONS_H

#include "btrfs-walk/graph.h"

/** The option of that name; NULL if the class has none. */
const struct bw_option *bw_class_option(const struct bw_xlator_class *type, const char *name);

/** Reads a value; false if it is none of the option's type and range. Types without numbers give 0.
 */
bool bw_option_parse(const struct bw_option *option, const char *text, uint64_t *number);

/** BW_ERROR_USAGE if a value is not allowed: "option size: '2P' is not a size from 0 to 1T". */
struct bw_error *bw_option_check(const struct bw_option *option, const char *text);

#endif
