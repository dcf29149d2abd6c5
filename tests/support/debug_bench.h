/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Common code of the tests of debug layers: output files in memory, a lowest layer that is safe for
 * several threads, and the numbers in a statedump. */
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
/** Its current contents, to be freed. */
char *output_text(const struct memory_output *output);
/** Fails unless it holds exactly this. */
void expect_output(const struct memory_output *output, const char *wanted);

/** Tries to add a layer above `child` with an invalid option `key`. Returns the error. */
struct bw_error *try_option(struct bw_graph *graph, const char *type, struct bw_xlator *child,
                            const char *key, const char *value);

/** A graph of debug layers whose bottom is a "test/threads": any number of threads may read it. It
 * answers with bytes of 1, but copy 9 with an error whose message would colour a terminal. */
struct bw_graph *threads_graph(struct report_log *log);

/** Runs a function in several threads at once, each with its number. */
enum { THREADS = 4 };
void run_threads(void (*function)(struct bw_xlator *xlator, unsigned thread),
                 struct bw_xlator *xlator);

/** The members of a layer in a statedump as one line, to be freed. */
char *dump_text(const struct bw_xlator_class *type, struct bw_xlator *xlator);
/** A number in it, by the name of its first occurrence. */
uint64_t dump_number(const struct bw_xlator_class *type, struct bw_xlator *xlator,
                     const char *name);

/** Asks for a mapping and gives a hint, and fails unless both pass. */
void expect_passes(struct bw_xlator *top, const struct fake_layer *fake);

#endif
