/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/channel.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/whole_io.h"

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
