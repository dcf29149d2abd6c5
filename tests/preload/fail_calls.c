/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lets one call of a program fail, which tests/support/fail_calls.py chooses: an allocation, a
 * read, a write, the start of a process or thread, or a message between processes.
 *
 * The program stops before main(), and runs in a child process whenever fail_calls.py says so,
 * which takes a fraction of the time of starting it.
 *
 * The shared file $FAIL_FILE has the choice, and collects the points at which calls of a kind can
 * fail. A point of an allocation is a hash of the innermost eight frames of the program on its
 * stack, relative to where the program was loaded, so a loop is one point; memory that libraries
 * take for themselves is not of interest. All other calls are counted in each process. The highest
 * byte of a point is the kind.
 *
 * It is preloaded. With WRAPPED defined, it is linked into the program with --wrap for each
 * CALL(...) below, because sanitizers have allocation functions of their own.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 1 << 14, DEPTH = 40, KEPT = 11 };
/* In the program itself, three frames are of this file. */
#ifdef WRAPPED
enum { FRAMES = 11 };
#else
enum { FRAMES = 8 };
#endif
enum kind { MEMORY = 1, READ, WRITE, START, MESSAGE };
/* Instead of an error number. */
enum { SHORT = 1000, OTHER_BYTES, DIE };

/* fail_calls.py reads and writes this structure. */
struct shared {
    uint64_t kind;   /* the calls to fail, or to collect (0: all) */
    uint64_t point;  /* where one fails; 0: nowhere, all are collected */
    uint64_t depth;  /* of the stack there */
    uint64_t action; /* an error number, or one of the above */
    uint64_t later;  /* all later ones of the process fail, too */
    _Atomic uint64_t fired;
    _Atomic uint64_t processes;
    struct slot {
        _Atomic uint64_t point;
        uint64_t depth;
        uint64_t frames[KEPT]; /* offsets in the program, for addr2line */
    } slots[SLOTS];
};

static struct shared *shared;
static uintptr_t program_start, program_end;
static _Atomic uint64_t calls[MESSAGE + 1]; /* of this process */
static _Atomic uint64_t process;            /* its number */
static _Atomic bool failing;
static __thread bool inside __attribute__((tls_model("initial-exec")));

#ifdef WRAPPED
#define CALL(name) __wrap_##name
#define REAL(name) __real_##name
#define DECLARE(type, name, ...)  \
    type REAL(name)(__VA_ARGS__); \
    type CALL(name)(__VA_ARGS__)
#else
#define CALL(name) name
#define REAL(name) real_##name
#define DECLARE(type, name, ...)                                    \
    static type (*REAL(name))(__VA_ARGS__);                         \
    __attribute__((constructor(101))) static void find_##name(void) \
    {                                                               \
        REAL(name) = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name); \
    }                                                               \
    type CALL(name)(__VA_ARGS__)
#endif

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

static void count_process(void)
{
    atomic_store(&process, atomic_fetch_add(&shared->processes, 1) + 1);
    for (unsigned i = 0; i <= MESSAGE; i++)
        atomic_store(&calls[i], 0);
}

static void open_streams(void)
{
    static const char *const names[] = {"/dev/null", "stdout", "stderr"};
    for (int i = 0; i < 3; i++) {
        close(i);
        open(names[i], O_RDWR | O_CREAT | O_TRUNC, 0600);
    }
}

/* Returns in a child process for each byte that is read, and writes the status of each. */
static void serve(void)
{
    int status;
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* of helpers that outlive the program */
    for (char order; read(STDIN_FILENO, &order, 1) == 1;) {
        const pid_t child = fork();
        if (child == 0) {
            open_streams();
            return;
        }
        if (child < 0)
            _exit(1);
        int ended_with;
        for (pid_t ended; (ended = wait(&ended_with)) > 0;)
            if (ended == child)
                status = ended_with;
        write(STDOUT_FILENO, &status, sizeof status);
    }
    _exit(0);
}

