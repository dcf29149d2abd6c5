/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An output is compared with every file that is read, not by name but as a file, so that links and
 * other nodes of the same device do not lead around the rule. What does not exist yet is no image.
 */
#include "graph/check_output.h"

#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

static const char *value_in_force(const struct bw_volume *volume, const struct bw_option *option)
{
    const char *given = bw_volume_option(volume, option->name);
    return given ? given : option->default_value;
}

static struct bw_text_place value_place(const struct bw_volume *volume, const char *name)
{
    for (size_t i = 0; i < volume->option_count; i++)
        if (strcmp(volume->options[i].name.text, name) == 0)
            return volume->options[i].value.at;
    return volume->name.at;
}

static struct bw_error *check_output(const struct bw_file_set *inputs,
                                     const struct bw_volume *volume, const char *name,
                                     const char *path)
{
    struct stat status;
    if (!*path || strcmp(path, "-") == 0 || stat(path, &status) ||
        !bw_file_set_holds(inputs, &status))
        return NULL;
    return BW_REFUSE(
        value_place(volume, name),
        "volume %s: option %s: %s is a file that is read: nothing is ever written to one",
        volume->name.text, name, path);
}

/* Goes over all options of one type: BW_OPTION_PATH fills the inputs, BW_OPTION_OUTPUT is compared
 * with them.
 */
static struct bw_error *visit(const struct bw_plan *plan, struct bw_registry *registry,
                              enum bw_option_type wanted, struct bw_file_set *inputs)
{
    for (size_t i = 0; i < plan->count; i++) {
        const struct bw_volume *volume = &plan->volumes[i];
        const struct bw_xlator_class *type;
        BW_TRY(bw_registry_find(registry, volume->type.text, &type));
        for (const struct bw_option *option = type->options; option && option->name; option++) {
            if (option->type != wanted)
                continue;
            const char *path = value_in_force(volume, option);
            if (wanted == BW_OPTION_OUTPUT)
                BW_TRY(check_output(inputs, volume, option->name, path));
            else if (!bw_file_set_add(inputs, path))
                return bw_error_no_memory();
        }
    }
    return NULL;
}

struct bw_error *bw_check_outputs(const struct bw_plan *plan, struct bw_registry *registry,
                                  struct bw_file_set *inputs)
{
    BW_TRY(visit(plan, registry, BW_OPTION_PATH, inputs));
    return visit(plan, registry, BW_OPTION_OUTPUT, inputs);
}
