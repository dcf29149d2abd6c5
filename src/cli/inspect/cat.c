/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cat command: the contents of files. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "btrfs-walk/file.h"
#include "cli/command.h"
#include "cli/common/monitor.h"
#include "cli/common/paths.h"
#include "cli/export/export.h"
#include "cli/inspect/bad_map.h"
#include "export/entry_queue.h"

/* A running cat command. */
struct cat {
    /* The options. */
    const char *subvolume;
    uint64_t offset, length;
    enum cmd_on_error on_error;
    unsigned threads;
    struct bad_ranges blocks; /* logical addresses; length 0: the tree block or sector there */
    unsigned mirror;          /* 0: any good one */

    /* While it runs. */
    struct cmd_paths paths;
    struct bw_stream_file *files; /* existing files; `user` is the path */
    size_t count, next;
    struct cmd_bad_ranges bad;
};

static struct bw_error *store_block(void *target, const struct cmd_option *option,
                                    const char *argument)
{
    uint64_t logical, length;
    (void)option;
    BW_TRY(cmd_parse_range(argument, &logical, &length));
    return bad_ranges_push(target, (struct bw_address_range){logical, length});
}

static void release_blocks(void *blocks)
{
    bad_ranges_free(blocks);
}

static const struct cmd_option options[] = {
    {0, "offset", "N", "begin at this offset in each file; the suffixes K, M, G, T are allowed",
     CMD_BYTES(struct cat, offset)},
    {0, "length", "N", "write at most this many bytes of each file", CMD_BYTES(struct cat, length)},
    CMD_ON_ERROR_OPTION(struct cat, on_error, "range", "fail"),
    CMD_THREADS_OPTION(struct cat, threads),
    CMD_SUBVOLUME_OPTION(struct cat, subvolume),
    {'B', "block", "LOGICAL[+LENGTH]",
     "write the tree block or the data stored at this logical address (repeatable)",
     .store = store_block, .offset = offsetof(struct cat, blocks), .release = release_blocks},
    CMD_MIRROR_OPTION(struct cat, mirror),
    {0},
};

static struct bw_error *find_file(struct cat *cat, const char *path, struct bw_stream_file *file)
{
    struct bw_fs *fs = cat->paths.session.fs;
    struct bw_place place;
    struct bw_inode inode;
    bool salvaged = false;
    BW_TRY(bw_lookup(fs, cat->paths.from, path, true, &place));
    struct bw_error *error = bw_inode_get(fs, &place, &inode);

    /* With --on-error, an inode that is lost is salvaged from other items. */
    if (error && cat->on_error != CMD_ON_ERROR_FAIL && place.type == BW_FILE_REGULAR) {
        BW_AUTO_ERROR struct bw_error *unsalvageable = bw_inode_salvage(fs, &place, &inode);
        salvaged = !unsalvageable;
    }
    if (salvaged) {
        bw_error_free(BW_TAKE(error));
        cmd_paths_miss(&cat->paths, bw_salvaged_error(path));
    }
    if (!error && !S_ISREG(inode.mode))
        error = bw_error_create(BW_ERROR_NOT_FOUND, "not a regular file");
    if (error)
        return bw_error_prefix(error, "%s", path);
    *file = (struct bw_stream_file){
        .data = bw_data_file_of(&place, &inode),
        .offset = cat->offset,
        .length = cat->length,
        .user = (void *)(uintptr_t)path,
    };
    file->data.may_lack_checksums = salvaged;
    file->data.mirror = cat->mirror;
    return NULL;
}

static struct bw_error *next(void *context, struct bw_stream_file *file, bool *got)
{
    struct cat *cat = context;
    *got = cat->next < cat->count;
    if (*got)
        *file = cat->files[cat->next++];
    return NULL;
}

/* `name`: the path or address in messages. */
static struct bw_error *write_named_part(struct cat *cat, const char *name,
                                         const struct bw_data_part *part)
{
    cmd_progress_add(part->length);
    if (part->kind == BW_DATA_BAD) {
        if (cat->on_error == CMD_ON_ERROR_FAIL)
            return cmd_bad_error(name, part);
        cmd_bad_add(&cat->bad, name, part);
        if (cat->on_error == CMD_ON_ERROR_SKIP)
            return NULL;
    }
    if (part->kind == BW_DATA_BYTES)
        return cmd_write(&cat->paths.output, (const char *)part->bytes, (size_t)part->length);
    return cmd_write_zeros(&cat->paths.output, part->length);
}

static struct bw_error *write_part(void *context, const struct bw_stream_file *file,
                                   const struct bw_data_part *part)
{
    return write_named_part(context, file->user, part);
}

static struct bw_error *write_block_part(void *context, const struct bw_data_part *part)
{
    return write_named_part(context, "logical addresses", part);
}

static struct bw_error *finish(void *context, const struct bw_stream_file *file, bool complete)
{
    struct cat *cat = context;
    (void)file;
    (void)complete;
    cmd_bad_flush(&cat->bad);
    return NULL;
}

