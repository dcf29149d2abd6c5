/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The grammar of volfiles, parsed by recursive descent with one token of lookahead. graph.h shows
 * an example. Each function begins at the token of its rule, and ends behind it. A statement needs
 * no end of line, so a keyword is only recognized where one is allowed, and in quotes it is a word
 * like any other. validate.c checks the meaning of the words.
 */
#include "graph/graph.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Setting an option searches the existing ones, so their number must be limited. */
enum { OPTIONS_AT_MOST = 1024 };

enum keyword { NOT_A_KEYWORD, VOLUME, TYPE, OPTION, SUBVOLUMES, END_VOLUME, KEYWORDS };

static const char *const keywords[KEYWORDS] = {
    [VOLUME] = "volume",         [TYPE] = "type", [OPTION] = "option", [SUBVOLUMES] = "subvolumes",
    [END_VOLUME] = "end-volume",
};

struct parser {
    struct bw_lexer lexer;
    struct bw_token token; /* the next one */
    struct bw_graph *graph;
    struct bw_xlator *volume; /* the volume that is being defined */
    enum keyword statement;   /* the last statement */
    unsigned statement_line;  /* the line of its last word */
};

static struct bw_error *next_token(struct parser *parser)
{
    const struct bw_token *token = &parser->token;
    BW_TRY(bw_lexer_next(&parser->lexer, "\"", &parser->token));
    if (memchr(token->text, '\0', token->length))
        return BW_REFUSE(token->at, "a word cannot contain a NUL byte");
    if (token->adjacent && token->kind == BW_TOKEN_QUOTED)
        return BW_REFUSE(token->at,
                         "a quote inside a word: quotes go around the whole word, and a quote in "
                         "them is written \\\"");
    if (token->adjacent && token->kind == BW_TOKEN_WORD)
        return BW_REFUSE(token->at, "white space must follow the closing quote");
    return NULL;
}

static enum keyword find_keyword(const char *word)
{
    for (enum keyword keyword = VOLUME; keyword < KEYWORDS; keyword++)
        if (strcmp(word, keywords[keyword]) == 0)
            return keyword;
    return NOT_A_KEYWORD;
}

bool bw_volfile_is_keyword(const char *word)
{
    return find_keyword(word) != NOT_A_KEYWORD;
}

static enum keyword keyword_of(const struct bw_token *token)
{
    return token->kind == BW_TOKEN_WORD ? find_keyword(token->text) : NOT_A_KEYWORD;
}

/* Parses a word that is not a keyword; `expected` describes it in errors. */
static struct bw_error *expect_word(struct parser *parser, const char *expected,
                                    struct bw_token *word)
{
    *word = parser->token;
    if (word->kind == BW_TOKEN_END)
        return BW_REFUSE(word->at, "the file ends where %s is expected", expected);
    if (keyword_of(word))
        return BW_REFUSE(
            word->at,
            "%s expected, not the keyword %s (in quotes it would be a word like any other)",
            expected, word->text);
    parser->statement_line = word->at.line;
    return next_token(parser);
}

/* Parses a name. Names are also used in arguments of the command line, where some characters are
 * special. */
static struct bw_error *expect_name(struct parser *parser, const char *expected,
                                    struct bw_token *name)
{
    BW_TRY(expect_word(parser, expected, name));
    if (!*name->text)
        return BW_REFUSE(name->at, "the name of a volume cannot be empty");
    for (const char *next = name->text; *next; next++) {
        unsigned char byte = (unsigned char)*next;
        if (byte == ',' || byte == '=')
            return BW_REFUSE(name->at, "the name of a volume cannot contain '%c': '%s'", byte,
                             name->text);
        if (byte <= ' ' || byte == 0x7f)
            return BW_REFUSE(
                name->at, "the name of a volume cannot contain white space or control bytes: '%s'",
                name->text);
    }
    return NULL;
}

/* The error of a token that does not begin a statement of the volume. */
static struct bw_error *refuse_statement(const struct parser *parser)
{
    const struct bw_token *token = &parser->token;
    const struct bw_xlator *volume = parser->volume;
    const struct bw_word *name = &volume->name;
    if (token->kind == BW_TOKEN_END)
        return BW_REFUSE(token->at,
                         "the file ends inside volume %s of line %u: end-volume is missing",
                         name->text, name->at.line);
    if (keyword_of(token) == VOLUME)
        return BW_REFUSE(token->at, "volume %s of line %u is still open: end-volume is missing",
                         name->text, name->at.line);
    /* A word after a complete statement was probably meant as a part of it. */
    if (token->at.line == parser->statement_line && parser->statement == OPTION) {
        const struct bw_setting *option = &volume->settings.items[volume->settings.count - 1];
        return BW_REFUSE(
            token->at,
            "'%s' follows the value of option %s: a value with white space needs quotes, "
            "like \"%s %s\"",
            token->text, option->name.text, option->value.text, token->text);
    }
    if (token->at.line == parser->statement_line)
        return BW_REFUSE(token->at, "unexpected '%s' after the %s of volume %s", token->text,
                         parser->statement == TYPE ? "type" : "name", name->text);
    if (token->kind == BW_TOKEN_QUOTED)
        return BW_REFUSE(token->at,
                         "type, option, subvolumes or end-volume expected, without quotes");
    return BW_REFUSE(token->at,
                     "unknown keyword '%s': type, option, subvolumes or end-volume expected",
                     token->text);
}

