/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Setting up libgcrypt, which has to be done once before its first use. */
#ifndef BW_BASE_GCRYPT_H
#define BW_BASE_GCRYPT_H

#include "btrfs-walk/error.h"

/** Sets it up, unless that was done; to be called before several threads use it. BW_ERROR_SYSTEM if
 * no file can be opened. */
struct bw_error *bw_gcrypt_prepare(void);

#endif
