/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options that set the time or the owner of all files, as in GNU tar. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/human.h"
#include "cli/export/export.h"
#include "export/tree_archive.h"

/* A date, or a path whose modification time is used. */
static struct bw_error *store_mtime(void *target, const struct cmd_option *option,
                                    const char *argument)
{
    struct bw_tree_archive_options *archive = target;
    struct stat status;
    int64_t nanoseconds;
    archive->has_mtime = true;
    if (*argument == '/' || *argument == '.') {
        if (stat(argument, &status))
            return bw_error_from_errno(errno, "--mtime: cannot read %s", argument);
        archive->mtime = status.st_mtim;
        return NULL;
    }
    if (!bw_parse_date(argument, &nanoseconds))
        return cmd_bad_argument(option, argument,
                                "YYYY-MM-DD, perhaps with HH:MM[:SS], @SECONDS, or a file whose "
                                "path begins with / or .");
    archive->mtime = bw_clock_time(nanoseconds);
    return NULL;
}

/* The files are read directly: getpwnam(3) loads libraries, which a static program cannot. */
static bool find_user(const char *name, uint32_t *id)
{
    FILE *file = fopen("/etc/passwd", "re");
    const struct passwd *user = NULL;
    while (file && (user = fgetpwent(file)) && strcmp(user->pw_name, name) != 0)
        ;
    if (user)
        *id = user->pw_uid;
    if (file)
        fclose(file);
    return user;
}

static bool find_group(const char *name, uint32_t *id)
{
    FILE *file = fopen("/etc/group", "re");
    const struct group *group = NULL;
    while (file && (group = fgetgrent(file)) && strcmp(group->gr_name, name) != 0)
        ;
    if (group)
        *id = group->gr_gid;
    if (file)
        fclose(file);
    return group;
}

/* NAME:ID, a number, or a name of this machine, as in GNU tar. */
static struct bw_error *store_owner(void *target, const struct cmd_option *option,
                                    const char *argument)
{
    struct bw_archive_owner *owner = target;
    const bool is_user = strcmp(option->name, "owner") == 0;
    const char *colon = strrchr(argument, ':'), *digits = colon ? colon + 1 : argument;
    uint64_t number = 0;
    const bool is_number = cmd_parse_number(digits + (*digits == '+'), 0, UINT32_MAX, &number);
    free(BW_TAKE(owner->name));
    owner->is_given = true;
    owner->id = (uint32_t)number;
    const bool is_found =
        is_number || (!colon && (is_user ? find_user : find_group)(argument, &owner->id));
    if (!is_found)
        return cmd_bad_argument(option, argument, "NAME:ID, a number, or a name of this machine");
    if (is_number && (!colon || colon == argument))
        return NULL;
    owner->name = strndup(argument, colon ? (size_t)(colon - argument) : strlen(argument));
    return owner->name ? NULL : bw_error_no_memory();
}

static void release_owner(void *owner)
{
    free(((struct bw_archive_owner *)owner)->name);
}

const struct cmd_option cmd_override_options[] = {
    {0, "mtime", "DATE|FILE",
     "set this modification time (YYYY-MM-DD [HH:MM[:SS]], @SECONDS, or the time of a file), and "
     "store no change time",
     .store = store_mtime},
    {0, "owner", "NAME[:ID]", "set this owner: NAME:ID, a number, or a user of this machine",
     .store = store_owner,
     .offset = CMD_AT(struct bw_tree_archive_options, owner, struct bw_archive_owner),
     .release = release_owner},
    {0, "group", "NAME[:ID]", "the same for the group", .store = store_owner,
     .offset = CMD_AT(struct bw_tree_archive_options, group, struct bw_archive_owner),
     .release = release_owner},
    {0},
};
