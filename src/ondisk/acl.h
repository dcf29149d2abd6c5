/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * POSIX access control lists, as the attributes system.posix_acl_access and
 * system.posix_acl_default hold them. Source: struct posix_acl_xattr_header and _entry in the
 * kernel's uapi/linux/posix_acl_xattr.h.
 */
#ifndef BW_ONDISK_ACL_H
#define BW_ONDISK_ACL_H

#include <stdbool.h>

#include "base/buffer.h"
#include "ondisk/items.h"

/** Whether an attribute, going by its name, is an access control list; `is_default`: one that new
 * files in a directory get. */
bool bw_xattr_is_acl(const struct bw_xattr *xattr, bool *is_default);

/** Writes a valid list of `length` bytes, which are zeros. It lets everybody read, and names the
 * user 0 as often as necessary. No list has a length that is not 4 bytes and 8 for each entry: such
 * bytes remain zeros. */
void bw_acl_fill(uint8_t *bytes, size_t length);

/**
 * Appends a list, a line an entry in the words of getfacl(1) with users and groups as numbers
 * ("user:1000:rw-\n"), each line preceded by `lead`. False, and nothing appended, if the bytes are
 * no list.
 */
bool bw_acl_append_text(const void *bytes, size_t length, const char *lead, struct bw_buffer *text);

#endif
