/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Starting and ending helpers. Between this process and a helper is a watcher: a child that only
 * waits for the end of a pipe whose other end this process holds. The kernel closes the pipe
 * however this process ends. Then the watcher ends the helper and removes the socket.
 *
 * Between fork() and execve(), a process with threads may do little, so everything that needs
 * memory is prepared before.
 */
#include "servers/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Where the helper finds its socket, and where the watcher and it have their ends of pipes. */
enum { LISTENING = 3, LIFE = 4, FIRST_UNUSED = 5 };
enum { MESSAGE = 400 /* bytes of a helper's message that are shown */ };

struct bw_helper {
    char *program;                 /* its name */
    char folder[64];               /* "": none yet */
    struct sockaddr_un address;    /* address of the socket in the folder */
    int listening, life, messages; /* socket; our end of the watcher's pipe; what the helper says */
    pid_t watcher;
    char process[32]; /* "LISTEN_PID=" and room for a number */
    const char **environment;
};

/* The children. */

static void write_number(char *text, unsigned long number)
{
    char digits[24];
    size_t count = 0;
    for (; number || !count; number /= 10)
        digits[count++] = (char)('0' + number % 10);
    while (count)
        *text++ = digits[--count];
    *text = '\0';
}

/* Runs in the watcher: starts the helper, and ends it when this end of the pipe is the only one. */
static _Noreturn void watch_helper(struct bw_helper *helper, int life, int messages,
                                   const char *path, const char *const *arguments)
{
    enum { ELSEWHERE = 100 };
    sigset_t none;
    char byte;

    /* Descriptors go to their places by way of others, where none of them can be. */
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int moved[] = {fcntl(nothing, F_DUPFD_CLOEXEC, ELSEWHERE),
                         fcntl(messages, F_DUPFD_CLOEXEC, ELSEWHERE),
                         fcntl(helper->listening, F_DUPFD_CLOEXEC, ELSEWHERE),
                         fcntl(life, F_DUPFD_CLOEXEC, ELSEWHERE)};
    dup2(moved[0], STDIN_FILENO);
    dup2(moved[0], STDOUT_FILENO);
    dup2(moved[1], STDERR_FILENO);
    dup2(moved[2], LISTENING);
    dup2(moved[3], LIFE);
    syscall(SYS_close_range, FIRST_UNUSED, ~0U, 0);

    /* The terminal's signals are not for it: the process that has started it decides. */
    setsid();
    for (int signal_number = 1; signal_number < NSIG; signal_number++)
        signal(signal_number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);

    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(LIFE);
        write_number(helper->process + strlen(helper->process), (unsigned long)getpid());
        execve(path, (char *const *)(uintptr_t)arguments,
               (char *const *)(uintptr_t)helper->environment);
        _exit(127);
    }
    close(LISTENING); /* a helper that has ended must not seem to be there */
    close(STDERR_FILENO);
    while (read(LIFE, &byte, 1) < 0 && errno == EINTR)
        continue;
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    unlink(helper->address.sun_path);
    rmdir(helper->folder);
    _exit(0);
}

/* Preparing them. */

/* Whether no other user can replace what this one makes in a directory. */
static bool is_safe_directory(const char *path)
{
    struct stat status;
    if (stat(path, &status) || !S_ISDIR(status.st_mode))
        return false;
    return (status.st_uid == 0 || status.st_uid == geteuid()) &&
           (!(status.st_mode & (S_IWGRP | S_IWOTH)) || status.st_mode & S_ISVTX);
}

static struct bw_error *make_socket(struct bw_helper *helper)
{
    const char *given = getenv("TMPDIR");
    size_t room = sizeof helper->folder - sizeof "/btrfs-walk-XXXXXX";
    bool fits = given && *given == '/' && strlen(given) < room && is_safe_directory(given);
    snprintf(helper->folder, sizeof helper->folder, "%s/btrfs-walk-XXXXXX", fits ? given : "/tmp");
    if (!mkdtemp(helper->folder)) {
        helper->folder[0] = '\0';
        return bw_error_from_errno(errno, "cannot make a folder for a socket");
    }
    helper->address.sun_family = AF_UNIX;
    snprintf(helper->address.sun_path, sizeof helper->address.sun_path, "%s/nbd", helper->folder);
    helper->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (helper->listening < 0 ||
        bind(helper->listening, (struct sockaddr *)&helper->address, sizeof helper->address) ||
        listen(helper->listening, 4))
        return bw_error_from_errno(errno, "cannot make the socket %s", helper->address.sun_path);
    return NULL;
}

