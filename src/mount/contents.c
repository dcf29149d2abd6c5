/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Data of files, and the ranges that contain data. A reply is always as long as the request, up to
 * the end of the file, because the kernel takes a short reply for the end of the file. If any part
 * cannot be read, the request fails; the kernel then requests each page again separately, so only
 * bad pages are lost.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "mount/internal.h"
#include "mount/readahead.h"

enum {
    NEAR = 512 << 10,       /* requests of one reader may arrive in a different order */
    SEQUENTIAL = 256 << 10, /* after this many bytes in sequence, more will follow */
    LARGE = 64 << 10,       /* a program whose first request is this large probably reads the whole
                             * file */
    AHEAD = 2,              /* windows */
};

/* An open file. Several threads may read it at once. */
struct open_file {
    struct bw_data_file data;
    atomic_uint_fast64_t next; /* end of the last request */
    atomic_uint_fast64_t run;  /* number of bytes read sequentially */
};

static struct open_file *file_of(const struct fuse_file_info *file)
{
    return (struct open_file *)(uintptr_t)file->fh;
}

static struct bw_error *make_file(const struct bw_mount *mount, fuse_ino_t node,
                                  struct open_file **result)
{
    struct bw_place place;
    struct bw_inode inode;
    if (!bw_mount_place(mount, node, &place))
        return bw_error_create(BW_ERROR_NOT_FOUND, "no such file");
    BW_TRY(bw_inode_get(mount->fs, &place, &inode));
    struct open_file *file = *result = calloc(1, sizeof *file);
    if (!file)
        return bw_error_no_memory();
    file->data = bw_data_file_of(&place, &inode);
    return NULL;
}

static void open_file(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *info)
{
    struct open_file *file;
    struct bw_error *error = make_file(bw_mount_of(request), node, &file);
    if (error) {
        bw_mount_reply(request, error);
        return;
    }
    info->fh = (uintptr_t)file;
    info->keep_cache = 1;
    if (fuse_reply_open(request, info))
        free(file);
}

static void release(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *info)
{
    (void)node;
    free(file_of(info));
    fuse_reply_err(request, 0);
}

/* Whether the file is read sequentially. */
static bool is_sequential(struct open_file *file, uint64_t offset, size_t size)
{
    const uint64_t next = atomic_exchange(&file->next, offset + size);
    if ((next > offset ? next - offset : offset - next) > NEAR)
        atomic_store(&file->run, 0);
    const uint64_t run = atomic_fetch_add(&file->run, size) + size;
    return run >= SEQUENTIAL || (!offset && size >= LARGE && size < file->data.size);
}

/* Replies from windows; a request overlaps at most two of them. False if that is not possible. */
static bool read_windows(fuse_req_t request, const struct open_file *file, uint64_t offset,
                         size_t size)
{
    struct bw_readahead *readahead = bw_mount_of(request)->readahead;
    struct bw_readahead_window *taken[2] = {0};
    struct iovec parts[2];
    size_t count = 0, got = 0;
    for (unsigned i = 1; i <= AHEAD; i++)
        bw_readahead_start(readahead, &file->data, offset + (uint64_t)i * BW_READAHEAD_BYTES);
    for (; got < size && count < 2; count++) {
        const size_t inside = (offset + got) % BW_READAHEAD_BYTES,
                     room = BW_READAHEAD_BYTES - inside;
        taken[count] = bw_readahead_acquire(readahead, &file->data, offset + got);
        if (!taken[count])
            break;
        parts[count].iov_base = (void *)(uintptr_t)(bw_readahead_bytes(taken[count]) + inside);
        parts[count].iov_len = room < size - got ? room : size - got;
        got += parts[count].iov_len;
    }
    if (got == size)
        fuse_reply_iov(request, parts, (int)count);
    for (size_t i = 0; i < 2 && taken[i]; i++)
        bw_readahead_release(readahead, taken[i]);
    return got == size;
}

static void read_exactly(fuse_req_t request, const struct open_file *file, uint64_t offset,
                         size_t size)
{
    struct bw_readers *readers = bw_readahead_readers(bw_mount_of(request)->readahead);
    struct bw_reader *reader;
    struct bw_error *error = bw_readers_acquire(readers, &reader);
    if (error) {
        bw_mount_reply(request, error);
        return;
    }
    reader->bytes.length = 0;
    error = bw_buffer_reserve(&reader->bytes, size)
                ? bw_reader_read(reader, &file->data, offset, size, (uint8_t *)reader->bytes.data)
                : bw_error_no_memory();
    reader->bytes.failed = false;
    if (error)
        bw_mount_reply(request, error);
    else
        fuse_reply_buf(request, reader->bytes.data, size);
    bw_readers_release(readers, reader);
}

static void read_file(fuse_req_t request, fuse_ino_t node, size_t size, off_t from,
                      struct fuse_file_info *info)
{
    struct open_file *file = file_of(info);
    const uint64_t offset = (uint64_t)from, end = file->data.size;
    (void)node;
    if (offset >= end || !size) {
        fuse_reply_buf(request, NULL, 0);
        return;
    }
    if (size > end - offset)
        size = (size_t)(end - offset);
    if (!is_sequential(file, offset, size) || !read_windows(request, file, offset, size))
        read_exactly(request, file, offset, size);
}

/* Whether the range contains data, which may be unreadable. */
static bool is_data(const struct bw_extent *extent)
{
    return extent->kind != BW_EXTENT_HOLE && extent->kind != BW_EXTENT_UNWRITTEN;
}

/* Finds the next data or hole at or after `*offset`; the end of the file if there is no more. */
static struct bw_error *seek(struct bw_reader *reader, const struct bw_data_file *file, bool data,
                             uint64_t *offset)
{
    const struct bw_extent *extent;
    bw_extent_reader_seek(reader->extents, file, *offset, file->size);
    for (;;) {
        BW_TRY(bw_extent_reader_next(reader->extents, &extent));
        if (!extent || extent->offset >= file->size) {
            *offset = file->size;
            return NULL;
        }
        if (is_data(extent) == data) {
            *offset = extent->offset > *offset ? extent->offset : *offset;
            return NULL;
        }
    }
}

static void seek_file(fuse_req_t request, fuse_ino_t node, off_t from, int whence,
                      struct fuse_file_info *info)
{
    struct bw_readers *readers = bw_readahead_readers(bw_mount_of(request)->readahead);
    const struct open_file *file = file_of(info);
    uint64_t offset = (uint64_t)from;
    struct bw_reader *reader;
    (void)node;
    if (from < 0 || offset >= file->data.size) {
        fuse_reply_err(request, ENXIO);
        return;
    }
    struct bw_error *error = bw_readers_acquire(readers, &reader);
    if (!error) {
        error = seek(reader, &file->data, whence == SEEK_DATA, &offset);
        bw_readers_release(readers, reader);
    }
    if (error)
        bw_mount_reply(request, error);
    else if (whence == SEEK_DATA && offset == file->data.size)
        fuse_reply_err(request, ENXIO);
    else
        fuse_reply_lseek(request, (off_t)offset);
}

void bw_mount_add_contents(struct fuse_lowlevel_ops *operations)
{
    operations->open = open_file;
    operations->read = read_file;
    operations->lseek = seek_file;
    operations->release = release;
}
