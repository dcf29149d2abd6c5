/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mount command (mount_run.c). */
#include "cli/mount/mount.h"

#include "cli/common/paths.h"

static const struct cmd_option options[] = {
    CMD_SUBVOLUME_OPTION(struct mount, subvolume),
    {0, "devices", NULL,
     "show each device as a file DIR/DEVID, with holes where nothing is in use, instead of files",
     CMD_FLAG(struct mount, devices)},
    {0, "background", NULL, "mount, then continue in the background until DIR is unmounted",
     CMD_FLAG(struct mount, background)},
    {0, "allow-other", NULL,
     "allow other users to use the mount, within the permissions of the files; needs root, or "
     "user_allow_other in /etc/fuse.conf",
     CMD_FLAG(struct mount, how.checks_permissions)},
    {0, "uid", "UID", "show all files as owned by this user",
     CMD_NUMBER(struct mount, how.user, 0, UINT32_MAX - 1, "a number"),
     CMD_GIVEN(struct mount, how.squash_user)},
    {0, "gid", "GID", "show all files as owned by this group",
     CMD_NUMBER(struct mount, how.group, 0, UINT32_MAX - 1, "a number"),
     CMD_GIVEN(struct mount, how.squash_group)},
    {0},
};

static const char *find_mistake(const struct cmd_common *common, const void *state)
{
    const struct mount *mount = state;
    if (mount->devices && mount->subvolume)
        return "--devices shows no subvolume";
    return common->path_count == 1 ? NULL : "exactly one DIR is required";
}

static int run(const struct cmd_common *common, void *state)
{
#ifdef BW_FUSE
    struct mount *mount = state;
    struct cmd_common own = *common;
    if (mount->devices) /* replaying the log would create tree blocks that are not in the image */
        own.input.fs.log = BW_LOG_IGNORE;
    return mount_run(&own, mount);
#else
    (void)state;
    return cmd_refuse(common, "this program was built without libfuse 3, which mounting needs: "
                              "install it (scripts/install-deps) and build again; "
                              "'btrfs-walk extract' and 'btrfs-walk tar' work without");
#endif
}

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
    .find_mistake = find_mistake,
    .run = run,
    .state_size = sizeof(struct mount),
    .takes_paths = true,
    .missing = "no mount point (DIR) given",
};
