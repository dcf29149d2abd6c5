/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * layout/luks: shows the decrypted contents of a LUKS volume. A keyslot contains the volume key,
 * spread over many sectors and encrypted with a key from a passphrase; a digest verifies
 * it. The volume key decrypts each sector of the data by itself, with the sector's
 * number as the initialization vector.
 *
 * The key functions and the ciphers are those of libgcrypt. libcryptsetup is not used: it reads
 * from paths rather than layers, opens devices that the sandbox of the program does not allow, and
 * would double the time that the program takes to start.
 */
#include <errno.h>
#include <fcntl.h>
#include <gcrypt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/endian.h"
#include "base/gcrypt.h"
#include "base/human.h"
#include "base/secret.h"
#include "graph/keys.h"
#include "xlators/classes.h"
#include "xlators/layout/containers.h"
#include "xlators/layout/luks_header.h"
#include "xlators/layout/pieces.h"
#include "xlators/layout/window.h"

enum { BLOCK = 16 /* bytes of an initialization vector */ };

/* How the initialization vector is made from the number of a sector. */
enum vector { VECTOR_PLAIN, VECTOR_PLAIN64, VECTOR_PLAIN64BE, VECTOR_ESSIV, VECTOR_ZERO };

struct cipher {
    int algorithm, mode; /* numbers of libgcrypt */
    enum vector vector;
    int essiv_hash, essiv_algorithm;
};

struct luks {
    struct bw_window window; /* the data on the device below; the first member, for bw_window_*() */
    uint64_t first_sector;
    uint32_t sector_size;
    struct cipher cipher;
    struct bw_secret key; /* the volume key */
    char title[8];
};

static struct bw_error *gcrypt_error(gcry_error_t problem, const char *failure)
{
    return gcry_err_code(problem) == GPG_ERR_ENOMEM
               ? bw_error_no_memory()
               : bw_error_create(BW_ERROR_UNSUPPORTED, "%s: %s", failure, gcry_strerror(problem));
}

/* Ciphers. */

static int algorithm_of(const char *name, size_t key)
{
    static const struct {
        const char *name;
        size_t key;
        int algorithm;
    } known[] = {
        {"aes", 16, GCRY_CIPHER_AES128},           {"aes", 24, GCRY_CIPHER_AES192},
        {"aes", 32, GCRY_CIPHER_AES256},           {"serpent", 16, GCRY_CIPHER_SERPENT128},
        {"serpent", 24, GCRY_CIPHER_SERPENT192},   {"serpent", 32, GCRY_CIPHER_SERPENT256},
        {"twofish", 16, GCRY_CIPHER_TWOFISH128},   {"twofish", 32, GCRY_CIPHER_TWOFISH},
        {"camellia", 16, GCRY_CIPHER_CAMELLIA128}, {"camellia", 24, GCRY_CIPHER_CAMELLIA192},
        {"camellia", 32, GCRY_CIPHER_CAMELLIA256},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0 && known[i].key == key)
            return known[i].algorithm;
    return 0;
}

/* ESSIV encrypts the number of the sector with a hash of the key. */
static bool set_essiv(const char *name, const char *hash, struct cipher *cipher)
{
    cipher->vector = VECTOR_ESSIV;
    cipher->essiv_hash = gcry_md_map_name(hash);
    if (cipher->essiv_hash)
        cipher->essiv_algorithm = algorithm_of(name, gcry_md_get_algo_dlen(cipher->essiv_hash));
    return cipher->essiv_algorithm;
}

static bool set_vector(const char *name, const char *vector, struct cipher *cipher)
{
    static const char *const names[] = {"plain", "plain64", "plain64be"};
    if (strncmp(vector, "essiv:", 6) == 0)
        return set_essiv(name, vector + 6, cipher);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(vector, names[i]) == 0) {
            cipher->vector = (enum vector)i;
            return true;
        }
    return false;
}

