/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What arguments can be, by the names that they have in the help text. */
#include <string.h>

#include "btrfs-walk/graph.h"
#include "btrfs-walk/probe.h"
#include "btrfs-walk/record.h"
#include "btrfs-walk/xlator.h"
#include "cli/complete/complete.h"

static void add_files(struct complete *complete, const struct command *command)
{
    (void)command;
    const char *value = complete->value;
    complete->value = "";
    complete_add(complete, COMPLETE_FILES, "", 0, "", "");
    complete->value = value;
}

/* Another column can follow. */
static void add_columns(struct complete *complete, const struct command *command)
{
    const struct bw_record *record = command->record ? bw_record_find(command->record) : NULL;
    complete_skip(complete, ",");
    for (unsigned i = 0; record && i < record->member_count; i++)
        complete_add(complete, COMPLETE_BEGIN, record->members[i].name,
                     strlen(record->members[i].name), "", record->members[i].documentation);
}

static void add_probes(struct complete *complete, const struct command *command)
{
    unsigned count;
    const struct bw_probe *probes = bw_probe_table(&count);
    (void)command;
    complete_skip(complete, ",!");
    for (unsigned i = 0; i < count; i++)
        complete_add(complete, COMPLETE_BEGIN, probes[i].name, strlen(probes[i].name), "",
                     probes[i].documentation);
}

/* Types of layers, and what follows each. */
struct types {
    struct complete *complete;
    struct bw_registry *registry;
    const char *end;
};

static struct bw_error *add_type(void *context, const char *name)
{
    const struct types *types = context;
    const struct bw_xlator_class *type;
    struct bw_error *error = bw_registry_find(types->registry, name, &type);
    if (!error)
        complete_add(types->complete, *types->end ? COMPLETE_BEGIN : COMPLETE_WORD, name,
                     strlen(name), types->end, type->description);
    bw_error_free(error);
    return NULL;
}

static void add_types(struct complete *complete, const char *end)
{
    struct types types = {complete, NULL, end};
    struct bw_error *error = bw_registry_open(NULL, &types.registry);
    if (!error)
        error = bw_registry_each(types.registry, add_type, &types);
    bw_error_free(error);
    bw_registry_close(types.registry);
}

static void add_plain_types(struct complete *complete, const struct command *command)
{
    (void)command;
    add_types(complete, "");
}

/* The options of the type that the value begins with, up to one of `ends`. */
static void add_layer_options(struct complete *complete, const char *ends)
{
    char name[128];
    size_t length = strcspn(complete->value, ends);
    const struct bw_xlator_class *type;
    struct bw_registry *registry = NULL;
    if (length >= sizeof name)
        return;
    memcpy(name, complete->value, length);
    name[length] = '\0';
    struct bw_error *error = bw_registry_open(NULL, &registry);
    if (!error)
        error = bw_registry_find(registry, name, &type);
    if (!error) {
        complete_skip(complete, ends);
        for (const struct bw_option *option = type->options; option && option->name; option++)
            complete_add(complete, COMPLETE_BEGIN, option->name, strlen(option->name), "=",
                         option->description);
    }
    bw_error_free(error);
    bw_registry_close(registry);
}

/* TYPE@VOLUME,KEY=VALUE... A volume can be a type, too. */
static void add_layer(struct complete *complete, const struct command *command)
{
    (void)command;
    if (strchr(complete->value, ',')) {
        add_layer_options(complete, "@,");
    } else {
        bool second = strchr(complete->value, '@');
        complete_skip(complete, "@");
        add_types(complete, second ? "" : "@");
    }
}

/* NAME.KEY=VALUE, of which NAME can be a type. */
static void add_setting(struct complete *complete, const struct command *command)
{
    (void)command;
    if (strchr(complete->value, '.'))
        add_layer_options(complete, ".");
    else
        add_types(complete, ".");
}

static void add_reports(struct complete *complete, const struct command *command)
{
    if (!strchr(complete->value, '=')) {
        complete_add(complete, COMPLETE_BEGIN, "junit", 5, "=", "JUnit XML");
        complete_add(complete, COMPLETE_BEGIN, "sarif", 5, "=", "SARIF 2.1.0");
        return;
    }
    complete_skip(complete, "=");
    add_files(complete, command);
}

static void add_file_types(struct complete *complete, const struct command *command)
{
    static const char *const types[][2] = {{"f", "regular files"},  {"d", "directories"},
                                           {"l", "symbolic links"}, {"c", "character devices"},
                                           {"b", "block devices"},  {"p", "pipes"},
                                           {"s", "sockets"}};
    (void)command;
    complete_skip(complete, ",");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        complete_add(complete, COMPLETE_BEGIN, types[i][0], 1, "", types[i][1]);
}

static void add_styles(struct complete *complete, const struct command *command)
{
    static const char *const styles[] = {"full-iso", "long-iso", "iso"};
    (void)command;
    for (size_t i = 0; i < sizeof styles / sizeof *styles; i++)
        complete_add(complete, COMPLETE_WORD, styles[i], strlen(styles[i]), "", "");
    complete_add(complete, COMPLETE_BEGIN, "+", 1, "", "a format as of date(1)");
}

static void add_subvolumes(struct complete *complete, const struct command *command)
{
    (void)command;
    complete_subvolumes(complete);
}

static void add_subvolume_list(struct complete *complete, const struct command *command)
{
    (void)command;
    complete_skip(complete, ",");
    complete_subvolumes(complete);
}

static void add_partitions(struct complete *complete, const struct command *command)
{
    (void)command;
    complete_partitions(complete);
}

static void add_devices(struct complete *complete, const struct command *command)
{
    (void)command;
    complete_devices(complete);
}

static void add_paths(struct complete *complete, const struct command *command)
{
    (void)command;
    complete_paths(complete);
}

static void add_commands(struct complete *complete, const struct command *command)
{
    (void)command;
    for (size_t i = 0; cmd_table[i]; i++)
        complete_add(complete, COMPLETE_WORD, cmd_table[i]->name, strlen(cmd_table[i]->name), "",
                     cmd_table[i]->summary);
}

void complete_argument(struct complete *complete, const char *name, const struct command *command)
{
    static const struct {
        const char *word;
        void (*add)(struct complete *complete, const struct command *command);
    } kinds[] = {
        {"FORM=FILE", add_reports},  {"FILE", add_files},
        {"IMAGE", add_files},        {"DEST", add_files},
        {"DIR", add_files},          {"PARTITION", add_partitions},
        {"NAME|ID", add_subvolumes}, {"SUBVOLUME,...", add_subvolume_list},
        {" A [B", add_subvolumes},   {"COLUMNS", add_columns},
        {"PATTERN", add_probes},     {"LAYER", add_layer},
        {"SETTING", add_setting},    {"TYPE", add_plain_types},
        {"LIST", add_file_types},    {"DEVID", add_devices},
        {"PATH", add_paths},         {"STYLE", add_styles},
        {"COMMAND", add_commands},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strstr(name, kinds[i].word)) {
            kinds[i].add(complete, command);
            return;
        }
    }
}
