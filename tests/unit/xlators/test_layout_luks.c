/* SPDX-License-Identifier: GPL-2.0-or-later */
/* layout/luks: volumes of both formats, made byte by byte, with each cipher; and bad headers. */
#include <endian.h>
#include <gcrypt.h>
#include <stdio.h>

#include "base/gcrypt.h"
#include "graph/keys.h"
#include "support/fake_layer.h"

enum {
    SIZE = 256 << 10,
    KEYS = 8 << 10, /* offset of the key material of LUKS1; that of LUKS2 is at 64 KiB */
    DATA = 128 << 10,
    STRIPES = 4,
    ROUNDS = 5,
};

static const char passphrase[] = "correct horse";
static const uint8_t salt[32] = {1, 2, 3, 4};

struct cipher {
    const char *name, *mode, *vector;
    int algorithm, gcrypt_mode;
    size_t key;
};

static const struct cipher xts = {"aes", "xts", "plain64", GCRY_CIPHER_AES256, GCRY_CIPHER_MODE_XTS,
                                  64};

struct bench {
    struct fake_layer fake;
    uint8_t bytes[SIZE], plain[SIZE - DATA], key[64];
    struct report_log log;
    struct bw_graph *graph;
    struct bw_xlator *below, *top;
    struct bw_keys *keys;
};

static void put_32(uint8_t *at, uint32_t value)
{
    value = htobe32(value);
    memcpy(at, &value, sizeof value);
}

static void put_64(uint8_t *at, uint64_t value)
{
    value = htobe64(value);
    memcpy(at, &value, sizeof value);
}

static void make_vector(const struct cipher *cipher, const uint8_t *key, uint64_t sector,
                        uint8_t vector[16])
{
    const uint64_t little = htole64(sector), big = htobe64(sector);
    memset(vector, 0, 16);
    memcpy(vector, &little, strcmp(cipher->vector, "plain") == 0 ? 4 : 8);
    if (strcmp(cipher->vector, "plain64be") == 0) {
        memset(vector, 0, 16);
        memcpy(vector + 8, &big, 8);
    }
    if (strncmp(cipher->vector, "essiv", 5) == 0) {
        uint8_t hash[32];
        gcry_cipher_hd_t handle;
        gcry_md_hash_buffer(GCRY_MD_SHA256, hash, key, cipher->key);
        assert_int_equal(gcry_cipher_open(&handle, GCRY_CIPHER_AES256, GCRY_CIPHER_MODE_ECB, 0), 0);
        assert_int_equal(gcry_cipher_setkey(handle, hash, sizeof hash), 0);
        assert_int_equal(gcry_cipher_encrypt(handle, vector, 16, NULL, 0), 0);
        gcry_cipher_close(handle);
    }
}

static void encrypt(const struct cipher *cipher, const uint8_t *key, uint8_t *bytes, size_t length,
                    uint64_t first, size_t step)
{
    gcry_cipher_hd_t handle;
    assert_int_equal(gcry_cipher_open(&handle, cipher->algorithm, cipher->gcrypt_mode, 0), 0);
    assert_int_equal(gcry_cipher_setkey(handle, key, cipher->key), 0);
    for (size_t at = 0; at < length; at += step) {
        uint8_t vector[16];
        make_vector(cipher, key, first + at / 512, vector);
        assert_int_equal(gcry_cipher_setiv(handle, vector, 16), 0);
        assert_int_equal(gcry_cipher_encrypt(handle, bytes + at, step, NULL, 0), 0);
    }
    gcry_cipher_close(handle);
}

static void derive(const void *from, size_t length, uint8_t *key, size_t key_length)
{
    assert_int_equal(gcry_kdf_derive(from, length, GCRY_KDF_PBKDF2, GCRY_MD_SHA256, salt,
                                     sizeof salt, ROUNDS, key_length, key),
                     0);
}

static void diffuse(uint8_t *bytes, size_t length)
{
    for (size_t at = 0; at < length; at += 32) {
        uint8_t input[36], hash[32];
        const size_t size = length - at < 32 ? length - at : 32;
        put_32(input, (uint32_t)(at / 32));
        memcpy(input + 4, bytes + at, size);
        gcry_md_hash_buffer(GCRY_MD_SHA256, hash, input, 4 + size);
        memcpy(bytes + at, hash, size);
    }
}

