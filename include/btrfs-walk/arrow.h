/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The structures of the Arrow C data interface, in which rows with the style
 * BW_ROWS_ARROW_STRUCTURES leave the library (record.h). Their members and their guard are those
 * that the specification of Arrow prescribes, so that they can be included with other definitions.
 */
#ifndef BTRFS_WALK_ARROW_H
#define BTRFS_WALK_ARROW_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1 /* the order of the words has a meaning */
#define ARROW_FLAG_NULLABLE           2 /* values may be null */
#define ARROW_FLAG_MAP_KEYS_SORTED    4 /* not used by this library */

/** The type of an array. */
struct ArrowSchema {
    const char *format;   /**< the type, in the letters of the specification */
    const char *name;     /**< of the column */
    const char *metadata; /**< pairs of texts: the number of pairs, then each length and text */
    int64_t flags;        /**< ARROW_FLAG_* */
    int64_t n_children;
    struct ArrowSchema **children;  /**< of a batch: its columns */
    struct ArrowSchema *dictionary; /**< the type of the words; NULL: there are none */
    /** Frees everything, with the children that still have this function, and sets it to NULL. */
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

/** Values of that type. */
struct ArrowArray {
    int64_t length;     /**< number of values */
    int64_t null_count; /**< how many of them are null */
    int64_t offset;     /**< of the first value in the buffers */
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers; /**< bits of the values that are not null, ends of texts, values */
    struct ArrowArray **children;  /**< of a batch: its columns */
    struct ArrowArray *dictionary; /**< the words; NULL: there are none */
    /** Frees everything, with the children that still have this function, and sets it to NULL. */
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif

#ifdef __cplusplus
}
#endif

#endif
