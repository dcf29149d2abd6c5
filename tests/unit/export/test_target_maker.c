/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The process that makes links and special files: orders, their failures, and orders of an
 * attacker. Here it is a thread. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "support/target_bench.h"

#include "export/target.h"

/* Both sides. */
struct bench {
    struct folders folders; /* its target is that of the making side */
    struct bw_target target;
    struct bw_target_maker maker;
    pthread_t thread;
    int channels[2];
    unsigned missed, failed;
    int last_failure;
};

static void count_missed(void *context, struct bw_error *error)
{
    struct bench *bench = context;
    bench->missed++;
    bw_error_free(error);
}

static struct bw_error *count_failed(void *context, struct bw_error *error)
{
    struct bench *bench = context;
    bench->failed++;
    bench->last_failure = error->system;
    bw_error_free(error);
    return NULL;
}

static void *serve(void *context)
{
    struct bench *bench = context;
    bw_target_serve_orders(&bench->folders.target, bench->channels[1]);
    close(bench->channels[1]);
    return NULL;
}

static void start(struct bench *bench)
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, bench->channels), 0);
    assert_int_equal(pthread_create(&bench->thread, NULL, serve, bench), 0);
}

static void begin(struct bench *bench)
{
    *bench = (struct bench){0};
    set_up(&bench->folders, false);
    start(bench);
    bench->target.options = (struct bw_target_options){.missed = count_missed, .context = bench};
    bench->maker = (struct bw_target_maker){.target = &bench->target,
                                            .channel = bench->channels[0],
                                            .failed = count_failed,
                                            .context = bench};
}

static void end(struct bench *bench)
{
    bw_target_maker_close(&bench->maker);
    pthread_join(bench->thread, NULL);
    tear_down(&bench->folders);
}

static struct bw_error *order(struct bench *bench, const char *path, const char *link,
                              const struct bw_target_attributes *attributes)
{
    bool ours;
    const struct bw_target_order wanted = {path, strlen(path), link, attributes};
    return bw_target_make(&bench->maker, &wanted, &ours);
}

static const struct bw_inode link_inode = {.mode = S_IFLNK | 0777, PLAIN_TIMES};
static const struct bw_inode fifo_inode = {.mode = S_IFIFO | 0640, PLAIN_TIMES};
static const struct bw_target_attributes link_attributes = {.inode = &link_inode};
static const struct bw_target_attributes fifo_attributes = {.inode = &fifo_inode};

static void test_attributes(void **state)
{
    struct bench bench;
    struct stat status;
    begin(&bench);
    const struct bw_xattr xattr = {(const uint8_t *)"user.none", (const uint8_t *)"value", 9, 5};
    const struct bw_target_attributes more = {&link_inode, &xattr, 1};
    assert_null(order(&bench, "link", "to", &link_attributes));
    assert_null(order(&bench, "fifo", NULL, &fifo_attributes));
    assert_true(is_there(&bench.folders, "link", &status));
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(status.st_mtim.tv_sec, 1234567890);
    assert_true(is_there(&bench.folders, "fifo", &status));
    assert_int_equal(status.st_mode, S_IFIFO | 0640);
    assert_int_equal(status.st_mtim.tv_nsec, 123456789);
    assert_int_equal(bench.missed, 0);
    assert_null(order(&bench, "more", "to", &more)); /* links have no attributes of the user */
    assert_int_equal(bench.missed, 1);
    end(&bench);
}

static void test_refusals(void **state)
{
    struct bench bench;
    struct stat status;
    const struct bw_inode disk = {.mode = S_IFBLK | 0666, .device = 8 << 20};
    const struct bw_target_attributes disk_attributes = {.inode = &disk};
    const struct bw_target_attributes file = {.inode = &plain};
    begin(&bench);
    put_link(&bench.folders, "out", "../outside");
    expect_code(order(&bench, "disk", NULL, &disk_attributes), BW_ERROR_SYSTEM);
    expect_errno(order(&bench, "file", NULL, &file), EINVAL);
    expect_errno(order(&bench, "linkless", NULL, &link_attributes), EINVAL);
    expect_errno(order(&bench, "fifo", "to", &fifo_attributes), EINVAL);
    expect_errno(order(&bench, "none/fifo", NULL, &fifo_attributes), ENOENT);
    expect_code(order(&bench, "../fifo", NULL, &fifo_attributes), BW_ERROR_CORRUPT);
    expect_code(order(&bench, "/fifo", NULL, &fifo_attributes), BW_ERROR_CORRUPT);
    expect_refused(order(&bench, "out/fifo", NULL, &fifo_attributes));
    expect_refused(order(&bench, "out/link", "to", &link_attributes));
    assert_false(is_there(&bench.folders, "disk", &status));
    assert_null(order(&bench, "folder", NULL, NULL));
    assert_true(is_there(&bench.folders, "folder", &status));
    end(&bench);
}

