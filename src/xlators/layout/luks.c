/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * layout/luks: shows the decrypted contents of a LUKS volume. A keyslot contains the volume key,
 * spread over many sectors and encrypted with a key from a passphrase; a digest verifies
 * it. The volume key decrypts each sector of the data by itself, with the sector's
 * number as the initialization vector.
 *
 * The header of LUKS1 is a table of numbers. The header of LUKS2 is a block of numbers with a
 * checksum, followed by a text in JSON, and is stored twice. All numbers are big-endian. Both
 * become the same structure. A header may be hostile: keyslots that need too much memory or work
 * are not tried.
 *
 * The key functions and the ciphers come from libgcrypt. libcryptsetup is not used: it reads
 * from paths rather than layers, opens devices that the sandbox of the program does not allow, and
 * would double the time that the program takes to start.
 *
 * Sources: "LUKS1 On-Disk Format Specification" 1.2.3 and "LUKS2 On-Disk Format Specification"
 * 1.1.3 by the cryptsetup project.
 */
#include <errno.h>
#include <fcntl.h>
#include <gcrypt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef BW_LUKS2
#include <json-c/json.h>
#endif

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/endian.h"
#include "base/gcrypt.h"
#include "base/human.h"
#include "base/secret.h"
#include "graph/keys.h"
#include "xlators/classes.h"
#include "xlators/layout/containers.h"
#include "xlators/layout/window.h"
#include "xlators/pieces.h"

enum {
    SECTOR = 512, /* unit of offsets in LUKS1, and of numbers of sectors */
    KEYSLOTS = 32,
    LONGEST_KEY = 64,  /* bytes */
    LONGEST_SALT = 64, /* bytes, also of digests */
};

/* A function from a passphrase to a key. */
struct kdf {
    char type[16]; /* "pbkdf2", "argon2i" or "argon2id" */
    char hash[32]; /* the hash function of pbkdf2 */
    uint64_t rounds;
    uint64_t memory, threads; /* parameters of argon2; memory in KiB */
    uint8_t salt[LONGEST_SALT];
    size_t salt_length;
};

/* The volume key, encrypted with a key from a passphrase. */
struct keyslot {
    unsigned number;
    struct kdf kdf;
    uint64_t offset, length; /* where the key material is, in bytes */
    char area[64];           /* the cipher of the key material, such as "aes-xts-plain64" */
    size_t area_key, key;    /* bytes of the key for it, and of the volume key */
    uint64_t stripes;        /* the key material is that many times as long as the key */
    char split_hash[32];
};

/* A digest that verifies a volume key. */
struct digest {
    struct kdf kdf; /* pbkdf2 */
    uint8_t value[LONGEST_SALT];
    size_t length;
    uint64_t slots; /* bit i: it is for the keyslot with number i */
};

struct header {
    unsigned version;        /* 1 or 2 */
    uint64_t offset, length; /* where the data are; length 0: up to the end of the device */
    uint64_t first_sector;   /* number of the first sector of the data, for the cipher */
    uint32_t sector_size;
    char cipher[64];
    struct keyslot slots[KEYSLOTS];
    size_t slot_count;
    struct digest digests[KEYSLOTS];
    size_t digest_count;
    bool is_second; /* the first copy of the header is damaged */
};

/* Headers on disk. */

enum {
    HEADER_2 = 4096, /* bytes of the binary header of LUKS2 */
    LARGEST = 4 << 20,
    FIRST_COPY = 16 << 10, /* smallest offset of the second header of LUKS2 */
    SLOTS_1 = 8,
    SLOT_1_USED = 0x00ac71f3,
    DIGEST_1 = 20,
    SALT_1 = 32,
};

static const char magic_first[6] = {'L', 'U', 'K', 'S', '\xba', '\xbe'};
static const char magic_second[6] = {'S', 'K', 'U', 'L', '\xba', '\xbe'};

struct disk_slot_1 {
    bw_be32 used, rounds;
    uint8_t salt[SALT_1];
    bw_be32 offset, stripes;
};

struct disk_header_1 {
    char magic[6];
    bw_be16 version;
    char cipher[32], mode[32], hash[32];
    bw_be32 offset, key;
    uint8_t digest[DIGEST_1], salt[SALT_1];
    bw_be32 rounds;
    char uuid[40];
    struct disk_slot_1 slots[SLOTS_1];
};

struct disk_header_2 {
    char magic[6];
    bw_be16 version;
    bw_be64 size, sequence;
    char label[48], checksum_type[32];
    uint8_t salt[64];
    char uuid[40], subsystem[48];
    bw_be64 offset;
    uint8_t padding[184], checksum[64];
};

static_assert(sizeof(struct disk_header_1) == 592, "as on disk");
static_assert(sizeof(struct disk_header_2) == 512, "as on disk");

