/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys of encrypted volumes: from files, descriptors and the terminal. */
#ifndef BW_CLI_COMMON_KEYS_H
#define BW_CLI_COMMON_KEYS_H

#include "base/secret.h"
#include "btrfs-walk/fs.h"

enum {
    CMD_KEYS = 16,        /* keys on a command line */
    CMD_PASSPHRASE = 512, /* bytes of a typed passphrase that is kept */
};

/** Where a key came from. */
struct cmd_key_origin {
    const char *file; /**< argument of --key-file; NULL: the key came from a descriptor */
    int descriptor;
};

/** A passphrase that was typed on the terminal. */
struct cmd_typed {
    volatile size_t length; /**< 0: none */
    char bytes[CMD_PASSPHRASE];
};

struct cmd_keys {
    struct bw_secret secrets[CMD_KEYS];
    struct cmd_key_origin origins[CMD_KEYS];
    size_t count;
    /** CMD_KEYS of cmd_typed. Child processes share this memory, so a passphrase typed in one of
     * them serves all. A hostile image may have taken over a child, so it has no pointers. */
    struct bw_secret typed;
    struct cmd_typed *last_typed; /**< the answer to the last prompt; NULL: it was not kept */
    struct bw_passkey keys[2 * CMD_KEYS]; /**< all of these, made by cmd_keys_list() */
};

/** Reads a key from a file, or from stdin if `path` is "-"; `path` must outlive `keys`.
 * BW_ERROR_USAGE, BW_ERROR_SYSTEM. */
struct bw_error *cmd_keys_read_file(struct cmd_keys *keys, const char *path);

/** Reads a key from an open file descriptor, up to its end. */
struct bw_error *cmd_keys_read_descriptor(struct cmd_keys *keys, int descriptor);

/** NULL: no memory. */
struct cmd_keys *cmd_keys_create(void);

/** Makes the list `keys`, and returns how many there are. */
size_t cmd_keys_list(struct cmd_keys *keys);

/** Clears and frees all keys; `keys` may be NULL. */
void cmd_keys_free(struct cmd_keys *keys);

/** A bw_passphrase_source: prompts on the terminal, and adds the answer to `keys`. Without a
 * terminal, there is no passphrase. */
struct bw_error *cmd_keys_prompt(void *keys, const char *volume, unsigned attempt, char *passphrase,
                                 size_t *length);

#endif
