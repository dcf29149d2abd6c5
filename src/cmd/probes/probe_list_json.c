/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --probe-list=json: one document with all probes and all records, for programs. */
#include "base/json.h"
#include "cmd/probes/probe_list.h"

static void add_attributes(struct bw_json *json, struct bw_attributes attributes)
{
    struct bw_buffer triplet = {0};
    cmd_append_attributes(&triplet, attributes);
    bw_json_bytes(json, "stability", triplet.data ? triplet.data : "", triplet.length);
    json->buffer->failed |= triplet.failed;
    bw_buffer_free(&triplet);
}

static void add_arguments(struct bw_json *json, const struct bw_probe *probe)
{
    bw_json_begin_array(json, "arguments");
    bw_json_text(json, NULL, "record");
    for (unsigned i = 1; i < CMD_PROBE_ARGUMENTS; i++)
        bw_json_text(json, NULL, cmd_probe_argument(probe, i)->name);
    bw_json_end(json);
}

static void add_probe(struct bw_json *json, const struct bw_probe *probe)
{
    const struct bw_record *record = probe->record;
    bw_json_begin_object(json, NULL);
    bw_json_text(json, "name", probe->name);
    bw_json_text(json, "usdt", probe->usdt);
    bw_json_text(json, "documentation", probe->documentation);
    bw_json_text(json, "record", record->name);
    bw_json_text(json, "translator", bw_probe_input(probe));
    bw_json_bool(json, "coarse", probe->coarse);
    add_attributes(json, cmd_probe_attributes(probe));
    add_arguments(json, probe);
    bw_json_begin_array(json, "translated");
    for (unsigned i = 0; i < record->member_count; i++)
        if (cmd_probe_translates(probe, &record->members[i]))
            bw_json_text(json, NULL, record->members[i].name);
    bw_json_end(json);
    bw_json_end(json);
}

static void add_member(struct bw_json *json, const struct bw_member *member)
{
    bw_json_begin_object(json, NULL);
    bw_json_text(json, "name", member->name);
    bw_json_text(json, "type", cmd_member_type(member));
    bw_json_text(json, "format", cmd_member_format(member));
    bw_json_number(json, "offset", member->offset);
    bw_json_number(json, "size", cmd_member_size(member));
    bw_json_bool(json, "lazy", member->lazy);
    bw_json_text(json, "stability", bw_stability_name(member->stability));
    bw_json_text(json, "documentation", member->documentation);
    bw_json_end(json);
}

static void add_record(struct bw_json *json, const struct bw_record *record)
{
    bw_json_begin_object(json, NULL);
    bw_json_text(json, "name", record->name);
    bw_json_number(json, "version", record->version);
    bw_json_text(json, "documentation", record->documentation);
    bw_json_number(json, "size", record->size);
    add_attributes(json, record->attributes);
    bw_json_begin_array(json, "members");
    for (unsigned i = 0; i < record->member_count; i++)
        add_member(json, &record->members[i]);
    bw_json_end(json);
    bw_json_end(json);
}

void cmd_probe_list_json(struct bw_buffer *text)
{
    unsigned count;
    const struct bw_probe *probes = bw_probe_table(&count);
    struct bw_json json = bw_json_start(text, true);
    bw_json_begin_object(&json, NULL);
    bw_json_text(&json, "provider", "btrfswalk");
    bw_json_number(&json, "schema", BW_RECORD_SCHEMA);
    bw_json_begin_array(&json, "probes");
    for (unsigned i = 0; i < count; i++)
        add_probe(&json, &probes[i]);
    bw_json_end(&json);
    bw_json_begin_array(&json, "records");
    for (const struct bw_record *const *record = bw_records(); *record; record++)
        add_record(&json, *record);
    bw_json_end(&json);
    bw_json_end(&json);
    bw_buffer_append_byte(text, '\n');
}
