/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/check/{file,tree}_items.c: items of all types, with random bytes and sizes up to some hundred
 * bytes. Nothing outside of an item may be read. */
#include "support/item_cases.h"

enum { LARGEST = 300, ROUNDS = 12 };

static uint64_t random_number(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 16;
}

/* An item in memory of just its size, of bytes of which many are zeros. */
static struct bw_item random_item(uint64_t *state, unsigned type)
{
    static const uint64_t ids[] = {0,
                                   1,
                                   2,
                                   5,
                                   256,
                                   257,
                                   4096,
                                   16384,
                                   BW_BALANCE,
                                   BW_ORPHAN,
                                   BW_EXTENT_CSUM_OBJECT,
                                   BW_FREE_SPACE_OBJECT};
    const uint32_t size = (uint32_t)(random_number(state) % LARGEST);
    uint8_t *bytes = malloc(size + !size);
    assert_non_null(bytes);
    const unsigned share = random_number(state) % 8;
    for (uint32_t i = 0; i < size; i++)
        bytes[i] = random_number(state) % 8 < share ? (uint8_t)random_number(state) : 0;
    const struct bw_key key = {ids[random_number(state) % COUNT(ids)], (uint8_t)type,
                               ids[random_number(state) % COUNT(ids)]};
    return (struct bw_item){key, bytes, size};
}

static void judge(uint64_t *state, unsigned type)
{
    struct bw_item previous = random_item(state, type), item = random_item(state, type);
    struct bw_item_fault fault = {.message = ""};
    const struct bw_item_rules rules = {
        .sectorsize = SECTOR,
        .nodesize = NODE,
        .checksum_size = 4,
        .generation = GENERATION,
        .incompat = random_number(state),
        .in_log = random_number(state) % 2,
        .owner = random_number(state) % 16,
        .previous = random_number(state) % 2 ? &previous : NULL,
    };
    if (bw_check_item(&rules, &item, &fault)) {
        assert_true(fault.kind < BW_FAULTS);
        assert_true(strlen(fault.message) > 0);
    }
    free((uint8_t *)(uintptr_t)item.data);
    free((uint8_t *)(uintptr_t)previous.data);
}

static void test_random_items(void **state)
{
    uint64_t number = 20;
    for (unsigned round = 0; round < ROUNDS * 256; round++)
        judge(&number, round % 256);
}
