/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * btrfs-walk --dump-tables: all tables of the program as one JSON document: commands and their
 * options, types of layers and their options, probes, records, types of items, passes and codes of
 * the check, messages of the kernel, exit statuses. It is only for scripts/make-docs, so no help
 * text mentions it, and any version may change it.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "btrfs-walk/check.h"
#include "btrfs-walk/graph.h"
#include "btrfs-walk/tree.h"
#include "cli/command.h"
#include "cli/common/selection.h"
#include "cli/graph/page.h"
#include "cli/probes/probes.h"
#include "cli/rescue/kernel_messages.h"

/* The filters, which many commands have, are a separate array; tables that include them contain
 * {"group": "filter_options"}. */
static void add_entries(struct bw_json *json, const struct cmd_option *table, const char *heading)
{
    for (; table->name || table->group; table++) {
        heading = table->heading ? table->heading : heading;
        if (!table->group) {
            const char letter[] = {table->letter, '\0'};
            bw_json_begin_object(json, NULL);
            bw_json_text(json, "letter", table->letter ? letter : NULL);
            bw_json_text(json, "name", table->name);
            bw_json_text(json, "argument", table->argument);
            bw_json_text(json, "description", table->description);
            bw_json_text(json, "heading", heading);
            bw_json_end(json);
        } else if (table->group == cmd_selection_options) {
            bw_json_begin_object(json, NULL);
            bw_json_text(json, "group", "filter_options");
            bw_json_end(json);
        } else {
            add_entries(json, table->group, heading);
        }
    }
}

static void add_options(struct bw_json *json, const char *name, const struct cmd_option *table)
{
    bw_json_begin_array(json, name);
    add_entries(json, table, NULL);
    bw_json_end(json);
}

static void add_statuses(struct bw_json *json, const struct cmd_status *status)
{
    bw_json_begin_array(json, "exit_statuses");
    for (; status && status->meaning; status++) {
        bw_json_begin_object(json, NULL);
        bw_json_number(json, "status", (uint64_t)status->status);
        bw_json_text(json, "meaning", status->meaning);
        bw_json_end(json);
    }
    bw_json_end(json);
}

/* Lists only built-in layers, so the document is the same on every machine. */
static struct bw_error *add_layers(struct bw_json *json)
{
    struct bw_registry *registry;
    BW_SCOPED(bw_const_strings) struct bw_const_strings names = {0};
    BW_TRY(bw_registry_open("", &registry));
    struct bw_error *error = page_types(registry, &names);
    bw_json_begin_array(json, "layers");
    for (size_t i = 0; i < names.count && !error; i++) {
        const struct bw_xlator_class *type;
        BW_AUTO_BUFFER struct bw_buffer place = {0};
        error = bw_registry_find(registry, names.items[i], &type);
        if (error)
            break;
        page_append_place(&place, type);
        bw_json_begin_object(json, NULL);
        bw_json_text(json, "type", type->type);
        bw_json_text(json, "description", type->description);
        bw_json_text(json, "page", type->page);
        bw_json_bytes(json, "place", place.data, place.length);
        bw_json_begin_array(json, "options");
        for (const struct bw_option *option = type->options; option && option->name; option++) {
            BW_AUTO_FREE char *range = bw_option_range(option);
            json->buffer->failed |= !range;
            bw_json_begin_object(json, NULL);
            bw_json_text(json, "name", option->name);
            bw_json_text(json, "type", bw_option_type_name(option->type));
            bw_json_text(json, "default", option->default_value);
            bw_json_text(json, "range", range);
            bw_json_text(json, "description", option->description);
            bw_json_end(json);
        }
        bw_json_end(json);
        bw_json_end(json);
        json->buffer->failed |= place.failed;
    }
    bw_json_end(json);
    bw_registry_close(registry);
    return error;
}

