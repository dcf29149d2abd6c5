/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the options --probe... to consumers. Selected probes are printed, unless they are only
 * counted (--probe-stats) or recorded (--blackbox). The flight recorder always receives the coarse
 * probes.
 */
#include "cli/probes/probes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/common/monitor.h"

/*
 * The flight recorder of a command. On a fatal signal, its last events are written to stderr, with
 * async-signal-safe functions only; then the signal has its default effect.
 */

enum {
    LAST_EVENTS = 16,
    STACK_BYTES = 64 << 10, /* for the handler, because the stack of the main thread may have
                             * overflowed */
    PATIENCE = 1000,        /* milliseconds to wait until stderr can be written */
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
static _Atomic int printing; /* id of the thread that prints; -1: done */

/* Gives up if nothing reads stderr, because a dying process must not hang. */
static bool write_text(const struct bw_buffer *text)
{
    for (size_t done = 0; done < text->length;) {
        struct pollfd descriptor = {.fd = STDERR_FILENO, .events = POLLOUT};
        if (poll(&descriptor, 1, PATIENCE) == 0)
            return false;
        ssize_t written = write(STDERR_FILENO, text->data + done, text->length - done);
        if (written < 0 && errno != EINTR)
            return false;
        if (written > 0)
            done += (size_t)written;
    }
    return true;
}

static void append_text(struct bw_buffer *text, const char *words)
{
    bw_buffer_append(text, words, strlen(words));
}

/* Uses only the stack: the buffer never allocates memory. */
static void print_events(const struct bw_recorder *recorder, const char *reason)
{
    char room[BW_RECORDER_LINE + 64], line[BW_RECORDER_LINE];
    struct bw_buffer text = {.data = room, .capacity = sizeof room, .fixed = true};
    uint64_t count = bw_recorder_count(recorder);
    append_text(&text, "btrfs-walk: ");
    append_text(&text, reason);
    append_text(&text, bw_recorder_is_whole(recorder)
                           ? "; the last events:\n"
                           : "; the file of the black box was cut short\n");
    if (!write_text(&text) || !bw_recorder_is_whole(recorder))
        return;
    for (uint64_t i = count > LAST_EVENTS ? count - LAST_EVENTS + 1 : 1; i <= count; i++) {
        size_t length = bw_recorder_line(recorder, i, line);
        text.length = 0;
        append_text(&text, "btrfs-walk: ");
        append_text(&text, length ? "" : "(an event that is not complete)");
        bw_buffer_append(&text, line, length);
        append_text(&text, "\n");
        if (!write_text(&text))
            return;
    }
}

static void on_fatal_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    int saved = errno;
    struct bw_recorder *recorder = atomic_load(&active);
    bool is_fault = info->si_code > 0; /* a fault happens again after the return; otherwise another
                                        * process sent the signal */
    size_t i = 0;
    while (i + 1 < FATAL && fatal[i].number != number)
        i++;
    bool ignored =
        !(previous[i].sa_flags & SA_SIGINFO) && previous[i].sa_handler == SIG_IGN && !is_fault;
    if (!ignored) {
        /* Only one thread prints. Another thread that dies meanwhile waits. If it is the same
         * thread, printing itself has failed and is not repeated. */
        int nobody = 0, self = (int)syscall(SYS_gettid);
        if (recorder)
            bw_recorder_note_signal(recorder, number);
        if (recorder && atomic_compare_exchange_strong(&printing, &nobody, self)) {
            char reason[32] = "died of ";
            /* A signal's name is shorter.
             * NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.strcpy) */
            print_events(recorder, strcat(reason, fatal[i].name));
            atomic_store(&printing, -1);
        } else if (recorder) {
            while (nobody != self && atomic_load(&printing) != -1)
                poll(NULL, 0, 1);
        }
        sigaction(number, &previous[i], NULL);
        if (!is_fault)
            raise(number);
    }
    errno = saved;
}

/*
 * Installs handlers that print the last events when a fatal signal ends the program. Only for one
 * recorder at a time. Call it before a file system is opened.
 */
