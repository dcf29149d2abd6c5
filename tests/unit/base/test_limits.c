/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/base at the limits of memory, files and processes: texts that do not fit, full disks, too few
 * descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/channel.h"
#include "base/packed.h"
#include "base/whole_io.h"
#include "support/walk_helpers.h"

static void test_a_text_without_any_room_is_empty(void **state)
{
    struct bw_buffer text = {.fixed = true};
    bw_buffer_append(&text, "text", 4);
    assert_true(text.failed);
    assert_string_equal(bw_buffer_text(&text), "");
}

static void test_a_folder_is_no_file_to_read_and_the_error_names_it(void **state)
{
    struct bw_buffer text = {0};
    expect_error(bw_buffer_read_file(&text, "/"), BW_ERROR_SYSTEM,
                 "/: cannot read: Is a directory");
    assert_int_equal(text.length, 0);
    bw_buffer_free(&text);
}

static void test_more_items_than_there_are_numbers_are_refused(void **state)
{
    size_t capacity = 0;
    assert_null(bw_vector_grow(NULL, 2, SIZE_MAX - 1, &capacity, 1));
    assert_null(bw_vector_grow(NULL, 0, SIZE_MAX / 2, &capacity, 4));
    assert_int_equal(capacity, 0);
}

static void test_a_full_disk_fails_a_write_with_its_reason(void **state)
{
    const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (full < 0)
        skip();
    errno = 0;
    assert_false(bw_write_all(full, "bytes", 5));
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(bw_read_all(-1, &(char){0}, 1), -1);
    assert_int_equal(errno, EBADF);
    close(full);
}

static void test_a_file_may_not_be_larger_than_the_limit_of_the_process(void **state)
{
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {4096, before.rlim_max};
    const int file = bw_memory_file(4096);
    assert_true(file >= 0);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const bool fits = bw_file_may_have(4096), is_larger = bw_file_may_have(4097);
    const int problem = errno, other = bw_memory_file(8192);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_true(fits);
    assert_false(is_larger);
    assert_int_equal(problem, EFBIG);
    assert_int_equal(other, -1);
    assert_false(bw_resize_file(-1, 1));
    close(file);
}

static void test_a_child_gets_the_other_end_of_the_channel(void **state)
{
    int channel, status;
    pid_t child;
    char text[6] = "";
    expect_success(bw_channel_fork(&channel, &child));
    if (!child)
        _exit(bw_channel_send(channel, "hello", 5) ? 0 : 1);
    assert_true(bw_channel_receive(channel, text, 5));
    assert_string_equal(text, "hello");
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_false(bw_channel_receive(channel, text, 1)); /* it has ended */
    close(channel);
}

static void test_without_free_descriptors_there_is_no_channel(void **state)
{
    struct rlimit before;
    int channel;
    pid_t child;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, before.rlim_max}), 0);
    struct bw_error *error = bw_channel_fork(&channel, &child);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    expect_error(error, BW_ERROR_SYSTEM, "cannot make a socket");
    assert_int_equal(channel, -1);
}

/* Adds records of so many bytes. */
static void fill(struct bw_packed *packed, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t *bytes;
        assert_int_not_equal(bw_packed_begin(packed, BW_PACKED_LONGEST, &bytes), BW_NO_RECORD);
        memset(bytes, (int)i, BW_PACKED_LONGEST);
        bw_packed_end(packed, bytes + BW_PACKED_LONGEST);
    }
}

static void
test_records_are_forgotten_with_the_memory_of_many_and_there_is_none_too_long(void **state)
{
    struct bw_packed packed = {0};
    uint8_t *bytes;
    assert_int_equal(bw_packed_first(&packed, 0), BW_NO_RECORD);
    assert_int_equal(bw_packed_begin(&packed, BW_PACKED_LONGEST + 1, &bytes), BW_NO_RECORD);
    fill(&packed, 40);
    assert_in_range(packed.chunks.count, 3, 4);
    size_t records = 0;
    for (uint32_t at = 0; at != BW_NO_RECORD; at = bw_packed_next(&packed, at, BW_PACKED_LONGEST))
        assert_int_equal(*bw_packed_at(&packed, at), records++);
    assert_int_equal(records, 40);
    for (size_t before = 0; packed.slots < 100000; before = packed.slots) {
        assert_true(bw_packed_enlarge(&packed));
        assert_true(packed.slots > before);
    }
    bw_packed_clear(&packed);
    assert_int_equal(packed.chunks.count, 1);
    assert_int_equal(packed.slots, 0);
    assert_int_equal(bw_packed_first(&packed, 0), BW_NO_RECORD);
    fill(&packed, 1);
    assert_int_equal(bw_packed_first(&packed, 0), 0);
    bw_packed_free(&packed);
}
