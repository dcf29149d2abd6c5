/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/secret.h"

#include <string.h>
#include <sys/mman.h>

#include "base/whole_io.h"

static struct bw_secret create(size_t room, int flags)
{
    const int protection = PROT_READ | PROT_WRITE;
    void *bytes = mmap(NULL, room, protection, flags | MAP_LOCKED, -1, 0);
    if (bytes == MAP_FAILED) /* more than the user may lock */
        bytes = mmap(NULL, room, protection, flags, -1, 0);
    if (bytes == MAP_FAILED)
        return (struct bw_secret){.bytes = NULL};
    madvise(bytes, room, MADV_DONTDUMP);
    return (struct bw_secret){bytes, 0, room};
}

struct bw_secret bw_secret_create(size_t room)
{
    return create(room, MAP_PRIVATE | MAP_ANONYMOUS);
}

struct bw_secret bw_secret_create_shared(size_t room)
{
    return create(room, MAP_SHARED | MAP_ANONYMOUS);
}

bool bw_secret_read(struct bw_secret *secret, int descriptor)
{
    const ssize_t got =
        bw_read_all(descriptor, secret->bytes + secret->length, secret->room - secret->length);
    if (got > 0)
        secret->length += (size_t)got;
    return got >= 0;
}

void bw_secret_free(struct bw_secret *secret)
{
    if (!secret->bytes)
        return;
    explicit_bzero(secret->bytes, secret->room);
    munmap(secret->bytes, secret->room);
    *secret = (struct bw_secret){.bytes = NULL};
}
