/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --probe-list=markdown: the tables of docs/probes/README.md. */
#include "cmd/graph/page.h"
#include "cmd/probes/probe_list.h"

static void append_cell(struct bw_buffer *text, const char *words)
{
    struct page_format endless = page_markdown;
    endless.width = SIZE_MAX;
    page_append_words(text, &endless, words, strlen(words), 0);
}

static void append_probe(struct bw_buffer *text, const struct bw_probe *probe)
{
    bw_buffer_format(text, "| `%s` | `%s` | [%s](#%s) | %s | %s | %s | ", probe->name, probe->usdt,
                     probe->record->name, probe->record->name, cmd_probe_argument(probe, 1)->name,
                     cmd_probe_argument(probe, 2)->name, probe->coarse ? "yes" : "");
    cmd_append_attributes(text, cmd_probe_attributes(probe));
    bw_buffer_format(text, " | ");
    append_cell(text, probe->documentation);
    bw_buffer_format(text, " |\n");
}

/* The probes of a member's record that have no translation for it. */
static void append_missing(struct bw_buffer *text, const struct bw_record *record,
                           const struct bw_member *member)
{
    unsigned count;
    const char *separator = "";
    const struct bw_probe *probes = bw_probe_table(&count);
    for (unsigned i = 0; i < count; i++)
        if (probes[i].record == record && !cmd_probe_translates(&probes[i], member)) {
            bw_buffer_format(text, "%s%s", separator, probes[i].name);
            separator = ", ";
        }
}

static void append_record(struct bw_buffer *text, const struct bw_record *record)
{
    bool probed = cmd_record_has_probe(record);
    bw_buffer_format(text, "\n### %s\n\n", record->name);
    append_cell(text, record->documentation);
    bw_buffer_format(text, "; version %u, ", record->version);
    cmd_append_attributes(text, record->attributes);
    bw_buffer_format(text, ".\n\n| member | type | shown as | lazy | stability | %swhat it is |\n",
                     probed ? "not with | " : "");
    bw_buffer_format(text, "| --- | --- | --- | --- | --- | --- |%s\n", probed ? " --- |" : "");
    for (unsigned i = 0; i < record->member_count; i++) {
        const struct bw_member *member = &record->members[i];
        bw_buffer_format(text, "| `%s` | %s | %s | %s | %s | ", member->name,
                         cmd_member_type(member), cmd_member_format(member),
                         member->lazy ? "yes" : "", bw_stability_name(member->stability));
        if (probed) {
            append_missing(text, record, member);
            bw_buffer_format(text, " | ");
        }
        append_cell(text, member->documentation);
        bw_buffer_format(text, " |\n");
    }
}

void cmd_probe_list_markdown(struct bw_buffer *text)
{
    unsigned count;
    const struct bw_probe *probes = bw_probe_table(&count);
    bw_buffer_format(
        text, "## Probes\n\n"
              "| probe | USDT | record | arg1 | arg2 | always recorded | stability | when |\n"
              "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (unsigned i = 0; i < count; i++)
        append_probe(text, &probes[i]);
    bw_buffer_format(text, "\n## Records\n");
    for (const struct bw_record *const *record = bw_records(); *record; record++)
        append_record(text, *record);
}
