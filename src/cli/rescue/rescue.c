/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rescue command: the readable files of a damaged file system, and how to save them.
 *
 * It opens the file system, reads all files, searches older generations for those that cannot be
 * read, and plans the commands that save them all. With --extract, a child process does this, which
 * confines itself; only the plan comes back, and this process runs the commands.
 */
#include "cli/rescue/rescue.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "cli/common/monitor.h"

static const struct cmd_option options[] = {
    {0, "extract", "DEST", "run the commands, and save everything below this directory",
     CMD_TEXT(struct rescue_settings, folder)},
    {0, "list", NULL, "print a row for each file, with its status, at once",
     CMD_FLAG(struct rescue_settings, list)},
    {0, "dmesg", "FILE", "instead, explain the messages in this kernel log ('-': stdin)",
     CMD_TEXT(struct rescue_settings, dmesg)},
    {0, "no-data", NULL,
     "do not read data: only missing devices and lost metadata are taken into account",
     CMD_FLAG(struct rescue_settings, no_data)},
    CMD_GROUP(cmd_index_options, struct rescue_settings, index),
    CMD_THREADS_OPTION(struct rescue_settings, export.walk.threads),
    {0},
};

/* The record. */

static struct bw_error *list_subvolumes(void *context, struct bw_record_sink *sink)
{
    enum {
        VERIFIED = BW_RECOVERABLE_VERIFIED,
        UNVERIFIED = BW_RECOVERABLE_UNVERIFIED,
        PARTLY = BW_RECOVERABLE_PARTLY,
        LOST = BW_RECOVERABLE_LOST,
        CORRECTED = BW_RECOVERABLE_CORRECTED,
    };
    const struct rescue *rescue = context;
    for (size_t i = 0; i < rescue->subvolumes.count; i++) {
        const struct rescue_subvolume *subvolume = &rescue->subvolumes.items[i];
        const struct bw_bytes path = {subvolume->path,
                                      subvolume->path ? strlen(subvolume->path) : 0};
        const struct bw_rescuesubvolumeinfo row = {
            .subvolume = subvolume->id,
            .subvolume_path = path,
            .subvolume_path_bytes = path,
            .complete = subvolume->is_readable,
            .verified_files = subvolume->files[VERIFIED],
            .verified_bytes = subvolume->bytes[VERIFIED],
            .unverified_files = subvolume->files[UNVERIFIED],
            .unverified_bytes = subvolume->bytes[UNVERIFIED],
            .partly_files = subvolume->files[PARTLY],
            .partly_bytes = subvolume->bytes[PARTLY],
            .bad_bytes = subvolume->bad,
            .lost_files = subvolume->files[LOST],
            .lost_bytes = subvolume->bytes[LOST],
            .corrected_files = subvolume->files[CORRECTED],
            .corrected_bytes = subvolume->bytes[CORRECTED],
        };
        BW_TRY(sink->visit(sink, &row, sizeof row));
    }
    return NULL;
}

static struct bw_error *list_generations(void *context, struct bw_record_sink *sink)
{
    const struct rescue *rescue = context;
    for (size_t i = 0; i < rescue->generations.count; i++) {
        const struct rescue_generation *found = &rescue->generations.items[i];
        struct bw_rescuegenerationinfo row = {.generation = found->choice.generation,
                                              .changed = found->changed,
                                              .files = found->files,
                                              .bytes = found->bytes};
        if (!row.changed)
            row.changed = BW_ABSENT_SIGNED;
        BW_TRY(sink->visit(sink, &row, sizeof row));
    }
    return NULL;
}

static struct bw_error *list_steps(void *context, struct bw_record_sink *sink)
{
    const struct rescue *rescue = context;
    for (size_t i = 0; i < rescue_step_count(&rescue->plan); i++) {
        BW_AUTO_BUFFER struct bw_buffer text = {0};
        rescue_append_step(&text, &rescue->plan, i, &rescue->common, RESCUE_FOLDER);
        BW_TRY(bw_buffer_terminate(&text));
        const struct bw_rescuestepinfo row = {.step = rescue_step_name(&rescue->plan, i),
                                              .shell_command = text.data};
        BW_TRY(sink->visit(sink, &row, sizeof row));
    }
    return NULL;
}

