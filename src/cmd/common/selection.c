/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the options of the filters to a selection. */
#include "cmd/common/selection.h"

#include <limits.h>
#include <string.h>

#include "base/cleanup.h"

static const struct cmd_option table[] = {CMD_SELECTION_OPTIONS};

static const char *name_of(int letter)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].letter == letter)
            return table[i].name;
    return NULL;
}

static struct bw_error *add_condition(struct cmd_selection *selection, int letter,
                                      const char *argument)
{
    if (!selection->selection)
        BW_TRY(bw_selection_create(&selection->selection));
    return bw_selection_add(selection->selection, name_of(letter), argument);
}

static struct bw_error *set_types(struct cmd_selection *selection, const char *list)
{
    static const char letters[] = "fdcbpsl"; /* in the order of enum bw_walk_types */
    for (const char *next = list;; next += 2) {
        const char *letter = *next ? strchr(letters, *next) : NULL;
        if (!letter || (next[1] && next[1] != ','))
            return bw_error_create(
                BW_ERROR_USAGE,
                "--type '%s': types are f, d, l, c, b, p and s, with commas between", list);
        selection->types |= 1u << (letter - letters + 1);
        if (!next[1])
            return NULL;
    }
}

static struct bw_error *set_maxdepth(struct cmd_selection *selection, const char *argument)
{
    unsigned long number;
    if (!cmd_parse_number(argument, 0, UINT_MAX, &number))
        return bw_error_create(BW_ERROR_USAGE, "--maxdepth '%s': this is a number", argument);
    selection->has_maxdepth = true;
    selection->maxdepth = (unsigned)number;
    return NULL;
}

bool cmd_selection_set(struct cmd_selection *selection, int letter, const char *argument)
{
    struct bw_error *error;
    if (letter < CMD_OPTION_TYPE || letter >= CMD_SELECTION_END)
        return false;
    error = letter == CMD_OPTION_TYPE       ? set_types(selection, argument)
            : letter == CMD_OPTION_MAXDEPTH ? set_maxdepth(selection, argument)
                                            : add_condition(selection, letter, argument);
    if (selection->error)
        bw_error_free(error);
    else
        selection->error = error;
    return true;
}

struct bw_error *cmd_selection_apply(struct cmd_selection *selection,
                                     struct bw_walk_options *options)
{
    if (selection->error)
        return BW_TAKE(selection->error);
    options->selection = selection->selection;
    options->has_maxdepth = selection->has_maxdepth;
    options->maxdepth = selection->maxdepth;
    if (selection->types)
        options->types = selection->types;
    return NULL;
}

void cmd_selection_free(struct cmd_selection *selection)
{
    bw_selection_destroy(selection->selection);
    bw_error_free(selection->error);
    *selection = (struct cmd_selection){0};
}
