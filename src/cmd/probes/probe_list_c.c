/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --probe-list=c and =bpftrace: the records as C structures. The first is the public header
 * btrfs-walk/records.h; the second is for bpftrace, which has no headers of its own, so it stands
 * alone.
 */
#include "cmd/graph/page.h"
#include "cmd/probes/probe_list.h"

static void append_comment(struct bw_buffer *text, size_t indent, const char *documentation)
{
    struct page_format wide = page_text;
    wide.width = 100;
    bw_buffer_format(text, "%*s/** ", (int)indent, "");
    page_append_words(text, &wide, documentation, strlen(documentation), indent + 4);
    bw_buffer_format(text, " */\n");
}

static const char *type_for_bpftrace(const struct bw_member *member)
{
    return member->type == BW_TYPE_U64   ? "unsigned long long"
           : member->type == BW_TYPE_I64 ? "long long"
                                         : cmd_member_c_type(member);
}

static void append_record(struct bw_buffer *text, const struct bw_record *record,
                          const char *(*type_of)(const struct bw_member *))
{
    struct bw_buffer documentation = {0};
    bw_buffer_format(&documentation, "Version %u, ", record->version);
    cmd_append_attributes(&documentation, record->attributes);
    bw_buffer_format(&documentation, ": %s.", record->documentation);
    bw_buffer_append_byte(&documentation, '\0');
    bw_buffer_append_byte(text, '\n');
    append_comment(text, 0, documentation.failed ? "" : documentation.data);
    text->failed |= documentation.failed;
    bw_buffer_free(&documentation);
    bw_buffer_format(text, "struct bw_%s {\n", record->name);
    for (unsigned i = 0; i < record->member_count; i++) {
        const struct bw_member *member = &record->members[i];
        const char *type = type_of(member);
        append_comment(text, 4, member->documentation);
        bw_buffer_format(text, "    %s%s%s;\n", type, type[strlen(type) - 1] == '*' ? "" : " ",
                         member->name);
    }
    bw_buffer_format(text, "};\n");
}

static const char c_begin[] =
    "/* SPDX-License-Identifier: GPL-2.0-or-later */\n"
    "/*\n"
    " * The records as structures: what a consumer of a probe gets (struct bw_probe_event), and "
    "what arg0 of "
    "a\n"
    " * USDT site points to. Members without a translation for a probe, and lazy ones that nobody "
    "selects, "
    "are\n"
    " * zero. Records only grow at their end; any other change raises their version.\n"
    " *\n"
    " * Made by scripts/make-probe-files. Change src/record/records.def.\n"
    " */\n"
    "#ifndef BTRFS_WALK_RECORDS_H\n"
    "#define BTRFS_WALK_RECORDS_H\n"
    "\n"
    "#include \"btrfs-walk/record.h\"\n"
    "\n"
    "#ifdef __cplusplus\n"
    "extern \"C\" {\n"
    "#endif\n";

static const char c_end[] = "\n"
                            "#ifdef __cplusplus\n"
                            "}\n"
                            "#endif\n"
                            "#endif\n";

void cmd_probe_list_c(struct bw_buffer *text)
{
    bw_buffer_format(text, "%s", c_begin);
    for (const struct bw_record *const *record = bw_records(); *record; record++)
        append_record(text, *record, cmd_member_c_type);
    bw_buffer_format(text, "%s", c_end);
}

static const char bpftrace_begin[] =
    "/* SPDX-License-Identifier: GPL-2.0-or-later */\n"
    "/*\n"
    " * The records of the probes, for scripts of bpftrace: arg0 of each probe points to one.\n"
    " *\n"
    " *     #include \"btrfs-walk.bt.h\"\n"
    " *     usdt:/usr/local/bin/btrfs-walk:btrfswalk:path__emit\n"
    " *     {\n"
    " *         $record = (struct bw_pathinfo *)arg0;\n"
    " *         printf(\"%r\\n\", buf($record->path.data, $record->path.length));\n"
    " *     }\n"
    " *\n"
    " * Made by scripts/make-probe-files. Change src/record/records.def.\n"
    " */\n"
    "\n"
    "/** Bytes that do not end with NUL. */\n"
    "struct bw_bytes {\n"
    "    const char *data;\n"
    "    unsigned long long length;\n"
    "};\n";

void cmd_probe_list_bpftrace(struct bw_buffer *text)
{
    bw_buffer_format(text, "%s", bpftrace_begin);
    for (const struct bw_record *const *record = bw_records(); *record; record++)
        if (cmd_record_has_probe(*record))
            append_record(text, *record, type_for_bpftrace);
}
