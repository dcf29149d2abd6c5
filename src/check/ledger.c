/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ledgers: an array of sums modulo 2^64. */
#include "check/ledger.h"

#include <stdatomic.h>
#include <stdlib.h>

struct bw_ledger {
    atomic_uint_fast64_t rests[BW_LEDGER_ACCOUNTS];
};

struct bw_ledger *bw_ledger_create(void)
{
    return calloc(1, sizeof(struct bw_ledger));
}

void bw_ledger_destroy(struct bw_ledger *ledger)
{
    free(ledger);
}

/* The finalizer of SplitMix64: every bit of the input changes every bit of the result. */
static uint64_t mix(uint64_t number)
{
    number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
    return number ^ number >> 31;
}

uint64_t bw_ledger_hash(uint64_t kind, uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t step = UINT64_C(0x9e3779b97f4a7c15);
    return mix(mix(mix(mix(kind + step) ^ (a + 2 * step)) + b * 3) ^ (c + 5 * step));
}

uint32_t bw_ledger_account(uint64_t subject)
{
    return (uint32_t)(mix(subject) % BW_LEDGER_ACCOUNTS);
}

void bw_ledger_enter(struct bw_ledger *ledger, uint64_t subject, uint64_t fact, uint64_t count)
{
    atomic_fetch_add_explicit(&ledger->rests[bw_ledger_account(subject)], fact * count,
                              memory_order_relaxed);
}

bool bw_ledger_balances(const struct bw_ledger *ledger, uint32_t account)
{
    return !atomic_load_explicit(&ledger->rests[account], memory_order_relaxed);
}

size_t bw_ledger_open_accounts(const struct bw_ledger *ledger)
{
    size_t count = 0;
    for (uint32_t account = 0; account < BW_LEDGER_ACCOUNTS; account++)
        count += !bw_ledger_balances(ledger, account);
    return count;
}
