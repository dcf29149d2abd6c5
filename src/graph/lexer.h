/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cuts a text into words, quoted words and symbols, each with its place, for the volfile parser
 * (graph/volfile.c).
 *
 * White space separates words. A quoted word can hold any byte; a backslash in it begins one of
 * \" \\ \n \r \t \xHH.
 */
#ifndef BW_GRAPH_LEXER_H
#define BW_GRAPH_LEXER_H

#include <stdbool.h>
#include <stddef.h>

#include "btrfs-walk/error.h"

/** Where a word was written. */
struct bw_text_place {
    const char *source; /**< name of a file, or an argument of the command line; may be NULL */
    unsigned line;      /**< counted from 1; 0: the source has no lines */
    unsigned column;    /**< in bytes, counted from 1; 0: unknown */
};

/** Puts the place in front of an error's message ("graph.vol:3:12: ...", "column 5: ..."); takes
 * and returns the error. */
struct bw_error *bw_place_error(struct bw_text_place at, struct bw_error *error);

/** A refusal (BW_ERROR_USAGE) with its place in front; takes a format and its arguments. */
#define BW_REFUSE(at, ...) bw_place_error(at, bw_error_create(BW_ERROR_USAGE, __VA_ARGS__))

/** How one kind of text is cut into words. */
struct bw_lexer_rules {
    const char *const *symbols; /**< longer ones before their beginnings; ends with NULL */
    char comment;               /**< begins a comment up to the end of the line; 0: none does */
    bool one_line;              /**< a quoted word must end in the line it begins in */
};

enum bw_token_kind {
    BW_TOKEN_END,
    BW_TOKEN_WORD,
    BW_TOKEN_QUOTED,
    BW_TOKEN_SYMBOL,
};

struct bw_token {
    enum bw_token_kind kind;
    bool adjacent;    /**< no white space stands between it and the token before it */
    size_t symbol;    /**< index in the rules, for BW_TOKEN_SYMBOL */
    const char *text; /**< without quotes and escapes, followed by a NUL byte; lives as long as
                         the lexer; "" at the end */
    size_t length;    /**< of the text: \x00 gives a NUL byte within it */
    struct bw_text_place at;
};

/** Where reading has come to. */
struct bw_lexer {
    const struct bw_lexer_rules *rules;
    const char *source, *line_begin, *next, *end;
    unsigned line; /**< 0: lines are not counted */
    bool started;
    char *words, *free; /**< the texts of all words so far, and where the next one goes */
};

/** Begins to read a text, whose first line has the number `start.line`; 0: columns are counted
 * through the whole text. The rules, the text and `start.source` must outlive the lexer.
 * BW_ERROR_NO_MEMORY. */
struct bw_error *bw_lexer_open(const struct bw_lexer_rules *rules, struct bw_text_place start,
                               const char *text, size_t length, struct bw_lexer *lexer);

/** Frees the texts of all tokens. */
void bw_lexer_close(struct bw_lexer *lexer);

/** Reads the next token; at the end, again and again BW_TOKEN_END. A word ends before white space
 * and before the bytes of `ends`. BW_ERROR_USAGE if a quoted word is malformed. */
struct bw_error *bw_lexer_next(struct bw_lexer *lexer, const char *ends, struct bw_token *token);

#endif
