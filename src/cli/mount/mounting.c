/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mounting: like every command, this process opens the image in the sandbox. A child process that
 * was started before mounts and unmounts (mount_process.c). */
#include "cli/mount/mounting.h"

#include "base/cleanup.h"

/* Escapes commas and backslashes, which are special in a list of options. */
static void append_escaped(struct bw_buffer *list, const char *text)
{
    for (; *text; text++) {
        if (*text == ',' || *text == '\\')
            bw_buffer_append_byte(list, '\\');
        bw_buffer_append_byte(list, *text);
    }
}

/* The image is not trusted: device nodes and setuid bits in it have no effect. */
static struct bw_error *start_mount_process(void *context, const struct bw_fs *planned)
{
    struct mounting *mounting = context;
    const struct cmd_common *common = mounting->common;
    BW_AUTO_BUFFER struct bw_buffer list = {0};
    (void)planned;
    bw_buffer_format(&list, "ro,nosuid,nodev,noatime,subtype=btrfs-walk,%sfsname=",
                     mounting->options.checks_permissions ? "allow_other,default_permissions,"
                                                          : "");
    append_escaped(&list, common->input.image_count ? common->input.images[0] : "btrfs-walk");
    bw_buffer_append_byte(&list, '\0');
    if (list.failed)
        return bw_error_no_memory();
    return mount_process_start(&mounting->place, list.data, &mounting->channel);
}

/* The first device, which has the lowest id. */
static struct bw_error *find_first(void *context, const struct bw_device_info *info)
{
    uint64_t *first = context;
    if (info->path && !*first)
        *first = info->devid;
    return NULL;
}

static struct bw_error *mount_and_serve(struct mounting *mounting, struct bw_fs *fs)
{
    struct bw_mount *mount;
    uint64_t first = 0;
    int descriptor;
    BW_TRY(mounting->prepare(mounting, fs));
    BW_TRY(bw_fs_devices(fs, find_first, &first));
    BW_TRY((mounting->options.used ? bw_mount_create_devices
                                   : bw_mount_create)(fs, &mounting->options, &mount));
    struct bw_error *error =
        mount_process_mount(mounting->channel, mounting->place.directory, first, &descriptor);
    if (!error && mounting->ready)
        mounting->ready(mounting);
    if (!error)
        error = bw_mount_serve(mount, descriptor);
    bw_mount_destroy(mount);
    return error;
}

int mounting_run(struct mounting *mounting)
{
    struct cmd_common common = *mounting->common;
    struct cmd_session session;
    common.writing.open_outputs = start_mount_process;
    common.writing.outputs = mounting;
    common.writing.serves = true;
    int status = cmd_open(&common, &session);
    if (!status) {
        struct bw_error *error = mount_and_serve(mounting, session.fs);
        int failure = error ? cmd_fail(&common, error) : STATUS_OK;
        bw_used_map_close(mounting->options.used);
        status = cmd_close(&common, &session);
        status = failure ? failure : status;
    }
    if (mounting->channel >= 0 && !mount_process_end(mounting->channel) && status != STATUS_CANNOT)
        return cmd_fail(mounting->common, bw_error_create(BW_ERROR_SYSTEM, "nbdkit has ended"));
    return status;
}
