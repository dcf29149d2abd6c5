/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mount command. Like every command, it opens the image in the sandbox. A child process that
 * was started before mounts and unmounts (mount_process.c). With --background, all of this happens
 * in another child, and the command ends when the mount is ready.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "cli/command.h"
#ifdef BW_FUSE
#include "cli/mount/mount_process.h"
#include "mount/mount.h"
#endif

struct mount_state {
    const char *subvolume;
    bool background, allow_other;
    const char *user, *group;
};

static const struct cmd_option options[] = {
    {0, "subvol", "NAME|ID",
     "mount this subvolume (path, id or 'default') at DIR (default: the top-level one)",
     CMD_TEXT(struct mount_state, subvolume)},
    {0, "background", NULL, "mount, then continue in the background until DIR is unmounted",
     CMD_FLAG(struct mount_state, background)},
    {0, "allow-other", NULL,
     "allow other users to use the mount, within the permissions of the files; needs root, or "
     "user_allow_other in /etc/fuse.conf",
     CMD_FLAG(struct mount_state, allow_other)},
    {0, "uid", "UID", "show all files as owned by this user", CMD_TEXT(struct mount_state, user)},
    {0, "gid", "GID", "show all files as owned by this group", CMD_TEXT(struct mount_state, group)},
    {0},
};

#ifdef BW_FUSE

/* The state while mounting. */
struct mounting {
    const struct cmd_common *common;
    const struct mount_state *state;
    struct bw_mount_options options;
    char *directory; /* absolute */
    int channel;
    int ready;   /* with --background: pipe to the first process, which waits for the mount;
                  * otherwise -1 */
    int nowhere; /* with --background: /dev/null */
};

/* Escapes commas and backslashes, which are special in a list of options. */
static void append_escaped(struct bw_buffer *list, const char *text)
{
    for (; *text; text++) {
        if (*text == ',' || *text == '\\')
            bw_buffer_append_byte(list, '\\');
        bw_buffer_append_byte(list, *text);
    }
}

/* The image is not trusted: device nodes and setuid bits in it have no effect. */
static struct bw_error *start_mount_process(void *context, const struct bw_fs *planned)
{
    struct mounting *mounting = context;
    const struct cmd_common *common = mounting->common;
    BW_AUTO_BUFFER struct bw_buffer list = {0};
    (void)planned;
    bw_mount_prepare();
    bw_buffer_format(&list, "ro,nosuid,nodev,noatime,subtype=btrfs-walk,%sfsname=",
                     mounting->state->allow_other ? "allow_other,default_permissions," : "");
    append_escaped(&list, common->input.image_count ? common->input.images[0] : "btrfs-walk");
    bw_buffer_append_byte(&list, '\0');
    if (list.failed)
        return bw_error_no_memory();
    return mount_process_start(mounting->directory, list.data, &mounting->channel);
}

/* Reports to the first process that the mount is ready. If stderr is a file, messages are still
 * written to it. */
static void go_to_background(const struct mounting *mounting)
{
    struct stat status;
    const bool has_file = fstat(STDERR_FILENO, &status) == 0 && S_ISREG(status.st_mode);
    if (mounting->ready < 0)
        return;
    for (int stream = STDIN_FILENO; stream <= (has_file ? STDOUT_FILENO : STDERR_FILENO); stream++)
        dup2(mounting->nowhere, stream);
    if (chdir("/") || write(mounting->ready, "", 1) != 1) /* the first process has ended */
        cmd_note(mounting->common, bw_error_no_memory());
    close(mounting->ready);
}

static struct bw_error *serve(struct mounting *mounting, struct bw_mount *mount)
{
    int descriptor;
    BW_TRY(mount_process_mount(mounting->channel, mounting->directory, &descriptor));
    go_to_background(mounting);
    return bw_mount_serve(mount, descriptor);
}

static struct bw_error *find_top(const struct mounting *mounting, struct bw_fs *fs,
                                 const struct bw_subvolume **top)
{
    const char *name = mounting->state->subvolume;
    if (name)
        return bw_subvolume_by_name(fs, name, top);
    *top = bw_subvolume_by_id(fs, BW_TOP_SUBVOLUME);
    return *top ? NULL : bw_error_create(BW_ERROR_NOT_FOUND, "there is no top-level subvolume");
}

static struct bw_error *mount_image(struct mounting *mounting, struct bw_fs *fs)
{
    struct bw_mount *mount;
    BW_TRY(find_top(mounting, fs, &mounting->options.top));
    BW_TRY(bw_mount_create(fs, &mounting->options, &mount));
    struct bw_error *error = serve(mounting, mount);
    bw_mount_destroy(mount);
    return error;
}

