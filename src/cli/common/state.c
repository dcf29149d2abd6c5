/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options that choose which state of a file system a command works on. */
#include <string.h>

#include "cli/command.h"

static struct bw_error *take_generation(void *target, const struct cmd_option *option,
                                        const char *argument)
{
    uint64_t number;
    if (!cmd_parse_number(argument, 1, UINT64_MAX, &number))
        return cmd_bad_argument(option, argument, "a generation, from 1 on");
    ((struct bw_state_choice *)target)->generation = number;
    return NULL;
}

static struct bw_error *take_backup(void *target, const struct cmd_option *option,
                                    const char *argument)
{
    uint64_t number;
    if (!cmd_parse_number(argument, 0, BW_STATE_BACKUPS - 1, &number))
        return cmd_bad_argument(option, argument, "0 to 3");
    ((struct bw_state_choice *)target)->backup = (unsigned)number + 1;
    return NULL;
}

static struct bw_error *take_tree_root(void *target, const struct cmd_option *option,
                                       const char *argument)
{
    struct bw_state_choice *choice = target;
    const char *rest = argument;
    uint64_t generation = 0;
    bool good = cmd_parse_bytes(&rest, &choice->tree_root) && choice->tree_root;
    if (good && *rest == '@')
        good = cmd_parse_number(rest + 1, 1, UINT64_MAX, &generation);
    else
        good = good && !*rest;
    if (!good)
        return cmd_bad_argument(option, argument, "a logical address, or one with @GENERATION");
    choice->tree_root_generation = generation;
    return NULL;
}

const struct cmd_option cmd_state_options[] = {
    {0, "generation", "N", "the state that transaction N committed, if it is still there",
     .take = take_generation, .heading = "Older states"},
    {0, "tree-root", "LOGICAL[@GENERATION]", "the state whose root tree begins at that address",
     .take = take_tree_root},
    {0, "chunk-root", "LOGICAL", "the chunk tree that begins at that address",
     CMD_BYTES(struct bw_state_choice, chunk_root)},
    {0, "backup", "N", "the state that backup root N of the superblock names: 0 to 3",
     .take = take_backup},
    {0},
};
