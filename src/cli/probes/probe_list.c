/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --probe-list: the names of the probes; all facts about them (long); the same as a JSON document;
 * and the records as structures for bpftrace.
 */
#include "cli/probes/probes.h"

#include <string.h>

#include "base/json.h"
#include "cli/command.h"
#include "cli/graph/page.h"

/* Number of arguments of a USDT site; the first is the record. */
enum { ARGUMENTS = 6 };

static const struct {
    const char *name, *c_type;
    size_t size;
} types[] = {
    [BW_TYPE_U64] = {"u64", "unsigned long long ", sizeof(uint64_t)},
    [BW_TYPE_I64] = {"i64", "long long ", sizeof(int64_t)},
    [BW_TYPE_TEXT] = {"text", "const char *", sizeof(const char *)},
    [BW_TYPE_BYTES] = {"bytes", "struct bw_bytes ", sizeof(struct bw_bytes)},
    [BW_TYPE_STRIPES] = {"stripes", "struct bw_stripes ", sizeof(struct bw_stripes)},
    [BW_TYPE_NAMES] = {"names", "struct bw_names ", sizeof(struct bw_names)},
    [BW_TYPE_RECORD] = {"record", "struct bw_records ", sizeof(struct bw_records)},
    [BW_TYPE_RECORDS] = {"records", "struct bw_records ", sizeof(struct bw_records)},
    [BW_TYPE_KEY] = {"key", "struct bw_key ", sizeof(struct bw_key)},
    [BW_TYPE_JSON] = {"json", "struct bw_json_value ", sizeof(struct bw_json_value)},
};

static const char *const formats[] = {
    [BW_FORMAT_NUMBER] = "number", [BW_FORMAT_SIZE] = "size",   [BW_FORMAT_OCTAL] = "octal",
    [BW_FORMAT_HEX] = "hex",       [BW_FORMAT_TIME] = "time",   [BW_FORMAT_DURATION] = "duration",
    [BW_FORMAT_TEXT] = "text",     [BW_FORMAT_LIST] = "list",   [BW_FORMAT_NAME] = "name",
    [BW_FORMAT_BASE64] = "base64", [BW_FORMAT_UUID] = "uuid",   [BW_FORMAT_BOOL] = "bool",
    [BW_FORMAT_WORD] = "word",     [BW_FORMAT_FLAGS] = "flags",
};

/* The member that is passed as argument `number`, from 1 on. */
static const struct bw_member *argument_member(const struct bw_probe *probe, unsigned number)
{
    static const char *const common[ARGUMENTS - 3] = {"error", "ns", "call"};
    const struct bw_record *record = probe->record;
    if (number < 3)
        return &record->members[number == 1 ? probe->primary : probe->secondary];
    const char *name = common[number - 3];
    return &record->members[bw_record_member(record, name, strlen(name))];
}

static bool fills_member(const struct bw_probe *probe, const struct bw_member *member)
{
    return bw_probe_members(probe) >> (member - probe->record->members) & 1;
}

/* "Evolving/Evolving/Common" */
static void append_attributes(struct bw_buffer *text, struct bw_attributes attributes)
{
    bw_buffer_format(text, "%s/%s/%s", bw_stability_name(attributes.name),
                     bw_stability_name(attributes.data), bw_dependency_name(attributes.depends));
}

/* A probe is only as stable as the less stable of itself and its record. */
static struct bw_attributes attributes_of(const struct bw_probe *probe)
{
    return bw_attributes_least(probe->attributes, probe->record->attributes);
}

static void append_names(struct bw_buffer *text)
{
    unsigned count;
    const struct bw_probe *probes = bw_probe_table(&count);
    for (unsigned i = 0; i < count; i++)
        bw_buffer_format(text, "%s\n", probes[i].name);
}

static void append_long(struct bw_buffer *text)
{
    enum { INDENT = 58, WIDTH = 110 };
    unsigned count;
    const struct bw_probe *probes = bw_probe_table(&count);
    for (unsigned i = 0; i < count; i++) {
        const struct bw_probe *probe = &probes[i];
        const struct bw_record *record = probe->record;
        bw_buffer_format(text, "%s%s: ", i ? "\n" : "", probe->name);
        page_append_words(text, probe->documentation, strlen(probe->documentation), 4, 80);
        bw_buffer_format(text, "\n    USDT       btrfswalk:%s\n    record     %s, version %u: %s\n",
                         probe->usdt, record->name, record->version, record->documentation);

        /* Members that the probe does not fill are passed as 0. */
        bw_buffer_format(text, "    arguments  arg0 struct bw_%s *", record->name);
        for (unsigned k = 1; k < ARGUMENTS; k++) {
            const struct bw_member *member = argument_member(probe, k);
            bw_buffer_format(text, ", arg%u %s%s", k, member->name,
                             fills_member(probe, member) ? "" : " (0)");
        }
        bw_buffer_format(text, "\n    stability  ");
        append_attributes(text, attributes_of(probe));
        bw_buffer_format(text, "\n    recorded   %s\n", probe->coarse ? "always" : "if selected");

        bw_buffer_format(text, "      %-13s  %-5s  %-8s  %-9s  %-8s  %s\n", "member", "type",
                         "shown as", "there", "stable", "what it is");
        for (unsigned k = 0; k < record->member_count; k++) {
            const struct bw_member *member = &record->members[k];
            const char *there = member->lazy ? "if wanted" : "yes";
            if (!fills_member(probe, member))
                there = "no";
            bw_buffer_format(text, "      %-13s  %-5s  %-8s  %-9s  %-8s  ", member->name,
                             types[member->type].name, formats[member->format], there,
                             bw_stability_name(member->stability));
            page_append_words(text, member->documentation, strlen(member->documentation), INDENT,
                              WIDTH);
            bw_buffer_append_byte(text, '\n');
        }
    }
}

