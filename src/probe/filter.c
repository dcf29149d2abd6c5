/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Creating a filter, and evaluating it for each event of a probe that is watched with one. */
#include "probe/filter.h"

#include <stdlib.h>
#include <string.h>
#include <uuid/uuid.h>

#include "base/cleanup.h"
#include "base/glob.h"

static struct bw_error *fill(struct bw_filter *filter, const char *text,
                             const bool selected[BW_PROBES_MAX])
{
    if (strnlen(text, BW_FILTER_LENGTH + 1) > BW_FILTER_LENGTH)
        return bw_error_create(BW_ERROR_USAGE, "the filter is longer than %d bytes",
                               BW_FILTER_LENGTH);
    BW_TRY(bw_filter_parse(filter, text));
    return bw_filter_type(filter, selected);
}

struct bw_error *bw_filter_create(const char *text, const bool selected[BW_PROBES_MAX],
                                  struct bw_filter **filter)
{
    *filter = calloc(1, sizeof **filter);
    if (!*filter)
        return bw_error_no_memory();
    struct bw_error *error = fill(*filter, text, selected);
    if (error)
        bw_filter_destroy(BW_TAKE(*filter));
    return error;
}

void bw_filter_destroy(struct bw_filter *filter)
{
    if (!filter)
        return;
    free(filter->words);
    free(filter->tests);
    free(filter);
}

struct bw_attributes bw_filter_attributes(const struct bw_filter *filter)
{
    return filter->attributes;
}

/* Evaluating. */

static bool number_holds(const struct bw_filter_test *test, uint64_t number, bool with_sign)
{
    /* Bits: less than the value, equal, greater. */
    static const uint8_t results[] = {
        [BW_FILTER_EQUAL] = 2,      [BW_FILTER_DIFFERENT] = 5,     [BW_FILTER_LESS] = 1,
        [BW_FILTER_LESS_EQUAL] = 3, [BW_FILTER_GREATER_EQUAL] = 6, [BW_FILTER_GREATER] = 4,
    };
    uint64_t value = test->value.number;
    if (test->comparison == BW_FILTER_IS)
        return number != 0;
    /* Inverting the sign bit gives signed numbers the order of unsigned ones. */
    if (with_sign) {
        number ^= UINT64_C(1) << 63;
        value ^= UINT64_C(1) << 63;
    }
    return results[test->comparison] >> (1 + (number > value) - (number < value)) & 1;
}

/* Negations: they hold for a member without a value, which equals nothing. */
static bool is_negation(const struct bw_filter_test *test)
{
    return test->comparison == BW_FILTER_DIFFERENT || test->comparison == BW_FILTER_UNLIKE;
}

static bool text_holds(const struct bw_filter_test *test, const char *text, size_t length)
{
    const struct bw_token *value = &test->value.token;
    if (!text)
        return is_negation(test);
    if (test->comparison == BW_FILTER_IS)
        return length > 0;
    bool same = test->comparison == BW_FILTER_LIKE || test->comparison == BW_FILTER_UNLIKE
                    ? bw_glob_matches(value->text, value->length, text, length)
                    : length == value->length && memcmp(text, value->text, length) == 0;
    return same != is_negation(test);
}

static bool bytes_hold(const struct bw_filter_test *test, const struct bw_bytes *bytes,
                       enum bw_member_format format)
{
    char uuid[UUID_STR_LEN];
    if (format != BW_FORMAT_UUID || bytes->length != sizeof(uuid_t) || !bytes->data)
        return text_holds(test, bytes->data, bytes->length);
    uuid_unparse_lower((const unsigned char *)bytes->data, uuid);
    return text_holds(test, uuid, sizeof uuid - 1);
}

static bool member_holds(const struct bw_filter_test *test, const struct bw_member *member,
                         const void *at)
{
    switch (member->type) {
    case BW_TYPE_U64:
        return number_holds(test, *(const uint64_t *)at, false);
    case BW_TYPE_I64:
        return number_holds(test, (uint64_t) * (const int64_t *)at, true);
    case BW_TYPE_BYTES:
        return bytes_hold(test, at, member->format);
    case BW_TYPE_TEXT:
    case BW_TYPE_STRIPES: /* of no probe */
    case BW_TYPE_NAMES:
        break;
    }
    const char *text = *(const char *const *)at;
    return text_holds(test, text, text ? strlen(text) : 0);
}

static bool test_holds(const struct bw_filter_test *test, const struct bw_probe_event *event)
{
    uint8_t index = test->member[event->probe->number];
    if (index == BW_FILTER_PROBE_NAME)
        return text_holds(test, event->probe->name, strlen(event->probe->name));
    if (!(event->members >> index & 1))
        return is_negation(test);
    const struct bw_member *member = &event->probe->record->members[index];
    return member_holds(test, member, (const char *)event->record + member->offset);
}

bool bw_filter_matches(const struct bw_filter *filter, const struct bw_probe_event *event)
{
    if (!filter->typed[event->probe->number])
        return false;
    unsigned next = 0;
    while (next < filter->count)
        next = filter->tests[next].next[test_holds(&filter->tests[next], event)];
    return next == BW_FILTER_MATCH;
}

/* Before a consumer. */

static void take(struct bw_probe_consumer *consumer, const struct bw_probe_event *event)
{
    struct bw_filter *filter = (struct bw_filter *)consumer; /* its first member */
    if (bw_filter_matches(filter, event))
        filter->inner->take(filter->inner, event);
}

struct bw_probe_consumer *bw_filter_before(struct bw_filter *filter,
                                           struct bw_probe_consumer *inner)
{
    filter->inner = inner;
    filter->consumer.take = take;
    memcpy(filter->consumer.selected, inner->selected, sizeof inner->selected);
    for (unsigned i = 0; i < BW_PROBES_MAX; i++)
        filter->consumer.lazy[i] = inner->lazy[i] | filter->members[i];
    return &filter->consumer;
}
