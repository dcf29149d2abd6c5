/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pseudonyms of names. A name consists of a prefix and its last four bytes. For each prefix there
 * is exactly one end that gives the name its hash. So all names with the same length and hash can
 * be numbered by their prefixes, which are read as numbers. The pseudonym of a name is the next
 * suitable one in steps of a width that the key and the hash determine. The width has no common
 * divisor with the count of prefixes, so the steps reach all of them.
 */
#include "trees/metadump.h"

#include <string.h>

#include "base/crc32c.h"
#include "base/endian.h"
#include "ondisk/checksum.h"

enum { END = 4, LONGEST = 255, MOST_STEPS = 1 << 20 };

/* The bytes from `first` on, without '/', are the digits of a number. */
struct alphabet {
    uint8_t first, base;
};

static const struct alphabet printable = {' ', 94}, anything = {1, 254};

static bool has_byte(const struct alphabet *alphabet, uint8_t byte)
{
    return byte >= alphabet->first && byte <= alphabet->first + alphabet->base && byte != '/';
}

static bool has_all(const struct alphabet *alphabet, const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!has_byte(alphabet, bytes[i]))
            return false;
    return true;
}

static uint8_t byte_of(const struct alphabet *alphabet, unsigned digit)
{
    const unsigned byte = alphabet->first + digit;
    return (uint8_t)(byte < '/' ? byte : byte + 1);
}

/* A search for a pseudonym. */
struct search {
    const struct alphabet *alphabet; /* of the prefix */
    bool (*accepts)(const uint8_t *name, size_t length);
    uint32_t seed, hash;
    uint32_t before_end; /* what the checksum of the prefix would be if the end were zeros */
    size_t length;
    uint8_t width[LONGEST]; /* of a step: digits, the least significant one last */
    uint8_t name[LONGEST];  /* the current candidate */
};

static bool is_printable(const uint8_t *name, size_t length)
{
    return has_all(&printable, name, length);
}

static bool is_possible(const uint8_t *name, size_t length)
{
    return has_all(&anything, name, length);
}

static bool is_binary(const uint8_t *name, size_t length)
{
    return is_possible(name, length) && !is_printable(name, length);
}

/* The checksum before four bytes of zeros that lead to `hash`. */
static uint32_t rewind_end(uint32_t hash)
{
    const uint32_t polynomial = UINT32_C(0x82f63b78);
    for (unsigned i = 0; i < 8 * END; i++)
        hash = hash >> 31 ? (hash ^ polynomial) << 1 | 1 : hash << 1;
    return hash;
}

/* Sets the end that belongs to the prefix. */
static void set_end(struct search *search)
{
    const size_t prefix = search->length - END;
    const bw_le32 end =
        bw_put32(bw_crc32c(search->seed, search->name, prefix) ^ search->before_end);
    memcpy(search->name + prefix, &end, sizeof end);
}

/* Both alphabets have 2 p digits, for a prime p: whether a width is prime to their powers depends
 * on its last digit. */
static void set_width(struct search *search, const struct bw_pseudonyms *names)
{
    struct {
        uint8_t key[BW_PSEUDONYM_KEY];
        bw_le32 hash, seed;
        uint8_t length, first, part;
    } __attribute__((packed)) input = {.hash = bw_put32(search->hash),
                                       .seed = bw_put32(search->seed),
                                       .length = (uint8_t)search->length,
                                       .first = search->alphabet->first};
    const unsigned base = search->alphabet->base;
    const size_t prefix = search->length - END;
    bw_le16 numbers[16];
    memcpy(input.key, names->key, sizeof input.key);
    for (size_t i = 0; i < prefix; i++) {
        if (i % 16 == 0) {
            input.part = (uint8_t)(i / 16);
            bw_checksum_compute(BW_CHECKSUM_SHA256, &input, sizeof input, (uint8_t *)numbers);
        }
        search->width[i] = (uint8_t)(bw_get16(numbers[i % 16]) % base);
    }
    uint8_t *last = &search->width[prefix - 1];
    *last |= 1;
    if (*last % (base / 2) == 0)
        *last = 1;
}

/* Whether a name of five bytes shares its hash with another printable one. There are no more than
 * 94 candidates. */
static bool has_printable_twin(const struct search *search)
{
    struct search candidate = *search;
    unsigned count = 0;
    for (unsigned digit = 0; digit < printable.base; digit++) {
        candidate.name[0] = byte_of(&printable, digit);
        set_end(&candidate);
        count += is_printable(candidate.name, candidate.length);
    }
    return count > 1;
}

bool bw_pseudonym(const struct bw_pseudonyms *names, uint32_t seed, uint8_t *name, size_t length)
{
    struct search search = {.seed = seed, .length = length};
    if (length <= BW_PSEUDONYM_NONE || length > LONGEST)
        return false;
    memcpy(search.name, name, length);
    search.hash = bw_crc32c(seed, name, length);
    search.before_end = rewind_end(search.hash);

    /* Printable names become printable names, and others become others, so that different names
     * stay different. If a single printable name has a hash, all names with the hash are permuted.
     */
    const bool is_alone = length == END + 1 && !has_printable_twin(&search);
    const bool stays_printable = !is_alone && is_printable(name, length);
    search.alphabet = stays_printable ? &printable : &anything;
    search.accepts = is_alone ? is_possible : is_binary;
    if (stays_printable)
        search.accepts = is_printable;

    set_width(&search, names);
    const struct alphabet *alphabet = search.alphabet;
    for (unsigned step = 0; step < MOST_STEPS; step++) {
        unsigned carry = 0;
        for (size_t i = length - END; i-- > 0;) {
            const uint8_t byte = search.name[i];
            unsigned sum = search.width[i] + carry;
            if (has_byte(alphabet, byte))
                sum += (unsigned)byte - alphabet->first - (byte > '/');
            carry = sum >= alphabet->base;
            search.name[i] = byte_of(alphabet, carry ? sum - alphabet->base : sum);
        }
        set_end(&search);
        if (memcmp(search.name, name, length) == 0)
            return false;
        if (search.accepts(search.name, length)) {
            memcpy(name, search.name, length);
            return true;
        }
    }
    return false;
}
