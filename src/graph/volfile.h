/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Volfiles: a graph of layers as text. Turns one into a plan, which graph/check_plan.c then checks
 * and graph/build.c builds; graph/print.c writes a graph as one.
 *
 *     # comment
 *     volume device-1
 *         type storage/file
 *         option path "my disk.img"
 *     end-volume
 *
 *     volume chunk-map
 *         type cluster/chunk-map
 *         subvolumes device-1
 *     end-volume
 *
 * White space separates words and means nothing else. A word in double quotes can hold any byte but
 * NUL
 * (\" \\ \n \t \xHH) and is never a keyword. Children come before parents; the last volume is the
 * top.
 */
#ifndef BW_GRAPH_VOLFILE_H
#define BW_GRAPH_VOLFILE_H

#include "graph/plan.h"

/** How large a volfile may be, in bytes. */
#define BW_VOLFILE_SIZE ((size_t)1 << 20)

/**
 * Reads a volfile, or stdin if `path` is "-", into an empty plan. BW_ERROR_SYSTEM if the file
 * cannot be read, BW_ERROR_USAGE with the place ("graph.vol:3:12: ...") if it is no volfile; the
 * plan is then empty again.
 */
struct bw_error *bw_volfile_read(const char *path, struct bw_plan *plan);

/** The same from memory; `source` is what the places name. */
struct bw_error *bw_volfile_parse(const char *source, const char *text, size_t length,
                                  struct bw_plan *plan);

/** Whether a word needs quotes to be one. */
bool bw_volfile_is_keyword(const char *word);

#endif
