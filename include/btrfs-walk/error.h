/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one error object of libbtrfs-walk.
 *
 * Every function that can fail returns `struct bw_error *`: NULL is success, anything else is owned
 * by the caller, who hands it up or frees it with bw_error_free(). An error says what is wrong, at
 * which address, and in which layer of the read pipeline it was born.
 */
#ifndef BTRFS_WALK_ERROR_H
#define BTRFS_WALK_ERROR_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What kind of thing went wrong; decides the exit status of the commands. */
enum bw_error_code {
    BW_ERROR_NO_MEMORY = 1,  /**< an allocation failed */
    BW_ERROR_SYSTEM,         /**< a system call failed; `system` holds errno */
    BW_ERROR_USAGE,          /**< the caller asked for something that makes no sense */
    BW_ERROR_NOT_BTRFS,      /**< no image given holds a usable btrfs superblock */
    BW_ERROR_UNSUPPORTED,    /**< the image needs a feature this library does not read */
    BW_ERROR_CORRUPT,        /**< bytes on disk contradict the format or their checksum */
    BW_ERROR_MISSING_DEVICE, /**< the bytes live on a device that was not given */
    BW_ERROR_NOT_FOUND,      /**< the thing asked for does not exist in the image */
    BW_ERROR_STOPPED,        /**< the consumer of a walk asked it to stop */
};

struct bw_error;

/** How much a message matters to the user. */
enum bw_severity {
    BW_NOTE,    /**< nothing is lost: a bad copy was replaced by a good one */
    BW_WARNING, /**< something the user should know: a device is missing, a superblock copy is bad
                 */
    BW_DAMAGE,  /**< part of the answer is missing */
};

/**
 * Receives messages that do not end an operation. May be called from several threads, but never
 * from two at once for the same file system. The error is the caller's and valid during the call
 * only.
 */
struct bw_reporter {
    void (*report)(void *context, enum bw_severity severity, const struct bw_error *error);
    void *context;
};

/** A place an error came through on its way up. */
struct bw_error_hop {
    struct bw_error_hop *next; /**< the layer above; NULL at the top */
    const char *layer;         /**< type of the layer ("features/verify"), or "fs" */
    const char *volume;        /**< name of the layer in its graph ("verify") */
    uint64_t address;          /**< address of the request, in the address space above the layer */
    bool has_address;          /**< whether `address` means anything */
};

/** An error. Members are read-only for callers; use the functions below to make, extend and free
 * one. */
struct bw_error {
    enum bw_error_code code;
    int system;    /**< errno of a failed system call, 0 otherwise */
    char *message; /**< what is corrupt, where, why and the bad value; no trailing newline */
    struct bw_error_hop *way; /**< the layer it was born in, then those it came through; NULL: not
                                 born in one */
    struct bw_error *causes; /**< errors that led to this one: those of each copy that was tried, in
                                order */
    struct bw_error *next;   /**< the next cause of the same error */
};

/** Makes an error with a printf-style message. Never returns NULL: out of memory yields a static
 * object. */
struct bw_error *bw_error_create(enum bw_error_code code, const char *format, ...)
    __attribute__((format(printf, 2, 3), returns_nonnull, warn_unused_result));

/** Like bw_error_create() with code BW_ERROR_SYSTEM; appends the text of `system_errno` to the
 * message. */
struct bw_error *bw_error_from_errno(int system_errno, const char *format, ...)
    __attribute__((format(printf, 2, 3), returns_nonnull, warn_unused_result));

/** The error for a failed allocation; costs no memory. */
struct bw_error *bw_error_no_memory(void) __attribute__((returns_nonnull, warn_unused_result));

/**
 * Puts context in front of an error's message ("CONTEXT: MESSAGE") and returns the same error.
 * Takes `error`, which must not be NULL; keeps the message as it was if memory is short.
 */
struct bw_error *bw_error_prefix(struct bw_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3), returns_nonnull, warn_unused_result));

/**
 * Notes that an error came through a layer; the first one noted is the layer it was born in.
 * `address` may be NULL. Called by bw_wind(): a layer need not. Forgets the note if memory is
 * short.
 */
void bw_error_add_hop(struct bw_error *error, const char *layer, const char *volume,
                      const uint64_t *address);

/** Adds a cause behind those there are; takes it. Both may be NULL: then the cause is freed. */
void bw_error_add_cause(struct bw_error *error, struct bw_error *cause);

/** A copy of an error with its causes: for a view that has to be kept. */
struct bw_error *bw_error_copy(const struct bw_error *error)
    __attribute__((returns_nonnull, warn_unused_result));

/** Frees an error with its causes; NULL is allowed. */
void bw_error_free(struct bw_error *error);

#ifdef __cplusplus
}
#endif
#endif
