/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of containers. The file of each layer has its entry. */
#include "xlators/layout/containers.h"

const struct bw_container_type *const bw_container_types[] = {
    &bw_compressed_container, &bw_md_container,        &bw_luks_container,
    &bw_lvm_container,        &bw_bcache_container,    &bw_partclone_container,
    &bw_metadump_container,   &bw_partition_container, NULL,
};
