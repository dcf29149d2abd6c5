/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory for keys and passphrases: not swapped out, not part of core files, cleared at the end. */
#ifndef BW_BASE_SECRET_H
#define BW_BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bw_secret {
    uint8_t *bytes;
    size_t length; /**< bytes in use */
    size_t room;   /**< bytes that may be used */
};

/** Allocates room for `room` bytes, zeros. bytes is NULL if memory runs out. */
struct bw_secret bw_secret_create(size_t room);

/** The same, in memory that child processes share. */
struct bw_secret bw_secret_create_shared(size_t room);

/** Clears and frees the memory. */
void bw_secret_free(struct bw_secret *secret);

/** Appends the bytes of a descriptor up to its end, as far as there is room. False with errno. */
bool bw_secret_read(struct bw_secret *secret, int descriptor);

/** Frees the secret at the end of its scope. */
#define BW_AUTO_SECRET __attribute__((cleanup(bw_secret_free)))

#endif
