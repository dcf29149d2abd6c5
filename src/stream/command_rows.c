/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands of streams as records. */
#include "btrfs-walk/stream.h"

#include <inttypes.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "stream/source.h"
#include "stream/stream_reader.h"

/* A command that becomes a record. */
struct filling {
    const struct bw_stream_command *command;
    struct bw_commandinfo *row;
    uint64_t absent;
};

static void set_number(struct filling *filling, enum bw_send_attribute type, uint64_t *to,
                       uint64_t member)
{
    if (bw_command_has(filling->command, type))
        *to = bw_command_number(filling->command, type);
    else
        filling->absent |= member;
}

static void set_length(struct filling *filling, enum bw_send_attribute type, uint64_t *to,
                       uint64_t member)
{
    if (bw_command_has(filling->command, type))
        *to = filling->command->attributes[type].length;
    else
        filling->absent |= member;
}

static void set_bytes(struct filling *filling, enum bw_send_attribute type, struct bw_bytes *to)
{
    const struct bw_stream_attribute *attribute = &filling->command->attributes[type];
    if (attribute->data)
        *to = (struct bw_bytes){(const char *)attribute->data, attribute->length};
}

/* Times that do not fit into the record become its limits. */
static void set_time(struct filling *filling, enum bw_send_attribute type, int64_t *to,
                     uint64_t member)
{
    const struct bw_stream_time time = bw_command_time(filling->command, type);
    const int64_t seconds = (int64_t)bw_get64(time.seconds);
    if (!bw_command_has(filling->command, type))
        filling->absent |= member;
    else if (__builtin_mul_overflow(seconds, INT64_C(1000000000), to) ||
             __builtin_add_overflow(*to, (int64_t)bw_get32(time.nanoseconds), to))
        *to = seconds < 0 ? INT64_MIN : INT64_MAX;
}

/* In a stream, devices have the encoding of struct stat. */
static void set_device(struct filling *filling)
{
    const uint64_t rdev = bw_command_number(filling->command, BW_ATTRIBUTE_RDEV);
    filling->row->rdev_major = rdev >> 8 & 0xfff;
    filling->row->rdev_minor = (rdev & 0xff) | (rdev >> 12 & 0xfff00);
    if (!bw_command_has(filling->command, BW_ATTRIBUTE_RDEV))
        filling->absent |= BW_MEMBER(commandinfo, rdev_major) | BW_MEMBER(commandinfo, rdev_minor);
}