static void catch_fatal_signals(struct bw_recorder *recorder)
{
    struct sigaction ours = {.sa_sigaction = on_fatal_signal};
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    atomic_store(&printing, 0);
    if (atomic_exchange(&active, recorder))
        return; /* already installed */
    sigaltstack(NULL, &previous_stack);
    if (previous_stack.ss_flags & SS_DISABLE)
        sigaltstack(&alternate, NULL);
    /* With SA_RESETHAND, a second dying thread would end the process while the first one prints.
     * Instead, the handler restores the previous action. */
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    for (size_t i = 0; i < FATAL; i++)
        sigaction(fatal[i].number, NULL, &previous[i]);
    for (size_t i = 0; i < FATAL; i++)
        sigaction(fatal[i].number, &ours, NULL);
}

/* Another handler that was installed later may still call this one; without a recorder, it prints
 * nothing. */
static void release_fatal_signals(void)
{
    struct sigaction current;
    if (!atomic_exchange(&active, NULL))
        return;
    for (size_t i = 0; i < FATAL; i++) {
        sigaction(fatal[i].number, NULL, &current);
        if ((current.sa_flags & SA_SIGINFO) && current.sa_sigaction == on_fatal_signal)
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

/* Whether two descriptors are of the same file. */
static bool is_same_file(int first, int second)
{
    struct stat a, b;
    return fstat(first, &a) == 0 && fstat(second, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static struct bw_error *open_file(const struct bw_fs *fs, const char *file, int *descriptor)
{
    int written;
    struct stat status;
    if (strcmp(file, "-") == 0)
        return bw_error_create(BW_ERROR_USAGE, "--blackbox needs a regular file, not -");
    /* Block devices are refused like all other outputs; opening a pipe would wait for a reader. */
    if (stat(file, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode))
        return bw_error_create(BW_ERROR_USAGE, "%s: not a regular file, which --blackbox needs",
                               file);
    BW_TRY(cmd_open_output(fs, NULL, file, &written));

    /* A mapping needs a descriptor for reading and writing, but outputs are opened only for
     * writing. Therefore, the file is opened again; it must be the same file. */
    struct bw_error *error = NULL;
    *descriptor = open(file, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (*descriptor < 0) {
        error = bw_error_from_errno(errno, "cannot open %s for reading and writing", file);
    } else if (!is_same_file(written, *descriptor)) {
        close(*descriptor);
        error = bw_error_create(BW_ERROR_USAGE, "%s was replaced while it was being opened", file);
    }
    close(written);
    return error;
}

/* The options. */

static int show_list(const struct command *command, const void *state, const char *style)
{
    (void)command;
    (void)state;
    return cmd_probe_list(style);
}

static struct bw_error *set_stats(void *target, const struct cmd_option *option, const char *by)
{
    struct cmd_probe_settings *settings = target;
    bool xlator = by && strcmp(by, "xlator") == 0;
    settings->stats = xlator ? CMD_STATS_BY_XLATOR : CMD_STATS_BY_PROBE;
    if (!xlator && by && strcmp(by, "probe") != 0)
        return cmd_bad_argument(option, by, "probe, xlator");
    return NULL;
}

static const char *const formats[] = {"text", "json", NULL};

const struct cmd_option cmd_probe_options[] = {
    {0, "probe", "PATTERN", "print events of these probes, such as 'block-*'",
     CMD_APPEND(struct cmd_probe_settings, patterns), .heading = "Probes"},
    {0, "probe-list", "[=long|json|bpftrace]", "list the probes and their records",
     .show = show_list},
    {0, "probe-format", "FORMAT", "format of events and statistics: text or json",
     CMD_WORD(struct cmd_probe_settings, format, formats)},
    {0, "probe-output", "FILE", "write events and statistics to FILE, not to stderr",
     CMD_TEXT(struct cmd_probe_settings, output)},
    {0, "probe-stats", "[=probe|xlator]", "count and time the events of probes or layers",
     .store = set_stats},
    {0, "probe-max", "N", "stop printing after N events",
     CMD_NUMBER(struct cmd_probe_settings, maximum, 0, UINT32_MAX, "a number"),
     CMD_GIVEN(struct cmd_probe_settings, limited)},
    {0, "blackbox", "FILE", "record the last events in FILE, even after a crash",
     CMD_TEXT(struct cmd_probe_settings, blackbox)},
    {0},
};

/* Whether the options request printed events in addition to a recording. */
static bool prints_events(const struct cmd_probe_settings *settings)
{
    return settings->output || settings->limited;
}

struct cmd_probes {
    const struct cmd_common *common;
    struct cmd_probe_settings settings;
    struct bw_probes *probes;
    bool selected[BW_PROBES_MAX];
    int output; /* descriptor for events and statistics; -1: a file that is not open yet */
    struct bw_probe_printer *printer; /* printer or stats, or neither */
    struct bw_probe_stats *stats;
    struct bw_recorder *recorder;
};

static bool anything_selected(const struct cmd_probes *watch)
{
    for (size_t i = 0; i < BW_PROBES_MAX; i++)
        if (watch->selected[i])
            return true;
    return false;
}

static const char *output_name(const struct cmd_probes *watch)
{
    const char *name = watch->settings.output;
    return name && strcmp(name, "-") != 0 ? name : "stderr";
}

static struct bw_error *write_lines(void *context, const char *lines, size_t length)
{
    const struct cmd_probes *watch = context;
    /* Events before the file was opened are lost. */
    if (watch->output < 0)
        return NULL;
    return cmd_write_file(watch->output, output_name(watch), lines, length);
}

/* Lines on stderr are not buffered. */
static bool is_buffered(const struct cmd_probes *watch)
{
    return strcmp(output_name(watch), "stderr") != 0;
}

static struct bw_error *make_consumers(struct cmd_probes *watch)
{
    const struct cmd_probe_settings *settings = &watch->settings;

    /* BTRFS_WALK_PROBE is equivalent to --probe, for programs started by others. */
    const char *environment = getenv("BTRFS_WALK_PROBE");
    bool given = settings->patterns.count > 0;
    if (environment && *environment) {
        given = true;
        BW_TRY(bw_probes_select(environment, watch->selected));
    }
    for (size_t i = 0; i < settings->patterns.count; i++)
        BW_TRY(bw_probes_select(settings->patterns.items[i], watch->selected));
    if (!given && settings->stats == CMD_STATS_BY_XLATOR)
        BW_TRY(bw_probes_select("fop-unwind", watch->selected));
    else if (!given && (settings->stats || prints_events(settings)))
        BW_TRY(bw_probes_select("*", watch->selected));

    /* Options that would have no effect are refused. */
    if (settings->stats && settings->limited)
        return bw_error_create(BW_ERROR_USAGE, "--probe-max limits the events printed; "
                                               "--probe-stats prints none");
    if (settings->stats == CMD_STATS_BY_XLATOR && settings->patterns.count)
        return bw_error_create(BW_ERROR_USAGE, "--probe-stats=xlator counts the calls of all "
                                               "layers; it takes no --probe");
    if (settings->patterns.count && !anything_selected(watch))
        return bw_error_create(BW_ERROR_USAGE, "--probe excludes all probes that it selects");
    if (settings->stats) {
        BW_TRY(bw_probe_stats_create(settings->stats == CMD_STATS_BY_XLATOR, watch->selected,
                                     &watch->stats));
        bw_probes_add(watch->probes, bw_probe_stats_consumer(watch->stats));
        return NULL;
    }
    if (!anything_selected(watch) || (settings->blackbox && !prints_events(settings)))
        return NULL;
    const struct bw_probe_printer_options options = {
        .struct_size = sizeof(struct bw_probe_printer_options),
        .json = watch->settings.format == CMD_PROBES_JSON,
        .gather = is_buffered(watch),
        .maximum = watch->settings.maximum,
        .consume = write_lines,
        .context = watch,
    };
    BW_TRY(bw_probe_printer_create(&options, watch->selected, &watch->printer));
    if (!watch->settings.limited || watch->settings.maximum)
        bw_probes_add(watch->probes, bw_probe_printer_consumer(watch->printer));
    return NULL;
}

struct bw_error *cmd_probes_create(const struct cmd_common *common, struct cmd_probes **result)
{
    struct cmd_probes *watch = calloc(1, sizeof *watch);
    if (!watch)
        return bw_error_no_memory();
    watch->common = common;
    watch->settings = common->probes;
    watch->output = strcmp(output_name(watch), "stderr") == 0 ? STDERR_FILENO : -1;
    struct bw_error *error = bw_probes_create(&watch->probes);
    if (!error)
        error = make_consumers(watch);
    if (!error)
        *result = watch;
    else
        bw_error_free(cmd_probes_close(watch));
    return error;
}

struct bw_probes *cmd_probes_set_of(struct cmd_probes *watch)
{
    return watch->probes;
}

static struct bw_error *report_stats(struct cmd_probes *watch)
{
    return bw_probe_stats_report(watch->stats, watch->settings.format == CMD_PROBES_JSON,
                                 write_lines, watch);
}

/* Called when a signal ends the program. */
static void print_buffered(void *context)
{
    struct cmd_probes *watch = context;
    if (watch->stats)
        bw_error_free(report_stats(watch));
    else
        bw_probe_printer_flush(watch->printer);
}

struct bw_error *cmd_probes_open(struct cmd_probes *watch, const struct bw_fs *fs)
{
    const struct cmd_probe_settings *settings = &watch->settings;
    const char *file = settings->blackbox;
    if (file) {
        /* A recorder of the coarse probes and the selected ones. */
        int descriptor;
        BW_TRY(open_file(fs, file, &descriptor));
        /* Results or messages written to the same file would overwrite the recording. */
        for (int i = STDOUT_FILENO; i <= STDERR_FILENO; i++)
            if (is_same_file(descriptor, i)) {
                close(descriptor);
                return bw_error_create(BW_ERROR_USAGE, "%s goes to %s, which is the black box",
                                       i == STDOUT_FILENO ? "stdout" : "stderr", file);
            }
        BW_TRY(bw_recorder_create_file(descriptor, file, watch->selected, BW_RECORDER_SLOTS,
                                       &watch->recorder));
    } else {
        /* In memory: only the last of the coarse probes, for fatal signals. */
        BW_TRY(bw_recorder_create(NULL, BW_RECORDER_FEW_SLOTS, &watch->recorder));
    }
    bw_probes_add(watch->probes, bw_recorder_consumer(watch->recorder));
    catch_fatal_signals(watch->recorder);
    if (watch->output == STDERR_FILENO)
        return NULL;
    BW_TRY(cmd_open_output(fs, settings->blackbox, settings->output, &watch->output));
    /* Devices and pipes cannot be truncated. */
    if (ftruncate(watch->output, 0) && errno != EINVAL)
        return bw_error_from_errno(errno, "cannot write to %s", settings->output);
    return NULL;
}

void cmd_probes_start(struct cmd_probes *watch)
{
    if (watch->stats || (watch->printer && is_buffered(watch)))
        cmd_set_exit_message(print_buffered, watch);
}

struct bw_error *cmd_probes_close(struct cmd_probes *watch)
{
    if (!watch)
        return NULL;
    struct bw_error *error = bw_probe_printer_destroy(watch->printer);
    if (watch->stats && watch->recorder)
        error = report_stats(watch);
    release_fatal_signals();
    bw_recorder_destroy(watch->recorder);
    bw_probe_stats_destroy(watch->stats);
    bw_probes_destroy(watch->probes);
    if (watch->output >= 0 && watch->output != STDERR_FILENO)
        error = cmd_close_file(watch->common, watch->output, output_name(watch), error);
    free(watch);
    return error;
}
