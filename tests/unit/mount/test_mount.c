/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The answers to FUSE requests. The test takes the place of the kernel, at the other end of a
 * socket: neither /dev/fuse nor privileges are needed. */
#include <dirent.h>
#include <errno.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "mount/mount.h"
#include "support/data_image.h"
#include "support/walk_helpers.h"

enum { SUBVOLUME = 300 };

/* A mount, and the end of the socket at which the kernel would be. */
struct served {
    struct bw_mount *mount;
    int kernel, server;
    pthread_t thread;
    uint64_t requests;
    struct {
        struct fuse_out_header header;
        union {
            char bytes[1 << 17];
            struct fuse_init_out init;
            struct fuse_entry_out entry;
            struct fuse_attr_out attr;
            struct fuse_open_out open;
            struct fuse_lseek_out lseek;
            struct fuse_getxattr_out xattr;
            struct fuse_statfs_out statfs;
        };
    } answer;
    size_t length; /* of the answer, without its header */
};

static void *serve(void *context)
{
    struct served *served = context;
    return bw_mount_serve(served->mount, served->server);
}

/* Sends a request of two parts. */
static void send_request(struct served *served, uint32_t opcode, uint64_t node, const void *first,
                         size_t first_length, const void *second, size_t second_length)
{
    struct fuse_in_header header = {.len = (uint32_t)(sizeof header + first_length + second_length),
                                    .opcode = opcode,
                                    .unique = ++served->requests,
                                    .nodeid = node};
    struct iovec parts[] = {{&header, sizeof header},
                            {(void *)(uintptr_t)first, first_length},
                            {(void *)(uintptr_t)second, second_length}};
    assert_int_equal(writev(served->kernel, parts, 3), header.len);
}

/* Receives the answer to a request; its error as a number of errno. */
static int receive_answer(struct served *served, uint64_t request)
{
    const ssize_t got = read(served->kernel, &served->answer, sizeof served->answer);
    assert_true(got >= (ssize_t)sizeof served->answer.header);
    assert_int_equal(served->answer.header.unique, request);
    served->length = (size_t)got - sizeof served->answer.header;
    return -served->answer.header.error;
}

static int ask(struct served *served, uint32_t opcode, uint64_t node, const void *first,
               size_t first_length, const void *second, size_t second_length)
{
    send_request(served, opcode, node, first, first_length, second, second_length);
    return receive_answer(served, served->requests);
}

static int ask_name(struct served *served, uint32_t opcode, uint64_t node, const char *name)
{
    return ask(served, opcode, node, name, strlen(name) + 1, NULL, 0);
}

/* With a kernel that has more abilities than reading many attributes at a time. */
static struct served *start_with(struct bw_fs *fs, uint32_t abilities)
{
    const struct fuse_init_in init = {.major = FUSE_KERNEL_VERSION,
                                      .minor = 31,
                                      .max_readahead = 1 << 17,
                                      .flags = FUSE_DO_READDIRPLUS | FUSE_ASYNC_READ | abilities};
    const struct bw_mount_options options = {.top = bw_subvolume_by_id(fs, FS)};
    struct served *served = calloc(1, sizeof *served);
    int ends[2];
    assert_non_null(served);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    served->kernel = ends[0];
    served->server = ends[1];
    expect_success(bw_mount_create(fs, &options, &served->mount));
    assert_int_equal(pthread_create(&served->thread, NULL, serve, served), 0);
    assert_int_equal(ask(served, FUSE_INIT, 0, &init, sizeof init, NULL, 0), 0);
    assert_true(served->answer.init.flags & FUSE_DO_READDIRPLUS);
    return served;
}

static struct served *start(struct bw_fs *fs)
{
    return start_with(fs, 0);
}

/* By a signal, as a user would. */
static void stop(struct served *served)
{
    void *error;
    usleep(1000);
    assert_int_equal(pthread_kill(served->thread, SIGTERM), 0);
    assert_int_equal(pthread_join(served->thread, &error), 0);
    expect_success(error);
    bw_mount_destroy(served->mount);
    close(served->kernel);
    free(served);
}

/* The number of a file, which must be there. */
static uint64_t node_of(struct served *served, uint64_t directory, const char *name)
{
    assert_int_equal(ask_name(served, FUSE_LOOKUP, directory, name), 0);
    assert_true(served->answer.entry.nodeid);
    assert_true(served->answer.entry.entry_valid > 1000000);
    return served->answer.entry.nodeid;
}

