/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The SIGBUS guard below storage/file with io=mmap: the one piece of global mutable state in the
 * library.
 *
 * A page of a mapped file that lies behind the end of the file by now, or that the disk cannot
 * deliver, is reported by SIGBUS, and what a signal does is the business of the process: there is
 * no handler of a mapping or of a graph. So the state is kept to this file: a count of users, the
 * handler that was there before, and for each thread the copy it is in. The handler is there only
 * while a mapping is.
 *
 * What was considered instead. MADV_POPULATE_READ says beforehand whether pages can be read, but
 * the file may shrink before they are copied; and with that call a walk takes longer than with
 * pread, as measured. process_vm_readv(2) on oneself answers EFAULT where a signal would come, but
 * a walk takes up to half as long again. Mapping zeros over the page from within the handler needs
 * no jump, but makes all later reads of that page look good.
 *
 * A fault that is not ours (no copy under way in this thread, or another address) goes to the
 * handler that was there before, as if this one did not exist.
 */
#include "xlators/storage/bus_guard.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

/* The copy a thread is in; lives on its stack. */
struct guarded_copy {
    sigjmp_buf jump;
    uintptr_t begin, end; /* of the source */
};

/* Some machines tell the page of a fault only; no page is larger than this. */
#define PAGE_MASK (~(uintptr_t)0xffff)

/* The model makes it a plain load: the handler may run in a thread that has never touched it, where
 * the first access of another model may allocate. */
static _Thread_local struct guarded_copy *volatile active
    __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t users;
static bool installed; /* ours is the handler, or somebody else's was put above it */
static struct sigaction previous;

/* Not "default" or "ignore". */
static bool is_function(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) ||
           (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

/* Does what happens without a handler. A fault kills even where the signal is ignored. */
static void act_by_default(int number, const siginfo_t *info)
{
    bool is_fault = info->si_code > 0; /* otherwise it was sent */
    if (previous.sa_handler == SIG_IGN && !is_fault)
        return;
    signal(number, SIG_DFL);
    if (!is_fault) /* which happens again after the return */
        raise(number);
}

/* Does what would have happened without this handler. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    if (!is_function(&previous)) {
        act_by_default(number, info);
        return;
    }
    /* The return from this handler takes the mask back. */
    sigset_t mask = previous.sa_mask;
    if (!(previous.sa_flags & SA_NODEFER))
        sigaddset(&mask, number);
    pthread_sigmask(SIG_BLOCK, &mask, NULL);
    if (previous.sa_flags & SA_SIGINFO)
        previous.sa_sigaction(number, info, context);
    else
        previous.sa_handler(number);
}

static void handle(int number, siginfo_t *info, void *context)
{
    struct guarded_copy *copy = active;
    uintptr_t address = (uintptr_t)info->si_addr;
    if (!copy || info->si_code <= 0 || address < (copy->begin & PAGE_MASK) ||
        address >= copy->end) {
        pass_on(number, info, context);
        return;
    }
    active = NULL;
    /* Whoever passed the signal on may have blocked more than this handler does. */
    pthread_sigmask(SIG_SETMASK, &((const ucontext_t *)context)->uc_sigmask, NULL);
    siglongjmp(copy->jump, 1);
}

/* Whoever has put a handler of his own above ours is expected to pass on to it what he does not
 * want. Installed a second time above his, ours would be passed its own faults for ever. */
static void install(void)
{
    struct sigaction current, ours = {.sa_sigaction = handle};
    sigaction(SIGBUS, NULL, &current);
    if (installed && is_function(&current))
        return;
    /* SA_NODEFER, since which signals the handler below blocks is its own affair; SA_ONSTACK, since
     * it may rely on that. */
    ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    previous = current; /* known before it is needed */
    installed = sigaction(SIGBUS, &ours, NULL) == 0;
}

static void uninstall(void)
{
    struct sigaction current;
    sigaction(SIGBUS, NULL, &current);
    if (!(current.sa_flags & SA_SIGINFO) || current.sa_sigaction != handle)
        return;
    sigaction(SIGBUS, &previous, NULL);
    installed = false;
}

void bw_bus_guard_acquire(void)
{
    pthread_mutex_lock(&lock);
    if (users++ == 0)
        install();
    pthread_mutex_unlock(&lock);
}

void bw_bus_guard_release(void)
{
    pthread_mutex_lock(&lock);
    if (--users == 0)
        uninstall();
    pthread_mutex_unlock(&lock);
}

void bw_bus_guard_enter(sigset_t *mask)
{
    sigset_t bus;
    sigemptyset(&bus);
    sigaddset(&bus, SIGBUS);
    pthread_sigmask(SIG_UNBLOCK, &bus, mask);
}

void bw_bus_guard_leave(const sigset_t *mask)
{
    if (sigismember(mask, SIGBUS))
        pthread_sigmask(SIG_SETMASK, mask, NULL);
}

bool bw_bus_guard_copy(void *to, const void *from, size_t length)
{
    struct guarded_copy copy;
    copy.begin = (uintptr_t)from;
    copy.end = copy.begin + length;
    /* Saving the signal mask would cost a system call; the handler puts it back instead. */
    if (sigsetjmp(copy.jump, 0))
        return false;
    active = &copy;
    atomic_signal_fence(memory_order_seq_cst);
    memcpy(to, from, length);
    atomic_signal_fence(memory_order_seq_cst);
    active = NULL;
    return true;
}
