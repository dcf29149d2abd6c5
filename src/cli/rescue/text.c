/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The answer for people: one screen. */
#include "cli/rescue/rescue.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/human.h"

enum {
    SHOWN_PROBLEMS = 12,
    SHOWN_SUBVOLUMES = 20,
};

static const char *color_of(const struct cmd_format *answer, enum cmd_color color)
{
    return cmd_color(cmd_has_color(answer->common, STDOUT_FILENO), color);
}

static void append_heading(struct cmd_format *answer, const char *heading)
{
    bw_buffer_format(&answer->text, "\n%s%s%s\n", color_of(answer, CMD_BOLD), heading,
                     color_of(answer, CMD_PLAIN));
}

/* Appends a heading and the command below it. */
static void append_command(struct cmd_format *answer, const char *heading,
                           const struct cmd_common *common, const char *const *command)
{
    append_heading(answer, heading);
    bw_buffer_format(&answer->text, "  ");
    rescue_append_command(&answer->text, common, command);
    bw_buffer_append_byte(&answer->text, '\n');
}

static void append_volume(struct cmd_format *answer, const struct rescue *rescue,
                          const struct bw_rescueinfo *row)
{
    char uuid[BW_UUID_LENGTH];
    struct bw_buffer *text = &answer->text;
    bw_write_uuid(uuid, row->fsid.data);
    bw_escape_line(text, row->label, strlen(row->label));
    bw_buffer_format(text, "%s%.*s, %s on %" PRIu64 " device%s, %s used, generation %" PRIu64 "\n",
                     *row->label ? ", " : "", BW_UUID_LENGTH, uuid,
                     cmd_size(&answer->settings, row->size).text, row->device_count,
                     bw_plural(row->device_count), cmd_size(&answer->settings, row->used).text,
                     row->generation);
    for (size_t i = 0; i < row->open_options.length; i++)
        bw_buffer_format(text, "It can be opened only with %s.\n", row->open_options.data[i].data);
    if (rescue->settings->no_data)
        bw_buffer_format(text, "Data were not read (--no-data): only missing devices and lost "
                               "metadata are known.\n");
}

/* What is wrong. */

static void append_problems(struct cmd_format *answer, const struct rescue *rescue)
{
    struct bw_buffer *text = &answer->text;
    if (!rescue->problem_count)
        return;
    append_heading(answer, "Problems:");
    for (size_t i = 0; i < rescue->problem_count && i < SHOWN_PROBLEMS; i++) {
        const struct rescue_problem *problem = &rescue->problems[i];
        const enum cmd_color color = problem->severity == BW_DAMAGE ? CMD_RED : CMD_YELLOW;
        bw_buffer_format(text, "  %s", color_of(answer, color));
        bw_escape_words(text, problem->message);
        bw_buffer_format(text, "%s", color_of(answer, CMD_PLAIN));
        if (problem->kind && problem->kind->count > 1)
            bw_buffer_format(text, "; and %" PRIu64 " more like this", problem->kind->count - 1);
        bw_buffer_append_byte(text, '\n');
    }
    if (rescue->problem_count > SHOWN_PROBLEMS)
        bw_buffer_format(text, "  and %zu more: see --json\n",
                         rescue->problem_count - SHOWN_PROBLEMS);
}

/* The table of subvolumes. */

/* A column of the table, in a colour unless there are no files. */
static void append_count(struct cmd_format *answer, uint64_t files, uint64_t bytes,
                         enum cmd_color color)
{
    struct cmd_size size = {""};
    const char *begin = "", *end = "";
    if (files) {
        size = cmd_size(&answer->settings, bytes);
        begin = color_of(answer, color);
        end = color_of(answer, CMD_PLAIN);
    }
    bw_buffer_format(&answer->text, "%s%10" PRIu64 " %-11s%s", begin, files, size.text, end);
}

static void append_counts(struct cmd_format *answer, const struct rescue_subvolume *counts)
{
    const uint64_t *files = counts->files, *bytes = counts->bytes;
    append_count(answer,
                 files[BW_RECOVERABLE_VERIFIED] + files[BW_RECOVERABLE_CORRECTED] +
                     files[BW_RECOVERABLE_UNVERIFIED],
                 bytes[BW_RECOVERABLE_VERIFIED] + bytes[BW_RECOVERABLE_CORRECTED] +
                     bytes[BW_RECOVERABLE_UNVERIFIED],
                 CMD_GREEN);
    append_count(answer, files[BW_RECOVERABLE_PARTLY], bytes[BW_RECOVERABLE_PARTLY], CMD_YELLOW);
    append_count(answer, files[BW_RECOVERABLE_LOST], bytes[BW_RECOVERABLE_LOST], CMD_RED);
}

