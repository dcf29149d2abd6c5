/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --probe-list: choosing the style, and what all styles have in common. */
#include "cmd/probes/probe_list.h"

#include "cmd/command.h"

static void names(struct bw_buffer *text)
{
    unsigned count;
    const struct bw_probe *probes = bw_probe_table(&count);
    for (unsigned i = 0; i < count; i++)
        bw_buffer_format(text, "%s\n", probes[i].name);
}

static const struct {
    const char *name;
    void (*append)(struct bw_buffer *text);
} styles[] = {
    {"", names},
    {"long", cmd_probe_list_long},
    {"json", cmd_probe_list_json},
    {"bpftrace", cmd_probe_list_bpftrace},
    {"c", cmd_probe_list_c},
    {"d", cmd_probe_list_d},
    {"markdown", cmd_probe_list_markdown},
    {"man", cmd_probe_list_man},
    {"offsets", cmd_probe_list_offsets},
};

enum { STYLES = sizeof styles / sizeof *styles };

const struct bw_member *cmd_probe_argument(const struct bw_probe *probe, unsigned number)
{
    static const char *const common[] = {[3] = "error", [4] = "ns", [5] = "call"};
    const struct bw_record *record = probe->record;
    if (number < 3)
        return &record->members[number == 1 ? probe->primary : probe->secondary];
    return &record->members[bw_record_member(record, common[number], strlen(common[number]))];
}

bool cmd_probe_translates(const struct bw_probe *probe, const struct bw_member *member)
{
    return bw_probe_members(probe) >> (member - probe->record->members) & 1;
}

bool cmd_record_has_probe(const struct bw_record *record)
{
    unsigned count;
    const struct bw_probe *probes = bw_probe_table(&count);
    for (unsigned i = 0; i < count; i++)
        if (probes[i].record == record)
            return true;
    return false;
}

struct bw_attributes cmd_probe_attributes(const struct bw_probe *probe)
{
    return bw_attributes_least(probe->attributes, probe->record->attributes);
}

static const struct {
    const char *name, *c_type;
    size_t size;
} types[] = {
    [BW_TYPE_U64] = {"u64", "uint64_t", sizeof(uint64_t)},
    [BW_TYPE_I64] = {"i64", "int64_t", sizeof(int64_t)},
    [BW_TYPE_TEXT] = {"text", "const char *", sizeof(const char *)},
    [BW_TYPE_BYTES] = {"bytes", "struct bw_bytes", sizeof(struct bw_bytes)},
};

const char *cmd_member_type(const struct bw_member *member)
{
    return types[member->type].name;
}

const char *cmd_member_c_type(const struct bw_member *member)
{
    return types[member->type].c_type;
}

size_t cmd_member_size(const struct bw_member *member)
{
    return types[member->type].size;
}

const char *cmd_member_format(const struct bw_member *member)
{
    static const char *const formats[] = {
        [BW_FORMAT_NUMBER] = "number", [BW_FORMAT_SIZE] = "size", [BW_FORMAT_OCTAL] = "octal",
        [BW_FORMAT_HEX] = "hex",       [BW_FORMAT_TIME] = "time", [BW_FORMAT_DURATION] = "duration",
        [BW_FORMAT_TEXT] = "text",     [BW_FORMAT_NAME] = "name", [BW_FORMAT_BASE64] = "base64",
        [BW_FORMAT_UUID] = "uuid",
    };
    return formats[member->format];
}

void cmd_append_attributes(struct bw_buffer *text, struct bw_attributes attributes)
{
    bw_buffer_format(text, "%s/%s/%s", bw_stability_name(attributes.name),
                     bw_stability_name(attributes.data), bw_dependency_name(attributes.depends));
}

void cmd_probe_list_offsets(struct bw_buffer *text)
{
    for (const struct bw_record *const *record = bw_records(); *record; record++)
        for (unsigned i = 0; i < (*record)->member_count; i++) {
            const struct bw_member *member = &(*record)->members[i];
            bw_buffer_format(text, "%s %s %zu %s\n", (*record)->name, member->name, member->offset,
                             cmd_member_type(member));
        }
}

static int unknown(const char *style)
{
    struct bw_buffer names_of_styles = {0};
    for (size_t i = 1; i < STYLES; i++)
        bw_buffer_format(&names_of_styles, "%s%s", i > 1 ? ", " : "", styles[i].name);
    struct bw_error *error = bw_error_create(
        BW_ERROR_USAGE, "--probe-list has no style '%s'; it has %.*s", style,
        (int)names_of_styles.length, names_of_styles.length ? names_of_styles.data : "");
    bw_buffer_free(&names_of_styles);
    return cmd_fail(NULL, error);
}

int cmd_probe_list(const char *style)
{
    size_t chosen = 0;
    while (chosen < STYLES && strcmp(styles[chosen].name, style ? style : "") != 0)
        chosen++;
    if (chosen == STYLES)
        return unknown(style);
    struct bw_buffer text = {0};
    struct cmd_output output = {.at_once = true};
    styles[chosen].append(&text);
    struct bw_error *error =
        text.failed ? bw_error_no_memory() : cmd_write(&output, text.data, text.length);
    bw_buffer_free(&text);
    bw_error_free(cmd_flush(&output)); /* nothing was gathered */
    if (!error)
        return STATUS_OK;
    cmd_fail(NULL, error);
    return STATUS_PARTIAL;
}
