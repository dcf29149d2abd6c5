/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Command lines of the shell: words, with the quotes and comments of sh(1). */
#ifndef BW_CLI_SHELL_WORDS_H
#define BW_CLI_SHELL_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/** The words of a command. All zeros is an empty list. */
struct shell_words {
    char **items; /**< ends with NULL */
    size_t count, capacity;
    const char *last;    /**< where the last word begins in the text */
    bool is_open;        /**< no space follows the last word, so the text can continue it */
    bool is_unfinished;  /**< the problem is the end of the text within quotes */
    const char *problem; /**< the reason why the text is no command; NULL if it is one */
};

/** Reads a command up to a newline or semicolon, and advances `text` beyond that. The list must be
 * empty. False if there is a problem. */
bool shell_words_read(struct shell_words *words, const char **text);

/** Inserts a copy of a word before the word with this number; false if memory runs out. */
bool shell_words_insert(struct shell_words *words, size_t number, const char *word);

/** Frees everything and leaves an empty list. */
void shell_words_free(struct shell_words *words);

#endif
