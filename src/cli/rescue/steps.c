/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands that save the readable files. */
#include "cli/rescue/steps.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/escape.h"
#include "base/human.h"
#include "base/map.h"
#include "cli/common/keys.h"

const char rescue_folder[] = "saved";

enum kind { WHOLE, UNVERIFIED, OLDER, PARTLY, LOST, DELETED };

static const char *const kind_names[] = {"whole",  "unverified", "older",
                                         "partly", "lost",       "deleted"};

struct step {
    enum kind kind;
    struct rescue_choice generation; /* of OLDER */
};

/* The step with a number; `*step` stays unchanged behind the last. Returns their number. */
static size_t find_step(const struct rescue_plan *plan, size_t number, struct step *step)
{
    struct step steps[RESCUE_STEPS];
    size_t count = 0;
    if (plan->whole)
        steps[count++] = (struct step){.kind = WHOLE};
    if (plan->unverified)
        steps[count++] = (struct step){.kind = UNVERIFIED};
    for (unsigned i = 0; i < plan->generation_count && i < RESCUE_GENERATIONS; i++)
        steps[count++] = (struct step){OLDER, plan->generations[i]};
    if (plan->partly)
        steps[count++] = (struct step){.kind = PARTLY};
    if (plan->lost)
        steps[count++] = (struct step){.kind = LOST};
    if (plan->deleted)
        steps[count++] = (struct step){.kind = DELETED};
    if (number < count)
        *step = steps[number];
    return count;
}

size_t rescue_step_count(const struct rescue_plan *plan)
{
    struct step step;
    return find_step(plan, SIZE_MAX, &step);
}

const char *rescue_step_name(const struct rescue_plan *plan, size_t number)
{
    struct step step = {.kind = WHOLE};
    find_step(plan, number, &step);
    return kind_names[step.kind];
}

/* Words of a command. */

struct words {
    char **items;
    size_t count, capacity;
    bool failed;
};

static void add_word(struct words *words, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add_word(struct words *words, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    words->failed |= vasprintf(&text, format, arguments) < 0;
    va_end(arguments);
    if (words->failed || !BW_ARRAY_RESERVE(words->items, words->count, words->capacity)) {
        free(words->failed ? NULL : text);
        words->failed = true;
        return;
    }
    words->items[words->count++] = text;
}

static void free_words(struct words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->items[i]);
    free(words->items);
}

/* Options and images, as on the command line. */

bool rescue_apply_plan(const struct rescue_plan *plan, struct cmd_input *input)
{
    const struct bw_generation_choice *state = &input->state;
    const bool chosen = state->generation || state->tree_root || state->backup;
    if ((plan->superblock_copy && input->superblock_copy) || (plan->backup && chosen) ||
        (plan->ignores_log && input->log_given) || (plan->scan && input->scan))
        return false;
    if (plan->superblock_copy)
        input->superblock_copy = plan->superblock_copy;
    if (plan->backup)
        input->state.backup = plan->backup;
    if (plan->ignores_log)
        input->log = BW_LOG_IGNORE;
    input->scan |= plan->scan;
    return true;
}

const char *rescue_open_option(const struct rescue_plan *plan)
{
    static const char *const copies[] = {NULL, "--super 1", "--super 2", "--super 0"};
    static const char *const backups[] = {NULL, "--backup 0", "--backup 1", "--backup 2",
                                          "--backup 3"};
    return plan->superblock_copy ? copies[plan->superblock_copy]
           : plan->backup        ? backups[plan->backup]
           : plan->ignores_log   ? "--log=ignore"
           : plan->scan          ? "--scan"
                                 : NULL;
}

static void add_generation(struct words *words, const struct bw_generation_choice *state)
{
    if (state->generation)
        add_word(words, "--generation=%" PRIu64, state->generation);
    if (state->tree_root && state->tree_root_generation)
        add_word(words, "--tree-root=%" PRIu64 "@%" PRIu64, state->tree_root,
                 state->tree_root_generation);
    else if (state->tree_root)
        add_word(words, "--tree-root=%" PRIu64, state->tree_root);
    if (state->chunk_root)
        add_word(words, "--chunk-root=%" PRIu64, state->chunk_root);
    if (state->backup)
        add_word(words, "--backup=%u", state->backup - 1);
}

static void add_keys(struct words *words, const struct cmd_input *input)
{
    const struct cmd_keys *keys = input->keys;
    if (input->key_memory)
        add_word(words, "--key-memory=%" PRIu64, input->key_memory);
    for (size_t i = 0; i < keys->count; i++) {
        const struct cmd_key_origin *origin = &keys->origins[i];
        if (origin->file)
            add_word(words, "--key-file=%s", origin->file);
        else
            add_word(words, "--key-fd=%d", origin->descriptor);
    }
}

