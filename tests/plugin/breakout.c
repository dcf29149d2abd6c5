/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * toys/breakout: a layer that tries everything that the program never needs, as a hostile image
 * might: at the first read, in its own thread. It writes a line about each attempt to stderr.
 */
#include <btrfs-walk/graph.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

static atomic_flag tried = ATOMIC_FLAG_INIT;

/* Attempts that cannot succeed show by their errno that they were not forbidden. */
static void say(const char *what, bool succeeded)
{
    int problem = errno;
    bool allowed = succeeded || (problem != EPERM && problem != EACCES);
    fprintf(stderr, "breakout: %s: %s\n", what, allowed ? "allowed" : "forbidden");
}

static bool closed(int descriptor)
{
    if (descriptor >= 0)
        close(descriptor);
    return descriptor >= 0;
}

static bool opens(const char *path, int flags)
{
    return closed(open(path, flags | O_CLOEXEC, 0600));
}

/* Without the handlers that fork() calls. */
static bool forks(void)
{
    long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0)
        _exit(0);
    return child > 0;
}

static bool maps_code(void)
{
    void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code != MAP_FAILED)
        munmap(code, 4096);
    return code != MAP_FAILED;
}

/* The name of a file in the folder of the option; the next call overwrites it. */
static const char *in_folder(struct bw_xlator *xlator, const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", bw_xlator_option_text(xlator, "folder"), name);
    return path;
}

/* Changes by path. No mode is given that the file does not have. */
static void try_paths(const char *path)
{
    const struct timespec times[2] = {{1, 0}, {1, 0}};
    int name = open(path, O_PATH | O_CLOEXEC);
    char itself[64];
    snprintf(itself, sizeof itself, "/proc/self/fd/%d", name);
    say("chmod", chmod(path, 0600) == 0);
    say("fchmodat", fchmodat(AT_FDCWD, path, 0600, 0) == 0);
    say("chmod of a descriptor's path", chmod(itself, 0600) == 0);
    say("chown", chown(path, geteuid(), getegid()) == 0);
    say("lchown", lchown(path, geteuid(), getegid()) == 0);
    say("fchownat", fchownat(AT_FDCWD, path, geteuid(), getegid(), 0) == 0);
    say("fchownat of a descriptor", fchownat(name, "", geteuid(), getegid(), AT_EMPTY_PATH) == 0);
    say("utimensat", utimensat(AT_FDCWD, path, times, 0) == 0);
    say("utimensat of a descriptor", utimensat(name, "", times, AT_EMPTY_PATH) == 0);
    say("setxattr", setxattr(path, "user.x", "y", 1, 0) == 0);
    say("setxattr of a descriptor's path", setxattr(itself, "user.x", "y", 1, 0) == 0);
    say("lsetxattr", lsetxattr(path, "user.x", "y", 1, 0) == 0);
    say("getxattr", getxattr(path, "user.x", NULL, 0) > 0);
    say("removexattr", removexattr(path, "user.x") == 0);
    say("truncate", truncate(path, 0) == 0);
    say("access", access(path, W_OK) == 0);
    say("faccessat", faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0);
    closed(name);
}

/* These are errors that a refusal has as well. */
static bool refused_with(bool succeeded, int number)
{
    if (!succeeded && errno == number)
        errno = EPERM;
    return succeeded;
}

/* Changes by descriptors that need no right to open; the kernel refuses them, too. */
static void try_descriptors(const char *path)
{
    int name = open(path, O_PATH | O_CLOEXEC);
    const struct timespec times[2] = {{1, 0}, {1, 0}};
    say("opening the victim", opens(path, O_RDONLY));
    say("fchmod without rights", refused_with(fchmod(name, 0600) == 0, EBADF));
    say("fchown without rights", refused_with(fchown(name, geteuid(), getegid()) == 0, EBADF));
    say("fsetxattr without rights", refused_with(fsetxattr(name, "user.x", "y", 1, 0) == 0, EBADF));
    say("futimens without rights", refused_with(futimens(name, times) == 0, EBADF));
    closed(name);
}

/* The image can be opened, but not get a bit that gives privileges. */
static void try_image(const char *path)
{
    int image = open(path, O_RDONLY | O_CLOEXEC);
    if (image >= 0)
        say("image: a privilege for it", fchmod(image, 04644) == 0);
    closed(image);
}

