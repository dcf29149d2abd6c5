/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stream as a whole: the subvolumes that take part in it, its header and its end. */
#include <stdlib.h>
#include <string.h>
#include <uuid.h>

#include "base/cleanup.h"
#include "base/struct_size.h"
#include "fs/subvolume.h"
#include "stream/sender.h"

static bool is_zero(const uint8_t uuid[BW_UUID_SIZE])
{
    static const uint8_t zeros[BW_UUID_SIZE];
    return memcmp(uuid, zeros, BW_UUID_SIZE) == 0;
}

struct bw_error *bw_send_identity(struct bw_fs *fs, const struct bw_subvolume *subvolume,
                                  struct bw_send_identity *identity)
{
    struct bw_subvolume_info info;
    *identity = (struct bw_send_identity){0};
    BW_TRY(bw_subvolume_get(fs, subvolume, &info));
    memcpy(identity->uuid, is_zero(info.received_uuid) ? info.uuid : info.received_uuid,
           BW_UUID_SIZE);
    identity->ctransid = info.ctransid;
    bool is_changed;
    BW_TRY(bw_subvolume_is_changed(fs, subvolume, &info, &is_changed));
    /* Whether the trees may be older than the last commit. */
    const bool may_be_older =
        fs->is_past || (!fs->is_stream && !fs->is_remade &&
                        fs->root_tree.root.bytenr != fs->superblock.root.bytenr);
    if (!info.read_only)
        identity->reason = BW_SEND_WRITABLE;
    else if (is_zero(identity->uuid))
        identity->reason = BW_SEND_NO_UUID;
    else if (may_be_older)
        identity->reason = BW_SEND_PAST;
    else
        identity->reason = is_changed ? BW_SEND_CHANGED : BW_SEND_OWN;
    return NULL;
}

/* Sets the identity of a subvolume; `fresh`: a random one, unless it has got one before. */
static struct bw_error *set_identity(struct bw_send_root *root, const struct bw_send_side *side,
                                     bool fresh)
{
    struct bw_send_identity identity;
    BW_TRY(bw_send_identity(side->fs, side->subvolume, &identity));
    root->ctransid = identity.ctransid;
    memcpy(root->uuid, side->uuid ? side->uuid : identity.uuid, BW_UUID_SIZE);
    if (!side->uuid && (fresh || is_zero(root->uuid)))
        uuid_generate(root->uuid);
    return NULL;
}

static bool is_same(const struct bw_send_side *a, const struct bw_send_side *b)
{
    return a->fs == b->fs && a->subvolume == b->subvolume;
}

/* Everything between the options and the end: the subvolumes that take part, the command that
 * begins the sent one, and its contents. */
static struct bw_error *send_all(struct bw_sender *sender, const struct bw_send_side *side)
{
    const struct bw_send_options *options = &sender->options;

    /* The subvolumes: the sent one, the parent, the sources. */
    struct bw_send_identity identity;
    sender->roots = calloc(options->source_count + 2, sizeof *sender->roots);
    if (!sender->roots)
        return bw_error_no_memory();
    BW_TRY(bw_send_identity(side->fs, side->subvolume, &identity));
    struct bw_send_root *sent = &sender->roots[sender->root_count++], *parent = NULL;
    bw_send_root_init(sent, side);
    BW_TRY(set_identity(sent, side,
                        identity.reason != BW_SEND_OWN || options->damage != BW_SEND_STOP));
    if (options->parent) {
        parent = &sender->roots[sender->root_count++];
        bw_send_root_init(parent, options->parent);
        BW_TRY(set_identity(parent, options->parent, false));
    }
    for (size_t i = 0; i < options->source_count; i++) {
        const struct bw_send_side *source = &options->sources[i];
        if (is_same(source, side) || (options->parent && is_same(source, options->parent)))
            continue;
        struct bw_send_root *root = &sender->roots[sender->root_count++];
        bw_send_root_init(root, source);
        BW_TRY(set_identity(root, source, false));
    }
    sender->sent = sent;
    sender->parent = parent;
    memcpy(sender->summary.uuid, sent->uuid, BW_UUID_SIZE);
    sender->summary.ctransid = sent->ctransid;

    /* The name under which the receiver creates the subvolume. The top-level subvolume has none. */
    const char *name = options->name ? options->name : "toplevel";
    size_t length = strlen(name);
    if (!options->name && sent->subvolume->name_length) {
        name = bw_subvolume_name(&sent->fs->subvolumes, sent->subvolume);
        length = sent->subvolume->name_length;
    }

    /* The header and the first command. */
    BW_TRY(bw_send_clones_create(&sender->clones));
    BW_TRY(bw_send_jobs_create(sender));
    if (!options->no_header)
        bw_stream_begin(sender->commands, options->version);
    const struct bw_buffer path = {.data = (char *)(uintptr_t)name, .length = length};
    size_t at = bw_send_command(sender, parent ? BW_COMMAND_SNAPSHOT : BW_COMMAND_SUBVOL, &path);
    bw_attribute_add(sender->commands, BW_ATTRIBUTE_UUID, sent->uuid, BW_UUID_SIZE);
    bw_attribute_add_number(sender->commands, BW_ATTRIBUTE_CTRANSID, sent->ctransid);
    if (parent) {
        bw_attribute_add(sender->commands, BW_ATTRIBUTE_CLONE_UUID, parent->uuid, BW_UUID_SIZE);
        bw_attribute_add_number(sender->commands, BW_ATTRIBUTE_CLONE_CTRANSID, parent->ctransid);
    }
    bw_send_command_end(sender, at);
    return bw_send_run(sender);
}

struct bw_error *bw_send(const struct bw_send_side *side, const struct bw_send_options *options,
                         struct bw_send_summary *summary)
{
    struct bw_sender sender = {0};
    BW_TRY(BW_TAKE_OPTIONS(&sender.options, options));
    options = &sender.options;
    sender.options.version = options->version ? options->version : 1;
    if (options->version > 2)
        return bw_error_create(BW_ERROR_USAGE, "the protocol is 1 or 2");
    if (options->compressed && options->version < 2)
        return bw_error_create(BW_ERROR_USAGE, "compressed data need protocol 2");
    if (options->parent && is_same(side, options->parent))
        return bw_error_create(BW_ERROR_USAGE, "a subvolume cannot be its own parent");
    struct bw_error *error = send_all(&sender, side);
    bw_send_jobs_destroy(sender.jobs);
    bw_send_clones_destroy(sender.clones);
    for (size_t i = 0; i < sender.root_count; i++)
        bw_send_root_free(&sender.roots[i]);
    free(sender.roots);
    bw_buffer_free(&sender.withheld);
    bw_buffer_free(&sender.current.path);
    bw_buffer_free(&sender.current.capability);
    bw_buffer_free(&sender.current.undo);
    if (summary)
        *summary = sender.summary;
    return error;
}
