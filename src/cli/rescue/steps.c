/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The commands that save the readable files: their words, printed or run.
 *
 * The first step extracts all whole files, and lists those that it misses. Each of the others tries
 * the files of that list again in another way, and lists what it misses, too. Files whose flipped
 * bits are corrected come next; the later steps try only those that are not whole even then. Those
 * that are in all lists are listed as unsaved at the end. Each step is a process, because each
 * command confines itself to its own files.
 */
#include "cli/rescue/rescue.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "base/beneath.h"
#include "base/cleanup.h"
#include "base/escape.h"
#include "base/human.h"
#include "cli/common/keys.h"
#include "cli/common/list_file.h"
#include "cli/common/monitor.h"
#include "cli/common/sandbox.h"

enum kind { WHOLE, CORRECTED, UNVERIFIED, UNVERIFIED_PARTLY, OLDER, PARTLY, LOST, DELETED };

static const char *const kind_names[] = {"whole", "corrected", "unverified", "unverified-partly",
                                         "older", "partly",    "lost",       "deleted"};

struct step {
    enum kind kind;
    struct rescue_choice generation; /* of OLDER */
    bool follows_renames;
};

/* Gets step `number`; past the end, `*step` is unchanged. Returns the number of steps. */
static size_t find_step(const struct rescue_plan *plan, size_t number, struct step *step)
{
    struct step steps[RESCUE_STEPS];
    size_t count = 0;
    if (plan->whole)
        steps[count++] = (struct step){.kind = WHOLE};
    if (plan->corrected)
        steps[count++] = (struct step){.kind = CORRECTED};
    if (plan->unverified)
        steps[count++] = (struct step){.kind = UNVERIFIED};
    if (plan->accepts_partly)
        steps[count++] = (struct step){.kind = UNVERIFIED_PARTLY};
    for (unsigned i = 0; i < plan->generation_count && i < RESCUE_GENERATIONS; i++)
        steps[count++] = (struct step){OLDER, plan->generations[i], plan->follows_renames};
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
    struct bw_strings list;
    bool failed;
};

