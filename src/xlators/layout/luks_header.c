/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The header of LUKS1 is a table of numbers. That of LUKS2 is a block of numbers with a checksum,
 * followed by a text in JSON, and is stored twice. All numbers are big-endian.
 */
#include "xlators/layout/luks_header.h"

#include <endian.h>
#include <gcrypt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#ifdef BW_LUKS2
#include <json-c/json.h>
#endif

#include "base/cleanup.h"

enum {
    HEADER = 4096, /* the binary header of LUKS2 */
    LARGEST = 4 << 20,
    SLOTS_1 = 8,
    SLOT_1_USED = 0x00ac71f3,
    DIGEST_1 = 20,
    SALT_1 = 32,
};

static const char magic_first[6] = {'L', 'U', 'K', 'S', '\xba', '\xbe'};
static const char magic_second[6] = {'S', 'K', 'U', 'L', '\xba', '\xbe'};

struct disk_slot_1 {
    uint8_t used[4], rounds[4], salt[SALT_1], offset[4], stripes[4];
};

struct disk_header_1 {
    char magic[6];
    uint8_t version[2];
    char cipher[32], mode[32], hash[32];
    uint8_t offset[4], key[4];
    uint8_t digest[DIGEST_1], salt[SALT_1], rounds[4];
    char uuid[40];
    struct disk_slot_1 slots[SLOTS_1];
};

struct disk_header_2 {
    char magic[6];
    uint8_t version[2], size[8], sequence[8];
    char label[48], checksum_type[32];
    uint8_t salt[64];
    char uuid[40], subsystem[48];
    uint8_t offset[8], padding[184], checksum[64];
};

static_assert(sizeof(struct disk_header_1) == 592, "as on disk");
static_assert(sizeof(struct disk_header_2) == 512, "as on disk");

static uint16_t get_16(const uint8_t *bytes)
{
    uint16_t value;
    memcpy(&value, bytes, sizeof value);
    return be16toh(value);
}

static uint32_t get_32(const uint8_t *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return be32toh(value);
}

static struct bw_error *read_bytes(const struct bw_frame *frame, struct bw_xlator *device,
                                   uint64_t offset, size_t length, void *buffer)
{
    struct bw_request request = {
        .kind = BW_REQUEST_RAW, .length = (uint32_t)length, .address = offset, .buffer = buffer};
    const uint64_t size = bw_xlator_size(device);
    if (offset > size || length > size - offset)
        return bw_error_create(BW_ERROR_CORRUPT, "the LUKS header is cut off");
    bw_wind(frame, device, &request, 1);
    return request.error;
}

/* Copies a text that may fill its field; the target has room for one byte more than the field. */
static void copy_text(char *to, const char *from, size_t size)
{
    memcpy(to, from, size);
    to[size] = '\0';
}

/* LUKS1. */

static struct bw_error *add_slot_1(struct bw_luks_header *header, const struct disk_header_1 *disk,
                                   unsigned number)
{
    const struct disk_slot_1 *from = &disk->slots[number];
    struct bw_luks_slot *slot = &header->slots[header->slot_count];
    *slot = (struct bw_luks_slot){
        .number = number,
        .offset = UINT64_C(512) * get_32(from->offset),
        .area = header->cipher,
        .area_key = get_32(disk->key),
        .key = get_32(disk->key),
        .stripes = get_32(from->stripes),
        .kdf = {.type = "pbkdf2", .rounds = get_32(from->rounds), .salt_length = SALT_1}};
    slot->length = slot->stripes * slot->key;
    memcpy(slot->kdf.salt, from->salt, SALT_1);
    memcpy(slot->kdf.hash, disk->hash, sizeof slot->kdf.hash - 1);
    memcpy(slot->split_hash, disk->hash, sizeof slot->split_hash - 1);
    header->slot_count++;
    return NULL;
}

