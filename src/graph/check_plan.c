/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A whole plan, before anything of it is made: names, then who uses whom, then each layer against
 * its class, then that nothing is written to an image. Comes after parsing and editing, and before
 * graph/build.c.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "graph/check.h"
#include "graph/check_output.h"
#include "base/nearest.h"

/* How many names of a long cycle stand before its end is cut. */
enum { CYCLE_NAMES = 10 };

/* What is known of a volume. */
struct state {
    const struct bw_xlator_class *type;
    struct bw_standing standing;
    bool used;      /* by another volume */
    size_t list_of; /* the volume whose list was the last to name it, plus 1 */
};

struct named {
    const char *name;
    size_t index;
};

struct checker {
    const struct bw_plan *plan;
    struct bw_registry *registry;
    struct bw_file_set *inputs;
    struct state *states; /* one a volume, in the plan's order */
    struct named *names;  /* the same, sorted */
};

/* Where a word stands, as the end of a message. NULL: memory ran out. */
static char *place_text(struct bw_text_place at)
{
    struct bw_buffer text = {0};
    if (at.source && at.line)
        bw_buffer_format(&text, " (%s:%u:%u)", at.source, at.line, at.column);
    else if (at.source)
        bw_buffer_format(&text, " (%s)", at.source);
    bw_buffer_append_byte(&text, '\0');
    return text.data;
}

/* Names. */

static int by_name(const void *left, const void *right)
{
    const struct named *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

static struct bw_error *refuse_name(const struct bw_plan *plan, size_t index, size_t first)
{
    const struct bw_word *name = &plan->volumes[index].name;
    BW_AUTO_FREE char *place = place_text(plan->volumes[first].name.at);
    return BW_REFUSE(name->at, "volume %s: another volume before it has this name%s", name->text,
                     place ? place : "");
}

/* Refuses the first volume, in the plan's order, whose name another one before it has. */
static struct bw_error *check_names(struct checker *checker)
{
    const struct bw_plan *plan = checker->plan;
    size_t second = plan->count, first = 0, run = 0;
    for (size_t i = 0; i < plan->count; i++)
        checker->names[i] = (struct named){plan->volumes[i].name.text, i};
    qsort(checker->names, plan->count, sizeof *checker->names, by_name);
    for (size_t i = 1; i < plan->count; i++) {
        if (strcmp(checker->names[run].name, checker->names[i].name) != 0) {
            run = i;
        } else if (checker->names[i].index < second) {
            second = checker->names[i].index;
            first = checker->names[run].index;
        }
    }
    return second < plan->count ? refuse_name(plan, second, first) : NULL;
}

/* Index of the volume with a name; the number of volumes if there is none. */
static size_t find(const struct checker *checker, const char *name)
{
    size_t low = 0, high = checker->plan->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, checker->names[middle].name);
        if (!order)
            return checker->names[middle].index;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return checker->plan->count;
}

/* Who uses whom. */

static struct bw_error *refuse_undefined(const struct checker *checker,
                                         const struct bw_volume *parent,
                                         const struct bw_word *child)
{
    struct bw_nearest nearest = {.wanted = child->text};
    for (size_t i = 0; i < checker->plan->count; i++)
        if (&checker->plan->volumes[i] != parent)
            bw_nearest_try(&nearest, checker->plan->volumes[i].name.text);
    return BW_REFUSE(child->at, "volume %s: there is no volume %s%s%s%s", parent->name.text,
                     child->text, nearest.best ? "; did you mean " : "",
                     nearest.best ? nearest.best : "", nearest.best ? "?" : "");
}

/*
 * The way from a volume down to another, breadth first: afterwards `way[v]` is the volume that `v`
 * was reached from. False if there is no way. `queue` has room for all volumes.
 */
static bool find_way(const struct checker *checker, size_t from, size_t to, size_t *way,
                     size_t *queue)
{
    const struct bw_plan *plan = checker->plan;
    size_t head = 0, tail = 0;
    for (size_t i = 0; i < plan->count; i++)
        way[i] = plan->count;
    way[from] = from;
    queue[tail++] = from;
    while (head < tail && way[to] == plan->count) {
        size_t at = queue[head++];
        for (size_t i = 0; i < plan->volumes[at].child_count; i++) {
            size_t child = find(checker, plan->volumes[at].children[i].text);
            if (child == plan->count || way[child] != plan->count)
                continue;
            way[child] = at;
            queue[tail++] = child;
        }
    }
    return way[to] != plan->count;
}

/* "a -> b -> c -> a" for the way from `first` down to `top`, which names `first`; a long one
 * without its middle.
 */
