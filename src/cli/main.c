/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The start of the program: chooses the command and runs it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/thread.h"
#include "cli/command.h"

const char cmd_topic_files[] = "Find and read files", cmd_topic_export[] = "Save and copy files",
           cmd_topic_health[] = "It does not mount, or is damaged",
           cmd_topic_history[] = "Files were deleted or changed",
           cmd_topic_space[] = "The disk is full",
           cmd_topic_subvolumes[] = "Subvolumes and snapshots",
           cmd_topic_structures[] = "Structures on disk", cmd_topic_program[] = "Help",
           cmd_topic_developers[] = "For developers of this program";

const struct command *const cmd_table[] = {
    &cmd_walk,        &cmd_ls,       &cmd_stat,    &cmd_cat,        &cmd_xattr,      &cmd_extents,
    &cmd_extract,     &cmd_tar,      &cmd_send,    &cmd_copy,       &cmd_mount,      &cmd_sum,
    &cmd_bodyfile,    &cmd_rescue,   &cmd_check,   &cmd_repair,     &cmd_report,     &cmd_owner,
    &cmd_info,        &cmd_show,     &cmd_devices, &cmd_metadump,   &cmd_deleted,    &cmd_versions,
    &cmd_roots,       &cmd_log,      &cmd_usage,   &cmd_du,         &cmd_space,      &cmd_free,
    &cmd_compression, &cmd_qgroups,  &cmd_picture, &cmd_subvolumes, &cmd_diff,       &cmd_super,
    &cmd_chunks,      &cmd_map,      &cmd_help,    &cmd_dump,       &cmd_tree_stats, &cmd_graph,
    &cmd_xlators,     &cmd_blackbox, NULL,
};

const struct command *cmd_find(const char *name)
{
    size_t i = 0;
    while (cmd_table[i] && strcmp(cmd_table[i]->name, name) != 0)
        i++;
    return cmd_table[i];
}

/* Raises the limit of the stack to the size that a deep graph needs. */
static bool have_stack(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= BW_STACK_NEEDED)
        return true;
    rlim_t was = limit.rlim_cur;
    limit.rlim_cur = BW_STACK_NEEDED;
    limit.rlim_max = limit.rlim_max < BW_STACK_NEEDED ? BW_STACK_NEEDED : limit.rlim_max;
    if (setrlimit(RLIMIT_STACK, &limit) == 0)
        return true;
    fprintf(stderr,
            "btrfs-walk: the stack is limited to %ju KiB (ulimit -s); at least %zu are needed\n",
            (uintmax_t)was >> 10, BW_STACK_NEEDED >> 10);
    return false;
}

/* Whether the first argument looks like a misspelt command: it is neither an existing file nor an
 * option nor an operator of find(1). */
static bool is_unknown_word(const char *argument)
{
    return *argument && !strchr("-!()", *argument) && !strchr(argument, '/') &&
           access(argument, F_OK) != 0 && errno == ENOENT;
}

int main(int argc, char **argv)
{
    /* If a standard stream is closed, the first image that is opened must not get its descriptor.
     * Writing to a closed stdout still fails. */
    for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; descriptor++)
        if (fcntl(descriptor, F_GETFD) < 0)
            open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY);

    if (!have_stack())
        return STATUS_CANNOT;
    signal(SIGPIPE, SIG_IGN); /* only a broken stdout ends the program: see cmd_write() */
    signal(SIGXFSZ, SIG_IGN); /* EFBIG is enough */
    for (size_t i = 0; argc > 1 && cmd_table[i]; i++)
        if (strcmp(argv[1], cmd_table[i]->name) == 0)
            return cmd_run(cmd_table[i], argc - 1, argv + 1);
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return cmd_run(&cmd_help, 1, argv);
    if (argc == 2 && strcmp(argv[1], "--dump-tables") == 0)
        return cmd_dump_tables();
    if (argc > 2 && strcmp(argv[1], "--complete") == 0)
        return cmd_complete(argv + 2, (size_t)(argc - 2));
    if (argc == 4 && strcmp(argv[1], "--complete-bash") == 0)
        return cmd_complete_bash(argv[2], argv[3]);
    if (argc > 1 && is_unknown_word(argv[1])) {
        cmd_print_unknown_command(argv[1], "is neither a command nor a file", false);
        return STATUS_CANNOT;
    }
    return cmd_run(cmd_table[0], argc, argv);
}
