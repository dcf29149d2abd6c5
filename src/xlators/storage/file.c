/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * storage/file: bottom of the pipeline, reads one image file or block device. The only place with
 * pread.
 *
 * A batch is sorted by offset and neighbours become one preadv. Reads first ask for what is in the
 * page cache (RWF_NOWAIT): on a warm image nothing more is needed, and some misses say that the
 * image is cold, from when on hints are passed to the kernel.
 *
 * With io=mmap the bytes are copied out of a mapping instead, under the guard of bus_guard.c.
 * Whatever the mapping cannot answer is read again with pread, which knows why.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "graph/wind.h"
#include "xlators/classes.h"
#include "xlators/storage/bus_guard.h"

struct file {
    const char *path; /* the option's text, owned by the layer */
    int descriptor;
    uint64_t size;
    bool regular;             /* not a block device */
    const uint8_t *mapped;    /* all of it, with io=mmap; NULL: pread */
    atomic_bool cold;         /* reads miss the page cache */
    atomic_uint hits, misses; /* of the page cache, until it is cold */
};

enum { IO_PREAD, IO_MMAP };

static uint64_t size(struct bw_xlator *xlator)
{
    const struct file *file = bw_xlator_private(xlator);
    return file->size;
}

static struct bw_error *open_file(struct file *file)
{
    struct stat status;
    const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    /* Not even the time of access is changed, where the owner of the file allows that. */
    file->descriptor = open(file->path, flags | O_NOATIME);
    if (file->descriptor < 0 && errno == EPERM)
        file->descriptor = open(file->path, flags);
    if (file->descriptor < 0)
        return bw_error_from_errno(errno, "cannot open %s", file->path);
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

static struct bw_error *map_file(struct file *file)
{
    if (file->size == 0)
        return NULL; /* cannot be mapped, and nothing is lost */
    if (file->size > SIZE_MAX)
        return bw_error_create(BW_ERROR_UNSUPPORTED, "%s is too large to be mapped", file->path);
    void *mapped = mmap(NULL, (size_t)file->size, PROT_READ, MAP_SHARED, file->descriptor, 0);
    if (mapped == MAP_FAILED)
        return bw_error_from_errno(errno, "cannot map %s", file->path);
    file->mapped = mapped;
    /* Otherwise a fault reads what lies around it as well; what is wanted comes in by hints. */
    madvise(mapped, (size_t)file->size, MADV_RANDOM);
    bw_bus_guard_acquire();
    return NULL;
}

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct file *file = calloc(1, sizeof *file);
    if (!file)
        return bw_error_no_memory();
    file->descriptor = -1;
    file->path = bw_xlator_option_text(xlator, "path");
    bw_xlator_set_private(xlator, file);
    BW_TRY(open_file(file));
    return bw_xlator_option_number(xlator, "io") == IO_MMAP ? map_file(file) : NULL;
}

static void fini(struct bw_xlator *xlator)
{
    struct file *file = bw_xlator_private(xlator);
    if (file && file->mapped) {
        munmap((void *)file->mapped, (size_t)file->size);
        bw_bus_guard_release();
    }
    if (file && file->descriptor >= 0)
        close(file->descriptor);
    free(file);
    bw_xlator_set_private(xlator, NULL);
}

/* Reads one request to its end, through interruptions and short reads. */
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

/* A page or two may be missing of an image that is warm otherwise, and hints are worth nothing
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

/* Reads neighbours with one system call if all is in the page cache or, once cold, in any case. */
static bool read_run(struct file *file, const struct iovec *vectors, int count, uint64_t offset,
                     size_t length)
{
    bool cold = atomic_load_explicit(&file->cold, memory_order_relaxed);
    ssize_t got = preadv2(file->descriptor, vectors, count, (off_t)offset, cold ? 0 : RWF_NOWAIT);
    if (got == (ssize_t)length && !cold)
        atomic_fetch_add_explicit(&file->hits, 1, memory_order_relaxed);
    if (got == (ssize_t)length || cold)
        return got == (ssize_t)length;
    if (got >= 0 || errno == EAGAIN || errno == EOPNOTSUPP)
        note_miss(file, got >= 0 ? 0 : errno);
    return preadv(file->descriptor, vectors, count, (off_t)offset) == (ssize_t)length;
}

