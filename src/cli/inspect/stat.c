/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stat command: the inode of a file, its attributes and its number of extents; as lines of
 * "Name: value", or as a record. Names from the image are escaped even if stdout is not a terminal,
 * so each stays on one line.
 */
#include <inttypes.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/human.h"
#include "btrfs-walk/file.h"
#include "btrfs-walk/records.h"
#include "cli/common/paths.h"
#include "cli/inspect/stat_format.h"

struct stat_state {
    const char *subvolume;
    const char *format; /* NULL: lines */
    bool escapes;       /* --printf: the format contains escapes */
    bool follow;
    struct bw_user_names *user_names; /* read if the format prints names of owners */
    bool not_first;                   /* something has been written */
};

/* --format adds a newline; --printf interprets escapes instead. */
static struct bw_error *store_format(void *target, const struct cmd_option *option,
                                     const char *format)
{
    struct stat_state *stat = target;
    const char *problem;
    const size_t length = stat_format_problem(format, &problem);
    stat->format = format;
    stat->escapes = strcmp(option->name, "printf") == 0;
    if (!length)
        return NULL;
    return bw_error_create(BW_ERROR_USAGE,
                           "--%s: unknown directive '%.*s' (allowed: %%a %%A %%b %%B %%C "
                           "%%d %%D %%f %%F %%g %%G %%h %%i %%m %%n %%N %%o %%s %%r %%R "
                           "%%t %%T %%u %%U %%w %%W %%x %%X %%y %%Y %%z %%Z %%%%)",
                           option->name, (int)length, problem);
}

static const struct cmd_option options[] = {
    {'c', "format", "FORMAT",
     "print FORMAT and a newline for each file; directives are those of stat(1)",
     .store = store_format},
    {0, "printf", "FORMAT", "like --format, but with escapes like \\n and without the newline",
     .store = store_format},
    CMD_FOLLOW_OPTION(struct stat_state, follow),
    CMD_SUBVOLUME_OPTION(struct stat_state, subvolume),
    {0},
};

/* Facts about a file. */
struct known {
    const char *path; /* as on the command line */
    struct bw_place place;
    struct bw_inode inode;
    char *subvolume; /* its path; NULL: it has none */
    char *target;    /* of a symbolic link */
    size_t target_length;
    const struct bw_xattr *xattrs;
    size_t xattr_count;
    const struct bw_xattr *compression; /* the attribute named BW_COMPRESSION_PROPERTY */
    struct bw_extent_count extents;
};

static struct bw_error *gather_facts(struct bw_fs *fs, struct bw_xattr_reader *reader,
                                     struct known *known)
{
    static const char compression[] = BW_COMPRESSION_PROPERTY;
    const struct bw_place *place = &known->place;
    size_t length;
    BW_TRY(bw_inode_get(fs, place, &known->inode));
    /* A subvolume without a path is identified by its id. */
    bw_error_free(bw_subvolume_path(fs, place->subvolume, &known->subvolume, &length));
    if (place->inode == BW_EMPTY_DIRECTORY)
        return NULL;
    BW_TRY(bw_xattr_reader_read(reader, place, &known->xattrs, &known->xattr_count));
    for (size_t i = known->xattr_count; i-- > 0;)
        if (known->xattrs[i].name_length == sizeof compression - 1 &&
            memcmp(known->xattrs[i].name, compression, sizeof compression - 1) == 0)
            known->compression = &known->xattrs[i];
    BW_TRY(bw_file_count_extents(fs, place, &known->extents));
    if (!S_ISLNK(known->inode.mode))
        return NULL;
    return bw_inode_readlink(fs, place, &known->target, &known->target_length);
}

static bool is_device(const struct known *known)
{
    return S_ISCHR(known->inode.mode) || S_ISBLK(known->inode.mode);
}

static const char *type_name(const struct known *known)
{
    return bw_file_type_name(bw_file_type_of_mode(known->inode.mode));
}

/* Output as lines. */

static void append_bytes(const char *label, const void *bytes, size_t length,
                         struct bw_buffer *text)
{
    bw_buffer_format(text, "%s: ", label);
    bw_escape_append(text, bytes, length);
    bw_buffer_append_byte(text, '\n');
}

static void append_number(const char *label, uint64_t number, struct bw_buffer *text)
{
    bw_buffer_format(text, "%s: %" PRIu64 "\n", label, number);
}

static void append_time(const char *label, const struct timespec *time, struct bw_buffer *text)
{
    char value[BW_DATE_LENGTH];
    bw_write_date(value, bw_time_nanoseconds(time), 'T');
    bw_buffer_format(text, "%s: %.*sZ\n", label, BW_DATE_LENGTH, value);
}

static void append_flags(uint64_t flags, struct bw_buffer *text)
{
    const char *separator = " (";
    bw_buffer_format(text, "Flags: 0x%" PRIx64, flags);
    for (unsigned bit = 0; bit < 64; bit++) {
        if (!(flags >> bit & 1))
            continue;
        const char *name = bw_inode_flag_name(bit);
        if (name)
            bw_buffer_format(text, "%s%s", separator, name);
        else
            bw_buffer_format(text, "%s0x%" PRIx64, separator, UINT64_C(1) << bit);
        separator = ", ";
    }
    bw_buffer_format(text, "%s\n", flags ? ")" : "");
}

