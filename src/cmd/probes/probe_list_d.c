/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --probe-list=d: the provider as DTrace would declare it. It documents arguments and stability in
 * a form that people who know DTrace can read; nothing is built from it.
 */
#include "cmd/probes/probe_list.h"

static const char begin[] =
    "/* SPDX-License-Identifier: GPL-2.0-or-later */\n"
    "/*\n"
    " * The provider btrfswalk in the language of DTrace, as documentation: nothing is built from "
    "this "
    "file.\n"
    " * Its records are structures of btrfs-walk/records.h (blockinfo_t is struct bw_blockinfo). "
    "Where a "
    "probe\n"
    " * has no translation for an argument, the argument is 0.\n"
    " *\n"
    " * Made by scripts/make-probe-files. Change src/probe/probes.def and src/record/records.def.\n"
    " */\n";

static const char *argument_type(const struct bw_member *member)
{
    return member->type == BW_TYPE_TEXT  ? "char *"
           : member->type == BW_TYPE_I64 ? "int64_t "
                                         : "uint64_t ";
}

static void append_probe(struct bw_buffer *text, const struct bw_probe *probe)
{
    bw_buffer_format(text, "\n    /* %s: %s */\n    probe %s(%s_t *record", probe->name,
                     probe->documentation, probe->usdt, probe->record->name);
    for (unsigned i = 1; i < CMD_PROBE_ARGUMENTS; i++) {
        const struct bw_member *member = cmd_probe_argument(probe, i);
        bw_buffer_format(text, ", %s%s", argument_type(member), member->name);
    }
    bw_buffer_format(text, ");\n");
}

static void append_pragma(struct bw_buffer *text, struct bw_attributes attributes, const char *part)
{
    bw_buffer_format(text, "#pragma D attributes ");
    cmd_append_attributes(text, attributes);
    bw_buffer_format(text, " provider btrfswalk %s\n", part);
}

/* DTrace has one triplet for the names and one for the arguments of all probes: the least of them.
 * The names of files and functions are nobody's business. */
static void append_pragmas(struct bw_buffer *text, const struct bw_probe *probes, unsigned count)
{
    static const struct bw_attributes hidden = {BW_STABILITY_PRIVATE, BW_STABILITY_PRIVATE,
                                                BW_CLASS_UNKNOWN};
    struct bw_attributes name = probes->attributes, arguments = name;
    for (unsigned i = 0; i < count; i++) {
        name = bw_attributes_least(name, probes[i].attributes);
        arguments = bw_attributes_least(arguments, probes[i].record->attributes);
    }
    append_pragma(text, name, "provider");
    append_pragma(text, hidden, "module");
    append_pragma(text, hidden, "function");
    append_pragma(text, name, "name");
    append_pragma(text, bw_attributes_least(name, arguments), "args");
}

void cmd_probe_list_d(struct bw_buffer *text)
{
    unsigned count;
    const struct bw_probe *probes = bw_probe_table(&count);
    bw_buffer_format(text, "%s\n", begin);
    for (const struct bw_record *const *record = bw_records(); *record; record++)
        if (cmd_record_has_probe(*record))
            bw_buffer_format(text, "typedef struct bw_%s %s_t; /* %s */\n", (*record)->name,
                             (*record)->name, (*record)->documentation);
    bw_buffer_format(text, "\nprovider btrfswalk {");
    for (unsigned i = 0; i < count; i++)
        append_probe(text, &probes[i]);
    bw_buffer_format(text, "};\n\n");
    append_pragmas(text, probes, count);
}