static uint64_t open_node(struct served *served, uint32_t opcode, uint64_t node)
{
    const struct fuse_open_in in = {0};
    assert_int_equal(ask(served, opcode, node, &in, sizeof in, NULL, 0), 0);
    assert_true(served->answer.open.open_flags & FOPEN_KEEP_CACHE);
    return served->answer.open.fh;
}

static int ask_read(struct served *served, uint32_t opcode, uint64_t node, uint64_t handle,
                    uint64_t offset, uint32_t size)
{
    const struct fuse_read_in in = {.fh = handle, .offset = offset, .size = size};
    return ask(served, opcode, node, &in, sizeof in, NULL, 0);
}

static int ask_xattr(struct served *served, uint64_t node, const char *name, uint32_t size)
{
    const struct fuse_getxattr_in in = {.size = size};
    return ask(served, name ? FUSE_GETXATTR : FUSE_LISTXATTR, node, &in, sizeof in, name,
               name ? strlen(name) + 1 : 0);
}

static void release(struct served *served, uint32_t opcode, uint64_t node, uint64_t handle)
{
    const struct fuse_release_in in = {.fh = handle};
    assert_int_equal(ask(served, opcode, node, &in, sizeof in, NULL, 0), 0);
}

/* The size of an entry in a reply; it is padded with zeros. */
static size_t size_of_entry(const struct fuse_dirent *entry, size_t before)
{
    static const char zeros[sizeof(uint64_t)] = {0};
    const size_t end = before + FUSE_NAME_OFFSET + entry->namelen, size = FUSE_REC_ALIGN(end);
    assert_memory_equal(entry->name + entry->namelen, zeros, size - end);
    return size;
}

/* Lists an open directory with answers of a size, and returns how many names came, or the errno of
 * an error, negative. */
static int list_open(struct served *served, uint64_t node, uint64_t handle, bool plus,
                     uint32_t size)
{
    const size_t before = plus ? offsetof(struct fuse_direntplus, dirent) : 0;
    uint64_t offset = 0;
    int count = 0;
    const uint32_t opcode = plus ? FUSE_READDIRPLUS : FUSE_READDIR;
    int problem;
    while (!(problem = ask_read(served, opcode, node, handle, offset, size)) && served->length)
        for (size_t at = 0; at < served->length; count++) {
            const struct fuse_dirent *entry = (const void *)(served->answer.bytes + at + before);
            at += size_of_entry(entry, before);
            assert_int_equal(entry->off, offset + 1);
            offset = entry->off;
        }
    return problem ? -problem : count;
}

static int list(struct served *served, uint64_t node, bool plus, uint32_t size)
{
    const uint64_t handle = open_node(served, FUSE_OPENDIR, node);
    const int count = list_open(served, node, handle, plus, size);
    release(served, FUSE_RELEASEDIR, node, handle);
    return count;
}

static void test_names(void **state)
{
    struct fixture fixture = make_fixture();
    const uint64_t huge = UINT64_C(1) << 40;
    uint64_t directory = iw_directory(fixture.image, FS, TOP, "directory");
    iw_subvolume(fixture.image, SUBVOLUME, FS, directory, "volume", 0);
    uint64_t other = iw_file(fixture.image, SUBVOLUME, TOP, "other");
    iw_symlink(fixture.image, FS, directory, "link", "to/where");
    iw_next_inode(fixture.image, FS, huge);
    iw_file(fixture.image, FS, directory, "huge");
    open_fixture(&fixture);
    struct served *served = start(fixture.fs);
    assert_int_equal(ask_name(served, FUSE_LOOKUP, FUSE_ROOT_ID, "nothing"), 0);
    assert_int_equal(served->answer.entry.nodeid, 0);
    uint64_t node = node_of(served, FUSE_ROOT_ID, "directory");
    assert_int_equal(served->answer.entry.attr.ino, directory);
    assert_int_equal(ask_name(served, FUSE_LOOKUP, node, "huge"), EOVERFLOW);
    assert_int_equal(list(served, node, false, 4096), 5);
    assert_int_equal(list(served, node, true, 4096), 5);
    uint64_t link = node_of(served, node, "link");
    assert_int_equal(ask(served, FUSE_READLINK, link, NULL, 0, NULL, 0), 0);
    assert_int_equal(served->length, strlen("to/where"));
    uint64_t volume = node_of(served, node, "volume");
    assert_int_equal(served->answer.entry.attr.ino, (uint64_t)SUBVOLUME << 40 | TOP);
    uint64_t file = node_of(served, volume, "other");
    assert_int_equal(served->answer.entry.attr.ino, (uint64_t)SUBVOLUME << 40 | other);
    const struct fuse_getattr_in in = {0};
    assert_int_equal(ask(served, FUSE_GETATTR, file, &in, sizeof in, NULL, 0), 0);
    assert_true(S_ISREG(served->answer.attr.attr.mode));
    assert_int_equal(ask(served, FUSE_GETATTR, huge * 99 + TOP, &in, sizeof in, NULL, 0), ENOENT);
    assert_int_equal(ask(served, FUSE_STATFS, FUSE_ROOT_ID, NULL, 0, NULL, 0), 0);
    assert_true(served->answer.statfs.st.blocks > 0);
    stop(served);
    close_fixture(&fixture);
}

