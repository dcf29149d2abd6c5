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
    struct cmd_bad_ranges bad; /* has the argument of --on-error */
    unsigned threads;
    struct bad_ranges blocks; /* logical addresses; length 0: the tree block or sector there */
    unsigned mirror;          /* 0: any good one */

    /* While it runs. */
    struct cmd_paths paths;
    struct bw_stream_file *files; /* existing files; `user` is the path */
    size_t count, next;
};

static struct bw_error *store_block(void *target, const struct cmd_option *option,
                                    const char *argument)
{
    struct bw_address_range range;
    (void)option;
    BW_TRY(cmd_parse_range(argument, &range));
    return bad_ranges_push(target, range);
}

static void release_blocks(void *blocks)
{
    bad_ranges_free(blocks);
}

static const struct cmd_option options[] = {
    {0, "offset", "N", "begin at this offset in each file; the suffixes K, M, G, T are allowed",
     CMD_BYTES(struct cat, offset)},
    {0, "length", "N", "write at most this many bytes of each file", CMD_BYTES(struct cat, length)},
    CMD_ON_ERROR_OPTION(struct cat, bad.on_error, "range", "fail"),
    CMD_THREADS_OPTION(struct cat, threads),
    CMD_SUBVOLUME_OPTION(struct cat, subvolume),
    {'B', "block", "LOGICAL[+LENGTH]",
     "write the tree block or the data stored at this logical address (repeatable)",
     .store = store_block, .offset = offsetof(struct cat, blocks), .release = release_blocks},
    CMD_MIRROR_OPTION(struct cat, mirror),
    {0},
};

/* The contents of files. */

static struct bw_error *find_file(struct cat *cat, const char *path, struct bw_stream_file *file)
{
    struct bw_fs *fs = cat->paths.format.session.fs;
    struct bw_place place;
    struct bw_inode inode;
    BW_TRY(bw_lookup(fs, cat->paths.from, path, true, &place));
    struct bw_error *error = bw_inode_get(fs, &place, &inode);

    /* With --on-error, an inode that is lost is salvaged from other items. */
    bool is_salvaged = false;
    if (error && cat->bad.on_error != CMD_ON_ERROR_FAIL && place.type == BW_FILE_REGULAR) {
        BW_AUTO_ERROR struct bw_error *unsalvageable = bw_inode_salvage(fs, &place, &inode);
        is_salvaged = !unsalvageable;
    }
    if (is_salvaged) {
        bw_error_free(BW_TAKE(error));
        cmd_format_miss(&cat->paths.format, bw_salvaged_error(path));
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
    file->data.may_lack_checksums = is_salvaged;
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

static struct bw_error *write_part(void *context, const struct bw_stream_file *file,
                                   const struct bw_data_part *part)
{
    struct cat *cat = context;
    return cmd_bad_write(&cat->bad, &cat->paths.format.output, file->user, part);
}

static struct bw_error *finish(void *context, const struct bw_stream_file *file, bool complete)
{
    struct cat *cat = context;
    (void)file;
    (void)complete;
    cmd_bad_flush(&cat->bad);
    return NULL;
}

/* The bytes of blocks. */

static struct bw_error *write_block_part(void *context, const struct bw_data_part *part)
{
    struct cat *cat = context;
    return cmd_bad_write(&cat->bad, &cat->paths.format.output, "logical addresses", part);
}

static bool needs_no_path(const void *state)
{
    return ((const struct cat *)state)->blocks.count;
}

static const char *find_mistake(const struct cmd_common *common, const void *state)
{
    const struct cat *cat = state;
    if (cat->blocks.count && common->path_count)
        return "--block excludes paths";
    if (cat->blocks.count && (cat->offset || cat->length != UINT64_MAX))
        return "--offset and --length are for files; --block has +LENGTH";
    return NULL;
}

static int run(const struct cmd_common *common, void *state)
{
    struct cat *cat = state;
    struct cmd_paths *paths = &cat->paths;
    int status = cmd_paths_open(common, NULL, cat->subvolume, paths);
    if (status)
        return status;
    struct bw_fs *fs = paths->format.session.fs;
    cat->bad.fs = fs;

    /* The addresses of --block, instead of paths. */
    struct bw_error *error = NULL;
    const struct bw_logical_options how = {.struct_size = sizeof how,
                                           .mirror = cat->mirror,
                                           .unchecked =
                                               cat->mirror && common->input.fs.ignore_checksums};
    for (size_t i = 0; i < cat->blocks.count && !error; i++) {
        const struct bw_address_range *range = &cat->blocks.items[i];
        error = bw_logical_read(fs, range->logical, range->length, &how, write_block_part, cat);
        cmd_bad_flush(&cat->bad);
        if (error && (error->code == BW_ERROR_USAGE || error->code == BW_ERROR_NOT_FOUND))
            paths->format.status = cmd_fail_output(common, BW_TAKE(error));
    }

    /* All files are found first, for the progress. */
    const struct bw_stream stream = {.struct_size = sizeof stream,
                                     .threads = cat->threads,
                                     .next = next,
                                     .visit = write_part,
                                     .finish = finish,
                                     .context = cat};
    uint64_t bytes = 0; /* the number of bytes to write */
    cat->files = calloc(common->path_count + 1, sizeof *cat->files);
    for (size_t i = 0; cat->files && i < common->path_count; i++) {
        struct bw_stream_file *file = &cat->files[cat->count];
        struct bw_error *miss = find_file(cat, common->paths[i], file);
        if (miss) {
            cmd_format_miss(&paths->format, miss);
            continue;
        }
        const uint64_t size = file->data.size, rest = size > file->offset ? size - file->offset : 0;
        bytes += rest < file->length ? rest : file->length;
        cat->count++;
    }
    cmd_progress_expect(bytes);
    if (!cat->files)
        error = bw_error_first(error, bw_error_no_memory());
    else if (cat->count)
        error = bw_stream_run(fs, &stream);
    free(cat->files);
    return cmd_paths_close(paths, error);
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
    .find_mistake = find_mistake,
    .missing = "no path given",
    .needs_no_path = needs_no_path,
};