__attribute__((constructor)) static void start(void)
{
    const char *file = getenv("FAIL_FILE");
    void *frames[2];
    if (!file)
        return;
    inside = true;
    backtrace(frames, 2); /* loads the unwinder */
    dl_iterate_phdr(find_program, NULL);
    const int descriptor = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC, 0);
    void *map = (void *)syscall(SYS_mmap, NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED,
                                descriptor, 0L);
    syscall(SYS_close, descriptor);
    if (map != MAP_FAILED) {
        shared = map;
        unsetenv("FAIL_FILE");
        pthread_atfork(NULL, NULL, count_process);
        serve();
    }
    inside = false;
}

/* The program's frames of this thread, as offsets; and their hash. */
static uint64_t hash_stack(uint64_t offsets[KEPT])
{
    void *frames[DEPTH];
    const int depth = backtrace(frames, DEPTH);
    uint64_t hash = 1469598103934665603U;
    for (int i = 0, count = 0; i < depth && count < FRAMES; i++) {
        const uintptr_t address = (uintptr_t)frames[i];
        if (address < program_start || address >= program_end)
            continue;
        offsets[count] = address - program_start;
        hash = (hash ^ offsets[count++]) * 1099511628211U;
    }
    return offsets[0] ? hash : 0;
}

static void remember(uint64_t point, uint64_t depth, const uint64_t offsets[KEPT])
{
    for (unsigned tries = 0, i = point % SLOTS; tries < SLOTS; tries++, i = (i + 1) % SLOTS) {
        uint64_t none = 0;
        if (atomic_load(&shared->slots[i].point) == point)
            return;
        if (!atomic_compare_exchange_strong(&shared->slots[i].point, &none, point))
            continue;
        shared->slots[i].depth = depth;
        memcpy(shared->slots[i].frames, offsets, sizeof shared->slots[i].frames);
        return;
    }
}

static bool is_wanted(enum kind kind)
{
    return !shared->kind || shared->kind == kind;
}

/* Returns the action if a call of this kind fails, or 0. */
static int action(enum kind kind)
{
    if (!shared || !kind || !is_wanted(kind) || inside)
        return 0;
    inside = true;
    uint64_t offsets[KEPT] = {0}, hash = 0;
    const bool by_stack = kind == MEMORY, all = !shared->point;
    /* Finding the frames takes long. Stacks of threads begin at a page. */
    const uint64_t depth = (uintptr_t)__builtin_frame_address(0) % 4096;
    if (all || (by_stack && depth == shared->depth))
        hash = hash_stack(offsets);
    const uint64_t number =
        by_stack ? hash >> 8 : atomic_load(&process) << 32 | atomic_fetch_add(&calls[kind], 1);
    const uint64_t point = (uint64_t)kind << 56 | number;
    bool fails = atomic_load(&failing);
    if (all && hash) {
        remember(point, depth, offsets);
    } else if (!fails && !all && point == shared->point) {
        /* Once, or from now on. */
        fails = shared->later ? !atomic_exchange(&failing, true) : !atomic_load(&shared->fired);
    }
    if (fails)
        atomic_fetch_add(&shared->fired, 1);
    inside = false;
    if (!fails)
        return 0;
    if (shared->action == DIE)
        __builtin_trap(); /* a sandbox allows no signals */
    return (int)shared->action;
}

static bool fails(enum kind kind)
{
    const int what = action(kind);
    if (what > 0 && what < SHORT)
        errno = what;
    return what > 0 && what < SHORT;
}

/* Allocations. */

#ifdef WRAPPED
#define REAL_MEMORY REAL
extern void *REAL(malloc)(size_t);
extern void *REAL(calloc)(size_t, size_t);
extern void *REAL(realloc)(void *, size_t);
#define real_memalign memalign
extern void *memalign(size_t, size_t);
void *CALL(malloc)(size_t);
void *CALL(calloc)(size_t, size_t);
void *CALL(realloc)(void *, size_t);
void *CALL(reallocarray)(void *, size_t, size_t);
void *CALL(aligned_alloc)(size_t, size_t);
int CALL(posix_memalign)(void **, size_t, size_t);
#else
#define REAL_MEMORY(name) __libc_##name
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
#define real_memalign     __libc_memalign
#endif