static struct bw_error *parse_statement(struct parser *parser)
{
    const enum keyword keyword = keyword_of(&parser->token);
    struct bw_xlator *volume = parser->volume;
    const struct bw_setting *settings = volume->settings.items;
    struct bw_token name, value;
    switch (keyword) {
    case TYPE:
        if (volume->type_name.text)
            return BW_REFUSE(parser->token.at,
                             "volume %s has a second type; the first is in line %u",
                             volume->name.text, volume->type_name.at.line);
        BW_TRY(next_token(parser));
        BW_TRY(expect_word(parser, "a type", &name));
        BW_TRY(bw_layer_set_type(volume, name.text, name.at));
        break;

    case OPTION:
        BW_TRY(next_token(parser));
        BW_TRY(expect_word(parser, "the name of an option", &name));
        for (size_t i = 0; i < volume->settings.count; i++)
            if (strcmp(settings[i].name.text, name.text) == 0)
                return BW_REFUSE(name.at, "volume %s has option %s twice; the first is in line %u",
                                 volume->name.text, name.text, settings[i].name.at.line);
        if (volume->settings.count == OPTIONS_AT_MOST)
            return BW_REFUSE(name.at, "volume %s has more than %d options", volume->name.text,
                             OPTIONS_AT_MOST);
        BW_TRY(expect_word(parser, "the value of an option", &value));
        BW_TRY(bw_layer_set_option(volume, name.text, name.at, value.text, value.at));
        break;

    case SUBVOLUMES:
        if (volume->children.count)
            return BW_REFUSE(parser->token.at,
                             "volume %s has a second list of subvolumes; the first is in line %u",
                             volume->name.text, volume->children.items[0].name.at.line);
        BW_TRY(next_token(parser));
        do { /* it may span several lines, up to the next keyword */
            BW_TRY(expect_name(parser, "the name of a subvolume", &name));
            BW_TRY(bw_layer_add_child(volume, name.text, name.at));
        } while (parser->token.kind != BW_TOKEN_END && !keyword_of(&parser->token));
        break;

    default:
        return refuse_statement(parser);
    }
    parser->statement = keyword;
    return NULL;
}

static struct bw_error *parse_volumes(struct parser *parser)
{
    struct bw_graph *graph = parser->graph;
    BW_TRY(next_token(parser));
    while (parser->token.kind != BW_TOKEN_END) {
        struct bw_token name;
        if (keyword_of(&parser->token) != VOLUME)
            return BW_REFUSE(parser->token.at, "the keyword volume expected, not '%s'",
                             parser->token.text);
        BW_TRY(next_token(parser));
        BW_TRY(expect_name(parser, "the name of a volume", &name));
        BW_TRY(bw_graph_add(graph, graph->layers.count, name.text, name.at, &parser->volume));
        parser->statement = VOLUME;
        while (keyword_of(&parser->token) != END_VOLUME)
            BW_TRY(parse_statement(parser));
        if (!parser->volume->type_name.text)
            return BW_REFUSE(name.at, "volume %s has no type", name.text);
        BW_TRY(next_token(parser));
    }
    if (!graph->layers.count)
        return BW_REFUSE(parser->token.at, "the file contains no volume");
    return NULL;
}

struct bw_error *bw_volfile_parse(struct bw_graph *graph, const char *source, const char *text,
                                  size_t length)
{
    static const struct bw_lexer_rules rules = {.comment = '#', .one_line = true};
    static const char mark[] = "\xef\xbb\xbf"; /* byte order mark, which some editors write */
    struct parser parser = {.graph = graph};
    if (length > BW_VOLFILE_SIZE)
        return bw_error_create(BW_ERROR_USAGE, "%s: more than %zu bytes: not a volfile", source,
                               BW_VOLFILE_SIZE);
    const struct bw_text_place begin = {bw_graph_source(graph, source), 1, 1};
    size_t skipped = length >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;
    if (!begin.source)
        return bw_error_no_memory();
    BW_TRY(bw_lexer_open(&rules, begin, text + skipped, length - skipped, &parser.lexer));
    struct bw_error *error = parse_volumes(&parser);
    bw_lexer_close(&parser.lexer);
    return error;
}

struct bw_error *bw_volfile_read(struct bw_graph *graph, const char *path)
{
    bool is_stdin = strcmp(path, "-") == 0;
    int descriptor = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor < 0)
        return bw_error_from_errno(errno, "cannot open %s", path);
    struct bw_buffer text = {0};
    /* one more byte, to detect volfiles that are too large */
    struct bw_error *error = bw_buffer_read(&text, descriptor, BW_VOLFILE_SIZE + 1);
    close(descriptor);
    if (error)
        error = bw_error_prefix(error, "%s", path);
    else
        error = bw_volfile_parse(graph, path, text.data, text.length);
    bw_buffer_free(&text);
    return error;
}