static void add_attributes(struct bw_json *json, struct bw_attributes attributes)
{
    BW_AUTO_BUFFER struct bw_buffer triplet = {0};
    append_attributes(&triplet, attributes);
    bw_json_bytes(json, "stability", triplet.data ? triplet.data : "", triplet.length);
    json->buffer->failed |= triplet.failed;
}

void cmd_probe_list_add(struct bw_json *json)
{
    unsigned count;
    const struct bw_probe *probes = bw_probe_table(&count);
    bw_json_text(json, "provider", "btrfswalk");
    bw_json_number(json, "schema", BW_RECORD_SCHEMA);
    bw_json_begin_array(json, "probes");
    for (unsigned i = 0; i < count; i++) {
        const struct bw_probe *probe = &probes[i];
        const struct bw_record *record = probe->record;
        bw_json_begin_object(json, NULL);
        bw_json_text(json, "name", probe->name);
        bw_json_text(json, "usdt", probe->usdt);
        bw_json_text(json, "documentation", probe->documentation);
        bw_json_text(json, "record", record->name);
        bw_json_text(json, "translator", bw_probe_input(probe));
        bw_json_bool(json, "coarse", probe->coarse);
        add_attributes(json, attributes_of(probe));
        bw_json_begin_array(json, "arguments");
        bw_json_text(json, NULL, "record");
        for (unsigned k = 1; k < ARGUMENTS; k++)
            bw_json_text(json, NULL, argument_member(probe, k)->name);
        bw_json_end(json);
        bw_json_begin_array(json, "translated");
        for (unsigned k = 0; k < record->member_count; k++)
            if (fills_member(probe, &record->members[k]))
                bw_json_text(json, NULL, record->members[k].name);
        bw_json_end(json);
        bw_json_end(json);
    }
    bw_json_end(json);
    bw_json_begin_array(json, "records");
    for (const struct bw_record *const *at = bw_records(); *at; at++) {
        const struct bw_record *record = *at;
        bw_json_begin_object(json, NULL);
        bw_json_text(json, "name", record->name);
        bw_json_number(json, "version", record->version);
        bw_json_text(json, "documentation", record->documentation);
        bw_json_number(json, "size", record->size);
        bw_json_bool(json, "on_disk", bw_record_is_on_disk(record));
        add_attributes(json, record->attributes);
        bw_json_begin_array(json, "members");
        for (unsigned i = 0; i < record->member_count; i++) {
            const struct bw_member *member = &record->members[i];
            const struct bw_record *element = bw_record_element(record, i);
            bw_json_begin_object(json, NULL);
            bw_json_text(json, "name", member->name);
            bw_json_text(json, "type", types[member->type].name);
            bw_json_text(json, "format", formats[member->format]);
            bw_json_number(json, "offset", member->offset);
            bw_json_number(json, "size", types[member->type].size);
            bw_json_bool(json, "lazy", member->lazy);
            bw_json_text(json, "stability", bw_stability_name(member->stability));
            bw_json_text(json, "documentation", member->documentation);
            if (element)
                bw_json_text(json, "of", element->name);
            bw_json_end(json);
        }
        bw_json_end(json);
        bw_json_end(json);
    }
    bw_json_end(json);
}

static void append_json(struct bw_buffer *text)
{
    struct bw_json json = bw_json_start(text, true);
    bw_json_begin_object(&json, NULL);
    cmd_probe_list_add(&json);
    bw_json_end(&json);
    bw_buffer_append_byte(text, '\n');
}

/* Whether a probe passes this record. */
static bool has_probe(const struct bw_record *record)
{
    unsigned count;
    const struct bw_probe *probes = bw_probe_table(&count);
    for (unsigned i = 0; i < count; i++)
        if (probes[i].record == record)
            return true;
    return false;
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
    " * This is the output of btrfs-walk --probe-list=bpftrace. Change src/record/records.def.\n"
    " */\n"
    "\n"
    "/** Bytes that do not end with NUL. */\n"
    "struct bw_bytes {\n"
    "    const char *data;\n"
    "    unsigned long long length;\n"
    "};\n";

/* bpftrace scripts include no headers, so the structures use only built-in types. */
static void append_bpftrace(struct bw_buffer *text)
{
    bw_buffer_format(text, "%s", bpftrace_begin);
    for (const struct bw_record *const *record = bw_records(); *record; record++) {
        if (!has_probe(*record))
            continue;
        bw_buffer_format(text, "\n/** %s. */\nstruct bw_%s {\n", (*record)->documentation,
                         (*record)->name);
        for (unsigned i = 0; i < (*record)->member_count; i++) {
            const struct bw_member *member = &(*record)->members[i];
            bw_buffer_format(text, "    /** %s */\n    %s%s;\n", member->documentation,
                             types[member->type].c_type, member->name);
        }
        bw_buffer_format(text, "};\n");
    }
}

int cmd_probe_list(const char *style)
{
    static const struct {
        const char *name;
        void (*append)(struct bw_buffer *text);
    } styles[] = {{"", append_names},
                  {"long", append_long},
                  {"json", append_json},
                  {"bpftrace", append_bpftrace}};
    struct bw_buffer text = {0};
    for (size_t i = 0; i < sizeof styles / sizeof *styles; i++)
        if (strcmp(styles[i].name, style ? style : "") == 0) {
            styles[i].append(&text);
            return cmd_write_text(&text);
        }
    return cmd_fail(NULL, bw_error_create(BW_ERROR_USAGE,
                                          "unknown style of --probe-list: '%s' (allowed: long, "
                                          "json and bpftrace)",
                                          style));
}
