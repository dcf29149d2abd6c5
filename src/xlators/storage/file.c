/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * storage/file: the bottom of the graph. It reads one image file or block device.
 *
 * A batch is sorted by offset, and each run of adjacent requests is read with one preadv(). If that
 * does not return all bytes, the requests of the run are read one by one, so that one bad sector
 * fails one request.
 *
 * Reads first try the page cache only (RWF_NOWAIT). A warm image needs nothing more. After some
 * misses the image counts as cold. From then on the layers above have their announcements passed to
 * the kernel (posix_fadvise), and so are all runs of a batch before the first is read, because
 * disks are faster if they know all of them. Maybe only the first reads of a warm image have
 * missed. So the first ranges that the layers above announce are looked up in the page cache,
 * before the kernel reads them. If it has nearly all of them, the image counts as warm again.
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

#include "base/compare.h"
#include "graph/wind.h"
#include "xlators/classes.h"
#include "xlators/storage/runs.h"

struct file {
    const char *path; /* the option's text, owned by the layer */
    int descriptor;
    uint64_t size;
    bool regular;             /* not a block device */
    atomic_bool cold;         /* reads miss the page cache */
    atomic_uint hits, misses; /* reads that the page cache had or lacked; if cold, announced ranges
                               */
};

/* Block devices do not report holes, so they have none. */
static uint64_t next_stored(struct bw_xlator *xlator, uint64_t address)
{
    const struct file *file = bw_xlator_private(xlator);
    if (address >= file->size)
        return UINT64_MAX;
    off_t next = lseek(file->descriptor, (off_t)address, SEEK_DATA);
    if (next >= 0)
        return (uint64_t)next;
    return errno == ENXIO ? UINT64_MAX : address;
}

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct file *file = bw_xlator_private(xlator);
    struct stat status;
    const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    file->path = bw_xlator_option_text(xlator, "path");
    /* Keeps the access time unchanged; only the owner of the file may request that. */
    file->descriptor = open(file->path, flags | O_NOATIME);
    if (file->descriptor < 0 && errno == EPERM)
        file->descriptor = open(file->path, flags);
    if (file->descriptor < 0) {
        const int reason = errno;
        struct bw_error *error = bw_error_from_errno(reason, "cannot open %s", file->path);
        if (reason == EACCES && stat(file->path, &status) == 0 && S_ISBLK(status.st_mode))
            return bw_error_advise(error, "try as root, or as a member of the device's group");
        return error;
    }
    if (fstat(file->descriptor, &status))
        return bw_error_from_errno(errno, "cannot stat %s", file->path);
    file->regular = S_ISREG(status.st_mode);
    if (!file->regular && !S_ISBLK(status.st_mode))
        return bw_error_create(BW_ERROR_USAGE, "%s is %s, not an image file or a block device",
                               file->path,
                               S_ISDIR(status.st_mode) ? "a directory" : "a special file");
    off_t end = lseek(file->descriptor, 0, SEEK_END);
    if (end < 0)
        return bw_error_from_errno(errno, "cannot find the size of %s", file->path);
    file->size = (uint64_t)end;
    bw_xlator_set_size(xlator, file->size);
    return NULL;
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

/* In an otherwise warm image a page or two may be missing from the page cache; read-ahead does not
 * help there. */
enum { COLD_MISSES = 3, COLD_SHARE = 16 };

static void set_cold(struct file *file, bool cold)
{
    atomic_store_explicit(&file->hits, 0, memory_order_relaxed);
    atomic_store_explicit(&file->misses, 0, memory_order_relaxed);
    atomic_store_explicit(&file->cold, cold, memory_order_relaxed);
}

/* preadv2() is not in every C library. The upper half of the offset is for 32-bit machines. */
static ssize_t read_with_flags(const struct file *file, const struct iovec *vectors, size_t count,
                               uint64_t offset, int flags)
{
    return syscall(SYS_preadv2, file->descriptor, vectors, (long)count, (long)offset,
                   (long)(offset >> 32), flags);
}