static void append_cycle(const struct bw_plan *plan, size_t top, size_t first, const size_t *way,
                         size_t *steps, struct bw_buffer *text)
{
    size_t count = 0;
    for (steps[count++] = top; steps[count - 1] != first; count++)
        steps[count] = way[steps[count - 1]];
    bw_buffer_format(text, "%s", plan->volumes[top].name.text);
    for (size_t i = count; i-- > 0;) {
        bool cut = i && count - i >= CYCLE_NAMES;
        bw_buffer_format(text, " -> %s", cut ? "..." : plan->volumes[steps[i]].name.text);
        i = cut ? 1 : i;
    }
}

/* A child that does not come before its parent: a cycle, or only the wrong order. */
static struct bw_error *refuse_order(const struct checker *checker, size_t parent, size_t child,
                                     const struct bw_word *word)
{
    const struct bw_plan *plan = checker->plan;
    const char *name = plan->volumes[parent].name.text;
    BW_AUTO_FREE size_t *way = calloc(plan->count, sizeof *way);
    BW_AUTO_FREE size_t *queue = calloc(plan->count, sizeof *queue);
    BW_AUTO_FREE char *place = place_text(plan->volumes[child].name.at);
    if (!way || !queue || !place)
        return bw_error_no_memory();
    if (!find_way(checker, child, parent, way, queue))
        return BW_REFUSE(
            word->at,
            "volume %s: subvolume %s is used before it is defined%s: children come before "
            "their parents",
            name, word->text, place);
    struct bw_buffer text = {0};
    append_cycle(plan, parent, child, way, queue, &text);
    struct bw_error *error = BW_REFUSE(word->at, "volume %s: a cycle: %.*s", name, (int)text.length,
                                       text.data ? text.data : "");
    bw_buffer_free(&text);
    return error;
}

static struct bw_error *check_child(struct checker *checker, size_t parent,
                                    const struct bw_word *word)
{
    const struct bw_volume *volume = &checker->plan->volumes[parent];
    size_t child = find(checker, word->text);
    if (child == checker->plan->count)
        return refuse_undefined(checker, volume, word);
    struct state *state = &checker->states[child];
    if (state->list_of == parent + 1)
        return BW_REFUSE(word->at, "volume %s: subvolume %s is listed twice", volume->name.text,
                         word->text);
    if (child >= parent)
        return refuse_order(checker, parent, child, word);
    state->list_of = parent + 1;
    state->used = true;
    return NULL;
}

static struct bw_error *check_children(struct checker *checker)
{
    const struct bw_plan *plan = checker->plan;
    for (size_t i = 0; i < plan->count; i++)
        for (size_t child = 0; child < plan->volumes[i].child_count; child++)
            BW_TRY(check_child(checker, i, &plan->volumes[i].children[child]));
    return NULL;
}

/* Types and options. */

/* What an unknown type was meant to be: all of it may be misspelt a little, or only the category be
 * wrong. */
struct meant {
    const char *type;
    const char *name; /* what stands behind its slash */
    struct bw_nearest nearest;
    const char *elsewhere;
    bool exists; /* but cannot be used */
};

static const char *behind_slash(const char *type)
{
    const char *slash = strrchr(type, '/');
    return slash ? slash + 1 : type;
}

static struct bw_error *consider(void *context, const char *type)
{
    struct meant *meant = context;
    meant->exists |= strcmp(type, meant->type) == 0;
    bw_nearest_try(&meant->nearest, type);
    if (strcmp(behind_slash(type), meant->name) == 0)
        meant->elsewhere = type;
    return NULL;
}

/* Takes the registry's error and returns one that says more. */
static struct bw_error *refuse_type(const struct checker *checker, const struct bw_volume *volume,
                                    struct bw_error *unknown)
{
    BW_AUTO_ERROR struct bw_error *reason = unknown;
    const char *type = volume->type.text;
    struct meant meant = {type, behind_slash(type), {.wanted = type}, NULL, false};
    if (reason->code == BW_ERROR_USAGE)
        BW_TRY(bw_registry_each(checker->registry, consider, &meant));
    const char *best = meant.exists ? NULL : meant.elsewhere ? meant.elsewhere : meant.nearest.best;
    if (best)
        return BW_REFUSE(volume->type.at, "volume %s: %s; did you mean %s?", volume->name.text,
                         reason->message, best);
    return bw_place_error(volume->type.at,
                          bw_error_prefix(BW_TAKE(reason), "volume %s", volume->name.text));
}