static struct bw_error *decode_1(const struct disk_header_1 *disk, struct bw_luks_header *header)
{
    char cipher[33], mode[33];
    struct bw_luks_digest *digest = &header->digests[0];
    copy_text(cipher, disk->cipher, sizeof disk->cipher);
    copy_text(mode, disk->mode, sizeof disk->mode);
    *header = (struct bw_luks_header){.version = 1,
                                      .offset = UINT64_C(512) * get_32(disk->offset),
                                      .sector_size = BW_LUKS_SECTOR,
                                      .digest_count = 1};
    snprintf(header->cipher.text, sizeof header->cipher.text, "%.31s-%.31s", cipher, mode);
    if (get_32(disk->key) > BW_LUKS_KEY)
        return bw_error_create(BW_ERROR_CORRUPT, "the LUKS header has a key of %" PRIu32 " bytes",
                               get_32(disk->key));
    *digest = (struct bw_luks_digest){
        .kdf = {.type = "pbkdf2", .rounds = get_32(disk->rounds), .salt_length = SALT_1},
        .length = DIGEST_1,
        .slots = UINT64_MAX};
    memcpy(digest->kdf.hash, disk->hash, sizeof digest->kdf.hash - 1);
    memcpy(digest->kdf.salt, disk->salt, SALT_1);
    memcpy(digest->value, disk->digest, DIGEST_1);
    for (unsigned i = 0; i < SLOTS_1; i++)
        if (get_32(disk->slots[i].used) == SLOT_1_USED)
            BW_TRY(add_slot_1(header, disk, i));
    return NULL;
}

/* LUKS2. */

#ifdef BW_LUKS2

static uint64_t get_64(const uint8_t *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return be64toh(value);
}

static struct bw_error *bad_json(const char *member)
{
    return bw_error_create(BW_ERROR_CORRUPT, "the LUKS header has no valid %s", member);
}

static const char *text_of(struct json_object *object, const char *name)
{
    struct json_object *value;
    return json_object_object_get_ex(object, name, &value) &&
                   json_object_is_type(value, json_type_string)
               ? json_object_get_string(value)
               : "";
}

static void copy_member(struct json_object *object, const char *name, char *to, size_t size)
{
    snprintf(to, size, "%s", text_of(object, name));
}

/* A number, or a text with one: JSON has no numbers of 64 bits. */
static bool number_of(struct json_object *object, const char *name, uint64_t *number)
{
    struct json_object *value;
    char *end;
    if (!json_object_object_get_ex(object, name, &value))
        return false;
    if (json_object_is_type(value, json_type_int)) {
        *number = (uint64_t)json_object_get_int64(value);
        return json_object_get_int64(value) >= 0;
    }
    const char *text = text_of(object, name);
    *number = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end;
}

static int digit_of(char letter)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = letter ? strchr(digits, letter) : NULL;
    return found ? (int)(found - digits) : -1;
}

/* Decodes base64. */
static bool bytes_of(struct json_object *object, const char *name, uint8_t *bytes, size_t *length)
{
    const char *text = text_of(object, name);
    unsigned bits = 0;
    uint32_t value = 0;
    for (*length = 0; digit_of(*text) >= 0; text++) {
        value = value << 6 | (uint32_t)digit_of(*text);
        bits += 6;
        if (bits < 8)
            continue;
        bits -= 8;
        if (*length == BW_LUKS_SALT)
            return false;
        bytes[(*length)++] = (uint8_t)(value >> bits);
    }
    return *length && (!*text || *text == '=');
}

static bool decode_kdf(struct json_object *from, struct bw_luks_kdf *kdf)
{
    copy_member(from, "type", kdf->type, sizeof kdf->type);
    copy_member(from, "hash", kdf->hash, sizeof kdf->hash);
    bool is_pbkdf2 = strcmp(kdf->type, "pbkdf2") == 0;
    return bytes_of(from, "salt", kdf->salt, &kdf->salt_length) &&
           (is_pbkdf2 ? number_of(from, "iterations", &kdf->rounds)
                      : number_of(from, "time", &kdf->rounds) &&
                            number_of(from, "memory", &kdf->memory) &&
                            number_of(from, "cpus", &kdf->threads));
}

static struct bw_error *add_slot(struct bw_luks_header *header, const char *name,
                                 struct json_object *from)
{
    struct bw_luks_slot *slot = &header->slots[header->slot_count];
    struct json_object *area, *split, *kdf;
    uint64_t key, area_key;
    if (strcmp(text_of(from, "type"), "luks2") != 0)
        return NULL; /* a keyslot of a reencryption */
    if (header->slot_count == BW_LUKS_SLOTS)
        return bad_json("list of keyslots");
    *slot = (struct bw_luks_slot){.number = (unsigned)strtoul(name, NULL, 10)};
    if (slot->number >= BW_LUKS_SLOTS || !json_object_object_get_ex(from, "area", &area) ||
        !json_object_object_get_ex(from, "af", &split) ||
        !json_object_object_get_ex(from, "kdf", &kdf) || !number_of(from, "key_size", &key) ||
        !number_of(area, "key_size", &area_key) || !number_of(area, "offset", &slot->offset) ||
        !number_of(area, "size", &slot->length) || !number_of(split, "stripes", &slot->stripes) ||
        !decode_kdf(kdf, &slot->kdf) || key > BW_LUKS_KEY || area_key > BW_LUKS_KEY)
        return bad_json("keyslot");
    copy_member(area, "encryption", slot->area.text, sizeof slot->area.text);
    copy_member(split, "hash", slot->split_hash, sizeof slot->split_hash);
    slot->key = key;
    slot->area_key = area_key;
    header->slot_count++;
    return NULL;
}