static void add_input(struct words *words, const struct cmd_input *input,
                      const struct bw_generation_choice *state)
{
    static const char *const helpers[] = {
        [BW_HELPERS_OFF] = "off", [BW_HELPERS_ON] = "on", [BW_HELPERS_BACKING] = "backing"};
    if (input->superblock_copy)
        add_word(words, "--super=%d", input->superblock_copy % BW_SUPERBLOCK_NUMBERS);
    if (input->partition)
        add_word(words, "--partition=%s", input->partition);
    if (input->volume)
        add_word(words, "--volume=%s", input->volume);
    for (size_t i = 0; i < input->inside_count; i++)
        add_word(words, "--inside=%s", input->inside[i]);
    if (input->header)
        add_word(words, "--luks-header=%s", input->header);
    if (input->offset)
        add_word(words, "--image-offset=%" PRIu64, input->offset);
    if (input->log_given || input->log)
        add_word(words, "--log=%s", input->log == BW_LOG_IGNORE ? "ignore" : "replay");
    if (input->helpers != BW_HELPERS_ON)
        add_word(words, "--helpers=%s", helpers[input->helpers]);
    if (input->timeout)
        add_word(words, "--timeout=%ums", input->timeout);
    if (input->scan)
        add_word(words, "--scan");
    if (input->alternatives)
        add_word(words, "--alternatives");
    for (size_t i = 0; i < input->map_count; i++)
        add_word(words, "--map=%s", input->maps[i] ? input->maps[i] : "");
    add_generation(words, state);
    for (size_t i = 0; i < input->image_count; i++)
        add_word(words, "%s%s", i ? "--device=" : "", input->images[i]);
}

enum { TARGET_ROOM = 40 };

/* The folder of a step, below the common one. */
static void write_target(const struct step *step, char target[TARGET_ROOM])
{
    if (step->kind == OLDER)
        snprintf(target, TARGET_ROOM, "generation-%" PRIu64, step->generation.generation);
    else
        snprintf(target, TARGET_ROOM, "%s", kind_names[step->kind]);
}

static bool is_deleted(const struct step *step)
{
    return step->kind == LOST || step->kind == DELETED;
}

/* Whether a step tries again what the first one could not extract. */
static bool is_repeated(const struct step *step)
{
    return !is_deleted(step) && step->kind != WHOLE;
}

/* The options of a step. */
static void add_step(struct words *words, const struct step *step, const char *folder)
{
    char target[TARGET_ROOM];
    write_target(step, target);
    add_word(words, is_deleted(step) ? "deleted" : "extract");
    add_word(words, is_deleted(step) ? "--extract=%s/%s" : "--directory=%s/%s", folder, target);
    add_word(words, "--skip-existing");
    add_word(words, "--manifest=%s/%s.json", folder, target);
    if (step->kind == LOST)
        add_word(words, "--lost");
    if (step->kind == PARTLY)
        add_word(words, "--on-error=zero");
    if (step->kind == UNVERIFIED)
        add_word(words, "--no-checksums");
    if (!is_deleted(step))
        add_word(words, "--missed=%s/%s.missed", folder, target);
    if (is_repeated(step)) {
        add_word(words, "--from0");
        add_word(words, "--files-from=%s/whole.missed", folder);
    }
}

/* The words of a step without those for keys, which are read only once. */
static void add_words(struct words *words, const struct rescue_plan *plan, size_t number,
                      const struct cmd_common *common, const char *folder)
{
    struct step step = {.kind = WHOLE};
    struct bw_generation_choice state = common->input.state;
    find_step(plan, number, &step);
    if (step.kind == OLDER)
        state = (struct bw_generation_choice){
            .generation = step.generation.tree_root ? 0 : step.generation.generation,
            .tree_root = step.generation.tree_root,
            .tree_root_generation = step.generation.tree_root ? step.generation.generation : 0};
    add_step(words, &step, folder);
    add_input(words, &common->input, &state);
}

/* Printing. */

static void append_words(struct bw_buffer *text, struct words *words)
{
    bw_buffer_format(text, "btrfs-walk");
    for (size_t i = 0; i < words->count; i++) {
        bw_buffer_append_byte(text, ' ');
        bw_append_shell_word(text, words->items[i]);
    }
    text->failed |= words->failed;
    free_words(words);
}

void rescue_append_step(struct bw_buffer *text, const struct rescue_plan *plan, size_t number,
                        const struct cmd_common *common, const char *folder)
{
    struct words words = {.count = 0};
    add_words(&words, plan, number, common, folder);
    add_keys(&words, &common->input);
    append_words(text, &words);
}

/* Appends the rest of a command that writes everything to a folder. */
static void append_command(struct bw_buffer *text, struct words *words,
                           const struct cmd_common *common)
{
    add_input(words, &common->input, &common->input.state);
    add_keys(words, &common->input);
    append_words(text, words);
}

void rescue_append_all(struct bw_buffer *text, const struct cmd_common *common, const char *folder)
{
    struct words words = {.count = 0};
    add_word(&words, "rescue");
    add_word(&words, "--extract=%s", folder);
    append_command(text, &words, common);
}