/* Spreads the volume key over stripes and encrypts them with the passphrase. */
static void put_key(struct bench *bench, const struct cipher *cipher, uint64_t offset)
{
    uint8_t *stripes = bench->bytes + offset, sum[64] = {0}, area_key[64];
    for (size_t i = 0; i + 1 < STRIPES; i++) {
        memset(stripes + i * cipher->key, (int)(i * 50 + 7), cipher->key);
        for (size_t k = 0; k < cipher->key; k++)
            sum[k] ^= stripes[i * cipher->key + k];
        diffuse(sum, cipher->key);
    }
    for (size_t k = 0; k < cipher->key; k++)
        stripes[(STRIPES - 1) * cipher->key + k] = sum[k] ^ bench->key[k];
    derive(passphrase, strlen(passphrase), area_key, cipher->key);
    encrypt(cipher, area_key, stripes, 512, 0, 512);
}

static struct bench *make_bench(const struct cipher *cipher, size_t sector)
{
    struct bench *bench = calloc(1, sizeof *bench);
    expect_success(bw_gcrypt_prepare());
    for (size_t i = 0; i < sizeof bench->key; i++)
        bench->key[i] = (uint8_t)(i * 11 + 3);
    for (size_t i = 0; i < sizeof bench->plain; i++)
        bench->plain[i] = (uint8_t)(i * 7 + i / 512);
    memcpy(bench->bytes + DATA, bench->plain, sizeof bench->plain);
    encrypt(cipher, bench->key, bench->bytes + DATA, sizeof bench->plain, 0, sector);
    return bench;
}

static void put_header_1(struct bench *bench, const struct cipher *cipher)
{
    uint8_t *header = bench->bytes, *slot = header + 208 + 48; /* the second one */
    memcpy(header, "LUKS\xba\xbe\0\1", 8);
    strcpy((char *)header + 8, cipher->name);
    snprintf((char *)header + 40, 32, "%s-%s", cipher->mode, cipher->vector);
    strcpy((char *)header + 72, "sha256");
    put_32(header + 104, DATA / 512);
    put_32(header + 108, (uint32_t)cipher->key);
    derive(bench->key, cipher->key, header + 112, 20);
    memcpy(header + 132, salt, sizeof salt);
    put_32(header + 164, ROUNDS);
    put_32(slot, 0x00ac71f3);
    put_32(slot + 4, ROUNDS);
    memcpy(slot + 8, salt, sizeof salt);
    put_32(slot + 40, KEYS / 512);
    put_32(slot + 44, STRIPES);
    put_key(bench, cipher, KEYS);
}

