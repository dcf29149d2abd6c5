/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The half of the sandbox that is about system calls: seccomp. Calls that are not in these tables
 * fail with EPERM, so that a mistake in a table is an error and not the end of the program. Names
 * that libseccomp or the machine does not know are left out.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "cli/common/sandbox.h"

#if defined BW_SANDBOX && defined BW_SECCOMP
#include <seccomp.h>

static const char *const always[] = {
    /* memory */
    "brk",
    "madvise",
    "membarrier",
    "mremap",
    "munmap",
    /* files that are open, and what is known of others */
    "_llseek",
    "close",
    "dup",
    "dup2",
    "dup3",
    "fadvise64",
    "fadvise64_64",
    "arm_fadvise64_64",
    "fstat",
    "fstat64",
    "fstatat64",
    "ftruncate",
    "ftruncate64",
    "getcwd",
    "getdents",
    "getdents64",
    "lseek",
    "lstat",
    "lstat64",
    "memfd_create",
    "newfstatat",
    "poll",
    "ppoll",
    "ppoll_time64",
    "pread64",
    "preadv",
    "preadv2",
    "pwrite64",
    "read",
    "readlink",
    "readlinkat",
    "readv",
    "stat",
    "stat64",
    "statx",
    "write",
    "writev",
    /* threads, signals and the end; tracers may need uprobe and uretprobe */
    "exit",
    "exit_group",
    "futex",
    "futex_time64",
    "get_robust_list",
    "getpid",
    "gettid",
    "restart_syscall",
    "rseq",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "rt_sigtimedwait",
    "rt_sigtimedwait_time64",
    "sched_getaffinity",
    "sched_yield",
    "set_robust_list",
    "set_tid_address",
    "sigaltstack",
    "sigreturn",
    "uprobe",
    "uretprobe",
    /* time, random numbers, who and where we are */
    "clock_getres",
    "clock_getres_time64",
    "clock_gettime",
    "clock_gettime64",
    "clock_nanosleep",
    "clock_nanosleep_time64",
    "getegid",
    "getegid32",
    "geteuid",
    "geteuid32",
    "getgid",
    "getgid32",
    "getrandom",
    "getrlimit",
    "getrusage",
    "gettimeofday",
    "getuid",
    "getuid32",
    "nanosleep",
    "sysinfo",
    "time",
    "ugetrlimit",
    "uname",
    NULL,
};

/* Of a command that writes files into a folder. A path in these calls leads only to where Landlock
 * allows the process to make, link, move or remove something. Landlock does not govern the calls
 * that change attributes, so these take descriptors: nothing can be opened that Landlock forbids,
 * and O_PATH descriptors are refused by the calls. */
static const char *const folder[] = {
    "fchown",  "fchown32", "fgetxattr", "flock",  "fremovexattr", "fsetxattr", "linkat",
    "mkdirat", "openat2",  "renameat2", "sendto", "unlinkat",     "wait4",     NULL,
};

/* Of the maker, which does not look at the image: calls that change what a path leads to. */
static const char *const paths[] = {
    "chmod",       "fchmod",   "fchmodat",  "fchmodat2", "fchownat",         "mknod", "mknodat",
    "removexattr", "setxattr", "symlinkat", "utimensat", "utimensat_time64", NULL,
};

/* Of one that reads from servers: over connections that are there. It waits for the helpers that it
 * has started. recv and send are calls of their own on i386, by way of socketcall(2). */
static const char *const talk[] = {
    "getpeername", "getsockname", "getsockopt", "recv",     "recvfrom", "recvmsg",
    "send",        "sendmsg",     "sendto",     "shutdown", "wait4",    NULL,
};

/* And over new ones, if these are lost; finding a server is part of that. */
static const char *const connecting[] = {
    "bind", "connect", "recvmmsg", "recvmmsg_time64", "sendmmsg", "setsockopt", NULL,
};

/* Of a command that opens files for writing. */
static const char *const outputs[] = {"open", "openat", NULL};

/* Of a command that answers the kernel. */
static const char *const serving[] = {"chdir", "recvmsg", NULL};

/* Calls that are allowed if one argument is right. */
struct limited {
    const char *name;
    unsigned argument;
    uint64_t mask, value; /* of the argument, and what is left of it then */
};

enum { WRITING = O_ACCMODE | O_CREAT | O_TRUNC };
#ifdef __s390__
enum { CLONE_FLAGS = 1 };
#else
enum { CLONE_FLAGS = 0 };
#endif

/* Threads, but no processes, and no namespaces. */
enum {
    THREAD = CLONE_THREAD,
    NAMESPACES = CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWUTS |
                 CLONE_NEWIPC | CLONE_NEWCGROUP,
};

