/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fails one allocation of a program: preloaded, by tests/support/fail_each_alloc.py.
 *
 * An allocation is named by a hash of the frames of the program on its stack, relative to where the
 * program was loaded, so that address randomization does not matter. The shared file $ALLOC_FILE
 * says which one fails, and collects the hashes of all. Memory that the libraries take for
 * themselves is not of interest, only what the program's own code asks for.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SLOTS = 1 << 16, DEPTH = 40, KEPT = 12 };

/* fail_each_alloc.py reads and writes this structure. */
struct shared {
    uint64_t fails;      /* the hash of the allocation that fails; 0: none */
    uint64_t occurrence; /* the first, second, ... one with this hash */
    _Atomic uint64_t seen;
    _Atomic uint64_t fired;
    struct slot {
        _Atomic uint64_t hash;
        uint64_t frames[KEPT]; /* offsets in the program, for addr2line */
    } slots[SLOTS];
};

static struct shared *shared;
static uintptr_t program_start, program_end;
static __thread bool inside __attribute__((tls_model("initial-exec")));

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

/* The program is the first object. */
static int find_program(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size, (void)context;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const uintptr_t end = info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_addr + end > program_end)
            program_end = info->dlpi_addr + end;
    }
    program_start = info->dlpi_addr;
    return 1;
}

__attribute__((constructor)) static void start(void)
{
    const char *file = getenv("ALLOC_FILE");
    void *frames[2];
    inside = true;
    backtrace(frames, 2); /* loads the unwinder */
    dl_iterate_phdr(find_program, NULL);
    const int descriptor = file ? open(file, O_RDWR | O_CLOEXEC) : -1;
    void *map = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (descriptor >= 0)
        close(descriptor);
    inside = false;
    if (map != MAP_FAILED)
        shared = map;
}

static void remember(uint64_t hash, const uintptr_t *offsets, int count)
{
    for (unsigned tries = 0, i = hash % SLOTS; tries < SLOTS; tries++, i = (i + 1) % SLOTS) {
        uint64_t none = 0;
        if (atomic_load(&shared->slots[i].hash) == hash)
            return;
        if (!atomic_compare_exchange_strong(&shared->slots[i].hash, &none, hash))
            continue;
        for (int frame = 0; frame < count && frame < KEPT; frame++)
            shared->slots[i].frames[frame] = offsets[frame];
        return;
    }
}

static bool fails(void)
{
    if (!shared || inside)
        return false;
    inside = true;
    void *frames[DEPTH];
    uintptr_t offsets[DEPTH];
    int count = 0;
    const int depth = backtrace(frames, DEPTH);
    uint64_t hash = 1469598103934665603U;
    for (int i = 0; i < depth; i++) {
        const uintptr_t address = (uintptr_t)frames[i];
        if (address < program_start || address >= program_end)
            continue;
        offsets[count] = address - program_start;
        hash = (hash ^ offsets[count++]) * 1099511628211U;
    }
    bool result = false;
    if (count && shared->fails == hash)
        result = atomic_fetch_add(&shared->seen, 1) + 1 == shared->occurrence;
    else if (count && !shared->fails)
        remember(hash, offsets, count);
    if (result)
        atomic_fetch_add(&shared->fired, 1);
    inside = false;
    if (result)
        errno = ENOMEM;
    return result;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return fails() ? NULL : __libc_realloc(old, size);
}

void *reallocarray(void *old, size_t count, size_t size)
{
    size_t all;
    if (!__builtin_mul_overflow(count, size, &all))
        return realloc(old, all);
    errno = ENOMEM;
    return NULL;
}

void *memalign(size_t alignment, size_t size)
{
    return fails() ? NULL : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size)
{
    void *memory = memalign(alignment, size);
    if (!memory)
        return ENOMEM;
    *result = memory;
    return 0;
}
