/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Signals and progress. One thread waits for the signals that the program handles, because signal
 * handlers could not safely print the output that they cause. Between signals, it updates the line
 * of progress.
 */
#include "cli/common/monitor.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/human.h"
#include "base/thread.h"

#define INTERVAL (BW_SECOND / 5)

/* The line is at most as wide as a terminal with 80 columns. */
enum { COLUMNS = 79 };

/* Signals that end the program, unless they are ignored. SIGQUIT does so at once, for a core file,
 * except at a prompt. */
static const int exit_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
enum {
    PROMPT_SIGNALS = sizeof exit_signals / sizeof *exit_signals,
    EXIT_SIGNALS = PROMPT_SIGNALS - 1,
    STAND_DOWN = SIGURG, /* ends wait_for_exit(); harmless if others send it */
};

/* Signals of Ctrl-C and Ctrl-\. */
static const int keyboard_signals[] = {SIGINT, SIGQUIT};
enum { KEYBOARD_SIGNALS = sizeof keyboard_signals / sizeof *keyboard_signals };

/* Signals concern the whole process, therefore this is global. */
static struct {
    pthread_t thread;
    bool running;                /* the thread exists */
    atomic_bool stopping;        /* the thread shall end */
    pthread_mutex_t busy;        /* held by the thread while it uses `dump` or a file system */
    void (*dump)(void *context); /* called on SIGUSR1 instead of showing progress, with `busy`
                                  * locked */
    void *dump_context;
    struct {
        void (*write)(void *context);
        void *context;
    } exit_messages[2]; /* those of probes and of the output */
    size_t exit_message_count;
    atomic_flag exit_message_written;
    const char *advice; /* printed when SIGINT ends the program; NULL: none */
    int end_of_parent;  /* the signal that this process gets when its parent ends; 0: none */
    sigset_t exit_set;  /* with an exit message or advice: the signals that the thread waits for */
    sigset_t before;    /* signal mask before cmd_monitor_start() */
    bool blocked;       /* `before` is to be restored */
    void (*volatile clean_ups[3])(void);         /* one per caller; the last is NULL */
    struct sigaction replaced[PROMPT_SIGNALS];   /* while a prompt waits */
    struct sigaction keyboard[KEYBOARD_SIGNALS]; /* replaced, while a child may ask */
    volatile pid_t asking;                       /* that child, if it is known */
} monitor = {.busy = PTHREAD_MUTEX_INITIALIZER, .exit_message_written = ATOMIC_FLAG_INIT};

/* The line of progress. Members that several threads use are atomic or locked. */
static struct {
    atomic_bool over;  /* nothing is shown any more */
    atomic_bool waits; /* for an answer of the user */
    bool terminal;     /* stderr is a terminal: the line is shown */
    bool mixed;        /* stdout is a terminal, too */
    unsigned columns;  /* columns of the terminal, less one */
    _Atomic(const struct bw_fs *) fs;
    _Atomic(const char *) task;
    atomic_bool counted; /* the command counts by itself */
    atomic_uint_fast64_t done, total, findings;
    atomic_uint_fast64_t step, steps; /* zero steps: the work has no steps */
    pthread_mutex_t total_lock;       /* held while a thread computes the total */
    atomic_bool should_stop;          /* another thread waits for that */
    uint64_t (*find)(void *context);  /* computes the total; protected by `total_lock` */
    void *find_context;
    atomic_uint_fast64_t before; /* bytes read before this part of the work began */
    atomic_int_fast64_t started; /* when this part of the work began: nanoseconds, monotonic */
    atomic_bool shown;           /* the line is on the terminal */
    atomic_bool inside;          /* stdout has not ended its last line */
    atomic_int_fast64_t written; /* when stdout was last written to */
} progress_line = {.total_lock = PTHREAD_MUTEX_INITIALIZER};

static int64_t now(void)
{
    return bw_clock(CLOCK_MONOTONIC);
}

/* Signals that end the program. */

void cmd_ignore_exit_signals(void)
{
    for (size_t i = 0; i < EXIT_SIGNALS; i++)
        signal(exit_signals[i], SIG_IGN);
}

