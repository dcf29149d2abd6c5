/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * toys/breakout: a layer that does what the program has no use for, as if an image had made it: at
 * the first read, in a thread of its own. It writes a line about each attempt to stderr.
 */
#include <btrfs-walk/xlator.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_flag tried = ATOMIC_FLAG_INIT;

/* The errno of the attempts that cannot succeed says that they were not forbidden. */
static void say(const char *what, bool succeeded)
{
    int problem = errno;
    bool allowed = succeeded || (problem != EPERM && problem != EACCES);
    fprintf(stderr, "breakout: %s: %s\n", what, allowed ? "allowed" : "forbidden");
}

static bool opens(const char *path, int flags)
{
    int descriptor = open(path, flags | O_CLOEXEC, 0600);
    if (descriptor >= 0)
        close(descriptor);
    return descriptor >= 0;
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

static void try_files(struct bw_xlator *xlator)
{
    const char *image = bw_xlator_option_text(xlator, "image");
    say("reading /etc/passwd", opens("/etc/passwd", O_RDONLY));
    say("listing a folder", opens("/", O_RDONLY | O_DIRECTORY));
    say("making a file", opens(in_folder(xlator, "new"), O_WRONLY | O_CREAT));
    say("making a folder", mkdir(in_folder(xlator, "new-folder"), 0700) == 0);
    say("removing a file", unlink(in_folder(xlator, "old")) == 0);
    say("changing a mode", chmod(image, 0644) == 0);
    say("writing to the image", opens(image, O_RDWR));
}

static void *try_all(void *xlator)
{
    char *const nothing[] = {NULL};
    int created = socket(AF_INET, SOCK_STREAM, 0);
    say("a socket", created >= 0);
    say("a socket of this machine", socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
    say("running a program", execve("/nonexistent", nothing, nothing) == 0);
    say("tracing", ptrace(PTRACE_ATTACH, 0x3fffffff, NULL, NULL) == 0);
    say("a process", forks());
    say("a signal", kill(getppid(), 0) == 0);
    say("new code", maps_code());
    try_files(xlator);
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