static void sort_by_address(struct bw_request **order, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct bw_request *moving = order[i];
        size_t at = i;
        for (; at && order[at - 1]->address > moving->address; at--)
            order[at] = order[at - 1];
        order[at] = moving;
    }
}

/* The requests from `first` on that lie behind one another: how many, and how many bytes together.
 */
static size_t find_run(struct bw_request *const *order, size_t first, size_t count, size_t *length)
{
    size_t next = first;
    uint64_t end = order[first]->address;
    for (; next < count && order[next]->address == end; next++)
        end += order[next]->length;
    *length = (size_t)(end - order[first]->address);
    return next - first;
}

/* On a cold file all runs of a batch are on their way before the first is waited for. */
static void start_reading(const struct file *file, struct bw_request *const *order, size_t count)
{
    for (size_t first = 0, run, length; first < count; first += run) {
        run = find_run(order, first, count, &length);
        posix_fadvise(file->descriptor, (off_t)order[first]->address, (off_t)length,
                      POSIX_FADV_WILLNEED);
    }
}

/* Copies neighbours out of the mapping. */
static bool copy_run(const struct file *file, const struct iovec *vectors, int count,
                     uint64_t offset, size_t length)
{
    if (offset > file->size || length > file->size - offset)
        return false;
    const uint8_t *from = file->mapped + offset;
    for (int i = 0; i < count; from += vectors[i++].iov_len)
        if (!bw_bus_guard_copy(vectors[i].iov_base, from, vectors[i].iov_len))
            return false;
    return true;
}

/* Reads neighbours, or, if that cannot be done at once, each by itself. */
static void answer_run(struct file *file, struct bw_request *const *run, size_t count,
                       size_t length)
{
    struct iovec vectors[BW_BATCH];
    for (size_t i = 0; i < count; i++)
        vectors[i] = (struct iovec){run[i]->buffer, run[i]->length};
    uint64_t offset = run[0]->address;
    bool whole = file->mapped ? copy_run(file, vectors, (int)count, offset, length)
                              : read_run(file, vectors, (int)count, offset, length);
    for (size_t i = 0; i < count; i++)
        run[i]->error = whole ? NULL : read_one(file, run[i]);
}

static const struct bw_error *first_error(struct bw_request *const *run, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (run[i]->error)
            return run[i]->error;
    return NULL;
}

static void read_runs(const struct bw_frame *frame, struct bw_xlator *xlator,
                      struct bw_request *const *order, size_t count)
{
    struct file *file = bw_xlator_private(xlator);
    struct bw_probes *probes = bw_xlator_probes(xlator);
    for (size_t first = 0, run, length; first < count; first += run) {
        run = find_run(order, first, count, &length);
        struct bw_io_event event = {
            {.call = frame->call}, file->path, order[first]->address, length, run};
        uint64_t start = BW_PROBE_START(probes, dev__read__done);
        BW_PROBE(probes, dev__read__start, io_start, &event);
        answer_run(file, order + first, run, length);
        if (!BW_PROBE_ON(probes, dev__read__done))
            continue;
        event.event.ns = start ? bw_probes_now(probes) - start : 0;
        event.event.error = first_error(order + first, run);
        BW_PROBE(probes, dev__read__done, io_done, &event);
    }
}

/* Faults tell nothing about the page cache: the first byte of each batch is asked for until one is
 * missing.
 */
static void notice_cold(struct file *file, uint64_t offset)
{
    uint8_t byte;
    if (atomic_load_explicit(&file->cold, memory_order_relaxed) || offset >= file->size)
        return;
    const struct iovec vector = {&byte, 1};
    ssize_t got = preadv2(file->descriptor, &vector, 1, (off_t)offset, RWF_NOWAIT);
    if (got == 1)
        atomic_fetch_add_explicit(&file->hits, 1, memory_order_relaxed);
    else
        note_miss(file, got >= 0 ? 0 : errno);
}

/* What lies behind a new end, but in the same page as it, was read as zeros: it is asked for once
 * more. */
