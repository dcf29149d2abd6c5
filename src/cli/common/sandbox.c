/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Confinement of a process, in three parts: the system calls that it may make (seccomp), the
 * capabilities of root that it keeps, and the files that it may open (Landlock).
 */
#include "cli/common/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if __has_include(<linux/landlock.h>)
#include <linux/landlock.h>
#endif
#if defined BW_SANDBOX && defined BW_SECCOMP
#include <seccomp.h>
#endif

#include "base/cleanup.h"
#include "cli/common/output.h"

/* Rights in addition to reading open files. */
struct system_calls {
    bool outputs;   /* open files for writing */
    bool folder;    /* make files and directories, and change open ones */
    bool preserves; /* give them privileges */
    bool paths;     /* make nodes and change files by their paths */
    bool receives;  /* make everything that send streams describe, and read no image */
    bool sends;     /* send to a child, and wait for it */
    bool compares;  /* read attributes of files in a directory of this machine */
    bool serves;    /* serve the kernel through a descriptor received from another process */
    enum bw_servers_need servers; /* extent of the use of the network */
};

/*
 * System calls: seccomp. Calls that are not in these tables fail with EPERM instead of killing the
 * process, so a mistake in a table causes an error message. Names that libseccomp or the
 * architecture does not have are ignored.
 */

#if defined BW_SANDBOX && defined BW_SECCOMP

/* Memory, threads, signals and exit; uprobe and uretprobe are for tracers. */
static const char process_calls[] =
    "brk madvise membarrier mremap munmap exit exit_group futex get_robust_list getpid gettid "
    "restart_syscall rseq rt_sigaction rt_sigprocmask rt_sigreturn rt_sigtimedwait "
    "sched_getaffinity sched_yield set_robust_list set_tid_address sigaltstack sigreturn uprobe "
    "uretprobe";

/* Open files, and facts about others. */
static const char file_calls[] =
    "_llseek close dup dup2 dup3 fadvise64 arm_fadvise64_64 fstat fstatat64 fsync ftruncate "
    "getcwd getdents lseek lstat memfd_create newfstatat poll ppoll pread64 preadv preadv2 "
    "pwrite64 read readlink readlinkat readv stat statx write writev";

/* Time, random numbers, identities. */
static const char query_calls[] =
    "clock_getres clock_gettime clock_nanosleep getegid geteuid getgid getrandom getrlimit "
    "getrusage gettimeofday getuid nanosleep sysinfo time ugetrlimit uname";

/* For a command that writes files into a folder. A path in these calls leads only to where Landlock
 * allows the process to make, link, move or remove something. Landlock does not restrict the calls
 * that change attributes, so only those are allowed that take a descriptor. The process cannot open
 * what Landlock forbids, and these calls refuse O_PATH descriptors. */
static const char folder_calls[] =
    "fallocate syncfs fchown fgetxattr flock fremovexattr fsetxattr linkat mkdirat openat2 "
    "renameat renameat2 sendto unlinkat wait4";

/* For the maker, which does not read the image: calls that change files by path. */
static const char maker_calls[] =
    "chmod fchmod fchmodat fchmodat2 fchownat mknod mknodat removexattr setxattr symlinkat "
    "utimensat";

/* For the receiver of streams, which does not read the image, and makes everything by descriptors
 * of directories and names. Extended attributes have no such calls, and fchmodat(3) may need chmod.
 */
static const char receiver_calls[] =
    "chmod copy_file_range fallocate fchmodat fchmodat2 fchownat fstatfs lgetxattr linkat "
    "llistxattr lremovexattr lsetxattr mkdirat mknodat openat2 renameat renameat2 sendto "
    "symlinkat syncfs unlinkat utimensat";

/* For the process that reads the image for the receiver. */
static const char sender_calls[] = "sendto wait4";

/* For a command that reads from servers over open connections, and waits for the helpers that it
 * has started. On i386, recv and send are multiplexed through socketcall(2). */
static const char connected_calls[] =
    "getpeername getsockname getsockopt recv recvfrom recvmsg send sendmsg sendto shutdown wait4";

/* To restore lost connections, which includes name resolution. */
static const char connecting_calls[] = "bind connect recvmmsg sendmmsg setsockopt";

/* For a command that opens files for writing. */
static const char output_calls[] = "open openat";

/* For a command that compares an image with a directory of this machine. */
static const char comparing_calls[] = "fstatfs lgetxattr llistxattr";

/* For a command that serves the kernel. */
static const char serving_calls[] = "chdir recvmsg setsid";

