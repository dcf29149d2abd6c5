/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The child process that mounts on request, waits for the end, and unmounts. */
#include "cli/mount/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/channel.h"
#include "base/cleanup.h"

#define FUSE_USE_VERSION 32
#include <fuse_lowlevel.h>

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
 * the other process does. */
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

struct bw_error *mount_process_start(const char *directory, const char *options, int *channel)
{
    pid_t child;
    BW_TRY(bw_channel_fork(channel, &child));
    if (!child)
        run_mount_process(*channel, directory, options);
    return NULL;
}

struct bw_error *mount_process_mount(int channel, const char *directory, int *descriptor)
{
    const char order = MOUNT;
    *descriptor = -1;
    if (write(channel, &order, 1) == 1)
        *descriptor = receive_descriptor(channel);
    if (*descriptor < 0)
        return bw_error_create(BW_ERROR_SYSTEM, "cannot mount on %s", directory);
    return NULL;
}

void mount_process_end(int channel)
{
    char order = END;
    /* If the process has ended already, nothing is left to wait for. */
    if (write(channel, &order, 1) == 1)
        while (read(channel, &order, 1) < 0 && errno == EINTR)
            ;
    close(channel);
}
