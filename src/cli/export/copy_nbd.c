/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Devices on an NBD server. They are mounted as files with holes in a temporary directory, and
 * nbdkit serves these files: it implements the protocol, and reports the holes as unused.
 *
 * client <-- NBD --> nbdkit <-- files --> kernel <-- FUSE --> this process, confined --> image
 */
#include "cli/export/copy_nbd.h"

#ifdef BW_FUSE

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/program.h"
#include "cli/export/copy_used.h"
#include "cli/mount/mounting.h"

static struct bw_error *make_folder(struct mount_place *place)
{
    const char *given = getenv("TMPDIR");
    if (asprintf(&place->directory, "%s/btrfs-walk-XXXXXX",
                 given && *given == '/' ? given : "/tmp") < 0) {
        place->directory = NULL;
        return bw_error_no_memory();
    }
    return mkdtemp(place->directory)
               ? NULL
               : bw_error_from_errno(errno, "cannot make the directory %s", place->directory);
}

/* The path of the socket, absolute, because another process makes it in another directory. */
static struct bw_error *set_socket(struct mount_place *place, const char *path)
{
    BW_AUTO_FREE char *here = *path == '/' ? strdup("") : getcwd(NULL, 0);
    struct stat status;
    if (!here || asprintf(&place->socket, "%s%s%s", here, *here ? "/" : "", path) < 0) {
        place->socket = NULL;
        return bw_error_from_errno(errno, "cannot find the working directory");
    }
    return lstat(path, &status)
               ? NULL
               : bw_error_create(BW_ERROR_USAGE, "%s exists, and is not replaced", path);
}

static struct bw_error *set_place(struct mount_place *place, const char *socket)
{
    place->nbdkit = bw_program_find("nbdkit");
    if (!place->nbdkit)
        return bw_error_create(BW_ERROR_USAGE,
                               "--format nbd needs nbdkit: install the package nbdkit");
    BW_TRY(set_socket(place, socket));
    return make_folder(place);
}

static struct bw_error *prepare(struct mounting *mounting, struct bw_fs *fs)
{
    const bool *history = mounting->context;
    return copy_find_used(mounting->common, fs, *history, &mounting->options.used);
}

int copy_nbd(const struct cmd_common *common, const char *socket, bool history)
{
    struct mounting mounting = {
        .common = common, .prepare = prepare, .context = &history, .channel = -1};
    struct mount_place *place = &mounting.place;
    struct bw_error *error = set_place(place, socket);
    const int status = error ? cmd_fail(common, error) : mounting_run(&mounting);
    if (!error && mounting.channel < 0) /* no process was started that would have removed it */
        rmdir(place->directory);
    free(place->nbdkit);
    free(place->socket);
    free(place->directory);
    return status;
}

#else

int copy_nbd(const struct cmd_common *common, const char *socket, bool history)
{
    (void)socket, (void)history;
    return cmd_fail(common, bw_error_create(BW_ERROR_USAGE,
                                            "this program was built without libfuse 3, which "
                                            "--format nbd needs"));
}

#endif