/* Calls that are allowed if (argument & mask) == value. */
struct limited {
    const char *name;
    unsigned argument;
    uint64_t mask, value;
};

enum { WRITING = O_ACCMODE | O_CREAT | O_TRUNC };
#ifdef __s390__
enum { CLONE_FLAGS = 1 };
#else
enum { CLONE_FLAGS = 0 };
#endif

/* Threads are allowed, processes and namespaces are not. */
enum {
    THREAD = CLONE_THREAD,
    NAMESPACES = CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWUTS |
                 CLONE_NEWIPC | CLONE_NEWCGROUP,
};

static const struct limited always_limited[] = {
    {"clone", CLONE_FLAGS, THREAD | NAMESPACES, THREAD},
    {"fcntl", 1, UINT32_MAX, F_DUPFD}, /* not F_SETOWN, which would direct signals to other
                                        * processes */
    {"fcntl", 1, UINT32_MAX, F_DUPFD_CLOEXEC},
    {"fcntl", 1, UINT32_MAX, F_GETFD},
    {"fcntl", 1, UINT32_MAX, F_SETFD},
    {"fcntl", 1, UINT32_MAX, F_GETFL},
    {"fcntl", 1, UINT32_MAX, F_SETFL},
    {"ioctl", 1, UINT32_MAX, TCGETS},   /* isatty(3) */
    {"ioctl", 1, UINT32_MAX, TCSETSF},  /* to ask for a passphrase: no echo, no core file */
    {"ioctl", 1, UINT32_MAX, FIONREAD}, /* replies of name servers; unread bytes in a pipe */
    {"prctl", 0, UINT32_MAX, PR_SET_DUMPABLE},
    {"ioctl", 1, UINT32_MAX, TIOCGWINSZ},
#ifdef __s390__
    {"mmap", 0, 0, 0}, /* has its arguments in memory, which seccomp cannot examine */
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
    {"ioctl", 1, UINT32_MAX, FS_IOC_GETFLAGS},
    {"ioctl", 1, UINT32_MAX, FS_IOC_SETFLAGS},
    {"utimensat", 1, UINT64_MAX, 0}, /* without a path: the times of the open file */
    {0},
};

static const struct limited receiver_limited[] = {
    {"ioctl", 1, UINT32_MAX, FICLONE},
    {"ioctl", 1, UINT32_MAX, FICLONERANGE},
    {"ioctl", 1, UINT32_MAX, BTRFS_IOC_SUBVOL_CREATE_V2},
    {"ioctl", 1, UINT32_MAX, BTRFS_IOC_SNAP_CREATE_V2},
    {"ioctl", 1, UINT32_MAX, BTRFS_IOC_SET_RECEIVED_SUBVOL},
    {"ioctl", 1, UINT32_MAX, BTRFS_IOC_SUBVOL_GETFLAGS},
    {"ioctl", 1, UINT32_MAX, BTRFS_IOC_SUBVOL_SETFLAGS},
    {0},
};

static const struct limited connecting_limited[] = {
    {"socket", 0, UINT32_MAX, AF_INET},
    {"socket", 0, UINT32_MAX, AF_INET6},
    {"socket", 0, UINT32_MAX, AF_NETLINK}, /* to list the addresses of this machine */
    {0},
};

/* Includes local services, some of which do anything for root. */
static const struct limited connecting_unix[] = {
    {"socket", 0, UINT32_MAX, AF_UNIX},
    {0},
};

/* Allows a call, and its variants for other sizes of numbers, such as fstat64 and futex_time64.
 * Names that the architecture does not have are ignored. */
static int allow(scmp_filter_ctx filter, const char *name, size_t length,
                 const struct limited *limited)
{
    static const char *const variants[] = {"", "32", "64", "_64", "_time64"};
    int problem = 0;
    for (size_t i = 0; i < sizeof variants / sizeof *variants && !problem; i++) {
        char variant[32];
        snprintf(variant, sizeof variant, "%.*s%s", (int)length, name, variants[i]);
        const int number = seccomp_syscall_resolve_name(variant);
        if (number == __NR_SCMP_ERROR)
            continue;
        if (limited)
            problem = seccomp_rule_add(
                filter, SCMP_ACT_ALLOW, number, 1,
                SCMP_CMP64(limited->argument, SCMP_CMP_MASKED_EQ, limited->mask, limited->value));
        else
            problem = seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
    }
    return problem;
}

