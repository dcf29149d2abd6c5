/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * storage/file: the bottom of the graph. It reads one image file or block device.
 *
 * A batch is sorted by offset, and neighbours are read with one preadv. Reads first try the page
 * cache only (RWF_NOWAIT). A warm image needs nothing more. After some misses the image counts as
 * cold, and from then on hints are passed to the kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "graph/wind.h"
#include "xlators/classes.h"
#include "xlators/storage/runs.h"

struct file {
    const char *path; /* the option's text, owned by the layer */
    int descriptor;
    uint64_t size;
    bool regular;             /* not a block device */
    atomic_bool cold;         /* reads miss the page cache */
    atomic_uint hits, misses; /* in the page cache, until `cold` is set */
};

static uint64_t size(struct bw_xlator *xlator)
{
    const struct file *file = bw_xlator_private(xlator);
    return file->size;
}

/* Block devices do not report holes, so they have none. */
static uint64_t next_stored(struct bw_xlator *xlator, uint64_t address)
{
    const struct file *file = bw_xlator_private(xlator);
    if (address >= file->size)
        return UINT64_MAX;
    off_t next = lseek(file->descriptor, (off_t)address, SEEK_DATA);
    return next >= 0 ? (uint64_t)next : errno == ENXIO ? UINT64_MAX : address;
}

/* Advice if permissions prevent opening a block device; errno is the reason. */
static const char *advice(const char *path)
{
    struct stat status;
    const int system_errno = errno;
    const bool denied = errno == EACCES && stat(path, &status) == 0 && S_ISBLK(status.st_mode);
    errno = system_errno;
    return denied ? " (try as root, or as a member of the device's group)" : "";
}

static struct bw_error *open_file(struct file *file)
{
    struct stat status;
    const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    /* Keeps the access time unchanged; only the owner of the file may request that. */
    file->descriptor = open(file->path, flags | O_NOATIME);
    if (file->descriptor < 0 && errno == EPERM)
        file->descriptor = open(file->path, flags);
    if (file->descriptor < 0)
        return bw_error_from_errno(errno, "cannot open %s%s", file->path, advice(file->path));
    if (fstat(file->descriptor, &status))
        return bw_error_from_errno(errno, "cannot stat %s", file->path);
    if (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode))
        return bw_error_create(BW_ERROR_USAGE, "%s is %s, not an image file or a block device",
                               file->path,
                               S_ISDIR(status.st_mode) ? "a directory" : "a special file");
    off_t end = lseek(file->descriptor, 0, SEEK_END);
    if (end < 0)
        return bw_error_from_errno(errno, "cannot find the size of %s", file->path);
    file->size = (uint64_t)end;
    file->regular = S_ISREG(status.st_mode);
    return NULL;
}

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct file *file = bw_xlator_private(xlator);
    file->descriptor = -1;
    file->path = bw_xlator_option_text(xlator, "path");
    return open_file(file);
}

static void fini(struct bw_xlator *xlator)
{
    struct file *file = bw_xlator_private(xlator);
    if (file->descriptor >= 0)
        close(file->descriptor);
}

