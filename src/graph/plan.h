/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A plan: the description of a graph before it is built. It comes from a volfile (graph/volfile.c)
 * or from fs/default_plan.c, is changed by what the user wants changed (graph/edit.c), checked
 * against the types of layers (graph/check_plan.c), and built (graph/build.c). Each word of it
 * knows where it was written, so that every refusal can say so.
 */
#ifndef BW_GRAPH_PLAN_H
#define BW_GRAPH_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/lexer.h"

/** How many volumes a plan may have. */
enum { BW_PLAN_VOLUMES = 4096 };

/** A word, NUL-terminated; it can hold any other byte. */
struct bw_word {
    char *text;
    struct bw_text_place at;
};

/** One option of a volume. */
struct bw_plan_option {
    struct bw_word name, value;
};

/** One layer of the graph to be. */
struct bw_volume {
    struct bw_word name;
    struct bw_word type; /**< text NULL until it is set */
    struct bw_plan_option *options;
    size_t option_count, option_capacity;
    struct bw_word *children;
    size_t child_count, child_capacity;
};

/** A plan. All zeros is an empty one. Owns all texts, also the sources of its places. */
struct bw_plan {
    struct bw_volume *volumes; /**< children before parents; the last one is the top */
    size_t count, capacity;
    char **sources;
    size_t source_count, source_capacity;
};

/** Frees what a plan holds and leaves an empty one. */
void bw_plan_free(struct bw_plan *plan);

/** A copy of `source` that lives as long as the plan; NULL if memory runs out. */
const char *bw_plan_source(struct bw_plan *plan, const char *source);

/** Adds a volume without options and children at position `index` (at most plan->count); `name` is
 * copied. BW_ERROR_USAGE if there are too many.
 * `*volume` is valid until the next one is added. */
struct bw_error *bw_plan_add(struct bw_plan *plan, size_t index, const char *name,
                             struct bw_text_place at, struct bw_volume **volume);
/** Removes a volume. */
void bw_plan_remove(struct bw_plan *plan, size_t index);
/** Sets a volume's type. */
struct bw_error *bw_volume_set_type(struct bw_volume *volume, const char *type,
                                    struct bw_text_place at);
/** Adds an option, or changes the value of the one of that name. */
struct bw_error *bw_volume_set_option(struct bw_volume *volume, const char *name,
                                      struct bw_text_place name_at, const char *value,
                                      struct bw_text_place value_at);
/** The value of an option if it is set; otherwise NULL. */
const char *bw_volume_option(const struct bw_volume *volume, const char *name);
/** Adds a child behind those there are. */
struct bw_error *bw_volume_add_child(struct bw_volume *volume, const char *name,
                                     struct bw_text_place at);
/** Removes a child. */
void bw_volume_remove_child(struct bw_volume *volume, size_t index);

/** Index of the volume with this name; plan->count if there is none. */
size_t bw_plan_find(const struct bw_plan *plan, const char *name);

#endif
