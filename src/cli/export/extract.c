/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The extract command: files, folders or everything, into a folder. */
#include "cli/export/extraction.h"

struct extract_state {
    struct extract_settings extract; /* first, for the options of its groups */
    bool subvolumes, link_snapshots;
};

static const struct cmd_option options[] = {
    CMD_FOLDER_OPTION(struct extract_settings, folder),
    {0, "subvolumes", NULL,
     "keep subvolumes, snapshots and shared data; operands are subvolumes instead of paths",
     CMD_FLAG(struct extract_state, subvolumes)},
    {0, "link-snapshots", NULL,
     "with --subvolumes where there are no snapshots: hard links to files that are the same",
     CMD_FLAG(struct extract_state, link_snapshots)},
    {0, "follow-renames", NULL, "with --generation: find PATHs under older names",
     CMD_FLAG(struct extract_settings, export.follow_renames)},
    CMD_MIRROR_OPTION(struct extract_settings, mirror),
    {.group = extract_options},
    CMD_GROUP(cmd_naming_options, struct extract_settings, export),
    CMD_GROUP(cmd_export_options, struct extract_settings, export),
    {0},
};

static struct bw_error *extract_all(struct extract *extract, void *context)
{
    (void)context;
    cmd_export_expect(&extract->export);
    return extract_from(extract, extract->export.session.fs);
}

static const char *find_mistake(const struct cmd_common *common, const void *settings)
{
    const struct extract_state *state = settings;
    const struct extract_settings *extract = &state->extract;
    const struct bw_generation_choice *chosen = &common->input.fs.state;
    if (!extract->folder)
        return "no target directory given; use -C DEST";
    if (state->link_snapshots && !state->subvolumes)
        return "--link-snapshots needs --subvolumes";
    if (extract->export.follow_renames && state->subvolumes)
        return "--follow-renames and --subvolumes exclude each other";
    if (extract->export.follow_renames && !chosen->generation && !chosen->tree_root)
        return "--follow-renames needs --generation or --tree-root";
    if (extract->mirror && state->subvolumes)
        return "--mirror and --subvolumes exclude each other";
    if ((extract->rename || extract->lists.renamed) && state->subvolumes)
        return "--rename and --subvolumes exclude each other";
    return NULL;
}

static int run(const struct cmd_common *common, void *settings)
{
    struct extract_state *state = settings;
    if (state->subvolumes)
        return extract_subvolumes(common, &state->extract, state->link_snapshots);
    return extract_run(common, &state->extract, extract_all, NULL);
}

const struct command cmd_extract = {
    .name = "extract",
    .topic = cmd_topic_export,
    .operands = "-C DEST IMAGE [PATH]...",
    .summary = "Extracts files, directories or everything into a directory.",
    .details =
        "\n"
        "A PATH is a file, or a directory with everything in it; without one, everything is\n"
        "extracted. It starts at the top-level subvolume (id 5), or at the subvolume given\n"
        "with --subvol. The whole path is created below DEST, unless --relative or\n"
        "--strip-components is given. Nothing is written outside of DEST, no link there is\n"
        "followed, and no existing file is replaced. Holes, hard links, permissions, times,\n"
        "extended attributes, access control lists and groups of which the user is a member\n"
        "are restored. So are flags (see chattr) that the file system of DEST supports and,\n"
        "as root, owners, and device nodes with --preserve. Attributes that could not be\n"
        "restored are listed at the end. If a hard link cannot be made, the file is copied. A\n"
        "file gets its name when it is complete. DEST itself gets the attributes of the\n"
        "extracted directory if it is created, or with --preserve, unless several PATHs are\n"
        "extracted into it.\n\n"
        "With --mirror, no other mirror replaces bad data of the chosen one; see 'cat'.\n"
        "--skip-existing continues an interrupted extraction. With --on-error=zero, a file\n"
        "whose inode is lost is restored from its remaining extents, with a made-up owner,\n"
        "mode and times. A file is not made if none of its data can be read.\n\n"
        "With --subvolumes, subvolumes stay subvolumes, snapshots stay snapshots, and data that\n"
        "they share are stored once, if DEST is on btrfs. The operands are subvolumes, which\n"
        "are extracted with their snapshots and the subvolumes inside them; without operands,\n"
        "all are. Unreadable data are zeros, unless --on-error=fail is given. On other file\n"
        "systems, subvolumes become directories; with --link-snapshots, files that are the\n"
        "same in two snapshots are hard links, so changing one changes the other.\n",
    .examples =
        "  btrfs-walk extract -C /mnt/new disk.img                   everything\n"
        "  btrfs-walk extract -C . disk.img /users/joe               a directory\n"
        "  btrfs-walk extract -C joe --relative disk.img /users/joe  its contents\n"
        "  btrfs-walk extract --preserve --subvol @ -C /mnt/new disk.img  a root file system\n"
        "  btrfs-walk extract --subvolumes -C /mnt/new disk.img      with all snapshots\n"
        "  btrfs-walk extract -C . --name '*.jpg' disk.img           some files\n"
        "  btrfs-walk extract -C /mnt/new --skip-existing disk.img   continue\n",
    .options = options,
    .find_mistake = find_mistake,
    .run = run,
    .state_size = sizeof(struct extract_state),
    .defaults = &(const struct extract_state){.extract.on_error = CMD_ON_ERROR_SKIP},
    .takes_paths = true,
    .takes_list = true,
};