static const struct limited always_limited[] = {
    {"clone", CLONE_FLAGS, THREAD | NAMESPACES, THREAD},
    {"fcntl", 1, UINT32_MAX, F_DUPFD}, /* but no signals to whom a descriptor is said to belong */
    {"fcntl", 1, UINT32_MAX, F_DUPFD_CLOEXEC},
    {"fcntl", 1, UINT32_MAX, F_GETFD},
    {"fcntl", 1, UINT32_MAX, F_SETFD},
    {"fcntl", 1, UINT32_MAX, F_GETFL},
    {"fcntl", 1, UINT32_MAX, F_SETFL},
    {"fcntl64", 1, UINT32_MAX, F_DUPFD},
    {"fcntl64", 1, UINT32_MAX, F_DUPFD_CLOEXEC},
    {"fcntl64", 1, UINT32_MAX, F_GETFD},
    {"fcntl64", 1, UINT32_MAX, F_SETFD},
    {"fcntl64", 1, UINT32_MAX, F_GETFL},
    {"fcntl64", 1, UINT32_MAX, F_SETFL},
    {"ioctl", 1, UINT32_MAX, TCGETS}, /* isatty(3) */
    {"ioctl", 1, UINT32_MAX, TIOCGWINSZ},
#ifdef __s390__
    {"mmap", 0, 0, 0}, /* takes its arguments in memory, which cannot be judged */
#else
    {"mmap", 2, PROT_EXEC, 0}, /* no new code */
#endif
    {"mmap2", 2, PROT_EXEC, 0},
    {"mprotect", 2, PROT_EXEC, 0},
    {"prlimit64", 2, UINT64_MAX, 0}, /* getrlimit(3) */
    {"open", 1, WRITING, O_RDONLY},
    {"openat", 2, WRITING, O_RDONLY},
    {0},
};

static const struct limited folder_limited[] = {
    {"ioctl", 1, UINT32_MAX, FS_IOC_GETFLAGS}, {"ioctl", 1, UINT32_MAX, FS_IOC_SETFLAGS},
    {"utimensat", 1, UINT64_MAX, 0}, /* without a path, the times of what is open */
    {"utimensat_time64", 1, UINT64_MAX, 0},    {0},
};

static const struct limited folder_modes[] = {
    {"fchmod", 1, S_ISUID | S_ISGID, 0},
    {0},
};

static const struct limited folder_all_modes[] = {
    {"fchmod", 1, 0, 0},
    {0},
};

static const struct limited connecting_limited[] = {
    {"ioctl", 1, UINT32_MAX, FIONREAD}, /* of an answer about a name */
    {"socket", 0, UINT32_MAX, AF_INET},
    {"socket", 0, UINT32_MAX, AF_INET6},
    {"socket", 0, UINT32_MAX, AF_NETLINK}, /* which addresses this machine has */
    {0},
};

/* Services of this machine, some of which do for root whatever they are asked to. */
static const struct limited connecting_unix[] = {
    {"socket", 0, UINT32_MAX, AF_UNIX},
    {0},
};

static int allow_limited(scmp_filter_ctx filter, const struct limited *limited)
{
    int number = seccomp_syscall_resolve_name(limited->name);
    return number == __NR_SCMP_ERROR
               ? 0
               : seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 1,
                                  SCMP_CMP64(limited->argument, SCMP_CMP_MASKED_EQ, limited->mask,
                                             limited->value));
}

static int allow_all_limited(scmp_filter_ctx filter, const struct limited *limited)
{
    int problem = 0;
    for (; limited->name && !problem; limited++)
        problem = allow_limited(filter, limited);
    return problem;
}

static int allow_all(scmp_filter_ctx filter, const char *const *names)
{
    int problem = 0;
    for (; *names && !problem; names++) {
        int number = seccomp_syscall_resolve_name(*names);
        if (number != __NR_SCMP_ERROR)
            problem = seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
    }
    return problem;
}

/* Signals go to no other process. The flags of clone3() are out of reach here; without it, the C
 * library takes clone(). */
static int allow_special(scmp_filter_ctx filter)
{
    const struct limited own = {"tgkill", 0, UINT32_MAX, (uint64_t)getpid()};
    int number = seccomp_syscall_resolve_name("clone3");
    int problem =
        number == __NR_SCMP_ERROR ? 0 : seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), number, 0);
    return problem ? problem : allow_limited(filter, &own);
}

static int fill(scmp_filter_ctx filter, struct cmd_system_calls wanted)
{
    int problem = allow_all(filter, always);
    if (!problem && wanted.folder)
        problem = allow_all(filter, folder);
    if (!problem && wanted.paths)
        problem = allow_all(filter, paths);
    if (!problem && wanted.folder && !wanted.paths)
        problem = allow_all_limited(filter, folder_limited);
    if (!problem && wanted.folder && !wanted.paths)
        problem = allow_all_limited(filter, wanted.preserves ? folder_all_modes : folder_modes);
    if (!problem && wanted.serves)
        problem = allow_all(filter, serving);
    if (!problem && wanted.servers != BW_SERVERS_NOTHING)
        problem = allow_all(filter, talk);
    if (!problem && wanted.servers >= BW_SERVERS_CONNECT)
        problem = allow_all(filter, connecting);
    if (!problem && wanted.servers >= BW_SERVERS_CONNECT)
        problem = allow_all_limited(filter, connecting_limited);
    if (!problem && wanted.servers >= BW_SERVERS_CONNECT_UNIX)
        problem = allow_all_limited(filter, connecting_unix);
    if (!problem && (wanted.folder || wanted.outputs))
        problem = allow_all(filter, outputs);
    if (!problem)
        problem = allow_all_limited(filter, always_limited);
    return problem ? problem : allow_special(filter);
}

int cmd_confine_calls(struct cmd_system_calls wanted)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!filter)
        return ENOMEM;
    seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM));
    /* A tree of comparisons; and no slower branches, for it is data that is not trusted, not code.
     */
    seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
    int problem = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    if (!problem)
        problem = fill(filter, wanted);
    if (!problem)
        problem = seccomp_load(filter);
    seccomp_release(filter);
    return -problem;
}

#else

int cmd_confine_calls(struct cmd_system_calls wanted)
{
    (void)wanted;
    return ENOSYS;
}

#endif