static int run_mount(struct mounting *mounting)
{
    struct cmd_common common = *mounting->common;
    struct cmd_session session;
    common.writing.open_outputs = start_mount_process;
    common.writing.outputs = mounting;
    common.writing.serves = true;
    int status = cmd_open(&common, &session);
    if (!status) {
        struct bw_error *error = mount_image(mounting, session.fs);
        int failure = error ? cmd_fail(&common, error) : STATUS_OK;
        status = cmd_close(&common, &session);
        status = failure ? failure : status;
    }
    if (mounting->channel >= 0)
        mount_process_end(mounting->channel);
    return status;
}

/* Waits for the mount in the first process. */
static int wait_for_mount(pid_t child, int ready)
{
    char word;
    ssize_t got;
    int status;
    while ((got = read(ready, &word, 1)) < 0 && errno == EINTR)
        ;
    close(ready);
    if (got == 1)
        return STATUS_OK;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_CANNOT;
}

static int run_in_background(struct mounting *mounting)
{
    int ends[2];
    mounting->nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (mounting->nowhere < 0 || pipe2(ends, O_CLOEXEC))
        return cmd_fail(mounting->common, bw_error_from_errno(errno, "cannot make a pipe"));
    const pid_t child = fork();
    if (child < 0)
        return cmd_fail(mounting->common, bw_error_from_errno(errno, "cannot start a process"));
    close(ends[child ? 1 : 0]);
    if (child)
        return wait_for_mount(child, ends[0]);
    setsid();
    mounting->ready = ends[1];
    return run_mount(mounting);
}

static struct bw_error *parse_id(const char *option, const char *text, bool *given, uint32_t *id)
{
    uint64_t number;
    if (text && !cmd_parse_number(text, 0, UINT32_MAX - 1, &number))
        return bw_error_create(BW_ERROR_USAGE, "--%s takes a number, not '%s'", option, text);
    *given = text;
    *id = text ? (uint32_t)number : 0;
    return NULL;
}

static struct bw_error *check_options(struct mounting *mounting)
{
    const struct cmd_common *common = mounting->common;
    struct bw_mount_options *wanted = &mounting->options;
    struct stat status;
    wanted->checks_permissions = mounting->state->allow_other;
    BW_TRY(parse_id("uid", mounting->state->user, &wanted->squash_user, &wanted->user));
    BW_TRY(parse_id("gid", mounting->state->group, &wanted->squash_group, &wanted->group));
    if (common->path_count != 1)
        return bw_error_create(BW_ERROR_USAGE, "exactly one DIR is required");
    mounting->directory = realpath(common->paths[0], NULL);
    if (!mounting->directory || stat(mounting->directory, &status))
        return bw_error_from_errno(errno, "cannot mount on %s", common->paths[0]);
    return S_ISDIR(status.st_mode)
               ? NULL
               : bw_error_create(BW_ERROR_USAGE, "%s is not a directory", common->paths[0]);
}

static int run(const struct cmd_common *common, void *settings)
{
    const struct mount_state *state = settings;
    struct mounting mounting = {.common = common, .state = state, .channel = -1, .ready = -1};
    cmd_leave_host(common);
    struct bw_error *error = check_options(&mounting);
    int status = error               ? cmd_fail(common, error)
                 : state->background ? run_in_background(&mounting)
                                     : run_mount(&mounting);
    free(mounting.directory);
    return status;
}

#else

static int run(const struct cmd_common *common, void *settings)
{
    (void)settings;
    return cmd_fail(common,
                    bw_error_create(BW_ERROR_USAGE,
                                    "this program was built without libfuse 3, which mounting "
                                    "needs: install it (scripts/install-deps) and build again; "
                                    "'btrfs-walk extract' and 'btrfs-walk tar' work without"));
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
        "Each read is verified; if a copy is bad, another copy or parity replaces it. Reading\n"
        "lost data fails with an input/output error; other files are not affected. The\n"
        "command runs until DIR is unmounted (fusermount3 -u DIR, or umount DIR by root), or\n"
        "until it receives SIGINT, SIGTERM or SIGHUP. Without --allow-other, only the user\n"
        "who mounts can use DIR, and may read everything in it. Devices and setuid bits have\n"
        "no effect. All subvolumes have the same device number; inode numbers are the\n"
        "original ones only in the subvolume at DIR.\n",
    .examples = "  btrfs-walk mount disk.img /mnt/old              until Ctrl-C\n"
                "  btrfs-walk mount --background disk.img ~/old    until fusermount3 -u ~/old\n"
                "  btrfs-walk mount --subvol @home disk.img ~/old  one subvolume\n",
    .options = options,
    .meanings = meanings,
    .run = run,
    .state_size = sizeof(struct mount_state),
    .takes_paths = true,
    .missing = "no mount point (DIR) given",
};
