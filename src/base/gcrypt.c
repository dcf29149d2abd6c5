/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Setting up libgcrypt. */
#include "base/gcrypt.h"

#include <errno.h>
#include <fcntl.h>
#include <gcrypt.h>
#include <unistd.h>

struct bw_error *bw_gcrypt_prepare(void)
{
    if (gcry_control(GCRYCTL_INITIALIZATION_FINISHED_P))
        return NULL;
    /* It opens files now, and ends the process if it cannot. */
    int spare = open("/", O_PATH | O_CLOEXEC);
    if (spare < 0)
        return bw_error_from_errno(errno, "cannot set up libgcrypt");
    close(spare);
    gcry_check_version(NULL);
    gcry_control(GCRYCTL_DISABLE_SECMEM, 0);
    gcry_control(GCRYCTL_INITIALIZATION_FINISHED, 0);
    return NULL;
}