static const char header_ends[] = "the device with the LUKS header ends";

static struct bw_error *decode_1(const struct disk_header_1 *disk, struct header *header)
{
    const uint32_t key = bw_get_be32(disk->key);
    *header = (struct header){.version = 1,
                              .offset = UINT64_C(512) * bw_get_be32(disk->offset),
                              .sector_size = SECTOR,
                              .digest_count = 1};
    snprintf(header->cipher, sizeof header->cipher, "%.31s-%.31s", disk->cipher, disk->mode);
    if (key > LONGEST_KEY)
        return bw_error_create(BW_ERROR_CORRUPT, "the LUKS header has a key of %" PRIu32 " bytes",
                               key);
    struct digest *digest = &header->digests[0];
    *digest = (struct digest){
        .kdf = {.type = "pbkdf2", .rounds = bw_get_be32(disk->rounds), .salt_length = SALT_1},
        .length = DIGEST_1,
        .slots = UINT64_MAX};
    memcpy(digest->kdf.hash, disk->hash, sizeof digest->kdf.hash - 1);
    memcpy(digest->kdf.salt, disk->salt, SALT_1);
    memcpy(digest->value, disk->digest, DIGEST_1);

    for (unsigned i = 0; i < SLOTS_1; i++) {
        const struct disk_slot_1 *from = &disk->slots[i];
        if (bw_get_be32(from->used) != SLOT_1_USED)
            continue;
        struct keyslot *slot = &header->slots[header->slot_count++];
        *slot = (struct keyslot){
            .number = i,
            .offset = UINT64_C(512) * bw_get_be32(from->offset),
            .length = UINT64_C(1) * bw_get_be32(from->stripes) * key,
            .area_key = key,
            .key = key,
            .stripes = bw_get_be32(from->stripes),
            .kdf = {.type = "pbkdf2", .rounds = bw_get_be32(from->rounds), .salt_length = SALT_1}};
        memcpy(slot->area, header->cipher, sizeof slot->area);
        memcpy(slot->kdf.salt, from->salt, SALT_1);
        memcpy(slot->kdf.hash, disk->hash, sizeof slot->kdf.hash - 1);
        memcpy(slot->split_hash, disk->hash, sizeof slot->split_hash - 1);
    }
    return NULL;
}

#ifdef BW_LUKS2

static struct bw_error *invalid_member(const char *member)
{
    return bw_error_create(BW_ERROR_CORRUPT, "the LUKS header has no valid %s", member);
}

/* A member of a type; NULL if none exists. */
static struct json_object *member_of(struct json_object *object, const char *name,
                                     enum json_type type)
{
    struct json_object *value = NULL;
    json_object_object_get_ex(object, name, &value);
    return json_object_is_type(value, type) ? value : NULL;
}

static const char *text_of(struct json_object *object, const char *name)
{
    struct json_object *value = member_of(object, name, json_type_string);
    return value ? json_object_get_string(value) : "";
}

static void copy_member(struct json_object *object, const char *name, char *to, size_t size)
{
    snprintf(to, size, "%s", text_of(object, name));
}

/* A number, or a text with one: JSON has no numbers of 64 bits. */
static bool number_of(struct json_object *object, const char *name, uint64_t *number)
{
    struct json_object *value = member_of(object, name, json_type_int);
    char *end;
    if (value) {
        *number = (uint64_t)json_object_get_int64(value);
        return json_object_get_int64(value) >= 0;
    }
    const char *text = text_of(object, name);
    *number = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end;
}

/* Decodes base64. */
static bool bytes_of(struct json_object *object, const char *name, uint8_t *bytes, size_t *length)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *text = text_of(object, name), *digit;
    unsigned bits = 0;
    uint32_t value = 0;
    for (*length = 0; *text && (digit = strchr(digits, *text)); text++) {
        value = value << 6 | (uint32_t)(digit - digits);
        bits += 6;
        if (bits < 8)
            continue;
        bits -= 8;
        if (*length == LONGEST_SALT)
            return false;
        bytes[(*length)++] = (uint8_t)(value >> bits);
    }
    return *length && (!*text || *text == '=');
}

static bool decode_kdf(struct json_object *from, struct kdf *kdf)
{
    copy_member(from, "type", kdf->type, sizeof kdf->type);
    copy_member(from, "hash", kdf->hash, sizeof kdf->hash);
    if (!bytes_of(from, "salt", kdf->salt, &kdf->salt_length))
        return false;
    if (strcmp(kdf->type, "pbkdf2") == 0)
        return number_of(from, "iterations", &kdf->rounds);
    return number_of(from, "time", &kdf->rounds) && number_of(from, "memory", &kdf->memory) &&
           number_of(from, "cpus", &kdf->threads);
}

