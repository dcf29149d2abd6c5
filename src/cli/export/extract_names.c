/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of what older states held. That of a file is left to a version of it that is whole. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/export/extract.h"

struct bw_error *extract_free_name(struct extract *extract, const struct bw_export_entry *item)
{
    return extract->name_is_free
               ? extract->name_is_free(extract->context, item->path.data, item->path.length)
               : NULL;
}

static bool ends_with(const struct bw_buffer *path, const char *suffix, size_t length)
{
    return path->length > length && memcmp(path->data + path->length - length, suffix, length) == 0;
}

struct bw_error *extract_leave_name(struct extract *extract, struct bw_export_entry *item)
{
    char suffix[32];
    struct bw_link link;
    const size_t length =
        (size_t)snprintf(suffix, sizeof suffix, ".~%" PRIu64 "~", extract->generation);
    if (!extract->generation || ends_with(&item->path, suffix, length))
        return NULL;
    BW_TRY(extract_free_name(extract, item));
    cmd_bad_flush(&extract->bad); /* which has a view of the path */
    bw_buffer_append(&item->path, suffix, length + 1);
    if (item->path.failed)
        return bw_error_no_memory();
    item->path.length--;
    if (!item->skipped && bw_export_entry_has_names(item) &&
        bw_links_find(&extract->links, &item->place, &link) &&
        !bw_links_rename(&extract->links, link.number, item->path.data + 1))
        return bw_error_no_memory();
    return bw_target_enter(&extract->target, item->path.data + 1, item->path.length - 1);
}
