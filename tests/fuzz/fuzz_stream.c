/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The target for send streams as input. The input is a list of steps, from which a stream is made:
 * commands with paths and numbers that make sense or are hostile. Or, if the second bit of the
 * first byte is set, it is the stream itself, whose checksums are corrected. The stream is opened
 * like an image, checked, listed, and its files are read. Whatever it contains, that ends, and
 * listing again gives the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/crc32c.h"
#include "btrfs-walk/check.h"
#include "btrfs-walk/file.h"
#include "btrfs-walk/fs.h"
#include "btrfs-walk/walk.h"
#include "fuzz/targets.h"
#include "stream/encoder.h"

enum { STEPS = 400, READ = 64 << 10, FILES = 64, LISTED = 16 << 20 };

/* A step of the input. */
struct step {
    uint8_t command, path, other, number, value, data;
};

/* Paths, good and bad. */
static const char *const paths[] = {
    "a",      "b",    "c",       "d",    "a/b",   "a/c", "a/b/c", "d/a",   "d/a/b/c", "o257-7-0",
    "",       "../a", "/a",      "a//b", "a/.",   "a/",  "./a",   "a/..",  ".",       "..",
    "link/a", "link", "a/a/a/a", "\n",   "\xff/", "b/a", "b/b",   "c/link"};

/* Offsets, sizes, modes and times. */
static const uint64_t numbers[] = {0,
                                   1,
                                   4095,
                                   4096,
                                   4097,
                                   8192,
                                   65536,
                                   100000,
                                   UINT64_C(1) << 31,
                                   UINT64_C(1) << 32,
                                   (UINT64_C(1) << 63) - 4096,
                                   (UINT64_C(1) << 63) - 1,
                                   UINT64_C(1) << 63,
                                   UINT64_MAX - 4095,
                                   UINT64_MAX,
                                   0777,
                                   040755,
                                   0100644,
                                   0120777,
                                   131072};

static const char *const names[] = {
    "user.a", "security.capability", "btrfs.compression", "system.posix_acl_default", "", "user.b"};

#define PICK(list, number) (list)[(number) % (sizeof(list) / sizeof *(list))]

static void add_text(struct bw_buffer *to, enum bw_send_attribute type, const char *text)
{
    bw_attribute_add(to, type, text, strlen(text));
}

/* One of few subvolumes. */
static void add_uuid(struct bw_buffer *to, enum bw_send_attribute type, uint8_t number)
{
    uint8_t uuid[16] = {number % 4};
    bw_attribute_add(to, type, uuid, sizeof uuid);
}

static void add_number(struct bw_buffer *to, enum bw_send_attribute type, uint8_t number)
{
    const uint64_t value = PICK(numbers, number);
    const struct timespec time = {(time_t)value, 999999999};
    switch (type) {
    case BW_ATTRIBUTE_FALLOCATE_MODE:
    case BW_ATTRIBUTE_COMPRESSION:
    case BW_ATTRIBUTE_ENCRYPTION:
        bw_attribute_add_number32(to, type, number % 16);
        break;
    case BW_ATTRIBUTE_ATIME:
    case BW_ATTRIBUTE_MTIME:
    case BW_ATTRIBUTE_CTIME:
    case BW_ATTRIBUTE_OTIME:
        bw_attribute_add_time(to, type, &time);
        break;
    default:
        bw_attribute_add_number(to, type, value);
    }
}

static void add_data(struct bw_buffer *to, const struct step *step, unsigned version)
{
    size_t at = bw_data_attribute_begin(to, version);
    for (size_t i = 0; i < (size_t)step->data * 64; i++)
        bw_buffer_append_byte(to, (char)(step->data ^ i));
    bw_data_attribute_end(to, at, version);
}

/* Numbers of attributes are shifted against each other, so that they may differ. */
static void add_attribute(struct bw_buffer *to, enum bw_send_attribute type,
                          const struct step *step)
{
    switch (type) {
    case BW_ATTRIBUTE_PATH:
        add_text(to, type, PICK(paths, step->path));
        break;
    case BW_ATTRIBUTE_PATH_TO:
    case BW_ATTRIBUTE_PATH_LINK:
    case BW_ATTRIBUTE_CLONE_PATH:
        add_text(to, type, PICK(paths, step->other));
        break;
    case BW_ATTRIBUTE_UUID:
        add_uuid(to, type, step->number);
        break;
    case BW_ATTRIBUTE_CLONE_UUID:
        add_uuid(to, type, step->value);
        break;
    case BW_ATTRIBUTE_XATTR_NAME:
        add_text(to, type, PICK(names, step->number));
        break;
    case BW_ATTRIBUTE_XATTR_DATA:
        bw_attribute_add(to, type, "value and more of it", step->data % 20);
        break;
    case BW_ATTRIBUTE_FILE_OFFSET:
    case BW_ATTRIBUTE_SIZE:
    case BW_ATTRIBUTE_UNENCODED_FILE_LEN:
        add_number(to, type, step->number);
        break;
    case BW_ATTRIBUTE_UNENCODED_OFFSET:
        add_number(to, type, step->other);
        break;
    default:
        add_number(to, type, step->value);
    }
}

/* The attributes of each command; DATA is added last. */
static const uint64_t attributes[] = {
#define A(NAME)                                        (UINT64_C(1) << BW_ATTRIBUTE_##NAME)
#define COMMAND(number, NAME, name, version, required) [number] = (required),
#include "stream/commands.def"
#undef A
};

