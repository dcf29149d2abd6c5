/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The target for probe filters. The first byte chooses a probe, the text up to a NUL is the filter,
 * and the rest fills a record of the probe.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/targets.h"
#include "support/filter_matches.h"

/* A record of any kind, and the bytes of its texts. */
struct any_record {
    uint64_t words[2 * BW_RECORD_MEMBERS];
    char *text; /* with a NUL after it */
    size_t length;
};

static void fill_record(const struct bw_record *kind, const uint8_t *data, size_t size,
                        struct any_record *record)
{
    memcpy(record->words, data, size < sizeof record->words ? size : sizeof record->words);
    for (unsigned i = 0; i < kind->member_count; i++) {
        char *at = (char *)record->words + kind->members[i].offset;
        size_t length = (size_t) * (uint64_t *)(void *)at % (record->length + 1);
        if (kind->members[i].type == BW_TYPE_TEXT)
            *(const char **)(void *)at = length ? record->text + (record->length - length) : NULL;
        else if (kind->members[i].type == BW_TYPE_BYTES)
            *(struct bw_bytes *)(void *)at = (struct bw_bytes){record->text, length};
    }
}

static struct bw_filter *create(const char *front, const char *text, const char *back,
                                unsigned number)
{
    bool selected[BW_PROBES_MAX] = {false};
    char whole[BW_FILTER_LENGTH + 64];
    struct bw_filter *filter = NULL;
    selected[number] = true;
    *whole = '\0';
    strcat(strcat(strcat(whole, front), text), back);
    struct bw_error *error = bw_filter_create(whole, selected, &filter);
    if (error && (error->code != BW_ERROR_USAGE || filter))
        fuzz_fail("code %d: %s", error->code, error->message);
    bw_error_free(error);
    return filter;
}

/* Another way to write it, which may be too long or too deep. */
static void expect_same(const char *front, const char *text, const char *back,
                        const struct bw_probe_event *event, bool expected)
{
    struct bw_filter *filter = create(front, text, back, event->probe->number);
    if (filter && filter_matches(filter, event) != expected)
        fuzz_fail("%s%s%s has another answer than %s", front, text, back, text);
    bw_filter_destroy(filter);
}

static void check(const char *text, const struct bw_probe *probe, struct any_record *record)
{
    struct bw_probe_event event = {
        .probe = probe, .record = record->words, .members = bw_probe_members(probe)};
    struct bw_filter *filter = create("", text, "", probe->number);
    if (!filter)
        return;
    if (filter_members(filter, probe->number) & ~bw_probe_members(probe))
        fuzz_fail("it reads members that are not there");
    for (unsigned i = 0; i < 2; i++) {
        bool matches = filter_matches(filter, &event);
        expect_same("((", text, "))", &event, matches);
        expect_same("!(", text, ")", &event, !matches);
        expect_same("!probe || (", text, ") && probe", &event, matches);
        event.members = record->words[0];
    }
    bw_filter_destroy(filter);
}

void fuzz_filter(const uint8_t *data, size_t size)
{
    unsigned count;
    const struct bw_probe *probes = bw_probe_table(&count);
    struct any_record record = {0};
    if (size == 0 || size > BW_FILTER_LENGTH)
        return;
    const struct bw_probe *probe = &probes[data[0] % count];
    char *text = strndup((const char *)data + 1, size - 1);
    if (!text)
        fuzz_fail("out of memory");
    size_t used = 1 + strlen(text) + (strlen(text) + 1 < size);
    record.length = size - used;
    record.text = calloc(1, record.length + 1);
    if (!record.text)
        fuzz_fail("out of memory");
    memcpy(record.text, data + used, record.length);
    fill_record(probe->record, data + used, size - used, &record);
    check(text, probe, &record);
    free(record.text);
    free(text);
}
