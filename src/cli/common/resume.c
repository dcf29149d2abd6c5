/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tokens of interrupted runs, and the output that they count. */
#include "cli/common/resume.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash_mix.h"
#include "btrfs-walk/fs.h"
#include "btrfs-walk/record.h"
#include "cli/common/monitor.h"

#ifndef BW_VERSION
#define BW_VERSION "unknown"
#endif

enum {
    UNITS_KEPT = 1 << 15, /* more than there are lines of units in buffers and a pipe */
    INTERRUPT = SIGURG,   /* ends a write(2); its default is to be ignored */
    PATIENCE = 3000,      /* attempts to interrupt a write, 10 ms each */
};

/* A unit: how many there are until its end, and how many bytes of output. */
struct written_unit {
    uint64_t units, bytes;
};

/* The output of the process, therefore this is global. */
static struct {
    bool active, on_broken_pipe;
    bool has_header; /* written by every run, so units cannot be left out */
    bool is_started; /* the image is known */
    struct {
        uint8_t fsid[BW_UUID_SIZE];
        uint64_t generation, options;
        struct written_unit done;
    } token;
    bool has_token;
    pthread_mutex_t lock; /* of the rest, except the atomic members */
    pthread_t writer;
    atomic_bool writing, stopping, is_broken; /* the pipe of stdout is */
    uint64_t dropped, written; /* bytes that were not written again, and those written */
    uint64_t counted;          /* bytes passed by the command */
    struct written_unit units[UNITS_KEPT];
    uint64_t unit_count;
} resumption = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Tokens: 1.FSID.GENERATION.OPTIONS.UNITS.BYTES, the first three numbers hexadecimal. */

void cmd_resume_print(uint64_t units, uint64_t bytes)
{
    char fsid[2 * BW_UUID_SIZE + 1];
    for (size_t i = 0; i < BW_UUID_SIZE; i++)
        snprintf(fsid + 2 * i, 3, "%02x", resumption.token.fsid[i]);
    cmd_progress_hide();
    fprintf(stderr,
            "btrfs-walk: interrupted; to continue, repeat the command with --resume "
            "1.%s.%" PRIx64 ".%" PRIx64 ".%" PRIu64 ".%" PRIu64 "\n",
            fsid, resumption.token.generation, resumption.token.options, units, bytes);
    cmd_progress_release();
}

static struct bw_error *read_token(const char *text)
{
    int length = 0, used = 0;
    if (sscanf(text, "1.%n", &used) != 0 || used != 2)
        return bw_error_create(BW_ERROR_USAGE, "--resume: %s is not a token", text);
    text += used;
    for (size_t i = 0; i < BW_UUID_SIZE; i++) {
        unsigned byte = 0;
        if (sscanf(text, "%2x%n", &byte, &used) != 1 || used != 2)
            return bw_error_create(BW_ERROR_USAGE, "--resume: the token is incomplete");
        resumption.token.fsid[i] = (uint8_t)byte;
        text += used;
    }
    uint64_t options;
    if (sscanf(text, ".%" SCNx64 ".%" SCNx64 ".%" SCNu64 ".%" SCNu64 "%n",
               &resumption.token.generation, &options, &resumption.token.done.units,
               &resumption.token.done.bytes, &length) != 4 ||
        text[length])
        return bw_error_create(BW_ERROR_USAGE, "--resume: the token is incomplete");
    if (options != resumption.token.options)
        return bw_error_create(BW_ERROR_USAGE,
                               "--resume: the token is of a run with other options, "
                               "or of another version of the program");
    resumption.has_token = true;
    return NULL;
}

/* The last unit whose output has been written until a byte. */
static struct written_unit last_unit(uint64_t bytes)
{
    struct written_unit last = {resumption.token.done.units, 0};
    const uint64_t kept = resumption.unit_count < UNITS_KEPT ? resumption.unit_count : UNITS_KEPT;
    for (uint64_t i = resumption.unit_count - kept; i < resumption.unit_count; i++)
        if (resumption.units[i % UNITS_KEPT].bytes <= bytes)
            last = resumption.units[i % UNITS_KEPT];
    return last;
}

/* Called with the lock. Bytes that remain to be dropped have been written, too. */
static void print_position(void)
{
    const uint64_t bytes = resumption.token.done.bytes + resumption.written;
    const struct written_unit last = last_unit(bytes);
    if (resumption.is_started)
        cmd_resume_print(last.units, bytes - last.bytes);
}

/* An exit message. Nothing is written after the token, because the lock is never released. A writer
 * that waits for its reader is interrupted. A writer whose pipe is broken has printed the token. */
static void print_token(void *unused)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    (void)unused;
    if (atomic_load(&resumption.is_broken))
        return;
    atomic_store(&resumption.stopping, true);
    for (int i = 0; i < PATIENCE; i++) {
        if (pthread_mutex_trylock(&resumption.lock) == 0) {
            print_position();
            return;
        }
        if (atomic_load(&resumption.writing))
            pthread_kill(resumption.writer, INTERRUPT);
        nanosleep(&pause, NULL);
    }
}

static void on_interrupt(int number)
{
    (void)number;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = bw_hash_mix(hash, (uint8_t)*text);
    return bw_hash_mix(hash, 0);
}

