/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Types and depth; the conditions are in selection.c. */
#include "walk/entry_choice.h"

#include "base/path.h"

static_assert(BW_WALK_FILES == 1 << BW_FILE_REGULAR &&
                  BW_WALK_DIRECTORIES == 1 << BW_FILE_DIRECTORY &&
                  BW_WALK_CHARACTER_DEVICES == 1 << BW_FILE_CHARACTER_DEVICE &&
                  BW_WALK_BLOCK_DEVICES == 1 << BW_FILE_BLOCK_DEVICE &&
                  BW_WALK_FIFOS == 1 << BW_FILE_FIFO && BW_WALK_SOCKETS == 1 << BW_FILE_SOCKET &&
                  BW_WALK_SYMLINKS == 1 << BW_FILE_SYMLINK,
              "masks of types are made of the numbers of types");

struct bw_choice bw_choice_of(const struct bw_walk_options *options)
{
    struct bw_choice choice = {.types = options->types ? options->types : BW_WALK_FILES,
                               .has_maxdepth = options->has_maxdepth,
                               .maxdepth = options->maxdepth,
                               .mindepth = options->mindepth};
    if (options->selection && options->selection->count)
        choice.selection = options->selection;
    choice.is_plain = choice.types == BW_WALK_FILES && !choice.has_maxdepth && !choice.mindepth &&
                      !choice.selection;
    return choice;
}

void bw_choice_start(struct bw_choice *choice, const char *path, size_t length, bool single)
{
    choice->start_depth = bw_path_names(path, length) + single;
}

unsigned bw_choice_depth(const struct bw_choice *choice, const char *path, size_t length)
{
    const bool matters = choice->has_maxdepth || choice->mindepth;
    return matters ? bw_path_names(path, length) - choice->start_depth : 0;
}

bool bw_choice_lists(const struct bw_choice *choice, const struct bw_named *named, unsigned depth)
{
    return choice->types >> named->type & 1 && depth >= choice->mindepth &&
           (!choice->selection || bw_selection_takes_name(choice->selection, named));
}