static struct bw_error *write_answer(struct rescue *rescue)
{
    const char *state = "healthy";
    if (rescue_has_damage(rescue) || !rescue_total(rescue).is_readable)
        state = "damaged";
    else if (rescue->problem_count)
        state = "degraded";
    const char *option = rescue_open_option(&rescue->plan);
    const struct bw_bytes option_text = {option, option ? strlen(option) : 0};
    const struct bw_rescueinfo row = {
        .label = rescue->super.label,
        .fsid = {(const char *)rescue->super.fsid, BW_UUID_SIZE},
        .size = rescue->super.total_bytes,
        .used = rescue->super.bytes_used,
        .device_count = rescue->super.device_count,
        .missing_devices = bw_fs_status(rescue->fs).missing_devices,
        .generation = bw_fs_status(rescue->fs).generation,
        .newest_generation = rescue->super.generation,
        .state = state,
        .open_options = {&option_text, option != NULL},
        .problem_count = rescue->problem_count,
        .problems = {rescue_list_problems, rescue},
        .by_subvolume = {list_subvolumes, rescue},
        .generations = {list_generations, rescue},
        .hidden_files = rescue->hidden_files,
        .deleted_files = rescue->deleted_files,
        .steps = {list_steps, rescue},
        .corrected_blocks = bw_fs_status(rescue->fs).corrected_blocks,
        .not_searched = bw_fs_status(rescue->fs).not_searched,
        .others = {rescue_list_others, rescue},
        .searched_others = rescue->searched_others,
        .mismatched_files = rescue->mismatched_files,
    };
    return cmd_format_write(&rescue->answer, &row, sizeof row);
}

static int by_files(const void *a, const void *b)
{
    const struct rescue_generation *left = a, *right = b;
    return (left->files < right->files) - (left->files > right->files);
}

/* Opens the file system, reads it, plans how to save the files, and answers. */
static struct bw_error *rescue_all(struct rescue *rescue)
{
    struct bw_error *why = rescue_open(rescue);
    if (why) {
        BW_AUTO_ERROR struct bw_error *error = NULL;
        if (!rescue->settings->list)
            error = rescue_find_others(rescue, why);
        if (!error && rescue->others.count) {
            struct bw_rescueinfo row;
            bw_record_clear(bw_record_find("rescueinfo"), &row);
            row.problems = (struct bw_records){NULL, rescue};
            row.others = (struct bw_records){rescue_list_others, rescue};
            error = cmd_format_write(&rescue->answer, &row, sizeof row);
        }
        bw_error_add_cause(why, BW_TAKE(error));
        return why;
    }
    BW_TRY(rescue_find_problems(rescue));
    BW_TRY(rescue_assess(rescue));
    BW_TRY(rescue_find_unverified(rescue));
    if (!rescue->settings->list)
        BW_TRY(rescue_look_back(rescue));
    if (atomic_load(&rescue->no_memory))
        return bw_error_no_memory();
    if (rescue->settings->list)
        return NULL;
    BW_TRY(rescue_find_others(rescue, NULL));

    struct rescue_plan *plan = &rescue->plan;
    plan->accepts_blocks =
        rescue->accepted_files || rescue->accepted_directories || plan->accepts_partly;
    plan->accepts_newer &= plan->accepts_blocks;
    const struct rescue_subvolume total = rescue_total(rescue);
    plan->whole = total.files[BW_RECOVERABLE_VERIFIED] || total.files[BW_RECOVERABLE_UNVERIFIED];
    plan->unverified = rescue->unchecked_files || rescue->mismatched_files || plan->accepts_blocks;
    plan->corrected = rescue->corrected_files;
    plan->searches = bw_fs_status(rescue->fs).corrected_blocks &&
                     rescue->super.checksum_type != BW_CHECKSUM_CRC32C;
    plan->partly = rescue->missed_total > rescue->unchecked_files + rescue->corrected_files +
                                              rescue->accepted_files + rescue->accepted_remains;
    plan->whole |= rescue->missed_total || plan->accepts_blocks; /* it makes lists for others */
    plan->lost = rescue->hidden_files;
    plan->deleted = rescue->deleted_files;
    rescue_generations_sort(&rescue->generations, by_files);
    for (size_t i = 0; i < rescue->generations.count && i < RESCUE_GENERATIONS; i++)
        plan->generations[plan->generation_count++] = rescue->generations.items[i].choice;
    return write_answer(rescue);
}

