/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion for all shells. The scripts in completions/ pass the words of a command line, and
 * receive the completions of the last word.
 */
#ifndef BW_CLI_COMPLETE_COMPLETE_H
#define BW_CLI_COMPLETE_COMPLETE_H

#include "cli/command.h"

/** Prints the completions of the last word; `words` follow the name of the program. Returns the
 * exit status. */
int cmd_complete(char **words, size_t count);
/** The same for a command line of bash up to the cursor; `breaks` is COMP_WORDBREAKS. */
int cmd_complete_bash(const char *breaks, const char *line);

/** Kinds of completions. */
enum complete_kind {
    COMPLETE_WORD = 'w',  /**< the whole word */
    COMPLETE_BEGIN = 'g', /**< the beginning of a word: a directory, or a list */
    COMPLETE_FILES = 'f', /**< names of files follow the completion's text; the shell adds them */
};

/** The words of a bash command line up to the cursor, without quotes. */
struct bash_line {
    char **words; /**< ends with NULL; the last one, which may be empty, is completed */
    size_t count;
    size_t cut; /**< bytes of the last word that bash does not replace */
    char quote; /**< the quote that is open at the end; 0: none */
};

/** Parses a line; `breaks` is COMP_WORDBREAKS. False if memory runs out. */
bool bash_line_read(struct bash_line *line, const char *text, const char *breaks);
void bash_line_free(struct bash_line *line);

/** Appends a word, quoted as needed inside of `quote`. */
void bash_append_quoted(struct bw_buffer *text, const char *word, size_t length, char quote);

#endif