/* "aes-xts-plain64"; LUKS1 writes "aes-cbc-essiv:sha256". `key`: bytes of the key. */
static struct bw_error *parse_cipher(const struct bw_luks_cipher *from, size_t key,
                                     struct cipher *cipher)
{
    char name[32] = "", mode[32] = "", vector[32] = "";
    *cipher = (struct cipher){.mode = GCRY_CIPHER_MODE_NONE};
    bool is_complete = sscanf(from->text, "%31[^-]-%31[^-]-%31s", name, mode, vector) == 3;
    bool is_xts = strcmp(mode, "xts") == 0;
    if (is_xts)
        cipher->mode = GCRY_CIPHER_MODE_XTS;
    else if (strcmp(mode, "cbc") == 0)
        cipher->mode = GCRY_CIPHER_MODE_CBC;
    cipher->algorithm = algorithm_of(name, is_xts ? key / 2 : key);
    bool is_known = is_complete && cipher->algorithm && cipher->mode != GCRY_CIPHER_MODE_NONE &&
                    set_vector(name, vector, cipher);
    if (is_known)
        return NULL;
    return bw_error_create(BW_ERROR_UNSUPPORTED,
                           "the cipher %s with a key of %zu bits is not known", from->text,
                           key * 8);
}

/* A cipher with its key, for one thread. */
struct engine {
    gcry_cipher_hd_t data, vector; /* vector: NULL unless vectors are encrypted */
};

static void close_engine(struct engine *engine)
{
    gcry_cipher_close(engine->data);
    gcry_cipher_close(engine->vector);
}

#define AUTO_ENGINE __attribute__((cleanup(close_engine)))

static struct bw_error *open_cipher(int algorithm, int mode, const uint8_t *key, size_t length,
                                    gcry_cipher_hd_t *handle)
{
    gcry_error_t problem = gcry_cipher_open(handle, algorithm, mode, 0);
    if (!problem)
        problem = gcry_cipher_setkey(*handle, key, length);
    if (problem)
        return gcrypt_error(problem, "cannot set up the cipher");
    return NULL;
}

static struct bw_error *open_engine(const struct cipher *cipher, const uint8_t *key, size_t length,
                                    struct engine *engine)
{
    BW_TRY(open_cipher(cipher->algorithm, cipher->mode, key, length, &engine->data));
    if (cipher->vector != VECTOR_ESSIV)
        return NULL;
    uint8_t hash[64];
    const size_t hash_length = gcry_md_get_algo_dlen(cipher->essiv_hash);
    gcry_md_hash_buffer(cipher->essiv_hash, hash, key, length);
    struct bw_error *error = open_cipher(cipher->essiv_algorithm, GCRY_CIPHER_MODE_ECB, hash,
                                         hash_length, &engine->vector);
    explicit_bzero(hash, sizeof hash);
    return error;
}

static gcry_error_t make_vector(const struct cipher *cipher, const struct engine *engine,
                                uint64_t sector, uint8_t vector[BLOCK])
{
    const bool is_short = cipher->vector == VECTOR_PLAIN;
    const bw_le64 number = bw_put64(is_short ? (uint32_t)sector : sector);
    memset(vector, 0, BLOCK);
    memcpy(vector, &number, sizeof number);
    if (cipher->vector == VECTOR_PLAIN64BE) {
        const uint64_t reversed = htobe64(sector);
        memset(vector, 0, BLOCK);
        memcpy(vector + BLOCK - sizeof reversed, &reversed, sizeof reversed);
    }
    return engine->vector ? gcry_cipher_encrypt(engine->vector, vector, BLOCK, NULL, 0) : 0;
}

/* Decrypts whole sectors in place. Sectors are numbered in units of 512 bytes. */
static struct bw_error *decrypt_sectors(const struct cipher *cipher, const struct engine *engine,
                                        uint8_t *bytes, uint64_t length, uint64_t sector,
                                        uint32_t size)
{
    for (uint64_t done = 0; done < length; done += size) {
        uint8_t vector[BLOCK];
        gcry_error_t problem = make_vector(cipher, engine, sector + done / BW_LUKS_SECTOR, vector);
        if (!problem)
            problem = gcry_cipher_setiv(engine->data, vector, sizeof vector);
        if (!problem)
            problem = gcry_cipher_decrypt(engine->data, bytes + done, size, NULL, 0);
        if (problem)
            return gcrypt_error(problem, "cannot decrypt");
    }
    return NULL;
}

/* Keys. */