static struct bw_error *decode_segment(struct json_object *from, struct header *header)
{
    uint64_t sector_size;
    if (json_object_object_get_ex(from, "integrity", NULL))
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "LUKS2 with authenticated encryption (dm-integrity) is not read");
    if (header->sector_size)
        return bw_error_create(BW_ERROR_UNSUPPORTED, "LUKS2 with several segments is not read");
    if (strcmp(text_of(from, "type"), "crypt") != 0)
        return bw_error_create(BW_ERROR_UNSUPPORTED, "a LUKS2 segment of type '%s' is not read",
                               text_of(from, "type"));
    if (!number_of(from, "offset", &header->offset) ||
        !number_of(from, "iv_tweak", &header->first_sector) ||
        !number_of(from, "sector_size", &sector_size) || sector_size < SECTOR ||
        sector_size > 4096 || sector_size & (sector_size - 1))
        return invalid_member("segment");
    if (!number_of(from, "size", &header->length)) /* "dynamic" */
        header->length = 0;
    header->sector_size = (uint32_t)sector_size;
    copy_member(from, "encryption", header->cipher, sizeof header->cipher);
    return NULL;
}

static struct bw_error *decode_slot(const char *name, struct json_object *from,
                                    struct header *header)
{
    struct keyslot *slot = &header->slots[header->slot_count];
    struct json_object *area, *split, *kdf;
    uint64_t key, area_key;
    if (strcmp(text_of(from, "type"), "luks2") != 0)
        return NULL; /* a keyslot of a reencryption */
    if (header->slot_count == KEYSLOTS)
        return invalid_member("list of keyslots");
    *slot = (struct keyslot){.number = (unsigned)strtoul(name, NULL, 10)};
    if (slot->number >= KEYSLOTS || !json_object_object_get_ex(from, "area", &area) ||
        !json_object_object_get_ex(from, "af", &split) ||
        !json_object_object_get_ex(from, "kdf", &kdf) || !number_of(from, "key_size", &key) ||
        !number_of(area, "key_size", &area_key) || !number_of(area, "offset", &slot->offset) ||
        !number_of(area, "size", &slot->length) || !number_of(split, "stripes", &slot->stripes) ||
        !decode_kdf(kdf, &slot->kdf) || key > LONGEST_KEY || area_key > LONGEST_KEY)
        return invalid_member("keyslot");
    copy_member(area, "encryption", slot->area, sizeof slot->area);
    copy_member(split, "hash", slot->split_hash, sizeof slot->split_hash);
    slot->key = key;
    slot->area_key = area_key;
    header->slot_count++;
    return NULL;
}

/* A digest without a segment belongs to an unbound key, which does not decrypt the data. */
static struct bw_error *decode_digest(struct json_object *from, struct header *header)
{
    struct digest *digest = &header->digests[header->digest_count];
    struct json_object *slots = member_of(from, "keyslots", json_type_array);
    struct json_object *segments = member_of(from, "segments", json_type_array);
    if (header->digest_count == KEYSLOTS)
        return invalid_member("list of digests");
    *digest = (struct digest){.slots = 0};
    if (!decode_kdf(from, &digest->kdf) ||
        !bytes_of(from, "digest", digest->value, &digest->length) || !slots || !segments)
        return invalid_member("digest");
    for (size_t i = 0; i < json_object_array_length(slots); i++) {
        const char *number = json_object_get_string(json_object_array_get_idx(slots, i));
        const unsigned long bit = number ? strtoul(number, NULL, 10) : 64;
        if (bit < 64)
            digest->slots |= UINT64_C(1) << bit;
    }
    header->digest_count += json_object_array_length(segments) != 0;
    return NULL;
}

static struct bw_error *decode_json(struct json_object *root, struct header *header)
{
    /* A volume that is being reencrypted has two keys, and a border between them. */
    struct json_object *config = NULL, *requirements = NULL;
    json_object_object_get_ex(root, "config", &config);
    json_object_object_get_ex(config, "requirements", &requirements);
    struct json_object *mandatory = member_of(requirements, "mandatory", json_type_array);
    if (mandatory && json_object_array_length(mandatory)) {
        const char *first = json_object_get_string(json_object_array_get_idx(mandatory, 0));
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "the LUKS2 volume has the requirement '%s', which is not read",
                               first ? first : "");
    }

    struct json_object_iter at;
    struct json_object *segments = member_of(root, "segments", json_type_object);
    if (!segments)
        return invalid_member("segments");
    json_object_object_foreachC(segments, at) BW_TRY(decode_segment(at.val, header));
    struct json_object *slots = member_of(root, "keyslots", json_type_object);
    if (!slots)
        return invalid_member("keyslots");
    json_object_object_foreachC(slots, at) BW_TRY(decode_slot(at.key, at.val, header));
    struct json_object *digests = member_of(root, "digests", json_type_object);
    if (!digests)
        return invalid_member("digests");
    json_object_object_foreachC(digests, at) BW_TRY(decode_digest(at.val, header));
    return header->sector_size ? NULL : invalid_member("segment");
}

