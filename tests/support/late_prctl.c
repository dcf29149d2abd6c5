/* SPDX-License-Identifier: GPL-2.0-or-later */
/* To be preloaded: a process asks late to end with its parent. */
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int prctl(int option, ...)
{
    unsigned long words[4];
    va_list list;
    va_start(list, option);
    for (unsigned i = 0; i < 4; i++)
        words[i] = va_arg(list, unsigned long);
    va_end(list);
    if (option == PR_SET_PDEATHSIG)
        usleep(500000);
    return (int)syscall(SYS_prctl, option, words[0], words[1], words[2], words[3]);
}