/* Derives a key by Argon2 in this thread; libgcrypt computes the lanes one after the other. */
static struct bw_error *derive_by_argon2(const struct bw_luks_kdf *kdf, int variant,
                                         const uint8_t *from, size_t from_length, uint8_t *key,
                                         size_t length)
{
#if GCRYPT_VERSION_NUMBER >= 0x010a00
    const unsigned long parameters[] = {length, (unsigned long)kdf->rounds,
                                        (unsigned long)kdf->memory, (unsigned long)kdf->threads};
    gcry_kdf_hd_t handle = NULL;
    gcry_error_t problem =
        gcry_kdf_open(&handle, GCRY_KDF_ARGON2, variant, parameters, 4, from, from_length,
                      kdf->salt, kdf->salt_length, NULL, 0, NULL, 0);
    if (!problem)
        problem = gcry_kdf_compute(handle, NULL);
    if (!problem)
        problem = gcry_kdf_final(handle, length, key);
    if (handle)
        gcry_kdf_close(handle);
    if (problem)
        return gcrypt_error(problem, "argon2");
    return NULL;
#else
    (void)variant, (void)from, (void)from_length, (void)key, (void)length;
    return bw_error_create(BW_ERROR_UNSUPPORTED, "%s needs libgcrypt 1.10 or later", kdf->type);
#endif
}

static struct bw_error *derive_key(const struct bw_luks_kdf *kdf, const uint8_t *from,
                                   size_t from_length, uint8_t *key, size_t length)
{
    if (strcmp(kdf->type, "argon2id") == 0)
        return derive_by_argon2(kdf, 2, from, from_length, key, length);
    if (strcmp(kdf->type, "argon2i") == 0)
        return derive_by_argon2(kdf, 1, from, from_length, key, length);
    const int hash = gcry_md_map_name(kdf->hash);
    if (strcmp(kdf->type, "pbkdf2") != 0 || !hash)
        return bw_error_create(BW_ERROR_UNSUPPORTED, "the key function %s %s is not known",
                               kdf->type, kdf->hash);
    gcry_error_t problem =
        gcry_kdf_derive(from, from_length, GCRY_KDF_PBKDF2, hash, kdf->salt, kdf->salt_length,
                        (unsigned long)kdf->rounds, length, key);
    if (problem)
        return gcrypt_error(problem, "pbkdf2");
    return NULL;
}

/* Replaces each piece of a stripe, as long as a hash, by the hash of its number and itself. */
static void diffuse_stripe(int hash, uint8_t *stripe, size_t length)
{
    const size_t step = gcry_md_get_algo_dlen(hash);
    uint8_t result[64];
    for (size_t at = 0; at < length; at += step) {
        uint8_t input[4 + 64];
        const size_t size = length - at < step ? length - at : step;
        const uint32_t number = htobe32((uint32_t)(at / step));
        memcpy(input, &number, sizeof number);
        memcpy(input + sizeof number, stripe + at, size);
        gcry_md_hash_buffer(hash, result, input, sizeof number + size);
        memcpy(stripe + at, result, size);
    }
}

/* Joins the stripes over which a key was spread, so that erasing one of them destroys the key. */
static void join_stripes(int hash, const uint8_t *stripes, size_t count, uint8_t *key,
                         size_t length)
{
    memset(key, 0, length);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < length; k++)
            key[k] ^= stripes[i * length + k];
        if (i + 1 < count)
            diffuse_stripe(hash, key, length);
    }
}

/* A search for the volume key. */
struct search {
    struct bw_xlator *xlator;
    struct bw_xlator *source; /* device with the header */
    const struct bw_luks_header *header;
    struct luks *luks;
    struct bw_error *skipped; /* why a keyslot could not be tried */
    uint64_t work;            /* sum of work_of() of all keyslots and keys that were tried */
};

/* libgcrypt refuses more, in KiB. */
enum { GCRYPT_MEMORY = UINT32_MAX >> 10 };

/* The limit of Argon2's memory, in KiB: the option, but not more than the machine has. */
static uint64_t memory_limit(const struct search *search)
{
    const uint64_t limit = bw_xlator_option_number(search->xlator, "memory") >> 10;
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || page <= 0)
        return limit;
    const uint64_t all = (uint64_t)pages * (uint64_t)page >> 10;
    return limit < all ? limit : all;
}

/* The first digest of a keyslot, as in cryptsetup; NULL if it has none. */
static const struct bw_luks_digest *digest_of(const struct bw_luks_header *header,
                                              const struct bw_luks_slot *slot)
{
    for (size_t i = 0; i < header->digest_count; i++)
        if (header->digests[i].slots >> slot->number & 1)
            return &header->digests[i];
    return NULL;
}

