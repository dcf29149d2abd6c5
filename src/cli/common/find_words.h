/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tests of find(1) with one dash, and what it does besides testing. */
#ifndef BW_CMD_FIND_WORDS_H
#define BW_CMD_FIND_WORDS_H

#include <getopt.h>

/** Replaces words like "-name", where getopt_long() would take them for short options, by those
 * that it knows. `letters` and `names` are its tables. Returns the first word that there is advice
 * for; NULL if there is none. */
const char *cmd_find_words(int argc, char **argv, const char *letters, const struct option *names);

/** What to do instead of a word of find, like "-exec"; NULL if it is none. */
const char *cmd_find_advice(const char *word);

#endif
