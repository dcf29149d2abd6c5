/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One round of the soak. */
#ifndef BW_TESTS_SOAK_ROUND_H
#define BW_TESTS_SOAK_ROUND_H

#include <stdbool.h>
#include <stdint.h>

/** Makes the image and the graph of a seed, walks, and checks. False after an error, which is
 * printed on stderr. `verbose`: always describes the round. */
bool run_round(uint64_t seed, bool verbose);

#endif
