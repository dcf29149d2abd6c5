/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sections of the report: the overview, the pictures, and the output of other commands. */
#include "cli/report/report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/generated.h"
#include "base/human.h"
#include "btrfs-walk/space.h"
#include "btrfs-walk/subvolume.h"
#include "draw/markup.h"
#include "draw/picture.h"

/* The overview. */

static void append_size_tile(struct bw_buffer *page, const char *name, uint64_t size)
{
    bw_buffer_format(page, "<div><b>%s</b> <span>%s</span></div>\n", cmd_size(NULL, size).text,
                     name);
}

struct bw_error *report_overview(struct report_page *report)
{
    struct bw_buffer *page = &report->overview;
    BW_AUTO_BUFFER struct bw_buffer text = {0}, lines = {0};
    struct bw_usage *usage = NULL;
    struct bw_error *error = NULL;

    /* The space: tiles with the most important numbers, a bar for each group, and the text of
     * `usage`. */
    report_section(page, "space", "Space");
    if (bw_fs_is_stream(report->session.fs))
        report_remark(page, "A send stream has no block groups and no extents on a disk.");
    else
        error = bw_fs_usage(report->session.fs, &usage);
    if (usage) {
        bw_buffer_format(page, "<div class=\"tiles\">\n");
        append_size_tile(page, "on all devices", usage->device_size);
        append_size_tile(page, "allocated", usage->allocated);
        append_size_tile(page, "used, with all mirrors", usage->used);
        append_size_tile(page, "free for data, estimated", usage->free_estimated);
        if (report->has_counts) {
            const bool is_one = report->directories == 1;
            bw_buffer_format(page, "<div><b>%" PRIu64 "</b> <span>file%s</span></div>\n",
                             report->files, bw_plural(report->files));
            bw_buffer_format(page, "<div><b>%" PRIu64 "</b> <span>%s</span></div>\n",
                             report->directories, is_one ? "directory" : "directories");
        }
        bw_buffer_format(page, "</div>\n<div class=\"bars\">\n");
        for (size_t i = 0; i < usage->group_count; i++) {
            /* How much of the chunks of a type and profile is used. */
            const struct bw_usage_group *group = &usage->groups[i];
            const char *color = "#d55e00";
            if (group->type & BW_GROUP_DATA)
                color = "#0072b2";
            else if (group->type & BW_GROUP_METADATA)
                color = "#e69f00";
            const double part = group->size ? (double)group->used / (double)group->size : 0;
            bw_buffer_format(
                page,
                "<div>%s, %s <span>%s of %s used</span>"
                "<svg class=\"bar\" viewBox=\"0 0 1000 12\" preserveAspectRatio=\"none\" "
                "aria-hidden=\"true\"><rect class=\"ground\" "
                "width=\"1000\" height=\"12\"/><rect width=\"%u\" height=\"12\" fill=\"%s\"/>"
                "</svg></div>\n",
                bw_chunk_type_name(group->type), group->profile, cmd_size(NULL, group->used).text,
                cmd_size(NULL, group->size).text, part < 1 ? (unsigned)(1000 * part) : 1000, color);
        }
        bw_buffer_format(page, "</div>\n<details><summary>Usage in numbers</summary><pre>");
        error = cmd_format_gather(report->common, &report->session, &cmd_usage_plan, &text);
        /* newlines and tabs separate values; names contain none, because they are escaped */
        for (size_t i = 0, end; i < text.length; i = end) {
            end = i + 1;
            if (text.data[i] == '\n' || text.data[i] == '\t') {
                bw_buffer_append_byte(page, text.data[i]);
                continue;
            }
            while (end < text.length && text.data[end] != '\n' && text.data[end] != '\t')
                end++;
            bw_markup_text(page, text.data + i, end - i);
        }
        bw_buffer_format(page, "</pre></details>\n");
        bw_usage_free(usage);
    }
    report_section_end(page);
    if (error)
        return error;

    report_section(page, "file-system", "The file system");
    error = cmd_format_gather(report->common, &report->session, &cmd_info_plan, &lines);
    report_lines(page, &lines);
    report_section_end(page);
    return error;
}

/* Pictures of one map in several colour schemes. The reader selects one of them without a
 * script. */

static const struct {
    enum bw_draw_by by;
    const char *word, *label;
} pictures[] = {{BW_DRAW_TYPE, "type", "Type"},
                {BW_DRAW_FILL, "fill", "Fill"},
                {BW_DRAW_AGE, "age", "Age"},
                {BW_DRAW_OWNER, "subvolume", "Subvolume"}};

enum { PICTURES = sizeof pictures / sizeof *pictures, ORDER = 6, MOST_DEVICES = 16 };