/*
 * The work of deriving a key from a passphrase and verifying it: KiB in all passes of Argon2 over
 * its memory, and rounds of PBKDF2, which take about as long. cryptsetup does not limit it; its
 * defaults take seconds.
 */
static uint64_t work_of(const struct bw_luks_header *header, const struct bw_luks_slot *slot)
{
    const struct bw_luks_digest *digest = digest_of(header, slot);
    const uint64_t memory = slot->kdf.memory ? slot->kdf.memory : 1;
    uint64_t work;
    if (__builtin_mul_overflow(slot->kdf.rounds, memory, &work) ||
        (digest && __builtin_add_overflow(work, digest->kdf.rounds, &work)))
        return UINT64_MAX;
    return work;
}

/* A header can have many expensive keyslots, so all of them and all keys share one budget. */
static struct bw_error *check_work(const struct search *search, const struct bw_luks_slot *slot)
{
    const uint64_t limit = bw_xlator_option_number(search->xlator, "work") >> 10;
    const uint64_t work = work_of(search->header, slot);
    char memory[32], allowed[32];
    if (search->work <= limit && work <= limit - search->work)
        return NULL;
    *bw_write_size(memory, slot->kdf.memory << 10, false) = '\0';
    *bw_write_size(allowed, limit << 10, false) = '\0';
    if (!slot->kdf.memory)
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "keyslot %u needs %" PRIu64
                               " rounds, more work than the %s that are "
                               "allowed for all keyslots (raise it with --key-work)",
                               slot->number, slot->kdf.rounds, allowed);
    return bw_error_create(BW_ERROR_UNSUPPORTED,
                           "keyslot %u needs %" PRIu64 " passes over %s of memory, more work than "
                           "the %s that are allowed for all keyslots (raise it with --key-work)",
                           slot->number, slot->kdf.rounds, memory, allowed);
}

static struct bw_error *check_limits(const struct search *search, const struct bw_luks_slot *slot)
{
    enum { STRIPES = 1 << 16 };
    const uint64_t limit = memory_limit(search);
    const size_t digest = gcry_md_get_algo_dlen(gcry_md_map_name(slot->split_hash));
    char wanted[32], allowed[32];
    if (slot->kdf.memory > limit) {
        *bw_write_size(wanted, slot->kdf.memory << 10, false) = '\0';
        *bw_write_size(allowed, limit << 10, false) = '\0';
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "keyslot %u needs %s of memory, and at most %s are used",
                               slot->number, wanted, allowed);
    }
    if (slot->kdf.memory > GCRYPT_MEMORY) {
        *bw_write_size(wanted, slot->kdf.memory << 10, false) = '\0';
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "keyslot %u needs %s of memory, and libgcrypt can use only less "
                               "than 4 GiB",
                               slot->number, wanted);
    }
    if (!slot->key || !slot->stripes || slot->stripes > STRIPES || !digest || digest > 64 ||
        slot->stripes * slot->key > slot->length || slot->kdf.threads > 64)
        return bw_error_create(BW_ERROR_CORRUPT, "keyslot %u has impossible numbers", slot->number);
    return check_work(search, slot);
}

static struct bw_error *read_material(const struct search *search, const struct bw_luks_slot *slot,
                                      struct bw_secret *material)
{
    struct bw_request request = {.kind = BW_REQUEST_RAW,
                                 .length = (uint32_t)material->length,
                                 .address = slot->offset,
                                 .buffer = material->bytes};
    const uint64_t size = bw_xlator_size(search->source);
    if (slot->offset > size || material->length > size - slot->offset)
        return bw_error_create(BW_ERROR_CORRUPT, "keyslot %u is cut off", slot->number);
    bw_wind(NULL, search->source, &request, 1);
    return request.error;
}

