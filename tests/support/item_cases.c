/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Items as tables: they are made byte by byte, in memory of just their size, and judged. */
#include "support/item_cases.h"

static const struct bw_key no_key;

static void change(uint8_t *bytes, uint32_t size, const struct item_change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const size_t length = changes[i].text ? strlen(changes[i].text) : changes[i].width;
        assert_true(changes[i].at + length <= size);
        for (size_t k = 0; k < length; k++)
            bytes[changes[i].at + k] = (uint8_t)(changes[i].text ? (uint64_t)changes[i].text[k]
                                                                 : changes[i].value >> 8 * k);
    }
}

/* The valid item, made longer or shorter. Changes after its end have no effect. */
static struct bw_item make(const struct good_item *good, struct bw_key key, int longer)
{
    const uint32_t size = good->size + (uint32_t)longer, larger = longer > 0 ? size : good->size;
    uint8_t *whole = calloc(larger + 1, 1), *bytes = malloc(size + !size);
    assert_non_null(whole);
    assert_non_null(bytes);
    change(whole, larger, good->changes, MOST_CHANGES);
    memcpy(bytes, whole, size);
    free(whole);
    return (struct bw_item){bw_key_compare(&key, &no_key) ? key : good->key, bytes, size};
}

static void expect_verdict(const struct item_case *expected, size_t number)
{
    struct bw_item item = make(expected->good, expected->key, expected->longer), previous = {0};
    struct bw_item_rules rules = {
        .sectorsize = SECTOR,
        .nodesize = NODE,
        .checksum_size = 4,
        .generation = GENERATION,
        .leaf_generation = expected->leaf_generation ? expected->leaf_generation : UINT64_MAX,
        .incompat = USUAL_FEATURES ^ expected->features,
        .in_log = expected->in_log,
        .owner = expected->owner ? expected->owner : expected->good->owner,
    };
    struct bw_item_fault fault = {.message = ""};
    change((uint8_t *)(uintptr_t)item.data, item.size, expected->changes, COUNT(expected->changes));
    if (expected->previous) {
        previous = make(expected->previous, expected->previous_key, 0);
        rules.previous = &previous;
    }
    const bool wrong = bw_check_item(&rules, &item, &fault);
    if (wrong != !!expected->message ||
        (wrong && (fault.kind != expected->kind || strcmp(fault.message, expected->message) != 0)))
        fail_msg("case %zu: %s, not %s", number, wrong ? fault.message : "good",
                 expected->message ? expected->message : "good");
    free((uint8_t *)(uintptr_t)item.data);
    free((uint8_t *)(uintptr_t)previous.data);
}

void expect_verdicts(const struct item_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        expect_verdict(&cases[i], i);
}
