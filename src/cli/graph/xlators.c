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

struct xlators_state {
    bool built_in;
};

static const struct cmd_option options[] = {
    {0, "built-in", NULL, "list only built-in layers, none from shared objects",
     CMD_FLAG(struct xlators_state, built_in)},
    {0},
};

BW_VECTOR(bw_xlator_classes, const struct bw_xlator_class *);

/* The types to print. */
struct types {
    struct bw_xlator_classes classes;
    const struct cmd_common *common;
    struct bw_registry *registry;
    bool no_memory;
    bool unusable; /* a shared object could not be used */
};

static void add_type(struct types *types, const struct bw_xlator_class *type)
{
    if (bw_xlator_classes_push(&types->classes, type))
        types->no_memory = true;
}

/* Adds a type. If it cannot be loaded, prints the error and continues. */
static struct bw_error *add_loadable(void *context, const char *name)
{
    struct types *types = context;
    const struct bw_xlator_class *type;
    struct bw_error *error = bw_registry_find(types->registry, name, &type);
    if (!error)
        add_type(types, type);
    else if (types->common->messages.quiet)
        bw_error_free(error);
    else
        cmd_fail(types->common, bw_error_prefix(error, "%s", name));
    types->unusable |= error != NULL;
    return NULL;
}

static struct bw_error *find_types(struct types *types)
{
    for (size_t i = 0; i < types->common->input.image_count; i++) {
        const struct bw_xlator_class *type;
        BW_TRY(bw_registry_find(types->registry, types->common->input.images[i], &type));
        add_type(types, type);
    }
    return NULL;
}

static void append_list(struct bw_buffer *text, const struct types *types)
{
    struct bw_table_column columns[2] = {{0}};
    BW_AUTO_BUFFER struct bw_buffer cells = {0};
    for (size_t i = 0; i < types->classes.count; i++)
        bw_buffer_format(&cells, "%s\t%s\n", types->classes.items[i]->type,
                         types->classes.items[i]->description);
    bw_table_append(text, &cells, columns);
}

static void append_pages(struct bw_buffer *text, const struct types *types)
{
    for (size_t i = 0; i < types->classes.count; i++) {
        bw_buffer_format(text, "%s", i ? "\n\n" : "");
        page_append(text, types->classes.items[i]);
    }
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
        BW_TRY(sink->visit(sink, &row, sizeof row, 0));
    }
    return NULL;
}

static struct bw_error *write_rows(struct cmd_answer *answer, const struct types *types)
{
    for (size_t i = 0; i < types->classes.count; i++) {
        const struct bw_xlator_class *type = types->classes.items[i];
        const struct bw_layertypeinfo row = {.layer_type = type->type,
                                             .description = type->description,
                                             .options = {list_options, (void *)(uintptr_t)type}};
        BW_TRY(cmd_answer_write(answer, &row, sizeof row, 0));
    }
    return types->no_memory ? bw_error_no_memory() : NULL;
}

static struct bw_error *write_text(struct cmd_answer *answer, const struct types *types)
{
    const bool list = !types->common->input.image_count;
    struct bw_buffer *text = &answer->text;
    (list ? append_list : append_pages)(text, types);
    text->failed |= types->no_memory;
    return text->failed ? bw_error_no_memory()
                        : cmd_write(&answer->output, text->data, text->length);
}

static int write_out(const struct types *types)
{
    const struct cmd_answer_plan plan = {.record = cmd_xlators.record};
    struct cmd_answer answer;
    struct bw_error *error = cmd_answer_begin(&answer, types->common, &plan);
    int status = error ? cmd_fail(types->common, error) : STATUS_OK;
    if (!status) {
        error = answer.rows ? write_rows(&answer, types) : write_text(&answer, types);
        error = cmd_answer_end(&answer, error);
        status = error             ? cmd_fail_answer(types->common, error)
                 : types->unusable ? STATUS_PARTIAL
                                   : STATUS_OK;
    }
    cmd_answer_free(&answer);
    return status;
}

/* Prints the types on the command line, or all. */
static int print_types(struct bw_registry *registry, const struct cmd_common *common)
{
    struct types types = {.common = common, .registry = registry};
    struct bw_error *error = common->input.image_count
                                 ? find_types(&types)
                                 : bw_registry_each(registry, add_loadable, &types);
    int status;
    if (error) {
        status = cmd_fail(common, error);
        fputs("'btrfs-walk xlators' lists all types.\n", stderr);
    } else {
        status = write_out(&types);
    }
    bw_xlator_classes_free(&types.classes);
    return status;
}

static int run(const struct cmd_common *common, void *state)
{
    const struct xlators_state *xlators = state;
    struct bw_registry *registry;
    struct bw_error *error = bw_registry_open(xlators->built_in ? "" : NULL, &registry);
    if (error)
        return cmd_fail(common, error);
    int status = print_types(registry, common);
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
    .topic = cmd_topic_program,
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
    .state_size = sizeof(struct xlators_state),
    .needs_no_image = true,
};
