/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of the bad copies of a range, and the error made from it. */
#include "xlators/features/verify_copies.h"

#include <inttypes.h>

#include "base/cleanup.h"

/* How many repairs are reported; a stale mirror could have millions. */
enum { REPORT_LIMIT = 1 << 16 };

/* Appends where a copy is stored, and what is wrong with it. */
static void describe_copy(const struct bw_frame *frame, struct bw_xlator *xlator,
                          const struct bw_request *request, unsigned copy,
                          const struct bw_error *reason, struct bw_buffer *text)
{
    struct bw_map_reply reply;
    BW_AUTO_ERROR struct bw_error *error = bw_wind_map(
        frame, bw_xlator_child(xlator, 0), request->address, request->length, copy, &reply);
    bw_buffer_format(text, "%scopy %u", text->length ? "; " : "", copy);
    if (!error && reply.location.rebuilt)
        bw_buffer_format(text, " (rebuilt from parity)");
    else if (!error)
        bw_buffer_format(text, " on device %" PRIu64 " at %" PRIu64, reply.location.devid,
                         reply.location.offset);
    bw_buffer_format(text, ": %s", reason->message);
}

void bw_note_bad_copy(const struct bw_frame *frame, struct bw_xlator *xlator,
                      const struct bw_request *request, unsigned copy, struct bw_error *reason,
                      struct bw_bad_copies *bad)
{
    describe_copy(frame, xlator, request, copy, reason, &bad->text);
    bad->code = reason->code;
    if (reason == bw_error_no_memory())
        return;
    *(bad->last ? &bad->last->next : &bad->reasons) = reason;
    bad->last = reason;
}

static struct bw_error *name_range(struct bw_error *error, const struct bw_request *request)
{
    if (request->kind == BW_REQUEST_TREE_BLOCK)
        return bw_error_prefix(error, "tree block %" PRIu64 " of tree %" PRIu64 " (level %u)",
                               request->address, request->expectation->owner,
                               request->expectation->level);
    return bw_error_prefix(error, "data at %" PRIu64, request->address);
}

struct bw_error *bw_explain_copies(struct bw_bad_copies *bad, const struct bw_request *request,
                                   unsigned used)
{
    int length = (int)bad->text.length;
    const char *text = bad->text.data ? bad->text.data : "";
    struct bw_error *error =
        bad->good_again ? bw_error_create(BW_ERROR_CORRUPT,
                                          "good only when it was read again (%.*s)", length, text)
        : used ? bw_error_create(BW_ERROR_CORRUPT, "used copy %u instead of a bad one (%.*s)", used,
                                 length, text)
               : bw_error_create(bad->code, "no good copy: %.*s", length, text);
    error = name_range(error, request);
    for (struct bw_error *reason = bad->reasons, *next; reason; reason = next) {
        next = reason->next;
        reason->next = NULL;
        bw_error_add_cause(error, reason);
    }
    bw_buffer_free(&bad->text);
    *bad = (struct bw_bad_copies){.code = bad->code};
    return error;
}

unsigned bw_copy_count(const struct bw_frame *frame, struct bw_xlator *xlator,
                       const struct bw_request *request, uint32_t *length)
{
    struct bw_map_reply reply;
    BW_AUTO_ERROR struct bw_error *error = bw_wind_map(
        frame, bw_xlator_child(xlator, 0), request->address, request->length, 1, &reply);
    if (length)
        *length = error ? request->length : reply.length;
    return error ? 1 : reply.copies;
}

static bool first_report(struct bw_verify *verify, uint64_t address)
{
    pthread_mutex_lock(&verify->lock);
    bool first = verify->reported.count < REPORT_LIMIT &&
                 bw_map_get(&verify->reported, address) == UINT32_MAX;
    if (first)
        bw_map_put(&verify->reported, address, 1);
    pthread_mutex_unlock(&verify->lock);
    return first;
}

void bw_verify_note(struct bw_xlator *xlator, uint64_t address, struct bw_error *note)
{
    if (first_report(bw_xlator_private(xlator), address))
        bw_xlator_report(xlator, BW_NOTE, note);
    else
        bw_error_free(note);
}