static void add_command(struct bw_buffer *to, const struct step *step, unsigned version)
{
    const enum bw_send_command command = step->command % BW_COMMAND_TYPES;
    const uint64_t all = attributes[command];
    const uint64_t data = UINT64_C(1) << BW_ATTRIBUTE_DATA;
    size_t at = bw_command_begin(to, command);
    for (unsigned type = 1; type < BW_ATTRIBUTE_TYPES; type++)
        if (all >> type & 1 && type != BW_ATTRIBUTE_DATA)
            add_attribute(to, type, step);
    if (all & data)
        add_data(to, step, version);
    bw_command_end(to, at);
    if (command == BW_COMMAND_END)
        bw_stream_begin(to, version);
}

static void make(struct bw_buffer *to, const uint8_t *data, size_t size)
{
    const unsigned version = 1 + data[0] % 2;
    const struct step first = {.command = BW_COMMAND_SUBVOL};
    struct step step;
    bw_stream_begin(to, version);
    add_command(to, &first, version);
    data++, size--;
    for (size_t i = 0; i < STEPS && size >= sizeof step; i++) {
        memcpy(&step, data, sizeof step);
        data += sizeof step, size -= sizeof step;
        add_command(to, &step, version);
    }
}

/* Copies a stream, and sets the checksums of its commands. */
static void correct(struct bw_buffer *to, const uint8_t *data, size_t size)
{
    bw_stream_begin(to, 1 + data[0] % 2);
    size_t at = to->length;
    bw_buffer_append(to, data + 1, size - 1);
    struct bw_command_header header;
    while (to->length - at >= sizeof header) {
        memcpy(&header, to->data + at, sizeof header);
        const size_t length = bw_get32(header.length);
        if (length > to->length - at - sizeof header)
            break;
        header.crc = bw_put32(0);
        memcpy(to->data + at, &header, sizeof header);
        header.crc = bw_put32(bw_crc32c(0, to->data + at, sizeof header + length));
        memcpy(to->data + at, &header, sizeof header);
        at += sizeof header + length;
        if (bw_get16(header.command) == BW_COMMAND_END)
            at += sizeof(struct bw_stream_header);
        if (at > to->length)
            break;
    }
}

/* Looking at it. */

struct outcome {
    struct bw_fs *fs;
    uint64_t entries, length, sum;
    unsigned files;
};

static void sum_parts(struct outcome *outcome, struct bw_file *file, uint64_t offset)
{
    const struct bw_data_part *part = NULL;
    BW_AUTO_ERROR struct bw_error *error = bw_file_begin_parts(file, offset, READ);
    while (!error && !(error = bw_file_next_part(file, &part)) && part) {
        outcome->sum += part->kind;
        for (uint64_t i = 0; part->kind == BW_DATA_BYTES && i < part->length; i++)
            outcome->sum = (outcome->sum ^ part->bytes[i]) * UINT64_C(0x100000001b3);
    }
}

static struct bw_error *on_entry(void *context, const struct bw_entry *entry)
{
    struct outcome *outcome = context;
    struct bw_file *file;
    outcome->entries++;
    outcome->length += entry->path_length;
    for (size_t i = 0; i < entry->path_length; i++)
        outcome->sum = (outcome->sum ^ (uint8_t)entry->path[i]) * UINT64_C(0x100000001b3);
    if (outcome->length > LISTED)
        return bw_error_create(BW_ERROR_STOPPED, "enough");
    if (entry->place.type != BW_FILE_REGULAR || ++outcome->files > FILES || !entry->inode)
        return NULL;
    struct bw_error *error = bw_file_open(outcome->fs, &entry->place, NULL, &file);
    if (!error) {
        const uint64_t size = entry->inode->size;
        sum_parts(outcome, file, 0);
        sum_parts(outcome, file, size > READ ? size - READ : 0);
        bw_file_close(file);
    }
    bw_error_free(error);
    return NULL;
}

static struct outcome look(const char *path)
{
    struct outcome outcome = {.fs = NULL};
    const struct bw_fs_options options = {.struct_size = sizeof options,
                                          .paths = &path,
                                          .path_count = 1,
                                          .superblock_copy = BW_ANY_SUPERBLOCK_COPY};
    const struct bw_walk_options walk = {.struct_size = sizeof walk,
                                         .types = BW_WALK_ALL,
                                         .threads = 1,
                                         .visit = on_entry,
                                         .visit_inodes = true,
                                         .context = &outcome};
    const struct bw_check_options check = {.struct_size = sizeof check, .threads = 1};
    struct bw_check_summary *summary = NULL;
    struct bw_error *error = bw_fs_open(&options, &outcome.fs);
    if (!error) {
        bw_error_free(bw_walk(outcome.fs, &walk, NULL));
        bw_error_free(bw_check(outcome.fs, &check, &summary));
    }
    bw_error_free(error);
    bw_check_summary_free(summary);
    bw_fs_close(outcome.fs);
    outcome.fs = NULL;
    return outcome;
}

void fuzz_stream(const uint8_t *data, size_t size)
{
    struct bw_buffer stream = {0};
    char path[32];
    if (!size)
        return;
    (data[0] & 2 ? correct : make)(&stream, data, size);
    const int fd = memfd_create("stream", MFD_CLOEXEC);
    if (fd < 0 || stream.failed || write(fd, stream.data, stream.length) != (ssize_t)stream.length)
        fuzz_fail("the stream cannot be written");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const struct outcome first = look(path), again = look(path);
    if (first.entries != again.entries || first.sum != again.sum)
        fuzz_fail("listing again gives something else");
    close(fd);
    bw_buffer_free(&stream);
}