static void test_listing(void **state)
{
    struct fixture fixture = make_fixture();
    enum { FILES = 1500 };
    char name[32];
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "file-%d", i);
        iw_file(fixture.image, FS, TOP, name);
    }
    open_fixture(&fixture);
    struct served *served = start(fixture.fs);
    assert_int_equal(list(served, FUSE_ROOT_ID, false, 512), FILES + 2);
    assert_int_equal(list(served, FUSE_ROOT_ID, true, 8192), FILES + 2);
    /* From the middle, and back. */
    const uint64_t handle = open_node(served, FUSE_OPENDIR, FUSE_ROOT_ID);
    const struct fuse_dirent *entry = (const void *)served->answer.bytes;
    static const uint64_t offsets[] = {700, 3, 1400, 1, 0, FILES + 1};
    for (size_t i = 0; i < COUNT(offsets); i++) {
        assert_int_equal(ask_read(served, FUSE_READDIR, FUSE_ROOT_ID, handle, offsets[i], 64), 0);
        snprintf(name, sizeof name, "file-%d", (int)offsets[i] - 2);
        assert_int_equal(entry->off, offsets[i] + 1);
        assert_int_equal(entry->type, offsets[i] > 1 ? DT_REG : DT_DIR);
        assert_memory_equal(entry->name, offsets[i] > 1 ? name : "..", entry->namelen);
    }
    assert_int_equal(ask_read(served, FUSE_READDIR, FUSE_ROOT_ID, handle, 99999, 64), 0);
    assert_int_equal(served->length, 0);
    release(served, FUSE_RELEASEDIR, FUSE_ROOT_ID, handle);
    stop(served);
    close_fixture(&fixture);
}

/* A kernel that opens files and directories without requests. */
static void test_without_open(void **state)
{
    struct fixture fixture = make_fixture();
    enum { DIRECTORIES = 100, FILES = 90 };
    const struct fuse_open_in in = {0};
    uint64_t nodes[DIRECTORIES];
    char name[32];
    for (int i = 0; i < DIRECTORIES; i++) {
        snprintf(name, sizeof name, "directory-%d", i);
        nodes[i] = iw_directory(fixture.image, FS, TOP, name);
        for (int file = 0; file < FILES; file++) {
            snprintf(name, sizeof name, "file-%d", file);
            iw_file(fixture.image, FS, nodes[i], name);
        }
    }
    open_fixture(&fixture);
    struct served *served = start_with(fixture.fs, FUSE_NO_OPEN_SUPPORT | FUSE_NO_OPENDIR_SUPPORT);
    assert_int_equal(ask(served, FUSE_OPENDIR, nodes[0], &in, sizeof in, NULL, 0), ENOSYS);
    assert_int_equal(ask(served, FUSE_OPEN, nodes[0] + 1, &in, sizeof in, NULL, 0), ENOSYS);
    /* more unfinished listings than are kept */
    for (int i = 0; i < DIRECTORIES; i++)
        assert_int_equal(ask_read(served, FUSE_READDIR, nodes[i], 0, 0, 512), 0);
    for (int i = 0; i < DIRECTORIES; i++) {
        const struct fuse_dirent *entry = (const void *)served->answer.bytes;
        assert_int_equal(ask_read(served, FUSE_READDIR, nodes[i], 0, FILES + 1, 512), 0);
        assert_int_equal(entry->off, FILES + 2);
        assert_int_equal(list_open(served, nodes[i], 0, i % 2, 2048), FILES + 2);
    }
    assert_int_equal(list_open(served, FUSE_ROOT_ID, 0, true, 4096), DIRECTORIES + 2);
    /* the parent is known from the list of its entries */
    assert_int_equal(ask_read(served, FUSE_READDIR, nodes[7], 0, 1, 64), 0);
    assert_int_equal(((const struct fuse_dirent *)(const void *)served->answer.bytes)->ino, TOP);
    stop(served);
    close_fixture(&fixture);
}

