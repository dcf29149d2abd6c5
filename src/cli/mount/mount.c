/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mount command. This process opens the image in the sandbox, like every command, and serves
 * the kernel. A child process that was started before mounts and unmounts (mount_process.c). With
 * --background, the command ends when the mount is ready.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/common/paths.h"
#ifdef BW_FUSE
#include "cli/mount/mount_process.h"
#include "mount/mount.h"
#endif

/* A running mount command. */
struct mount_run {
    /* The options. */
    const char *subvolume;
    bool background, allow_other, devices;
    unsigned user, group;
    bool has_user, has_group;

#ifdef BW_FUSE
    /* While it runs. */
    const struct cmd_common *common;
    struct bw_mount_options how;
    char *directory; /* where to mount; absolute */
    int channel;     /* to the process that mounts (mount_process.h); -1: it was not started */
    int ready;       /* with --background: pipe to the first process, which waits for the mount;
                      * otherwise -1 */
    int nowhere;     /* with --background: the null device */
#endif
};

static const struct cmd_option options[] = {
    CMD_SUBVOLUME_OPTION(struct mount_run, subvolume),
    {0, "devices", NULL,
     "show each device as a file DIR/DEVID, with holes where nothing is in use, instead of files",
     CMD_FLAG(struct mount_run, devices)},
    {0, "background", NULL, "mount, then continue in the background until DIR is unmounted",
     CMD_FLAG(struct mount_run, background)},
    {0, "allow-other", NULL,
     "allow other users to use the mount, within the permissions of the files; needs root, or "
     "user_allow_other in /etc/fuse.conf",
     CMD_FLAG(struct mount_run, allow_other)},
    {0, "uid", "UID", "show all files as owned by this user",
     CMD_NUMBER(struct mount_run, user, 0, UINT32_MAX - 1, "a number"),
     CMD_GIVEN(struct mount_run, has_user)},
    {0, "gid", "GID", "show all files as owned by this group",
     CMD_NUMBER(struct mount_run, group, 0, UINT32_MAX - 1, "a number"),
     CMD_GIVEN(struct mount_run, has_group)},
    {0},
};

#ifdef BW_FUSE

/* Reports to the first process that the mount is ready. If stderr is a file, messages are still
 * written to it. */
static void report_ready(const struct mount_run *run)
{
    struct stat status;
    const bool has_file = fstat(STDERR_FILENO, &status) == 0 && S_ISREG(status.st_mode);
    if (run->ready < 0)
        return;
    dup2(run->nowhere, STDIN_FILENO);
    dup2(run->nowhere, STDOUT_FILENO);
    if (!has_file)
        dup2(run->nowhere, STDERR_FILENO);
    if (chdir("/") || write(run->ready, "", 1) != 1) /* the first process has ended */
        cmd_note(run->common, bw_error_no_memory());
    close(run->ready);
}

/* Starts the process that mounts. The image is not trusted: device nodes and setuid bits in it have
 * no effect. */
static struct bw_error *start_mount_process(void *context, const struct bw_fs *planned)
{
    struct mount_run *run = context;
    const struct cmd_common *common = run->common;
    const char *name = common->input.image_count ? common->input.images[0] : "btrfs-walk";
    BW_AUTO_BUFFER struct bw_buffer list = {0};
    (void)planned;
    bw_buffer_format(&list, "ro,nosuid,nodev,noatime,subtype=btrfs-walk,%sfsname=",
                     run->how.checks_permissions ? "allow_other,default_permissions," : "");
    for (; *name; name++) { /* commas and backslashes are special in a list of options */
        if (*name == ',' || *name == '\\')
            bw_buffer_append_byte(&list, '\\');
        bw_buffer_append_byte(&list, *name);
    }
    BW_TRY(bw_buffer_terminate(&list));
    return mount_process_start(run->directory, list.data, &run->channel);
}

/* Chooses what to show, mounts it, and serves the mount until it ends. */
static struct bw_error *mount_and_serve(struct mount_run *run, struct bw_fs *fs)
{
    const struct bw_used_options how = {.struct_size = sizeof how, .files = true};
    const struct bw_subvolume **top = &run->how.top;
    struct bw_mount *mount;
    int descriptor;
    if (run->devices)
        BW_TRY(bw_used_map_open(fs, &how, &run->how.used));
    else if (run->subvolume)
        BW_TRY(bw_subvolume_by_name(fs, run->subvolume, top));
    else if (!(*top = bw_subvolume_by_id(fs, BW_TOP_SUBVOLUME)))
        return bw_error_create(BW_ERROR_NOT_FOUND, "there is no top-level subvolume");
    if (run->devices)
        BW_TRY(bw_mount_create_devices(fs, &run->how, &mount));
    else
        BW_TRY(bw_mount_create(fs, &run->how, &mount));
    struct bw_error *error = mount_process_mount(run->channel, run->directory, &descriptor);
    if (!error) {
        if (!run->background && isatty(STDERR_FILENO) && !run->common->messages.quiet)
            fprintf(stderr, "mounted on %s; Ctrl-C unmounts, --background returns\n",
                    run->common->paths[0]);
        report_ready(run);
        error = bw_mount_serve(mount, descriptor);
    }
    bw_mount_destroy(mount);
    return error;
}

/* Opens the image in the sandbox, like every command, and serves the mount. */
static int run_mount(struct mount_run *run)
{
    struct cmd_common common = *run->common;
    struct cmd_session session;
    common.writing.open_outputs = start_mount_process;
    common.writing.outputs = run;
    common.writing.serves = true;
    int status = cmd_open(&common, &session);
    if (!status) {
        struct bw_error *error = mount_and_serve(run, session.fs);
        bw_used_map_close(run->how.used);
        if (error)
            status = cmd_fail(&common, error);
        status = cmd_end(&common, &session, NULL, status);
    }
    if (run->channel >= 0)
        mount_process_end(run->channel);
    return status;
}