static void test_batches(void **state)
{
    enum { LINKS = 2000 };
    struct bench bench;
    struct stat status;
    char name[32];
    begin(&bench);
    put_link(&bench.folders, "link7", "taken");
    for (unsigned i = 0; i < LINKS; i++) {
        snprintf(name, sizeof name, "link%u", i);
        const struct bw_target_order wanted = {name, strlen(name), "to", &link_attributes};
        assert_null(bw_target_make_later(&bench.maker, &wanted));
        if (i == 1000) /* it comes after those that wait */
            expect_errno(order(&bench, "link1000", "to", &link_attributes), EEXIST);
    }
    assert_null(bw_target_make_rest(&bench.maker));
    assert_null(bw_target_make_rest(&bench.maker));
    assert_int_equal(bench.failed, 1);
    assert_int_equal(bench.last_failure, EEXIST);
    assert_true(is_there(&bench.folders, "link1999", &status));
    assert_int_equal(status.st_mtim.tv_sec, 1234567890);
    end(&bench);
}

/* Of the last failure of an extraction. */
static void test_end(void **state)
{
    struct bench bench;
    begin(&bench);
    shutdown(bench.channels[0], SHUT_RDWR);
    expect_errno(order(&bench, "link", "to", &link_attributes), EIO);
    end(&bench);
}

/* The bytes of a message. */
static size_t record(struct bench *bench, char *bytes, size_t size)
{
    const struct bw_xattr xattr = {(const uint8_t *)"user.none", (const uint8_t *)"value", 9, 5};
    const struct bw_target_attributes more = {&link_inode, &xattr, 1};
    const struct bw_target_order orders[] = {{"a", 1, "to", &more},
                                             {"b", 1, NULL, &fifo_attributes}};
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    struct bw_target_maker maker = {.target = &bench->target, .channel = ends[0]};
    assert_null(bw_target_make_later(&maker, &orders[0]));
    assert_null(bw_target_make_later(&maker, &orders[1]));
    shutdown(ends[0], SHUT_RD); /* there will be no answer */
    expect_errno(bw_target_make_rest(&maker), EIO);
    ssize_t length = recv(ends[1], bytes, size, 0);
    assert_true(length > 0);
    bw_target_maker_close(&maker);
    close(ends[1]);
    return (size_t)length;
}

/* Whatever is changed in an order: the maker ends, or answers, and makes nothing outside. */
static void test_hostile_orders(void **state)
{
    enum { ROUNDS = 1500 };
    static const unsigned char odd[] = {0, 1, '/', '.', 0x7f, 0x80, 0xff};
    struct bench bench;
    char message[4096];
    begin(&bench);
    size_t length = record(&bench, message, sizeof message);
    assert_true(length < sizeof message);
    srandom(1);
    for (unsigned round = 0; round < ROUNDS; round++) {
        char bytes[sizeof message];
        memcpy(bytes, message, length);
        for (long i = 0; i <= random() % 3; i++)
            bytes[(size_t)random() % length] = (char)odd[(size_t)random() % sizeof odd];
        size_t sent = round % 4 ? length : (size_t)random() % length;
        assert_int_equal(send(bench.channels[0], bytes, sent, MSG_NOSIGNAL), sent);
        shutdown(bench.channels[0], SHUT_WR);
        pthread_join(bench.thread, NULL);
        close(bench.channels[0]);
        start(&bench);
    }
    bench.maker.channel = bench.channels[0];
    assert_null(order(&bench, "still", "there", &link_attributes));
    end(&bench);
}
