/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An output is compared with every file that is read, not by name but as a file, so that links and other
 * nodes of the same device do not lead around the rule. What does not exist yet is no image.
 */
#include "graph/check_output.h"

#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"

/* A file that is read, and the volume that reads it. */
struct input {
    const struct bw_volume *volume;
    struct stat status;
};

struct inputs {
    struct input *all;
    size_t count, capacity;
};

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    if (S_ISBLK(a->st_mode) && S_ISBLK(b->st_mode))
        return a->st_rdev == b->st_rdev;
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static const char *value_in_force(const struct bw_volume *volume, const struct bw_option *option)
{
    const char *given = bw_volume_option(volume, option->name);
    return given ? given : option->default_value;
}

static struct bw_place value_place(const struct bw_volume *volume, const char *name)
{
    for (size_t i = 0; i < volume->option_count; i++)
        if (strcmp(volume->options[i].name.text, name) == 0)
            return volume->options[i].value.at;
    return volume->name.at;
}

static struct bw_error *add_input(struct inputs *inputs, const struct bw_volume *volume, const char *path)
{
    struct input input = {.volume = volume};
    if (stat(path, &input.status))
        return NULL;
    if (!BW_ARRAY_RESERVE(inputs->all, inputs->count, inputs->capacity))
        return bw_error_no_memory();
    inputs->all[inputs->count++] = input;
    return NULL;
}

static struct bw_error *check_output(const struct inputs *inputs, const struct bw_volume *volume,
                                     const char *name, const char *path)
{
    struct stat status;
    if (!*path || strcmp(path, "-") == 0 || stat(path, &status))
        return NULL;
    for (size_t i = 0; i < inputs->count; i++)
        if (is_same_file(&status, &inputs->all[i].status))
            return BW_REFUSE(value_place(volume, name),
                             "volume %s: option %s: %s is the file that volume %s reads: an image is never "
                             "written to",
                             volume->name.text, name, path, inputs->all[i].volume->name.text);
    return NULL;
}

/* Goes over all options of one type: BW_OPTION_PATH fills the inputs, BW_OPTION_OUTPUT is compared with them.
 */
static struct bw_error *visit(const struct bw_plan *plan, struct bw_registry *registry,
                              enum bw_option_type wanted, struct inputs *inputs)
{
    for (size_t i = 0; i < plan->count; i++) {
        const struct bw_volume *volume = &plan->volumes[i];
        const struct bw_xlator_class *type;
        BW_TRY(bw_registry_find(registry, volume->type.text, &type));
        for (const struct bw_option *option = type->options; option && option->name; option++) {
            if (option->type != wanted)
                continue;
            const char *path = value_in_force(volume, option);
            BW_TRY(wanted == BW_OPTION_PATH ? add_input(inputs, volume, path)
                                            : check_output(inputs, volume, option->name, path));
        }
    }
    return NULL;
}

struct bw_error *bw_check_outputs(const struct bw_plan *plan, struct bw_registry *registry)
{
    struct inputs inputs = {0};
    struct bw_error *error = visit(plan, registry, BW_OPTION_PATH, &inputs);
    if (!error)
        error = visit(plan, registry, BW_OPTION_OUTPUT, &inputs);
    free(inputs.all);
    return error;
}