/* An entry that leads nowhere is lost: the end of the list is an error. */
static void test_lost_entry(void **state)
{
    struct fixture fixture = make_fixture();
    iw_file(fixture.image, FS, TOP, "file");
    iw_entry(fixture.image, FS,
             &(struct iw_entry){.directory = TOP,
                                .name = "nowhere",
                                .type = BW_FILE_REGULAR,
                                .location = {99, BW_ROOT_BACKREF, 0}});
    open_fixture(&fixture);
    struct served *served = start(fixture.fs);
    assert_int_equal(list(served, FUSE_ROOT_ID, false, 4096), -EIO);
    assert_int_equal(ask_name(served, FUSE_LOOKUP, FUSE_ROOT_ID, "nowhere"), EIO);
    node_of(served, FUSE_ROOT_ID, "file");
    stop(served);
    assert_int_equal(report_log_count(&fixture.log, "an entry points to"), 2);
    close_fixture(&fixture);
}

/* Holds up a thread that reports damage. */
static void hold_up(void *context, enum bw_severity severity, const struct bw_error *error)
{
    pthread_mutex_t *lock = context;
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
}

/* A request that takes long does not keep others waiting. */
static void test_slow_request(void **state)
{
    static const char name[] = "nowhere";
    const struct fuse_getattr_in in = {0};
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct fixture fixture = make_fixture();
    const char *paths[IW_MAX_DEVICES];
    iw_entry(fixture.image, FS,
             &(struct iw_entry){.directory = TOP,
                                .name = name,
                                .type = BW_FILE_REGULAR,
                                .location = {99, BW_ROOT_BACKREF, 0}});
    iw_write_memory(fixture.image);
    const struct bw_fs_options options = {.struct_size = sizeof options,
                                          .paths = paths,
                                          .path_count = iw_paths_of(fixture.image, paths),
                                          .superblock_copy = BW_ANY_SUPERBLOCK_COPY,
                                          .reporter = {hold_up, &lock}};
    expect_success(bw_fs_open(&options, &fixture.fs));
    struct served *served = start(fixture.fs);
    pthread_mutex_lock(&lock);
    send_request(served, FUSE_LOOKUP, FUSE_ROOT_ID, name, sizeof name, NULL, 0);
    const uint64_t slow = served->requests;
    assert_int_equal(ask(served, FUSE_GETATTR, FUSE_ROOT_ID, &in, sizeof in, NULL, 0), 0);
    pthread_mutex_unlock(&lock);
    assert_int_equal(receive_answer(served, slow), EIO);
    stop(served);
    close_fixture(&fixture);
}

static void test_attributes(void **state)
{
    struct fixture fixture = make_fixture();
    uint64_t file = iw_file(fixture.image, FS, TOP, "file");
    iw_property(fixture.image, FS, file, "user.one", "value");
    iw_property(fixture.image, FS, file, "user.two", "");
    open_fixture(&fixture);
    struct served *served = start(fixture.fs);
    uint64_t node = node_of(served, FUSE_ROOT_ID, "file");
    assert_int_equal(ask_xattr(served, node, "user.one", 0), 0);
    assert_int_equal(served->answer.xattr.size, 5);
    assert_int_equal(ask_xattr(served, node, "user.one", 4), ERANGE);
    assert_int_equal(ask_xattr(served, node, "user.one", 5), 0);
    assert_memory_equal(served->answer.bytes, "value", 5);
    assert_int_equal(ask_xattr(served, node, "user.on", 5), ENODATA);
    assert_int_equal(ask_xattr(served, node, NULL, 100), 0);
    assert_int_equal(served->length, 18);
    stop(served);
    close_fixture(&fixture);
}

static int seek(struct served *served, uint64_t node, uint64_t handle, uint64_t offset,
                uint32_t whence)
{
    const struct fuse_lseek_in in = {.fh = handle, .offset = offset, .whence = whence};
    return ask(served, FUSE_LSEEK, node, &in, sizeof in, NULL, 0);
}

