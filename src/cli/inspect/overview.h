/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A file system as a whole: what the commands info and show have in common. */
#ifndef BW_CLI_INSPECT_OVERVIEW_H
#define BW_CLI_INSPECT_OVERVIEW_H

#include "base/buffer.h"
#include "btrfs-walk/fs.h"
#include "btrfs-walk/record.h"
#include "btrfs-walk/system.h"

/** The caller sets the first three members, and zeros the others. */
struct overview {
    struct bw_fs *fs;
    struct bw_superblock_info super;
    bool diverged; /**< it was not opened, because its devices have diverged */
    bool opened; /**< the trees can be read; everything below is known only then */
    struct bw_device_list devices;
    size_t stale_devices;
    uint64_t damages; /**< of the critical trees; installed systems may lead to more */
    uint64_t subvolumes, snapshots, deleted; /**< numbers of subvolumes of each kind */
    int64_t changed; /**< last change of any, in nanoseconds since 1970; 0: unknown */
    uint64_t chunks, incomplete_chunks; /**< if devices are missing */
    struct bw_buffer mount_error;       /**< why the kernel refuses to mount, although the trees can
                                           be read, with a NUL; empty: no reason is known */
    struct bw_systems *systems;         /**< NULL: unknown */
};

/** Whether a device is read from an image, or from this container in it. */
bool overview_is_image(const struct bw_device_info *device, const struct bw_image_info *image);

/** Reports a loss of the critical trees as damage; returns it instead if memory has run out, which
 * says nothing about the file system. NULL: nothing is lost. */
struct bw_error *overview_report_loss(const struct overview *overview, struct bw_error *loss);

/** Reads the members. Losses are reported. Fails only if memory runs out. */
struct bw_error *overview_read(struct overview *overview);

/** "readable", "damaged", ...; it covers only superblocks and critical trees, because nothing else
 * was read. */
const char *overview_state(const struct overview *overview);

/** The name of the installed system in use; NULL if none was found or the name is unknown. */
const char *overview_system(const struct overview *overview);

/** Lists the devices as records of deviceinfo; `overview` is a struct overview. */
struct bw_error *overview_list_devices(void *overview, struct bw_record_sink *sink);

/** Lists the installed systems as records of systeminfo. */
struct bw_error *overview_list_systems(void *overview, struct bw_record_sink *sink);

void overview_free(struct overview *overview);

#endif
