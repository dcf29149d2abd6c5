/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The processes of a shell. A signal, or a crash, ends a command together with its
 * process; the next command gets another one. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/shell/shell.h"
#include "cli/shell/worker.h"

enum { SIGNALLED = 128 };

static volatile sig_atomic_t is_interrupted;

static void note_interrupt(int number)
{
    (void)number;
    is_interrupted = 1;
}

void shell_catch_interrupts(void)
{
    const struct sigaction caught = {.sa_handler = note_interrupt};
    sigaction(SIGINT, &caught, NULL);
}

void shell_forget_interrupts(void)
{
    is_interrupted = 0;
}

static void block_interrupt(sigset_t *before)
{
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    sigprocmask(SIG_BLOCK, &interrupt, before);
}

/* Waits until the worker replies or ends. It ignores SIGINT until it begins with the command, so an
 * interruption is passed on until it has an effect. */
static void await_reply(const struct shell *shell)
{
    static const struct timespec again = {.tv_nsec = 50 * 1000 * 1000};
    struct pollfd reply = {.fd = shell->channel, .events = POLLIN};
    sigset_t before;
    block_interrupt(&before);
    while (ppoll(&reply, 1, is_interrupted ? &again : NULL, &before) <= 0)
        if (is_interrupted)
            kill(shell->worker, SIGINT);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

static bool select_nothing(enum bw_severity severity, const struct bw_error *error)
{
    (void)severity;
    (void)error;
    return false;
}

/* The locale and the input that a command has outside of the shell. The child ends with the shell.
 */
static void begin_child(const struct shell *shell)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setlocale(LC_ALL, "C");
    if (!shell->reads_stdin)
        return;
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0)
        close(STDIN_FILENO);
    close(nothing);
}

/* SIGINT ends the child from its beginning on. */
static pid_t fork_child(void)
{
    sigset_t before;
    block_interrupt(&before);
    const pid_t child = fork();
    if (child == 0)
        signal(SIGINT, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return child;
}

/* Waits for a process; returns its exit status, or SIGNALLED plus the number of a signal. */
static int wait_for(const struct shell *shell, pid_t process)
{
    int status = 0;
    while (waitpid(process, &status, 0) < 0)
        if (errno != EINTR)
            return STATUS_CANNOT;
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    const int number = WTERMSIG(status);
    if (number == SIGPIPE || (number == SIGINT && !shell->is_interactive)) {
        signal(number, SIG_DFL);
        raise(number);
    }
    if (number == SIGINT)
        fputc('\n', stderr);
    else
        fprintf(stderr, "btrfs-walk: signal %d (%s) has ended the command\n", number,
                strsignal(number));
    return SIGNALLED + number;
}

static int fail_to_start(const struct shell *shell)
{
    return cmd_fail(&shell->settings, bw_error_from_errno(errno, "cannot start a process"));
}

/* The first reply is the outcome of opening. */
static int receive_opening(struct shell *shell)
{
    struct shell_reply reply;
    const bool received = shell_receive_reply(shell->channel, &reply);
    bw_buffer_free(&reply.text);
    if (received && reply.status == STATUS_OK) {
        shell->generation = reply.generation;
        shell->was_open = true;
        return STATUS_OK;
    }
    close(shell->channel);
    const int status = wait_for(shell, shell->worker);
    shell->worker = 0;
    return received ? reply.status : status ? status : STATUS_CANNOT;
}

int shell_start_worker(struct shell *shell)
{
    int channel[2];
    if (shell->worker)
        return STATUS_OK;
    fflush(NULL);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel))
        return fail_to_start(shell);
    const pid_t child = fork_child();
    if (child == 0) {
        begin_child(shell);
        close(channel[0]);
        if (shell->was_open)
            shell->settings.messages.is_selected = select_nothing;
        exit(shell_work(&shell->settings, channel[1]));
    }
    close(channel[1]);
    if (child < 0) {
        close(channel[0]);
        return fail_to_start(shell);
    }
    shell->worker = child;
    shell->channel = channel[0];
    return receive_opening(shell);
}

/* Closes the channel, at which the worker ends; returns its exit status. */
static int reap_worker(struct shell *shell)
{
    close(shell->channel);
    const pid_t worker = shell->worker;
    shell->worker = 0;
    return wait_for(shell, worker);
}

void shell_end_worker(struct shell *shell)
{
    if (shell->worker)
        reap_worker(shell);
}

int shell_run_apart(struct shell *shell, const struct command *command, char **words, size_t count)
{
    struct cmd_host host = {.settings = &shell->settings, .directory = shell->directory};
    if (is_interrupted) { /* before there was a process that could receive the signal */
        is_interrupted = 0;
        fputc('\n', stderr);
        return SIGNALLED + SIGINT;
    }
    fflush(NULL);
    const pid_t child = count <= INT_MAX ? fork_child() : -1;
    if (child == 0) {
        begin_child(shell);
        if (shell->worker)
            close(shell->channel);
        exit(cmd_run_in(command->needs_no_image ? NULL : &host, command, (int)count, words));
    }
    const int status = child < 0 ? fail_to_start(shell) : wait_for(shell, child);
    is_interrupted = 0;
    return status;
}

int shell_run_task(struct shell *shell, enum shell_task task, char **words, size_t count,
                   struct bw_buffer *text)
{
    const struct shell_request request = {.task = task,
                                          .directory = shell->directory,
                                          .subvolume = shell->subvolume,
                                          .words = words,
                                          .count = count};
    struct shell_reply reply = {.status = 0};
    int status = shell_start_worker(shell);
    if (status != STATUS_OK)
        return status;
    const bool is_sent = shell_send_request(shell->channel, &request);
    if (is_sent && task == SHELL_RUN)
        await_reply(shell);
    if (is_sent && shell_receive_reply(shell->channel, &reply)) {
        status = reply.status;
        shell->generation = reply.generation;
        if (reply.ends)
            reap_worker(shell);
        if (text)
            bw_buffer_append(text, reply.text.data, reply.text.length);
    } else {
        status = reap_worker(shell);
        if (status == CMD_STATUS_ELSEWHERE && task == SHELL_RUN)
            status = shell_run_apart(shell, cmd_find(words[0]), words, count);
    }
    bw_buffer_free(&reply.text);
    is_interrupted = 0;
    return status;
}