static void append_part(const char **separator, uint64_t number, const char *kind,
                        struct bw_buffer *text)
{
    if (!number)
        return;
    bw_buffer_format(text, "%s%" PRIu64 " %s", *separator, number, kind);
    *separator = ", ";
}

static void append_extents(const struct bw_extent_count *extents, struct bw_buffer *text)
{
    const char *separator = " (";
    if (!extents->total)
        return;
    bw_buffer_format(text, "Extents: %" PRIu64, extents->total);
    append_part(&separator, extents->inlined, "inline", text);
    append_part(&separator, extents->regular, "regular", text);
    append_part(&separator, extents->unwritten, "preallocated", text);
    append_part(&separator, extents->holes, extents->holes == 1 ? "hole" : "holes", text);
    separator = "; ";
    for (unsigned i = BW_COMPRESS_NONE + 1; i < BW_COMPRESS_TYPES; i++)
        append_part(&separator, extents->compressions[i], bw_compression_name(i), text);
    bw_buffer_format(text, ")\n");
}

static struct bw_error *print_lines(struct cmd_format *format, const void *record, uint64_t absent)
{
    const struct bw_statinfo *row = record;
    const struct known *known = row->extent_counts.context;
    struct stat_state *state = format->plan->context;
    struct bw_buffer *text = &format->text;
    (void)absent;
    if (state->not_first)
        bw_buffer_append_byte(text, '\n');
    state->not_first = true;
    append_bytes("Path", known->path, strlen(known->path), text);
    bw_buffer_format(text, "Subvolume: %" PRIu64, bw_subvolume_id(known->place.subvolume));
    if (known->subvolume) {
        bw_buffer_append_byte(text, ' ');
        bw_escape_append(text, known->subvolume, strlen(known->subvolume));
    }
    bw_buffer_append_byte(text, '\n');
    append_number("Inode", known->place.inode, text);
    bw_buffer_format(text, "Type: %s\n", type_name(known));
    if (known->target_length)
        append_bytes("Target", known->target, known->target_length, text);
    const struct bw_inode *inode = &known->inode;
    char mode[BW_MODE_LENGTH];
    bw_write_mode(mode, inode->mode);
    bw_buffer_format(text, "Mode: %04o %.*s\n", inode->mode & 07777, BW_MODE_LENGTH, mode);
    append_number("User", inode->uid, text);
    append_number("Group", inode->gid, text);
    append_number("Links", inode->link_count, text);
    append_number("Size", inode->size, text);
    append_number("Allocated", inode->bytes, text);
    if (is_device(known))
        bw_buffer_format(text, "Device: %u, %u\n", bw_inode_major(inode), bw_inode_minor(inode));
    append_time("Accessed", &inode->atime, text);
    append_time("Modified", &inode->mtime, text);
    append_time("Changed", &inode->ctime, text);
    append_time("Created", &inode->otime, text);
    append_number("Generation", inode->generation, text);
    append_number("Transid", inode->transid, text);
    append_number("Sequence", inode->sequence, text);
    append_flags(inode->flags, text);
    for (size_t i = 0; i < known->xattr_count; i++) {
        bw_buffer_format(text, "%s", i ? ", " : "Attributes: ");
        bw_escape_append(text, known->xattrs[i].name, known->xattrs[i].name_length);
    }
    if (known->xattr_count)
        bw_buffer_append_byte(text, '\n');
    if (known->compression)
        append_bytes("Compression", known->compression->value, known->compression->value_length,
                     text);
    append_extents(&known->extents, text);
    return NULL;
}

/* Output as a record. */

static struct bw_error *list_extents(void *context, struct bw_record_sink *sink)
{
    const struct bw_extent_count *extents = &((const struct known *)context)->extents;
    const struct bw_extentsuminfo row = {
        .extent_count = extents->total,
        .inline_ = extents->inlined,
        .regular = extents->regular,
        .preallocated = extents->unwritten,
        .holes = extents->holes,
        .zlib = extents->compressions[BW_COMPRESS_ZLIB],
        .lzo = extents->compressions[BW_COMPRESS_LZO],
        .zstd = extents->compressions[BW_COMPRESS_ZSTD],
    };
    return sink->visit(sink, &row, sizeof row, 0);
}

