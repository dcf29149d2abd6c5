/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/channel.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/whole_io.h"

struct bw_error *bw_channel_fork(int *channel, pid_t *child)
{
    int ends[2];
    *channel = -1;
    *child = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return bw_error_from_errno(errno, "cannot make a socket");
    const pid_t process = fork();
    const int problem = errno;
    close(ends[process != 0]);
    if (process >= 0) {
        *channel = ends[process == 0];
        *child = process;
        return NULL;
    }
    close(ends[0]);
    return bw_error_from_errno(problem, "cannot start a process");
}

bool bw_channel_send(int channel, const void *bytes, size_t length)
{
    for (size_t done = 0; done < length;) {
        const ssize_t sent = send(channel, (const char *)bytes + done, length - done, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        done += (size_t)sent;
    }
    return true;
}

/* With read(2), which every sandbox allows. */
bool bw_channel_receive(int channel, void *bytes, size_t length)
{
    return bw_read_all(channel, bytes, length) == (ssize_t)length;
}
