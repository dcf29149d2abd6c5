/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Receiving hostile streams, and commands without memory. tests/command/extract.sh receives good
 * streams. */
#include <fcntl.h>
#include <unistd.h>

#include "btrfs-walk/stream.h"
#include "stream/encoder.h"
#include "support/walk_helpers.h"

struct bench {
    char folder[32];
    int descriptor;
    struct bw_receiver *receiver;
    struct bw_buffer stream;
};

static void add_path(struct bench *bench, const char *path)
{
    bw_attribute_add(&bench->stream, BW_ATTRIBUTE_PATH, path, strlen(path));
}

/* A stream that has begun the subvolume "s". */
static void begin(struct bench *bench)
{
    *bench = (struct bench){.folder = "/tmp/receiver-XXXXXX"};
    assert_non_null(mkdtemp(bench->folder));
    bench->descriptor = open(bench->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct bw_receiver_options options = {
        .struct_size = sizeof options, .folder = bench->descriptor, .top = bench->descriptor};
    expect_success(bw_receiver_create(&options, &bench->receiver));
    bw_stream_begin(&bench->stream, 1);
    const size_t at = bw_command_begin(&bench->stream, BW_COMMAND_SUBVOL);
    add_path(bench, "s");
    bw_attribute_add(&bench->stream, BW_ATTRIBUTE_UUID, "the uuid of this", 16);
    bw_attribute_add_number(&bench->stream, BW_ATTRIBUTE_CTRANSID, 7);
    bw_command_end(&bench->stream, at);
}

static struct bw_error *receive(struct bench *bench)
{
    return bw_receiver_add(bench->receiver, bench->stream.data, bench->stream.length);
}

static void end(struct bench *bench, const char *file)
{
    bw_receiver_destroy(bench->receiver);
    bw_buffer_free(&bench->stream);
    unlinkat(bench->descriptor, file, 0);
    assert_int_equal(unlinkat(bench->descriptor, "s", AT_REMOVEDIR), 0);
    close(bench->descriptor);
    assert_int_equal(rmdir(bench->folder), 0);
}

static void add_fifo(struct bench *bench, const char *path)
{
    const size_t at = bw_command_begin(&bench->stream, BW_COMMAND_MKFIFO);
    add_path(bench, path);
    bw_attribute_add_number(&bench->stream, BW_ATTRIBUTE_INO, 257);
    bw_attribute_add_number(&bench->stream, BW_ATTRIBUTE_RDEV, 0);
    bw_attribute_add_number(&bench->stream, BW_ATTRIBUTE_MODE, 010644);
    bw_command_end(&bench->stream, at);
}

/* Special files are never opened. As root, a stream can make the node of a disk. */
static void test_write_to_special_file(void **state)
{
    struct bench bench;
    begin(&bench);
    add_fifo(&bench, "node");
    const size_t at = bw_command_begin(&bench.stream, BW_COMMAND_WRITE);
    add_path(&bench, "node");
    bw_attribute_add_number(&bench.stream, BW_ATTRIBUTE_FILE_OFFSET, 0);
    bw_attribute_add(&bench.stream, BW_ATTRIBUTE_DATA, "data", 4);
    bw_command_end(&bench.stream, at);
    expect_error(receive(&bench), BW_ERROR_CORRUPT, "node is not a regular file");
    end(&bench, "s/node");
}

/* No offset stands for the position of the descriptor. */
static void test_write_at_greatest_offset(void **state)
{
    struct bench bench;
    begin(&bench);
    size_t at = bw_command_begin(&bench.stream, BW_COMMAND_MKFILE);
    add_path(&bench, "file");
    bw_attribute_add_number(&bench.stream, BW_ATTRIBUTE_INO, 257);
    bw_command_end(&bench.stream, at);
    at = bw_command_begin(&bench.stream, BW_COMMAND_WRITE);
    add_path(&bench, "file");
    bw_attribute_add_number(&bench.stream, BW_ATTRIBUTE_FILE_OFFSET, UINT64_MAX);
    bw_attribute_add(&bench.stream, BW_ATTRIBUTE_DATA, "data", 4);
    bw_command_end(&bench.stream, at);
    expect_error(receive(&bench), BW_ERROR_SYSTEM, "cannot write file: Invalid argument");
    end(&bench, "s/file");
}

/* Opening a device can be enough to have an effect. */
static void test_clone_from_special_file(void **state)
{
    struct bench bench;
    begin(&bench);
    add_fifo(&bench, "node");
    size_t at = bw_command_begin(&bench.stream, BW_COMMAND_MKFILE);
    add_path(&bench, "file");
    bw_attribute_add_number(&bench.stream, BW_ATTRIBUTE_INO, 258);
    bw_command_end(&bench.stream, at);
    at = bw_command_begin(&bench.stream, BW_COMMAND_CLONE);
    bw_attribute_add_number(&bench.stream, BW_ATTRIBUTE_FILE_OFFSET, 0);
    bw_attribute_add_number(&bench.stream, BW_ATTRIBUTE_CLONE_LEN, 4096);
    add_path(&bench, "file");
    bw_attribute_add(&bench.stream, BW_ATTRIBUTE_CLONE_UUID, "the uuid of this", 16);
    bw_attribute_add_number(&bench.stream, BW_ATTRIBUTE_CLONE_CTRANSID, 7);
    bw_attribute_add(&bench.stream, BW_ATTRIBUTE_CLONE_PATH, "node", 4);
    bw_attribute_add_number(&bench.stream, BW_ATTRIBUTE_CLONE_OFFSET, 0);
    bw_command_end(&bench.stream, at);
    expect_error(receive(&bench), BW_ERROR_SYSTEM, "cannot open node: Invalid argument");
    assert_int_equal(unlinkat(bench.descriptor, "s/file", 0), 0);
    end(&bench, "s/node");
}

/* An incomplete file keeps none of its names: links precede the contents. */
static void test_broken_off(void **state)
{
    struct bench bench;
    begin(&bench);
    size_t at = bw_command_begin(&bench.stream, BW_COMMAND_MKDIR);
    add_path(&bench, "d");
    bw_attribute_add_number(&bench.stream, BW_ATTRIBUTE_INO, 257);
    bw_command_end(&bench.stream, at);
    at = bw_command_begin(&bench.stream, BW_COMMAND_MKFILE);
    add_path(&bench, "file");
    bw_attribute_add_number(&bench.stream, BW_ATTRIBUTE_INO, 258);
    bw_command_end(&bench.stream, at);
    at = bw_command_begin(&bench.stream, BW_COMMAND_LINK);
    add_path(&bench, "d/link");
    bw_attribute_add(&bench.stream, BW_ATTRIBUTE_PATH_LINK, "file", 4);
    bw_command_end(&bench.stream, at);
    expect_success(receive(&bench));
    bw_receiver_destroy(bench.receiver);
    bench.receiver = NULL;
    assert_int_equal(faccessat(bench.descriptor, "s/file", F_OK, 0), -1);
    assert_int_equal(unlinkat(bench.descriptor, "s/d", AT_REMOVEDIR), 0);
    end(&bench, "s/none");
}

/* A command that claims gigabytes is refused at once, not collected in memory. */
static void test_long_command(void **state)
{
    struct bench bench;
    begin(&bench);
    const struct bw_command_header header = {.length = bw_put32(UINT32_MAX),
                                             .command = bw_put16(BW_COMMAND_WRITE)};
    bw_buffer_append(&bench.stream, &header, sizeof header);
    expect_error(receive(&bench), BW_ERROR_CORRUPT, "cut off");
    end(&bench, "s/none");
}

/* If memory has run out, a command is not completed in the buffer that has none. */
static void test_command_without_memory(void **state)
{
    struct bw_buffer stream = {.failed = true};
    bw_data_attribute_end(&stream, 0, 1);
    bw_command_end(&stream, 0);
    assert_int_equal(stream.length, 0);
}