/* Reads a run of requests with one system call; false if it did not return all bytes. */
static bool read_run(struct file *file, struct bw_request *const *run, size_t count, size_t length)
{
    struct iovec vectors[BW_BATCH];
    const uint64_t offset = run[0]->address;
    const bool cold = atomic_load_explicit(&file->cold, memory_order_relaxed);
    for (size_t i = 0; i < count; i++)
        vectors[i] = (struct iovec){run[i]->buffer, run[i]->length};
    const ssize_t got = read_with_flags(file, vectors, count, offset, cold ? 0 : RWF_NOWAIT);
    if (got == (ssize_t)length && !cold)
        atomic_fetch_add_explicit(&file->hits, 1, memory_order_relaxed);
    if (got == (ssize_t)length || cold)
        return got == (ssize_t)length;

    const bool refused = got < 0 && errno == EOPNOTSUPP;
    if (got >= 0 || refused || errno == EAGAIN) {
        unsigned misses = atomic_fetch_add_explicit(&file->misses, 1, memory_order_relaxed) + 1;
        unsigned hits = atomic_load_explicit(&file->hits, memory_order_relaxed);
        if (refused || (misses >= COLD_MISSES && misses >= hits / COLD_SHARE))
            set_cold(file, true);
    }
    return preadv(file->descriptor, vectors, (int)count, (off_t)offset) == (ssize_t)length;
}

/* Linux begins to read no more than the device takes at once (max_sectors_kb, or read_ahead_kb if
 * that is larger), and forgets the rest. */
static void advise_range(const struct file *file, uint64_t offset, uint64_t length)
{
    const uint64_t most = 512 << 10;
    if (offset >= file->size)
        return;
    length = bw_min(length, file->size - offset);
    for (uint64_t done = 0, part; done < length; done += part) {
        part = bw_min(length - done, most);
        posix_fadvise(file->descriptor, (off_t)(offset + done), (off_t)part, POSIX_FADV_WILLNEED);
    }
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t total)
{
    struct file *file = bw_xlator_private(xlator);
    struct bw_probes *probes = bw_xlator_probes(xlator);
    for (size_t done = 0; done < total; done += BW_BATCH) {
        const size_t count = bw_next_batch(total - done);
        struct bw_request *order[BW_BATCH];
        for (size_t i = 0; i < count; i++)
            order[i] = &requests[done + i];
        bw_sort_by_address(order, count);
        const bool announce = count > 1 && atomic_load_explicit(&file->cold, memory_order_relaxed);
        for (size_t i = 0, run, length; announce && i < count; i += run) {
            run = bw_find_run(order, i, count, &length);
            advise_range(file, order[i]->address, length);
        }

        for (size_t first = 0, run, length; first < count; first += run) {
            run = bw_find_run(order, first, count, &length);
            struct bw_io_event event = {
                {.call = frame->call}, file->path, order[first]->address, length, run};
            const uint64_t start = BW_PROBE_START(probes, dev__read__done);
            BW_PROBE(probes, dev__read__start, io_start, &event);
            const bool is_read = read_run(file, order + first, run, length);
            for (size_t i = first; i < first + run; i++)
                order[i]->error = is_read ? NULL : read_one(file, order[i]);
            if (!BW_PROBE_ON(probes, dev__read__done))
                continue;
            event.event.ns = start ? bw_probes_now(probes) - start : 0;
            event.event.error = bw_run_error(order + first, run);
            BW_PROBE(probes, dev__read__done, io_done, &event);
        }
    }
}

static void advise(const struct bw_frame *frame, struct bw_xlator *xlator,
                   const struct bw_range *ranges, size_t count, unsigned copy)
{
    (void)frame, (void)copy;
    struct file *file = bw_xlator_private(xlator);
    for (size_t i = 0; i < count && atomic_load_explicit(&file->cold, memory_order_relaxed); i++) {
        if (atomic_load_explicit(&file->misses, memory_order_relaxed) < COLD_MISSES) {
            uint8_t byte;
            const struct iovec first = {&byte, 1};
            const bool hit = read_with_flags(file, &first, 1, ranges[i].address, RWF_NOWAIT) == 1;
            atomic_uint *counter = hit ? &file->hits : &file->misses;
            const unsigned before = atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
            if (hit && before == COLD_MISSES * COLD_SHARE) {
                set_cold(file, false);
                return;
            }
        }
        advise_range(file, ranges[i].address, ranges[i].length);
    }
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
                   .size = bw_xlator_own_size,
                   .next_stored = next_stored,
                   .dump = dump},
};