/* The members of an array, or NULL. */
static struct json_object *array_of(struct json_object *object, const char *name)
{
    struct json_object *array;
    return json_object_object_get_ex(object, name, &array) &&
                   json_object_is_type(array, json_type_array)
               ? array
               : NULL;
}

/* A digest without a segment belongs to an unbound key, which does not decrypt the data. */
static struct bw_error *add_digest(struct bw_luks_header *header, const char *name,
                                   struct json_object *from)
{
    struct bw_luks_digest *digest = &header->digests[header->digest_count];
    struct json_object *slots = array_of(from, "keyslots"), *segments = array_of(from, "segments");
    (void)name;
    if (header->digest_count == BW_LUKS_SLOTS)
        return bad_json("list of digests");
    *digest = (struct bw_luks_digest){.slots = 0};
    if (!decode_kdf(from, &digest->kdf) ||
        !bytes_of(from, "digest", digest->value, &digest->length) || !slots || !segments)
        return bad_json("digest");
    for (size_t i = 0; i < json_object_array_length(slots); i++) {
        const char *number = json_object_get_string(json_object_array_get_idx(slots, i));
        unsigned long bit = number ? strtoul(number, NULL, 10) : 64;
        digest->slots |= bit < 64 ? UINT64_C(1) << bit : 0;
    }
    header->digest_count += json_object_array_length(segments) != 0;
    return NULL;
}

static struct bw_error *set_segment(struct bw_luks_header *header, const char *name,
                                    struct json_object *from)
{
    uint64_t sector_size;
    (void)name;
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
        !number_of(from, "sector_size", &sector_size) || sector_size < BW_LUKS_SECTOR ||
        sector_size > 4096 || sector_size & (sector_size - 1))
        return bad_json("segment");
    if (!number_of(from, "size", &header->length)) /* "dynamic" */
        header->length = 0;
    header->sector_size = (uint32_t)sector_size;
    copy_member(from, "encryption", header->cipher.text, sizeof header->cipher.text);
    return NULL;
}

static struct bw_error *
decode_each(struct json_object *root, const char *name, struct bw_luks_header *header,
            struct bw_error *(*decode)(struct bw_luks_header *header, const char *name,
                                       struct json_object *from))
{
    struct json_object *objects;
    if (!json_object_object_get_ex(root, name, &objects) ||
        !json_object_is_type(objects, json_type_object))
        return bad_json(name);
    struct json_object_iterator at = json_object_iter_begin(objects);
    struct json_object_iterator end = json_object_iter_end(objects);
    for (; !json_object_iter_equal(&at, &end); json_object_iter_next(&at))
        BW_TRY(decode(header, json_object_iter_peek_name(&at), json_object_iter_peek_value(&at)));
    return NULL;
}

/* A volume that is being reencrypted has two keys, and a border between them. */
static struct bw_error *check_requirements(struct json_object *root)
{
    struct json_object *config, *requirements;
    if (!json_object_object_get_ex(root, "config", &config) ||
        !json_object_object_get_ex(config, "requirements", &requirements))
        return NULL;
    struct json_object *mandatory = array_of(requirements, "mandatory");
    if (!mandatory || !json_object_array_length(mandatory))
        return NULL;
    const char *first = json_object_get_string(json_object_array_get_idx(mandatory, 0));
    return bw_error_create(BW_ERROR_UNSUPPORTED,
                           "the LUKS2 volume has the requirement '%s', which is not read",
                           first ? first : "");
}

static struct bw_error *decode_json(struct json_object *root, struct bw_luks_header *header)
{
    BW_TRY(check_requirements(root));
    BW_TRY(decode_each(root, "segments", header, set_segment));
    BW_TRY(decode_each(root, "keyslots", header, add_slot));
    BW_TRY(decode_each(root, "digests", header, add_digest));
    if (header->sector_size)
        return NULL;
    return bad_json("segment");
}

