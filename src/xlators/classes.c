/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables of built-in layers and of the containers that they show. */
#include "xlators/classes.h"
#include "base/cleanup.h"
#include "graph/graph.h"
#include "xlators/layout/containers.h"

/* The lowest first; ends with NULL. */
static const struct bw_xlator_class *const builtin_classes[] = {
    &bw_storage_file_class,
    &bw_storage_nbd_class,
    &bw_storage_inside_class,
    &bw_layout_concat_class,
    &bw_layout_compressed_class,
    &bw_layout_bcache_class,
    &bw_layout_luks_class,
    &bw_layout_lvm_class,
    &bw_layout_partclone_class,
    &bw_layout_md_class,
    &bw_layout_metadump_class,
    &bw_layout_window_class,
    &bw_layout_partition_class,
    &bw_layout_unread_class,
    &bw_layout_patch_class,
    &bw_cluster_alternatives_class,
    &bw_cluster_chunk_map_class,
    &bw_cluster_remap_class,
    &bw_features_verify_class,
    &bw_performance_read_ahead_class,
    &bw_performance_node_cache_class,
    &bw_debug_trace_class,
    &bw_debug_probe_class,
    &bw_debug_error_gen_class,
    &bw_debug_delay_gen_class,
    NULL,
};

const struct bw_container_type *const bw_container_types[] = {
    &bw_compressed_container, &bw_md_container,        &bw_luks_container,
    &bw_lvm_container,        &bw_bcache_container,    &bw_partclone_container,
    &bw_metadump_container,   &bw_partition_container, NULL,
};

struct bw_error *bw_registry_open(const char *path, struct bw_registry **registry)
{
    BW_TRY(bw_registry_create(path, registry));
    struct bw_error *error = bw_registry_add(*registry, builtin_classes);
    if (error)
        bw_registry_close(*registry);
    return error;
}