void *CALL(malloc)(size_t size)
{
    return fails(MEMORY) ? NULL : REAL_MEMORY(malloc)(size);
}

void *CALL(calloc)(size_t count, size_t size)
{
    return fails(MEMORY) ? NULL : REAL_MEMORY(calloc)(count, size);
}

void *CALL(realloc)(void *old, size_t size)
{
    return fails(MEMORY) ? NULL : REAL_MEMORY(realloc)(old, size);
}

void *CALL(reallocarray)(void *old, size_t count, size_t size)
{
    size_t all;
    if (!__builtin_mul_overflow(count, size, &all))
        return CALL(realloc)(old, all);
    errno = ENOMEM;
    return NULL;
}

void *CALL(aligned_alloc)(size_t alignment, size_t size)
{
    return fails(MEMORY) ? NULL : real_memalign(alignment, size);
}

int CALL(posix_memalign)(void **result, size_t alignment, size_t size)
{
    void *memory = CALL(aligned_alloc)(alignment, size);
    if (!memory)
        return ENOMEM;
    *result = memory;
    return 0;
}

DECLARE(void *, mmap64, void *address, size_t length, int protection, int flags, int descriptor,
        off64_t offset)
{
    return fails(MEMORY) ? MAP_FAILED
                         : REAL(mmap64)(address, length, protection, flags, descriptor, offset);
}

#ifdef WRAPPED
/* What allocates in the C library, where a preloaded malloc() is called, too. */
DECLARE(char *, strdup, const char *text)
{
    return fails(MEMORY) ? NULL : REAL(strdup)(text);
}

DECLARE(char *, strndup, const char *text, size_t length)
{
    return fails(MEMORY) ? NULL : REAL(strndup)(text, length);
}

DECLARE(int, vasprintf, char **text, const char *format, va_list arguments)
{
    *text = NULL;
    return fails(MEMORY) ? -1 : REAL(vasprintf)(text, format, arguments);
}

int CALL(asprintf)(char **text, const char *format, ...);
int CALL(asprintf)(char **text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = CALL(vasprintf)(text, format, arguments);
    va_end(arguments);
    return length;
}

DECLARE(DIR *, opendir, const char *name)
{
    return fails(MEMORY) ? NULL : REAL(opendir)(name);
}

DECLARE(DIR *, fdopendir, int descriptor)
{
    return fails(MEMORY) ? NULL : REAL(fdopendir)(descriptor);
}

DECLARE(FILE *, fdopen, int descriptor, const char *mode)
{
    return fails(MEMORY) ? NULL : REAL(fdopen)(descriptor, mode);
}
#endif

/* The clock and random numbers, which files may contain, are the same in all runs. */

DECLARE(time_t, time, time_t *result)
{
    const time_t now = shared ? 1800000000 : REAL(time)(NULL);
    if (result)
        *result = now;
    return now;
}

DECLARE(ssize_t, getrandom, void *buffer, size_t length, unsigned flags)
{
    if (!shared)
        return REAL(getrandom)(buffer, length, flags);
    memset(buffer, 0x5a, length);
    return (ssize_t)length;
}

DECLARE(void, uuid_generate, unsigned char uuid[16])
{
    if (!shared)
        REAL(uuid_generate)(uuid);
    else
        memset(uuid, 0x5a, 16);
}

/* Reads of files, and messages. */

/* Messages go through pipes and sockets, and terminals are nobody's business. */
static enum kind kind_of(int descriptor, enum kind of_files)
{
    struct stat status;
    const int problem = errno;
    const bool known = syscall(SYS_newfstatat, descriptor, "", &status, AT_EMPTY_PATH) == 0;
    errno = problem;
    if (known && (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode)))
        return of_files;
    return known && (S_ISSOCK(status.st_mode) || S_ISFIFO(status.st_mode)) ? MESSAGE : 0;
}

static void change_bytes(const struct iovec *vectors, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t at = 0; at < vectors[i].iov_len; at += 61)
            ((unsigned char *)vectors[i].iov_base)[at] ^= 0x55;
}

