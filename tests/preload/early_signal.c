// SPDX-License-Identifier: GPL-2.0-or-later
/* Preloaded: sends SIGINT when a prompt has switched the echo off, before the program reads. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <termios.h>

int tcsetattr(int descriptor, int when, const struct termios *settings)
{
    int (*set)(int, int, const struct termios *) = NULL;
    *(void **)&set = dlsym(RTLD_NEXT, "tcsetattr");
    const int result = set(descriptor, when, settings);
    if (!(settings->c_lflag & ECHO))
        raise(SIGINT);
    return result;
}