static void expect_seek(struct served *served, uint64_t node, uint64_t handle, uint64_t offset,
                        uint32_t whence, uint64_t expected)
{
    assert_int_equal(seek(served, node, handle, offset, whence), 0);
    assert_int_equal(served->answer.lseek.offset, expected);
}

enum { SIZE = (3 << 20) - 10, PIECE = 1 << 17 };

/* Reads the file from front to back, for which it is read ahead. Only the first piece is bad. */
static void read_all(struct served *served, const struct data_image *image, uint64_t handle)
{
    for (uint64_t offset = 0; offset < SIZE; offset += PIECE) {
        const int problem = ask_read(served, FUSE_READ, image->inode, handle, offset, PIECE);
        assert_int_equal(problem, offset ? 0 : EIO);
        assert_int_equal(served->length, problem                 ? 0
                                         : SIZE - offset < PIECE ? SIZE - offset
                                                                 : PIECE);
        assert_true(problem || served->answer.bytes[0] == 0);
    }
}

/* The second of four sectors is lost; a hole follows. */
static void lose_sector(struct data_image *image)
{
    iw_corrupt(image->image, image->logical + SECTOR, 0, 0, 1, IW_FLIP);
}

static void test_contents(void **state)
{
    struct data_image *image = data_image_create(0, BW_CHECKSUM_CRC32C);
    data_image_plain(image, 0, 0, 4 * SECTOR);
    data_image_inode(image, SIZE, 0);
    data_image_checksums(image, 0, 4);
    data_image_open(image, lose_sector);
    struct served *served = start(image->fs);
    const uint64_t node = image->inode; /* of the top subvolume, which is the first */
    const uint64_t handle = open_node(served, FUSE_OPEN, node);
    assert_int_equal(ask_read(served, FUSE_READ, node, handle, 0, SECTOR), 0);
    assert_int_equal(served->length, SECTOR);
    assert_memory_equal(served->answer.bytes, image->data, SECTOR);
    assert_int_equal(ask_read(served, FUSE_READ, node, handle, 0, 4 * SECTOR), EIO);
    assert_int_equal(ask_read(served, FUSE_READ, node, handle, SECTOR, SECTOR), EIO);
    assert_int_equal(ask_read(served, FUSE_READ, node, handle, 2 * SECTOR, 1 << 16), 0);
    assert_int_equal(served->length, 1 << 16);
    assert_memory_equal(served->answer.bytes, image->data + 2 * SECTOR, 2 * SECTOR);
    assert_int_equal(served->answer.bytes[2 * SECTOR], 0);
    assert_int_equal(ask_read(served, FUSE_READ, node, handle, SIZE, 100), 0);
    assert_int_equal(served->length, 0);
    read_all(served, image, handle);
    expect_seek(served, node, handle, 7, SEEK_DATA, 7);
    expect_seek(served, node, handle, 7, SEEK_HOLE, 4 * SECTOR);
    expect_seek(served, node, handle, 5 * SECTOR, SEEK_HOLE, 5 * SECTOR);
    assert_int_equal(seek(served, node, handle, 5 * SECTOR, SEEK_DATA), ENXIO);
    assert_int_equal(seek(served, node, handle, SIZE, SEEK_HOLE), ENXIO);
    release(served, FUSE_RELEASE, node, handle);
    stop(served);
    data_image_free(image);
}

/* Inline data count up to the end of their sector, although the file is longer than them. */
static void test_inline_data(void **state)
{
    struct data_image *image = data_image_create(0, BW_CHECKSUM_CRC32C);
    data_image_inline(image, BW_COMPRESS_NONE, 100, image->data, 100);
    data_image_inode(image, 2 * SECTOR, 0);
    data_image_open(image, NULL);
    struct served *served = start(image->fs);
    const uint64_t node = image->inode, handle = open_node(served, FUSE_OPEN, node);
    expect_seek(served, node, handle, 0, SEEK_HOLE, SECTOR);
    expect_seek(served, node, handle, 200, SEEK_DATA, 200);
    expect_seek(served, node, handle, SECTOR, SEEK_HOLE, SECTOR);
    assert_int_equal(seek(served, node, handle, SECTOR, SEEK_DATA), ENXIO);
    release(served, FUSE_RELEASE, node, handle);
    stop(served);
    data_image_free(image);
}
