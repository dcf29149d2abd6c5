/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Attacks on `extract --subvolumes`: preloaded.
 *
 * With SWAP=FOLDER in the environment, another user replaces the temporary folder right after it
 * was made: by a symbolic link to FOLDER, or, with SWAP_MOVES, by FOLDER itself.
 *
 * Otherwise, the receiver of the streams has been taken over, and tries what it never needs when it
 * first changes an owner. It writes a line about each attempt to stderr. OUTSIDE is a folder that
 * it must not reach.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

int mkdirat(int directory, const char *name, mode_t mode)
{
    const char *folder = getenv("SWAP");
    const long result = syscall(SYS_mkdirat, directory, name, mode);
    if (result || !folder || strncmp(name, ".btrfs-walk-", 12) != 0)
        return (int)result;
    unlinkat(directory, name, AT_REMOVEDIR);
    if (getenv("SWAP_MOVES"))
        renameat(AT_FDCWD, folder, directory, name);
    else
        symlinkat(folder, directory, name);
    return 0;
}

/* Attempts that cannot succeed show by their errno that they were not forbidden. */
static void say(const char *what, bool succeeded)
{
    const int problem = errno;
    const bool allowed = succeeded || (problem != EPERM && problem != EACCES);
    fprintf(stderr, "receiver: %s: %s\n", what, allowed ? "allowed" : "forbidden");
}

static void try_all(const char *outside)
{
    char path[4096];
    char *const nothing[] = {NULL};
    snprintf(path, sizeof path, "%s/file", outside);
    say("reading a file", open(path, O_RDONLY | O_CLOEXEC) >= 0);
    say("writing to a file", open(path, O_WRONLY | O_CLOEXEC) >= 0);
    say("listing a folder", open(outside, O_RDONLY | O_DIRECTORY | O_CLOEXEC) >= 0);
    say("reading facts about devices", open("/sys/devices", O_RDONLY | O_DIRECTORY) >= 0);
    snprintf(path, sizeof path, "%s/new", outside);
    say("making a folder", syscall(SYS_mkdirat, AT_FDCWD, path, 0700) == 0);
    say("making a link", symlink("target", path) == 0);
    say("a socket", socket(AF_INET, SOCK_STREAM, 0) >= 0);
    say("a socket of this machine", socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
    say("running a program", execve("/nonexistent", nothing, nothing) == 0);
    say("a process", syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) > 0);
    say("a signal", kill(getppid(), 0) == 0);
    say("new code",
        mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    say("a mount", mount("none", outside, "tmpfs", 0, NULL) == 0);
    say("a namespace", unshare(CLONE_NEWUTS) == 0);
    say("another root", chroot(outside) == 0);
    say("another user", setuid(1) == 0 && setuid(0) == 0);
    say("typing", ioctl(STDERR_FILENO, TIOCSTI, "") == 0);
    fprintf(stderr, "receiver waits: %d\n", (int)getpid());
    raise(SIGSTOP); /* so that its capabilities can be looked at */
}

int fchownat(int directory, const char *name, uid_t user, gid_t group, int flags)
{
    static bool tried;
    if (getenv("OUTSIDE") && !tried) {
        tried = true;
        try_all(getenv("OUTSIDE"));
    }
    return (int)syscall(SYS_fchownat, directory, name, user, group, flags);
}
