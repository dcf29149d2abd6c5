/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The send command: subvolumes as streams for `btrfs receive`. Options are those of `btrfs send`.
 *
 * One list has all subvolumes: first those to send, in their order, then the clone sources, then
 * the parent. A subvolume that the receiver has, because it was sent or given as a source, can be
 * the parent of the next (send_list.h).
 */
#include "btrfs-walk/stream.h"

#include <limits.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/common/generations.h"
#include "cli/common/monitor.h"
#include "cli/common/output.h"
#include "cli/export/export.h"
#include "export/send_list.h"

/* A running send command. */
struct sending {
    /* The options. */
    const char *file_name, *folder_name, *parent;
    struct bw_const_strings sources;
    uint64_t version;
    bool has_version, compressed, no_data, joined, recursive, force;
    unsigned on_error, threads;

    /* While it runs. */
    const struct cmd_common *common;
    struct bw_fs *fs;
    struct cmd_output *output; /* of the file that is being written */
    struct bw_send_list list;
};

static const struct cmd_option options[] = {
    CMD_FILE_OPTION(struct sending, file_name),
    CMD_FOLDER_OPTION(struct sending, folder_name),
    {'R', "recursive", NULL,
     "also send all snapshots and nested subvolumes, as differences where possible",
     CMD_FLAG(struct sending, recursive)},
    {'p', "parent", "SUBVOLUME",
     "send only the differences from this subvolume, which the receiver has",
     CMD_TEXT(struct sending, parent)},
    {0, "clone-source", "SUBVOLUME",
     "clone data from this subvolume, which the receiver has; the best becomes the parent",
     CMD_APPEND(struct sending, sources)},
    {'e', "joined", NULL, "write several subvolumes as one stream, with one header and one end",
     CMD_FLAG(struct sending, joined)},
    {0, "force", NULL,
     "use a parent or clone source although the receiver may have another under its UUID",
     CMD_FLAG(struct sending, force)},
    {0, "proto", "N", "version of the protocol: 1 (default), 2, or 0 for the latest",
     CMD_NUMBER(struct sending, version, 0, 2, "0, 1 or 2"),
     CMD_GIVEN(struct sending, has_version)},
    {0, "compressed-data", NULL,
     "send compressed data without decompressing them; implies --proto 2",
     CMD_FLAG(struct sending, compressed)},
    {0, "no-data", NULL, "send only the changed ranges of files, without their contents",
     CMD_FLAG(struct sending, no_data)},
    CMD_ON_ERROR_OPTION(struct sending, on_error, "file", "fail"),
    CMD_THREADS_OPTION(struct sending, threads),
    {0},
};

/* Adds a subvolume to the list; `is_base`: as parent or clone source. */
static struct bw_error *add_subvolume(struct sending *sending, const char *text, bool is_base)
{
    struct bw_send_list *list = &sending->list;
    struct bw_fs *past;
    const struct bw_subvolume *subvolume;
    struct bw_error *error =
        cmd_find_subvolume(sending->common, sending->fs, text, &past, &subvolume);
    if (error) {
        bw_fs_close(past);
        return error;
    }
    struct bw_fs *fs = past ? past : sending->fs;
    if (is_base)
        return bw_send_list_add_base(list, fs, subvolume, past, sending->force);
    return bw_send_list_add(list, fs, subvolume, past);
}

/* Lists the subvolumes to send, the clone sources and the parent. */
static struct bw_error *find_all(struct sending *sending)
{
    struct bw_send_list *list = &sending->list;
    for (size_t i = 0; i < sending->common->path_count; i++)
        BW_TRY(add_subvolume(sending, sending->common->paths[i], false));
    if (sending->recursive) {
        BW_TRY(bw_send_list_add_relatives(list, sending->fs));
        bw_send_list_sort(list);
    }
    if (list->list.count > 1)
        BW_TRY(bw_send_list_name(list));
    for (size_t i = 0; i < sending->sources.count; i++)
        BW_TRY(add_subvolume(sending, sending->sources.items[i], true));
    return sending->parent ? add_subvolume(sending, sending->parent, true) : NULL;
}

static struct bw_error *write_bytes(void *context, const void *bytes, size_t length)
{
    const struct sending *sending = context;
    cmd_progress_add(length);
    return cmd_write(sending->output, bytes, length);
}

static struct bw_error *send_one(struct sending *sending, size_t number)
{
    static const enum bw_send_damage damages[] = {[CMD_ON_ERROR_FAIL] = BW_SEND_STOP,
                                                  [CMD_ON_ERROR_ZERO] = BW_SEND_ZERO,
                                                  [CMD_ON_ERROR_SKIP] = BW_SEND_SKIP};
    struct bw_send_list *list = &sending->list;
    struct bw_sent *sent = &list->list.items[number];

    /* Report why a stream has another UUID than the subvolume: a stream that has this one as its
     * parent can only be sent together with it. */
    const char *reason = sent->reason;
    if (!reason && sending->on_error != CMD_ON_ERROR_FAIL)
        reason = "contents that cannot be read are replaced or left out";
    if (reason) {
        const struct bw_bytes name = bw_sent_name(sent);
        bw_fs_report(sent->side.fs, BW_NOTE,
                     bw_error_create(BW_ERROR_UNSUPPORTED, "%.*s is sent under a new UUID: %s",
                                     (int)name.length, name.data, reason));
    }