/* Decrypts the key of a slot with a key from the passphrase. The result may be wrong. */
static struct bw_error *open_slot(const struct search *search, const struct bw_luks_slot *slot,
                                  const uint8_t *passphrase, size_t length, uint8_t *key)
{
    const size_t size = slot->stripes * slot->key;
    const size_t rounded = (size + BW_LUKS_SECTOR - 1) / BW_LUKS_SECTOR * BW_LUKS_SECTOR;
    BW_AUTO_SECRET struct bw_secret material = bw_secret_create(rounded);
    BW_AUTO_SECRET struct bw_secret area_key = bw_secret_create(BW_LUKS_KEY);
    AUTO_ENGINE struct engine engine = {NULL, NULL};
    struct cipher cipher;
    if (!material.bytes || !area_key.bytes)
        return bw_error_no_memory();
    material.length = rounded;
    BW_TRY(parse_cipher(&slot->area, slot->area_key, &cipher));
    BW_TRY(read_material(search, slot, &material));
    BW_TRY(derive_key(&slot->kdf, passphrase, length, area_key.bytes, slot->area_key));
    BW_TRY(open_engine(&cipher, area_key.bytes, slot->area_key, &engine));
    BW_TRY(decrypt_sectors(&cipher, &engine, material.bytes, rounded, 0, BW_LUKS_SECTOR));
    join_stripes(gcry_md_map_name(slot->split_hash), material.bytes, slot->stripes, key, slot->key);
    return NULL;
}

static struct bw_error *verify_key(const struct search *search, const struct bw_luks_slot *slot,
                                   const uint8_t *key, bool *fits)
{
    const struct bw_luks_digest *digest = digest_of(search->header, slot);
    uint8_t found[BW_LUKS_SALT];
    if (!digest || strcmp(digest->kdf.type, "pbkdf2") != 0)
        return NULL;
    BW_TRY(derive_key(&digest->kdf, key, slot->key, found, digest->length));
    *fits = memcmp(found, digest->value, digest->length) == 0;
    return NULL;
}

static struct bw_error *try_slot(struct search *search, const struct bw_luks_slot *slot,
                                 const uint8_t *passphrase, size_t length, bool *fits)
{
    BW_AUTO_SECRET struct bw_secret key = bw_secret_create(BW_LUKS_KEY);
    if (!key.bytes)
        return bw_error_no_memory();
    BW_TRY(check_limits(search, slot));
    search->work += work_of(search->header, slot);
    BW_TRY(open_slot(search, slot, passphrase, length, key.bytes));
    BW_TRY(verify_key(search, slot, key.bytes, fits));
    if (!*fits)
        return NULL;
    BW_TRY(parse_cipher(&search->header->cipher, slot->key, &search->luks->cipher));
    key.length = slot->key;
    search->luks->key = key;
    key = (struct bw_secret){.bytes = NULL};
    return NULL;
}

/* A keyslot that cannot be tried does not hide the others. */
static struct bw_error *try_passphrase(void *context, const uint8_t *passphrase, size_t length,
                                       bool *fits)
{
    struct search *search = context;
    for (size_t i = 0; i < search->header->slot_count && !*fits; i++) {
        struct bw_error *error =
            try_slot(search, &search->header->slots[i], passphrase, length, fits);
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return error;
        search->skipped = bw_error_first(search->skipped, error);
    }
    return NULL;
}

/* Tries the key in the file that the option names. */
static struct bw_error *try_file(struct search *search, const char *path, bool *fits)
{
    enum { LARGEST = 8 << 20 };
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return bw_error_from_errno(errno, "cannot open the key file %s", path);
    BW_AUTO_SECRET struct bw_secret key = bw_secret_create(LARGEST);
    const bool is_read = key.bytes && bw_secret_read(&key, file);
    const int problem = errno;
    close(file);
    if (!is_read)
        return bw_error_from_errno(problem, "cannot read the key file %s", path);
    BW_TRY(try_passphrase(search, key.bytes, key.length, fits));
    if (*fits || key.length < 2 || key.bytes[key.length - 1] != '\n')
        return NULL;
    return try_passphrase(search, key.bytes, key.length - 1, fits);
}

static struct bw_error *no_key(struct search *search, struct bw_error *error)
{
    if (!search->header->slot_count) {
        bw_error_free(error);
        return bw_error_create(BW_ERROR_NOT_FOUND, "its header has no keyslot");
    }
    if (error->code != BW_ERROR_NOT_FOUND || !search->skipped)
        return error;
    bw_error_free(error);
    return BW_TAKE(search->skipped);
}

/* The cheapest keyslots first: the others must not use up the budget before them. */
static void sort_slots(struct bw_luks_header *header)
{
    for (size_t i = 1; i < header->slot_count; i++)
        for (size_t k = i; k > 0; k--) {
            const struct bw_luks_slot slot = header->slots[k];
            if (work_of(header, &header->slots[k - 1]) <= work_of(header, &slot))
                break;
            header->slots[k] = header->slots[k - 1];
            header->slots[k - 1] = slot;
        }
}