static void append_subvolumes(struct cmd_format *answer, const struct rescue *rescue)
{
    struct bw_buffer *text = &answer->text;
    const struct rescue_subvolume total = rescue_total(rescue);
    const uint64_t ignoring = rescue->unchecked_files + rescue->accepted_files;
    const uint64_t unverified = total.files[BW_RECOVERABLE_UNVERIFIED] - ignoring;
    append_heading(answer, "Files, and their bytes:");
    bw_buffer_format(text, "  %10s %-11s%10s %-11s%10s %-11s subvolume\n", "whole", "", "partly",
                     "", "lost", "");
    for (size_t i = 0; i < rescue->subvolumes.count && i < SHOWN_SUBVOLUMES; i++) {
        const struct rescue_subvolume *subvolume = &rescue->subvolumes.items[i];
        bw_buffer_format(text, "  ");
        append_counts(answer, subvolume);
        bw_buffer_format(text, " ");
        if (subvolume->path)
            bw_escape_line(text, subvolume->path, strlen(subvolume->path));
        else
            bw_buffer_format(text, "subvolume %" PRIu64 ", whose path is unknown", subvolume->id);
        bw_buffer_format(text, "%s\n", subvolume->is_readable ? "" : ": its top directory is lost");
    }
    if (rescue->subvolumes.count > SHOWN_SUBVOLUMES)
        bw_buffer_format(text, "  and %zu more subvolumes: see --json\n",
                         rescue->subvolumes.count - SHOWN_SUBVOLUMES);
    if (rescue->subvolumes.count > 1) {
        bw_buffer_format(text, "  ");
        append_counts(answer, &total);
        bw_buffer_format(text, " all\n");
    }
    if (rescue->corrected_files)
        bw_buffer_format(text,
                         "  %" PRIu64 " of the whole files can be read only with --correct-bits, "
                         "because a bit of their data is flipped.\n",
                         rescue->corrected_files);
    if (ignoring)
        bw_buffer_format(text,
                         "  %" PRIu64 " of the whole files can be read only with "
                         "--ignore-checksums, because checksums of their data or metadata are "
                         "wrong or lost.\n",
                         ignoring);
    if (rescue->mismatched_files)
        bw_buffer_format(text,
                         "  %" PRIu64 " of the other files can be read with --ignore-checksums, "
                         "but their data do not match their checksums.\n",
                         rescue->mismatched_files);
    if (unverified == 1)
        bw_buffer_format(text, "  1 of the whole files has no checksums, so its contents cannot be "
                               "verified.\n");
    else if (unverified)
        bw_buffer_format(text,
                         "  %" PRIu64 " of the whole files have no checksums, so their contents "
                         "cannot be verified.\n",
                         unverified);
    const struct bw_fs_status status = bw_fs_status(rescue->fs);
    if (status.corrected_blocks)
        bw_buffer_format(text, "  %" PRIu64 " tree block%s a flipped bit, which was corrected.\n",
                         status.corrected_blocks,
                         status.corrected_blocks == 1 ? " had" : "s each had");
    if (status.not_searched)
        bw_buffer_format(text,
                         "  %" PRIu64 " bad block%s not searched for a flipped bit: the time for "
                         "searches was used up.\n",
                         status.not_searched, status.not_searched == 1 ? " was" : "s were");
}

/* Older generations. */

static void append_older(struct cmd_format *answer, const struct rescue *rescue)
{
    struct bw_buffer *text = &answer->text;
    if (!rescue->generations.count && !rescue->hidden_files && !rescue->deleted_files)
        return;
    append_heading(answer, "In older generations:");
    for (size_t i = 0; i < rescue->generations.count; i++) {
        const struct rescue_generation *found = &rescue->generations.items[i];
        bw_buffer_format(text,
                         "  whole but older versions of %" PRIu64 " of these files in generation "
                         "%" PRIu64 " (%s UTC)\n",
                         found->files, found->choice.generation, cmd_date(found->changed).text);
    }
    if (rescue->hidden_files)
        bw_buffer_format(text, "  %" PRIu64 " more file%s whose metadata are lost\n",
                         rescue->hidden_files, bw_plural(rescue->hidden_files));
    if (rescue->deleted_files)
        bw_buffer_format(text, "  %" PRIu64 " deleted file%s\n", rescue->deleted_files,
                         bw_plural(rescue->deleted_files));
}

