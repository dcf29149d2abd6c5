/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Access control lists as text. */
#include "ondisk/acl.h"

#include <inttypes.h>

#include "ondisk/items.h"

enum { VERSION = 2, PERMISSIONS = 7, READ = 5 };

struct disk_header {
    bw_le32 version;
};

struct disk_entry {
    bw_le16 tag;
    bw_le16 permissions;
    bw_le32 id;
};

/* Kinds of entries, as bits of the format. */
enum {
    TAG_USER_OWNER = 0x01,
    TAG_USER = 0x02,
    TAG_GROUP_OWNER = 0x04,
    TAG_GROUP = 0x08,
    TAG_MASK = 0x10,
    TAG_OTHER = 0x20,
};

bool bw_xattr_is_acl(const struct bw_xattr *xattr, bool *is_default)
{
    *is_default = bw_xattr_is_named(xattr, BW_ACL_DEFAULT);
    return *is_default || bw_xattr_is_named(xattr, BW_ACL_ACCESS);
}

/* NULL: it is not exactly one kind. */
static const char *tag_name(uint16_t tag)
{
    static const char *const names[] = {"user", "user", "group", "group", "mask", "other"};
    const bool is_one = tag && !(tag & (tag - 1)) && tag <= TAG_OTHER;
    return is_one ? names[__builtin_ctz(tag)] : NULL;
}

/* The kinds of entries have to ascend, and a list with entries for single users needs a mask. */
void bw_acl_fill(uint8_t *bytes, size_t length)
{
    struct disk_header *header = (void *)bytes;
    struct disk_entry *entries = (void *)(header + 1);
    if (length < sizeof *header || (length - sizeof *header) % sizeof *entries)
        return;
    const size_t count = (length - sizeof *header) / sizeof *entries;
    header->version = bw_put32(VERSION);
    for (size_t i = 0; i < count; i++) {
        static const uint16_t last[] = {TAG_OTHER, TAG_MASK, TAG_GROUP_OWNER};
        const size_t after = count - 1 - i;
        uint16_t tag = TAG_USER;
        if (!i)
            tag = TAG_USER_OWNER;
        else if (count == 3)
            tag = i == 1 ? TAG_GROUP_OWNER : TAG_OTHER;
        else if (after < sizeof last / sizeof *last)
            tag = last[after];
        const bool has_id = tag == TAG_USER;
        entries[i] =
            (struct disk_entry){bw_put16(tag), bw_put16(READ), bw_put32(has_id ? 0 : UINT32_MAX)};
    }
}

bool bw_acl_append_text(const void *bytes, size_t length, const char *lead, struct bw_buffer *text)
{
    static const char permissions[][4] = {"---", "--x", "-w-", "-wx", "r--", "r-x", "rw-", "rwx"};
    const struct disk_header *header = bytes;
    const struct disk_entry *entries = (const void *)(header + 1);
    if (length < sizeof *header || bw_get32(header->version) != VERSION ||
        (length - sizeof *header) % sizeof *entries)
        return false;
    const size_t count = (length - sizeof *header) / sizeof *entries, start = text->length;
    for (size_t i = 0; i < count; i++) {
        const uint16_t tag = bw_get16(entries[i].tag), bits = bw_get16(entries[i].permissions);
        const char *name = tag_name(tag);
        if (!name || bits > PERMISSIONS) {
            text->length = start;
            return false;
        }
        bw_buffer_format(text, "%s%s:", lead, name);
        if (tag == TAG_USER || tag == TAG_GROUP)
            bw_buffer_format(text, "%" PRIu32, bw_get32(entries[i].id));
        bw_buffer_format(text, ":%s\n", permissions[bits]);
    }
    return true;
}
