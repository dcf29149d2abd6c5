/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys live in memory that is locked and cleared (base/secret.h). */
#include "graph/keys.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/secret.h"
#include "base/vector.h"

enum { ATTEMPTS = 3, LONGEST_PASSPHRASE = 512 };

BW_VECTOR(bw_secrets, struct bw_secret);

struct bw_keys {
    struct bw_secrets keys;
    bw_passphrase_source *ask; /* may be NULL */
    void *ask_context;
};

static struct bw_error *add_key(struct bw_keys *keys, const void *bytes, size_t length)
{
    BW_TRY(bw_secrets_reserve(&keys->keys, 1));
    struct bw_secret key = bw_secret_create(length + 1); /* a mapping has at least a byte */
    if (!key.bytes)
        return bw_error_no_memory();
    if (length)
        memcpy(key.bytes, bytes, length);
    key.length = length;
    return bw_secrets_push(&keys->keys, key);
}

struct bw_error *bw_keys_create(const struct bw_fs_options *options, struct bw_keys **result)
{
    struct bw_keys *keys = calloc(1, sizeof *keys);
    if (!keys)
        return bw_error_no_memory();
    keys->ask = options->ask;
    keys->ask_context = options->ask_context;
    *result = keys;
    for (size_t i = 0; i < options->key_count; i++)
        BW_TRY(add_key(keys, options->keys[i].bytes, options->keys[i].length));
    return NULL;
}

void bw_keys_destroy(struct bw_keys *keys)
{
    if (!keys)
        return;
    for (size_t i = 0; i < keys->keys.count; i++)
        bw_secret_free(&keys->keys.items[i]);
    bw_secrets_free(&keys->keys);
    free(keys);
}

struct bw_error *bw_keys_try(struct bw_keys *keys, const char *volume, bw_key_trial *try,
                             void *context)
{
    bool fits = false;
    for (size_t i = 0; i < keys->keys.count && !fits; i++) {
        const struct bw_secret *key = &keys->keys.items[i];
        BW_TRY(try(context, key->bytes, key->length, &fits));
    }
    if (fits)
        return NULL;

    BW_AUTO_SECRET struct bw_secret answer = bw_secret_create(LONGEST_PASSPHRASE);
    if (!answer.bytes)
        return bw_error_no_memory();
    unsigned attempt = 0;
    for (; keys->ask && attempt < ATTEMPTS && !fits; attempt++) {
        answer.length = answer.room;
        BW_TRY(keys->ask(keys->ask_context, volume, attempt, (char *)answer.bytes, &answer.length));
        if (!answer.length)
            break;
        BW_TRY(try(context, answer.bytes, answer.length, &fits));
    }
    if (fits)
        return add_key(keys, answer.bytes, answer.length);
    if (keys->keys.count || attempt)
        return bw_error_create(BW_ERROR_NOT_FOUND,
                               "no keyslot accepts the key or passphrase given");
    return bw_error_advise(bw_error_create(BW_ERROR_NOT_FOUND, "it is encrypted"),
                           "give its passphrase with `keys`, or on a terminal");
}
