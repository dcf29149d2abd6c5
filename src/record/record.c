/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables of the records, made from records.def, and looking things up in them. */
#include "record/record_types.h"

#include <string.h>

#include "base/compare.h"
#include "ondisk/tables.h"

#define inline inline_ /* as in record_types.h; names in strings stay */
enum { MEMBER_EAGER = false, MEMBER_LAZY = true };

/* The formats in records.def. Flags name the table of their bits. */
#define FORMAT_NUMBER             .format = BW_FORMAT_NUMBER
#define FORMAT_SIZE               .format = BW_FORMAT_SIZE
#define FORMAT_OCTAL              .format = BW_FORMAT_OCTAL
#define FORMAT_TIME               .format = BW_FORMAT_TIME
#define FORMAT_DURATION           .format = BW_FORMAT_DURATION
#define FORMAT_TEXT               .format = BW_FORMAT_TEXT
#define FORMAT_HEX                .format = BW_FORMAT_HEX
#define FORMAT_LIST               .format = BW_FORMAT_LIST
#define FORMAT_NAME               .format = BW_FORMAT_NAME
#define FORMAT_BASE64             .format = BW_FORMAT_BASE64
#define FORMAT_UUID               .format = BW_FORMAT_UUID
#define FORMAT_BOOL               .format = BW_FORMAT_BOOL
#define FORMAT_WORD               .format = BW_FORMAT_WORD
#define FLAGS(names)              .format = BW_FORMAT_FLAGS, .values = &(names)
#define FORMAT_GROUP_FLAGS        FLAGS(bw_group_flags)
#define FORMAT_INODE_FLAGS        FLAGS(bw_inode_flags)
#define FORMAT_SUBVOLUME_FLAGS    FLAGS(bw_root_flags)
#define FORMAT_INCOMPAT_FLAGS     FLAGS(bw_incompat_flags)
#define FORMAT_COMPAT_RO_FLAGS    FLAGS(bw_compat_ro_flags)
#define FORMAT_QGROUP_FLAGS       FLAGS(bw_qgroup_flags)
#define FORMAT_QGROUP_LIMIT_FLAGS FLAGS(bw_qgroup_limit_flags)

#define RECORD(name, version, name_stability, data_stability, depends, documentation) \
    static const struct bw_member name##_members[] = {
#define MEMBER_AS(record, member, type_, format, laziness, stability_, documentation_) \
    {.name = #member,                                                                  \
     .type = BW_TYPE_##type_,                                                          \
     FORMAT_##format,                                                                  \
     .offset = offsetof(struct bw_##record, member),                                   \
     .lazy = MEMBER_##laziness,                                                        \
     .stability = BW_STABILITY_##stability_,                                           \
     .documentation = documentation_},
#define END_RECORD(name) \
    }                    \
    ;
#include "record/records.def"
#undef inline

#define RECORD(name, version, name_stability, data_stability, depends, documentation)       \
    const struct bw_record bw_##name##_record = {                                           \
        #name,                                                                              \
        documentation,                                                                      \
        version,                                                                            \
        {BW_STABILITY_##name_stability, BW_STABILITY_##data_stability, BW_CLASS_##depends}, \
        sizeof(struct bw_##name),                                                           \
        name##_members,                                                                     \
        BW_##name##_MEMBERS};                                                               \
    _Static_assert((int)BW_##name##_MEMBERS <= (int)BW_RECORD_MEMBERS,                      \
                   "too many members for a mask");
#include "record/records.def"

static const struct bw_record *const records[] = {
#define RECORD(name, version, name_stability, data_stability, depends, documentation) \
    &bw_##name##_record,
#include "record/records.def"
    &bw_structure_superblockinfo.record,
    NULL,
};

const struct bw_record *const *bw_records(void)
{
    return records;
}

const struct bw_record *bw_record_find(const char *name)
{
    for (size_t i = 0; records[i]; i++)
        if (strcmp(records[i]->name, name) == 0)
            return records[i];
    return NULL;
}

/* The records of members that contain records. */
static const struct {
    const struct bw_record *record, *element;
    unsigned member;
} elements[] = {
#define ELEMENT(record, member, element) \
    {&bw_##record##_record, &bw_##element##_record, BW_##record##_##member},
#include "record/records.def"
};

const struct bw_record *bw_record_element(const struct bw_record *record, unsigned member)
{
    const struct bw_field *field = record->members[member].field;
    if (field)
        return field->structure ? &field->structure->record : NULL;
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
        if (elements[i].record == record && elements[i].member == member)
            return elements[i].element;
    return NULL;
}

bool bw_record_is_on_disk(const struct bw_record *record)
{
    return record->members[record->member_count - 1].field;
}

void bw_record_clear(const struct bw_record *record, void *members)
{
    const uint64_t absent = BW_ABSENT;
    memset(members, 0, record->size);
    for (unsigned i = 0; i < record->member_count; i++) {
        const struct bw_member *member = &record->members[i];
        if (member->type <= BW_TYPE_I64 || member->type == BW_TYPE_KEY)
            memcpy((char *)members + member->offset, &absent, sizeof absent);
    }
}

int bw_record_member(const struct bw_record *record, const char *name, size_t length)
{
    for (unsigned i = 0; i < record->member_count; i++)
        if (strlen(record->members[i].name) == length &&
            memcmp(record->members[i].name, name, length) == 0)
            return (int)i;
    return -1;
}

uint64_t bw_record_eager(const struct bw_record *record)
{
    uint64_t members = 0;
    for (unsigned i = 0; i < record->member_count; i++)
        members |= (uint64_t)!record->members[i].lazy << i;
    return members;
}

const char *bw_stability_name(enum bw_stability stability)
{
    static const char *const names[] = {
        [BW_STABILITY_INTERNAL] = "Internal", [BW_STABILITY_PRIVATE] = "Private",
        [BW_STABILITY_OBSOLETE] = "Obsolete", [BW_STABILITY_EXTERNAL] = "External",
        [BW_STABILITY_UNSTABLE] = "Unstable", [BW_STABILITY_EVOLVING] = "Evolving",
        [BW_STABILITY_STABLE] = "Stable",     [BW_STABILITY_STANDARD] = "Standard",
    };
    return names[stability];
}

const char *bw_dependency_name(enum bw_dependency dependency)
{
    static const char *const names[] = {
        [BW_CLASS_UNKNOWN] = "Unknown", [BW_CLASS_CPU] = "CPU", [BW_CLASS_PLATFORM] = "Platform",
        [BW_CLASS_GROUP] = "Group",     [BW_CLASS_ISA] = "ISA", [BW_CLASS_COMMON] = "Common",
    };
    return names[dependency];
}

struct bw_attributes bw_attributes_least(struct bw_attributes a, struct bw_attributes b)
{
    return (struct bw_attributes){
        .name = (enum bw_stability)bw_min(a.name, b.name),
        .data = (enum bw_stability)bw_min(a.data, b.data),
        .depends = (enum bw_dependency)bw_min(a.depends, b.depends),
    };
}
