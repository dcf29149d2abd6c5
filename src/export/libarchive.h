/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The functions of libarchive. It is loaded by who writes an archive, not with the program: what it
 * brings along (XML, Unicode, the C++ runtime) would more than double the time that any other
 * command takes to start.
 */
#ifndef BW_EXPORT_LIBARCHIVE_H
#define BW_EXPORT_LIBARCHIVE_H

#include <archive.h>
#include <archive_entry.h>

#include "btrfs-walk/error.h"

/** Those that are used. */
#define BW_LIBARCHIVE_FUNCTIONS(X)        \
    X(archive_entry_acl_from_text)        \
    X(archive_entry_clear)                \
    X(archive_entry_copy_hardlink)        \
    X(archive_entry_copy_pathname)        \
    X(archive_entry_copy_symlink)         \
    X(archive_entry_free)                 \
    X(archive_entry_new)                  \
    X(archive_entry_set_atime)            \
    X(archive_entry_set_ctime)            \
    X(archive_entry_set_gid)              \
    X(archive_entry_set_ino64)            \
    X(archive_entry_set_mode)             \
    X(archive_entry_set_mtime)            \
    X(archive_entry_set_nlink)            \
    X(archive_entry_set_rdevmajor)        \
    X(archive_entry_set_rdevminor)        \
    X(archive_entry_set_size)             \
    X(archive_entry_set_uid)              \
    X(archive_entry_size)                 \
    X(archive_entry_sparse_add_entry)     \
    X(archive_entry_xattr_add_entry)      \
    X(archive_errno)                      \
    X(archive_error_string)               \
    X(archive_set_error)                  \
    X(archive_write_close)                \
    X(archive_write_data)                 \
    X(archive_write_free)                 \
    X(archive_write_header)               \
    X(archive_write_new)                  \
    X(archive_write_open)                 \
    X(archive_write_set_bytes_per_block)  \
    X(archive_write_set_format_cpio_newc) \
    X(archive_write_set_format_option)    \
    X(archive_write_set_format_pax)

#define BW_LIBARCHIVE_MEMBER(name) __typeof__(name) *name;

/** A pointer to each of them, of the same name. */
struct bw_libarchive {
    BW_LIBARCHIVE_FUNCTIONS(BW_LIBARCHIVE_MEMBER)
};

/** Loads the library, which stays until the end of the program. BW_ERROR_SYSTEM if it is not there.
 */
struct bw_error *bw_libarchive_load(struct bw_libarchive *library);

#endif