static struct bw_error *unlock_volume(struct search *search)
{
    const char *path = bw_xlator_option_text(search->xlator, "key-file");
    struct bw_keys *keys = bw_xlator_keys(search->xlator);
    bool fits = false;
    if (*path)
        BW_TRY(try_file(search, path, &fits));
    struct bw_error *error = NULL;
    if (!fits && keys)
        error = bw_keys_try(keys, bw_xlator_image(search->xlator), try_passphrase, search);
    else if (!fits)
        error = bw_error_create(BW_ERROR_NOT_FOUND, "no keyslot accepts the key given");
    if (error)
        error = no_key(search, error);
    bw_error_free(search->skipped);
    return error;
}

/* The layer. */

static struct bw_error *set_range(struct bw_xlator *xlator, const struct bw_luks_header *header)
{
    struct luks *luks = bw_xlator_private(xlator);
    const uint64_t size = bw_xlator_size(bw_xlator_child(xlator, 0));
    luks->window.offset = header->offset;
    luks->sector_size = header->sector_size;
    luks->first_sector = header->first_sector;
    snprintf(luks->title, sizeof luks->title, "LUKS%u", header->version);
    if (header->offset >= size)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "its data begin at %" PRIu64 ", after the end at %" PRIu64,
                               header->offset, size);
    uint64_t room = (size - header->offset) / header->sector_size * header->sector_size;
    luks->window.length = header->length && header->length < room ? header->length : room;
    if (header->is_second)
        bw_xlator_report(xlator, BW_WARNING,
                         bw_error_create(BW_ERROR_CORRUPT,
                                         "the first LUKS2 header is damaged: the second one is "
                                         "used"));
    return NULL;
}

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct luks *luks = bw_xlator_private(xlator);
    struct bw_xlator *device = bw_xlator_child(xlator, 0);
    struct bw_xlator *source =
        bw_xlator_child_count(xlator) > 1 ? bw_xlator_child(xlator, 1) : device;
    BW_AUTO_FREE struct bw_luks_header *header = calloc(1, sizeof *header);
    struct search search = {.xlator = xlator, .source = source, .header = header, .luks = luks};
    if (!header)
        return bw_error_no_memory();
    BW_TRY(bw_gcrypt_prepare());
    BW_TRY(bw_luks_header_read(NULL, source, header));
    BW_TRY(set_range(xlator, header));
    sort_slots(header);
    return unlock_volume(&search);
}

static void fini(struct bw_xlator *xlator)
{
    struct luks *luks = bw_xlator_private(xlator);
    bw_secret_free(&luks->key);
}

/* Reading. Holes of a sparse image were never written, so they contain no encrypted data, and the
 * window's operations for them apply. */

struct decryption {
    const struct luks *luks;
    const struct engine *engine;
};

/* Decrypts whole sectors in place. */
static struct bw_error *decrypt_at(void *context, const struct bw_frame *frame, uint8_t *bytes,
                                   uint64_t address, uint64_t length)
{
    const struct decryption *decryption = context;
    const struct luks *luks = decryption->luks;
    (void)frame;
    return decrypt_sectors(&luks->cipher, decryption->engine, bytes, length,
                           luks->first_sector + address / BW_LUKS_SECTOR, luks->sector_size);
}

