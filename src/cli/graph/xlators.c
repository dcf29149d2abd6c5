/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The xlators command: a list of the layer types, or their pages. cli/graph/page.c makes the pages
 * from the classes, so they never contradict the graph.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/table.h"
#include "base/vector.h"
#include "btrfs-walk/graph.h"
#include "btrfs-walk/records.h"
#include "cli/common/output_format.h"
#include "cli/graph/page.h"

BW_VECTOR(bw_xlator_classes, const struct bw_xlator_class *);

struct xlators {
    /* The options. */
    bool built_in;

    /* While it runs. */
    struct bw_xlator_classes classes; /* the types to print */
    const struct cmd_common *common;
    struct bw_registry *registry;
    bool unusable; /* a shared object could not be used */
};

static const struct cmd_option options[] = {
    {0, "built-in", NULL, "list only built-in layers, none from shared objects",
     CMD_FLAG(struct xlators, built_in)},
    {0},
};

/* Adds a type. If it cannot be loaded, prints the error and continues. */
static struct bw_error *add_loadable(void *context, const char *name)
{
    struct xlators *xlators = context;
    const struct bw_xlator_class *type;
    struct bw_error *error = bw_registry_find(xlators->registry, name, &type);
    if (!error)
        return bw_xlator_classes_push(&xlators->classes, type);
    if (xlators->common->messages.quiet)
        bw_error_free(error);
    else
        cmd_fail(xlators->common, bw_error_prefix(error, "%s", name));
    xlators->unusable = true;
    return NULL;
}

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
static struct bw_error *write_text(struct cmd_format *format, const struct xlators *xlators)
{
    struct bw_table_column columns[2] = {{0}};
    BW_AUTO_BUFFER struct bw_buffer cells = {0};
    struct bw_buffer *text = &format->text;
    const bool pages = xlators->common->input.image_count;
    for (size_t i = 0; i < xlators->classes.count; i++) {
        const struct bw_xlator_class *type = xlators->classes.items[i];
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

/* Prints the types on the command line, or all. */
static int run(const struct cmd_common *common, void *state)
{
    struct xlators *xlators = state;
    const struct cmd_input *input = &common->input;
    const struct cmd_format_plan plan = {.record = cmd_xlators.record};
    struct cmd_format format;
    xlators->common = common;
    struct bw_error *error = bw_registry_open(xlators->built_in ? "" : NULL, &xlators->registry);
    if (error)
        return cmd_fail(common, error);
    for (size_t i = 0; !error && i < input->image_count; i++) {
        const struct bw_xlator_class *type;
        error = bw_registry_find(xlators->registry, input->images[i], &type);
        if (!error)
            error = bw_xlator_classes_push(&xlators->classes, type);
    }
    if (!input->image_count)
        error = bw_registry_each(xlators->registry, add_loadable, xlators);
    int status = xlators->unusable ? STATUS_PARTIAL : STATUS_OK;
    if (error) {
        status = cmd_fail(common, error);
        fputs("'btrfs-walk xlators' lists all types.\n", stderr);
    } else {
        error = cmd_format_begin(&format, common, &plan);
        if (error) {
            status = cmd_fail(common, error);
        } else {
            for (size_t i = 0; !error && format.rows && i < xlators->classes.count; i++) {
                const struct bw_xlator_class *type = xlators->classes.items[i];
                const struct bw_layertypeinfo row = {
                    .layer_type = type->type,
                    .description = type->description,
                    .options = {list_options, (void *)(uintptr_t)type}};
                error = cmd_format_write(&format, &row, sizeof row);
            }
            if (!format.rows)
                error = write_text(&format, xlators);
            error = cmd_format_end(&format, error);
            if (error)
                status = cmd_fail_output(common, error);
        }
        cmd_format_free(&format);
    }
    bw_xlator_classes_free(&xlators->classes);
    bw_registry_close(xlators->registry);
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