static bool print_only_with_verbose(enum bw_severity severity, const struct bw_error *error)
{
    (void)severity, (void)error;
    return false;
}

struct rescue *rescue_create(const struct cmd_common *common, struct rescue_settings *settings)
{
    struct rescue *rescue = calloc(1, sizeof *rescue);
    if (!rescue)
        return NULL;
    rescue->settings = settings;
    rescue->common = *common;
    rescue->given = common->input;
    pthread_mutex_init(&rescue->repeats.lock, NULL);
    pthread_mutex_init(&rescue->verified.lock, NULL);
    pthread_mutex_init(&rescue->unverified.lock, NULL);
    rescue->common.messages.listener = (struct bw_reporter){rescue_note_problem, rescue};
    if (!common->messages.verbose)
        rescue->common.messages.is_selected = print_only_with_verbose;
    return rescue;
}

void rescue_destroy(struct rescue *rescue)
{
    bw_extent_reader_destroy(rescue->extents);
    bw_extent_reader_destroy(rescue->finished_extents);
    bw_data_reader_destroy(rescue->reader);
    bw_fs_close(rescue->fs);
    for (size_t i = 0; i < rescue->problem_count; i++)
        free(rescue->problems[i].message);
    for (size_t i = 0; i < rescue->subvolumes.count; i++)
        free(rescue->subvolumes.items[i].path);
    rescue_subvolumes_free(&rescue->subvolumes);
    rescue_missed_list_free(&rescue->missed);
    rescue_generations_free(&rescue->generations);
    bw_key_map_free(&rescue->missed_paths);
    bw_buffer_free(&rescue->paths);
    bw_range_set_free(&rescue->incomplete);
    rescue_verified_free(&rescue->verified);
    rescue_verified_free(&rescue->unverified);
    for (size_t i = 0; i < rescue->others.count; i++)
        free(rescue->others.items[i].problem);
    rescue_others_free(&rescue->others);
    pthread_mutex_destroy(&rescue->repeats.lock);
    cmd_format_free(&rescue->answer);
    free(rescue);
}

/* The status for losses that the answer contains, which are reported on stderr. */
static int report_losses(const struct rescue *rescue)
{
    const struct bw_fs_status status = bw_fs_status(rescue->fs);
    const struct rescue_subvolume total = rescue_total(rescue);
    struct bw_error *error;
    const uint64_t corrected = rescue->corrected_files;
    if (corrected && corrected == rescue->missed_total)
        error = bw_error_create(BW_ERROR_CORRUPT,
                                "%" PRIu64 " file%s can be read only with --correct-bits",
                                corrected, bw_plural(corrected));
    else if (rescue->missed_total &&
             rescue->missed_total == corrected + rescue->unchecked_files + rescue->accepted_files)
        error = bw_error_create(BW_ERROR_CORRUPT, "%" PRIu64 " file%s cannot be verified",
                                rescue->missed_total, bw_plural(rescue->missed_total));
    else if (rescue->missed_total)
        error = bw_error_create(BW_ERROR_CORRUPT, "%" PRIu64 " file%s cannot be read completely",
                                rescue->missed_total, bw_plural(rescue->missed_total));
    else if (!total.is_readable)
        error = bw_error_create(BW_ERROR_CORRUPT, "the top directory of a subvolume is lost");
    else if (rescue_is_older(rescue))
        error = bw_error_create(BW_ERROR_CORRUPT,
                                "generation %" PRIu64 " cannot be read, only generation %" PRIu64,
                                rescue->super.generation, status.generation);
    else if (status.damages && !rescue->hidden_files && !rescue->is_damaged)
        error = bw_error_create(BW_ERROR_CORRUPT, "files were omitted; see the problems");
    else if (rescue->hidden_files || status.damages)
        error = bw_error_create(BW_ERROR_CORRUPT, "metadata are damaged; files may be missing");
    else if (status.unused_images)
        error = bw_error_create(BW_ERROR_CORRUPT, "not all of the given images could be used");
    else
        return STATUS_OK;
    if (!rescue->common.messages.quiet)
        return cmd_miss(&rescue->common, error);
    const int result = cmd_status_of(error->code, CMD_LOST_PART);
    bw_error_free(error);
    return result;
}

