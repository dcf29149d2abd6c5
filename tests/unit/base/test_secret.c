/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys that arrive in pieces, or are longer than the room for them. */
#include "base/secret.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/walk_helpers.h"

/* A descriptor from which each read(2) gets one of two pieces. */
static int open_pieces(const char *first, const char *second)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    assert_true(write(ends[0], first, strlen(first)) > 0);
    assert_true(write(ends[0], second, strlen(second)) > 0);
    close(ends[0]);
    return ends[1];
}

static void test_read(void **state)
{
    for (size_t room = 5; room <= 64; room += 59) {
        struct bw_secret secret = bw_secret_create(room);
        const int pieces = open_pieces("a ", "secret");
        assert_true(bw_secret_read(&secret, pieces));
        assert_int_equal(secret.length, room < 8 ? room : 8);
        assert_memory_equal(secret.bytes, "a secret", secret.length);
        assert_true(bw_secret_read(&secret, pieces)); /* at the end, or without room */
        close(pieces);
        bw_secret_free(&secret);
    }
}

static void test_unreadable(void **state)
{
    struct bw_secret secret = bw_secret_create(8);
    assert_false(bw_secret_read(&secret, -1));
    assert_int_equal(errno, EBADF);
    bw_secret_free(&secret);
}