void rescue_append_subvolumes(struct bw_buffer *text, const struct cmd_common *common,
                              const char *folder)
{
    struct words words = {.count = 0};
    add_word(&words, "extract");
    add_word(&words, "--subvolumes");
    add_word(&words, "--directory=%s", folder);
    append_command(text, &words, common);
}

/* Running. */

static const struct command *command_of(const char *name)
{
    return strcmp(name, cmd_deleted.name) == 0 ? &cmd_deleted : &cmd_extract;
}

/* Runs a step in a child process, since each command confines its process to its own files. */
static int run_step(struct words *words, struct cmd_keys *keys)
{
    if (words->failed || words->count > INT_MAX)
        return STATUS_PARTIAL;
    fflush(NULL);
    const pid_t child = fork();
    int status = 0;
    if (child == 0)
        exit(cmd_run_with_keys(keys, command_of(words->items[0]), (int)words->count, words->items));
    if (child < 0)
        return STATUS_PARTIAL;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_PARTIAL;
}

/* The files that no step has saved: their paths are in the lists of all steps that tried. */

/* Calls `visit` for the paths in a list, each of which ends with a NUL. */
static struct bw_error *read_list(const char *name,
                                  bool (*visit)(void *context, const char *path, size_t length),
                                  void *context)
{
    BW_AUTO_FREE char *path = NULL;
    size_t capacity = 0;
    ssize_t length;
    bool good = true;
    FILE *list = fopen(name, "re");
    if (!list)
        return bw_error_from_errno(errno, "cannot open %s", name);
    while (good && (length = getdelim(&path, &capacity, '\0', list)) > 0)
        good = visit(context, path, (size_t)length - (path[length - 1] == '\0'));
    fclose(list);
    return good ? NULL : bw_error_no_memory();
}

struct unsaved {
    struct bw_map lists; /* by hash of the path: how many lists have it, if all before have */
    uint32_t list;       /* the number of the current one */
    FILE *file;
    uint64_t count;
};

static bool count_list(void *context, const char *path, size_t length)
{
    struct unsaved *unsaved = context;
    const uint64_t hash = bw_hash_path(path, length);
    const uint32_t before = bw_map_get(&unsaved->lists, hash);
    return (unsaved->list && before != unsaved->list - 1) ||
           bw_map_put(&unsaved->lists, hash, unsaved->list);
}

static bool write_unsaved(void *context, const char *path, size_t length)
{
    struct unsaved *unsaved = context;
    if (bw_map_get(&unsaved->lists, bw_hash_path(path, length)) != unsaved->list - 1)
        return true;
    unsaved->count++;
    return fwrite(path, 1, length, unsaved->file) == length && putc('\0', unsaved->file) == 0;
}

/* Reads the lists of the steps that tried again, and the last of them once more. */
static struct bw_error *intersect_lists(struct unsaved *unsaved, const struct rescue_plan *plan,
                                        const char *folder)
{
    char name[PATH_MAX], target[TARGET_ROOM];
    const size_t count = rescue_step_count(plan);
    for (size_t i = 0; i < count; i++) {
        struct step step;
        find_step(plan, i, &step);
        if (!is_repeated(&step))
            continue;
        write_target(&step, target);
        snprintf(name, sizeof name, "%s/%s.missed", folder, target);
        BW_TRY(read_list(name, count_list, unsaved));
        unsaved->list++;
    }
    return read_list(name, write_unsaved, unsaved);
}

static struct bw_error *list_unsaved(const struct rescue_plan *plan, const char *folder)
{
    struct unsaved unsaved = {.list = 0};
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s/unsaved", folder);
    unsaved.file = fopen(name, "we");
    if (!unsaved.file)
        return bw_error_from_errno(errno, "cannot open %s", name);
    struct bw_error *error = intersect_lists(&unsaved, plan, folder);
    bw_map_free(&unsaved.lists);
    if (fclose(unsaved.file) && !error)
        error = bw_error_from_errno(errno, "cannot write to %s", name);
    if (!error)
        printf("\n%" PRIu64 " file%s could not be saved%s%s\n", unsaved.count,
               bw_plural(unsaved.count), unsaved.count ? ": see " : "", unsaved.count ? name : "");
    return error;
}

int rescue_run_steps(const struct rescue_plan *plan, const struct cmd_common *common,
                     const char *folder)
{
    const size_t count = rescue_step_count(plan);
    int worst = STATUS_OK;
    for (size_t i = 0; i < count; i++) {
        BW_AUTO_BUFFER struct bw_buffer text = {0};
        struct words words = {.count = 0};
        rescue_append_step(&text, plan, i, common, folder);
        printf("\nStep %zu of %zu: %.*s\n", i + 1, count, (int)text.length, text.data);
        add_words(&words, plan, i, common, folder);
        add_word(&words, "--fsync");
        const int status = run_step(&words, common->input.keys);
        free_words(&words);
        worst = status > worst ? status : worst;
    }
    if (!plan->partly && !plan->unverified)
        return worst;
    struct bw_error *error = list_unsaved(plan, folder);
    return error ? cmd_fail(common, error) : worst;
}