static void check_end(const struct file *file, struct bw_request *requests, size_t count)
{
    struct stat status;
    if (!file->regular || fstat(file->descriptor, &status) ||
        (uint64_t)status.st_size >= file->size)
        return;
    for (size_t i = 0; i < count; i++)
        if (!requests[i].error &&
            requests[i].address + requests[i].length > (uint64_t)status.st_size)
            requests[i].error = read_one(file, &requests[i]);
}

static void read_slice(const struct bw_frame *frame, struct bw_xlator *xlator,
                       struct bw_request *requests, size_t count)
{
    struct file *file = bw_xlator_private(xlator);
    struct bw_request *order[BW_BATCH];
    sigset_t mask;
    for (size_t i = 0; i < count; i++)
        order[i] = &requests[i];
    sort_by_address(order, count);
    if (file->mapped)
        notice_cold(file, order[0]->address);
    if (count > 1 && atomic_load_explicit(&file->cold, memory_order_relaxed))
        start_reading(file, order, count);
    if (file->mapped)
        bw_bus_guard_enter(&mask);
    read_runs(frame, xlator, order, count);
    if (file->mapped) {
        bw_bus_guard_leave(&mask);
        check_end(file, requests, count);
    }
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    for (size_t done = 0; done < count; done += BW_BATCH)
        read_slice(frame, xlator, requests + done, bw_next_batch(count - done));
}

static void advise(const struct bw_frame *frame, struct bw_xlator *xlator,
                   const struct bw_range *ranges, size_t count)
{
    (void)frame;
    struct file *file = bw_xlator_private(xlator);
    if (!atomic_load_explicit(&file->cold, memory_order_relaxed))
        return;
    for (size_t i = 0; i < count; i++)
        posix_fadvise(file->descriptor, (off_t)ranges[i].address, (off_t)ranges[i].length,
                      POSIX_FADV_WILLNEED);
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    const struct file *file = bw_xlator_private(xlator);
    bw_json_number(json, "size", file->size);
    bw_json_bool(json, "block_device", !file->regular);
    bw_json_bool(json, "mapped", file->mapped != NULL);
    bw_json_bool(json, "cold", atomic_load_explicit(&file->cold, memory_order_relaxed));
}

static const char *const readers[] = {[IO_PREAD] = "pread", [IO_MMAP] = "mmap", NULL};

static const struct bw_option options[] = {
    {.name = "path",
     .type = BW_OPTION_PATH,
     .description = "image file or block device; opened read-only"},
    {.name = "io",
     .type = BW_OPTION_ENUM,
     .default_value = "pread",
     .choices = readers,
     .description = "how bytes are fetched: by system calls, or out of a mapping"},
    {0},
};

static const char page[] =
    "The bottom of the graph: bytes of one image file or block device. It is opened read-only, and "
    "where "
    "the owner allows that not even the time of access changes. A batch of reads is sorted by "
    "offset, "
    "and neighbours become one system call. As soon as a read has missed the page cache, the "
    "kernel is "
    "told ahead what comes next.\n"
    "\n"
    "With io=mmap bytes are copied out of a mapping of the whole file instead. A file that shrinks "
    "meanwhile, or a disk that fails, costs the reads concerned an error, as with pread. To that "
    "end "
    "SIGBUS is caught while such a layer exists; signals that have nothing to do with it go to "
    "whoever "
    "caught them before.\n"
    "\n"
    "    btrfs-walk --xlator-option storage/file.io=mmap disk.img\n"
    "\n"
    "The mapping is about a tenth faster if the image lies in the page cache in large pieces, "
    "because it "
    "was just copied or read from front to back. It is as fast on tmpfs. It is a tenth to a half "
    "slower "
    "if the cache holds small pieces, as earlier walks leave them, more so with several threads, "
    "and a "
    "tenth or two slower on a cold image. It needs room for the whole image in the address space. "
    "So "
    "pread is the default.\n";

const struct bw_xlator_class bw_storage_file_class = {
    .type = "storage/file",
    .description = "reads an image file or a block device",
    .page = page,
    .above = BW_ADDRESS_DEVICE,
    .below = BW_ADDRESS_NONE,
    .options = options,
    .operations = {.init = init,
                   .fini = fini,
                   .read = read_requests,
                   .advise = advise,
                   .size = size,
                   .dump = dump},
};
