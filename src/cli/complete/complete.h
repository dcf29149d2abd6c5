/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion for all shells: the words of a command line go in, and what the last of them can
 * become comes out. The scripts in completions/ only hand both over.
 */
#ifndef BW_CMD_COMPLETE_H
#define BW_CMD_COMPLETE_H

#include "cli/command.h"

/** Completes the last of the words that follow the name of the program; returns the exit status. */
int cmd_complete(char **words, size_t count);
/** The same for a line of bash up to the cursor; `breaks` is COMP_WORDBREAKS. */
int cmd_complete_bash(const char *breaks, const char *line);

/** What an answer is. */
enum complete_kind {
    COMPLETE_WORD = 'w',  /**< the whole word */
    COMPLETE_BEGIN = 'g', /**< the word goes on: a directory, or a list */
    COMPLETE_FILES = 'f', /**< names of files stand there, behind the text of the answer; the shell
                             knows them */
};

/** A word that is being completed. */
struct complete {
    const char *prefix;    /**< what of the word stays as it is: "--subvol=", "size," */
    size_t prefix_length;  /**< bytes */
    const char *value;     /**< the rest, which answers begin with; ends with NUL */
    struct bw_buffer text; /**< the answers: kind and word, NUL, description, NUL */
    size_t count;
    struct cmd_common *common; /**< the images, and how to open them */
    const char *subvolume;     /**< argument of --subvol; NULL: none */
};

/** The words of a line of bash up to the cursor, without their quotes. */
struct bash_line {
    char **words; /**< ends with NULL; the last one is completed, and may be empty */
    size_t count;
    size_t cut; /**< bytes of the last word that bash leaves as they are */
    char quote; /**< the quote that is open there; 0: none */
};

/** Reads a line; `breaks` is COMP_WORDBREAKS. False if memory runs out. */
bool bash_line_read(struct bash_line *line, const char *text, const char *breaks);
void bash_line_free(struct bash_line *line);

/** Appends a word with the quotes that it needs where the line ends. */
void bash_append_quoted(struct bw_buffer *text, const char *word, size_t length, char quote);

#endif
