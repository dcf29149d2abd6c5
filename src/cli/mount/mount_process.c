/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The child process that mounts on request, waits for the end, and unmounts. */
#include "cli/mount/mount_process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FUSE_USE_VERSION 32
#include <fuse_lowlevel.h>

/* The word that orders the end. Any other one orders to mount, and is the number of the first
 * device. */
#define END UINT64_MAX

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

/* Waits for a word; false if the other process has ended. */
static bool wait_for_word(int socket, uint64_t *word)
{
    ssize_t got;
    while ((got = recv(socket, word, sizeof *word, MSG_WAITALL)) < 0 && errno == EINTR)
        ;
    return got == sizeof *word;
}

/* All messages of the program have been printed. If its stdout or stderr is a pipe, the reader must
 * not wait for this process. */
static void redirect_streams(void)
{
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int stream = STDIN_FILENO; nowhere >= 0 && stream <= STDERR_FILENO; stream++)
        dup2(nowhere, stream);
}

/* A running nbdkit: its process, and the end of a pipe that closes when it ends. */
struct server {
    pid_t process;
    int life;
};

static _Noreturn void become_nbdkit(const struct mount_place *place, uint64_t first)
{
    char folder[PATH_MAX], export[64];
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(folder, sizeof folder, "dir=%s", place->directory);
    snprintf(export, sizeof export, "default-export=%" PRIu64, first);
    execl(place->nbdkit, "nbdkit", "--foreground", "--readonly", "--unix", place->socket,
          "--filter=exportname", "file", folder, export, (char *)NULL);
    _exit(127);
}

static bool start_nbdkit(const struct mount_place *place, uint64_t first, struct server *server)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return false;
    server->life = ends[0];
    server->process = fork();
    if (server->process == 0) {
        fcntl(ends[1], F_SETFD, 0); /* nbdkit keeps it open */
        become_nbdkit(place, first);
    }
    close(ends[1]);
    return server->process > 0;
}

/* Waits until the other process has ended or orders the end, or until nbdkit has ended; reports the
 * latter to the other process. */
static void wait_for_end(int socket, const struct server *server)
{
    struct pollfd ends[] = {{.fd = socket, .events = POLLIN}, {.fd = server->life}};
    while (poll(ends, 2, -1) < 0 && errno == EINTR)
        ;
    if (!ends[0].revents)
        send_descriptor(socket, -1);
}

/* nbdkit may be waiting for the mount, which unmounting ends. */
static void end_mount(const struct mount_place *place, struct fuse_session *session,
                      const struct server *server)
{
    if (server->process > 0)
        kill(server->process, SIGKILL);
    fuse_session_unmount(session);
    if (server->process > 0) {
        waitpid(server->process, NULL, 0);
        unlink(place->socket);
    }
}

static void mount_and_wait(int socket, const struct mount_place *place, const char *options)
{
    const struct fuse_lowlevel_ops none = {0};
    char *words[] = {"btrfs-walk", "-o", (char *)(uintptr_t)options, NULL};
    struct fuse_args arguments = FUSE_ARGS_INIT(3, words);
    struct server server = {.life = -1};
    uint64_t first;
    if (!wait_for_word(socket, &first) || first == END)
        return;
    struct fuse_session *session = fuse_session_new(&arguments, &none, sizeof none, NULL);
    if (!session || fuse_session_mount(session, place->directory)) {
        send_descriptor(socket, -1);
        return;
    }
    send_descriptor(socket, fuse_session_fd(session));
    fcntl(fuse_session_fd(session), F_SETFD, FD_CLOEXEC);
    if (!place->socket || start_nbdkit(place, first, &server)) {
        redirect_streams();
        wait_for_end(socket, &server);
    }
    end_mount(place, session, &server);
}

/* Signals do not end this process; the end of the other process does. */
static _Noreturn void run_mount_process(int socket, const struct mount_place *place,
                                        const char *options)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    if (setsid() >= 0 && chdir("/") == 0)
        mount_and_wait(socket, place, options);
    if (place->socket)
        rmdir(place->directory);
    _exit(0);
}

struct bw_error *mount_process_start(const struct mount_place *place, const char *options,
                                     int *channel)
{
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
        return bw_error_from_errno(errno, "cannot make a socket");
    const pid_t child = fork();
    if (child == 0) {
        close(sockets[0]);
        run_mount_process(sockets[1], place, options);
    }
    close(sockets[1]);
    *channel = sockets[0];
    if (child > 0)
        return NULL;
    struct bw_error *error = bw_error_from_errno(errno, "cannot start a process");
    close(sockets[0]);
    return error;
}

struct bw_error *mount_process_mount(int channel, const char *directory, uint64_t first,
                                     int *descriptor)
{
    *descriptor =
        write(channel, &first, sizeof first) == sizeof first ? receive_descriptor(channel) : -1;
    return *descriptor >= 0 ? NULL
                            : bw_error_create(BW_ERROR_SYSTEM, "cannot mount on %s", directory);
}

bool mount_process_end(int channel)
{
    const uint64_t word = END;
    char byte;
    ssize_t got;
    if (write(channel, &word, sizeof word) < 0 && errno != EPIPE)
        got = 0;
    else
        while ((got = read(channel, &byte, 1)) < 0 && errno == EINTR)
            ;
    close(channel);
    return got <= 0;
}
