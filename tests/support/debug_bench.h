/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the tests of debug layers share: files in memory that layers write to, a bottom that several
 * threads may read, and the numbers of a dump. */
#ifndef BW_TESTS_DEBUG_BENCH_H
#define BW_TESTS_DEBUG_BENCH_H

#include "support/fake_layer.h"

/** A file that is only in memory. */
struct memory_output {
    int descriptor;
    char path[32];
};

struct memory_output output_create(void);
void output_free(struct memory_output *output);
/** What it holds now, to be freed. */
char *output_text(const struct memory_output *output);
/** Fails unless it holds exactly this. */
void expect_output(const struct memory_output *output, const char *wanted);

/** Tries to add a layer above `child`; what it is told by `key` is refused. The answer is the
 * error. */
struct bw_error *try_option(struct bw_graph *graph, const char *type, struct bw_xlator *child,
                            const char *key, const char *value);

/** A graph of debug layers whose bottom is a "test/threads": any number of threads may read it. It
 * answers with bytes of 1, but copy 9 with an error whose message would colour a terminal. */
struct bw_graph *threads_graph(struct report_log *log);

/** Runs a function in several threads at once, each with its number. */
enum { THREADS = 4 };
void run_threads(void (*function)(struct bw_xlator *xlator, unsigned thread),
                 struct bw_xlator *xlator);

/** What a layer says of itself in a statedump, to be freed; the members of one object, in one line.
 */
char *dump_text(const struct bw_xlator_class *type, struct bw_xlator *xlator);
/** A number in it, by the name of its first occurrence. */
uint64_t dump_number(const struct bw_xlator_class *type, struct bw_xlator *xlator,
                     const char *name);

/** Asks for a mapping and gives a hint, and fails unless both pass. */
void expect_passes(struct bw_xlator *top, const struct fake_layer *fake);

#endif
