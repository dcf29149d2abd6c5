/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The words of a volfile, each with its place. Used by graph/volfile.c alone. */
#ifndef BW_GRAPH_LEXER_H
#define BW_GRAPH_LEXER_H

#include "graph/plan.h"

enum bw_token_kind {
    BW_TOKEN_END,
    BW_TOKEN_WORD,
    BW_TOKEN_QUOTED, /**< never a keyword */
};

struct bw_token {
    enum bw_token_kind kind;
    const char *text; /**< without quotes and escapes; lives as long as the lexer; "" at the end */
    struct bw_place at;
};

/** Where reading has come to. */
struct bw_lexer {
    const char *source;
    const char *next, *end, *line_start;
    unsigned line;
    char *words, *free; /**< the texts of all words so far, and where the next one goes */
};

/** Begins reading; `source` and `text` outlive the lexer. A NUL byte is refused at once. */
struct bw_error *bw_lexer_open(const char *source, const char *text, size_t length,
                               struct bw_lexer *lexer);

/** Frees the texts of all tokens. */
void bw_lexer_close(struct bw_lexer *lexer);

/** Reads the next word; at the end, again and again BW_TOKEN_END. */
struct bw_error *bw_lexer_next(struct bw_lexer *lexer, struct bw_token *token);

#endif
