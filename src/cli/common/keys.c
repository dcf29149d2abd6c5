/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/common/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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
    keys->origins[keys->count++] = origin;
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

struct cmd_keys *cmd_keys_create(void)
{
    BW_AUTO_FREE struct cmd_keys *keys = calloc(1, sizeof *keys);
    if (keys)
        keys->typed = bw_secret_create_shared(CMD_KEYS * sizeof(struct cmd_typed));
    return keys && keys->typed.bytes ? BW_TAKE(keys) : NULL;
}

size_t cmd_keys_list(struct cmd_keys *keys)
{
    const struct cmd_typed *typed = (const void *)keys->typed.bytes;
    size_t count = 0;
    for (size_t i = 0; i < keys->count; i++)
        keys->keys[count++] = (struct bw_passkey){keys->secrets[i].bytes, keys->secrets[i].length};
    for (size_t i = 0; i < CMD_KEYS; i++) {
        const size_t length = typed[i].length;
        if (length && length <= CMD_PASSPHRASE)
            keys->keys[count++] = (struct bw_passkey){typed[i].bytes, length};
    }
    if (count) /* another process may have asked for the passphrase */
        protect_process();
    return count;
}

void cmd_keys_free(struct cmd_keys *keys)
{
    if (!keys)
        return;
    for (size_t i = 0; i < keys->count; i++)
        bw_secret_free(&keys->secrets[i]);
    bw_secret_free(&keys->typed);
    free(keys);
}

/* The signal that has ended a prompt; 0: none. */
static volatile sig_atomic_t end_of_prompt;

static void end_prompt(int number)
{
    end_of_prompt = number;
}

/* Reads a line without its newline; a longer one is cut off. The handler of a signal cannot stop a
 * read() that begins after it, so read() is called only if there is input. */
static size_t read_line(char *line, size_t room)
{
    enum { INTERVAL = 100 /* ms */ };
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    size_t length = 0;
    while (!end_of_prompt && length < room) {
        if (poll(&input, 1, INTERVAL) <= 0)
            continue;
        if (read(STDIN_FILENO, line + length, 1) != 1 || line[length] == '\n')
            break;
        length++;
    }
    return length;
}

/* Keeps the passphrase for the file systems that the command opens later. A second attempt shows
 * that the passphrase before it was wrong. The last one that was wrong stays: later openings, which
 * no longer ask, then report that it does not fit. */
static void keep_typed(struct cmd_keys *keys, unsigned attempt, const char *bytes, size_t length)
{
    struct cmd_typed *typed = (void *)keys->typed.bytes, *end = typed + CMD_KEYS;
    if (attempt && keys->last_typed)
        keys->last_typed->length = 0;
    while (typed < end && typed->length)
        typed++;
    const bool is_kept = typed < end && length <= CMD_PASSPHRASE;
    keys->last_typed = is_kept ? typed : NULL;
    if (!is_kept)
        return;
    memcpy(typed->bytes, bytes, length);
    typed->length = length;
}

struct bw_error *cmd_keys_prompt(void *keys, const char *volume, unsigned attempt, char *passphrase,
                                 size_t *length)
{
    const size_t room = *length;
    struct termios terminal;
    *length = 0;
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &terminal))
        return NULL;
    protect_process();
    struct termios silent = terminal;
    silent.c_lflag &= ~(tcflag_t)ECHO;
    silent.c_lflag |= ICANON;
    end_of_prompt = 0;
    cmd_replace_exit_signals(end_prompt);
    if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent)) {
        cmd_restore_exit_signals();
        return bw_error_from_errno(errno, "cannot ask for the passphrase");
    }
    cmd_progress_wait(true);
    fprintf(stderr, "%sPassphrase of %s: ", attempt ? "It does not fit.\n" : "", volume);
    *length = read_line(passphrase, room);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &terminal);
    cmd_restore_exit_signals();
    fputc('\n', stderr);
    cmd_progress_wait(false);
    if (end_of_prompt) {
        cmd_raise_exit_signal(end_of_prompt);
        return bw_error_create(BW_ERROR_STOPPED, "interrupted");
    }
    keep_typed(keys, attempt, passphrase, *length);
    return NULL;
}