/* A read that is not to fail, but to be short or wrong. */
static ssize_t spoil(int what, ssize_t got, const struct iovec *vectors, size_t count)
{
    if (what == SHORT && got > 1)
        return got / 2;
    if (what == OTHER_BYTES && got > 0)
        change_bytes(vectors, count);
    return got;
}

/* Returns from the caller if the call fails. */
#define MAY_FAIL(kind)              \
    const int what = action(kind);  \
    if (what > 0 && what < SHORT) { \
        errno = what;               \
        return -1;                  \
    }

DECLARE(ssize_t, read, int descriptor, void *buffer, size_t length)
{
    MAY_FAIL(kind_of(descriptor, READ))
    const ssize_t got = REAL(read)(descriptor, buffer, length);
    return spoil(what, got, &(struct iovec){buffer, got > 0 ? (size_t)got : 0}, 1);
}

DECLARE(ssize_t, pread64, int descriptor, void *buffer, size_t length, off64_t offset)
{
    MAY_FAIL(READ)
    const ssize_t got = REAL(pread64)(descriptor, buffer, length, offset);
    return spoil(what, got, &(struct iovec){buffer, got > 0 ? (size_t)got : 0}, 1);
}

DECLARE(ssize_t, preadv64, int descriptor, const struct iovec *vectors, int count, off64_t offset)
{
    MAY_FAIL(READ)
    return spoil(what, REAL(preadv64)(descriptor, vectors, count, offset), vectors, (size_t)count);
}

DECLARE(ssize_t, recvmsg, int descriptor, struct msghdr *message, int flags)
{
    MAY_FAIL(MESSAGE)
    return REAL(recvmsg)(descriptor, message, flags);
}

DECLARE(ssize_t, recv, int descriptor, void *buffer, size_t length, int flags)
{
    MAY_FAIL(MESSAGE)
    return REAL(recv)(descriptor, buffer, length, flags);
}

DECLARE(ssize_t, sendmsg, int descriptor, const struct msghdr *message, int flags)
{
    MAY_FAIL(MESSAGE)
    return REAL(sendmsg)(descriptor, message, flags);
}

DECLARE(ssize_t, send, int descriptor, const void *buffer, size_t length, int flags)
{
    MAY_FAIL(MESSAGE)
    return REAL(send)(descriptor, buffer, length, flags);
}

/* Writes. */

DECLARE(ssize_t, write, int descriptor, const void *buffer, size_t length)
{
    /* The messages of the program are not what is tested. */
    MAY_FAIL(descriptor == STDERR_FILENO   ? 0
             : descriptor == STDOUT_FILENO ? WRITE
                                           : kind_of(descriptor, WRITE))
    return REAL(write)(descriptor, buffer, what == SHORT && length > 1 ? length / 2 : length);
}

DECLARE(ssize_t, pwrite64, int descriptor, const void *buffer, size_t length, off64_t offset)
{
    MAY_FAIL(WRITE)
    return REAL(pwrite64)(descriptor, buffer, what == SHORT && length > 1 ? length / 2 : length,
                          offset);
}

DECLARE(ssize_t, copy_file_range, int from, off64_t *from_offset, int to, off64_t *to_offset,
        size_t length, unsigned flags)
{
    MAY_FAIL(WRITE)
    return REAL(copy_file_range)(from, from_offset, to, to_offset, length, flags);
}

/* As on NFS, where the disk can be full only now; the descriptor is closed in any case. */
DECLARE(int, close, int descriptor)
{
    const int flags = shared && is_wanted(WRITE) ? fcntl(descriptor, F_GETFL) : -1;
    const bool written = flags >= 0 && (flags & O_ACCMODE) != O_RDONLY &&
                         descriptor != STDERR_FILENO && kind_of(descriptor, WRITE) == WRITE;
    const int problem = written && fails(WRITE) ? errno : 0;
    const int result = REAL(close)(descriptor);
    if (!problem)
        return result;
    errno = problem;
    return -1;
}

#define WRITES(name, parameters, ...)                       \
    DECLARE(int, name, parameters)                          \
    {                                                       \
        return fails(WRITE) ? -1 : REAL(name)(__VA_ARGS__); \
    }
