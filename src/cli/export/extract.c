/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The extract command: files, folders or everything, into a folder. */
#include "cli/export/extraction.h"

static const struct cmd_option options[] = {
    {'C', "directory", "DEST", "write into this directory; it is created if it does not exist",
     CMD_TEXT(struct extract_settings, folder)},
    {.group = extract_options},
    CMD_GROUP(cmd_naming_options, struct extract_settings, export),
    CMD_EXPORT_CHECKSUMS_OPTION(struct extract_settings),
    CMD_GROUP(cmd_export_options, struct extract_settings, export),
    {0},
};

static struct bw_error *extract_all(struct extract *extract, void *context)
{
    (void)context;
    cmd_export_expect(&extract->export);
    return extract_from(extract, extract->export.session.fs);
}

static int run(const struct cmd_common *common, void *settings)
{
    if (!((struct extract_settings *)settings)->folder)
        return cmd_fail(common, bw_error_create(BW_ERROR_USAGE, "where to? -C DEST is missing"));
    return extract_run(common, settings, extract_all, NULL);
}

const struct command cmd_extract = {
    .name = "extract",
    .topic = cmd_topic_export,
    .operands = "-C DEST IMAGE [PATH]...",
    .summary = "Extracts files, folders, or everything, into a folder.",
    .details =
        "\n"
        "A PATH is a file, or a directory with everything in it; without one, everything is\n"
        "extracted. It starts at the top-level subvolume (id 5), or at that of --subvol; below\n"
        "DEST it gets its whole path, unless --relative or --strip-components is given. Nothing is "
        "written outside of DEST, no link there is\n"
        "followed, and nothing that exists is replaced. Holes, hard links, permissions, times,\n"
        "extended attributes, access control lists and groups that the user is in are restored,\n"
        "as are flags (see chattr) that the file system of DEST supports and, by root, owners,\n"
        "and device nodes with --preserve. What could not be restored is listed at the end. Where\n"
        "a hard link cannot be made, the file is copied. A file gets its name when it is "
        "complete;\n"
        "DEST itself gets the attributes of what is extracted into it if it is created, or with\n"
        "--preserve, unless several PATHs go into it.\n"
        "--skip-existing continues an extraction that was interrupted. With --on-error=zero, a\n"
        "file whose inode is lost is restored as far as its extents are left, with a made-up\n"
        "owner, mode and times.\n",
    .examples = "  btrfs-walk extract -C /mnt/new disk.img                  everything\n"
                "  btrfs-walk extract -C . disk.img /users/joe               a folder\n"
                "  btrfs-walk extract -C joe --relative disk.img /users/joe  what is in it\n"
                "  btrfs-walk extract --preserve --subvol @ -C /mnt/new disk.img  a root file "
                "system\n"
                "  btrfs-walk extract -C . --name '*.jpg' disk.img          some files\n"
                "  btrfs-walk extract -C /mnt/new --skip-existing disk.img  go on\n",
    .options = options,
    .run = run,
    .state_size = sizeof(struct extract_settings),
    .defaults = &(const struct extract_settings){.on_error = CMD_ON_ERROR_SKIP},
    .takes_paths = true,
    .takes_list = true,
};