#ifdef BW_LUKS2
static void append_base64(char *text, const uint8_t *bytes, size_t length)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *at = text + strlen(text);
    for (size_t i = 0; i < length; i += 3) {
        uint32_t three = 0;
        for (size_t k = 0; k < 3; k++)
            three = three << 8 | (i + k < length ? bytes[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            *at++ = i + k > length ? '=' : digits[three >> (18 - 6 * k) & 63];
    }
    *at = '\0';
}

static void seal_header_2(uint8_t *bytes, uint64_t offset, const char *magic)
{
    enum { HEADER = 16 << 10 };
    uint8_t *header = bytes + offset;
    memcpy(header, magic, 6);
    header[7] = 2;
    put_64(header + 8, HEADER);
    put_64(header + 16, 1);
    strcpy((char *)header + 72, "sha256");
    put_64(header + 256, offset);
    memset(header + 448, 0, 64);
    gcry_md_hash_buffer(GCRY_MD_SHA256, header + 448, header, HEADER);
}

/* Both copies of a header; `segment` are its members apart from the cipher. */
static void put_header_2(struct bench *bench, const struct cipher *cipher, const char *segment,
                         const char *config)
{
    char salts[64] = "", digests[64] = "", text[2048];
    uint8_t digest[32];
    append_base64(salts, salt, sizeof salt);
    derive(bench->key, cipher->key, digest, sizeof digest);
    append_base64(digests, digest, sizeof digest);
    put_key(bench, cipher, 64 << 10);
    snprintf(text, sizeof text,
             "{\"keyslots\":{\"3\":{\"type\":\"luks2\",\"key_size\":%zu,\"af\":{\"type\":\"luks1\","
             "\"stripes\":%d,\"hash\":\"sha256\"},\"area\":{\"type\":\"raw\",\"offset\":\"65536\","
             "\"size\":\"4096\",\"encryption\":\"%s-%s-%s\",\"key_size\":%zu},\"kdf\":{\"type\":"
             "\"pbkdf2\",\"hash\":\"sha256\",\"iterations\":%d,\"salt\":\"%s\"}}},\"tokens\":{},"
             "\"segments\":{\"0\":{\"type\":\"crypt\",\"encryption\":\"%s-%s-%s\",%s}},\"digests\":"
             "{\"0\":{\"type\":\"pbkdf2\",\"keyslots\":[\"3\"],\"segments\":[\"0\"],\"hash\":"
             "\"sha256\",\"iterations\":%d,\"salt\":\"%s\",\"digest\":\"%s\"}},\"config\":{%s}}",
             cipher->key, STRIPES, cipher->name, cipher->mode, cipher->vector, cipher->key, ROUNDS,
             salts, cipher->name, cipher->mode, cipher->vector, segment, ROUNDS, salts, digests,
             config);
    for (uint64_t offset = 0; offset <= 16 << 10; offset += 16 << 10) {
        strcpy((char *)bench->bytes + offset + 4096, text);
        seal_header_2(bench->bytes, offset, offset ? "SKUL\xba\xbe" : "LUKS\xba\xbe");
    }
}
#endif

static struct bw_error *open_bench(struct bench *bench, const char *key)
{
    const struct bw_passkey passkey = {key, strlen(key)};
    const struct bw_fs_options options = {.keys = &passkey, .key_count = 1};
    bench->fake = (struct fake_layer){.copies = {bench->bytes}, .size = SIZE};
    bench->graph = fake_graph(&bench->log);
    expect_success(bw_keys_create(&options, &bench->keys));
    bench->graph->inputs.keys = bench->keys;
    bench->below = add_fake_device(bench->graph, &bench->fake);
    const struct option_value memory[] = {{"memory", "1M"}, {0}};
    return graph_add_above(bench->graph, bench->below, "layout/luks", "luks", memory, &bench->top);
}

static void close_bench(struct bench *bench)
{
    bw_graph_destroy(bench->graph);
    bw_keys_destroy(bench->keys);
    report_log_free(&bench->log);
    bench->log = (struct report_log){0};
}

static void free_bench(struct bench *bench)
{
    close_bench(bench);
    free(bench);
}

static void check_contents(struct bench *bench)
{
    uint8_t buffer[sizeof bench->plain];
    assert_int_equal(bw_xlator_size(bench->top), sizeof bench->plain);
    expect_success(read_range(bench->top, 0, buffer, sizeof buffer));
    assert_memory_equal(buffer, bench->plain, sizeof buffer);
    expect_success(read_range(bench->top, 4097, buffer, 1000));
    assert_memory_equal(buffer, bench->plain + 4097, 1000);
    expect_success(read_range(bench->top, 12 << 10, buffer, 4096));
    assert_memory_equal(buffer, bench->plain + (12 << 10), 4096);
    expect_error(read_range(bench->top, sizeof buffer - 100, buffer, 101), BW_ERROR_CORRUPT,
                 "the volume ends at 131072, before the end of 101 bytes");
}

static void test_ciphers(void **state)
{
    static const struct cipher ciphers[] = {
        {"aes", "xts", "plain", GCRY_CIPHER_AES128, GCRY_CIPHER_MODE_XTS, 32},
        {"aes", "xts", "plain64", GCRY_CIPHER_AES256, GCRY_CIPHER_MODE_XTS, 64},
        {"aes", "cbc", "essiv:sha256", GCRY_CIPHER_AES256, GCRY_CIPHER_MODE_CBC, 32},
        {"aes", "cbc", "essiv:sha256", GCRY_CIPHER_AES128, GCRY_CIPHER_MODE_CBC, 16},
        {"aes", "cbc", "plain64be", GCRY_CIPHER_AES192, GCRY_CIPHER_MODE_CBC, 24},
        {"serpent", "xts", "plain64", GCRY_CIPHER_SERPENT256, GCRY_CIPHER_MODE_XTS, 64},
        {"twofish", "xts", "plain64", GCRY_CIPHER_TWOFISH, GCRY_CIPHER_MODE_XTS, 64},
        {"camellia", "cbc", "plain64", GCRY_CIPHER_CAMELLIA256, GCRY_CIPHER_MODE_CBC, 32},
    };
    for (size_t i = 0; i < sizeof ciphers / sizeof *ciphers; i++) {
        struct bench *bench = make_bench(&ciphers[i], 512);
        put_header_1(bench, &ciphers[i]);
        expect_success(open_bench(bench, passphrase));
        check_contents(bench);
        free_bench(bench);
    }
}

static void test_keys(void **state)
{
    struct bench *bench = make_bench(&xts, 512);
    put_header_1(bench, &xts);
    expect_error(open_bench(bench, "wrong"), BW_ERROR_NOT_FOUND, "no keyslot accepts the key");
    close_bench(bench);
    expect_success(open_bench(bench, "correct horse\n")); /* of a text editor */
    close_bench(bench);
    put_32(bench->bytes + 208 + 48, 0x0000dead);
    expect_error(open_bench(bench, passphrase), BW_ERROR_NOT_FOUND, "its header has no keyslot");
    free_bench(bench);
}

static void expect_refusal(struct bench *bench, enum bw_error_code code, const char *message)
{
    expect_error(open_bench(bench, passphrase), code, message);
    close_bench(bench);
}

static void test_bad_headers(void **state)
{
    struct bench *bench = make_bench(&xts, 512);
    uint8_t *slot = bench->bytes + 208 + 48;
    put_header_1(bench, &xts);
    put_32(slot + 44, UINT32_MAX);
    expect_refusal(bench, BW_ERROR_CORRUPT, "keyslot 1 has impossible numbers");
    put_32(slot + 44, STRIPES);
    put_32(slot + 40, UINT32_MAX);
    expect_refusal(bench, BW_ERROR_CORRUPT, "keyslot 1: the device with the LUKS header ends at");
    put_32(slot + 40, KEYS / 512);
    put_32(slot + 4, UINT32_MAX); /* an hour */
    expect_refusal(bench, BW_ERROR_UNSUPPORTED, "keyslot 1 needs 4294967295 rounds");
    put_32(slot + 4, ROUNDS);
    put_32(bench->bytes + 104, UINT32_MAX);
    expect_refusal(bench, BW_ERROR_CORRUPT, "its data begin at 2199023255040, after the end");
    put_32(bench->bytes + 104, DATA / 512);
    put_32(bench->bytes + 108, 65);
    expect_refusal(bench, BW_ERROR_CORRUPT, "a key of 65 bytes");
    put_32(bench->bytes + 108, 64);
    strcpy((char *)bench->bytes + 8, "rot13");
    expect_refusal(bench, BW_ERROR_UNSUPPORTED, "the cipher rot13-xts-plain64 with a key of 512");
    strcpy((char *)bench->bytes + 8, "aes");
    strcpy((char *)bench->bytes + 72, "md99");
    expect_refusal(bench, BW_ERROR_CORRUPT, "impossible numbers");
    bench->bytes[7] = 3;
    expect_refusal(bench, BW_ERROR_CORRUPT, "no LUKS2 header is at 0");
    free(bench);
}

#ifdef BW_LUKS2
#define SEGMENT(sector) \
    "\"offset\":\"131072\",\"size\":\"dynamic\",\"iv_tweak\":\"0\",\"sector_size\":" sector

static void test_luks2(void **state)
{
    struct bench *bench = make_bench(&xts, 4096);
    put_header_2(bench, &xts, SEGMENT("4096"), "");
    expect_success(open_bench(bench, passphrase));
    check_contents(bench);
    close_bench(bench);
    bench->bytes[5000] ^= 1;
    expect_success(open_bench(bench, passphrase));
    check_contents(bench);
    assert_non_null(strstr(bench->log.text.data, "the first LUKS2 header is damaged"));
    close_bench(bench);
    bench->bytes[(16 << 10) + 5000] ^= 1;
    expect_refusal(bench, BW_ERROR_CORRUPT, "the checksum of the LUKS header is wrong");
    free(bench);
}

static void expect_refusal_2(const char *segment, const char *config, enum bw_error_code code,
                             const char *message)
{
    struct bench *bench = make_bench(&xts, 512);
    put_header_2(bench, &xts, segment, config);
    expect_refusal(bench, code, message);
    free(bench);
}

static void test_refused_luks2(void **state)
{
    expect_refusal_2(SEGMENT("512"), "\"requirements\":{\"mandatory\":[\"online-reencrypt\"]}",
                     BW_ERROR_UNSUPPORTED, "the requirement 'online-reencrypt'");
    expect_refusal_2(SEGMENT("512") ",\"integrity\":{\"type\":\"hmac(sha256)\"}", "",
                     BW_ERROR_UNSUPPORTED, "authenticated encryption");
    expect_refusal_2(SEGMENT("513"), "", BW_ERROR_CORRUPT, "no valid segment");
    expect_refusal_2(SEGMENT("512") "}},\"segments\":{", "", BW_ERROR_CORRUPT, "no valid");
    expect_refusal_2("\"offset\":\"99999999999\",\"iv_tweak\":\"0\",\"sector_size\":512", "",
                     BW_ERROR_CORRUPT, "its data begin at 99999999999");
    expect_refusal_2(SEGMENT("512"), "\"a\":[[[", BW_ERROR_CORRUPT, "no valid JSON");
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ciphers),     cmocka_unit_test(test_keys),
        cmocka_unit_test(test_bad_headers),
#ifdef BW_LUKS2
        cmocka_unit_test(test_luks2),       cmocka_unit_test(test_refused_luks2),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
