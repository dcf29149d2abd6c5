/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/common/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/common/monitor.h"

enum { LARGEST = 8 << 20 /* bytes of a key, as in cryptsetup */ };

/* From now on, the kernel writes no core files of this process. */
static void protect_process(void)
{
    prctl(PR_SET_DUMPABLE, 0);
}

static struct bw_error *read_key(struct cmd_keys *keys, int descriptor, const char *name,
                                 struct cmd_key_origin origin)
{
    protect_process();
    if (keys->count == CMD_KEYS)
        return bw_error_create(BW_ERROR_USAGE, "more than %d keys are given", CMD_KEYS);
    struct bw_secret *secret = &keys->secrets[keys->count];
    *secret = bw_secret_create(LARGEST);
    if (!secret->bytes)
        return bw_error_no_memory();
    struct bw_error *error = NULL;
    if (!bw_secret_read(secret, descriptor))
        error = bw_error_from_errno(errno, "cannot read the key from %s", name);
    else if (!secret->length)
        error = bw_error_create(BW_ERROR_USAGE, "the key in %s is empty", name);
    if (error) {
        bw_secret_free(secret);
        return error;
    }
    keys->origins[keys->count] = origin;
    keys->keys[keys->count++] = (struct bw_passkey){secret->bytes, secret->length};
    return NULL;
}

struct bw_error *cmd_keys_read_descriptor(struct cmd_keys *keys, int descriptor)
{
    return read_key(keys, descriptor, "the file descriptor",
                    (struct cmd_key_origin){.descriptor = descriptor});
}

struct bw_error *cmd_keys_read_file(struct cmd_keys *keys, const char *path)
{
    const struct cmd_key_origin origin = {.file = path};
    if (strcmp(path, "-") == 0)
        return read_key(keys, STDIN_FILENO, "stdin", origin);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return bw_error_from_errno(errno, "cannot open %s", path);
    struct bw_error *error = read_key(keys, file, path, origin);
    close(file);
    return error;
}

void cmd_keys_free(struct cmd_keys *keys)
{
    while (keys->count)
        bw_secret_free(&keys->secrets[--keys->count]);
}

/* The terminal as it was before a prompt, for the handler of a signal. */
static struct termios terminal;

/* Ends a prompt, and mostly the program. */
static void restore_terminal(int number)
{
    const int problem = errno;
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &terminal);
    cmd_restore_exit_signals();
    raise(number); /* has its usual effect when this handler returns */
    errno = problem;
}

struct bw_error *cmd_keys_prompt(void *context, const char *volume, unsigned attempt,
                                 char *passphrase, size_t *length)
{
    const size_t room = *length;
    (void)context;
    *length = 0;
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &terminal))
        return NULL;
    protect_process();
    struct termios silent = terminal;
    silent.c_lflag &= ~(tcflag_t)ECHO;
    silent.c_lflag |= ICANON;
    cmd_replace_exit_signals(restore_terminal);
    if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent)) {
        cmd_restore_exit_signals();
        return bw_error_from_errno(errno, "cannot ask for the passphrase");
    }
    cmd_progress_wait(true);
    fprintf(stderr, "%sPassphrase of %s: ", attempt ? "It does not fit.\n" : "", volume);
    /* Without the newline. A longer line is cut off, and will not fit. */
    while (*length < room && read(STDIN_FILENO, passphrase + *length, 1) == 1 &&
           passphrase[*length] != '\n')
        ++*length;
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &terminal);
    cmd_restore_exit_signals();
    fputc('\n', stderr);
    cmd_progress_wait(false);
    return NULL;
}
