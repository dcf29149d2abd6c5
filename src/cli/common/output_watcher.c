/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The child that removes a file, and the program's half of the talk with it: single bytes. */
#include "cli/common/output_watcher.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/escape.h"

enum { OURS = 'o', COMPLETE = 'c', BROKEN_OFF = 'b' };

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};

/* Removes the file if it is still the one of that name, and empties it otherwise. */
static const char *remove_file(const char *name, int descriptor)
{
    struct stat named, opened;
    bool same = lstat(name, &named) == 0 && fstat(descriptor, &opened) == 0 &&
                named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
    if (same && unlink(name) == 0)
        return "removed";
    return ftruncate(descriptor, 0) ? NULL : "emptied";
}

static void give_up(const char *name, int descriptor)
{
    BW_AUTO_BUFFER struct bw_buffer line = {0};
    const char *done = remove_file(name, descriptor);
    bw_escape_words(&line, name);
    fprintf(stderr, "btrfs-walk: %.*s is incomplete%s%s\n", (int)line.length,
            line.data ? line.data : "", done ? ", and was " : "", done ? done : "");
}

/* The child. It holds on to nothing that others may wait for. */
static void watch(int channel, const char *name, int descriptor, bool ours)
{
    char byte = BROKEN_OFF;
    bool begun = false;
    ssize_t got;
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        signal(ending[i], SIG_IGN);
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    while ((got = read(channel, &byte, 1)) > 0 || (got < 0 && errno == EINTR)) {
        if (got > 0 && byte != OURS)
            break;
        begun |= got > 0;
    }
    const bool complete = got > 0 && byte == COMPLETE;
    if (begun && !complete)
        give_up(name, descriptor);
    else if (ours && !complete)
        remove_file(name, descriptor); /* nobody has heard of it yet */
    _exit(0);
}

/* Of the file to be removed before a signal ends the program; -1: none. */
static volatile sig_atomic_t watcher_now = -1;

static void tell(int watcher, char byte)
{
    while (write(watcher, &byte, 1) < 0 && errno == EINTR)
        ;
}

static void wait_for_end(int watcher)
{
    char byte;
    ssize_t got;
    while ((got = read(watcher, &byte, 1)) > 0 || (got < 0 && errno == EINTR))
        ;
}

static void end_by_signal(int number)
{
    if (watcher_now >= 0) {
        tell(watcher_now, BROKEN_OFF);
        wait_for_end(watcher_now);
    }
    raise(number); /* which has its default action again when this returns */
}

static void catch_signals(void)
{
    const struct sigaction ours = {.sa_handler = end_by_signal, .sa_flags = (int)SA_RESETHAND};
    struct sigaction before;
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        if (sigaction(ending[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(ending[i], &ours, NULL);
}

int cmd_watcher_start(const char *name, int descriptor, bool ours)
{
    int channel[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel))
        return -1;
    pid_t child = fork();
    if (child == 0) {
        close(channel[0]);
        watch(channel[1], name, descriptor, ours);
    }
    close(channel[1]);
    if (child < 0) {
        close(channel[0]);
        return -1;
    }
    watcher_now = channel[0];
    catch_signals();
    return channel[0];
}

void cmd_watcher_file_is_ours(int watcher)
{
    if (watcher >= 0)
        tell(watcher, OURS);
}

void cmd_watcher_end(int watcher, bool complete)
{
    if (watcher < 0)
        return;
    tell(watcher, complete ? COMPLETE : BROKEN_OFF);
    wait_for_end(watcher);
    if (watcher_now == watcher)
        watcher_now = -1;
    close(watcher);
}
