/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines from a terminal: with libedit history, editing and completion, without it as the terminal
 * provides them. Names from images are escaped before they are shown or inserted. libedit is loaded
 * and not linked, because it needs three more libraries. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#ifdef BW_EDIT
#include <histedit.h>
#endif

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/library.h"
#include "base/utf8.h"
#include "cli/complete/complete.h"
#include "cli/shell/shell.h"

struct shell_editor {
    struct shell *shell;
    shell_completer *complete;
    const char *prompt;
    bool edits; /* with libedit */
#ifdef BW_EDIT
    EditLine *line;
    History *history;
#endif
    char *typed; /* without it */
    size_t capacity;
};

#ifdef BW_EDIT

#define BW_LIBEDIT_FUNCTIONS(FUNCTION) \
    FUNCTION(el_, cursor)              \
    FUNCTION(el_, deletestr)           \
    FUNCTION(el_, end)                 \
    FUNCTION(el_, get)                 \
    FUNCTION(el_, gets)                \
    FUNCTION(el_, init)                \
    FUNCTION(el_, insertstr)           \
    FUNCTION(el_, line)                \
    FUNCTION(el_, resize)              \
    FUNCTION(el_, set)                 \
    FUNCTION(el_, wset)                \
    FUNCTION(, history)                \
    FUNCTION(, history_end)            \
    FUNCTION(, history_init)

/* Its functions are called from its own callbacks, which get no other pointer to them. */
static struct {
    BW_LIBEDIT_FUNCTIONS(BW_LIBRARY_MEMBER)
} edit;

/* That of Debian, and that of others. */
#define SONAME       "libedit.so.2"
#define OTHER_SONAME "libedit.so.0"

BW_LIBRARY_NOTE("edit", "Editing of lines in the shell", "\"" SONAME "\",\"" OTHER_SONAME "\"");

static bool load_libedit(void)
{
    static const char *const names[] = {BW_LIBEDIT_FUNCTIONS(BW_LIBRARY_NAME) NULL};
    struct bw_error *error = bw_library_load(SONAME, names, &edit);
    struct bw_error *other = error ? bw_library_load(OTHER_SONAME, names, &edit) : NULL;
    const bool is_loaded = !other;
    bw_error_free(error);
    bw_error_free(other);
    return is_loaded;
}

enum { SHOWN_MAX = 200 };

/* Candidates for the last word. */
struct candidates {
    struct bw_buffer text; /* as of cmd_complete_in() */
    size_t count;          /* without those that name files of the host */
    const char *word;      /* the first; valid if `count` is not 0 */
    size_t common;         /* the number of bytes that all have in common */
    bool can_continue;     /* the word of the only candidate can be continued */
    const char *line;      /* up to the cursor */
    size_t start, end;     /* the last word in it */
};

/* Returns the next candidate, and advances `at`; NULL at the end. */
static const char *next_candidate(const struct candidates *candidates, const char **at, char *kind)
{
    const char *end = candidates->text.data + candidates->text.length;
    const char *word = NULL;
    while (!word && *at && *at < end) {
        *kind = **at;
        word = *at + 1;
        const char *nul = memchr(word, '\0', (size_t)(end - word));
        const char *last = nul ? memchr(nul + 1, '\0', (size_t)(end - nul - 1)) : NULL;
        *at = last ? last + 1 : end;
        if (!last || *kind == COMPLETE_FILES)
            word = NULL;
    }
    return word;
}

static void compare_candidates(struct candidates *candidates)
{
    const char *at = candidates->text.data, *word;
    char kind;
    while ((word = next_candidate(candidates, &at, &kind))) {
        size_t same = 0;
        if (!candidates->count++) {
            candidates->word = word;
            candidates->common = strlen(word);
        }
        while (same < candidates->common && word[same] == candidates->word[same])
            same++;
        while (same && same < candidates->common && ((uint8_t)word[same] & 0xc0) == 0x80)
            same--; /* not within a character */
        candidates->common = same;
        candidates->can_continue = kind == COMPLETE_BEGIN;
    }
}

/* Replaces the last word by the beginning that all candidates have in common. Returns whether that
 * changes the line. */
static bool insert_common(EditLine *line, const struct candidates *candidates)
{
    BW_AUTO_BUFFER struct bw_buffer word = {0};
    BW_AUTO_FREE char *common = strndup(candidates->word, candidates->common);
    if (!common)
        return false;
    if (*common)
        bw_append_shell_word(&word, common);
    if (candidates->count == 1 && !candidates->can_continue)
        bw_buffer_append_byte(&word, ' ');
    bw_buffer_append_byte(&word, '\0');
    if (word.failed ||
        (word.length - 1 == candidates->end - candidates->start &&
         memcmp(word.data, candidates->line + candidates->start, word.length - 1) == 0))
        return false;
    edit.deletestr(line, (int)(bw_utf8_count(candidates->line + candidates->start,
                                             candidates->end - candidates->start)));
    return edit.insertstr(line, word.data) == 0;
}