void cmd_end_with_parent(pid_t parent)
{
    struct sigaction action;
    const bool is_ignored = sigaction(SIGTERM, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
    monitor.end_of_parent = is_ignored ? SIGINT : SIGTERM;
    prctl(PR_SET_PDEATHSIG, monitor.end_of_parent);
    if (getppid() != parent) /* it has ended already */
        kill(getpid(), monitor.end_of_parent);
}

void cmd_catch_exit_signals(void (*handler)(int number), int flags)
{
    const struct sigaction ours = {.sa_handler = handler, .sa_flags = (int)SA_RESETHAND | flags};
    struct sigaction before;
    for (size_t i = 0; i < EXIT_SIGNALS; i++)
        if (sigaction(exit_signals[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(exit_signals[i], &ours, NULL);
}

void cmd_replace_exit_signals(void (*handler)(int number))
{
    const struct sigaction ours = {.sa_handler = handler};
    for (size_t i = 0; i < PROMPT_SIGNALS; i++) {
        struct sigaction *before = &monitor.replaced[i];
        if (sigaction(exit_signals[i], NULL, before) == 0 && before->sa_handler != SIG_IGN)
            sigaction(exit_signals[i], &ours, NULL);
    }
}

void cmd_restore_exit_signals(void)
{
    for (size_t i = 0; i < PROMPT_SIGNALS; i++)
        sigaction(exit_signals[i], &monitor.replaced[i], NULL);
}

/* The terminal sends its signals to the child, too, but another process only to this one. */
static void pass_on(int number, siginfo_t *information, void *context)
{
    (void)context;
    if (information->si_code == SI_USER && monitor.asking > 0)
        kill(monitor.asking, number);
}

void cmd_leave_keyboard(void)
{
    const struct sigaction ours = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART};
    for (size_t i = 0; i < KEYBOARD_SIGNALS; i++)
        sigaction(keyboard_signals[i], &ours, &monitor.keyboard[i]);
}

void cmd_leave_keyboard_to(pid_t child)
{
    monitor.asking = child;
}

void cmd_take_keyboard(int status)
{
    for (size_t i = 0; i < KEYBOARD_SIGNALS; i++) {
        sigaction(keyboard_signals[i], &monitor.keyboard[i], NULL);
        if (WIFSIGNALED(status) && WTERMSIG(status) == keyboard_signals[i])
            raise(keyboard_signals[i]);
    }
}

void cmd_raise_exit_signal(int number)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL); /* the monitor's thread may have ended by it */
    raise(number);
}

static void clean_up_and_exit(int number)
{
    const int problem = errno;
    for (size_t i = 0; monitor.clean_ups[i]; i++)
        monitor.clean_ups[i]();
    errno = problem;
    raise(number); /* its default action, because of SA_RESETHAND, when this handler returns */
}

void cmd_clean_up_on_exit(void (*function)(void))
{
    size_t slot = 0;
    while (monitor.clean_ups[slot] && monitor.clean_ups[slot] != function)
        slot++;
    monitor.clean_ups[slot] = function;
    cmd_catch_exit_signals(clean_up_and_exit, 0);
}

void cmd_set_exit_message(void (*write)(void *context), void *context)
{
    monitor.exit_messages[monitor.exit_message_count].write = write;
    monitor.exit_messages[monitor.exit_message_count++].context = context;
}

void cmd_advise_on_interrupt(const struct cmd_common *common, const char *advice)
{
    if (!common->messages.quiet)
        monitor.advice = advice;
}

/* Whether the thread ends the program on a signal, instead of the signal's default action. */
static bool has_exit_work(void)
{
    return monitor.exit_message_count || monitor.advice;
}

void cmd_write_exit_message(void)
{
    if (!monitor.exit_message_count || atomic_flag_test_and_set(&monitor.exit_message_written))
        return;
    for (size_t i = 0; i < monitor.exit_message_count; i++)
        monitor.exit_messages[i].write(monitor.exit_messages[i].context);
}

/* The text of the line. */

static void append_size(struct bw_buffer *line, const char *before, uint64_t size,
                        const char *after)
{
    char text[BW_SIZE_ROOM];
    *bw_write_short_size(text, size) = '\0';
    bw_buffer_format(line, "%s%s%s", before, text, after);
}

/* "1.2G of 3.4G (35 %), metadata, 2 findings, 120M/s, 0:18 left", or "state 3 of 17 (11 %)" */
static void append_line(struct bw_buffer *line)
{
    const struct bw_fs *fs = atomic_load(&progress_line.fs);
    const uint64_t total = atomic_load(&progress_line.total);
    const uint64_t findings = atomic_load(&progress_line.findings),
                   steps = atomic_load(&progress_line.steps);
    const char *task = atomic_load(&progress_line.task);
    const int64_t elapsed = now() - atomic_load(&progress_line.started);
    const double seconds = (double)elapsed / (double)BW_SECOND;

    /* Bytes done so far: counted by the command, or read by the file system. */
    uint64_t done = atomic_load(&progress_line.done);
    if (fs && !atomic_load(&progress_line.counted))
        done = bw_fs_bytes_read(fs) - atomic_load(&progress_line.before);
    if (!done && !total && !steps) {
        bw_buffer_format(line, "%s", fs ? "reading" : "opening");
        return;
    }
    if (done || total)
        append_size(line, "", done, "");
    if (total >= done && total) {
        append_size(line, " of ", total, "");
        bw_buffer_format(line, " (%u %%)", (unsigned)((double)done / (double)total * 100));
    }
    if (task)
        bw_buffer_format(line, "%s%s", line->length ? ", " : "", task);
    if (steps)
        bw_buffer_format(line, " %ju of %ju (%u %%)", (uintmax_t)atomic_load(&progress_line.step),
                         (uintmax_t)steps,
                         (unsigned)((atomic_load(&progress_line.step) - 1) * 100 / steps));
    if (findings)
        bw_buffer_format(line, ", %ju finding%s", (uintmax_t)findings, bw_plural(findings));
    if (done)
        append_size(line, ", ", elapsed > 0 ? (uint64_t)((double)done / seconds) : 0, "/s");

    /* The time left, once enough is done for an estimate: by bytes, or else by steps. */
    uint64_t part = done, whole = total;
    if (!total && steps) {
        part = atomic_load(&progress_line.step) - 1;
        whole = steps;
    }
    if (!part || part >= whole || part < whole / 256 || elapsed < BW_SECOND)
        return;
    const uint64_t left = (uint64_t)((double)(whole - part) / (double)part * seconds);
    if (left >= 3600)
        bw_buffer_format(line, ", %ju:%02ju:%02ju left", (uintmax_t)left / 3600,
                         (uintmax_t)left / 60 % 60, (uintmax_t)left % 60);
    else
        bw_buffer_format(line, ", %ju:%02ju left", (uintmax_t)left / 60, (uintmax_t)left % 60);
}

/* stderr must be locked; also for write_line(). */
static void clear_line(void)
{
    if (progress_line.shown)
        fputs("\r\033[K", stderr);
    progress_line.shown = false;
}

/* `erase`: overwrite the line on the terminal; otherwise print a separate line, for a signal. */
static void write_line(bool erase)
{
    BW_AUTO_BUFFER struct bw_buffer line = {0};
    append_line(&line);
    if (line.failed)
        return;
    if (erase)
        fprintf(stderr, "\r\033[K%.*s",
                (int)(line.length < progress_line.columns ? line.length : progress_line.columns),
                line.data);
    else
        fprintf(stderr, "btrfs-walk: %s\n", bw_buffer_text(&line));
    progress_line.shown = erase;
}

/* Unblocks the signals first, so that a second one ends the program immediately. The end of the
 * parent is none: a terminal interrupts both. */
static void *exit_by_signal(int number)
{
    sigset_t again = monitor.exit_set;
    const bool is_parent = number == monitor.end_of_parent;
    if (!is_parent)
        sigdelset(&again, monitor.end_of_parent);
    pthread_sigmask(SIG_UNBLOCK, &again, NULL);
    if ((number == SIGINT || is_parent) && monitor.advice && !atomic_load(&progress_line.over)) {
        BW_AUTO_BUFFER struct bw_buffer line = {0};
        append_line(&line);
        flockfile(stderr);
        clear_line();
        fprintf(stderr, "btrfs-walk: interrupted: %s; %s\n", bw_buffer_text(&line), monitor.advice);
        funlockfile(stderr);
    }
    cmd_write_exit_message();
    raise(number);
    return NULL;
}

/* Waits for exit signals while the monitor's thread computes a total, which may take long. */
static void *wait_for_exit(void *context)
{
    sigset_t set = monitor.exit_set;
    int number;
    (void)context;
    sigaddset(&set, STAND_DOWN);
    if (sigwait(&set, &number) || number == STAND_DOWN)
        return NULL;
    return exit_by_signal(number);
}

/* The thread. */

static void add_progress_signals(sigset_t *set)
{
    sigaddset(set, SIGUSR1);
#ifdef SIGINFO
    sigaddset(set, SIGINFO);
#endif
}

void cmd_monitor_prepare(void)
{
    sigset_t set;
    sigemptyset(&set);
    add_progress_signals(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* stderr must not be locked here, because damage found meanwhile is reported there. */
static void find_total(void)
{
    pthread_mutex_lock(&progress_line.total_lock);
    if (progress_line.find && !atomic_load(&progress_line.total)) {
        pthread_t waiting;
        const bool waits = has_exit_work() && !bw_thread_start(&waiting, wait_for_exit, NULL);
        atomic_store(&progress_line.total, progress_line.find(progress_line.find_context));
        if (waits) {
            pthread_kill(waiting, STAND_DOWN);
            pthread_join(waiting, NULL);
        }
    }
    progress_line.find = NULL;
    pthread_mutex_unlock(&progress_line.total_lock);
}

/* Returns only when the thread no longer uses the previous function. */
static void set_find(uint64_t (*find)(void *context), void *context)
{
    atomic_store(&progress_line.should_stop, true);
    pthread_mutex_lock(&progress_line.total_lock);
    progress_line.find = find;
    progress_line.find_context = context;
    atomic_store(&progress_line.should_stop, false);
    pthread_mutex_unlock(&progress_line.total_lock);
}

/* Waits for signals and updates the line, until a signal ends the program or the thread is
 * stopped. */
static void *run_monitor(void *context)
{
    sigset_t set = monitor.exit_set;
    struct timespec wait = {.tv_sec = 1};
    (void)context;
    add_progress_signals(&set);
    for (;;) {
        const bool shows = progress_line.terminal && !atomic_load(&progress_line.over);
        int number;
        if (shows)
            number = sigtimedwait(&set, NULL, &wait);
        else
            number = sigwaitinfo(&set, NULL);
        const bool has_signal = number > 0; /* otherwise it is time to update the line */
        if (!has_signal && errno != EAGAIN)
            continue;
        if (has_signal && sigismember(&monitor.exit_set, number) == 1) {
            pthread_mutex_lock(&monitor.busy); /* the file system stays open */
            return exit_by_signal(number);
        }
        if (atomic_load(&monitor.stopping))
            return NULL;

        pthread_mutex_lock(&monitor.busy);
        if (!atomic_load(&progress_line.over)) {
            if (!has_signal || !monitor.dump)
                find_total();
            flockfile(stderr);
            /* While results are written to the same terminal, they show the progress. The line is
             * shown only when they pause. */
            bool is_due = !progress_line.mixed ||
                          (!progress_line.inside && now() - progress_line.written >= BW_SECOND);
            is_due &= !atomic_load(&progress_line.waits);
            if (has_signal)
                clear_line();
            if (has_signal && monitor.dump)
                monitor.dump(monitor.dump_context);
            else if (has_signal || is_due)
                write_line(!has_signal);
            funlockfile(stderr);
        }
        pthread_mutex_unlock(&monitor.busy);
        if (!has_signal)
            wait = (struct timespec){.tv_nsec = INTERVAL};
    }
}

void cmd_progress_end(void)
{
    set_find(NULL, NULL);
    pthread_mutex_lock(&monitor.busy);
    clear_line();
    progress_line.mixed = false;
    atomic_store(&progress_line.over, true);
    atomic_store(&progress_line.fs, NULL);
    monitor.dump = NULL;
    pthread_mutex_unlock(&monitor.busy);
}

void cmd_progress_wait(bool waits)
{
    flockfile(stderr);
    clear_line();
    atomic_store(&progress_line.waits, waits);
    funlockfile(stderr);
}

void cmd_monitor_stop(void)
{
    cmd_progress_end();
    if (monitor.running) {
        atomic_store(&monitor.stopping, true);
        pthread_kill(monitor.thread, SIGUSR1);
        pthread_join(monitor.thread, NULL);
    }
    monitor.running = false;
    if (has_exit_work()) {
        /* A signal that the thread did not receive before it ended. */
        const struct timespec immediately = {0};
        const int number = sigtimedwait(&monitor.exit_set, NULL, &immediately);
        if (number > 0)
            exit_by_signal(number);
    }
    monitor.exit_message_count = 0;
    monitor.advice = NULL;
}

void cmd_monitor_unblock(void)
{
    if (monitor.blocked)
        pthread_sigmask(SIG_SETMASK, &monitor.before, NULL);
    monitor.blocked = false;
}

struct bw_error *cmd_monitor_start(const struct cmd_common *common)
{
    /* the events of probes are printed to stderr, too, by any thread */
    progress_line.terminal = !common->messages.quiet && !common->writing.serves &&
                             !common->probes.patterns.count && isatty(STDERR_FILENO);
    progress_line.mixed = progress_line.terminal && isatty(STDOUT_FILENO);
    progress_line.columns = COLUMNS;
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 && size.ws_col <= COLUMNS)
        progress_line.columns = size.ws_col - 1u;
    atomic_store(&progress_line.over, false);
    atomic_store(&monitor.stopping, false);
    cmd_progress_expect(0);

    /* Until cmd_monitor_unblock(), only the monitor's thread receives the signals. */
    sigemptyset(&monitor.exit_set);
    for (size_t i = 0; has_exit_work() && i < EXIT_SIGNALS; i++) {
        struct sigaction action;
        if (sigaction(exit_signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&monitor.exit_set, exit_signals[i]);
    }
    pthread_sigmask(SIG_BLOCK, &monitor.exit_set, &monitor.before);
    monitor.blocked = true;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failure = bw_thread_start(&monitor.thread, run_monitor, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    monitor.running = !failure;
    if (failure && has_exit_work())
        return bw_error_from_errno(failure, "cannot wait for signals");
    return NULL;
}

void cmd_monitor_watch(const struct bw_fs *fs, void (*dump)(void *context), void *context)
{
    atomic_store(&progress_line.fs, fs);
    cmd_progress_expect(0);
    pthread_mutex_lock(&monitor.busy);
    monitor.dump = dump;
    monitor.dump_context = context;
    pthread_mutex_unlock(&monitor.busy);
}

/* Progress, as counted by commands. */

bool cmd_progress_should_stop(void)
{
    return atomic_load(&progress_line.should_stop);
}

void cmd_progress_expect(uint64_t bytes)
{
    set_find(NULL, NULL);
    const struct bw_fs *fs = atomic_load(&progress_line.fs);
    atomic_store(&progress_line.task, NULL);
    atomic_store(&progress_line.counted, false);
    atomic_store(&progress_line.before, fs ? bw_fs_bytes_read(fs) : 0);
    atomic_store(&progress_line.done, 0);
    atomic_store(&progress_line.findings, 0);
    atomic_store(&progress_line.steps, 0);
    atomic_store(&progress_line.total, bytes);
    atomic_store(&progress_line.started, now());
}

void cmd_progress_expect_later(uint64_t (*find)(void *context), void *context)
{
    cmd_progress_expect(0);
    set_find(find, context);
}

static uint64_t find_trees(void *fs)
{
    return bw_fs_tree_bytes(fs, false);
}

static uint64_t find_subvolumes(void *fs)
{
    return bw_fs_tree_bytes(fs, true);
}

void cmd_progress_expect_trees(struct bw_fs *fs, bool subvolumes)
{
    cmd_progress_expect_later(subvolumes ? find_subvolumes : find_trees, fs);
}

void cmd_progress_step(const char *task, size_t number, size_t count)
{
    atomic_store(&progress_line.task, task);
    atomic_store(&progress_line.step, number);
    atomic_store(&progress_line.steps, count);
}

void cmd_progress_state(void *context, size_t number, size_t count)
{
    (void)context;
    cmd_progress_step("state", number, count);
}

void cmd_progress_add(uint64_t bytes)
{
    atomic_fetch_add_explicit(&progress_line.done, bytes, memory_order_relaxed);
    if (!atomic_load_explicit(&progress_line.counted, memory_order_relaxed))
        atomic_store(&progress_line.counted, true);
}

void cmd_progress_set(const char *task, uint64_t done, uint64_t total, uint64_t findings)
{
    atomic_store_explicit(&progress_line.task, task, memory_order_relaxed);
    atomic_store_explicit(&progress_line.done, done, memory_order_relaxed);
    atomic_store_explicit(&progress_line.total, total, memory_order_relaxed);
    atomic_store_explicit(&progress_line.findings, findings, memory_order_relaxed);
    atomic_store_explicit(&progress_line.counted, true, memory_order_relaxed);
}

void cmd_progress_search(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    cmd_progress_set("search", done, total, 0);
}

void cmd_progress_decompress(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    cmd_progress_set("decompress", done, total, 0);
}

bool cmd_progress_scan(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    cmd_progress_set("scan", done, total, 0);
    return true;
}

/* Other output on the terminal. */

void cmd_progress_print(const char *message)
{
    flockfile(stderr);
    clear_line();
    fprintf(stderr, "btrfs-walk: %s\n", message);
    funlockfile(stderr);
}

struct bw_error *cmd_progress_around(struct bw_error *(*write)(const char *bytes, size_t length),
                                     const char *bytes, size_t length)
{
    if (!progress_line.mixed || !length)
        return write(bytes, length);
    flockfile(stderr);
    clear_line();
    struct bw_error *error = write(bytes, length);
    progress_line.inside = bytes[length - 1] != '\n';
    progress_line.written = now();
    funlockfile(stderr);
    return error;
}
