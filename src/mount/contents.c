/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Data of files, and the ranges that contain data. A reply is always as long as the request, up to
 * the end of the file, because the kernel takes a short reply for the end of the file. If any part
 * cannot be read, the request fails; the kernel then requests each page again separately, so only
 * bad pages are lost.
 */
#include "mount/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "mount/read_windows.h"

enum {
    NEAR = 512 << 10,       /* requests of one reader may arrive in a different order */
    SEQUENTIAL = 256 << 10, /* after this many bytes in sequence, more will follow */
    LARGE = 64 << 10,       /* a program whose first request is this large probably reads the whole
                             * file */
    AHEAD = 2,              /* windows */
};

/* A file that is being read. Programs open and close files without a request to this program, if
 * the kernel supports that, so it only remembers the files that were read last. */
struct read_file {
    fuse_ino_t node; /* 0: none */
    struct bw_data_file data;
    uint64_t next;     /* end of the last request */
    uint64_t sequence; /* number of bytes read sequentially */
};

enum { READ_FILES = 1024 };

struct bw_read_files {
    pthread_mutex_t lock;
    struct read_file files[READ_FILES]; /* at the hash of the node */
};

struct bw_read_files *bw_read_files_create(void)
{
    struct bw_read_files *files = calloc(1, sizeof *files);
    if (files)
        pthread_mutex_init(&files->lock, NULL);
    return files;
}

void bw_read_files_destroy(struct bw_read_files *files)
{
    if (!files)
        return;
    pthread_mutex_destroy(&files->lock);
    free(files);
}

static struct read_file *slot_of(struct bw_read_files *files, fuse_ino_t node)
{
    return &files->files[node * UINT64_C(0x9E3779B97F4A7C15) >> 54];
}

/* The data of a file: from the files that are remembered, or from its inode. */
static struct bw_error *find_file(const struct bw_mount *mount, fuse_ino_t node,
                                  struct bw_data_file *result)
{
    struct bw_read_files *files = mount->read_files;
    struct bw_place place;
    struct bw_inode inode;
    pthread_mutex_lock(&files->lock);
    const struct read_file *file = slot_of(files, node);
    const bool is_remembered = file->node == node;
    if (is_remembered)
        *result = file->data;
    pthread_mutex_unlock(&files->lock);
    if (is_remembered)
        return NULL;
    if (!bw_mount_place(mount, node, &place))
        return bw_error_create(BW_ERROR_NOT_FOUND, "no such file");
    BW_TRY(bw_inode_get(mount->fs, &place, &inode));
    *result = bw_data_file_of(&place, &inode);
    return NULL;
}

/* After this error, the kernel opens all files itself, with the same flags. */
static void open_file(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *info)
{
    (void)node;
    info->keep_cache = 1;
    if (bw_mount_of(request)->kernel_opens)
        fuse_reply_err(request, ENOSYS);
    else
        fuse_reply_open(request, info);
}

/* Remembers a request; true if the file is read sequentially. */
static bool is_sequential(struct bw_read_files *files, fuse_ino_t node,
                          const struct bw_data_file *data, uint64_t offset, size_t size)
{
    pthread_mutex_lock(&files->lock);
    struct read_file *file = slot_of(files, node);
    if (file->node != node)
        *file = (struct read_file){.node = node, .data = *data};
    const uint64_t next = file->next;
    file->next = offset + size;
    const uint64_t distance = next > offset ? next - offset : offset - next;
    file->sequence = distance > NEAR ? size : file->sequence + size;
    const uint64_t sequence = file->sequence;
    pthread_mutex_unlock(&files->lock);
    return sequence >= SEQUENTIAL || (!offset && size >= LARGE && size < data->size);
}

/* Replies from windows; a request overlaps at most two of them. False if that is not possible. */
static bool read_windows(fuse_req_t request, const struct bw_data_file *file, uint64_t offset,
                         size_t size)
{
    struct bw_read_windows *read_windows = bw_mount_of(request)->read_windows;
    struct bw_read_window *windows[2] = {0};
    struct iovec parts[2];
    size_t count = 0, got = 0;
    for (unsigned i = 1; i <= AHEAD; i++)
        bw_read_windows_start(read_windows, file, offset + (uint64_t)i * BW_READ_WINDOW_BYTES);
    for (; got < size && count < 2; count++) {
        const size_t inside = (offset + got) % BW_READ_WINDOW_BYTES,
                     room = BW_READ_WINDOW_BYTES - inside;
        windows[count] = bw_read_windows_acquire(read_windows, file, offset + got);
        if (!windows[count])
            break;
        parts[count].iov_base = (void *)(uintptr_t)(bw_read_windows_bytes(windows[count]) + inside);
        parts[count].iov_len = room < size - got ? room : size - got;
        got += parts[count].iov_len;
    }
    if (got == size)
        fuse_reply_iov(request, parts, (int)count);
    for (size_t i = 0; i < 2 && windows[i]; i++)
        bw_read_windows_release(read_windows, windows[i]);
    return got == size;
}