/* Opens, reads and answers; sets `*found`. Returns the exit status. Only the images are open in the
 * session: the file system is opened with one attempt after the other. */
static int report_files(const struct cmd_common *common, struct rescue_settings *settings,
                        struct rescue_plan *found)
{
    const struct cmd_format_plan plan = cmd_plan_of(&cmd_rescue, settings);
    struct rescue *rescue = rescue_create(common, settings);
    if (!rescue)
        return cmd_fail(common, bw_error_no_memory());
    rescue->common.input.index = &settings->index;
    cmd_advise_on_interrupt(
        common, settings->no_data ? "nothing was written; repeat the command"
                                  : "nothing was written; --no-data answers without reading files");
    if (settings->list && common->format.null && cmd_format_is_for_people(common))
        rescue->common.format.columns = "path";
    struct bw_error *error = cmd_format_begin(&rescue->answer, &rescue->common, &plan);
    int status = cmd_fail(common, error);
    if (!status)
        status = cmd_open_to(&rescue->common, CMD_OPEN_IMAGES, &rescue->answer.session);
    if (!status) {
        /* Opening the images has asked for passphrases; each attempt would ask again. */
        rescue->common.input.never_asks = rescue->given.never_asks = true;
        error = rescue_all(rescue);
        cmd_progress_end();
        cmd_monitor_watch(rescue->answer.session.fs, NULL, NULL);
        if (error && !rescue->fs) {
            status = cmd_fail_to_open(&rescue->common, error);
            error = rescue->others.count ? cmd_format_end(&rescue->answer, NULL) : NULL;
        } else {
            error = cmd_format_end(&rescue->answer, error);
            if (!error)
                status = report_losses(rescue);
        }
        status = cmd_end(&rescue->common, &rescue->answer.session, error, status);
    }
    *found = rescue->plan;
    rescue_destroy(rescue);
    return status;
}

/* Saving. */

