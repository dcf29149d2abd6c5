/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The translators, made from records.def: a function for each input, which evaluates only the
 * members that are wanted. Before them are the functions that the expressions use.
 */
#include "record/record_types.h"

#include <errno.h>

#include "ondisk/checksum.h"
#include "ondisk/items.h"

static struct bw_bytes bytes_of(const void *bytes, size_t length)
{
    return (struct bw_bytes){bytes, length};
}

static uint64_t bytes_asked(const struct bw_fop_event *in)
{
    uint64_t bytes = in->requests ? 0 : in->length;
    for (uint64_t i = 0; in->requests && i < in->count; i++)
        bytes += in->requests[i].length;
    return bytes;
}

static uint64_t errors_met(const struct bw_fop_event *in)
{
    uint64_t errors = !in->requests && in->event.error;
    for (uint64_t i = 0; in->requests && i < in->count; i++)
        errors += in->requests[i].error != NULL;
    return errors;
}

static uint64_t items_of(const struct bw_block_event *in)
{
    const struct bw_disk_header *header = in->request->buffer;
    return in->event.error ? 0 : bw_get32(header->item_count);
}

static uint64_t address_of(const struct bw_error *error)
{
    return error->way && error->way->has_address ? error->way->address : 0;
}

static const char *severity_name(const struct bw_report_event *in)
{
    if (in->fatal)
        return "fatal";
    if (in->severity == BW_NOTE)
        return "note";
    return in->severity == BW_WARNING ? "warning" : "damage";
}

/* The errno of a failed system call, or the nearest one. */
static int64_t error_number(const struct bw_error *error)
{
    static const int numbers[] = {
        [BW_ERROR_NO_MEMORY] = ENOMEM,      [BW_ERROR_SYSTEM] = EIO,
        [BW_ERROR_USAGE] = EINVAL,          [BW_ERROR_NOT_BTRFS] = EINVAL,
        [BW_ERROR_UNSUPPORTED] = ENOTSUP,   [BW_ERROR_CORRUPT] = EUCLEAN,
        [BW_ERROR_MISSING_DEVICE] = ENODEV, [BW_ERROR_NOT_FOUND] = ENOENT,
        [BW_ERROR_STOPPED] = ECANCELED,     [BW_ERROR_AMBIGUOUS] = ENOTUNIQ,
        [BW_ERROR_NO_CHECKSUM] = EUCLEAN,   [BW_ERROR_DIVERGED] = ENOTUNIQ,
    };
    if (!error)
        return 0;
    return -(error->system ? error->system : numbers[error->code]);
}

#define XLATE(record, name, input)                                                  \
    void bw_xlate_##name(const input *in, uint64_t wanted, struct bw_##record *out) \
    {
#define FROM(record, member, expression)                \
    if (wanted & UINT64_C(1) << BW_##record##_##member) \
        out->member = (expression);
#define END_XLATE(name) }
#include "record/records.def"

/* Their tables. With void pointers, all translators have one type. */
#define XLATE(record, name, input)                                           \
    static void translate_##name(const void *in, uint64_t wanted, void *out) \
    {                                                                        \
        bw_xlate_##name(in, wanted, out);                                    \
    }                                                                        \
    const struct bw_xlate bw_##name##_xlate = {#name, &bw_##record##_record, 0
#define FROM(record, member, expression) | UINT64_C(1) << BW_##record##_##member
#define END_XLATE(name) \
    , translate_##name  \
    }                   \
    ;
#include "record/records.def"