static int allow_calls(scmp_filter_ctx filter, struct system_calls wanted)
{
    const bool changes_open = wanted.folder && !wanted.paths;
    const struct limited own[] = {{"tgkill", 0, UINT32_MAX, (uint64_t)getpid()}, {0}};
    const uint64_t forbidden_modes = wanted.preserves ? 0 : S_ISUID | S_ISGID;
    const struct limited modes[] = {{"fchmod", 1, forbidden_modes, 0}, {0}};
    const struct {
        bool is_needed;
        const char *calls; /* names with spaces between them */
        const struct limited *limited;
    } rights[] = {
        {true, process_calls, own}, /* signals only to this process */
        {true, file_calls, always_limited},
        {true, query_calls, NULL},
        {wanted.folder, folder_calls, NULL},
        {wanted.compares, comparing_calls, NULL},
        {wanted.paths, maker_calls, NULL},
        {wanted.receives, receiver_calls, receiver_limited},
        {wanted.sends, sender_calls, NULL},
        {changes_open, "", folder_limited},
        {changes_open, "", modes},
        {wanted.serves, serving_calls, NULL},
        {wanted.servers != BW_SERVERS_NOTHING, connected_calls, NULL},
        {wanted.servers >= BW_SERVERS_CONNECT, connecting_calls, connecting_limited},
        {wanted.servers >= BW_SERVERS_CONNECT_UNIX, "", connecting_unix},
        {wanted.folder || wanted.outputs || wanted.receives, output_calls, NULL},
    };
    int problem = 0;
    for (size_t i = 0; i < sizeof rights / sizeof *rights; i++) {
        if (!rights[i].is_needed)
            continue;
        size_t length;
        for (const char *name = rights[i].calls; *name && !problem; name += length) {
            name += strspn(name, " ");
            length = strcspn(name, " ");
            problem = allow(filter, name, length, NULL);
        }
        for (const struct limited *next = rights[i].limited; next && next->name && !problem; next++)
            problem = allow(filter, next->name, strlen(next->name), next);
    }

    /* seccomp cannot examine the flags of clone3(); without it, the C library calls clone(). */
    const int clone3 = seccomp_syscall_resolve_name("clone3");
    if (!problem && clone3 != __NR_SCMP_ERROR)
        problem = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), clone3, 0);
    return problem;
}

/* Allows only the calls that the process needs from now on, in all threads. Returns 0 or an errno;
 * after an error, nothing has changed. */
static int confine_calls(struct system_calls wanted)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!filter)
        return ENOMEM;
    seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM));
    /* A tree of comparisons is fast. Slower branches, a protection against speculative execution,
     * are needed for untrusted code, not for untrusted data. */
    seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
    int problem = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    if (!problem)
        problem = allow_calls(filter, wanted);
    if (!problem)
        problem = seccomp_load(filter);
    seccomp_release(filter);
    return -problem;
}

#else

static int confine_calls(struct system_calls wanted)
{
    (void)wanted;
    return ENOSYS;
}

#endif

/*
 * Capabilities. The process of an ordinary user has none. Root keeps those needed for the system
 * calls allowed above.
 */

#define BIT(capability) (UINT64_C(1) << (capability))

/* To open images of other users without changing their access times (O_NOATIME). */
static const uint64_t reading_capabilities = BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_FOWNER);

/* To restore owners in folders of other users, and to change files after their owners were
 * restored. Attributes of the kinds trusted and security need CAP_SYS_ADMIN. */
static const uint64_t folder_capabilities =
    BIT(CAP_DAC_OVERRIDE) | BIT(CAP_CHOWN) | BIT(CAP_FOWNER) | BIT(CAP_SYS_ADMIN);

static const uint64_t preserving_capabilities =
    BIT(CAP_FSETID) | BIT(CAP_SETFCAP) | BIT(CAP_LINUX_IMMUTABLE);

/* A stream contains device nodes, setuid and setgid bits, and file capabilities. */
static const uint64_t receiver_capabilities = BIT(CAP_FSETID) | BIT(CAP_SETFCAP) | BIT(CAP_MKNOD);

/* Drops all capabilities of the calling thread except those that these calls need. Returns 0 or an
 * errno. */
static int confine_capabilities(const struct system_calls *wanted)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    uint64_t kept = reading_capabilities;
    if (wanted->outputs)
        kept |= BIT(CAP_DAC_OVERRIDE);
    if (wanted->folder)
        kept |= folder_capabilities;
    if (wanted->folder && wanted->preserves)
        kept |= preserving_capabilities;
    if (wanted->paths && wanted->preserves)
        kept |= BIT(CAP_MKNOD); /* only the maker makes device nodes */
    if (wanted->receives)
        kept = folder_capabilities | receiver_capabilities;
    if (syscall(SYS_capget, &head, data))
        return errno;
    for (unsigned i = 0; i < 2; i++) {
        data[i].permitted &= (uint32_t)(kept >> (32 * i));
        data[i].effective &= data[i].permitted;
        data[i].inheritable = 0;
    }
    return syscall(SYS_capset, &head, data) ? errno : 0;
}