static void read_batch(const struct bw_frame *frame, struct bw_xlator *xlator,
                       struct decryption *decryption, struct bw_request *requests, size_t count)
{
    const struct luks *luks = decryption->luks;
    struct bw_request copies[BW_BATCH], *originals[BW_BATCH];
    size_t wound = 0;
    for (size_t i = 0; i < count; i++) {
        struct bw_request *request = &requests[i];
        request->error = bw_request_check_end("the volume ends", luks->window.length, request);
        if (request->error)
            continue;
        if ((request->address | request->length) % luks->sector_size) {
            request->error = bw_read_blocks(frame, bw_xlator_child(xlator, 0), luks->window.offset,
                                            luks->sector_size, request, decrypt_at, decryption);
            continue;
        }
        copies[wound] = *request;
        copies[wound].address += luks->window.offset;
        originals[wound++] = request;
    }
    bw_wind(frame, bw_xlator_child(xlator, 0), copies, wound);
    for (size_t i = 0; i < wound; i++) {
        bw_request_answer(originals[i], &copies[i]);
        if (!originals[i]->error)
            originals[i]->error = decrypt_at(decryption, frame, originals[i]->buffer,
                                             originals[i]->address, originals[i]->length);
    }
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    const struct luks *luks = bw_xlator_private(xlator);
    AUTO_ENGINE struct engine engine = {NULL, NULL};
    struct decryption decryption = {luks, &engine};
    BW_AUTO_ERROR struct bw_error *error =
        open_engine(&luks->cipher, luks->key.bytes, luks->key.length, &engine);
    for (size_t i = 0; error && i < count; i++)
        requests[i].error = bw_error_copy(error);
    for (size_t done = 0; !error && done < count; done += BW_BATCH)
        read_batch(frame, xlator, &decryption, requests + done, bw_next_batch(count - done));
}

static const char *title(struct bw_xlator *xlator)
{
    const struct luks *luks = bw_xlator_private(xlator);
    return luks->title;
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    const struct luks *luks = bw_xlator_private(xlator);
    bw_json_number(json, "offset", luks->window.offset);
    bw_json_number(json, "length", luks->window.length);
    bw_json_number(json, "sector_size", luks->sector_size);
}

/* The container. */

static bool find(const struct bw_frame *frame, struct bw_xlator *device, struct bw_container_id *id)
{
    (void)id;
    return bw_luks_find(frame, device);
}

const struct bw_container_type bw_luks_container = {.layer = "layout/luks", .find = find};

static const struct bw_option options[] = {
    {"key-file", BW_OPTION_PATH, "", 0, 0,
     "file with the key or passphrase; otherwise those of --key-file are tried", NULL},
    {"memory", BW_OPTION_SIZE, "4G", 0, UINT64_C(1) << 42,
     "keyslots that need more memory for Argon2 are not tried", NULL},
    {"work", BW_OPTION_SIZE, "1T", 0, UINT64_C(1) << 60,
     "the most memory that all passes of Argon2 for all keyslots and keys may add up to; a round "
     "of PBKDF2 counts as 1 KiB",
     NULL},
    {0},
};

static const char page[] =
    "Shows the decrypted contents of an encrypted volume in the formats LUKS1 and LUKS2. "
    "The default graph contains it for an image, or a partition, that begins with a LUKS "
    "header. Neither root nor the device mapper is needed.\n\n"
    "    btrfs-walk --key-file secret laptop.img\n"
    "    btrfs-walk laptop.img                    asks for the passphrase\n\n"
    "The key or passphrase is that of any keyslot. On a terminal, the program asks for it. A "
    "file with the newline of a text editor at its end works with and without it. "
    "Ciphers are aes, serpent, twofish and camellia in the modes xts and cbc, with the "
    "initialization vectors plain, plain64, plain64be and essiv; others are refused by name, "
    "as are authenticated encryption and volumes in the middle of a reencryption. If the first "
    "header of LUKS2 is damaged, its second one is used.\n\n"
    "Argon2 needs the memory that was chosen for a keyslot. Keyslots that need more than the "
    "option memory, which --key-memory sets, are skipped; libgcrypt can use less than 4 GiB. All "
    "keyslots and keys share a budget of work, which --key-work sets: memory times passes of "
    "Argon2, and 1 KiB for each round of PBKDF2. The default, 1 TiB, takes about ten minutes. The "
    "cheapest keyslots are tried first, and those that would exceed the budget are skipped.\n\n"
    "If the header is in another file, it is the second child of the layer; the option "
    "--luks-header does that. Keys are kept in locked memory that is not part of core files, and "
    "are cleared at the end.\n";

const struct bw_xlator_class bw_layout_luks_class = {
    .type = "layout/luks",
    .description = "decrypts a LUKS volume",
    .page = page,
    .above = BW_ADDRESS_DEVICE,
    .below = BW_ADDRESS_DEVICE,
    .minimum_children = 1,
    .maximum_children = 2,
    .private_size = sizeof(struct luks),
    .options = options,
    .operations = {.init = init,
                   .fini = fini,
                   .read = read_requests,
                   .advise = bw_window_advise,
                   .size = bw_window_size,
                   .next_stored = bw_window_next_stored,
                   .dump = dump,
                   .title = title},
};
