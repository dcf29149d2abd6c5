/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flight recorder of a command. On a fatal signal, its last events are written to stderr, with
 * nothing but what a signal handler may do; then the signal has its usual effect.
 */
#include "cli/probes/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "cli/command.h"

enum {
    LAST_EVENTS = 16,
    STACK_BYTES = 64 << 10, /* of the main thread, whose own may have run out */
    PATIENCE = 1000,        /* milliseconds to wait for a reader of stderr */
};

static const struct {
    int number;
    const char *name;
} fatal[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGABRT, "SIGABRT"},
    {SIGILL, "SIGILL"},   {SIGFPE, "SIGFPE"},
};
enum { FATAL = sizeof fatal / sizeof *fatal };

const char *cmd_recorder_signal(uint32_t number)
{
    for (size_t i = 0; i < FATAL; i++)
        if ((uint32_t)fatal[i].number == number)
            return fatal[i].name;
    return NULL;
}

/* Global, because signals belong to the process. */
static struct bw_recorder *_Atomic active;
static struct sigaction previous[FATAL];
static stack_t previous_stack;
static _Alignas(16) char stack[STACK_BYTES];
static _Atomic int printing; /* number of the thread that prints; -1: done */

/* Gives up if stderr is not read: a process that dies must not hang. */
static bool write_text(const struct bw_buffer *text)
{
    for (size_t done = 0; done < text->length;) {
        struct pollfd descriptor = {.fd = STDERR_FILENO, .events = POLLOUT};
        if (poll(&descriptor, 1, PATIENCE) == 0)
            return false;
        ssize_t written = write(STDERR_FILENO, text->data + done, text->length - done);
        if (written < 0 && errno != EINTR)
            return false;
        done += written < 0 ? 0 : (size_t)written;
    }
    return true;
}

static void append(struct bw_buffer *text, const char *words)
{
    bw_buffer_append(text, words, strlen(words));
}

/* Everything is on the stack, and the buffer never asks for memory. */
static void print_events(const struct bw_recorder *recorder, const char *reason)
{
    char room[BW_RECORDER_LINE + 64], line[BW_RECORDER_LINE];
    struct bw_buffer text = {.data = room, .capacity = sizeof room, .fixed = true};
    uint64_t count = bw_recorder_count(recorder);
    append(&text, "btrfs-walk: ");
    append(&text, reason);
    append(&text, bw_recorder_is_whole(recorder) ? "; the last events:\n"
                                                 : "; the file of the black box was cut short\n");
    if (!write_text(&text) || !bw_recorder_is_whole(recorder))
        return;
    for (uint64_t i = count > LAST_EVENTS ? count - LAST_EVENTS + 1 : 1; i <= count; i++) {
        size_t length = bw_recorder_line(recorder, i, line);
        text.length = 0;
        append(&text, "btrfs-walk: ");
        append(&text, length ? "" : "(an event that is not complete)");
        bw_buffer_append(&text, line, length);
        append(&text, "\n");
        if (!write_text(&text))
            return;
    }
}

/* One thread prints. Another thread that dies meanwhile waits for it; if it is the same thread, the
 * printing itself failed, and is given up. */
static void print_once(struct bw_recorder *recorder, const char *name)
{
    int nobody = 0, self = (int)syscall(SYS_gettid);
    if (atomic_compare_exchange_strong(&printing, &nobody, self)) {
        char reason[32] = "died of ";
        /* The name of a signal. NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.strcpy) */
        print_events(recorder, strcat(reason, name));
        atomic_store(&printing, -1);
        return;
    }
    while (nobody != self && atomic_load(&printing) != -1)
        poll(NULL, 0, 1);
}

static void handle(int number, siginfo_t *info, void *context)
{
    (void)context;
    int saved = errno;
    struct bw_recorder *recorder = atomic_load(&active);
    bool is_fault = info->si_code > 0; /* it recurs after the return; otherwise it was sent */
    size_t i = 0;
    while (i + 1 < FATAL && fatal[i].number != number)
        i++;
    bool ignored =
        !(previous[i].sa_flags & SA_SIGINFO) && previous[i].sa_handler == SIG_IGN && !is_fault;
    if (!ignored) {
        if (recorder) {
            bw_recorder_note_signal(recorder, number);
            print_once(recorder, fatal[i].name);
        }
        sigaction(number, &previous[i], NULL);
        if (!is_fault)
            raise(number);
    }
    errno = saved;
}