/* Reads the copy of a LUKS2 header at an offset. */
static struct bw_error *read_copy(struct bw_xlator *device, uint64_t offset, struct header *header)
{
    struct disk_header_2 disk;
    BW_TRY(bw_read_inside(NULL, device, header_ends, offset, &disk, sizeof disk));
    const uint64_t size = bw_get_be64(disk.size);
    if (memcmp(disk.magic, offset ? magic_second : magic_first, sizeof disk.magic) != 0 ||
        bw_get_be16(disk.version) != 2 || bw_get_be64(disk.offset) != offset || size <= HEADER_2 ||
        size > LARGEST)
        return bw_error_create(BW_ERROR_CORRUPT, "no LUKS2 header is at %" PRIu64, offset);
    BW_AUTO_FREE uint8_t *bytes = malloc(size);
    if (!bytes)
        return bw_error_no_memory();
    BW_TRY(bw_read_inside(NULL, device, header_ends, offset, bytes, (uint32_t)size));

    /* The checksum covers the whole copy, with zeros in its own place. */
    char type[sizeof disk.checksum_type + 1];
    uint8_t found[sizeof disk.checksum] = {0};
    memcpy(&disk, bytes, sizeof disk);
    snprintf(type, sizeof type, "%.*s", (int)sizeof disk.checksum_type, disk.checksum_type);
    const int algorithm = gcry_md_map_name(type);
    const unsigned length = algorithm ? gcry_md_get_algo_dlen(algorithm) : 0;
    if (!length || length > sizeof found)
        return bw_error_create(BW_ERROR_CORRUPT, "the LUKS header has a checksum of type '%s'",
                               type);
    memset(bytes + offsetof(struct disk_header_2, checksum), 0, sizeof disk.checksum);
    gcry_md_hash_buffer(algorithm, found, bytes, size);
    if (memcmp(disk.checksum, found, length) != 0)
        return bw_error_create(BW_ERROR_CORRUPT, "the checksum of the LUKS header is wrong");

    struct json_tokener *tokener = json_tokener_new();
    if (!tokener)
        return bw_error_no_memory();
    const char *text = (const char *)bytes + HEADER_2;
    const size_t text_length = strnlen(text, size - HEADER_2);
    struct json_object *root = json_tokener_parse_ex(tokener, text, (int)text_length);
    struct bw_error *error;
    *header = (struct header){.version = 2};
    if (json_object_is_type(root, json_type_object))
        error = decode_json(root, header);
    else
        error = invalid_member("JSON");
    json_object_put(root);
    json_tokener_free(tokener);
    return error;
}

#else

static struct bw_error *read_copy(struct bw_xlator *device, uint64_t offset, struct header *header)
{
    (void)device, (void)offset, (void)header;
    return bw_error_create(BW_ERROR_UNSUPPORTED,
                           "this program was built without json-c, which LUKS2 needs");
}

#endif

/* Reads the header of a device. BW_ERROR_UNSUPPORTED names the unsupported feature. */
static struct bw_error *read_header(struct bw_xlator *device, struct header *header)
{
    struct disk_header_1 disk;
    BW_TRY(bw_read_inside(NULL, device, header_ends, 0, &disk, sizeof disk));
    if (memcmp(disk.magic, magic_first, sizeof magic_first) == 0 && bw_get_be16(disk.version) == 1)
        return decode_1(&disk, header);
    /* The second copy of LUKS2 is at one of a few offsets. */
    struct bw_error *error = read_copy(device, 0, header);
    for (uint64_t offset = FIRST_COPY;
         error && error->code == BW_ERROR_CORRUPT && offset <= LARGEST; offset *= 2) {
        BW_AUTO_ERROR struct bw_error *none = read_copy(device, offset, header);
        if (none)
            continue;
        bw_error_free(BW_TAKE(error));
        header->is_second = true;
    }
    return error;
}

/* Ciphers. */

enum { BLOCK = 16 /* bytes of an initialization vector */ };

/* How the initialization vector is made from the number of a sector. */
enum vector { VECTOR_PLAIN, VECTOR_PLAIN64, VECTOR_PLAIN64BE, VECTOR_ESSIV };

struct cipher {
    int algorithm, mode; /* numbers of libgcrypt */
    enum vector vector;
    int essiv_hash, essiv_algorithm;
};

struct luks {
    struct bw_window window; /* the data on the device below; the first member, for bw_pieces_*() */
    uint64_t first_sector;
    uint32_t sector_size;
    struct cipher cipher;
    struct bw_secret key; /* the volume key */
};