/* Serves the mount in a child process, for which this one waits only until the mount is ready. */
static int run_in_background(struct mount_run *run)
{
    const struct cmd_common *common = run->common;
    int ends[2], status;
    char word;
    ssize_t got;
    run->nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (run->nowhere < 0 || pipe2(ends, O_CLOEXEC))
        return cmd_fail(common, bw_error_from_errno(errno, "cannot make a pipe"));
    const pid_t child = fork();
    if (child < 0)
        return cmd_fail(common, bw_error_from_errno(errno, "cannot start a process"));
    if (!child) {
        close(ends[0]);
        setsid();
        run->ready = ends[1];
        return run_mount(run);
    }
    close(ends[1]);
    while ((got = read(ends[0], &word, 1)) < 0 && errno == EINTR)
        ;
    close(ends[0]);
    if (got == 1)
        return STATUS_OK;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_CANNOT;
}

/* Whether a file system of libfuse is mounted on a directory: most likely one of ours, which a
 * second one would hide until it is unmounted twice. */
static bool has_mount(const char *directory)
{
    struct statfs system;
    struct stat here, above;
    BW_AUTO_FREE char *parent = NULL;
    if (statfs(directory, &system) || system.f_type != FUSE_SUPER_MAGIC ||
        asprintf(&parent, "%s/..", directory) < 0)
        return false;
    return stat(directory, &here) == 0 && stat(parent, &above) == 0 && here.st_dev != above.st_dev;
}

static struct bw_error *check_options(struct mount_run *run)
{
    const struct cmd_common *common = run->common;
    struct bw_mount_options *wanted = &run->how;
    char **directory = &run->directory;
    struct stat status;
    wanted->checks_permissions = run->allow_other;
    wanted->squash_user = run->has_user;
    wanted->user = run->user;
    wanted->squash_group = run->has_group;
    wanted->group = run->group;
    if (run->devices && run->subvolume)
        return bw_error_create(BW_ERROR_USAGE, "--devices shows no subvolume");
    if (common->path_count != 1)
        return bw_error_create(BW_ERROR_USAGE, "exactly one DIR is required");
    *directory = realpath(common->paths[0], NULL);
    if (!*directory || stat(*directory, &status))
        return bw_error_from_errno(errno, "cannot mount on %s", common->paths[0]);
    if (!S_ISDIR(status.st_mode))
        return bw_error_create(BW_ERROR_USAGE, "%s is not a directory", common->paths[0]);
    if (has_mount(*directory))
        return bw_error_create(BW_ERROR_USAGE,
                               "something is mounted on %s already: fusermount3 -u unmounts it",
                               common->paths[0]);
    return NULL;
}

/* The log is not replayed for devices: that would create tree blocks that are not in the image. */
static int run(const struct cmd_common *common, void *state)
{
    struct mount_run *run = state;
    struct cmd_common own = *common;
    run->common = &own;
    run->channel = run->ready = -1;
    if (run->devices)
        own.input.fs.log = BW_LOG_IGNORE;
    struct bw_error *error = check_options(run);
    int status;
    if (error)
        status = cmd_fail(common, error);
    else if (run->background)
        status = run_in_background(run);
    else
        status = run_mount(run);
    free(run->directory);
    return status;
}

#else

static int run(const struct cmd_common *common, void *settings)
{
    (void)settings;
    return cmd_refuse(common, "this program was built without libfuse 3, which mounting "
                              "needs: install it (scripts/install-deps) and build again; "
                              "'btrfs-walk extract' and 'btrfs-walk tar' work without");
}

#endif

static const struct cmd_status meanings[] = {
    {STATUS_OK, "No damage was found."},
    {STATUS_PARTIAL, "Damage was found."},
    {STATUS_CANNOT, "Wrong usage, no btrfs file system, or it cannot be mounted."},
    {STATUS_UNSUPPORTED, "The image needs a feature that is not supported; the message names it."},
    {0},
};

const struct command cmd_mount = {
    .name = "mount",
    .topic = cmd_topic_export,
    .operands = "IMAGE DIR",
    .summary = "Mounts an image read-only on a directory, without root.",
    .details =
        "\n"
        "Any program can then read the files below DIR, including subvolumes and snapshots.\n"
        "Each read is verified; if a mirror is bad, another mirror or parity replaces it. Reading\n"
        "lost data fails with an input/output error; other files are not affected. The\n"
        "command runs until DIR is unmounted (fusermount3 -u DIR, or umount DIR by root), or\n"
        "until it receives SIGINT, SIGTERM or SIGHUP. Without --allow-other, only the user\n"
        "of the command can use DIR, and may read everything in it. Devices and setuid bits\n"
        "have no effect. All subvolumes have the same device number; inode numbers are the\n"
        "original ones only in the subvolume at DIR.\n",
    .examples = "  btrfs-walk mount disk.img /mnt/old              until Ctrl-C\n"
                "  btrfs-walk mount --background disk.img ~/old    until fusermount3 -u ~/old\n"
                "  btrfs-walk mount --subvol @home disk.img ~/old  one subvolume\n"
                "  grep -rl anna ~/old                             search in contents\n",
    .options = options,
    .meanings = meanings,
    .run = run,
    .state_size = sizeof(struct mount_run),
    .takes_paths = true,
    .missing = "no mount point (DIR) given",
};