void cmd_recorder_start(struct bw_recorder *recorder)
{
    struct sigaction ours = {.sa_sigaction = handle};
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    atomic_store(&printing, 0);
    if (atomic_exchange(&active, recorder))
        return; /* the handlers are installed */
    sigaltstack(NULL, &previous_stack);
    if (previous_stack.ss_flags & SS_DISABLE)
        sigaltstack(&alternate, NULL);
    /* Not SA_RESETHAND: a second thread that dies would end the process while the first one prints.
     * The handler restores what was there before. */
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    for (size_t i = 0; i < FATAL; i++)
        sigaction(fatal[i].number, NULL, &previous[i]);
    for (size_t i = 0; i < FATAL; i++)
        sigaction(fatal[i].number, &ours, NULL);
}

/* Another handler may have been installed since, which calls ours: without a recorder, ours prints
 * nothing. */
void cmd_recorder_stop(void)
{
    struct sigaction current;
    if (!atomic_exchange(&active, NULL))
        return;
    for (size_t i = 0; i < FATAL; i++) {
        sigaction(fatal[i].number, NULL, &current);
        if ((current.sa_flags & SA_SIGINFO) && current.sa_sigaction == handle)
            sigaction(fatal[i].number, &previous[i], NULL);
    }
    if (previous_stack.ss_flags & SS_DISABLE)
        sigaltstack(&previous_stack, NULL);
}

void cmd_recorder_print_last(void)
{
    struct bw_recorder *recorder = atomic_load(&active);
    if (recorder && bw_recorder_count(recorder))
        print_events(recorder, "ended with an error");
}

static struct bw_error *refuse(const char *file)
{
    struct stat status;
    if (strcmp(file, "-") == 0)
        return bw_error_create(BW_ERROR_USAGE, "a black box must be a file: - is none");
    /* A block device is refused with all other outputs; opening a pipe would wait for a reader. */
    return stat(file, &status) || S_ISREG(status.st_mode) || S_ISBLK(status.st_mode)
               ? NULL
               : bw_error_create(BW_ERROR_USAGE, "%s is no regular file: a black box must be one",
                                 file);
}

/* A mapping needs a descriptor for reading and writing, and outputs are opened for writing only: so
 * the file is opened again, and must be the one that was checked. */
static struct bw_error *reopen(const char *file, int written, int *descriptor)
{
    struct stat before, after;
    *descriptor = open(file, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (*descriptor < 0)
        return bw_error_from_errno(errno, "cannot open %s for reading and writing", file);
    if (fstat(written, &before) || fstat(*descriptor, &after) || before.st_dev != after.st_dev ||
        before.st_ino != after.st_ino) {
        close(*descriptor);
        return bw_error_create(BW_ERROR_USAGE, "%s became another file while it was opened", file);
    }
    return NULL;
}

static struct bw_error *open_file(const struct bw_fs *fs, const char *file, int *descriptor)
{
    int written;
    BW_TRY(refuse(file));
    BW_TRY(cmd_open_output(fs, NULL, file, &written));
    struct bw_error *error = reopen(file, written, descriptor);
    close(written);
    return error;
}

/* Results or messages that go to the same file would overwrite the box. */
static struct bw_error *refuse_stream(int descriptor, const char *file)
{
    struct stat box, stream;
    for (int i = STDOUT_FILENO; i <= STDERR_FILENO; i++)
        if (fstat(descriptor, &box) == 0 && fstat(i, &stream) == 0 && box.st_dev == stream.st_dev &&
            box.st_ino == stream.st_ino)
            return bw_error_create(BW_ERROR_USAGE, "%s goes to %s, which is the black box",
                                   i == STDOUT_FILENO ? "stdout" : "stderr", file);
    return NULL;
}

struct bw_error *cmd_recorder_open(const struct bw_fs *fs, const char *file,
                                   const bool selected[BW_PROBES_MAX],
                                   struct bw_recorder **recorder)
{
    int descriptor;
    if (!file)
        return bw_recorder_create(selected, BW_RECORDER_FEW_SLOTS, recorder);
    BW_TRY(open_file(fs, file, &descriptor));
    struct bw_error *error = refuse_stream(descriptor, file);
    if (error) {
        close(descriptor);
        return error;
    }
    return bw_recorder_create_file(descriptor, file, selected, BW_RECORDER_SLOTS, recorder);
}