struct bw_error *report_pictures(struct report_page *report)
{
    if (bw_fs_is_stream(report->session.fs))
        return NULL;
    struct bw_buffer *page = &report->body;
    BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
    BW_TRY(bw_fs_devices(report->session.fs, &devices));
    const struct bw_space_map_options wanted = {
        .struct_size = sizeof wanted,
        .detail = BW_SPACE_EXTENTS,
        .cells = (size_t)1 << 2 * ORDER,
        .by_device = devices.count <= MOST_DEVICES,
    };
    struct bw_space_map *map;
    BW_TRY(bw_space_map_open(report->session.fs, &wanted, &map));
    report_section(page, "map", "Map of the devices");
    bw_buffer_format(page, "<div class=\"tabs\">\n");
    for (unsigned i = 0; i < PICTURES; i++)
        bw_buffer_format(page,
                         "<input type=\"radio\" name=\"by\" id=\"by-%s\"%s><label for=\"by-%s\">"
                         "%s</label>\n",
                         pictures[i].word, i ? "" : " checked", pictures[i].word,
                         pictures[i].label);
    struct bw_error *error = NULL;
    for (unsigned i = 0; i < PICTURES; i++) {
        struct bw_picture picture;
        error =
            bw_picture_make(report->session.fs, map, pictures[i].by, BW_CURVE_HILBERT, &picture);
        if (error)
            break;
        bw_buffer_format(page, "<div class=\"panel\" id=\"map-%s\">\n<h3>By %s</h3>\n",
                         pictures[i].word, pictures[i].word);
        bw_picture_html(page, &picture);
        bw_buffer_format(page, "</div>\n");
    }
    bw_buffer_format(page, "</div>\n");
    report_remark(&report->body,
                  "Each device is a square that a Hilbert curve fills, from the lower left to the "
                  "lower right: neighbours on the device are neighbours in the picture. Copies and "
                  "parity count.");
    report_section_end(&report->body);
    bw_space_map_close(map);
    return error;
}

/* Listings. */

struct bw_error *report_subvolumes(struct report_page *report)
{
    static const struct report_column columns[] = {
        {"Path", REPORT_LONG},     {"ID", REPORT_NUMBER},         {"Kind", REPORT_SHORT},
        {"Created", REPORT_SHORT}, {"Referenced", REPORT_NUMBER}, {"Exclusive", REPORT_NUMBER},
        {NULL, REPORT_SHORT}};
    struct bw_buffer *page = &report->body;
    struct bw_subvolume_infos *infos;
    struct bw_shares *shares;
    const struct bw_shares_options wanted = {.struct_size = sizeof wanted,
                                             .threads = report->settings->threads};
    struct bw_error *sharing = bw_shares_open(report->session.fs, &wanted, &shares);
    struct bw_error *error = bw_subvolume_infos_open(report->session.fs, true, &infos);
    report_section(page, "subvolumes", "Subvolumes and snapshots");
    report_remark(page, "Referenced is what a subvolume reaches, exclusive what no other one does: "
                        "deleting it alone frees that.");
    report_table_begin(page, columns);
    size_t rows = 0;
    for (const struct bw_subvolume_info *info; !error && (info = bw_subvolume_infos_next(infos));)
        if (rows++ < REPORT_ROWS) {
            const struct bw_subvolume_space *space =
                shares ? bw_shares_subvolume(shares, info->id) : NULL;
            const struct {
                bool is_true;
                const char *word;
            } kinds[] = {{info->is_default, "default"},
                         {info->read_only, "read-only"},
                         {info->is_snapshot, "snapshot"},
                         {info->is_deleted, "being deleted"}};
            bw_buffer_format(page, "<tr><td class=\"w\">");
            if (info->path)
                bw_markup_bytes(page, info->path, info->path_length);
            else
                bw_buffer_format(page, "(no path)");
            bw_buffer_format(page, "</td><td class=\"n\">%" PRIu64 "</td><td>", info->id);
            const char *before = "";
            for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
                if (!kinds[i].is_true)
                    continue;
                bw_buffer_format(page, "%s%s", before, kinds[i].word);
                before = ", ";
            }
            bw_buffer_format(page, "</td><td>");
            if (info->otransid || info->otime.tv_sec)
                bw_buffer_format(page, "%s UTC", cmd_date(bw_time_nanoseconds(&info->otime)).text);
            if (space)
                bw_buffer_format(page, "</td><td class=\"n\">%s</td><td class=\"n\">%s</td></tr>\n",
                                 cmd_size(NULL, space->referenced).text,
                                 cmd_size(NULL, space->exclusive).text);
            else
                bw_buffer_format(page, "</td><td class=\"n\"></td><td class=\"n\"></td></tr>\n");
        }
    report_table_end(page, rows, "space");
    report_section_end(page);
    bw_shares_close(shares);
    return bw_error_first(bw_error_first(sharing, error), bw_subvolume_infos_close(infos));
}

struct bw_error *report_devices(struct report_page *report)
{
    static const struct report_column columns[] = {
        {"Device", REPORT_NUMBER},    {"State", REPORT_SHORT},       {"Size", REPORT_NUMBER},
        {"Allocated", REPORT_NUMBER}, {"Generation", REPORT_NUMBER}, {"UUID", REPORT_LONG},
        {"Image", REPORT_LONG},       {NULL, REPORT_SHORT}};
    struct bw_buffer BW_AUTO_BUFFER table = {0};
    report_section(&report->body, "devices", "Devices");
    struct bw_error *error =
        cmd_format_gather(report->common, &report->session, &cmd_devices_plan, &table);
    report_table(&report->body, columns, &table, "devices");
    report_section_end(&report->body);
    return error;
}