#define P(...) __VA_ARGS__
WRITES(fsync, P(int descriptor), descriptor)
WRITES(syncfs, P(int descriptor), descriptor)
WRITES(ftruncate64, P(int descriptor, off64_t length), descriptor, length)
WRITES(fallocate64, P(int descriptor, int mode, off64_t offset, off64_t length), descriptor, mode,
       offset, length)
WRITES(mkdirat, P(int folder, const char *name, mode_t mode), folder, name, mode)
WRITES(mknodat, P(int folder, const char *name, mode_t mode, dev_t device), folder, name, mode,
       device)
WRITES(symlinkat, P(const char *text, int folder, const char *name), text, folder, name)
WRITES(linkat, P(int from, const char *name, int to, const char *new_name, int flags), from, name,
       to, new_name, flags)
WRITES(renameat, P(int from, const char *name, int to, const char *new_name), from, name, to,
       new_name)
WRITES(renameat2, P(int from, const char *name, int to, const char *new_name, unsigned flags), from,
       name, to, new_name, flags)
WRITES(fchmod, P(int descriptor, mode_t mode), descriptor, mode)
WRITES(fchownat, P(int folder, const char *name, uid_t user, gid_t group, int flags), folder, name,
       user, group, flags)
WRITES(fchown, P(int descriptor, uid_t user, gid_t group), descriptor, user, group)
WRITES(futimens, P(int descriptor, const struct timespec times[2]), descriptor, times)
WRITES(utimensat, P(int folder, const char *name, const struct timespec times[2], int flags),
       folder, name, times, flags)
WRITES(fsetxattr, P(int descriptor, const char *name, const void *value, size_t size, int flags),
       descriptor, name, value, size, flags)
WRITES(setxattr, P(const char *path, const char *name, const void *value, size_t size, int flags),
       path, name, value, size, flags)
WRITES(lsetxattr, P(const char *path, const char *name, const void *value, size_t size, int flags),
       path, name, value, size, flags)

/* Opening for writing. The mode of a call without one is not used. */
#define OPENS(flags) ((flags) & (O_WRONLY | O_RDWR | O_CREAT) ? WRITE : 0)

#define MODE(flags)                                                                      \
    va_list arguments;                                                                   \
    va_start(arguments, flags);                                                          \
    const mode_t mode = (flags) & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0; \
    va_end(arguments);

DECLARE(int, open64, const char *name, int flags, ...)
{
    MODE(flags)
    return fails(OPENS(flags)) ? -1 : REAL(open64)(name, flags, mode);
}

DECLARE(int, openat64, int folder, const char *name, int flags, ...)
{
    MODE(flags)
    return fails(OPENS(flags)) ? -1 : REAL(openat64)(folder, name, flags, mode);
}

/* Processes and threads. */

DECLARE(pid_t, fork, void)
{
    return fails(START) ? -1 : REAL(fork)();
}

DECLARE(int, pthread_create, pthread_t *thread, const pthread_attr_t *attributes,
        void *(*function)(void *), void *context)
{
    return fails(START) ? EAGAIN : REAL(pthread_create)(thread, attributes, function, context);
}

DECLARE(int, socketpair, int domain, int type, int protocol, int sockets[2])
{
    return fails(START) ? -1 : REAL(socketpair)(domain, type, protocol, sockets);
}

DECLARE(int, pipe2, int ends[2], int flags)
{
    return fails(START) ? -1 : REAL(pipe2)(ends, flags);
}

DECLARE(int, memfd_create, const char *name, unsigned flags)
{
    return fails(START) ? -1 : REAL(memfd_create)(name, flags);
}

/* preadv2(2) is called like this. */
DECLARE(long, syscall, long number, ...)
{
    long a[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(arguments, long);
    va_end(arguments);
    MAY_FAIL(number == SYS_preadv2 ? READ : 0)
    const long result = REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    return number == SYS_preadv2 ? spoil(what, result, (struct iovec *)a[1], (size_t)a[2]) : result;
}