/* The pipe for messages is non-blocking: a helper that prints too much must not wait for a reader.
 */
static struct bw_error *fork_watcher(struct bw_helper *helper, const char *path,
                                     const char *const *arguments)
{
    int life[2], messages[2];
    if (pipe2(life, O_CLOEXEC))
        return bw_error_from_errno(errno, "cannot start %s", path);
    helper->life = life[1];
    if (pipe2(messages, O_CLOEXEC | O_NONBLOCK)) {
        close(life[0]);
        return bw_error_from_errno(errno, "cannot start %s", path);
    }
    helper->messages = messages[0];
    helper->watcher = fork();
    int problem = errno;
    if (helper->watcher == 0) {
        close(helper->life);
        close(helper->messages);
        watch_helper(helper, life[0], messages[1], path, arguments);
    }
    close(life[0]);
    close(messages[1]);
    close(helper->listening);
    helper->listening = -1;
    if (helper->watcher < 0)
        return bw_error_from_errno(problem, "cannot start %s", path);
    return NULL;
}

struct bw_error *bw_helper_start(const char *path, const char *const *arguments,
                                 struct bw_helper **result)
{
    struct bw_helper *helper = calloc(1, sizeof *helper);
    if (!helper)
        return bw_error_no_memory();
    *helper =
        (struct bw_helper){.listening = -1, .life = -1, .messages = -1, .process = "LISTEN_PID="};
    size_t count = 0, kept = 0;
    while (environ[count])
        count++;
    helper->program = strdup(arguments[0]);
    helper->environment = calloc(count + 3, sizeof *helper->environment);
    struct bw_error *error = make_socket(helper);
    if (!error && (!helper->program || !helper->environment))
        error = bw_error_no_memory();

    /* The helper gets the socket as from systemd. */
    for (size_t i = 0; !error && i < count; i++)
        if (strncmp(environ[i], "LISTEN_", strlen("LISTEN_")) != 0)
            helper->environment[kept++] = environ[i];
    if (!error) {
        helper->environment[kept++] = "LISTEN_FDS=1";
        helper->environment[kept++] = helper->process;
        error = fork_watcher(helper, path, arguments);
    }
    if (error)
        bw_helper_stop(helper);
    else
        *result = helper;
    return error;
}

static void close_if_open(int descriptor)
{
    if (descriptor >= 0)
        close(descriptor);
}

/* The watcher, if it is running, removes the socket at once. */
void bw_helper_stop(struct bw_helper *helper)
{
    if (!helper)
        return;
    close_if_open(helper->listening);
    close_if_open(helper->life);
    close_if_open(helper->messages);
    if (helper->watcher > 0) {
        waitpid(helper->watcher, NULL, 0);
    } else if (*helper->folder) {
        unlink(helper->address.sun_path);
        rmdir(helper->folder);
    }
    free(helper->environment);
    free(helper->program);
    free(helper);
}

const char *bw_helper_socket(const struct bw_helper *helper)
{
    return helper->address.sun_path;
}

struct bw_error *bw_helper_add_error(const struct bw_helper *helper, const char *image,
                                     const char *why)
{
    char said[MESSAGE];
    size_t name = strlen(helper->program);
    ssize_t length = read(helper->messages, said, sizeof said - 1);
    said[length > 0 ? length : 0] = '\0';
    said[strcspn(said, "\n")] = '\0';
    const char *text = said;
    if (strncmp(said, helper->program, name) == 0 && strncmp(said + name, ": ", 2) == 0)
        text += name + 2;
    if (!*text)
        text = why;
    return bw_error_create(BW_ERROR_SYSTEM, "%s cannot serve %s: %s", helper->program, image, text);
}