static size_t terminal_columns(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

/* The last component of a path, escaped. */
static void append_shown(struct bw_buffer *text, const char *word)
{
    const char *last = word;
    for (const char *at = word; *at; at++)
        if (*at == '/' && at[1])
            last = at + 1;
    bw_escape_words(text, last);
}

static void show_candidates(const struct candidates *candidates)
{
    const char *at = candidates->text.data, *word;
    size_t width = 0, column = 0, shown = 0;
    char kind;
    for (int pass = 0; pass < 2; pass++, at = candidates->text.data) {
        while ((word = next_candidate(candidates, &at, &kind)) && (!pass || shown++ < SHOWN_MAX)) {
            BW_AUTO_BUFFER struct bw_buffer text = {0};
            append_shown(&text, word);
            const size_t length = bw_utf8_count(text.data ? text.data : "", text.length);
            if (!pass) {
                width = length > width ? length : width;
                continue;
            }
            const bool ends = (column += width + 2) + width > terminal_columns();
            printf("%s%.*s%*s%s", shown == 1 ? "\n" : "", (int)text.length,
                   text.data ? text.data : "", ends ? 0 : (int)(width + 2 - length), "",
                   ends ? "\n" : "");
            column = ends ? 0 : column;
        }
    }
    printf("%s%s", column ? "\n" : "", shown > SHOWN_MAX ? "...\n" : "");
    fflush(stdout);
}

static unsigned char complete_word(EditLine *line, int key)
{
    struct shell_editor *editor;
    const LineInfo *info = edit.line(line);
    struct candidates candidates = {.count = 0};
    unsigned char result = CC_ERROR;
    (void)key;
    edit.get(line, EL_CLIENTDATA, &editor);
    BW_AUTO_FREE char *text = strndup(info->buffer, (size_t)(info->cursor - info->buffer));
    if (!text)
        return CC_ERROR;
    candidates.line = text;
    candidates.end = strlen(text);
    editor->complete(editor->shell, text, &candidates.text, &candidates.start);
    if (!candidates.text.failed)
        compare_candidates(&candidates);
    if (candidates.count && insert_common(line, &candidates)) {
        result = CC_REFRESH;
    } else if (candidates.count > 1) {
        show_candidates(&candidates);
        result = CC_REDISPLAY;
    }
    bw_buffer_free(&candidates.text);
    return result;
}

/* Ctrl-C discards the line. */
static unsigned char discard_line(EditLine *line, int key)
{
    const LineInfo *info = edit.line(line);
    (void)key;
    printf("^C\n");
    fflush(stdout);
    edit.cursor(line, (int)bw_utf8_count(info->cursor, (size_t)(info->lastchar - info->cursor)));
    info = edit.line(line);
    edit.deletestr(line, (int)bw_utf8_count(info->buffer, (size_t)(info->lastchar - info->buffer)));
    return CC_REDISPLAY;
}

/* From now on, the terminal sends Ctrl-C as a key, until the line is complete. */
static char *prompt_of(EditLine *line)
{
    struct shell_editor *editor;
    shell_forget_interrupts();
    edit.get(line, EL_CLIENTDATA, &editor);
    return (char *)(uintptr_t)editor->prompt;
}

/* Functions are added by el_wset(), because el_set() copies their names and never frees them. */
static void set_up(struct shell_editor *editor)
{
    EditLine *line = editor->line;
    edit.set(line, EL_CLIENTDATA, editor);
    edit.set(line, EL_PROMPT, prompt_of);
    edit.set(line, EL_EDITOR, "emacs");
    edit.set(line, EL_HIST, edit.history, editor->history);
    edit.set(line, EL_SETTY, "-d", "-isig", NULL);
    edit.wset(line, EL_ADDFN, L"shell-complete", L"complete the last word", complete_word);
    edit.wset(line, EL_ADDFN, L"shell-discard", L"discard the line", discard_line);
    edit.set(line, EL_BIND, "^I", "shell-complete", NULL);
    edit.set(line, EL_BIND, "^C", "shell-discard", NULL);
    edit.set(line, EL_BIND, "^R", "em-inc-search-prev", NULL);
}

static bool begin_editing(struct shell_editor *editor)
{
    HistEvent event;
    setlocale(LC_CTYPE, "");
    editor->history = edit.history_init();
    editor->line = edit.init("btrfs-walk", stdin, stdout, stderr);
    if (!editor->line || !editor->history)
        return false;
    edit.history(editor->history, &event, H_SETSIZE, 1000);
    edit.history(editor->history, &event, H_SETUNIQUE, 1);
    set_up(editor);
    return true;
}

static void end_editing(struct shell_editor *editor)
{
    if (editor->history)
        edit.history_end(editor->history);
    if (editor->line)
        edit.end(editor->line);
}

static const char *edit_line(struct shell_editor *editor)
{
    HistEvent event;
    int count = 0;
    edit.resize(editor->line);
    const char *line = edit.gets(editor->line, &count);
    if (!line || count <= 0)
        return NULL;
    if (line[strspn(line, " \t\n")])
        edit.history(editor->history, &event, H_ENTER, line);
    return line;
}

#else

static bool load_libedit(void)
{
    return false;
}

static bool begin_editing(struct shell_editor *editor)
{
    (void)editor;
    return false;
}

static void end_editing(struct shell_editor *editor)
{
    (void)editor;
}

static const char *edit_line(struct shell_editor *editor)
{
    (void)editor;
    return NULL;
}

#endif

struct shell_editor *shell_editor_create(struct shell *shell, shell_completer *complete_line)
{
    struct shell_editor *editor = calloc(1, sizeof *editor);
    if (!editor)
        return NULL;
    editor->shell = shell;
    editor->complete = complete_line;
    editor->edits = load_libedit();
    if (!editor->edits || begin_editing(editor))
        return editor;
    shell_editor_destroy(editor);
    return NULL;
}

void shell_editor_destroy(struct shell_editor *editor)
{
    end_editing(editor);
    free(editor->typed);
    free(editor);
}

const char *shell_editor_read(struct shell_editor *editor, const char *prompt)
{
    editor->prompt = prompt;
    if (editor->edits)
        return edit_line(editor);
    shell_forget_interrupts();
    fputs(prompt, stdout);
    fflush(stdout);
    return getline(&editor->typed, &editor->capacity, stdin) < 0 ? NULL : editor->typed;
}
