/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages that arrive in pieces, and other processes that have ended. */
#include "base/channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include "support/walk_helpers.h"

static void open_channel(int ends[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
}

static void test_pieces(void **state)
{
    int ends[2];
    char text[9] = "";
    open_channel(ends);
    assert_true(bw_channel_send(ends[0], "four", 4));
    assert_true(bw_channel_send(ends[0], "more", 4));
    assert_true(bw_channel_receive(ends[1], text, 8));
    assert_string_equal(text, "fourmore");
    assert_true(bw_channel_receive(ends[1], text, 0));
    close(ends[0]);
    close(ends[1]);
}

static void test_closed(void **state)
{
    int ends[2];
    char text[8];
    open_channel(ends);
    assert_true(bw_channel_send(ends[0], "part", 4));
    close(ends[0]);
    assert_false(bw_channel_receive(ends[1], text, 8));
    assert_false(bw_channel_send(ends[1], "lost", 4)); /* and no SIGPIPE */
    close(ends[1]);
}
