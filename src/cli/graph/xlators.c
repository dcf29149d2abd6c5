/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The xlators command: a list of the layer types, or their pages. cli/graph/page.c makes the pages
 * from the classes, so they never contradict the graph.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/table.h"
#include "base/vector.h"
#include "btrfs-walk/graph.h"
#include "btrfs-walk/records.h"
#include "cli/common/output_format.h"
#include "cli/graph/page.h"

BW_VECTOR(bw_xlator_classes, const struct bw_xlator_class *);

struct xlators {
    bool built_in;
};

static const struct cmd_option options[] = {
    {0, "built-in", NULL, "list only built-in layers, none from shared objects",
     CMD_FLAG(struct xlators, built_in)},
    {0},
};

/* Rows. */

static struct bw_error *list_options(void *context, struct bw_record_sink *sink)
{
    const struct bw_xlator_class *type = context;
    for (const struct bw_option *option = type->options; option && option->name; option++) {
        BW_AUTO_FREE char *range = bw_option_range(option);
        const struct bw_layeroptioninfo row = {.option = option->name,
                                               .option_type = bw_option_type_name(option->type),
                                               .range = range,
                                               .default_value = option->default_value,
                                               .description = option->description};
        if (!range)
            return bw_error_no_memory();
        BW_TRY(sink->visit(sink, &row, sizeof row));
    }
    return NULL;
}

/* A list of all types, or the pages of those on the command line. */
static struct bw_error *write_text(struct cmd_format *format,
                                   const struct bw_xlator_classes *classes, bool pages)
{
    struct bw_table_column columns[2] = {{0}};
    BW_AUTO_BUFFER struct bw_buffer cells = {0};
    struct bw_buffer *text = &format->text;
    for (size_t i = 0; i < classes->count; i++) {
        const struct bw_xlator_class *type = classes->items[i];
        if (!pages) {
            bw_buffer_format(&cells, "%s\t%s\n", type->type, type->description);
            continue;
        }
        bw_buffer_format(text, "%s", i ? "\n\n" : "");
        page_append(text, type);
    }
    if (!pages)
        bw_table_append(text, &cells, columns);
    return cmd_write_buffer(&format->output, text);
}

static const char *without_category(const char *type)
{
    const char *slash = strchr(type, '/');
    return slash ? slash + 1 : type;
}

/* Names the types that may be meant. */
static struct bw_error *print_similar(struct bw_registry *registry, const char *wanted)
{
    BW_SCOPED(bw_const_strings) struct bw_const_strings names = {0};
    BW_TRY(page_types(registry, &names));
    for (size_t i = 0; i < names.count; i++)
        if (strcmp(wanted, names.items[i]) != 0 &&
            bw_is_suggestion(without_category(wanted), without_category(names.items[i])))
            fprintf(stderr, "Did you mean '%s'?\n", names.items[i]);
    return NULL;
}

/* Prints the types on the command line, or all. */
static int run(const struct cmd_common *common, void *state)
{
    const struct xlators *xlators = state;
    const struct cmd_input *input = &common->input;
    const struct cmd_format_plan plan = {.record = cmd_xlators.record};
    const bool lists_all = !input->image_count;
    struct cmd_format format;
    struct bw_registry *registry;
    BW_SCOPED(bw_const_strings) struct bw_const_strings names = {0};
    BW_SCOPED(bw_xlator_classes) struct bw_xlator_classes classes = {0};
    int status = STATUS_OK;
    struct bw_error *error = bw_registry_open(xlators->built_in ? "" : NULL, &registry);
    if (error)
        return cmd_fail(common, error);
    if (lists_all)
        error = page_types(registry, &names);
    else
        error = bw_const_strings_append(&names, input->images, input->image_count);
    for (size_t i = 0; !error && i < names.count; i++) {
        const struct bw_xlator_class *type;
        error = bw_registry_find(registry, names.items[i], &type);
        if (!error) {
            error = bw_xlator_classes_push(&classes, type);
        } else if (lists_all) { /* one that cannot be loaded is left out */
            if (common->messages.quiet)
                bw_error_free(BW_TAKE(error));
            else
                cmd_fail(common, bw_error_prefix(BW_TAKE(error), "%s", names.items[i]));
            status = STATUS_PARTIAL;
        }
    }
    if (error) {
        const bool is_unknown = error->code == BW_ERROR_USAGE && !lists_all;
        status = cmd_fail(common, error);
        if (is_unknown)
            bw_error_free(print_similar(registry, names.items[classes.count]));
        fputs("'btrfs-walk xlators' lists all types.\n", stderr);
    } else {
        error = cmd_format_begin(&format, common, &plan);
        if (error) {
            status = cmd_fail(common, error);
        } else {
            for (size_t i = 0; !error && format.rows && i < classes.count; i++) {
                const struct bw_xlator_class *type = classes.items[i];
                const struct bw_layertypeinfo row = {
                    .layer_type = type->type,
                    .description = type->description,
                    .options = {list_options, (void *)(uintptr_t)type}};
                error = cmd_format_write(&format, &row, sizeof row);
            }
            if (!format.rows)
                error = write_text(&format, &classes, !lists_all);
            error = cmd_format_end(&format, error);
            if (error)
                status = cmd_fail_output(common, error);
        }
        cmd_format_free(&format);
    }
    bw_registry_close(registry);
    return status;
}

static const struct cmd_status meanings[] = {
    {STATUS_OK, "The output is complete."},
    {STATUS_PARTIAL, "A layer cannot be used, or the output cannot be written."},
    {STATUS_CANNOT, "Wrong usage, or no such type."},
    {0},
};

const struct command cmd_xlators = {
    .name = "xlators",
    .topic = cmd_topic_developers,
    .operands = "[TYPE...]",
    .summary = "Lists the types of layers, or describes a type and its options.",
    .details =
        "\n"
        "A layer (translator, xlator) is one stage of the read path. TYPE is its category and\n"
        "name. You can add layers as shared objects CATEGORY/NAME.so in the directories\n"
        "listed in BTRFS_WALK_XLATOR_PATH. No image is read.\n",
    .examples = "  btrfs-walk xlators                       list all types\n"
                "  btrfs-walk xlators features/verify       what it does, and its options\n"
                "  btrfs-walk xlators --json | jq .options  all options, for programs\n",
    .options = options,
    .record = "layertypeinfo",
    .meanings = meanings,
    .run = run,
    .state_size = sizeof(struct xlators),
    .needs_no_image = true,
};
