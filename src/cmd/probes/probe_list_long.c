/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --probe-list=long: all that there is to know of each probe, for a terminal. */
#include "cmd/graph/page.h"
#include "cmd/probes/probe_list.h"

/* A member without a translation is an argument all the same: 0. */
static void append_arguments(struct bw_buffer *text, const struct bw_probe *probe)
{
    bw_buffer_format(text, "    arguments  arg0 struct bw_%s *", probe->record->name);
    for (unsigned i = 1; i < CMD_PROBE_ARGUMENTS; i++) {
        const struct bw_member *member = cmd_probe_argument(probe, i);
        bw_buffer_format(text, ", arg%u %s%s", i, member->name,
                         cmd_probe_translates(probe, member) ? "" : " (0)");
    }
    bw_buffer_append_byte(text, '\n');
}

static void append_member(struct bw_buffer *text, const struct bw_probe *probe,
                          const struct bw_member *member)
{
    enum { INDENT = 58 };
    const char *there = !cmd_probe_translates(probe, member) ? "no"
                        : member->lazy                       ? "if wanted"
                                                             : "yes";
    bw_buffer_format(text, "      %-13s  %-5s  %-8s  %-9s  %-8s  ", member->name,
                     cmd_member_type(member), cmd_member_format(member), there,
                     bw_stability_name(member->stability));
    struct page_format wide = page_text;
    wide.width = 110;
    page_append_words(text, &wide, member->documentation, strlen(member->documentation), INDENT);
    bw_buffer_append_byte(text, '\n');
}

static void append_probe(struct bw_buffer *text, const struct bw_probe *probe)
{
    bw_buffer_format(text, "%s: ", probe->name);
    page_append_words(text, &page_text, probe->documentation, strlen(probe->documentation), 4);
    bw_buffer_format(text, "\n    USDT       btrfswalk:%s\n    record     %s, version %u: %s\n",
                     probe->usdt, probe->record->name, probe->record->version,
                     probe->record->documentation);
    append_arguments(text, probe);
    bw_buffer_format(text, "    stability  ");
    cmd_append_attributes(text, cmd_probe_attributes(probe));
    bw_buffer_format(text, "\n    recorded   %s\n", probe->coarse ? "always" : "if selected");
    bw_buffer_format(text, "      %-13s  %-5s  %-8s  %-9s  %-8s  %s\n", "member", "type",
                     "shown as", "there", "stable", "what it is");
    for (unsigned i = 0; i < probe->record->member_count; i++)
        append_member(text, probe, &probe->record->members[i]);
}

void cmd_probe_list_long(struct bw_buffer *text)
{
    unsigned count;
    const struct bw_probe *probes = bw_probe_table(&count);
    for (unsigned i = 0; i < count; i++) {
        bw_buffer_format(text, "%s", i ? "\n" : "");
        append_probe(text, &probes[i]);
    }
}