/* Reads one request to its end, also after interruptions and short reads. */
static struct bw_error *read_one(const struct file *file, const struct bw_request *request)
{
    size_t done = 0;
    while (done < request->length) {
        uint64_t offset = request->address + done;
        if (offset >= file->size)
            return bw_error_create(BW_ERROR_CORRUPT,
                                   "%s ends at %" PRIu64 ", before offset %" PRIu64, file->path,
                                   file->size, request->address + request->length);
        ssize_t got = pread(file->descriptor, (char *)request->buffer + done,
                            request->length - done, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return bw_error_from_errno(errno, "cannot read %s at offset %" PRIu64, file->path,
                                       offset);
        if (got == 0)
            return bw_error_create(BW_ERROR_CORRUPT, "%s shrank while it was read", file->path);
        done += (size_t)got;
    }
    return NULL;
}

/* In an otherwise warm image a page or two may be missing from the page cache; hints do not help
 * there. */
enum { COLD_MISSES = 3, COLD_SHARE = 16 };

static void note_miss(struct file *file, int reason)
{
    unsigned misses = atomic_fetch_add_explicit(&file->misses, 1, memory_order_relaxed) + 1;
    bool many = misses >= COLD_MISSES &&
                misses >= atomic_load_explicit(&file->hits, memory_order_relaxed) / COLD_SHARE;
    if (many || reason == EOPNOTSUPP)
        atomic_store_explicit(&file->cold, true, memory_order_relaxed);
}

/* Reads neighbours with one system call; false if it did not return all bytes. */
static bool read_run(struct file *file, const struct iovec *vectors, int count, uint64_t offset,
                     size_t length)
{
    bool cold = atomic_load_explicit(&file->cold, memory_order_relaxed);
    /* preadv2() is not in every C library. The upper half of the offset is for 32-bit machines. */
    ssize_t got = syscall(SYS_preadv2, file->descriptor, vectors, (long)count, (long)offset,
                          (long)(offset >> 32), cold ? 0 : RWF_NOWAIT);
    if (got == (ssize_t)length && !cold)
        atomic_fetch_add_explicit(&file->hits, 1, memory_order_relaxed);
    if (got == (ssize_t)length || cold)
        return got == (ssize_t)length;
    if (got >= 0 || errno == EAGAIN || errno == EOPNOTSUPP)
        note_miss(file, got >= 0 ? 0 : errno);
    return preadv(file->descriptor, vectors, count, (off_t)offset) == (ssize_t)length;
}

/* Linux begins to read no more than the device takes at once (max_sectors_kb, or read_ahead_kb if
 * that is larger), and forgets the rest. */
static void advise_range(const struct file *file, uint64_t offset, uint64_t length)
{
    const uint64_t most = 512 << 10, rest = offset < file->size ? file->size - offset : 0;
    length = length < rest ? length : rest;
    for (uint64_t done = 0, part; done < length; done += part) {
        part = length - done < most ? length - done : most;
        posix_fadvise(file->descriptor, (off_t)(offset + done), (off_t)part, POSIX_FADV_WILLNEED);
    }
}

/* On a cold file, all runs of a batch are requested before the first one is waited for. */
static void start_reading(const struct file *file, struct bw_request *const *order, size_t count)
{
    for (size_t first = 0, run, length; first < count; first += run) {
        run = bw_find_run(order, first, count, &length);
        advise_range(file, order[first]->address, length);
    }
}

/* Reads neighbours together or, if that fails, one by one. */
static void answer_run(struct file *file, struct bw_request *const *run, size_t count,
                       size_t length)
{
    struct iovec vectors[BW_BATCH];
    for (size_t i = 0; i < count; i++)
        vectors[i] = (struct iovec){run[i]->buffer, run[i]->length};
    bool whole = read_run(file, vectors, (int)count, run[0]->address, length);
    for (size_t i = 0; i < count; i++)
        run[i]->error = whole ? NULL : read_one(file, run[i]);
}

static void read_runs(const struct bw_frame *frame, struct bw_xlator *xlator,
                      struct bw_request *const *order, size_t count)
{
    struct file *file = bw_xlator_private(xlator);
    struct bw_probes *probes = bw_xlator_probes(xlator);
    for (size_t first = 0, run, length; first < count; first += run) {
        run = bw_find_run(order, first, count, &length);
        struct bw_io_event event = {
            {.call = frame->call}, file->path, order[first]->address, length, run};
        uint64_t start = BW_PROBE_START(probes, dev__read__done);
        BW_PROBE(probes, dev__read__start, io_start, &event);
        answer_run(file, order + first, run, length);
        if (!BW_PROBE_ON(probes, dev__read__done))
            continue;
        event.event.ns = start ? bw_probes_now(probes) - start : 0;
        event.event.error = bw_run_error(order + first, run);
        BW_PROBE(probes, dev__read__done, io_done, &event);
    }
}

static void read_slice(const struct bw_frame *frame, struct bw_xlator *xlator,
                       struct bw_request *requests, size_t count)
{
    struct file *file = bw_xlator_private(xlator);
    struct bw_request *order[BW_BATCH];
    for (size_t i = 0; i < count; i++)
        order[i] = &requests[i];
    bw_sort_by_address(order, count);
    if (count > 1 && atomic_load_explicit(&file->cold, memory_order_relaxed))
        start_reading(file, order, count);
    read_runs(frame, xlator, order, count);
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    for (size_t done = 0; done < count; done += BW_BATCH)
        read_slice(frame, xlator, requests + done, bw_next_batch(count - done));
}

static void advise(const struct bw_frame *frame, struct bw_xlator *xlator,
                   const struct bw_range *ranges, size_t count, unsigned copy)
{
    (void)frame, (void)copy;
    struct file *file = bw_xlator_private(xlator);
    if (!atomic_load_explicit(&file->cold, memory_order_relaxed))
        return;
    for (size_t i = 0; i < count; i++)
        advise_range(file, ranges[i].address, ranges[i].length);
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    const struct file *file = bw_xlator_private(xlator);
    bw_json_number(json, "size", file->size);
    bw_json_bool(json, "block_device", !file->regular);
    bw_json_bool(json, "cold", atomic_load_explicit(&file->cold, memory_order_relaxed));
}

static const struct bw_option options[] = {
    {"path", BW_OPTION_PATH, NULL, 0, 0, "image file or block device; opened read-only", NULL},
    {0},
};

static const char page[] =
    "Reads the bytes of one image file or block device, at the bottom of the graph. The "
    "file is opened read-only. Its access time does not change if its owner runs the "
    "program. A batch of reads is sorted by offset, and neighbouring reads become one "
    "system call. If reads miss the page cache, the layer requests read-ahead from the "
    "kernel.\n";

const struct bw_xlator_class bw_storage_file_class = {
    .type = "storage/file",
    .description = "reads an image file or a block device",
    .page = page,
    .above = BW_ADDRESS_DEVICE,
    .below = BW_ADDRESS_NONE,
    .private_size = sizeof(struct file),
    .options = options,
    .operations = {.init = init,
                   .fini = fini,
                   .read = read_requests,
                   .advise = advise,
                   .size = size,
                   .next_stored = next_stored,
                   .dump = dump},
};