static void add_word(struct words *words, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add_word(struct words *words, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    if (!text || bw_strings_reserve(&words->list, 1)) {
        free(text);
        words->failed = true;
        return;
    }
    words->list.items[words->list.count++] = text;
}

/* Options and images, as on the command line. */

bool rescue_apply_plan(const struct rescue_plan *plan, struct cmd_input *input)
{
    if ((plan->superblock_copy && input->fs.superblock_copy) ||
        (plan->ignores_log && input->log_given) || (plan->scan && input->fs.scan))
        return false;
    if (plan->superblock_copy)
        input->fs.superblock_copy = plan->superblock_copy;
    if (plan->ignores_log)
        input->fs.log = BW_LOG_IGNORE;
    input->fs.scan |= plan->scan;
    return true;
}

const char *rescue_open_option(const struct rescue_plan *plan)
{
    static const char *const copies[] = {NULL, "--super 1", "--super 2", "--super 0"};
    if (plan->superblock_copy)
        return copies[plan->superblock_copy];
    if (plan->ignores_log)
        return "--log=ignore";
    if (plan->scan)
        return "--scan";
    return NULL;
}

static void add_keys(struct words *words, const struct cmd_input *input)
{
    const struct cmd_keys *keys = input->keys;
    if (input->fs.key_work)
        add_word(words, "--key-work=%" PRIu64, input->fs.key_work);
    for (size_t i = 0; i < keys->count; i++) {
        const struct cmd_key_origin *origin = &keys->origins[i];
        if (origin->file)
            add_word(words, "--key-file=%s", origin->file);
        else
            add_word(words, "--key-fd=%d", origin->descriptor);
    }
}

/* The device to open in the images, or in the file of the --inside before it. */
static void add_choice(struct words *words, const char *partition, const char *volume,
                       uint64_t offset)
{
    if (partition)
        add_word(words, "--partition=%s", partition);
    if (volume)
        add_word(words, "--volume=%s", volume);
    if (offset)
        add_word(words, "--image-offset=%" PRIu64, offset);
}

static void add_input(struct words *words, const struct cmd_input *input,
                      const struct bw_generation_choice *state)
{
    static const char *const kinds[] = {
        [BW_CHECKSUMS_METADATA] = "metadata", [BW_CHECKSUMS_DATA] = "data", "all"};
    static const char *const helpers[] = {
        [BW_HELPERS_OFF] = "off", [BW_HELPERS_ON] = "on", [BW_HELPERS_BACKING] = "backing"};
    if (input->fs.superblock_copy)
        add_word(words, "--super=%d", input->fs.superblock_copy % BW_SUPERBLOCK_NUMBERS);
    if (input->fs.header)
        add_word(words, "--luks-header=%s", input->fs.header);
    add_choice(words, input->fs.partition, input->fs.volume, input->fs.offset);
    for (size_t i = 0; i < input->inside_count; i++) {
        const struct bw_inside_choice *choice = &input->inside_choices[i];
        add_word(words, "--inside=%s", input->inside[i]);
        add_choice(words, choice->partition, choice->volume, choice->offset);
    }
    if (input->log_given || input->fs.log)
        add_word(words, "--log=%s", input->fs.log == BW_LOG_IGNORE ? "ignore" : "replay");
    if (input->helpers != BW_HELPERS_ON)
        add_word(words, "--helpers=%s", helpers[input->helpers]);
    if (input->timeout)
        add_word(words, "--timeout=%ums", input->timeout);
    if (input->fs.scan)
        add_word(words, "--scan");
    if (input->has_fsid) {
        char fsid[UUID_STR_LEN];
        uuid_unparse_lower(input->fsid, fsid);
        add_word(words, "--fsid=%s", fsid);
    }
    if (input->fs.alternatives)
        add_word(words, "--alternatives");
    if (input->fs.ignore_checksums)
        add_word(words, "--ignore-checksums=%s", kinds[input->fs.ignore_checksums]);
    if (input->fs.side)
        add_word(words, "--side=%" PRIu64, input->fs.side);
    for (size_t i = 0; i < input->overlays.count; i++)
        add_word(words, "--patch=%s", input->overlays.items[i]);
    for (size_t i = 0; i < input->maps.count; i++)
        add_word(words, "--map=%s", input->maps.items[i] ? input->maps.items[i] : "");
    if (state->generation)
        add_word(words, "--generation=%" PRIu64, state->generation);
    if (state->tree_root && state->tree_root_generation)
        add_word(words, "--tree-root=%" PRIu64 "@%" PRIu64, state->tree_root,
                 state->tree_root_generation);
    else if (state->tree_root)
        add_word(words, "--tree-root=%" PRIu64, state->tree_root);
    if (state->chunk_root)
        add_word(words, "--chunk-root=%" PRIu64, state->chunk_root);
    if (input->graph.file)
        add_word(words, "--graph=%s", input->graph.file);
    for (size_t i = 0; i < input->graph.edit_count; i++) {
        const struct bw_graph_edit *edit = &input->edits[i];
        const char *option = edit->kind == BW_EDIT_INSERT ? "insert" : "xlator-option";
        add_word(words, "--%s=%s", option, edit->text);
    }
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

/* The words of a step without those for keys, which are read only once. */
static void add_words(struct words *words, const struct rescue_plan *plan, size_t number,
                      const struct cmd_common *common, const char *folder)
{
    struct step step = {.kind = WHOLE};
    char target[TARGET_ROOM];
    find_step(plan, number, &step);
    write_target(&step, target);
    if (is_deleted(&step)) {
        add_word(words, "deleted");
        add_word(words, "--extract=%s/%s", folder, target);
    } else {
        add_word(words, "extract");
        add_word(words, "--directory=%s/%s", folder, target);
    }
    add_word(words, "--skip-existing");
    add_word(words, "--manifest=%s/%s.json", folder, target);
    if (step.kind == LOST)
        add_word(words, "--lost");
    if (step.kind == PARTLY || step.kind == UNVERIFIED_PARTLY)
        add_word(words, "--on-error=zero");
    if (plan->searches)
        add_word(words, "--xlator-option=verify.search-time=%ds", CMD_SEARCH_SECONDS);
    if (step.kind == CORRECTED || (step.kind == PARTLY && plan->corrects_partly))
        add_word(words, "--correct-bits");
    if (step.kind == OLDER && step.follows_renames)
        add_word(words, "--follow-renames");
    if (!is_deleted(&step))
        add_word(words, "--missed=%s/%s.missed", folder, target);
    /* All files in tree blocks with wrong checksums, many of which no list contains. */
    const bool accepts_blocks = step.kind == UNVERIFIED && plan->accepts_blocks;
    if (accepts_blocks && !plan->accepts_newer)
        add_word(words, "--except=%s/whole.json", folder);
    if (accepts_blocks && !plan->accepts_newer && plan->corrected)
        add_word(words, "--except=%s/corrected.json", folder);
    if (is_repeated(&step) && !accepts_blocks) {
        add_word(words, "--from0");
        /* Corrected files are whole: the other steps try only the rest. */
        const char *list = "whole";
        if (step.kind == UNVERIFIED_PARTLY)
            list = "unverified";
        else if (plan->corrected && step.kind != CORRECTED)
            list = "corrected";
        add_word(words, "--files-from=%s/%s.missed", folder, list);
    }

    struct bw_generation_choice state = common->input.fs.state;
    if (step.kind == OLDER && step.generation.tree_root)
        state = (struct bw_generation_choice){.tree_root = step.generation.tree_root,
                                              .tree_root_generation = step.generation.generation};
    else if (step.kind == OLDER)
        state = (struct bw_generation_choice){.generation = step.generation.generation};
    struct cmd_input input = common->input;
    if (step.kind == UNVERIFIED || step.kind == UNVERIFIED_PARTLY)
        input.fs.ignore_checksums |= BW_CHECKSUMS_DATA;
    if (accepts_blocks || step.kind == UNVERIFIED_PARTLY)
        input.fs.ignore_checksums |= BW_CHECKSUMS_METADATA;
    add_input(words, &input, &state);
}

/* Printing. */

static void append_words(struct bw_buffer *text, struct words *words)
{
    bw_buffer_format(text, "btrfs-walk");
    for (size_t i = 0; i < words->list.count; i++) {
        bw_buffer_append_byte(text, ' ');
        bw_append_shell_word(text, words->list.items[i]);
    }
    text->failed |= words->failed;
    bw_strings_free_all(&words->list);
}

void rescue_append_step(struct bw_buffer *text, const struct rescue_plan *plan, size_t number,
                        const struct cmd_common *common, const char *folder)
{
    struct words words = {.list.count = 0};
    add_words(&words, plan, number, common, folder);
    add_keys(&words, &common->input);
    append_words(text, &words);
}

void rescue_append_command(struct bw_buffer *text, const struct cmd_common *common,
                           const char *const *own)
{
    struct words words = {.list.count = 0};
    for (; *own; own++)
        add_word(&words, "%s", *own);
    add_input(&words, &common->input, &common->input.fs.state);
    add_keys(&words, &common->input);
    append_words(text, &words);
}

void rescue_append_other(struct bw_buffer *text, const struct rescue *rescue,
                         const struct rescue_other *other)
{
    static const char *const own[] = {"rescue", NULL};
    struct cmd_common common = rescue->common;
    common.input = rescue_input_of(rescue, other);
    rescue_append_command(text, &common, own);
}

/* Running. */

/* Lists in the folder. Their names have no '/'. */

static struct bw_error *open_list(const struct cmd_folder *base, const char *name,
                                  struct cmd_list_file *list)
{
    const int descriptor = bw_open_sole(base->descriptor, name);
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    const int problem = errno;
    bw_buffer_format(&path, "%s/%s", base->path, name);
    if (descriptor < 0)
        return cmd_name_error(base->descriptor, name, bw_buffer_text(&path), problem);
    return cmd_list_file_open(list, descriptor, name, &cmd_incomplete_paths, 0);
}

/* Reads a list of paths, each of which ends with a NUL. `*complete`: it exists, and does not end
 * with the mark. */
static struct bw_error *read_list(const struct cmd_folder *base, const char *name,
                                  struct bw_buffer *paths, bool *complete)
{
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    paths->length = 0;
    *complete = false;
    bw_buffer_format(&path, "%s/%s", base->path, name);
    struct bw_error *error = cmd_read_in_base(base, name, bw_buffer_text(&path), paths);
    if (error && error->system == ENOENT) {
        bw_error_free(error);
        return NULL;
    }
    *complete = !error && !cmd_list_file_take_mark(paths);
    for (; paths->length && paths->data[paths->length - 1]; paths->length--)
        *complete = false; /* the last path was not written completely */
    return error;
}

enum { NAME_ROOM = TARGET_ROOM + sizeof ".missed" };

static void write_list_name(const struct step *step, char name[NAME_ROOM])
{
    char target[TARGET_ROOM];
    write_target(step, target);
    snprintf(name, NAME_ROOM, "%s.missed", target);
}

/*
 * Writes the list of the files that no step has saved, and closes it: those in the list of the
 * first step that are in the lists of all steps that tried again. If a step did not end, it may not
 * have tried files that are not in its list, so that list is ignored. Confines the process, which
 * starts no others any more: paths in lists come from the image. Returns the exit status.
 */
static int write_unsaved_list(const struct rescue_plan *plan, const struct cmd_common *common,
                              const struct cmd_folder *base, struct cmd_list_file *file)
{
    struct cmd_common own = *common;
    struct cmd_folder folder = *base;
    struct step step = {.kind = WHOLE};
    struct bw_key_map lists = {0}; /* by hash of a path: how many lists have it, if all before do */
    uint32_t before = 0;           /* the number of lists before the current one */
    uint64_t count = 0;            /* unsaved files */
    BW_AUTO_BUFFER struct bw_buffer paths = {0};
    char name[NAME_ROOM];
    bool complete = false, writes_zeros = false;
    own.writing.folder = &folder;
    own.writing.fsync = true;
    struct bw_error *error = cmd_sandbox_enter(&own, NULL);
    for (size_t i = 0; i < rescue_step_count(plan) && !error; i++) {
        bool is_usable;
        find_step(plan, i, &step);
        writes_zeros |= step.kind == PARTLY || step.kind == UNVERIFIED_PARTLY;
        if (!is_repeated(&step))
            continue;
        write_list_name(&step, name);
        error = read_list(base, name, &paths, &is_usable);
        if (error || !is_usable)
            continue;
        const uint32_t expected = before ? before : UINT32_MAX;
        for (size_t at = 0, length; at < paths.length && !error; at += length + 1) {
            length = strlen(paths.data + at);
            const uint64_t hash = bw_hash_path(paths.data + at, length);
            if (bw_key_map_get(&lists, hash, UINT32_MAX) == expected)
                error = bw_key_map_put(&lists, hash, before + 1);
        }
        before++;
    }
    if (!error) {
        write_list_name(&(struct step){.kind = WHOLE}, name);
        error = read_list(base, name, &paths, &complete);
    }
    for (size_t at = 0, length; at < paths.length && !error; at += length + 1) {
        length = strlen(paths.data + at);
        const uint64_t hash = bw_hash_path(paths.data + at, length);
        if (before && bw_key_map_get(&lists, hash, UINT32_MAX) != before)
            continue;
        count++;
        error = cmd_list_file_add(file, paths.data + at, length + 1);
    }
    bw_key_map_free(&lists);
    error = bw_error_first(error, cmd_list_file_close(&own, file, complete && !error));
    if (error)
        return cmd_fail_output(common, error);

    if (complete || count) {
        printf("\n%s%" PRIu64 " file%s could not be saved", complete ? "" : "At least ", count,
               bw_plural(count));
        if (count)
            printf(": see %s/unsaved", base->path);
        printf("%s\n", writes_zeros ? "; others have zeros in place of lost data" : "");
    }
    if (!complete)
        return cmd_miss(common, bw_error_create(BW_ERROR_SYSTEM,
                                                "%s/unsaved is incomplete, because a step did not "
                                                "end: run the same command again to continue",
                                                base->path));
    return count ? STATUS_PARTIAL : STATUS_OK;
}

/* Prints a step, and runs it in a child process, since each command confines its process to its own
 * files. Returns the exit status; reports why, if the step did not end by itself. */
static int run_step(const struct rescue_plan *plan, size_t number, const struct cmd_common *common,
                    const struct cmd_folder *base, const struct cmd_list_file *unsaved)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    rescue_append_step(&text, plan, number, common, base->path);
    if (text.failed)
        return cmd_fail_output(common, bw_error_no_memory());
    printf("\nStep %zu of %zu: %.*s\n", number + 1, rescue_step_count(plan), (int)text.length,
           text.data);

    struct step step = {.kind = WHOLE};
    find_step(plan, number, &step);
    if (!is_deleted(&step)) { /* the list of an earlier run is no longer right */
        struct cmd_list_file list;
        char name[NAME_ROOM];
        write_list_name(&step, name);
        struct bw_error *error = open_list(base, name, &list);
        if (!error)
            error = cmd_list_file_close(common, &list, false);
        if (error)
            return cmd_fail(common, error);
    }

    struct words words = {.list.count = 0};
    add_words(&words, plan, number, common, base->path);
    add_word(&words, "--fsync");
    if (words.failed) {
        bw_strings_free_all(&words.list);
        return cmd_fail_output(common, bw_error_no_memory());
    }
    const struct command *command = is_deleted(&step) ? &cmd_deleted : &cmd_extract;
    fflush(NULL);
    const pid_t parent = getpid(), child = fork();
    const int problem = errno;
    if (child == 0) {
        cmd_end_with_parent(parent);
        close(unsaved->descriptor);
        exit(cmd_run_step(&common->input, base, command, (int)words.list.count, words.list.items));
    }
    bw_strings_free_all(&words.list);
    int status;
    struct bw_error *error = rescue_wait(child, problem, "the step", &status);
    return error ? cmd_miss(common, error) : WEXITSTATUS(status);
}

int rescue_run_steps(const struct rescue_plan *plan, const struct cmd_common *common,
                     const struct cmd_folder *base)
{
    struct cmd_list_file unsaved;
    int worst = STATUS_OK;
    struct bw_error *error = open_list(base, "unsaved", &unsaved);
    if (error)
        return cmd_fail(common, error);
    for (size_t i = 0; i < rescue_step_count(plan); i++) {
        /* Steps read many of the same blocks, so each gets an equal part of the time. */
        struct bw_search_limit *limit = common->input.fs.search_limit;
        const uint64_t part = limit->nanoseconds / (rescue_step_count(plan) - i);
        const uint64_t rest = limit->nanoseconds - part;
        *limit = (struct bw_search_limit){.nanoseconds = part};
        const int status = run_step(plan, i, common, base, &unsaved);
        limit->nanoseconds += rest;
        if (limit->not_searched)
            printf("%" PRIu64 " bad block%s not searched for a flipped bit: the step has used up "
                   "its part of a minute\n",
                   limit->not_searched, limit->not_searched == 1 ? " was" : "s were");
        worst = status > worst ? status : worst;
    }
    const int status = write_unsaved_list(plan, common, base, &unsaved);
    return status > worst ? status : worst;
}
