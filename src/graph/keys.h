/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys and passphrases of encrypted volumes. They belong to the graph; layers try them. */
#ifndef BW_GRAPH_KEYS_H
#define BW_GRAPH_KEYS_H

#include "btrfs-walk/fs.h"

struct bw_keys;

/** Copies the keys and the callback for passphrases from the options. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_keys_create(const struct bw_fs_options *options, struct bw_keys **keys);

/** Clears and frees them; `keys` may be NULL. */
void bw_keys_destroy(struct bw_keys *keys);

/** Tries a key. Sets `fits`, if it is the right one. An error ends the search. */
typedef struct bw_error *bw_key_trial(void *context, const uint8_t *key, size_t length, bool *fits);

/**
 * Tries all keys, then asks the user for passphrases. A passphrase that fits is kept for other
 * volumes. `volume` names the volume for the user. BW_ERROR_NOT_FOUND if no key fits; the message
 * explains how to provide one. For one thread at a time.
 */
struct bw_error *bw_keys_try(struct bw_keys *keys, const char *volume, bw_key_trial *try,
                             void *context);

#endif