struct bw_error *rescue_wait(pid_t child, int problem, const char *what, int *status)
{
    *status = 0;
    if (child < 0)
        return bw_error_from_errno(problem, "cannot start a process");
    while (waitpid(child, status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(*status))
        return NULL;
    return bw_error_create(BW_ERROR_SYSTEM, "%s was ended by signal %d (%s)", what,
                           WTERMSIG(*status), strsignal(WTERMSIG(*status)));
}

/* Answers in a child process, which confines itself; only the plan comes back. */
static int answer_in_child(const struct cmd_common *common, struct rescue_settings *settings,
                           struct rescue_plan *plan, bool *found)
{
    int channel[2], status;
    if (pipe(channel))
        return cmd_fail(common, bw_error_from_errno(errno, "cannot make a pipe"));
    cmd_leave_keyboard();
    const pid_t parent = getpid(), child = fork();
    if (child == 0) {
        struct rescue_plan own = {.whole = false};
        cmd_take_keyboard(0);
        cmd_end_with_parent(parent);
        close(channel[0]);
        const int result = report_files(common, settings, &own);
        exit(write(channel[1], &own, sizeof own) == sizeof own ? result : STATUS_PARTIAL);
    }
    const int problem = errno;
    cmd_leave_keyboard_to(child);
    close(channel[1]);
    *found = child > 0 && read(channel[0], plan, sizeof *plan) == sizeof *plan;
    close(channel[0]);
    struct bw_error *error =
        rescue_wait(child, problem, "the process that reads the file system", &status);
    cmd_take_keyboard(status);
    return error ? cmd_fail(common, error) : WEXITSTATUS(status);
}

/* The time for searches is shared memory in `given`. A third of it is for the plan, and the steps
 * search again what the plan has found. */
static int save_files(const struct cmd_common *given, struct rescue_settings *settings)
{
    struct rescue_plan plan;
    struct cmd_common own = *given;
    struct cmd_folder base = {.path = settings->folder};
    bool found = false;
    own.input.fs.ignore_checksums = 0; /* the plan has it where it is needed */
    struct bw_error *error = cmd_open_folder(given, base.path, &base.descriptor, NULL);
    if (error)
        return cmd_fail(given, error);
    struct bw_search_limit *limit = given->input.fs.search_limit;
    const uint64_t for_steps = limit->nanoseconds / 3 * 2;
    limit->nanoseconds -= for_steps;
    int status = answer_in_child(given, settings, &plan, &found);
    limit->nanoseconds += for_steps;
    if (!found && status < STATUS_CANNOT)
        status = cmd_fail(given, bw_error_create(BW_ERROR_SYSTEM, "the process that reads the "
                                                                  "file system returned no plan"));
    if (found && status < STATUS_CANNOT && rescue_step_count(&plan) &&
        rescue_apply_plan(&plan, &own.input)) {
        const int saved = rescue_run_steps(&plan, &own, &base);
        status = saved > status ? saved : status;
    }
    close(base.descriptor);
    return status;
}

static int run(const struct cmd_common *common, void *state)
{
    struct rescue_settings *settings = state;
    struct rescue_plan plan;
    struct cmd_common own = *common;
    if (settings->folder && settings->list)
        return cmd_refuse(common, "--extract and --list exclude each other");
    if (settings->dmesg)
        return dmesg_run(common, settings->dmesg);

    /* Everything that is opened, also in other processes, shares the time for searches. */
    struct bw_search_limit *limit =
        mmap(NULL, sizeof *limit, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (limit == MAP_FAILED)
        return cmd_fail(common, bw_error_no_memory());
    limit->nanoseconds = CMD_SEARCH_SECONDS * UINT64_C(1000000000);
    own.input.fs.search_limit = limit;
    const int status =
        settings->folder ? save_files(&own, settings) : report_files(&own, settings, &plan);
    munmap(limit, sizeof *limit);
    return status;
}

static struct cmd_format_plan plan_of(const void *state)
{
    const struct rescue_settings *settings = state;
    if (settings->dmesg)
        return (struct cmd_format_plan){.record = "kernelmessageinfo"};
    if (settings->list)
        return (struct cmd_format_plan){.record = "rescuefileinfo",
                                        .columns = "recoverable,size,bad_bytes,path"};
    return (struct cmd_format_plan){.print = rescue_print, .has_units = true};
}

const struct command cmd_rescue = {
    .name = "rescue",
    .topic = cmd_topic_health,
    .operands = "IMAGE...",
    .summary = "Shows and saves the readable files of a damaged disk.",
    .details =
        "\n"
        "Opens the file system with the best superblock, rebuilt trees and backup roots, as\n"
        "every command does. If that fails, it tries other superblock copies, ignores the log,\n"
        "and finally tries --scan. Then it reads all files. It prints the problems, the numbers\n"
        "of whole, partly readable and lost files, further files in older generations, and the\n"
        "commands that save these files. A flipped bit is corrected, in data, too: such files\n"
        "are whole, but counted and saved separately. So are unverified files, which can be\n"
        "read only if wrong or lost checksums of their data or metadata are ignored.\n\n"
        "It also searches for other file systems, which were overwritten, but whose tree blocks\n"
        "are still on the devices; on more than 64 GiB, and with --no-data, only with --scan.\n"
        "If devices have diverged, it reads each side. It counts the files of each, and prints\n"
        "the commands that save them.\n\n"
        "--extract runs these commands. It saves whole files to DEST/whole, those with\n"
        "corrected data to DEST/corrected, unverified ones to DEST/unverified, older versions\n"
        "of all that are not whole and verified to DEST/generation-N,\n"
        "their remains, with zeros for unreadable ranges, to DEST/partly, and files that only\n"
        "older generations have to DEST/lost and DEST/deleted. DEST/NAME.json lists the files in "
        "DEST/NAME with their SHA-256;\n"
        "DEST/NAME.missed has the paths that are missing there, and DEST/unsaved the paths of\n"
        "files that could not be saved at all. An incomplete list is marked at its end.\n"
        "Run it again to continue. Links in DEST are not followed.\n\n"
        "Nothing is written to the images.\n",
    .examples = "  btrfs-walk rescue disk.img                     problems and readable files\n"
                "  btrfs-walk rescue --extract saved /dev/sdb2    save it\n"
                "  btrfs-walk rescue --no-data /dev/sdb2          in minutes, not hours\n"
                "  btrfs-walk rescue --list --json disk.img       each file\n",
    .options = options,
    .record = "rescueinfo",
    .plan_of = plan_of,
    .run = run,
    .state_size = sizeof(struct rescue_settings),
};