static struct bw_error *gcrypt_error(gcry_error_t problem, const char *failure)
{
    if (gcry_err_code(problem) == GPG_ERR_ENOMEM)
        return bw_error_no_memory();
    return bw_error_create(BW_ERROR_UNSUPPORTED, "%s: %s", failure, gcry_strerror(problem));
}

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

/* "aes-xts-plain64"; LUKS1 writes "aes-cbc-essiv:sha256". `key`: bytes of the key. */
static struct bw_error *parse_cipher(const char *text, size_t key, struct cipher *cipher)
{
    static const char *const vectors[] = {"plain", "plain64", "plain64be"};
    char name[32] = "", mode[32] = "", vector[32] = "";
    *cipher = (struct cipher){.mode = GCRY_CIPHER_MODE_NONE};
    bool is_known = sscanf(text, "%31[^-]-%31[^-]-%31s", name, mode, vector) == 3;
    const bool is_xts = strcmp(mode, "xts") == 0;
    if (is_xts)
        cipher->mode = GCRY_CIPHER_MODE_XTS;
    else if (strcmp(mode, "cbc") == 0)
        cipher->mode = GCRY_CIPHER_MODE_CBC;
    cipher->algorithm = algorithm_of(name, is_xts ? key / 2 : key);
    is_known = is_known && cipher->algorithm && cipher->mode != GCRY_CIPHER_MODE_NONE;

    if (strncmp(vector, "essiv:", 6) == 0) {
        /* ESSIV encrypts the number of the sector with a hash of the key. */
        cipher->vector = VECTOR_ESSIV;
        cipher->essiv_hash = gcry_md_map_name(vector + 6);
        if (cipher->essiv_hash)
            cipher->essiv_algorithm = algorithm_of(name, gcry_md_get_algo_dlen(cipher->essiv_hash));
        is_known = is_known && cipher->essiv_algorithm;
    } else {
        unsigned number = VECTOR_PLAIN;
        while (number < VECTOR_ESSIV && strcmp(vector, vectors[number]) != 0)
            number++;
        cipher->vector = (enum vector)number;
        is_known = is_known && number < VECTOR_ESSIV;
    }
    if (is_known)
        return NULL;
    return bw_error_create(BW_ERROR_UNSUPPORTED,
                           "the cipher %s with a key of %zu bits is not known", text, key * 8);
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

/* Decrypts whole sectors in place. Sectors are numbered in units of 512 bytes. */
static struct bw_error *decrypt_sectors(const struct cipher *cipher, const struct engine *engine,
                                        uint8_t *bytes, uint64_t length, uint64_t first,
                                        uint32_t size)
{
    for (uint64_t done = 0; done < length; done += size) {
        const uint64_t sector = first + done / SECTOR;
        uint8_t vector[BLOCK] = {0};
        gcry_error_t problem = 0;
        if (cipher->vector == VECTOR_PLAIN64BE) {
            const bw_be64 number = bw_put_be64(sector);
            memcpy(vector + BLOCK - sizeof number, &number, sizeof number);
        } else {
            const bool is_short = cipher->vector == VECTOR_PLAIN;
            const bw_le64 number = bw_put64(is_short ? (uint32_t)sector : sector);
            memcpy(vector, &number, sizeof number);
        }
        if (engine->vector)
            problem = gcry_cipher_encrypt(engine->vector, vector, BLOCK, NULL, 0);
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
static struct bw_error *derive_by_argon2(const struct kdf *kdf, int variant, const uint8_t *from,
                                         size_t from_length, uint8_t *key, size_t length)
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

static struct bw_error *derive_key(const struct kdf *kdf, const uint8_t *from, size_t from_length,
                                   uint8_t *key, size_t length)
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

/* Joins the stripes over which a key was spread, so that erasing one of them destroys the key. */
static void join_stripes(int hash, const uint8_t *stripes, size_t count, uint8_t *key,
                         size_t length)
{
    const size_t step = gcry_md_get_algo_dlen(hash);
    uint8_t result[64], input[4 + 64];
    memset(key, 0, length);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < length; k++)
            key[k] ^= stripes[i * length + k];
        /* Diffusion: each part, as long as a hash, becomes the hash of its number and itself. */
        for (size_t at = 0; i + 1 < count && at < length; at += step) {
            const size_t size = length - at < step ? length - at : step;
            const bw_be32 number = bw_put_be32((uint32_t)(at / step));
            memcpy(input, &number, sizeof number);
            memcpy(input + sizeof number, key + at, size);
            gcry_md_hash_buffer(hash, result, input, sizeof number + size);
            memcpy(key + at, result, size);
        }
    }
}

/* A search for the volume key. */
struct search {
    struct bw_xlator *xlator;
    struct bw_xlator *source; /* device with the header */
    struct header *header;
    struct bw_error *skipped; /* the reason why a keyslot could not be tried */
    uint64_t work;            /* sum of work_of() of all keyslots and keys that were tried */
};

/* The first digest of a keyslot, as in cryptsetup; NULL if it has none. */
static const struct digest *digest_of(const struct header *header, const struct keyslot *slot)
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
static uint64_t work_of(const struct header *header, const struct keyslot *slot)
{
    const struct digest *digest = digest_of(header, slot);
    const uint64_t memory = slot->kdf.memory ? slot->kdf.memory : 1;
    uint64_t work;
    if (__builtin_mul_overflow(slot->kdf.rounds, memory, &work) ||
        (digest && __builtin_add_overflow(work, digest->kdf.rounds, &work)))
        return UINT64_MAX;
    return work;
}

/* Refuses keyslots with impossible numbers, or that need more memory or work than allowed. */
static struct bw_error *check_limits(const struct search *search, const struct keyslot *slot)
{
    enum { STRIPES = 1 << 16, GCRYPT_MEMORY = UINT32_MAX >> 10 /* libgcrypt refuses more KiB */ };
    const uint64_t memory = slot->kdf.memory;
    const size_t digest = gcry_md_get_algo_dlen(gcry_md_map_name(slot->split_hash));
    char wanted[32], allowed[32];

