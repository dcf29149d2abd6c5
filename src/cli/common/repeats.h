/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages that differ only in their numbers, except those of devices. Damage to thousands of
 * blocks prints an example and, at the end, a count. */
#ifndef BW_CLI_COMMON_REPEATS_H
#define BW_CLI_COMMON_REPEATS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    CMD_EXAMPLES = 5,       /**< messages of a kind that are printed; of damage, one */
    CMD_MESSAGE_KINDS = 64, /**< further kinds are not limited */
};

/** A message without its numbers: "tree block N of the extent tree (level N): ...". */
struct cmd_message_kind {
    char text[128]; /**< its beginning */
    uint64_t count, printed;
};

struct cmd_repeats {
    pthread_mutex_t lock;
    struct cmd_message_kind kinds[CMD_MESSAGE_KINDS];
    unsigned count;
};

/** Counts a message. Returns its kind, which lives as long as `repeats`; NULL if there are too many
 * kinds. */
const struct cmd_message_kind *cmd_repeats_count(struct cmd_repeats *repeats, const char *message);

/** Counts a message. False if `most` messages of its kind were printed. */
bool cmd_repeats_allow(struct cmd_repeats *repeats, const char *message, unsigned most);

/** Prints to stderr how many messages of each kind were not printed. */
void cmd_repeats_print(const struct cmd_repeats *repeats);

#endif
