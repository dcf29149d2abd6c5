/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands of streams as records: each one of each stream, in order, with its attributes. */
#include "btrfs-walk/stream.h"

#include "base/cleanup.h"
#include "stream/stream_reader.h"
#include "stream/streams.h"

static uint64_t number_of(const struct bw_stream_command *command, enum bw_send_attribute type)
{
    return bw_command_has(command, type) ? bw_command_number(command, type) : BW_ABSENT;
}

static uint64_t length_of(const struct bw_stream_command *command, enum bw_send_attribute type)
{
    return bw_command_has(command, type) ? command->attributes[type].length : BW_ABSENT;
}

static struct bw_bytes bytes_of(const struct bw_stream_command *command,
                                enum bw_send_attribute type)
{
    const struct bw_stream_attribute *attribute = &command->attributes[type];
    return (struct bw_bytes){(const char *)attribute->data, attribute->length};
}

/* Times that do not fit into the record become its limits. */
static int64_t time_of(const struct bw_stream_command *command, enum bw_send_attribute type)
{
    const struct bw_stream_time time = bw_command_time(command, type);
    const int64_t seconds = (int64_t)bw_get64(time.seconds);
    int64_t nanoseconds;
    if (!bw_command_has(command, type))
        return BW_ABSENT_SIGNED;
    if (__builtin_mul_overflow(seconds, INT64_C(1000000000), &nanoseconds) ||
        __builtin_add_overflow(nanoseconds, (int64_t)bw_get32(time.nanoseconds), &nanoseconds))
        return seconds < 0 ? INT64_MIN : INT64_MAX;
    return nanoseconds;
}

#define NUMBER(TYPE, name) row->name = number_of(command, BW_ATTRIBUTE_##TYPE)
#define LENGTH(TYPE, name) row->name = length_of(command, BW_ATTRIBUTE_##TYPE)
#define TIME(TYPE, name)   row->name = time_of(command, BW_ATTRIBUTE_##TYPE)
#define BYTES(TYPE, name)  row->name = bytes_of(command, BW_ATTRIBUTE_##TYPE)

/* In a stream, the numbers of devices have the encoding of struct stat. */
static void fill_row(const struct bw_stream_command *command, struct bw_commandinfo *row)
{
    const uint64_t rdev = number_of(command, BW_ATTRIBUTE_RDEV);
    row->rdev_major = row->rdev_minor = BW_ABSENT;
    if (rdev != BW_ABSENT) {
        row->rdev_major = rdev >> 8 & 0xfff;
        row->rdev_minor = (rdev & 0xff) | (rdev >> 12 & 0xfff00);
    }
    BYTES(PATH, path);
    row->path_bytes = row->path;
    BYTES(PATH_TO, new_path);
    BYTES(PATH_LINK, target);
    BYTES(UUID, uuid);
    NUMBER(CTRANSID, ctransid);
    NUMBER(INO, inode);
    NUMBER(SIZE, size);
    NUMBER(MODE, mode);
    NUMBER(UID, uid);
    NUMBER(GID, gid);
    TIME(ATIME, atime);
    TIME(MTIME, mtime);
    TIME(CTIME, ctime);
    TIME(OTIME, otime);
    BYTES(XATTR_NAME, xattr);
    BYTES(XATTR_DATA, value);
    NUMBER(FILEATTR, flags);
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

/* Visits the commands of one stream, in order. A command that is damaged is reported and left out
 * if its length is known. `subvolume` is the name of the subvolume that the last SUBVOL or SNAPSHOT
 * has begun. */
static struct bw_error *visit_stream(struct bw_fs *fs, const struct bw_image *image,
                                     struct bw_stream_reader *reader, struct bw_buffer *subvolume,
                                     bw_command_visitor *visit, void *context)
{
    struct bw_stream_command command;
    bool got = true;
    while (got) {
        struct bw_error *error = bw_stream_next(reader, &command, &got);
        if (error && !reader->can_continue)
            return error;
        if (error) {
            bw_fs_report(fs, BW_DAMAGE, bw_error_prefix(error, "%s", image->name));
            got = true;
            continue;
        }
        if (!got)
            break;
        if (command.type == BW_COMMAND_SUBVOL || command.type == BW_COMMAND_SNAPSHOT) {
            const struct bw_stream_attribute *name = &command.attributes[BW_ATTRIBUTE_PATH];
            BW_TRY(bw_buffer_set(subvolume, name->data, name->length));
        }
        struct bw_commandinfo row = {.device = image->name,
                                     .offset = command.offset,
                                     .length = command.length,
                                     .format_version = reader->version,
                                     .command = bw_command_name(command.type)};
        if (subvolume->length)
            row.subvolume_path = (struct bw_bytes){subvolume->data, subvolume->length};
        fill_row(&command, &row);
        BW_TRY(visit(context, &row));
    }
    return NULL;
}

struct bw_error *bw_stream_commands(struct bw_fs *fs, bw_command_visitor *visit, void *context)
{
    BW_AUTO_BUFFER struct bw_buffer subvolume = {0};
    if (!fs->is_stream)
        return bw_error_create(BW_ERROR_USAGE, "the images are not send streams");
    for (size_t i = 0; i < fs->image_count; i++) {
        const struct bw_image *image = &fs->images[i];
        const struct bw_stream_source source = bw_image_stream(image);
        struct bw_stream_reader reader;
        bw_stream_reader_init(&reader, &source);
        struct bw_error *error = visit_stream(fs, image, &reader, &subvolume, visit, context);
        if (error && reader.fault != BW_STREAM_NONE)
            error = bw_error_prefix(error, "%s", image->name);
        bw_stream_reader_free(&reader);
        BW_TRY(error);
    }
    return NULL;
}
