/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The built-in layers, each implemented in the file of its name. */
#ifndef BW_XLATORS_CLASSES_H
#define BW_XLATORS_CLASSES_H

#include "graph/wind.h"

extern const struct bw_xlator_class bw_storage_file_class;
extern const struct bw_xlator_class bw_storage_nbd_class;
extern const struct bw_xlator_class bw_storage_inside_class;
extern const struct bw_xlator_class bw_layout_window_class;
extern const struct bw_xlator_class bw_layout_partition_class;
extern const struct bw_xlator_class bw_layout_concat_class;
extern const struct bw_xlator_class bw_layout_compressed_class;
extern const struct bw_xlator_class bw_layout_bcache_class;
extern const struct bw_xlator_class bw_layout_luks_class;
extern const struct bw_xlator_class bw_layout_lvm_class;
extern const struct bw_xlator_class bw_layout_partclone_class;
extern const struct bw_xlator_class bw_layout_md_class;
extern const struct bw_xlator_class bw_layout_metadump_class;
extern const struct bw_xlator_class bw_layout_unread_class;
extern const struct bw_xlator_class bw_layout_patch_class;
extern const struct bw_xlator_class bw_cluster_alternatives_class;
extern const struct bw_xlator_class bw_cluster_chunk_map_class;
extern const struct bw_xlator_class bw_cluster_remap_class;
extern const struct bw_xlator_class bw_features_verify_class;
extern const struct bw_xlator_class bw_performance_read_ahead_class;
extern const struct bw_xlator_class bw_performance_node_cache_class;
extern const struct bw_xlator_class bw_debug_trace_class;
extern const struct bw_xlator_class bw_debug_probe_class;
extern const struct bw_xlator_class bw_debug_error_gen_class;
extern const struct bw_xlator_class bw_debug_delay_gen_class;

/** Adds what a layer features/verify has counted: tree blocks of which it has corrected a flipped
 * bit; mirrors of tree blocks and sectors that it has not searched for one, for lack of time; and
 * whether it has ignored the checksum of a tree block. */
void bw_verify_count(const struct bw_xlator *xlator, uint64_t *corrected, uint64_t *not_searched,
                     bool *has_unverified);

/** Adds to an error which mirror of a request it is about, and where that is according to a layer.
 * If its device is missing, the error names it already. */
struct bw_error *bw_verify_name_mirror(const struct bw_frame *frame, struct bw_xlator *layer,
                                       const struct bw_request *request, unsigned copy,
                                       struct bw_error *reason);

#endif
