/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/inspect/overview.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/human.h"
#include "btrfs-walk/inode.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/space.h"
#include "cli/common/session.h"
#include "cli/inspect/device_row.h"

bool overview_is_image(const struct bw_device_info *device, const struct bw_image_info *image)
{
    const char *a = device->container, *b = image->container;
    if (!device->path || strcmp(device->path, image->path) != 0)
        return false;
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* The changes of btrfstune that the kernel refuses to mount while they are unfinished, by their
 * flags in the superblock. */
static const struct {
    unsigned bit;
    const char *name;
} changes[] = {
    {35, "the id of the file system"},
    {38, "the tree of block groups"},
    {39, "the checksums of data"},
    {40, "the checksums of tree blocks"},
};

/* Counts the subvolumes. `synology`: those with flags that only Synology's kernels know. */
static struct bw_error *count_subvolumes(struct overview *overview, uint64_t *synology)
{
    struct bw_subvolume_infos *infos;
    BW_TRY(bw_subvolume_infos_open(overview->fs, false, &infos));
    for (const struct bw_subvolume_info *info; (info = bw_subvolume_infos_next(infos));) {
        const int64_t changed = bw_time_nanoseconds(&info->ctime);
        if (info->is_deleted)
            overview->deleted++;
        else if (info->is_snapshot)
            overview->snapshots++;
        else
            overview->subvolumes++;
        if (changed > overview->changed)
            overview->changed = changed;
        *synology += (info->flags & BW_ROOT_SYNOLOGY) != 0;
    }
    return bw_subvolume_infos_close(infos);
}

struct bw_error *overview_report_loss(const struct overview *overview, struct bw_error *loss)
{
    if (!loss || loss->code == BW_ERROR_NO_MEMORY)
        return loss;
    bw_fs_report(overview->fs, BW_DAMAGE, loss);
    return NULL;
}

struct bw_error *overview_read(struct overview *overview)
{
    struct bw_fs *fs = overview->fs;
    struct bw_buffer *reasons = &overview->mount_error;
    uint64_t synology = 0;
    if (overview->opened) {
        BW_TRY(overview_report_loss(overview, count_subvolumes(overview, &synology)));
        BW_TRY(overview_report_loss(overview, bw_fs_devices(fs, &overview->devices)));
        for (size_t i = 0; i < overview->devices.count; i++)
            overview->stale_devices += overview->devices.items[i].state == BW_DEVICE_STALE;
    }
    /* Counts chunks in use that cannot be read completely without the missing devices. Only this
     * requires the block groups. */
    if (overview->opened && bw_fs_status(fs).missing_devices) {
        struct bw_usage *usage = NULL;
        BW_TRY(overview_report_loss(overview, bw_fs_usage(fs, &usage)));
        if (usage) {
            overview->incomplete_chunks = usage->incomplete_chunks;
            overview->chunks = usage->chunks;
        }
        bw_usage_free(usage);
    }
    overview->damages = bw_fs_status(fs).damages;
    if (overview->opened)
        BW_TRY(bw_systems_open(fs, &overview->systems));

    /* Reasons why the kernel refuses to mount, although the trees can be read. It recognizes a
     * device only by superblock copy 0. */
    const size_t images = overview->opened && !bw_fs_is_stream(fs) ? bw_fs_image_count(fs) : 0;
    for (size_t i = 0; i < images && !reasons->length; i++) {
        const char *name = bw_fs_image_path(fs, i);
        struct bw_superblock_info super;
        struct bw_image_info image;
        bw_fs_image_info(fs, i, &image);
        const unsigned good = cmd_read_superblock(fs, i, &super);
        bool is_device = false;
        for (size_t k = 0; k < overview->devices.count; k++)
            is_device |= overview_is_image(&overview->devices.items[k], &image);
        if (!good || !is_device)
            continue;
        bw_buffer_format(reasons, "superblock copy 0 of ");
        bw_escape_line(reasons, name, strlen(name));
        bw_buffer_format(reasons, " is bad; 'btrfs-walk extract' saves the files");
        if (good < BW_SUPERBLOCK_NUMBERS)
            bw_buffer_format(reasons,
                             ", then 'btrfs rescue super-recover' restores it from copy %u", good);
    }
    if (!reasons->length && synology)
        bw_buffer_format(reasons,
                         "%" PRIu64 " subvolume%s flags that only kernels of Synology and before "
                         "Linux 5.4 accept; 'btrfs-walk extract' saves the files",
                         synology, synology == 1 ? " has" : "s have");
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (overview->super.flags >> changes[i].bit & 1)
            bw_buffer_format(reasons,
                             "%sa change of %s was interrupted; 'btrfs-walk extract' saves "
                             "the files",
                             reasons->length ? "; " : "", changes[i].name);
    if (reasons->length)
        bw_buffer_append_byte(reasons, '\0');
    return bw_buffer_error(reasons);
}

const char *overview_state(const struct overview *overview)
{
    const struct bw_fs_status status = bw_fs_status(overview->fs);
    if (overview->diverged)
        return "diverged";
    if (!overview->opened)
        return "unreadable";
    if (overview->damages)
        return "damaged";
    if (overview->incomplete_chunks)
        return "incomplete";
    if (overview->mount_error.length)
        return "unmountable";
    if (status.missing_devices || overview->stale_devices)
        return "degraded";
    return "readable";
}

const char *overview_system(const struct overview *overview)
{
    const struct bw_system_info *current =
        overview->systems ? bw_systems_current(overview->systems) : NULL;
    return current ? current->name : NULL;
}

struct bw_error *overview_list_devices(void *context, struct bw_record_sink *sink)
{
    const struct overview *overview = context;
    for (size_t i = 0; i < overview->devices.count; i++) {
        struct alternative_paths paths;
        const struct bw_deviceinfo row =
            device_row(overview->fs, &overview->devices.items[i], &paths);
        BW_TRY(sink->visit(sink, &row, sizeof row));
    }
    return NULL;
}

static struct bw_error *list_mounts(void *context, struct bw_record_sink *sink)
{
    const struct bw_system_info *system = context;
    for (size_t i = 0; i < system->mount_count; i++) {
        const struct bw_system_mount *mount = &system->mounts[i];
        const struct bw_systemmountinfo row = {
            .mount_point = mount->mount_point,
            .fstab_subvolume = mount->subvolume_path,
            .subvolume = mount->subvolume ? bw_subvolume_id(mount->subvolume) : BW_ABSENT,
        };
        BW_TRY(sink->visit(sink, &row, sizeof row));
    }
    return NULL;
}

struct bw_error *overview_list_systems(void *context, struct bw_record_sink *sink)
{
    const struct overview *overview = context;
    if (!overview->systems)
        return NULL;
    bw_systems_rewind(overview->systems);
    for (const struct bw_system_info *system; (system = bw_systems_next(overview->systems));) {
        const struct bw_bytes path = {system->path, system->path ? strlen(system->path) : 0};
        struct bw_systeminfo row = {
            .subvolume = bw_subvolume_id(system->subvolume),
            .subvolume_path = path,
            .subvolume_path_bytes = path,
            .system_kind = bw_system_kind_name(system->kind),
            .system = system->name,
            .os = system->os,
            .os_version = system->os_version,
            .is_current = system->current != BW_SYSTEM_NOT_CURRENT,
            .current_by = bw_system_reason_name(system->current),
            .is_default = system->is_default,
            .snapshot = system->is_snapshot,
            .ro = system->read_only,
            .made_by = system->tool,
            .title = system->title,
            .system_subvolume = BW_ABSENT,
            .generation = system->generation,
            .changed = bw_time_nanoseconds(&system->ctime),
            .otime = bw_time_nanoseconds(&system->otime),
            .mounts = {list_mounts, (void *)(uintptr_t)system},
        };
        if (system->system)
            row.system_subvolume = bw_subvolume_id(system->system);
        BW_TRY(sink->visit(sink, &row, sizeof row));
    }
    return NULL;
}

void overview_free(struct overview *overview)
{
    bw_device_list_free(&overview->devices);
    bw_buffer_free(&overview->mount_error);
    bw_systems_close(overview->systems);
    overview->systems = NULL;
}
