/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Books kept in double entry: what one structure promises is added, what is really there is taken
 * away, both as hashes of the facts. If nothing is left the two agree, whatever the order in which
 * they were read, and nothing had to be remembered or searched. What does not balance is found in a
 * second pass: entries are spread over accounts, and only those in an account with a rest are
 * looked at again.
 */
#ifndef BW_CHECK_LEDGER_H
#define BW_CHECK_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** How many accounts a ledger has. */
enum { BW_LEDGER_ACCOUNTS = 1 << 16 };

struct bw_ledger;

/** A ledger without entries; NULL if memory runs out. */
struct bw_ledger *bw_ledger_create(void);
void bw_ledger_destroy(struct bw_ledger *ledger);

/** The hash of up to four numbers, with the seed that makes a fact of one kind differ from one of
 * another. */
uint64_t bw_ledger_hash(uint64_t kind, uint64_t a, uint64_t b, uint64_t c);

/** The account of a subject: that of everything said about one extent, or one inode. */
uint32_t bw_ledger_account(uint64_t subject);

/** Enters `count` times (negative: taken away) a fact about a subject. Safe from any thread. */
void bw_ledger_enter(struct bw_ledger *ledger, uint64_t subject, uint64_t fact, uint64_t count);

/** Whether everything said about the subjects of an account agrees. */
bool bw_ledger_balances(const struct bw_ledger *ledger, uint32_t account);

/** How many accounts do not. */
size_t bw_ledger_open_accounts(const struct bw_ledger *ledger);

#endif