/* Files: Landlock. */

/* The files that a process may open. */
struct files {
    int rules;       /* descriptor of the Landlock rules; -1: none */
    uint64_t rights; /* everything this kernel supports */
    struct system_calls calls;
};

#if defined BW_SANDBOX && defined SYS_landlock_create_ruleset && defined LANDLOCK_ACCESS_FS_READ_DIR

/* Headers may be older than the kernel. These rights came with versions 2, 3 and 5 of Landlock. */
enum { REFER = 1 << 13, TRUNCATE = 1 << 14, IOCTL_DEV = 1 << 15 };
enum {
    FIRST_RIGHTS = (1 << 13) - 1,
    READ = LANDLOCK_ACCESS_FS_READ_FILE,
    LIST = LANDLOCK_ACCESS_FS_READ_DIR,
    APPEND = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE,
    /* the process never runs programs or controls devices */
    NEVER = LANDLOCK_ACCESS_FS_EXECUTE | IOCTL_DEV,
};

/* In addition to the images. */
static const struct {
    const char *path;
    unsigned rights;
} readable_always[] = {
    {"/sys/dev", READ | LIST}, /* the devices below a block device; the number of processors */
    {"/sys/devices", READ | LIST}, {"/sys/fs/btrfs", READ | LIST},
    {"/proc/self/mounts", READ}, /* to find out whether an image is mounted */
    {"/proc/sys/crypto", READ},  /* read by libgcrypt for the checksums of some images */
    {"/etc/gcrypt", READ | LIST},
};

/* Files that the C library reads to resolve the name of a server. */
static const char *const resolver[] = {
    "/etc/gai.conf",    "/etc/host.conf", "/etc/hosts",           "/etc/nsswitch.conf",
    "/etc/resolv.conf", "/etc/services",  "/run/systemd/resolve", NULL,
};

static void allow_descriptor(const struct files *files, int descriptor, uint64_t rights)
{
    const struct landlock_path_beneath_attr rule = {.parent_fd = descriptor,
                                                    .allowed_access = files->rights & rights};
    syscall(SYS_landlock_add_rule, files->rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

/* A path that cannot be opened now is not allowed later, either. */
static void allow_path(const struct files *files, const char *path, uint64_t rights)
{
    struct stat status;
    const int descriptor = open(path, O_PATH | O_CLOEXEC);
    if (descriptor < 0)
        return;
    /* A directory given as an image may be opened, to print a better error message. */
    bool is_directory = fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode);
    if (!is_directory)
        rights &= ~(uint64_t)LIST;
    else if (rights == READ)
        rights = LIST;
    allow_descriptor(files, descriptor, rights);
    close(descriptor);
}

/* Version 1 of Landlock forbids all links between directories, which a folder needs. */
static int make_rules(struct files *files, const int *folder)
{
    const char *const *path = files->calls.servers >= BW_SERVERS_CONNECT ? resolver : NULL;
    struct landlock_ruleset_attr attributes;
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 0)
        return errno;
    if (version < 1 || (folder && version < 2))
        return EOPNOTSUPP;
    files->rights = FIRST_RIGHTS;
    if (version >= 2)
        files->rights |= REFER;
    if (version >= 3)
        files->rights |= TRUNCATE;
    if (version >= 5)
        files->rights |= IOCTL_DEV;
    memset(&attributes, 0, sizeof attributes);
    attributes.handled_access_fs = files->rights;
    files->rules = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
    if (files->rules < 0)
        return errno;
    const bool reads = !files->calls.paths && !files->calls.receives;
    for (size_t i = 0; reads && i < sizeof readable_always / sizeof *readable_always; i++)
        allow_path(files, readable_always[i].path, readable_always[i].rights);
    for (; path && *path; path++)
        allow_path(files, *path, READ);
    if (folder)
        allow_descriptor(files, *folder, files->rights & ~(uint64_t)NEVER);
    return 0;
}

static int apply_rules(const struct files *files)
{
    return syscall(SYS_landlock_restrict_self, files->rules, 0) ? errno : 0;
}

#else

enum { READ = 1, APPEND = 2, LIST = 4 };

static void allow_path(const struct files *files, const char *path, uint64_t rights)
{
    (void)files, (void)path, (void)rights;
}

static int make_rules(struct files *files, const int *folder)
{
    (void)files, (void)folder;
    return ENOSYS;
}