static struct bw_error *write_files(struct cat *cat)
{
    const struct bw_stream stream = {.struct_size = sizeof stream,
                                     .threads = cat->threads,
                                     .next = next,
                                     .visit = write_part,
                                     .finish = finish,
                                     .context = cat};
    const struct cmd_common *common = cat->paths.common;
    cat->files = calloc(common->path_count + 1, sizeof *cat->files);
    if (!cat->files)
        return bw_error_no_memory();
    uint64_t bytes = 0; /* the number of bytes to write */
    for (size_t i = 0; i < common->path_count; i++) {
        struct bw_stream_file *file = &cat->files[cat->count];
        struct bw_error *error = find_file(cat, common->paths[i], file);
        if (error) {
            cmd_paths_miss(&cat->paths, error);
            continue;
        }
        const uint64_t size = file->data.size, rest = size > file->offset ? size - file->offset : 0;
        bytes += rest < file->length ? rest : file->length;
        cat->count++;
    }
    cmd_progress_expect(bytes);
    return bw_stream_run(cat->paths.session.fs, &stream);
}

static struct bw_error *write_blocks(struct cat *cat)
{
    const struct bw_logical_options how = {
        .struct_size = sizeof how,
        .mirror = cat->mirror,
        .unchecked = cat->mirror && cat->paths.common->input.fs.ignore_checksums};
    struct bw_error *error = NULL;
    for (size_t i = 0; i < cat->blocks.count && !error; i++) {
        const struct bw_address_range *range = &cat->blocks.items[i];
        error = bw_logical_read(cat->paths.session.fs, range->logical, range->length, &how,
                                write_block_part, cat);
        cmd_bad_flush(&cat->bad);
        if (error && (error->code == BW_ERROR_USAGE || error->code == BW_ERROR_NOT_FOUND))
            cat->paths.status = cmd_fail_output(cat->paths.common, BW_TAKE(error));
    }
    return error;
}

static bool needs_no_path(const void *state)
{
    return ((const struct cat *)state)->blocks.count;
}

static int run(const struct cmd_common *common, void *state)
{
    struct cat *cat = state;
    const bool has_range = cat->offset || cat->length != UINT64_MAX;
    if (cat->blocks.count && common->path_count)
        return cmd_refuse(common, "--block excludes paths");
    if (cat->blocks.count && has_range)
        return cmd_refuse(common, "--offset and --length are for "
                                  "files; --block has +LENGTH");
    int status = cmd_paths_open(common, cat->subvolume, &cat->paths);
    if (status)
        return status;
    cat->bad = (struct cmd_bad_ranges){.fs = cat->paths.session.fs, .on_error = cat->on_error};
    struct bw_error *error;
    if (cat->blocks.count)
        error = write_blocks(cat);
    else
        error = write_files(cat);
    free(cat->files);
    return cmd_paths_close(&cat->paths, error);
}

const struct command cmd_cat = {
    .name = "cat",
    .topic = cmd_topic_files,
    .operands = "IMAGE PATH...",
    .summary = "Writes the contents of files to stdout.",
    .details =
        "\n"
        "A PATH starts at the top-level subvolume (id 5), or at the subvolume given with\n"
        "--subvol. Data are verified against their checksums. A bad mirror is replaced by a\n"
        "good one, or rebuilt from parity. Ranges without a good mirror are listed on stderr.\n"
        "With --on-error=zero|skip, a file whose inode is lost ends at the end of its last\n"
        "extent. If stdout is a file, holes stay holes.\n\n"
        "--block writes the bytes stored at a logical address: a tree block, or data, which may\n"
        "be compressed. Without LENGTH, a tree block or a sector is written. Both are verified\n"
        "unless the mirror is named and --ignore-checksums is given; free space has no\n"
        "checksums. 'owner' prints what an address belongs to, 'map' its mirrors.\n\n"
        "With --mirror, no other mirror replaces a bad one, neither of a block nor of the data\n"
        "of files. Mirrors are counted as in the kernel: on RAID5 and RAID6, mirror 1 is stored,\n"
        "and mirror 2 is computed from the other stripes and P. Data inside of tree blocks come\n"
        "from any good mirror.\n",
    .examples = "  btrfs-walk cat disk.img /etc/fstab                  one file\n"
                "  btrfs-walk cat disk.img /var/lib/db > db            with its holes\n"
                "  btrfs-walk cat --on-error=zero disk.img /a > a      a damaged file\n"
                "  btrfs-walk cat --offset 1M --length 4K disk.img /a  a part\n"
                "  btrfs-walk cat --block 30408704 disk.img | xxd      a tree block\n"
                "  btrfs-walk cat --mirror 2 --device b.img a.img /a   the second mirror\n",
    .options = options,
    .run = run,
    .state_size = sizeof(struct cat),
    .defaults = &(const struct cat){.length = UINT64_MAX},
    .takes_paths = true,
    .takes_list = true,
    .missing = "no path given",
    .needs_no_path = needs_no_path,
};
