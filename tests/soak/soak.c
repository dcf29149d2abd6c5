/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The soak: round after round of a random image, read through a random graph with random faults.
 * Each round is a separate process, so the seed of a round that crashes, hangs or leaks is known:
 *
 *     soak [--seed N] [--rounds N]     round i has the seed N + i; a single round is described
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "soak/round.h"
#include "support/walk_helpers.h"

enum { SECONDS_EACH = 60, ROUNDS = 200 };

/* A round that takes so long hangs; the alarm ends it. */
static int run_limited(uint64_t seed, bool verbose)
{
    limit_seconds(SECONDS_EACH);
    return run_round(seed, verbose) ? EXIT_SUCCESS : EXIT_FAILURE;
}

static bool run_in_child(const char *program, uint64_t seed)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        exit(run_limited(seed, false));
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("soak");
        return false;
    }
    if (status == 0)
        return true;
    fprintf(stderr, "FAILED%s%s: %s --seed %" PRIu64 " --rounds 1\n",
            WIFSIGNALED(status) ? ", killed by " : "",
            WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "", program, seed);
    return false;
}

static uint64_t number(const char *text)
{
    char *end;
    uint64_t value = strtoull(text, &end, 10);
    if (*end || end == text) {
        fprintf(stderr, "soak: not a number: %s\n", text);
        exit(EXIT_FAILURE);
    }
    return value;
}

int main(int count, char **arguments)
{
    uint64_t seed = 1, rounds = ROUNDS, failed = 0;
    for (int i = 1; i < count; i += 2) {
        if (i + 1 < count && strcmp(arguments[i], "--seed") == 0) {
            seed = number(arguments[i + 1]);
        } else if (i + 1 < count && strcmp(arguments[i], "--rounds") == 0) {
            rounds = number(arguments[i + 1]);
        } else {
            fprintf(stderr, "usage: %s [--seed N] [--rounds N]\n", arguments[0]);
            return EXIT_FAILURE;
        }
    }
    if (rounds == 1)
        return run_limited(seed, true);
    for (uint64_t i = 0; i < rounds; i++)
        failed += !run_in_child(arguments[0], seed + i);
    printf("%" PRIu64 " rounds from seed %" PRIu64 "\n[  PASSED  ] %d test(s).\n", rounds, seed,
           failed == 0);
    if (failed)
        printf("[  FAILED  ] 1 test(s): %" PRIu64 " rounds\n", failed);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