    /* The option limits the memory of Argon2, but not to more than the machine has. */
    uint64_t limit = bw_xlator_option_number(search->xlator, "memory") >> 10;
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0)
        limit = bw_min(limit, (uint64_t)pages * (uint64_t)page >> 10);
    *bw_write_size(wanted, memory << 10, false) = '\0';
    *bw_write_size(allowed, limit << 10, false) = '\0';
    if (memory > limit)
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "keyslot %u needs %s of memory, and at most %s are used",
                               slot->number, wanted, allowed);
    if (memory > GCRYPT_MEMORY)
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "keyslot %u needs %s of memory, and libgcrypt can use only less "
                               "than 4 GiB",
                               slot->number, wanted);
    if (!slot->key || !slot->stripes || slot->stripes > STRIPES || !digest || digest > 64 ||
        slot->stripes * slot->key > slot->length || slot->kdf.threads > 64)
        return bw_error_create(BW_ERROR_CORRUPT, "keyslot %u has impossible numbers", slot->number);

    /* A header can have many expensive keyslots, so all of them and all keys share one budget. */
    const uint64_t budget = bw_xlator_option_number(search->xlator, "work") >> 10;
    const uint64_t work = work_of(search->header, slot);
    if (search->work <= budget && work <= budget - search->work)
        return NULL;
    *bw_write_size(allowed, budget << 10, false) = '\0';
    if (!memory)
        return bw_error_advise(
            bw_error_create(BW_ERROR_UNSUPPORTED,
                            "keyslot %u needs %" PRIu64
                            " rounds, more work than the %s that are allowed for all keyslots",
                            slot->number, slot->kdf.rounds, allowed),
            "`key_work` raises it");
    return bw_error_advise(bw_error_create(BW_ERROR_UNSUPPORTED,
                                           "keyslot %u needs %" PRIu64
                                           " passes over %s of memory, more work than "
                                           "the %s that are allowed for all keyslots",
                                           slot->number, slot->kdf.rounds, wanted, allowed),
                           "`key_work` raises it");
}

/* Decrypts the volume key in a slot with a key from the passphrase, and verifies it. */
static struct bw_error *try_slot(struct search *search, const struct keyslot *slot,
                                 const uint8_t *passphrase, size_t length, bool *fits)
{
    const struct digest *digest = digest_of(search->header, slot);
    BW_AUTO_SECRET struct bw_secret key = bw_secret_create(LONGEST_KEY);
    BW_AUTO_SECRET struct bw_secret area_key = bw_secret_create(LONGEST_KEY);
    if (!key.bytes || !area_key.bytes)
        return bw_error_no_memory();
    BW_TRY(check_limits(search, slot));
    search->work += work_of(search->header, slot);

    const size_t size = (slot->stripes * slot->key + SECTOR - 1) / SECTOR * SECTOR;
    BW_AUTO_SECRET struct bw_secret material = bw_secret_create(size);
    AUTO_ENGINE struct engine engine = {NULL, NULL};
    struct cipher cipher;
    if (!material.bytes)
        return bw_error_no_memory();
    BW_TRY(parse_cipher(slot->area, slot->area_key, &cipher));
    struct bw_error *lost = bw_read_inside(NULL, search->source, header_ends, slot->offset,
                                           material.bytes, (uint32_t)size);
    if (lost)
        return bw_error_prefix(lost, "keyslot %u", slot->number);
    BW_TRY(derive_key(&slot->kdf, passphrase, length, area_key.bytes, slot->area_key));
    BW_TRY(open_engine(&cipher, area_key.bytes, slot->area_key, &engine));
    BW_TRY(decrypt_sectors(&cipher, &engine, material.bytes, size, 0, SECTOR));
    join_stripes(gcry_md_map_name(slot->split_hash), material.bytes, slot->stripes, key.bytes,
                 slot->key);

    uint8_t found[LONGEST_SALT];
    if (!digest || strcmp(digest->kdf.type, "pbkdf2") != 0)
        return NULL;
    BW_TRY(derive_key(&digest->kdf, key.bytes, slot->key, found, digest->length));
    *fits = memcmp(found, digest->value, digest->length) == 0;
    if (!*fits)
        return NULL;
    struct luks *luks = bw_xlator_private(search->xlator);
    BW_TRY(parse_cipher(search->header->cipher, slot->key, &luks->cipher));
    key.length = slot->key;
    luks->key = key;
    key = (struct bw_secret){.bytes = NULL};
    return NULL;
}

