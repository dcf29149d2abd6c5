/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sum --tree: one hash of a directory tree of an image. */
#include "cli/export/sum_tree.h"

#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "btrfs-walk/records.h"
#include "cli/common/output_format.h"
#include "cli/export/hashing.h"
#include "export/tree_hash.h"

/* A running hash. */
struct sum_tree {
    const struct cmd_sum_tree *wanted;
    struct cmd_export export;
    struct cmd_answer answer;
    struct bw_tree_hash *tree;
    struct bw_xattr_reader *xattrs;
    struct bw_buffer link;
    bool is_incomplete;
};

static const char *const part_names[] = {"modes", "owners", "times", "xattrs", NULL};

static struct bw_error *store_ignored(void *target, const struct cmd_option *option,
                                      const char *argument)
{
    unsigned *parts = target;
    for (const char *word = argument;; word++) {
        const size_t length = strcspn(word, ",");
        unsigned part = 0;
        while (part_names[part] &&
               (strlen(part_names[part]) != length || memcmp(part_names[part], word, length) != 0))
            part++;
        if (!part_names[part])
            return cmd_bad_argument(option, argument, "modes, owners, times, xattrs");
        *parts |= 1U << part;
        word += length;
        if (!*word)
            return NULL;
    }
}

const struct cmd_option cmd_sum_tree_options[] = {
    {0, "tree", NULL, "print one hash of everything below PATH, or of everything",
     CMD_FLAG(struct cmd_sum_tree, wanted)},
    {0, "ignore", "PART,...", "with --tree: leave out modes, owners, times or xattrs",
     .store = store_ignored, .offset = CMD_AT(struct cmd_sum_tree, ignored, unsigned),
     .words = part_names},
    {0},
};

/* Entries. */

static struct bw_error *add_xattrs(struct sum_tree *sum, const struct bw_export_entry *item)
{
    const struct bw_xattr *xattrs;
    size_t count;
    BW_TRY(bw_xattr_reader_read(sum->xattrs, &item->place, &xattrs, &count));
    for (size_t i = 0; i < count; i++)
        BW_TRY(bw_tree_hash_add_xattr(sum->tree, xattrs[i].name, xattrs[i].name_length,
                                      xattrs[i].value, xattrs[i].value_length));
    return NULL;
}

static struct bw_error *add_entry(struct sum_tree *sum, const struct bw_export_entry *item)
{
    const struct bw_inode *inode = &item->inode;
    const bool is_empty = item->place.inode == BW_EMPTY_DIRECTORY; /* its attributes are made up */
    struct bw_tree_hash_entry entry = {.path = bw_export_entry_name(item),
                                       .path_length = bw_export_entry_name_length(item),
                                       .has_attributes = !is_empty,
                                       .mode = is_empty ? S_IFDIR : inode->mode,
                                       .uid = inode->uid,
                                       .gid = inode->gid,
                                       .mtime = inode->mtime,
                                       .major = bw_inode_major(inode),
                                       .minor = bw_inode_minor(inode),
                                       .content = item->hash,
                                       .content_length = strlen(item->hash)};
    if (item->type == S_IFLNK) {
        sum->link.length = 0;
        BW_TRY(cmd_export_read_link(&sum->export, item, &sum->link));
        entry.content = sum->link.data;
        entry.content_length = sum->link.length;
    }
    BW_TRY(bw_tree_hash_begin(sum->tree, &entry));
    if (!is_empty)
        BW_TRY(add_xattrs(sum, item));
    return bw_tree_hash_end(sum->tree);
}

/* Whether all of an entry is known. */
static bool is_complete(const struct bw_export_entry *item)
{
    if (item->place.inode == BW_EMPTY_DIRECTORY)
        return true;
    return item->has_inode && !item->error && (item->type != S_IFREG || *item->hash);
}

static struct bw_error *end_entry(void *context, struct bw_export_entry *item)
{
    struct sum_tree *sum = context;
    if (!bw_export_entry_name_length(item))
        return NULL; /* the top */
    struct bw_error *error = is_complete(item) ? add_entry(sum, item) : NULL;
    if (error && error->code != BW_ERROR_NO_MEMORY) {
        item->error = error;
        error = NULL;
    }
    if (!error && (item->error || !is_complete(item))) {
        sum->is_incomplete = true;
        cmd_export_miss_item(&sum->export, item);
    }
    return error;
}

static struct bw_error *hash_image(struct sum_tree *sum)
{
    struct bw_fs *fs = sum->export.session.fs;
    const struct cmd_hashed_files files = {
        .algorithm = BW_HASH_SHA256, .types = BW_WALK_ALL, .visit = end_entry, .context = sum};
    BW_TRY(bw_xattr_reader_create(fs, &sum->xattrs));
    BW_TRY(cmd_hash_files(&sum->export, &files));
    sum->is_incomplete |= bw_fs_status(fs).damages || atomic_load(&sum->export.status);
    return NULL;
}

/* The result. */

static struct bw_error *write_hash(struct sum_tree *sum, const char *hash)
{
    const struct cmd_common *common = sum->export.common;
    const char *path = common->path_count ? common->paths[0] : "/";
    const struct bw_bytes name = {path, strlen(path)};
    const struct bw_suminfo row = {
        .hash = hash, .algorithm = "tree", .path = name, .path_bytes = name};
    const uint64_t absent =
        BW_MEMBER(suminfo, size) | BW_MEMBER(suminfo, subvolume) | BW_MEMBER(suminfo, inode);
    if (sum->answer.rows)
        return cmd_answer_write(&sum->answer, &row, sizeof row, absent);
    bw_buffer_format(&sum->answer.text, "%s  ", hash);
    bw_escape_line(&sum->answer.text, name.data, name.length);
    bw_buffer_append_byte(&sum->answer.text, '\n');
    return sum->answer.text.failed
               ? bw_error_no_memory()
               : cmd_write(&sum->answer.output, sum->answer.text.data, sum->answer.text.length);
}

static struct bw_error *hash_and_write(struct sum_tree *sum)
{
    char hash[BW_HASH_TEXT];
    BW_TRY(bw_tree_hash_create(BW_TREE_HASH_ALL & ~sum->wanted->ignored, &sum->tree));
    BW_TRY(hash_image(sum));
    if (sum->is_incomplete)
        return bw_error_create(BW_ERROR_CORRUPT, "no hash, because the tree is not complete");
    BW_TRY(bw_tree_hash_finish(sum->tree, hash));
    return write_hash(sum, hash);
}

static void free_all(struct sum_tree *sum)
{
    bw_tree_hash_destroy(sum->tree);
    bw_xattr_reader_destroy(sum->xattrs);
    bw_buffer_free(&sum->link);
}

int cmd_sum_tree(const struct cmd_common *common, const struct cmd_sum_tree *wanted,
                 struct cmd_export_settings *settings, const char *record)
{
    struct sum_tree sum = {.wanted = wanted};
    const struct cmd_answer_plan plan = {.record = record};
    settings->naming.relative = true;
    struct bw_error *error = common->path_count > 1
                                 ? bw_error_create(BW_ERROR_USAGE, "--tree is for one PATH")
                                 : cmd_answer_begin(&sum.answer, common, &plan);
    int status = error ? cmd_fail(common, error) : cmd_export_open(common, settings, &sum.export);
    if (!status) {
        error = hash_and_write(&sum);
        status = cmd_export_close(&sum.export, cmd_answer_end(&sum.answer, error));
        free_all(&sum);
    }
    cmd_answer_free(&sum.answer);
    return status;
}
