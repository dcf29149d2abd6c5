/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The error object of libbtrfs-walk.
 *
 * Every function that can fail returns `struct bw_error *`. NULL means success. The caller owns
 * any other value, and returns it or frees it with bw_error_free(). An error contains a message,
 * the address, and the layer of the read pipeline that detected it.
 */
#ifndef BTRFS_WALK_ERROR_H
#define BTRFS_WALK_ERROR_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Kinds of errors. They decide the exit status of the commands. */
enum bw_error_code {
    BW_ERROR_NO_MEMORY = 1,  /**< an allocation failed */
    BW_ERROR_SYSTEM,         /**< a system call failed; `system` holds errno */
    BW_ERROR_USAGE,          /**< wrong arguments or options */
    BW_ERROR_NOT_BTRFS,      /**< no image has a usable btrfs superblock */
    BW_ERROR_UNSUPPORTED,    /**< the image needs a feature this library does not read */
    BW_ERROR_CORRUPT,        /**< bytes on disk contradict the format or their checksum */
    BW_ERROR_MISSING_DEVICE, /**< the bytes are on a device that was not given */
    BW_ERROR_NOT_FOUND,      /**< the requested file, tree, ... does not exist in the image */
    BW_ERROR_STOPPED,        /**< a callback has ended the operation */
    BW_ERROR_AMBIGUOUS,      /**< there are several file systems; see btrfs-walk/image.h */
    BW_ERROR_NO_CHECKSUM,    /**< data that can be read, but not verified: a checksum is missing */
    BW_ERROR_DIVERGED,       /**< devices have different histories; see bw_fs_options.side */
};

struct bw_error;

/** How much a message matters to the user. */
enum bw_severity {
    BW_NOTE,    /**< nothing is lost: a bad mirror was replaced by a good one */
    BW_WARNING, /**< the result is complete, but something is wrong: a device is missing, a
                   superblock copy is bad
                 */
    BW_DAMAGE,  /**< part of the result is missing */
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

/** A layer that an error passed on its way up. */
struct bw_error_hop {
    struct bw_error_hop *next; /**< the layer above; NULL at the top */
    const char *layer;         /**< type of the layer ("features/verify"), or "fs" */
    const char *volume;        /**< name of the layer in its graph ("verify") */
    uint64_t address;          /**< address of the request, in the address space above the layer */
    bool has_address;          /**< whether `address` is set */
};

/** An error. Members are read-only for callers; use the functions below to make, extend and free
 * one. */
struct bw_error {
    enum bw_error_code code;
    int system;    /**< errno of a failed system call, 0 otherwise */
    char *message; /**< the damaged structure, its place, the reason and the bad value; no newline
                      at the end */
    struct bw_error_hop *way; /**< the layer that detected it, then those that it passed; NULL if
                                 it was not detected by a layer */
    struct bw_error *causes;  /**< errors that led to this one, for example one for each copy that
                                 was tried, in order */
    struct bw_error *next;    /**< the next cause of the same error */
    char *file;   /**< the image, or the path in it, that the error is about; NULL: none */
    char *advice; /**< what may help, such as "`scan` searches for file systems"; NULL: not known.
                     Backquotes enclose options of struct bw_fs_options, in some with a value, or
                     `timeout`, of bw_servers_set_timeout() */
};

/** Creates an error with a printf-style message. It never returns NULL: if memory runs out, the
 * result is a static object. */
struct bw_error *bw_error_create(enum bw_error_code code, const char *format, ...)
    __attribute__((format(printf, 2, 3), returns_nonnull, warn_unused_result));

/** Like bw_error_create() with code BW_ERROR_SYSTEM; appends the text of `system_errno` to the
 * message. */
struct bw_error *bw_error_from_errno(int system_errno, const char *format, ...)
    __attribute__((format(printf, 2, 3), returns_nonnull, warn_unused_result));

/** The error for a failed allocation: a static object. */
struct bw_error *bw_error_no_memory(void) __attribute__((returns_nonnull, warn_unused_result));

/** Prepends context to the message of an error ("CONTEXT: MESSAGE") and returns the same error,
 * which must not be NULL. If memory runs out, the message remains unchanged. */
struct bw_error *bw_error_prefix(struct bw_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3), returns_nonnull, warn_unused_result));

/** Records the file that an error is about, unless it has one, and returns the same error, which
 * must not be NULL. If memory runs out, nothing is recorded. */
struct bw_error *bw_error_about(struct bw_error *error, const char *file)
    __attribute__((returns_nonnull, warn_unused_result));

/** Prepends the name of a file to the message of an error, and records it like bw_error_about(). */
struct bw_error *bw_error_in(struct bw_error *error, const char *file)
    __attribute__((returns_nonnull, warn_unused_result));

/** Sets the advice of an error, in place of an earlier one, and returns the same error, which must
 * not be NULL. If memory runs out, it has none. */
struct bw_error *bw_error_advise(struct bw_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3), returns_nonnull, warn_unused_result));

/** Records that an error passed a layer. The first layer recorded is the layer that detected the
 * error. `address` may be NULL. bw_wind() calls this, so layers need not. If memory runs out,
 * nothing is recorded. */
void bw_error_add_hop(struct bw_error *error, const char *layer, const char *volume,
                      const uint64_t *address);

/** Appends a cause to an error, which then owns it. If `error` is NULL, the cause is freed; both
 * may be NULL. */
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
