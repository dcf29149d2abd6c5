/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compares the public structures of records with the tables, which describe the private ones, and
 * tests rules for all records and probes. record_types.h is not included here: each structure is
 * that of btrfs-walk/records.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "btrfs-walk/probe.h"
#include "btrfs-walk/records.h"

/* A member as the public header has it. */
struct public_member {
    const char *record, *name;
    size_t record_size, offset, size;
    enum bw_member_type type;
};

#define TYPE_OF(value) \
    _Generic((value),                                       \
        uint64_t: BW_TYPE_U64,                              \
        int64_t: BW_TYPE_I64,                               \
        const char *: BW_TYPE_TEXT,                         \
        struct bw_bytes: BW_TYPE_BYTES,                     \
        struct bw_stripes: BW_TYPE_STRIPES,                 \
        struct bw_names: BW_TYPE_NAMES,                     \
        struct bw_records: BW_TYPE_RECORDS,                 \
        struct bw_key: BW_TYPE_KEY,                         \
        struct bw_json_value: BW_TYPE_JSON)

/* records.def has no types here; they come from the header. */
static const struct public_member public_members[] = {
#define inline inline_ /* as in record_types.h */
#define MEMBER_AS(record, name, type, format, laziness, stability, documentation) \
    {#record,                                                                     \
     #name,                                                                       \
     sizeof(struct bw_##record),                                                  \
     offsetof(struct bw_##record, name),                                          \
     sizeof((struct bw_##record *)0)->name,                                       \
     TYPE_OF(((struct bw_##record *)0)->name)},
#include "record/records.def"
#undef inline
};

enum { PUBLIC_MEMBERS = sizeof public_members / sizeof *public_members };

static size_t type_size(enum bw_member_type type)
{
    return type == BW_TYPE_TEXT    ? sizeof(char *)
           : type == BW_TYPE_KEY   ? sizeof(struct bw_key)
           : type >= BW_TYPE_BYTES ? sizeof(struct bw_bytes)
                                   : 8;
}

static void test_header(void **state)
{
    size_t i = 0;
    for (const struct bw_record *const *record = bw_records(); *record; record++)
        for (unsigned n = 0; !bw_record_is_on_disk(*record) && n < (*record)->member_count;
             n++, i++) {
            const struct bw_member *member = &(*record)->members[n];
            assert_true(i < PUBLIC_MEMBERS);
            assert_string_equal(public_members[i].record, (*record)->name);
            assert_string_equal(public_members[i].name, member->name);
            assert_int_equal(public_members[i].record_size, (*record)->size);
            assert_int_equal(public_members[i].offset, member->offset);
            assert_int_equal(public_members[i].type,
                             member->type == BW_TYPE_RECORD ? BW_TYPE_RECORDS : member->type);
            assert_true((member->type == BW_TYPE_RECORD || member->type == BW_TYPE_RECORDS) ==
                        (bw_record_element(*record, n) != NULL));
            assert_int_equal(public_members[i].size, type_size(member->type));
        }
    assert_int_equal(i, PUBLIC_MEMBERS);
}

static size_t type_alignment(enum bw_member_type type)
{
    return type == BW_TYPE_TEXT    ? _Alignof(char *)
           : type == BW_TYPE_KEY   ? _Alignof(struct bw_key)
           : type >= BW_TYPE_BYTES ? _Alignof(struct bw_bytes)
                                   : _Alignof(uint64_t);
}

static size_t aligned(size_t offset, size_t alignment)
{
    return (offset + alignment - 1) / alignment * alignment;
}

/* Members do not overlap, end within the structure, and leave no gaps except for the alignment of
 * numbers on 32-bit Arm. */
static void test_layout(void **state)
{
    for (const struct bw_record *const *record = bw_records(); *record; record++) {
        size_t end = 0, largest = 1;
        if (bw_record_is_on_disk(*record))
            continue;
        for (unsigned i = 0; i < (*record)->member_count; i++) {
            const enum bw_member_type type = (*record)->members[i].type;
            end = aligned(end, type_alignment(type));
            assert_int_equal((*record)->members[i].offset, end);
            end += type_size(type);
            largest = type_alignment(type) > largest ? type_alignment(type) : largest;
        }
        assert_int_equal((*record)->size, aligned(end, largest));
    }
}

static void expect_phrase(const char *documentation)
{
    assert_non_null(documentation);
    assert_true(strlen(documentation) > 3);
    assert_true(documentation[strlen(documentation) - 1] != '.');
    assert_null(strstr(documentation, "*/"));
}

static void test_records(void **state)
{
    for (const struct bw_record *const *record = bw_records(); *record; record++) {
        assert_true((*record)->version >= 1);
        assert_ptr_equal(bw_record_find((*record)->name), *record);
        assert_true((*record)->member_count >= 1 && (*record)->member_count <= BW_RECORD_MEMBERS);
        expect_phrase((*record)->documentation);
        for (unsigned i = 0; i < (*record)->member_count; i++) {
            const struct bw_member *member = &(*record)->members[i];
            assert_int_equal(bw_record_member(*record, member->name, strlen(member->name)), i);
            assert_true(strlen(member->documentation) > 3);
            assert_null(strstr(member->documentation, "*/"));
        }
    }
    assert_null(bw_record_find("nothinginfo"));
    assert_int_equal(bw_record_member(*bw_records(), "", 0), -1);
}

/* "block__read__done" for "block-read-done". */
static void expect_same_name(const struct bw_probe *probe)
{
    const char *usdt = probe->usdt;
    for (const char *name = probe->name; *name; name++, usdt++) {
        if (*name == '-')
            assert_int_equal(*usdt++, '_');
        assert_int_equal(*usdt, *name == '-' ? '_' : *name);
    }
    assert_int_equal(*usdt, '\0');
}

static void expect_member(const struct bw_record *record, const char *name,
                          enum bw_member_type type)
{
    int number = bw_record_member(record, name, strlen(name));
    assert_true(number >= 0);
    assert_int_equal(record->members[number].type, type);
}

static void test_probes(void **state)
{
    unsigned count;
    const struct bw_probe *probes = bw_probe_table(&count);
    assert_true(count > 0 && count <= BW_PROBES_MAX);
    for (unsigned i = 0; i < count; i++) {
        const struct bw_probe *probe = &probes[i];
        uint64_t members = bw_probe_members(probe);
        assert_int_equal(probe->number, i);
        expect_same_name(probe);
        expect_phrase(probe->documentation);
        assert_ptr_equal(bw_record_find(probe->record->name), probe->record);
        /* The keys exist, and none of them is a pointer to bytes. */
        assert_true(members >> probe->primary & 1 && members >> probe->secondary & 1);
        assert_int_not_equal(probe->record->members[probe->primary].type, BW_TYPE_BYTES);
        assert_int_not_equal(probe->record->members[probe->secondary].type, BW_TYPE_BYTES);
        assert_true(probe->record->member_count == 64 ||
                    members >> probe->record->member_count == 0);
        expect_member(probe->record, "error", BW_TYPE_I64);
        expect_member(probe->record, "ns", BW_TYPE_U64);
        expect_member(probe->record, "call", BW_TYPE_U64);
        for (unsigned other = 0; other < i; other++)
            assert_string_not_equal(probes[other].name, probe->name);
    }
}

static void test_stability(void **state)
{
    const struct bw_attributes a = {BW_STABILITY_STABLE, BW_STABILITY_PRIVATE, BW_CLASS_COMMON};
    const struct bw_attributes b = {BW_STABILITY_EVOLVING, BW_STABILITY_STANDARD, BW_CLASS_ISA};
    const struct bw_attributes least = bw_attributes_least(a, b);
    assert_string_equal(bw_stability_name(least.name), "Evolving");
    assert_string_equal(bw_stability_name(least.data), "Private");
    assert_string_equal(bw_dependency_name(least.depends), "ISA");
}
