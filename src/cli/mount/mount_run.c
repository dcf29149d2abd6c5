/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Mounting: this process opens the image in the sandbox, like every command, and serves the kernel.
 * A child process that was started before mounts and unmounts (mount_process.c). With --background,
 * the first process starts both, and ends when the mount is ready.
 */
#include "cli/mount/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/channel.h"
#include "base/cleanup.h"

/* A mount while it runs. */
struct mount_run {
    const struct cmd_common *common;
    struct mount *mount;
    char *directory; /* where to mount; absolute */
    int channel;     /* to the process that mounts; -1: it was not started */
    int ready;       /* with --background: socket to the first process, which waits for the mount;
                      * otherwise -1 */
    int nowhere;     /* with --background: the null device */
};

/* Starts the process that mounts. The image is not trusted: device nodes and setuid bits in it have
 * no effect. */
static struct bw_error *start_mount_process(void *context, const struct bw_fs *planned)
{
    struct mount_run *run = context;
    const struct cmd_common *common = run->common;
    const char *name = common->input.image_count ? common->input.images[0] : "btrfs-walk";
    BW_AUTO_BUFFER struct bw_buffer list = {0};
    (void)planned;
    bw_buffer_format(&list, "ro,nosuid,nodev,noatime,subtype=btrfs-walk,%sfsname=",
                     run->mount->how.checks_permissions ? "allow_other,default_permissions," : "");
    for (; *name; name++) { /* commas and backslashes are special in a list of options */
        if (*name == ',' || *name == '\\')
            bw_buffer_append_byte(&list, '\\');
        bw_buffer_append_byte(&list, *name);
    }
    BW_TRY(bw_buffer_terminate(&list));
    return mount_process_start(run->directory, list.data, &run->channel);
}

/* Reports to the first process that the mount is ready. If stderr is a file, messages are still
 * written to it. */
static void report_ready(const struct mount_run *run)
{
    struct stat status;
    const bool has_file = fstat(STDERR_FILENO, &status) == 0 && S_ISREG(status.st_mode);
    dup2(run->nowhere, STDIN_FILENO);
    dup2(run->nowhere, STDOUT_FILENO);
    if (!has_file)
        dup2(run->nowhere, STDERR_FILENO);
    if (chdir("/") || write(run->ready, "", 1) != 1) /* the first process has ended */
        cmd_note(run->common, bw_error_no_memory());
    close(run->ready);
}

/* Chooses what to show, mounts it, and serves the mount until it ends. */
static struct bw_error *mount_and_serve(struct mount_run *run, struct bw_fs *fs)
{
    const struct bw_used_options used = {.struct_size = sizeof used, .files = true};
    struct bw_mount_options *how = &run->mount->how;
    struct bw_mount *mount;
    int descriptor;
    if (run->mount->devices) {
        BW_TRY(bw_used_map_open(fs, &used, &how->used));
        BW_TRY(bw_mount_create_devices(fs, how, &mount));
    } else {
        const char *subvolume = run->mount->subvolume;
        how->top = bw_subvolume_by_id(fs, BW_TOP_SUBVOLUME);
        if (subvolume)
            BW_TRY(bw_subvolume_by_name(fs, subvolume, &how->top));
        if (!how->top)
            return bw_error_create(BW_ERROR_NOT_FOUND, "there is no top-level subvolume");
        BW_TRY(bw_mount_create(fs, how, &mount));
    }
    struct bw_error *error = mount_process_mount(run->channel, run->directory, &descriptor);
    if (!error) {
        if (!run->mount->background && isatty(STDERR_FILENO) && !run->common->messages.quiet)
            fprintf(stderr, "mounted on %s; Ctrl-C unmounts, --background returns\n",
                    run->common->paths[0]);
        if (run->ready >= 0)
            report_ready(run);
        error = bw_mount_serve(mount, descriptor);
    }
    bw_mount_destroy(mount);
    return error;
}

/* Opens the image in the sandbox, like every command, and serves the mount. */
static int serve(struct mount_run *run)
{
    struct cmd_common common = *run->common;
    struct cmd_session session;
    common.writing.open_outputs = start_mount_process;
    common.writing.outputs = run;
    common.writing.serves = true;
    int status = cmd_open(&common, &session);
    if (!status) {
        struct bw_error *error = mount_and_serve(run, session.fs);
        bw_used_map_close(run->mount->how.used);
        if (error)
            status = cmd_fail(&common, error);
        status = cmd_end(&common, &session, NULL, status);
    }
    if (run->channel >= 0)
        mount_process_end(run->channel);
    return status;
}

/* Serves the mount in a child process, for which this one waits only until the mount is ready. */
static int serve_in_background(struct mount_run *run)
{
    int status;
    char word;
    pid_t child;
    struct bw_error *error = NULL;
    run->nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (run->nowhere < 0)
        error = bw_error_from_errno(errno, "cannot open /dev/null");
    else
        error = bw_channel_fork(&run->ready, &child);
    if (error)
        return cmd_fail(run->common, error);
    if (!child) {
        setsid();
        return serve(run);
    }
    if (bw_channel_receive(run->ready, &word, 1))
        return STATUS_OK;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_CANNOT;
}

/* Whether a file system of libfuse is mounted on a directory: most likely one of ours, which a
 * second one would hide until it is unmounted twice. */
static bool has_mount(const char *directory)
{
    struct statfs system;
    struct stat here, above;
    BW_AUTO_FREE char *parent = NULL;
    if (statfs(directory, &system) || system.f_type != FUSE_SUPER_MAGIC ||
        asprintf(&parent, "%s/..", directory) < 0)
        return false;
    return stat(directory, &here) == 0 && stat(parent, &above) == 0 && here.st_dev != above.st_dev;
}

int mount_run(const struct cmd_common *common, struct mount *mount)
{
    const char *path = common->paths[0];
    BW_AUTO_FREE char *directory = realpath(path, NULL);
    struct mount_run run = {
        .common = common, .mount = mount, .directory = directory, .channel = -1, .ready = -1};
    struct stat status;
    struct bw_error *error = NULL;
    if (!directory || stat(directory, &status))
        error = bw_error_from_errno(errno, "cannot mount on %s", path);
    else if (!S_ISDIR(status.st_mode))
        error = bw_error_create(BW_ERROR_USAGE, "%s is not a directory", path);
    else if (has_mount(directory))
        error = bw_error_create(
            BW_ERROR_USAGE, "something is mounted on %s already: fusermount3 -u unmounts it", path);
    if (error)
        return cmd_fail(common, error);
    return mount->background ? serve_in_background(&run) : serve(&run);
}
