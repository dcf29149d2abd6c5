/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages of the kernel: recognizing them in the lines of a log. The table is in
 * kernel_messages.def. */
#ifndef BW_CLI_RESCUE_KERNEL_MESSAGES_H
#define BW_CLI_RESCUE_KERNEL_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/hash_table.h"
#include "base/vector.h"
#include "btrfs-walk/error.h"

/** Numbers in a message. */
enum kernel_value {
    KERNEL_ROOT, /**< a tree; negative ones are printed with a sign */
    KERNEL_INODE,
    KERNEL_OFFSET, /**< in the file */
    KERNEL_LOGICAL,
    KERNEL_MIRROR,
    KERNEL_PHYSICAL, /**< offset on the device */
    KERNEL_SECTOR,   /**< offset on the device, in units of 512 bytes */
    KERNEL_DEVID,
    KERNEL_WANTED, /**< generation, address or level that was expected */
    KERNEL_FOUND,
    KERNEL_LEVEL,
    KERNEL_VALUES,
};

/** A line of the table: a message, or one of its patterns. */
struct kernel_entry {
    const char *word; /**< NULL: it is a pattern of the message before it */
    bool is_error;    /**< otherwise a warning */
    const char *explanation, *advice;
    const char *pattern;
};

/** The table. */
extern const struct kernel_entry kernel_entries[];
extern const size_t kernel_entry_count;

enum { KERNEL_DEVICE_ROOM = 64 };

/** A message that was recognized. */
struct kernel_message {
    const struct kernel_entry *entry;
    unsigned known; /**< bits of enum kernel_value */
    uint64_t values[KERNEL_VALUES];
    char device[KERNEL_DEVICE_ROOM]; /**< "": none */
};

/** A message in a log. */
struct kernel_log_entry {
    struct kernel_message message;
    uint64_t line;  /**< number of the first line with it, from 1 on */
    uint64_t count; /**< lines with the same values */
    size_t text;    /**< where the first line begins in the texts of the log */
};

BW_VECTOR(kernel_log_entries, struct kernel_log_entry);

/** The messages of a log, without repetitions. All zeros: empty. */
struct kernel_log {
    struct kernel_log_entries entries;
    uint64_t lines;   /**< read */
    uint64_t unknown; /**< of these, not recognized */
    uint64_t errors;  /**< of these, warnings and errors of btrfs */
    uint64_t dropped; /**< recognized, but not kept, because there were too many messages */
    struct bw_buffer texts;
    struct bw_key_map positions; /**< of entries, by a hash of their values */
};

/** Reads a log; "-" is stdin. */
struct bw_error *kernel_log_read(const char *file, struct kernel_log *log);

void kernel_log_free(struct kernel_log *log);

#endif
