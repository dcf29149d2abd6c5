/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the names in a filter mean, for each probe that it is for: records differ in the offset of a
 * member and sometimes in its type. Whatever cannot work is refused here, before anything is read.
 */
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/cleanup.h"
#include "probe/filter.h"

/* What a test is about, for one probe. */
struct subject {
    const struct bw_member *member;
    char name[128]; /* "blockinfo.level" */
};

static const struct bw_member probe_name = {
    .name = "probe", .type = BW_TYPE_TEXT, .format = BW_FORMAT_TEXT};

static bool is_text(const struct bw_member *member)
{
    return member->type == BW_TYPE_TEXT || member->type == BW_TYPE_BYTES;
}

/* What was probably meant. */

static const char *near_name(const struct bw_record *record, const struct bw_token *name)
{
    char wanted[65];
    struct bw_nearest nearest = {.wanted = wanted};
    snprintf(wanted, sizeof wanted, "%.*s", BW_FILTER_SHOWN(name));
    for (unsigned i = 0; i < record->member_count; i++)
        bw_nearest_try(&nearest, record->members[i].name);
    bw_nearest_try(&nearest, probe_name.name);
    return nearest.best;
}

static struct bw_error *refuse_name(const struct bw_record *record, const struct bw_token *name)
{
    const char *near = near_name(record, name);
    return bw_error_create(BW_ERROR_USAGE, "%s has no member '%.*s'%s%s%s", record->name,
                           BW_FILTER_SHOWN(name), near ? "; did you mean '" : "", near ? near : "",
                           near ? "'?" : "");
}

/* Types. */

static struct bw_error *check_operator(const struct bw_filter_test *test,
                                       const struct subject *subject)
{
    bool text = is_text(subject->member);
    const char *symbol = bw_filter_lexer_rules.symbols[test->comparison];
    if (test->comparison >= BW_FILTER_LESS_EQUAL && text)
        return BW_REFUSE(test->at, "'%s' is for numbers, and %s is a text", symbol, subject->name);
    if ((test->comparison == BW_FILTER_LIKE || test->comparison == BW_FILTER_UNLIKE) && !text)
        return BW_REFUSE(test->at, "'%s' is for texts, and %s is a number", symbol, subject->name);
    return NULL;
}

static struct bw_error *check_range(const struct bw_filter_value *value,
                                    const struct subject *subject)
{
    bool with_sign = subject->member->type == BW_TYPE_I64;
    bool fits = !value->too_large &&
                (with_sign ? value->negative || value->number <= INT64_MAX : !value->negative);
    return fits ? NULL
                : BW_REFUSE(value->token.at, "%.*s does not fit %s: it goes from %s",
                            BW_FILTER_SHOWN(&value->token), subject->name,
                            with_sign ? "-9223372036854775808 to 9223372036854775807"
                                      : "0 to 18446744073709551615");
}

static struct bw_error *check_unit(const struct bw_filter_value *value,
                                   const struct subject *subject)
{
    enum bw_member_format format = subject->member->format;
    bool time = format == BW_FORMAT_DURATION || format == BW_FORMAT_TIME;
    bool size = format == BW_FORMAT_SIZE || format == BW_FORMAT_NUMBER;
    bool is_time = value->units == bw_time_units;
    if (!value->units || (is_time ? time : size))
        return NULL;
    return BW_REFUSE(value->token.at, "%.*s is a %s, and %s is none",
                     BW_FILTER_SHOWN(&value->token), is_time ? "time" : "size", subject->name);
}

static struct bw_error *check_value(const struct bw_filter_value *value,
                                    const struct subject *subject)
{
    const struct bw_token *token = &value->token;
    bool text = is_text(subject->member);
    if (value->is_number && text)
        return BW_REFUSE(token->at, "%s is a text, and %.*s is a number; in quotes it is a text",
                         subject->name, BW_FILTER_SHOWN(token));
    if (text)
        return NULL;
    if (!value->is_number)
        return BW_REFUSE(token->at, "%s is a number, and '%.*s' is %s", subject->name,
                         BW_FILTER_SHOWN(token),
                         token->kind == BW_TOKEN_QUOTED ? "a text" : "none");
    BW_TRY(check_unit(value, subject));
    return check_range(value, subject);
}

/* Members. */

static bool is_probe_name(const struct bw_token *name)
{
    return name->length == strlen(probe_name.name) &&
           memcmp(name->text, probe_name.name, name->length) == 0;
}

static void note_member(struct bw_filter *filter, const struct bw_probe *probe, int index)
{
    struct bw_attributes attributes = probe->record->attributes;
    enum bw_stability own = probe->record->members[index].stability;
    attributes =
        bw_attributes_least(attributes, (struct bw_attributes){own, own, attributes.depends});
    filter->attributes = bw_attributes_least(filter->attributes, attributes);
    filter->members[probe->number] |= UINT64_C(1) << index;
}

/* Finds what a test is about. */
static struct bw_error *find_member(struct bw_filter *filter, const struct bw_token *name,
                                    const struct bw_probe *probe, uint8_t *member)
{
    const struct bw_record *record = probe->record;
    if (is_probe_name(name)) {
        *member = BW_FILTER_PROBE_NAME;
        filter->attributes = bw_attributes_least(filter->attributes, probe->attributes);
        return NULL;
    }
    int index = bw_record_member(record, name->text, name->length);
    if (index < 0)
        return refuse_name(record, name);
    if (!(bw_probe_members(probe) >> index & 1))
        return bw_error_create(BW_ERROR_USAGE, "%s.%s has no translation from %s (probe %s)",
                               record->name, record->members[index].name, bw_probe_input(probe),
                               probe->name);
    *member = (uint8_t)index;
    note_member(filter, probe, index);
    return NULL;
}

static struct bw_error *type_test(struct bw_filter *filter, struct bw_filter_test *test,
                                  const struct bw_probe *probe)
{
    struct subject subject = {.member = &probe_name, .name = "probe"};
    uint8_t *member = &test->member[probe->number];
    BW_TRY(find_member(filter, &test->name, probe, member));
    if (*member != BW_FILTER_PROBE_NAME) {
        subject.member = &probe->record->members[*member];
        snprintf(subject.name, sizeof subject.name, "%s.%s", probe->record->name,
                 subject.member->name);
    }
    if (test->comparison == BW_FILTER_IS)
        return NULL;
    BW_TRY(check_operator(test, &subject));
    return check_value(&test->value, &subject);
}

struct bw_error *bw_filter_type(struct bw_filter *filter, const bool selected[BW_PROBES_MAX])
{
    unsigned count;
    const struct bw_probe *probes = bw_probe_table(&count);
    filter->attributes =
        (struct bw_attributes){BW_STABILITY_STANDARD, BW_STABILITY_STANDARD, BW_CLASS_COMMON};
    for (size_t i = 0; i < filter->count; i++)
        for (unsigned number = 0; number < count; number++)
            if (selected[number])
                BW_TRY(type_test(filter, &filter->tests[i], &probes[number]));
    memcpy(filter->typed, selected, sizeof filter->typed);
    return NULL;
}