/* The output on a terminal differs, and so may the output of other versions. */
static uint64_t hash_of_options(const struct cmd_common *common)
{
    uint64_t hash = bw_hash_mix(common->options_hash, (uint64_t)isatty(STDOUT_FILENO));
    hash = hash_text(hash, BW_VERSION);
    for (size_t i = 0; i < common->path_count; i++)
        hash = hash_text(hash, common->paths[i]);
    return hash;
}

struct bw_error *cmd_resume_prepare(const struct cmd_common *common, const char *token)
{
    const struct sigaction action = {.sa_handler = on_interrupt};
    const bool is_new = token && strcmp(token, "new") == 0;
    if (token && common->answer.style == BW_ROWS_ARROW)
        return bw_error_create(BW_ERROR_USAGE, "--resume excludes --arrow");
    if (common->answer.style == BW_ROWS_ARROW || (!token && isatty(STDOUT_FILENO)))
        return NULL;
    resumption.token.options = hash_of_options(common);
    if (token && !is_new)
        BW_TRY(read_token(token));
    resumption.active = true;
    resumption.has_header = common->answer.header || common->answer.json_header;
    resumption.on_broken_pipe = token;
    sigaction(INTERRUPT, &action, NULL);
    cmd_set_exit_message(print_token, NULL);
    return NULL;
}

/* Compares the token with an image, and prepares tokens of this image. */
static struct bw_error *compare_image(const struct bw_fs *fs)
{
    struct bw_superblock_info super;
    bw_fs_superblock(fs, &super);
    if (resumption.has_token && (memcmp(super.fsid, resumption.token.fsid, BW_UUID_SIZE) != 0 ||
                                 super.generation != resumption.token.generation))
        return bw_error_create(BW_ERROR_USAGE,
                               "--resume: the token is of another file system or generation");
    memcpy(resumption.token.fsid, super.fsid, BW_UUID_SIZE);
    resumption.token.generation = super.generation;
    return NULL;
}

struct bw_error *cmd_resume_start(const struct bw_fs *fs, uint64_t *units)
{
    if (units)
        *units = resumption.token.done.units;
    if (!resumption.active)
        return NULL;
    pthread_mutex_lock(&resumption.lock);
    struct bw_error *error = compare_image(fs);
    resumption.is_started = !error;
    pthread_mutex_unlock(&resumption.lock);
    return error;
}

struct bw_error *cmd_resume_position(const struct cmd_common *common, const char *token,
                                     const struct bw_fs *fs, uint64_t *units)
{
    resumption.token.options = hash_of_options(common);
    if (token && strcmp(token, "new") != 0)
        BW_TRY(read_token(token));
    *units = resumption.token.done.units;
    return compare_image(fs);
}

/* Output. */

bool cmd_resume_is_active(void)
{
    return resumption.active;
}

void cmd_resume_count(size_t length)
{
    resumption.counted += length;
}

void cmd_resume_add_unit(void)
{
    if (!resumption.active || resumption.has_header)
        return;
    pthread_mutex_lock(&resumption.lock);
    resumption.units[resumption.unit_count % UNITS_KEPT] = (struct written_unit){
        resumption.token.done.units + resumption.unit_count + 1, resumption.counted};
    resumption.unit_count++;
    pthread_mutex_unlock(&resumption.lock);
}

/* Nothing reads stdout any more. Bytes in the pipe have not reached the reader. */
static void end_by_broken_pipe(void)
{
    int unread;
    if (ioctl(STDOUT_FILENO, FIONREAD, &unread) == 0 && unread > 0 &&
        (uint64_t)unread <= resumption.written)
        resumption.written -= (uint64_t)unread;
    if (resumption.on_broken_pipe)
        print_position();
    atomic_store(&resumption.is_broken, true);
    cmd_write_exit_message();
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
}

static struct bw_error *write_counted(const char *bytes, size_t length)
{
    while (length && !atomic_load(&resumption.stopping)) {
        const ssize_t written = write(STDOUT_FILENO, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EPIPE)
            end_by_broken_pipe();
        if (written < 0)
            return bw_error_from_errno(errno, "cannot write to stdout");
        resumption.written += (uint64_t)written;
        bytes += written;
        length -= (size_t)written;
    }
    return NULL;
}

struct bw_error *cmd_resume_write(const char *bytes, size_t length)
{
    sigset_t set, before;
    if (!length)
        return NULL;
    sigemptyset(&set);
    sigaddset(&set, INTERRUPT);
    pthread_sigmask(SIG_UNBLOCK, &set, &before);
    pthread_mutex_lock(&resumption.lock);
    const uint64_t left = resumption.token.done.bytes - resumption.dropped;
    const size_t drop = left < length ? (size_t)left : length;
    resumption.dropped += drop;
    resumption.writer = pthread_self();
    atomic_store(&resumption.writing, true);
    struct bw_error *error = write_counted(bytes + drop, length - drop);
    atomic_store(&resumption.writing, false);
    pthread_mutex_unlock(&resumption.lock);
    while (atomic_load(&resumption.stopping))
        pause(); /* the process ends */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}