    const bool newest = sending->has_version ? sending->version != 1 : sending->compressed;
    const struct bw_send_options how = {
        .struct_size = sizeof how,
        .version = newest ? 2 : 1,
        .compressed = sending->compressed,
        .no_data = sending->no_data,
        .no_header = sending->joined && number,
        .no_end = sending->joined && number + 1 < list->send_count,
        .damage = damages[sending->on_error],
        .threads = sending->threads,
        .write = write_bytes,
        .context = sending,
    };
    const bool incremental = sending->parent || sending->sources.count || sending->recursive;
    const struct bw_sent *parent = NULL;
    if (sending->parent)
        parent = &list->list.items[list->list.count - 1];
    else if (incremental)
        parent = bw_send_list_parent(list, number);
    return bw_send_list_send(list, number, &how, parent, incremental);
}

/* Sends one subvolume to a separate file. */
static struct bw_error *send_to_folder(struct sending *sending, size_t number)
{
    static const char suffix[] = ".btrfs";

    /* The file is named by the subvolume; a name that would be too long is cut off. */
    const struct bw_bytes own = bw_sent_name(&sending->list.list.items[number]);
    BW_AUTO_BUFFER struct bw_buffer name = {0};
    bw_buffer_format(&name, "%04zu-", number + 1);
    const size_t room = NAME_MAX - name.length - strlen(suffix) - strlen(".part");
    bw_buffer_append(&name, own.data, own.length < room ? own.length : room);
    bw_buffer_append(&name, suffix, sizeof suffix);
    BW_TRY(bw_buffer_error(&name));

    struct cmd_folder_file file;
    BW_TRY(cmd_folder_file_open(&file, sending->common, name.data, false));
    sending->output = &file.output;
    return cmd_folder_file_close(&file, false, send_one(sending, number));
}

static const char *find_mistake(const struct cmd_common *common, const void *state)
{
    const struct sending *sending = state;
    (void)common;
    if (sending->folder_name && (sending->file_name || sending->joined))
        return "-C excludes -f and -e";
    if (sending->recursive && sending->parent)
        return "--recursive chooses parents itself: omit -p";
    if (sending->on_error == CMD_ON_ERROR_SKIP && (sending->recursive || sending->sources.count))
        return "--on-error=skip makes streams that no other stream can be based on: use zero";
    return NULL;
}

static int run(const struct cmd_common *common, void *settings)
{
    struct sending *sending = settings;
    struct bw_send_list *list = &sending->list;
    struct cmd_folder folder = {sending->folder_name, -1};
    struct cmd_output_file file;
    struct cmd_common writing = cmd_output_file_begin(&file, common, sending->file_name);
    struct cmd_session session;
    sending->common = &writing;
    sending->output = &file.output;
    if (sending->folder_name)
        writing.writing.folder = &folder;
    else
        file.binary = "a stream";
    int status = cmd_open(&writing, &session);
    if (!status) {
        sending->fs = session.fs;
        struct bw_error *error = find_all(sending);
        if (!error)
            error = cmd_output_file_start(&file);
        uint64_t bytes = 0;
        for (size_t i = 0; i < list->send_count; i++)
            bytes += list->list.items[i].info.bytes_used;
        cmd_progress_expect(bytes);
        for (size_t i = 0; !error && i < list->send_count; i++)
            if (sending->folder_name)
                error = send_to_folder(sending, i);
            else
                error = send_one(sending, i);
        if (bw_send_list_free(list)) /* there was damage in older generations */
            status = STATUS_PARTIAL;
        status = cmd_end(&writing, &session, error, status);
    }
    return status;
}

const struct command cmd_send = {
    .name = "send",
    .topic = cmd_topic_export,
    .operands = "IMAGE SUBVOLUME...",
    .summary = "Writes subvolumes as streams for btrfs receive.",
    .details =
        "\n"
        "A SUBVOLUME is a path from the top-level subvolume, or an id; NAME@N is subvolume NAME\n"
        "as of transaction N, if that is still on the disk. The output is a stream like that of\n"
        "`btrfs send`: with -p or --clone-source, it contains only the differences from a\n"
        "subvolume that the receiver has. Nested subvolumes are not included. Blocks shared with\n"
        "the parent are not read, and shared extents become clones.\n\n"
        "Writable subvolumes and older generations get a new UUID in the stream, because a\n"
        "receiver assumes that the contents of a UUID never change. A SUBVOLUME can have an\n"
        "earlier SUBVOLUME of the same command as its parent.\n\n"
        "If contents are unreadable, the stream ends without its last command, so that a\n"
        "receiver rejects it; with --on-error=zero or --on-error=skip, the stream is complete.\n",
    .examples =
        "  btrfs-walk send disk.img snapshots/1 | btrfs receive /mnt  a whole snapshot\n"
        "  btrfs-walk send -p snapshots/1 disk.img snapshots/2 > 2.btrfs  the changes\n"
        "  btrfs-walk send --compressed-data disk.img 256 > 256.btrfs  without decompressing\n"
        "  btrfs-walk send -R -C backup disk.img @     a subvolume with all its snapshots\n"
        "  btrfs-walk send --on-error=skip disk.img @ | btrfs receive /mnt\n"
        "                                              without unreadable files\n"
        "  btrfs-walk send -f home.btrfs disk.img home@1234  as of transaction 1234\n",
    .options = options,
    .find_mistake = find_mistake,
    .run = run,
    .state_size = sizeof(struct sending),
    .takes_paths = true,
    .missing = "no subvolume given",
};