/* Names that lead from the folder to the victim, or take it along. */
static void try_moves(struct bw_xlator *xlator, const char *victim)
{
    int folder = open(in_folder(xlator, ""), O_PATH | O_CLOEXEC);
    say("linking the victim",
        refused_with(linkat(AT_FDCWD, victim, folder, "linked", 0) == 0, EXDEV));
    say("moving the victim",
        refused_with(syscall(SYS_renameat2, AT_FDCWD, victim, folder, "moved", 0) == 0 &&
                         renameat(folder, "moved", AT_FDCWD, victim) == 0,
                     EXDEV));
    say("removing the victim", unlinkat(AT_FDCWD, victim, 0) == 0);
    closed(folder);
}

/* Attempts that need root. */
static void try_privileges(struct bw_xlator *xlator)
{
    const char *path = in_folder(xlator, "disk");
    const dev_t device = makedev(240, 255); /* no driver is likely to be there */
    say("root: a block device", mknod(path, S_IFBLK | 0600, device) == 0);
    say("root: a block device, by mknodat",
        syscall(SYS_mknodat, AT_FDCWD, in_folder(xlator, "disk2"), S_IFBLK | 0600, device) == 0);
    say("root: opening it", refused_with(opens(in_folder(xlator, "disk"), O_RDWR), ENOENT));
    say("root: mounting", mount(NULL, "/nonexistent", NULL, MS_REMOUNT, NULL) == 0);
    say("root: another root", chroot("/nonexistent") == 0);
    say("root: another user", syscall(SYS_setuid, 0) == 0);
    say("root: a handle of a file", syscall(SYS_open_by_handle_at, AT_FDCWD, NULL, 0) == 0);
    say("root: a namespace", unshare(CLONE_NEWUTS) == 0);
}

static void try_files(struct bw_xlator *xlator)
{
    const char *image = bw_xlator_option_text(xlator, "image");
    int folder = open(in_folder(xlator, ""), O_PATH | O_CLOEXEC);
    say("reading /etc/passwd", opens("/etc/passwd", O_RDONLY));
    say("listing a folder", opens("/", O_RDONLY | O_DIRECTORY));
    say("writing to the image", opens(image, O_RDWR));
    say("folder: making a file", opens(in_folder(xlator, "new"), O_WRONLY | O_CREAT));
    say("folder: making a folder", mkdirat(folder, "new-folder", 0700) == 0);
    say("folder: removing a file", unlinkat(folder, "old", 0) == 0);
    closed(folder);
}

/* Signals are also sent to the owner of a descriptor. */
static bool owns_descriptor(void)
{
    return fcntl(STDERR_FILENO, F_SETOWN, getpid()) == 0;
}

static void *try_all(void *xlator)
{
    const char *victim = bw_xlator_option_text(xlator, "victim");
    char *const nothing[] = {NULL};
    say("a socket", closed(socket(AF_INET, SOCK_STREAM, 0)));
    say("a socket of this machine", closed(socket(AF_UNIX, SOCK_STREAM, 0)));
    say("running a program", execve("/nonexistent", nothing, nothing) == 0);
    say("tracing", ptrace(PTRACE_ATTACH, 0x3fffffff, NULL, NULL) == 0);
    say("a process", forks());
    say("a signal", kill(getppid(), 0) == 0);
    say("a signal by way of a descriptor", owns_descriptor());
    say("typing", ioctl(STDERR_FILENO, TIOCSTI, "") == 0);
    say("new code", maps_code());
    try_files(xlator);
    try_paths(victim);
    try_descriptors(victim);
    try_image(bw_xlator_option_text(xlator, "image"));
    try_moves(xlator, victim);
    try_privileges(xlator);
    return NULL;
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    pthread_t thread;
    if (!atomic_flag_test_and_set(&tried) && !pthread_create(&thread, NULL, try_all, xlator))
        pthread_join(thread, NULL);
    bw_wind(frame, bw_xlator_child(xlator, 0), requests, count);
}

static const struct bw_option options[] = {
    {"folder", BW_OPTION_STRING, NULL, 0, 0, "where files are made, and old is removed", NULL},
    {"image", BW_OPTION_STRING, NULL, 0, 0, "what is written to", NULL},
    {"victim", BW_OPTION_STRING, NULL, 0, 0, "a file that is changed", NULL},
    {0},
};

static const struct bw_xlator_class breakout_class = {
    .type = "toys/breakout",
    .description = "tries to leave the sandbox",
    .page = "For the test of the sandbox.",
    BW_ONE_CHILD(BW_ADDRESS_ANY),
    .options = options,
    .operations = {.read = read_requests},
};

BW_XLATOR_EXPORT(breakout_class);