static void read_exactly(fuse_req_t request, const struct bw_data_file *file, uint64_t offset,
                         size_t size)
{
    struct bw_readers *readers = bw_read_windows_readers(bw_mount_of(request)->read_windows);
    struct bw_reader *reader;
    struct bw_error *error = bw_readers_acquire(readers, &reader);
    if (error) {
        bw_mount_reply(request, error);
        return;
    }
    reader->bytes.length = 0;
    if (bw_buffer_reserve(&reader->bytes, size))
        error = bw_reader_read(reader, file, offset, size, (uint8_t *)reader->bytes.data);
    else
        error = bw_error_no_memory();
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
    const struct bw_mount *mount = bw_mount_of(request);
    const uint64_t offset = (uint64_t)from;
    struct bw_data_file file;
    (void)info;
    struct bw_error *error = find_file(mount, node, &file);
    if (error) {
        bw_mount_reply(request, error);
        return;
    }
    if (offset >= file.size || !size) {
        fuse_reply_buf(request, NULL, 0);
        return;
    }
    if (size > file.size - offset)
        size = (size_t)(file.size - offset);
    if (!is_sequential(mount->read_files, node, &file, offset, size) ||
        !read_windows(request, &file, offset, size))
        read_exactly(request, &file, offset, size);
}

/* Finds the next data or hole at or after `*offset`; the end of the file if there is no more. */
static struct bw_error *seek_extent(struct bw_reader *reader, const struct bw_data_file *file,
                                    uint64_t sectorsize, bool data, uint64_t *offset)
{
    const struct bw_extent *extent;
    const uint64_t from = *offset < sectorsize ? 0 : *offset; /* inline data may be before it */
    bw_extent_reader_seek(reader->extents, file, from, file->size);
    for (;;) {
        BW_TRY(bw_extent_reader_next(reader->extents, &extent));
        if (!extent || extent->offset >= file->size || *offset >= file->size) {
            *offset = file->size;
            return NULL;
        }
        /* Inline data count up to the end of their sector, as for the kernel. */
        uint64_t end = extent->offset + extent->length;
        if (extent->kind == BW_EXTENT_INLINE)
            end = sectorsize;
        if (end <= *offset)
            continue;
        if (extent->offset > *offset)
            *offset = extent->offset;
        /* unreadable ranges are data */
        const bool is_data = extent->kind != BW_EXTENT_HOLE && extent->kind != BW_EXTENT_UNWRITTEN;
        if (is_data == data)
            return NULL;
        *offset = end;
    }
}

static void seek_file(fuse_req_t request, fuse_ino_t node, off_t from, int whence,
                      struct fuse_file_info *info)
{
    const struct bw_mount *mount = bw_mount_of(request);
    uint64_t offset = (uint64_t)from;
    struct bw_data_file file;
    (void)info;
    struct bw_error *error = find_file(mount, node, &file);
    const bool is_outside = !error && (from < 0 || offset >= file.size);
    if (!error && !is_outside) {
        struct bw_readers *readers = bw_read_windows_readers(mount->read_windows);
        struct bw_reader *reader;
        error = bw_readers_acquire(readers, &reader);
        if (!error) {
            error = seek_extent(reader, &file, mount->sectorsize, whence == SEEK_DATA, &offset);
            bw_readers_release(readers, reader);
        }
    }
    if (error)
        bw_mount_reply(request, error);
    else if (is_outside || (whence == SEEK_DATA && offset == file.size))
        fuse_reply_err(request, ENXIO);
    else
        fuse_reply_lseek(request, (off_t)offset);
}

void bw_mount_add_contents(struct fuse_lowlevel_ops *operations)
{
    operations->open = open_file;
    operations->read = read_file;
    operations->lseek = seek_file;
}
