/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --probe-list=man: the probes and records of the manual page btrfs-walk-probes(7), in the macros
 * of man(7). scripts/make-manual writes what stands around them. */
#include "cmd/graph/page.h"
#include "cmd/probes/probe_list.h"

static void append_words(struct bw_buffer *text, const char *words)
{
    page_append_words(text, &page_man, words, strlen(words), 0);
}

static void append_line(struct bw_buffer *text, const char *before, const char *words)
{
    bw_buffer_format(text, "%s", before);
    append_words(text, words);
    bw_buffer_append_byte(text, '\n');
}

static void append_arguments(struct bw_buffer *text, const struct bw_probe *probe)
{
    bw_buffer_format(text, ".br\nrecord %s, keys", probe->record->name);
    for (unsigned i = 1; i < 3; i++)
        bw_buffer_format(text, "%s %s", i == 1 ? "" : " and", cmd_probe_argument(probe, i)->name);
    bw_buffer_format(text, "; ");
    cmd_append_attributes(text, cmd_probe_attributes(probe));
    bw_buffer_format(text, "%s\n", probe->coarse ? "; always recorded" : "");
}

static void append_member(struct bw_buffer *text, const struct bw_member *member)
{
    append_line(text, ".TP\n.B ", member->name);
    append_words(text, member->documentation);
    bw_buffer_format(text, " (%s%s)\n", cmd_member_format(member), member->lazy ? ", lazy" : "");
}

static void append_record(struct bw_buffer *text, const struct bw_record *record)
{
    append_line(text, ".SS ", record->name);
    append_words(text, record->documentation);
    bw_buffer_format(text, "; version %u, ", record->version);
    cmd_append_attributes(text, record->attributes);
    bw_buffer_append_byte(text, '\n');
    for (unsigned i = 0; i < record->member_count; i++)
        append_member(text, &record->members[i]);
}

void cmd_probe_list_man(struct bw_buffer *text)
{
    unsigned count;
    const struct bw_probe *probes = bw_probe_table(&count);
    bw_buffer_format(text, ".SH PROBES\n");
    for (unsigned i = 0; i < count; i++) {
        append_line(text, ".TP\n.B ", probes[i].name);
        append_line(text, "", probes[i].documentation);
        append_arguments(text, &probes[i]);
    }
    bw_buffer_format(text, ".SH RECORDS\n");
    for (const struct bw_record *const *record = bw_records(); *record; record++)
        append_record(text, *record);
}