/* Text editors end a file with a newline, which is part of the key only for some. A keyslot that
 * cannot be tried does not hide the others. */
static struct bw_error *try_passphrase(void *context, const uint8_t *passphrase, size_t length,
                                       bool *fits)
{
    struct search *search = context;
    const unsigned newlines = length > 1 && passphrase[length - 1] == '\n';
    for (unsigned cut = 0; cut <= newlines; cut++)
        for (size_t i = 0; i < search->header->slot_count && !*fits; i++) {
            struct bw_error *error =
                try_slot(search, &search->header->slots[i], passphrase, length - cut, fits);
            if (error && error->code == BW_ERROR_NO_MEMORY)
                return error;
            search->skipped = bw_error_first(search->skipped, error);
        }
    return NULL;
}

/* Tries the key in the file that the option names. */
static struct bw_error *try_file(struct search *search, const char *path, bool *fits)
{
    enum { LARGEST_FILE = 8 << 20 };
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return bw_error_from_errno(errno, "cannot open the key file %s", path);
    BW_AUTO_SECRET struct bw_secret key = bw_secret_create(LARGEST_FILE);
    const bool is_read = key.bytes && bw_secret_read(&key, file);
    const int problem = errno;
    close(file);
    if (!is_read)
        return bw_error_from_errno(problem, "cannot read the key file %s", path);
    return try_passphrase(search, key.bytes, key.length, fits);
}

static struct bw_error *unlock_volume(struct search *search)
{
    const char *path = bw_xlator_option_text(search->xlator, "key-file");
    struct bw_keys *keys = bw_xlator_inputs(search->xlator)->keys;
    struct header *header = search->header;
    bool fits = false;

    /* The cheapest keyslots first: the others must not use up the budget before them. */
    for (size_t i = 1; i < header->slot_count; i++)
        for (size_t k = i; k > 0; k--) {
            const struct keyslot slot = header->slots[k];
            if (work_of(header, &header->slots[k - 1]) <= work_of(header, &slot))
                break;
            header->slots[k] = header->slots[k - 1];
            header->slots[k - 1] = slot;
        }

    if (*path)
        BW_TRY(try_file(search, path, &fits));
    struct bw_error *error = NULL;
    if (!fits && keys)
        error = bw_keys_try(keys, bw_xlator_image(search->xlator), try_passphrase, search);
    else if (!fits)
        error = bw_error_create(BW_ERROR_NOT_FOUND, "no keyslot accepts the key given");
    if (error && !header->slot_count) {
        bw_error_free(error);
        error = bw_error_create(BW_ERROR_NOT_FOUND, "its header has no keyslot");
    } else if (error && error->code == BW_ERROR_NOT_FOUND && search->skipped) {
        bw_error_free(error);
        error = BW_TAKE(search->skipped);
    }
    bw_error_free(search->skipped);
    return error;
}

/* The layer. */

static const struct bw_piece_map pieces = {"the volume ends", bw_window_locate, NULL};

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct luks *luks = bw_xlator_private(xlator);
    struct bw_xlator *device = bw_xlator_child(xlator, 0);
    struct bw_xlator *source = device;
    BW_AUTO_FREE struct header *header = calloc(1, sizeof *header);
    if (!header)
        return bw_error_no_memory();
    if (bw_xlator_child_count(xlator) > 1)
        source = bw_xlator_child(xlator, 1);
    BW_TRY(bw_gcrypt_prepare());
    BW_TRY(read_header(source, header));

    const uint64_t size = bw_xlator_size(device);
    luks->window.pieces = &pieces;
    luks->window.offset = header->offset;
    luks->sector_size = header->sector_size;
    luks->first_sector = header->first_sector;
    bw_xlator_set_title(xlator, "LUKS%u", header->version);
    if (header->offset >= size)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "its data begin at %" PRIu64 ", after the end at %" PRIu64,
                               header->offset, size);
    luks->window.length = (size - header->offset) / header->sector_size * header->sector_size;
    if (header->length)
        luks->window.length = bw_min(luks->window.length, header->length);
    if (header->is_second)
        bw_xlator_report(xlator, BW_WARNING,
                         bw_error_create(BW_ERROR_CORRUPT,
                                         "the first LUKS2 header is damaged: the second one is "
                                         "used"));

    struct search search = {.xlator = xlator, .source = source, .header = header};
    return unlock_volume(&search);
}

