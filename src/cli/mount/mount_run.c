/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Mounting: this process opens the image in the sandbox, like every command, and serves the kernel.
 * It is confined and can neither mount nor unmount. A child process that was started before does
 * both: it reads only messages from this one, and unmounts even if this one crashes. With
 * --background, the first process starts both, and ends when the mount is ready.
 */
#include "cli/mount/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/channel.h"
#include "base/cleanup.h"
#include "cli/common/monitor.h"

#define FUSE_USE_VERSION 32
#include <fuse_lowlevel.h>

/* The child process. */

/* Bytes that order something. */
enum { MOUNT = 'm', END = 'e' };

/* Buffer for a control message with a descriptor, aligned. */
union control {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr header;
};

/* Sends one byte, together with `descriptor` unless that is -1. */
static ssize_t send_descriptor(int socket, int descriptor)
{
    char word = 0;
    union control control = {0};
    struct iovec part = {&word, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof descriptor),
                                          .cmsg_level = SOL_SOCKET,
                                          .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), &descriptor, sizeof descriptor);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL);
}

/* Receives a descriptor; -1 if the message has none. */
static int receive_descriptor(int socket)
{
    char word;
    int descriptor = -1;
    union control control;
    struct iovec part = {&word, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t got;
    while ((got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ;
    const struct cmsghdr *header = got == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header && header->cmsg_type == SCM_RIGHTS)
        memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    return descriptor;
}

/* Waits for an order; END if the other process has ended. */
static char wait_for_order(int socket)
{
    char order;
    ssize_t got;
    while ((got = read(socket, &order, 1)) < 0 && errno == EINTR)
        ;
    return got == 1 ? order : END;
}

/* Mounts when that is ordered, and unmounts at the end. Signals do not end this process; the end of
 * the other process does. `options` are the mount options ("ro,fsname=..."). */
static _Noreturn void run_mount_process(int socket, const char *directory, const char *options)
{
    const struct fuse_lowlevel_ops none = {0};
    char *words[] = {"btrfs-walk", "-o", (char *)(uintptr_t)options, NULL};
    struct fuse_args arguments = FUSE_ARGS_INIT(3, words);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    if (setsid() < 0 || chdir("/") || wait_for_order(socket) != MOUNT)
        _exit(0);
    struct fuse_session *session = fuse_session_new(&arguments, &none, sizeof none, NULL);
    if (!session || fuse_session_mount(session, directory)) {
        send_descriptor(socket, -1);
        _exit(0);
    }
    send_descriptor(socket, fuse_session_fd(session));
    fcntl(fuse_session_fd(session), F_SETFD, FD_CLOEXEC);

    /* All messages of the program have been printed. If its stdout or stderr is a pipe, the reader
     * must not wait for this process. */
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int stream = STDIN_FILENO; nowhere >= 0 && stream <= STDERR_FILENO; stream++)
        dup2(nowhere, stream);
    wait_for_order(socket);
    fuse_session_unmount(session);
    _exit(0);
}

/* Makes the process mount; the caller owns the descriptor of /dev/fuse. */
static struct bw_error *mount_in_process(int channel, const char *directory, int *descriptor)
{
    const char order = MOUNT;
    *descriptor = -1;
    if (write(channel, &order, 1) == 1)
        *descriptor = receive_descriptor(channel);
    if (*descriptor < 0)
        return bw_error_create(BW_ERROR_SYSTEM, "cannot mount on %s", directory);
    return NULL;
}

/* Makes the process unmount, and waits for it. It also unmounts if this one ends. */
static void end_process(int channel)
{
    char order = END;
    /* If the process has ended already, nothing is left to wait for. */
    if (write(channel, &order, 1) == 1)
        while (read(channel, &order, 1) < 0 && errno == EINTR)
            ;
    close(channel);
}

/* This process. */

/* Starts the process that mounts, before this one is confined and has threads. The image is not
 * trusted: device nodes and setuid bits in it have no effect. */
static struct bw_error *start_mount_process(void *context, const struct bw_fs *planned)
{
    struct mount *mount = context;
    const struct cmd_common *common = mount->common;
    const char *name = common->input.image_count ? common->input.images[0] : "btrfs-walk";
    BW_AUTO_BUFFER struct bw_buffer list = {0};
    (void)planned;
    bw_buffer_format(&list, "ro,nosuid,nodev,noatime,subtype=btrfs-walk,%sfsname=",
                     mount->how.checks_permissions ? "allow_other,default_permissions," : "");
    for (; *name; name++) { /* commas and backslashes are special in a list of options */
        if (*name == ',' || *name == '\\')
            bw_buffer_append_byte(&list, '\\');
        bw_buffer_append_byte(&list, *name);
    }
    BW_TRY(bw_buffer_terminate(&list));
    pid_t child;
    BW_TRY(bw_channel_fork(&mount->channel, &child));
    if (!child)
        run_mount_process(mount->channel, mount->directory, list.data);
    return NULL;
}

/* Chooses what to show, mounts it, and serves the mount until it ends. */
static struct bw_error *mount_and_serve(struct mount *mount, struct bw_fs *fs)
{
    const struct bw_used_options used = {.struct_size = sizeof used, .files = true};
    struct bw_mount_options *how = &mount->how;
    struct bw_mount *served;
    int descriptor;
    if (mount->devices) {
        BW_TRY(bw_used_map_open(fs, &used, &how->used));
        BW_TRY(bw_mount_create_devices(fs, how, &served));
    } else {
        const char *subvolume = mount->subvolume;
        how->top = bw_subvolume_by_id(fs, BW_TOP_SUBVOLUME);
        if (subvolume)
            BW_TRY(bw_subvolume_by_name(fs, subvolume, &how->top));
        if (!how->top)
            return bw_error_create(BW_ERROR_NOT_FOUND, "there is no top-level subvolume");
        BW_TRY(bw_mount_create(fs, how, &served));
    }
    struct bw_error *error = mount_in_process(mount->channel, mount->directory, &descriptor);
    if (!error) {
        if (!mount->background && isatty(STDERR_FILENO) && !mount->common->messages.quiet)
            fprintf(stderr, "mounted on %s; Ctrl-C unmounts, --background returns\n",
                    mount->common->paths[0]);
        if (mount->ready >= 0) {
            /* The first process waits for this. If stderr is a file, messages are still written to
             * it. */
            struct stat status;
            const bool has_file = fstat(STDERR_FILENO, &status) == 0 && S_ISREG(status.st_mode);
            setsid(); /* until now, the terminal can ask for a passphrase, and Ctrl-C ends both
                         processes */
            dup2(mount->nowhere, STDIN_FILENO);
            dup2(mount->nowhere, STDOUT_FILENO);
            if (!has_file)
                dup2(mount->nowhere, STDERR_FILENO);
            if (chdir("/") || write(mount->ready, "", 1) != 1) /* the first process has ended */
                cmd_note(mount->common, BW_NOTE, bw_error_no_memory());
            close(mount->ready);
        }
        error = bw_mount_serve(served, descriptor);
    }
    bw_mount_destroy(served);
    return error;
}

/* Opens the image in the sandbox, like every command, and serves the mount. */
static int serve(struct mount *mount)
{
    struct cmd_common common = *mount->common;
    struct cmd_session session;
    common.writing.open_outputs = start_mount_process;
    common.writing.outputs = mount;
    common.writing.serves = true;
    int status = cmd_open(&common, &session);
    if (!status) {
        struct bw_error *error = mount_and_serve(mount, session.fs);
        bw_used_map_close(mount->how.used);
        if (error)
            status = cmd_fail(&common, error);
        status = cmd_end(&common, &session, NULL, status);
    }
    if (mount->channel >= 0)
        end_process(mount->channel);
    return status;
}

/* Serves the mount in a child process, for which this one waits only until the mount is ready. */
static int serve_in_background(struct mount *mount)
{
    int status;
    char word;
    pid_t child;
    struct bw_error *error = NULL;
    cmd_leave_keyboard();
    mount->nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (mount->nowhere < 0)
        error = bw_error_from_errno(errno, "cannot open /dev/null");
    else
        error = bw_channel_fork(&mount->ready, &child);
    if (error)
        return cmd_fail(mount->common, error);
    if (!child) {
        cmd_take_keyboard(0);
        return serve(mount);
    }
    cmd_leave_keyboard_to(child);
    if (bw_channel_receive(mount->ready, &word, 1))
        return STATUS_OK;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    cmd_take_keyboard(status);
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
    mount->common = common;
    mount->directory = directory;
    mount->channel = mount->ready = -1;
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
    if (mount->background)
        return serve_in_background(mount);
    return serve(mount);
}