static struct bw_error *write_record(struct cmd_format *format, const struct known *known)
{
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    BW_AUTO_FREE struct bw_bytes *xattrs = calloc(known->xattr_count + 1, sizeof *xattrs);
    const struct bw_xattr *compression = known->compression;
    const struct bw_inode *inode = &known->inode;
    BW_TRY(cmd_paths_absolute(known->path, &path));
    if (!xattrs)
        return bw_error_no_memory();
    for (size_t i = 0; i < known->xattr_count; i++)
        xattrs[i] =
            (struct bw_bytes){(const char *)known->xattrs[i].name, known->xattrs[i].name_length};
    struct bw_statinfo row = {
        .path = {path.data, path.length},
        .path_bytes = {path.data, path.length},
        .subvolume = bw_subvolume_id(known->place.subvolume),
        .inode = known->place.inode,
        .type = type_name(known),
        .subvolume_path = known->subvolume,
        .target = {known->target_length ? known->target : NULL, known->target_length},
        .xattrs = {xattrs, known->xattr_count},
        .extent_counts = {list_extents, (void *)(uintptr_t)known},
        .mode = inode->mode,
        .uid = inode->uid,
        .gid = inode->gid,
        .size = inode->size,
        .allocated = inode->bytes,
        .nlink = inode->link_count,
        .atime = bw_time_nanoseconds(&inode->atime),
        .mtime = bw_time_nanoseconds(&inode->mtime),
        .ctime = bw_time_nanoseconds(&inode->ctime),
        .otime = bw_time_nanoseconds(&inode->otime),
        .generation = inode->generation,
        .transid = inode->transid,
        .sequence = inode->sequence,
        .flags = inode->flags,
        .rdev_major = bw_inode_major(inode),
        .rdev_minor = bw_inode_minor(inode),
    };
    uint64_t absent = 0;
    if (compression)
        row.compression =
            (struct bw_bytes){(const char *)compression->value, compression->value_length};
    if (!is_device(known))
        absent = BW_MEMBER(statinfo, rdev_major) | BW_MEMBER(statinfo, rdev_minor);
    return cmd_format_write(format, &row, sizeof row, absent);
}

/* Reads only the facts that the format contains. */
static struct bw_error *write_format(struct stat_state *state, const struct cmd_paths *paths,
                                     const char *path, const struct bw_place *place,
                                     struct bw_buffer *text)
{
    struct bw_fs *fs = paths->session.fs;
    struct bw_superblock_info superblock;
    struct bw_inode inode;
    BW_AUTO_FREE char *target = NULL;
    BW_TRY(bw_inode_get(fs, place, &inode));
    if (S_ISLNK(inode.mode) && strstr(state->format, "N"))
        BW_TRY(bw_inode_readlink(fs, place, &target, &(size_t){0}));
    if (!state->user_names && stat_format_names_people(state->format))
        BW_TRY(bw_user_names_open(fs, state->subvolume ? paths->from : NULL, &state->user_names));
    bw_fs_superblock(fs, &superblock);
    const struct stat_facts facts = {path,
                                     &inode,
                                     place->inode,
                                     bw_subvolume_id(place->subvolume),
                                     target,
                                     superblock.sectorsize,
                                     state->user_names};
    stat_format_append(state->format, state->escapes, &facts, text);
    if (!state->escapes)
        bw_buffer_append_byte(text, '\n');
    return NULL;
}

static struct bw_error *write_stat(void *context, struct cmd_paths *paths, const char *path,
                                   const struct bw_place *place, struct bw_buffer *text)
{
    struct stat_state *state = context;
    if (state->format)
        return write_format(state, paths, path, place, text);
    struct known known = {.path = path, .place = *place};
    struct bw_xattr_reader *reader;
    BW_TRY(bw_xattr_reader_create(paths->session.fs, &reader));
    struct bw_error *error = gather_facts(paths->session.fs, reader, &known);
    if (!error)
        error = write_record(&paths->format, &known);
    bw_xattr_reader_destroy(reader);
    free(known.subvolume);
    free(known.target);
    return error;
}

static int run(const struct cmd_common *common, void *state)
{
    struct stat_state *stat = state;
    const struct cmd_format_plan plan = {
        .record = cmd_stat.record, .print = print_lines, .context = state};
    if (stat->format && !cmd_format_is_for_people(common))
        return cmd_fail(common, bw_error_create(BW_ERROR_USAGE, "--format excludes %s",
                                                common->format.columns ? "-o" : "--json"));
    const int status =
        cmd_paths_run(common, stat->subvolume, stat->follow, &plan, write_stat, state);
    bw_user_names_close(stat->user_names);
    return status;
}

const struct command cmd_stat = {
    .name = "stat",
    .topic = cmd_topic_files,
    .operands = "IMAGE PATH...",
    .summary = "Prints everything about a file or directory.",
    .details = CMD_PATHS_DETAILS
    "Prints the fields of the inode, times in UTC, flags, the subvolume, the names of the\n"
    "extended attributes, and the number of extents of each kind.\n\n"
    "The directives of --format are those of stat(1); times are in UTC. User and group\n"
    "names are those in the image. %d is the id of the subvolume; %m and %C exist only on\n"
    "a mount and are '?'.\n",
    .examples = "  btrfs-walk stat disk.img /etc/passwd               one file\n"
                "  btrfs-walk stat -c '%A %U %s %y %N' disk.img /etc  in a custom format\n"
                "  btrfs-walk stat --json disk.img /a /b | jq .flags  for programs\n",
    .options = options,
    .record = "statinfo",
    .run = run,
    .state_size = sizeof(struct stat_state),
    .takes_paths = true,
    .takes_list = true,
    .missing = "no path given",
};