static void append_steps(struct cmd_format *answer, const struct rescue *rescue)
{
    static const char *const all[] = {"rescue", "--extract=" RESCUE_FOLDER, NULL};
    static const char *const subvolumes[] = {"extract", "--subvolumes",
                                             "--directory=saved-subvolumes", NULL};
    static const char *const repair[] = {"repair", NULL};
    struct bw_buffer *text = &answer->text;
    const size_t count = rescue_step_count(&rescue->plan);
    if (rescue->settings->folder && count)
        return; /* the commands are printed when they run */
    if (!count) {
        const bool is_empty = !rescue_has_damage(rescue) && !rescue_is_older(rescue) &&
                              rescue_total(rescue).is_readable;
        append_heading(answer, is_empty ? "There are no files." : "Nothing can be saved.");
        return;
    }
    append_command(answer, "Save everything to a folder on another disk:", &rescue->common, all);
    append_heading(answer, "This runs these commands, after mkdir -p saved:");
    for (size_t i = 0; i < count; i++) {
        bw_buffer_format(text, "  ");
        rescue_append_step(text, &rescue->plan, i, &rescue->common, RESCUE_FOLDER);
        bw_buffer_append_byte(text, '\n');
    }
    if (rescue->subvolumes.count > 1)
        append_command(answer, "Or keep subvolumes, snapshots and the data they share, on a btrfs:",
                       &rescue->common, subvolumes);
    bool is_damaged = false; /* more than devices that are missing or stale */
    for (size_t i = 0; i < rescue->problem_count; i++)
        is_damaged |= rescue->problems[i].kind != NULL;
    const struct cmd_input *given = &rescue->given;
    const bool can_repair = !given->graph.file && !given->inside_count && !given->overlays.count &&
                            !given->fs.alternatives;
    if (is_damaged && can_repair) {
        /* It finds out itself what the rescue had to try. */
        struct cmd_common common = rescue->common;
        common.input = *given;
        append_command(answer,
                       "After that, plan a repair, which never writes to the original:", &common,
                       repair);
    }
}

/* Other file systems. */

static void append_others(struct cmd_format *answer, const struct rescue *rescue)
{
    struct bw_buffer *text = &answer->text;
    if (!rescue->others.count && !rescue->searched_others &&
        rescue->super.total_bytes > RESCUE_SEARCHED)
        bw_buffer_format(text, "\nOther file systems were not searched for, which takes as long as "
                               "reading the whole devices: --scan does it.\n");
    if (!rescue->others.count)
        return;
    const bool are_sides = rescue->others.items[0].is_side;
    if (rescue->fs)
        append_heading(answer, "Other file systems whose tree blocks were found:");
    else
        bw_buffer_format(text, "%s\n",
                         are_sides ? "The sides, each of which can be read alone:"
                                   : "The file systems whose tree blocks were found:");
    bw_buffer_format(text, "  %10s %-11s%10s %-11s%10s %-11s file system\n", "whole", "", "partly",
                     "", "lost", "");
    for (size_t i = 0; i < rescue->others.count; i++) {
        const struct rescue_other *other = &rescue->others.items[i];
        bw_buffer_format(text, "  ");
        append_counts(answer, &other->total);
        bw_buffer_append_byte(text, ' ');
        if (*other->label) {
            bw_escape_words(text, other->label);
            bw_buffer_format(text, ", ");
        }
        if (other->is_side)
            bw_buffer_format(text, "side of device %" PRIu64 ", ", other->side);
        bw_buffer_format(text, "generation %" PRIu64, other->generation);
        if (other->changed)
            bw_buffer_format(text, ", %s UTC", cmd_date(other->changed).text);
        bw_buffer_append_byte(text, '\n');
        if (other->problem) {
            bw_buffer_format(text, "    it cannot be read: ");
            bw_escape_words(text, other->problem);
            bw_buffer_append_byte(text, '\n');
        }
    }
    append_heading(answer, "Rescue one of these with");
    for (size_t i = 0; i < rescue->others.count; i++) {
        bw_buffer_format(text, "  ");
        rescue_append_other(text, rescue, &rescue->others.items[i]);
        bw_buffer_append_byte(text, '\n');
    }
}

struct bw_error *rescue_print(struct cmd_format *answer, const void *record)
{
    const struct bw_rescueinfo *row = record;
    const struct rescue *rescue = row->problems.context;
    if (rescue->fs) {
        append_volume(answer, rescue, row);
        append_problems(answer, rescue);
        append_subvolumes(answer, rescue);
        append_older(answer, rescue);
        append_steps(answer, rescue);
    }
    append_others(answer, rescue);
    return bw_buffer_error(&answer->text);
}