static int apply_rules(const struct files *files)
{
    (void)files;
    return ENOSYS;
}

#endif

/* Creates a file that a layer will write to, because the sandbox will not allow creating files. */
static struct bw_error *allow_file(void *context, const char *path, bool written)
{
    struct files *files = context;
    int descriptor;
    files->calls.outputs |= written;
    if (written && access(path, F_OK)) {
        BW_TRY(bw_output_file_open(path, true, &descriptor));
        close(descriptor);
    }
    allow_path(files, path, written ? APPEND : READ);
    return NULL;
}

/* Entering the sandbox. */

static const char *outcome_text(int problem)
{
    return problem ? strerror(problem) : "on";
}

static struct bw_error *restrict_process(const struct cmd_common *common, const struct bw_fs *fs,
                                         struct files *files)
{
    const struct cmd_folder *folder = common->writing.folder;
    int landlock = make_rules(files, folder ? &folder->descriptor : NULL), seccomp, capabilities;
    if (fs)
        BW_TRY(bw_fs_files(fs, allow_file, files));
    for (size_t i = 0; !landlock && i < common->input.other_count; i++) /* or folders of streams */
        allow_path(files, common->input.others[i], READ | LIST);
    if (!landlock && common->input.folder)
        allow_path(files, common->input.folder, READ | LIST);
    tzset(); /* reads the time zone from a file now */
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (!landlock)
        landlock = apply_rules(files);
    capabilities = confine_capabilities(&files->calls);
    seccomp = confine_calls(files->calls);
    BW_AUTO_BUFFER struct bw_buffer outcomes = {0};
    bw_buffer_format(&outcomes, "sandbox: Landlock: %s; ", outcome_text(landlock));
    bw_buffer_format(&outcomes, "seccomp: %s", outcome_text(seccomp));
    if (capabilities)
        bw_buffer_format(&outcomes, "; dropping capabilities: %s", strerror(capabilities));
    cmd_note(common, BW_NOTE, bw_error_create(BW_ERROR_USAGE, "%s", bw_buffer_text(&outcomes)));
    return NULL;
}

/* Confines a child to a folder and to some calls. Its orders may come from a process that an
 * attacker controls. */
static void confine_child(const int *folder, struct system_calls calls)
{
    struct files files = {.rules = -1, .calls = calls};
    int landlock = make_rules(&files, folder);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (!landlock)
        apply_rules(&files);
    confine_capabilities(&files.calls);
    confine_calls(files.calls);
    if (files.rules >= 0)
        close(files.rules);
}

void cmd_sandbox_enter_maker(const struct cmd_common *common)
{
    confine_child(&common->writing.folder->descriptor,
                  (struct system_calls){
                      .folder = true, .paths = true, .preserves = common->writing.preserves});
}

void cmd_sandbox_enter_receiver(int folder)
{
    confine_child(&folder, (struct system_calls){.receives = true});
}

/* The reason why there is no sandbox; NULL if there is. valgrind runs within the process. */
static const char *lacks_sandbox(const struct cmd_common *common)
{
#ifdef BW_SANDBOX
    const char *preloaded = getenv("LD_PRELOAD");
    if (common->writing.sandbox == CMD_SANDBOX_OFF)
        return "--sandbox=off";
    if (preloaded && strstr(preloaded, "/vgpreload_"))
        return "valgrind could not work in it";
    return NULL;
#else
    (void)common;
    return "this program was built without one";
#endif
}

bool cmd_sandbox_is_on(const struct cmd_common *common)
{
    return !lacks_sandbox(common);
}

struct bw_error *cmd_sandbox_enter(const struct cmd_common *common, const struct bw_fs *fs)
{
    static bool entered; /* the process has called this function before */
    struct files files = {.rules = -1,
                          .calls = {.folder = common->writing.folder,
                                    .compares = common->input.folder,
                                    .preserves = common->writing.preserves,
                                    .sends = common->writing.has_receiver,
                                    .serves = common->writing.serves,
                                    .servers = common->input.fs.servers
                                                   ? bw_servers_need(common->input.fs.servers)
                                                   : BW_SERVERS_NOTHING}};
    const char *reason = lacks_sandbox(common);
    if (entered)
        return NULL;
    entered = true;
    if (reason) {
        cmd_note(common, BW_NOTE, bw_error_create(BW_ERROR_USAGE, "no sandbox: %s", reason));
        return NULL;
    }
    struct bw_error *error = restrict_process(common, fs, &files);
    if (files.rules >= 0)
        close(files.rules);
    return error;
}
