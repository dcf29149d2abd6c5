/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The part of the sandbox that is about root: capabilities. A user has none, so nothing happens
 * then. The ones that are left belong to calls that system_calls.c allows.
 */
#include <errno.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/common/sandbox.h"

#define BIT(capability) (UINT64_C(1) << (capability))

/* Images of other users are opened, and their access times stay as they are (O_NOATIME). */
static const uint64_t reading = BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_FOWNER);

/* Owners are restored, in folders of other users, and files that have other owners by then are
 * changed. Attributes of the kinds trusted and security need the last one. */
static const uint64_t writing =
    BIT(CAP_DAC_OVERRIDE) | BIT(CAP_CHOWN) | BIT(CAP_FOWNER) | BIT(CAP_SYS_ADMIN);

static const uint64_t preserving = BIT(CAP_FSETID) | BIT(CAP_SETFCAP) | BIT(CAP_LINUX_IMMUTABLE);

static uint64_t needed(const struct cmd_system_calls *wanted)
{
    uint64_t all = reading;
    if (wanted->outputs)
        all |= BIT(CAP_DAC_OVERRIDE);
    if (wanted->folder)
        all |= writing;
    if (wanted->folder && wanted->preserves)
        all |= preserving;
    if (wanted->paths && wanted->preserves)
        all |= BIT(CAP_MKNOD); /* device nodes are made by the maker alone */
    return all;
}

int cmd_confine_capabilities(const struct cmd_system_calls *wanted)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    const uint64_t kept = needed(wanted);
    if (syscall(SYS_capget, &head, data))
        return errno;
    for (unsigned i = 0; i < 2; i++) {
        data[i].permitted &= (uint32_t)(kept >> (32 * i));
        data[i].effective &= data[i].permitted;
        data[i].inheritable = 0;
    }
    return syscall(SYS_capset, &head, data) ? errno : 0;
}
