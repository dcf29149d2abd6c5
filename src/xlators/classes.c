/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of built-in layers, bottom first. */
#include "xlators/classes.h"

const struct bw_xlator_class *const bw_builtin_classes[] = {
    &bw_storage_file_class,
    &bw_cluster_chunk_map_class,
    &bw_cluster_remap_class,
    &bw_features_verify_class,
    &bw_performance_read_ahead_class,
    &bw_performance_node_cache_class,
    NULL,
};