static void fini(struct bw_xlator *xlator)
{
    struct luks *luks = bw_xlator_private(xlator);
    bw_secret_free(&luks->key);
}

/* Reading. Holes of a sparse image were never written, so they contain no encrypted data, and the
 * window's operations for them apply. */

/* Decrypts whole sectors of the data in place. */
static struct bw_error *decrypt_data(const struct luks *luks, const struct engine *engine,
                                     uint64_t address, uint8_t *bytes, uint64_t length)
{
    return decrypt_sectors(&luks->cipher, engine, bytes, length,
                           luks->first_sector + address / SECTOR, luks->sector_size);
}

static bool has_whole_sectors(const struct luks *luks, const struct bw_request *request)
{
    return (request->address | request->length) % luks->sector_size == 0;
}

/* Requests for whole sectors are read together, and decrypted later. For another one, all sectors
 * that it touches are read and decrypted here. */
static bool pass_or_read(const struct bw_frame *frame, struct bw_xlator *xlator,
                         struct bw_request *request, struct bw_request *copy)
{
    const struct luks *luks = bw_xlator_private(xlator);
    request->error = bw_request_check_end(pieces.subject, luks->window.length, request);
    copy->address += luks->window.offset;
    if (request->error || has_whole_sectors(luks, request))
        return !request->error;

    const uint64_t sector = luks->sector_size, end = request->address + request->length;
    const uint64_t first = request->address / sector * sector;
    const uint64_t length = (end + sector - 1) / sector * sector - first;
    BW_AUTO_FREE uint8_t *bytes = malloc(length);
    AUTO_ENGINE struct engine engine = {NULL, NULL};
    request->error = bytes ? NULL : bw_error_no_memory();
    if (!request->error)
        request->error = open_engine(&luks->cipher, luks->key.bytes, luks->key.length, &engine);
    if (request->error)
        return false;
    copy->address = luks->window.offset + first;
    copy->length = (uint32_t)length;
    copy->buffer = bytes;
    bw_wind(frame, bw_xlator_child(xlator, 0), copy, 1);
    bw_request_answer(request, copy);
    if (!request->error)
        request->error = decrypt_data(luks, &engine, first, bytes, length);
    if (!request->error)
        memcpy(request->buffer, bytes + (request->address - first), request->length);
    return false;
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    const struct luks *luks = bw_xlator_private(xlator);
    AUTO_ENGINE struct engine engine = {NULL, NULL};
    BW_AUTO_ERROR struct bw_error *error =
        open_engine(&luks->cipher, luks->key.bytes, luks->key.length, &engine);
    bw_wind_copies(frame, xlator, requests, count, pass_or_read);
    for (size_t i = 0; i < count; i++) {
        struct bw_request *request = &requests[i];
        if (request->error || !has_whole_sectors(luks, request))
            continue;
        if (error)
            request->error = bw_error_copy(error);
        else
            request->error =
                decrypt_data(luks, &engine, request->address, request->buffer, request->length);
    }
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    const struct luks *luks = bw_xlator_private(xlator);
    bw_json_number(json, "offset", luks->window.offset);
    bw_json_number(json, "length", luks->window.length);
    bw_json_number(json, "sector_size", luks->sector_size);
}

/* The container. */

static bool find(struct bw_xlator *device, struct bw_container_id *id)
{
    char found[sizeof(struct disk_header_1)];
    (void)id;
    if (bw_try_read_raw(NULL, device, 0, found, sizeof found) &&
        memcmp(found, magic_first, sizeof magic_first) == 0)
        return true;
    for (uint64_t offset = FIRST_COPY; offset <= LARGEST; offset *= 2)
        if (bw_try_read_raw(NULL, device, offset, found, sizeof found) &&
            memcmp(found, magic_second, sizeof magic_second) == 0)
            return true;
    return false;
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
                   .advise = bw_pieces_advise,
                   .size = bw_window_size,
                   .next_stored = bw_pieces_next_stored,
                   .dump = dump,
                   .title = bw_xlator_title},
};
