/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Incremental streams. */
#include "stream/sender.h"
struct bw_error *bw_send_incremental_begin(struct bw_sender *sender)
{
    (void)sender;
    return bw_error_create(BW_ERROR_UNSUPPORTED, "not yet");
}
void bw_send_incremental_end(struct bw_sender *sender)
{
    (void)sender;
}
