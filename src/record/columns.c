/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists of columns: the names of members, with commas between. */
#include "record/columns.h"

#include <string.h>

static struct bw_error *add(const struct bw_record *record, const char *name, size_t length,
                            uint64_t *known, struct bw_member_list *list)
{
    int member = bw_record_member(record, name, length);
    if (!length)
        return bw_error_create(BW_ERROR_USAGE, "the name of a column is empty");
    if (member < 0)
        return bw_error_create(BW_ERROR_USAGE, "unknown column %.*s", (int)length, name);
    if (*known >> member & 1)
        return bw_error_create(BW_ERROR_USAGE, "column %.*s is named twice", (int)length, name);
    *known |= UINT64_C(1) << member;
    list->members[list->count++] = (unsigned char)member;
    return NULL;
}

static void add_eager(const struct bw_record *record, struct bw_member_list *list)
{
    uint64_t eager = bw_record_eager(record);
    for (unsigned i = 0; i < record->member_count; i++)
        if (eager >> i & 1)
            list->members[list->count++] = (unsigned char)i;
}

struct bw_error *bw_columns_parse(const struct bw_record *record, const char *names,
                                  struct bw_member_list *list)
{
    uint64_t known = 0;
    list->count = 0;
    if (!names) {
        add_eager(record, list);
        return NULL;
    }
    for (const char *name = names;; name++) {
        size_t length = strcspn(name, ",");
        struct bw_error *error = add(record, name, length, &known, list);
        name += length;
        if (error || !*name)
            return error;
    }
}