#define NUMBER(TYPE, name) \
    set_number(filling, BW_ATTRIBUTE_##TYPE, &filling->row->name, BW_MEMBER(commandinfo, name))
#define LENGTH(TYPE, name) \
    set_length(filling, BW_ATTRIBUTE_##TYPE, &filling->row->name, BW_MEMBER(commandinfo, name))
#define TIME(TYPE, name) \
    set_time(filling, BW_ATTRIBUTE_##TYPE, &filling->row->name, BW_MEMBER(commandinfo, name))
#define BYTES(TYPE, name) set_bytes(filling, BW_ATTRIBUTE_##TYPE, &filling->row->name)

static void fill_inode(struct filling *filling)
{
    NUMBER(INO, inode);
    NUMBER(SIZE, size);
    NUMBER(MODE, mode);
    NUMBER(UID, uid);
    NUMBER(GID, gid);
    set_device(filling);
    TIME(ATIME, atime);
    TIME(MTIME, mtime);
    TIME(CTIME, ctime);
    TIME(OTIME, otime);
    BYTES(XATTR_NAME, xattr);
    BYTES(XATTR_DATA, value);
    NUMBER(FILEATTR, flags);
}

static void fill_data(struct filling *filling)
{
    NUMBER(FILE_OFFSET, file_offset);
    LENGTH(DATA, data_length);
    BYTES(CLONE_UUID, clone_uuid);
    NUMBER(CLONE_CTRANSID, clone_ctransid);
    BYTES(CLONE_PATH, clone_path);
    NUMBER(CLONE_OFFSET, clone_file_offset);
    NUMBER(CLONE_LEN, clone_length);
    NUMBER(FALLOCATE_MODE, fallocate_mode);
    NUMBER(UNENCODED_FILE_LEN, unencoded_file_length);
    NUMBER(UNENCODED_LEN, unencoded_length);
    NUMBER(UNENCODED_OFFSET, unencoded_offset);
    NUMBER(COMPRESSION, encoding);
    NUMBER(ENCRYPTION, encryption);
    NUMBER(VERITY_ALGORITHM, verity_algorithm);
    NUMBER(VERITY_BLOCK_SIZE, verity_block_size);
    LENGTH(VERITY_SALT_DATA, verity_salt_length);
    LENGTH(VERITY_SIG_DATA, verity_signature_length);
}

static void fill_names(struct filling *filling)
{
    BYTES(PATH, path);
    filling->row->path_bytes = filling->row->path;
    BYTES(PATH_TO, new_path);
    BYTES(PATH_LINK, target);
    BYTES(UUID, uuid);
    NUMBER(CTRANSID, ctransid);
}

/* The streams of a file system. */
struct listing {
    bw_command_visitor *visit;
    void *context;
    struct bw_buffer subvolume; /* name of the current one */
    const char *device;
};

/* Remembers the name of the subvolume that a command begins. */
static struct bw_error *note_subvolume(struct listing *listing,
                                       const struct bw_stream_command *command)
{
    const struct bw_stream_attribute *name = &command->attributes[BW_ATTRIBUTE_PATH];
    if (command->type != BW_COMMAND_SUBVOL && command->type != BW_COMMAND_SNAPSHOT)
        return NULL;
    listing->subvolume.length = 0;
    bw_buffer_append(&listing->subvolume, name->data, name->length);
    return listing->subvolume.failed ? bw_error_no_memory() : NULL;
}

static struct bw_error *visit_row(struct listing *listing, const struct bw_stream_reader *reader,
                                  const struct bw_stream_command *command)
{
    struct bw_commandinfo row = {.device = listing->device,
                                 .offset = command->offset,
                                 .length = command->length,
                                 .format_version = reader->version,
                                 .command = bw_command_name(command->type)};
    struct filling filling = {command, &row, 0};
    BW_TRY(note_subvolume(listing, command));
    if (listing->subvolume.length)
        row.subvolume_path = (struct bw_bytes){listing->subvolume.data, listing->subvolume.length};
    fill_names(&filling);
    fill_inode(&filling);
    fill_data(&filling);
    return listing->visit(listing->context, &row, filling.absent);
}

static struct bw_error *read_stream(struct bw_fs *fs, struct bw_stream_reader *reader,
                                    struct listing *listing)
{
    struct bw_stream_command command;
    bool got = true;
    while (got) {
        struct bw_error *error = bw_stream_next(reader, &command, &got);
        if (error && !reader->can_continue)
            return error;
        if (error) {
            bw_fs_report(fs, BW_DAMAGE, bw_error_prefix(error, "%s", listing->device));
            got = true;
        } else if (got) {
            BW_TRY(visit_row(listing, reader, &command));
        }
    }
    return NULL;
}

struct bw_error *bw_stream_commands(struct bw_fs *fs, bw_command_visitor *visit, void *context)
{
    struct listing listing = {.visit = visit, .context = context};
    struct bw_error *error =
        fs->is_stream ? NULL : bw_error_create(BW_ERROR_USAGE, "the images are not send streams");
    for (size_t i = 0; !error && i < fs->image_count; i++) {
        struct bw_stream_reader reader;
        const struct bw_stream_source source = bw_image_stream(&fs->images[i]);
        bw_stream_reader_init(&reader, &source);
        listing.device = fs->images[i].name;
        error = read_stream(fs, &reader, &listing);
        if (error && reader.fault != BW_STREAM_NONE)
            error = bw_error_prefix(error, "%s", listing.device);
        bw_stream_reader_free(&reader);
    }
    bw_buffer_free(&listing.subvolume);
    return error;
}