static struct bw_error *refuse_option(const struct bw_xlator_class *type,
                                      const struct bw_volume *volume, const struct bw_word *name)
{
    struct bw_nearest nearest = {.wanted = name->text};
    struct bw_buffer names = {0};
    for (const struct bw_option *option = type->options; option && option->name; option++) {
        bw_nearest_try(&nearest, option->name);
        bw_buffer_format(&names, "%s%s", option == type->options ? "; it has " : ", ",
                         option->name);
    }
    struct bw_error *error =
        nearest.best
            ? BW_REFUSE(name->at, "volume %s: %s has no option %s; did you mean %s?",
                        volume->name.text, type->type, name->text, nearest.best)
            : BW_REFUSE(name->at, "volume %s: %s has no option %s%.*s", volume->name.text,
                        type->type, name->text, (int)names.length, names.data ? names.data : "");
    bw_buffer_free(&names);
    return error;
}

static struct bw_text_place fault_place(const struct bw_volume *volume,
                                        const struct bw_fault *fault)
{
    switch (fault->word) {
    case BW_FAULT_NAME:
        break;
    case BW_FAULT_TYPE:
        return volume->type.at;
    case BW_FAULT_OPTION:
        return volume->options[fault->index].name.at;
    case BW_FAULT_VALUE:
        return volume->options[fault->index].value.at;
    case BW_FAULT_CHILD:
        return volume->children[fault->index].at;
    }
    return volume->name.at;
}

/* The children were checked before, so their address spaces are known. */
static struct bw_error *check_volume(struct checker *checker, const struct bw_volume *volume,
                                     struct state *state)
{
    BW_AUTO_FREE struct bw_option_value *options =
        calloc(volume->option_count + 1, sizeof *options);
    BW_AUTO_FREE struct bw_child *children = calloc(volume->child_count + 1, sizeof *children);
    struct bw_fault fault = {BW_FAULT_NAME, 0};
    if (!options || !children)
        return bw_error_no_memory();
    for (size_t i = 0; i < volume->option_count; i++)
        options[i] =
            (struct bw_option_value){volume->options[i].name.text, volume->options[i].value.text};
    for (size_t i = 0; i < volume->child_count; i++) {
        const char *name = volume->children[i].text;
        children[i] = (struct bw_child){name, checker->states[find(checker, name)].standing};
    }
    const struct bw_layer layer = {.type = volume->type.text,
                                   .name = volume->name.text,
                                   .options = options,
                                   .child_count = volume->child_count};
    BW_AUTO_ERROR struct bw_error *error =
        bw_check_layer(state->type, &layer, children, &state->standing, &fault);
    if (error && fault.word == BW_FAULT_OPTION)
        return refuse_option(state->type, volume, &volume->options[fault.index].name);
    return error ? bw_place_error(fault_place(volume, &fault), BW_TAKE(error)) : NULL;
}

static struct bw_error *check_layers(struct checker *checker)
{
    for (size_t i = 0; i < checker->plan->count; i++) {
        const struct bw_volume *volume = &checker->plan->volumes[i];
        struct state *state = &checker->states[i];
        if (!volume->type.text)
            return BW_REFUSE(volume->name.at, "volume %s has no type", volume->name.text);
        struct bw_error *unknown =
            bw_registry_find(checker->registry, volume->type.text, &state->type);
        if (unknown)
            return refuse_type(checker, volume, unknown);
        BW_TRY(check_volume(checker, volume, state));
    }
    return NULL;
}

static struct bw_error *check_used(const struct checker *checker)
{
    const struct bw_plan *plan = checker->plan;
    for (size_t i = 0; i + 1 < plan->count; i++)
        if (!checker->states[i].used)
            return BW_REFUSE(plan->volumes[i].name.at,
                             "volume %s is used by no volume; only the last one, %s, may be on top",
                             plan->volumes[i].name.text, plan->volumes[plan->count - 1].name.text);
    return NULL;
}

static struct bw_error *check_all(struct checker *checker)
{
    BW_TRY(check_names(checker));
    BW_TRY(check_children(checker));
    BW_TRY(check_layers(checker));
    BW_TRY(check_used(checker));
    return bw_check_outputs(checker->plan, checker->registry, checker->inputs);
}

struct bw_error *bw_check_plan(const struct bw_plan *plan, struct bw_registry *registry,
                               struct bw_file_set *inputs)
{
    if (!plan->count)
        return bw_error_create(BW_ERROR_USAGE, "a graph without any volume");
    BW_AUTO_FREE struct state *states = calloc(plan->count, sizeof *states);
    BW_AUTO_FREE struct named *names = calloc(plan->count, sizeof *names);
    if (!states || !names)
        return bw_error_no_memory();
    return check_all(&(struct checker){plan, registry, inputs, states, names});
}
