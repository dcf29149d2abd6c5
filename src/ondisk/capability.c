/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Capabilities as text. A capability is permitted (p), inheritable (i), or both, and the whole set
 * is effective (e) or not. The text has a group for each combination, as cap_to_text(3) makes them.
 */
#include "ondisk/capability.h"

#include <inttypes.h>
#include <string.h>

#include "base/endian.h"

enum {
    MAGIC_REVISION = 0xff000000,
    MAGIC_EFFECTIVE = 1,
    REVISION_1 = 0x01000000, /* 32 capabilities */
    REVISION_2 = 0x02000000, /* 64 */
    REVISION_3 = 0x03000000, /* 64, and the owner of a user namespace */
};

enum { PERMITTED = 1, INHERITABLE = 2 };

static const char *const names[] = {
    "chown",
    "dac_override",
    "dac_read_search",
    "fowner",
    "fsetid",
    "kill",
    "setgid",
    "setuid",
    "setpcap",
    "linux_immutable",
    "net_bind_service",
    "net_broadcast",
    "net_admin",
    "net_raw",
    "ipc_lock",
    "ipc_owner",
    "sys_module",
    "sys_rawio",
    "sys_chroot",
    "sys_ptrace",
    "sys_pacct",
    "sys_admin",
    "sys_boot",
    "sys_nice",
    "sys_resource",
    "sys_time",
    "sys_tty_config",
    "mknod",
    "lease",
    "audit_write",
    "audit_control",
    "setfcap",
    "mac_override",
    "mac_admin",
    "syslog",
    "wake_alarm",
    "block_suspend",
    "audit_read",
    "perfmon",
    "bpf",
    "checkpoint_restore",
};

enum { NAMES = sizeof names / sizeof *names };

struct disk_capability {
    bw_le32 magic;
    struct {
        bw_le32 permitted, inheritable;
    } sets[2];
    bw_le32 rootid;
};

bool bw_capability_append_text(const struct bw_xattr *xattr, struct bw_buffer *text)
{
    static const char attribute[] = BW_CAPABILITIES;
    static const char *const flags[] = {
        [PERMITTED] = "p", [INHERITABLE] = "i", [PERMITTED | INHERITABLE] = "ip"};
    struct disk_capability disk = {.rootid = bw_put32(0)};
    if (xattr->name_length != sizeof attribute - 1 ||
        memcmp(xattr->name, attribute, xattr->name_length) != 0 ||
        xattr->value_length > sizeof disk || xattr->value_length < sizeof disk.magic)
        return false;
    memcpy(&disk, xattr->value, xattr->value_length);
    const uint32_t magic = bw_get32(disk.magic), revision = magic & MAGIC_REVISION;
    size_t size = 0;
    if (revision == REVISION_1)
        size = offsetof(struct disk_capability, sets[1]);
    else if (revision == REVISION_2)
        size = offsetof(struct disk_capability, rootid);
    else if (revision == REVISION_3)
        size = sizeof disk;
    if (xattr->value_length != size)
        return false;

    uint64_t permitted = bw_get32(disk.sets[0].permitted);
    uint64_t inheritable = bw_get32(disk.sets[0].inheritable);
    if (revision != REVISION_1) {
        permitted |= (uint64_t)bw_get32(disk.sets[1].permitted) << 32;
        inheritable |= (uint64_t)bw_get32(disk.sets[1].inheritable) << 32;
    }
    const char *effective = magic & MAGIC_EFFECTIVE ? "e" : "";
    const uint64_t sets[] = {[PERMITTED] = permitted & ~inheritable,
                             [INHERITABLE] = inheritable & ~permitted,
                             [PERMITTED | INHERITABLE] = permitted & inheritable};
    const uint64_t all = (UINT64_C(1) << NAMES) - 1;
    bool is_first = true;
    for (unsigned combination = PERMITTED | INHERITABLE; combination; combination--) {
        const uint64_t set = sets[combination];
        if (!set)
            continue;
        const char operator= is_first ? '=' : '+';
        if (!is_first)
            bw_buffer_append_byte(text, ' ');
        is_first = false;
        const char *separator = "";
        for (unsigned bit = 0; bit < 64 && (set & all) != all; bit++) {
            if (!(set >> bit & 1))
                continue;
            if (bit < NAMES)
                bw_buffer_format(text, "%scap_%s", separator, names[bit]);
            else
                bw_buffer_format(text, "%s%u", separator, bit);
            separator = ",";
        }
        bw_buffer_format(text, "%c%s%s", operator, effective, flags[combination]);
    }
    if (is_first)
        bw_buffer_append_byte(text, '=');
    if (bw_get32(disk.rootid))
        bw_buffer_format(text, " [rootid=%" PRIu32 "]", bw_get32(disk.rootid));
    return true;
}