int cmd_dump_tables(void)
{
    struct bw_buffer text = {0};
    struct bw_json json = bw_json_start(&text, true);
    bw_json_begin_object(&json, NULL);
    bw_json_text(&json, "version", BW_VERSION);
    bw_json_begin_array(&json, "commands");
    for (size_t i = 0; cmd_table[i]; i++) {
        const struct command *command = cmd_table[i];
        bw_json_begin_object(&json, NULL);
        bw_json_text(&json, "name", command->name);
        bw_json_text(&json, "topic", command->topic);
        bw_json_text(&json, "operands", command->operands);
        bw_json_text(&json, "summary", command->summary);
        bw_json_text(&json, "details", command->details);
        bw_json_text(&json, "examples", command->examples);
        bw_json_text(&json, "record", command->record);
        bw_json_bool(&json, "needs_no_image", command->needs_no_image);
        bw_json_begin_array(&json, "options");
        add_entries(&json, command->options, NULL);
        if (command->sorts_rows)
            add_entries(&json, cmd_order_options, NULL);
        if (command->record)
            add_entries(&json, cmd_format_options, NULL);
        if (command->takes_list)
            add_entries(&json, cmd_list_options, NULL);
        bw_json_end(&json);
        add_statuses(&json, command->meanings);
        bw_json_end(&json);
    }
    bw_json_end(&json);
    add_options(&json, "image_options", cmd_image_options);
    add_options(&json, "filter_options", cmd_selection_options);
    add_options(&json, "answer_options", cmd_format_options);
    add_options(&json, "common_options", cmd_common_options);
    add_statuses(&json, cmd_statuses);
    struct bw_error *error = add_layers(&json);
    cmd_probe_list_add(&json);
    bw_item_types_describe(&json, "items");

    /* The passes of the check, each with its codes. */
    size_t count, code_count;
    const struct bw_check_pass *pass = bw_check_passes(&count);
    const struct bw_finding_code *codes = bw_finding_codes(&code_count);
    bw_json_begin_array(&json, "check");
    for (; count; count--, pass++) {
        bw_json_begin_object(&json, NULL);
        bw_json_text(&json, "name", pass->name);
        bw_json_text(&json, "description", pass->description);
        const char *when = pass->data ? "data" : "full";
        if (pass->quick)
            when = "quick";
        bw_json_text(&json, "when", when);
        bw_json_begin_array(&json, "codes");
        for (size_t i = 0; i < code_count; i++) {
            if (strcmp(codes[i].pass, pass->name) != 0)
                continue;
            bw_json_begin_object(&json, NULL);
            bw_json_text(&json, "word", codes[i].word);
            bw_json_text(&json, "severity", bw_finding_severity_name(codes[i].severity));
            bw_json_text(&json, "description", codes[i].description);
            bw_json_end(&json);
        }
        bw_json_end(&json);
        bw_json_end(&json);
    }
    bw_json_end(&json);

    /* The messages of kernels, each with its patterns. */
    bw_json_begin_array(&json, "kernel_messages");
    for (size_t i = 0; i < kernel_entry_count;) {
        const struct kernel_entry *message = &kernel_entries[i];
        bw_json_begin_object(&json, NULL);
        bw_json_text(&json, "word", message->word);
        bw_json_text(&json, "severity", message->is_error ? "error" : "warning");
        bw_json_text(&json, "explanation", message->explanation);
        bw_json_text(&json, "advice", message->advice);
        bw_json_begin_array(&json, "patterns");
        for (i++; i < kernel_entry_count && !kernel_entries[i].word; i++)
            bw_json_text(&json, NULL, kernel_entries[i].pattern);
        bw_json_end(&json);
        bw_json_end(&json);
    }
    bw_json_end(&json);

    bw_json_end(&json);
    bw_buffer_append_byte(&text, '\n');
    if (!error)
        return cmd_write_text(&text);
    bw_buffer_free(&text);
    return cmd_fail(NULL, error);
}
