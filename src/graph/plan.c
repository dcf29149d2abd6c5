/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plan as a data structure: adding, changing, finding. What makes sense is checked elsewhere.
 */
#include "graph/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

static void free_volume(struct bw_volume *volume)
{
    for (size_t i = 0; i < volume->option_count; i++) {
        free(volume->options[i].name.text);
        free(volume->options[i].value.text);
    }
    for (size_t i = 0; i < volume->child_count; i++)
        free(volume->children[i].text);
    free(volume->options);
    free(volume->children);
    free(volume->name.text);
    free(volume->type.text);
}

void bw_plan_free(struct bw_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        free_volume(&plan->volumes[i]);
    for (size_t i = 0; i < plan->source_count; i++)
        free(plan->sources[i]);
    free(plan->volumes);
    free(plan->sources);
    *plan = (struct bw_plan){0};
}

const char *bw_plan_source(struct bw_plan *plan, const char *source)
{
    char *copy = strdup(source);
    if (!copy || !BW_ARRAY_RESERVE(plan->sources, plan->source_count, plan->source_capacity)) {
        free(copy);
        return NULL;
    }
    return plan->sources[plan->source_count++] = copy;
}

static struct bw_error *set_word(struct bw_word *word, const char *text, struct bw_text_place at)
{
    char *copy = strdup(text);
    if (!copy)
        return bw_error_no_memory();
    free(word->text);
    *word = (struct bw_word){copy, at};
    return NULL;
}

struct bw_error *bw_plan_add(struct bw_plan *plan, size_t index, const char *name,
                             struct bw_text_place at, struct bw_volume **volume)
{
    struct bw_volume made = {0};
    if (plan->count == BW_PLAN_VOLUMES)
        return BW_REFUSE(at, "volume %s is one too many: a graph has at most %d", name,
                         BW_PLAN_VOLUMES);
    if (!BW_ARRAY_RESERVE(plan->volumes, plan->count, plan->capacity))
        return bw_error_no_memory();
    BW_TRY(set_word(&made.name, name, at));
    memmove(plan->volumes + index + 1, plan->volumes + index,
            (plan->count++ - index) * sizeof *plan->volumes);
    plan->volumes[index] = made;
    *volume = &plan->volumes[index];
    return NULL;
}

void bw_plan_remove(struct bw_plan *plan, size_t index)
{
    free_volume(&plan->volumes[index]);
    memmove(plan->volumes + index, plan->volumes + index + 1,
            (--plan->count - index) * sizeof *plan->volumes);
}

struct bw_error *bw_volume_set_type(struct bw_volume *volume, const char *type,
                                    struct bw_text_place at)
{
    return set_word(&volume->type, type, at);
}

static struct bw_plan_option *find_option(const struct bw_volume *volume, const char *name)
{
    for (size_t i = 0; i < volume->option_count; i++)
        if (strcmp(volume->options[i].name.text, name) == 0)
            return &volume->options[i];
    return NULL;
}

struct bw_error *bw_volume_set_option(struct bw_volume *volume, const char *name,
                                      struct bw_text_place name_at, const char *value,
                                      struct bw_text_place value_at)
{
    struct bw_plan_option *option = find_option(volume, name);
    if (option)
        return set_word(&option->value, value, value_at);
    if (!BW_ARRAY_RESERVE(volume->options, volume->option_count, volume->option_capacity))
        return bw_error_no_memory();
    option = &volume->options[volume->option_count];
    *option = (struct bw_plan_option){0};
    BW_TRY(set_word(&option->name, name, name_at));
    volume->option_count++;
    return set_word(&option->value, value, value_at);
}

const char *bw_volume_option(const struct bw_volume *volume, const char *name)
{
    const struct bw_plan_option *option = find_option(volume, name);
    return option ? option->value.text : NULL;
}

struct bw_error *bw_volume_add_child(struct bw_volume *volume, const char *name,
                                     struct bw_text_place at)
{
    if (!BW_ARRAY_RESERVE(volume->children, volume->child_count, volume->child_capacity))
        return bw_error_no_memory();
    struct bw_word *child = &volume->children[volume->child_count];
    *child = (struct bw_word){0};
    BW_TRY(set_word(child, name, at));
    volume->child_count++;
    return NULL;
}

void bw_volume_remove_child(struct bw_volume *volume, size_t index)
{
    free(volume->children[index].text);
    memmove(volume->children + index, volume->children + index + 1,
            (--volume->child_count - index) * sizeof *volume->children);
}

size_t bw_plan_find(const struct bw_plan *plan, const char *name)
{
    size_t index = 0;
    while (index < plan->count && strcmp(plan->volumes[index].name.text, name) != 0)
        index++;
    return index;
}
