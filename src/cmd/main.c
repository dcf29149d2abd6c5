/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the program begins: choosing the command. */
#include <string.h>

#include "cmd/command.h"

const struct command *const cmd_table[] = {&cmd_walk, &cmd_graph, &cmd_xlators, NULL};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && cmd_table[i]; i++)
        if (strcmp(argv[1], cmd_table[i]->name) == 0)
            return cmd_run(cmd_table[i], argc - 1, argv + 1);
    return cmd_run(cmd_table[0], argc, argv);
}