/* Verifies the checksum of a header in memory. */
static struct bw_error *verify_header(uint8_t *bytes, size_t size)
{
    struct disk_header_2 *disk = (void *)bytes;
    uint8_t wanted[sizeof disk->checksum], found[sizeof disk->checksum] = {0};
    char type[sizeof disk->checksum_type + 1];
    copy_text(type, disk->checksum_type, sizeof disk->checksum_type);
    const int algorithm = gcry_md_map_name(type);
    const unsigned length = algorithm ? gcry_md_get_algo_dlen(algorithm) : 0;
    if (!length || length > sizeof found)
        return bw_error_create(BW_ERROR_CORRUPT, "the LUKS header has a checksum of type '%s'",
                               type);
    memcpy(wanted, disk->checksum, sizeof wanted);
    memset(disk->checksum, 0, sizeof disk->checksum);
    gcry_md_hash_buffer(algorithm, found, bytes, size);
    if (memcmp(wanted, found, length) == 0)
        return NULL;
    return bw_error_create(BW_ERROR_CORRUPT, "the checksum of the LUKS header is wrong");
}

static struct bw_error *parse_json(const char *text, size_t length, struct bw_luks_header *header)
{
    struct json_tokener *tokener = json_tokener_new();
    if (!tokener)
        return bw_error_no_memory();
    struct json_object *root = json_tokener_parse_ex(tokener, text, (int)strnlen(text, length));
    struct bw_error *error;
    if (json_object_is_type(root, json_type_object))
        error = decode_json(root, header);
    else
        error = bad_json("JSON");
    json_object_put(root);
    json_tokener_free(tokener);
    return error;
}

static struct bw_error *read_copy(const struct bw_frame *frame, struct bw_xlator *device,
                                  uint64_t offset, struct bw_luks_header *header)
{
    struct disk_header_2 disk;
    BW_TRY(read_bytes(frame, device, offset, sizeof disk, &disk));
    const uint64_t size = get_64(disk.size);
    if (memcmp(disk.magic, offset ? magic_second : magic_first, sizeof disk.magic) != 0 ||
        get_16(disk.version) != 2 || get_64(disk.offset) != offset || size <= HEADER ||
        size > LARGEST)
        return bw_error_create(BW_ERROR_CORRUPT, "no LUKS2 header is at %" PRIu64, offset);
    BW_AUTO_FREE uint8_t *bytes = malloc(size);
    if (!bytes)
        return bw_error_no_memory();
    BW_TRY(read_bytes(frame, device, offset, size, bytes));
    BW_TRY(verify_header(bytes, size));
    *header = (struct bw_luks_header){.version = 2};
    return parse_json((const char *)bytes + HEADER, size - HEADER, header);
}

/* Reads the first copy of the header, or the second one, which is at one of a few offsets. */
static struct bw_error *read_2(const struct bw_frame *frame, struct bw_xlator *device,
                               struct bw_luks_header *header)
{
    struct bw_error *error = read_copy(frame, device, 0, header);
    for (uint64_t offset = 16 << 10; error && error->code == BW_ERROR_CORRUPT && offset <= LARGEST;
         offset *= 2) {
        BW_AUTO_ERROR struct bw_error *none = read_copy(frame, device, offset, header);
        if (none)
            continue;
        bw_error_free(BW_TAKE(error));
        header->is_second = true;
    }
    return error;
}

#else

static struct bw_error *read_2(const struct bw_frame *frame, struct bw_xlator *device,
                               struct bw_luks_header *header)
{
    (void)frame, (void)device, (void)header;
    return bw_error_create(BW_ERROR_UNSUPPORTED,
                           "this program was built without json-c, which LUKS2 needs");
}

#endif

bool bw_luks_find(const struct bw_frame *frame, struct bw_xlator *device)
{
    struct disk_header_1 disk;
    BW_AUTO_ERROR struct bw_error *error = read_bytes(frame, device, 0, sizeof disk, &disk);
    if (!error && memcmp(disk.magic, magic_first, sizeof magic_first) == 0)
        return true;
    for (uint64_t offset = 16 << 10; offset <= LARGEST; offset *= 2) {
        BW_AUTO_ERROR struct bw_error *none = read_bytes(frame, device, offset, sizeof disk, &disk);
        if (!none && memcmp(disk.magic, magic_second, sizeof magic_second) == 0)
            return true;
    }
    return false;
}

struct bw_error *bw_luks_header_read(const struct bw_frame *frame, struct bw_xlator *device,
                                     struct bw_luks_header *header)
{
    struct disk_header_1 disk;
    BW_TRY(read_bytes(frame, device, 0, sizeof disk, &disk));
    bool is_first = memcmp(disk.magic, magic_first, sizeof magic_first) == 0;
    return is_first && get_16(disk.version) == 1 ? decode_1(&disk, header)
                                                 : read_2(frame, device, header);
}
