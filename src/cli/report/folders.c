/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The treemap of the report. Directories are visited after their contents; until then,
 * subdirectories and large files wait in lists for each depth. The largest are drawn.
 */
#include "cli/report/report.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "base/utf8.h"
#include "btrfs-walk/space.h"
#include "cli/common/monitor.h"
#include "draw/layout.h"
#include "draw/markup.h"

enum {
    DEPTH = 16,        /* levels of directories that are drawn */
    CHILDREN = 48,     /* children drawn of a directory; the rest is a part of it */
    MOST_BOXES = 1200, /* in the drawing */
    WIDTH = 1000,
    HEIGHT = 600,
    HEADING = 18, /* height of a line with a name */
    BORDER = 3,
    LETTER = 8, /* approximate width of a character */
    /* Files smaller than this fraction of the used space are not remembered: they are too small to
     * be drawn, or almost. */
    SMALLEST_FILE = 2048,
    SMALLEST_FOLDER = 16384, /* the same for directories */
};

static const char *const colors[] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                     "#56b4e9", "#d55e00", "#8b6fc0", "#b5a300"};

/* A directory or a file. */
struct folder {
    uint64_t bytes, files;
    size_t name, name_length; /* in `names` */
    size_t name_room;
    uint32_t child, next; /* the next of a list; NONE ends it */
    bool is_file;
};

enum { NONE = UINT32_MAX };

BW_VECTOR(folder_list, struct folder);

struct folders {
    struct folder_list folders;
    struct bw_buffer names;
    uint32_t pending[DEPTH + 2]; /* for each depth, the list of directories whose parent is not
                                  * complete yet */
    struct {
        uint32_t first;
        unsigned count;
    } files[DEPTH + 2]; /* the same for the largest files, at most CHILDREN */
    uint64_t smallest_file, smallest_folder;
    struct report_page *report;
    struct bw_buffer *page;
};

/* Collecting directories and files. */

/* Writes the last name of the path over the previous name, if there is room. */
static void set_name(struct folders *all, struct folder *folder, const struct bw_du_entry *entry)
{
    const char *const end = entry->path + entry->path_length;
    const char *name = end;
    while (name > entry->path && name[-1] != '/')
        name--;
    folder->name_length = (size_t)(end - name);
    if (folder->name_length > folder->name_room) {
        folder->name = all->names.length;
        folder->name_room = folder->name_length;
        bw_buffer_append(&all->names, name, folder->name_length);
    } else if (folder->name_length) {
        memcpy(all->names.data + folder->name, name, folder->name_length);
    }
}

static struct bw_error *append_folder(struct folders *all, const struct bw_du_entry *entry,
                                      struct folder folder)
{
    set_name(all, &folder, entry);
    if (all->names.failed || all->folders.count >= NONE)
        return bw_error_no_memory();
    return folder_list_push(&all->folders, folder);
}

static struct bw_error *add_entry(void *context, const struct bw_du_entry *entry)
{
    struct folders *all = context;
    if (entry->place.type == BW_FILE_DIRECTORY)
        all->report->directories++;
    if (entry->depth == 0)
        all->report->files = entry->files;
    if (entry->depth > DEPTH)
        return NULL;
    if (entry->place.type != BW_FILE_DIRECTORY) {
        /* If a list is full, the file replaces the smallest one that is smaller. */
        if (entry->total < all->smallest_file)
            return NULL;
        if (all->files[entry->depth].count == CHILDREN) {
            uint32_t least = all->files[entry->depth].first;
            for (uint32_t i = least; i != NONE; i = all->folders.items[i].next)
                if (all->folders.items[i].bytes < all->folders.items[least].bytes)
                    least = i;
            if (entry->total > all->folders.items[least].bytes) {
                all->folders.items[least].bytes = entry->total;
                set_name(all, &all->folders.items[least], entry);
            }
            return NULL;
        }
        BW_TRY(append_folder(all, entry,
                             (struct folder){.bytes = entry->total,
                                             .files = 1,
                                             .child = NONE,
                                             .next = all->files[entry->depth].first,
                                             .is_file = true}));
        all->files[entry->depth].first = (uint32_t)(all->folders.count - 1);
        all->files[entry->depth].count++;
        return NULL;
    }

    /* The directory takes the lists of its depth: its children are the files in them, then the
     * directories. */
    const uint64_t depth = entry->depth + 1;
    const uint32_t folders = all->pending[depth], first = all->files[depth].first;
    uint32_t last = first;
    while (last != NONE && all->folders.items[last].next != NONE)
        last = all->folders.items[last].next;
    if (last != NONE)
        all->folders.items[last].next = folders;
    all->pending[depth] = all->files[depth].first = NONE;
    all->files[depth].count = 0;
    if (entry->total < all->smallest_folder && entry->depth)
        return NULL;
    BW_TRY(append_folder(all, entry,
                         (struct folder){.bytes = entry->total,
                                         .files = entry->files,
                                         .child = last == NONE ? folders : first,
                                         .next = all->pending[entry->depth]}));
    all->pending[entry->depth] = (uint32_t)(all->folders.count - 1);
    return NULL;
}

/* Drawing. */

/* Appends the name, shortened to `letters` characters as the page shows them; returns how many are
 * left. */
static size_t append_name(struct folders *all, const struct folder *folder, size_t letters)
{
    struct bw_buffer BW_AUTO_BUFFER name = {0};
    if (folder->name_length)
        bw_markup_bytes(&name, all->names.data + folder->name, folder->name_length);
    else
        bw_markup_bytes(&name, "/", 1);
    const char *text = bw_buffer_text(&name);
    size_t end = 0;
    all->page->failed |= name.failed;
    while (end < name.length && letters > 1) {
        if (text[end] == '&') /* an entity is one character */
            end += strcspn(text + end, ";") + 1;
        else
            end += bw_utf8_length((const uint8_t *)text + end, name.length - end);
        letters--;
    }
    bw_buffer_append(all->page, text, end);
    if (end == name.length)
        return letters;
    bw_buffer_format(all->page, "\u2026");
    return 0;
}

/* Begins a line of text in a box. */
static void append_label(struct bw_buffer *page, const struct bw_box *box, unsigned bottom)
{
    bw_buffer_format(page, "<text x=\"%.1f\" y=\"%.1f\">", box->x + BORDER + 1, box->y + bottom);
}

/* A file or directory with the box it gets. */
struct placed {
    uint32_t folder;
    unsigned depth;
    const char *color;
    struct bw_box box;
};

BW_VECTOR(placed_list, struct placed);

/* Draws all directories of one level, then those of the next, so that the limit of boxes leaves out
 * the deepest. In a directory, the space of the other children remains empty, after those drawn. */
static struct bw_error *draw_folders(struct folders *all, uint32_t top)
{
    enum { LEAST = 6 };
    const struct folder *items = all->folders.items;
    BW_SCOPED(placed_list) struct placed_list list = {0};
    BW_TRY(placed_list_push(
        &list, (struct placed){top, 0, "#8a8f98", (struct bw_box){0, 0, WIDTH, HEIGHT}}));
    for (size_t drawn = 0; drawn < list.count; drawn++) {
        const struct placed this = list.items[drawn];
        const struct bw_box box = this.box;

        /* The box, with the size and the name if there is room. */
        const struct folder *folder = &items[this.folder];
        struct bw_buffer *page = all->page;
        const struct cmd_size size = cmd_size(NULL, folder->bytes);
        const size_t letters = box.width > BORDER ? (size_t)(box.width - BORDER) / LETTER : 0;
        const char *opacity = ".06";
        if (folder->is_file)
            opacity = ".4";
        else if (this.depth && this.depth <= 4)
            opacity = ".18"; /* they add up */
        bw_buffer_format(page, "<g><title>");
        append_name(all, folder, 80);
        bw_buffer_format(page, ", %s", size.text);
        if (!folder->is_file)
            bw_buffer_format(page, ", %" PRIu64 " file%s", folder->files, bw_plural(folder->files));
        bw_buffer_format(page,
                         "</title><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                         "fill=\"%s\" fill-opacity=\"%s\"/>",
                         box.x, box.y, box.width, box.height, this.color, opacity);
        const size_t size_letters = strlen("1023.99MiB");
        if (letters >= 4 && box.height >= HEADING) {
            append_label(page, &box, HEADING - 4);
            const size_t left = append_name(all, folder, letters);
            /* The size of a directory follows its name, because the next line is inside. */
            if (!folder->is_file && left >= 2 + size_letters)
                bw_buffer_format(page, ", %s", size.text);
            bw_buffer_format(page, "</text>");
        }
        if (folder->is_file && letters >= size_letters && box.height >= 2 * HEADING) {
            append_label(page, &box, 2 * HEADING - 4);
            bw_buffer_format(page, "%s</text>", size.text);
        }
        bw_buffer_format(page, "</g>\n");

        if (box.width < 3 * HEADING || box.height < 2 * HEADING)
            continue;

        /* The largest children, in descending order. A file has none. */
        uint32_t chosen[CHILDREN];
        size_t count = 0;
        for (uint32_t i = items[this.folder].child; i != NONE; i = items[i].next) {
            size_t at = count;
            for (; at && items[chosen[at - 1]].bytes < items[i].bytes; at--)
                if (at < CHILDREN)
                    chosen[at] = chosen[at - 1];
            if (at < CHILDREN)
                chosen[at] = i;
            count += count < CHILDREN;
        }
        double sizes[CHILDREN + 1], rest = (double)items[this.folder].bytes;
        for (size_t i = 0; i < count; i++)
            rest -= sizes[i] = (double)items[chosen[i]].bytes;
        sizes[count] = rest;
        const struct bw_box inside = {box.x + BORDER, box.y + HEADING, box.width - 2 * BORDER,
                                      box.height - HEADING - BORDER};
        struct bw_box boxes[CHILDREN + 1];
        bw_treemap_layout(sizes, count + 1, inside, boxes);
        for (size_t i = 0; i < count && list.count < MOST_BOXES; i++) {
            struct placed child = {chosen[i], this.depth + 1, this.color, boxes[i]};
            if (!this.depth)
                child.color = colors[i % (sizeof colors / sizeof *colors)];
            if (child.box.width >= LEAST && child.box.height >= LEAST)
                BW_TRY(placed_list_push(&list, child));
        }
    }
    return NULL;
}

struct bw_error *report_folders(struct report_page *report)
{
    struct folders all = {.report = report,
                          .page = &report->body,
                          .smallest_file = report->super.bytes_used / SMALLEST_FILE + 1,
                          .smallest_folder = report->super.bytes_used / SMALLEST_FOLDER + 1};
    const struct bw_du_options wanted = {
        .struct_size = sizeof wanted, .visit = add_entry, .context = &all, .sizes_only = true};
    for (size_t i = 0; i < sizeof all.pending / sizeof *all.pending; i++)
        all.pending[i] = all.files[i].first = NONE;
    cmd_progress_expect_trees(report->session.fs, true);
    struct bw_error *error = bw_du(report->session.fs, &wanted);
    report->has_counts = !error;
    report_section(&report->body, "folders", "Directories and large files");
    if (!error)
        bw_buffer_format(all.page,
                         "<p>%" PRIu64 " file%s and %" PRIu64 " %s, in all subvolumes and "
                         "snapshots</p>\n",
                         report->files, bw_plural(report->files), report->directories,
                         report->directories == 1 ? "directory" : "directories");
    if (!error && all.pending[0] != NONE && all.folders.items[all.pending[0]].bytes) {
        bw_buffer_format(all.page,
                         "<div class=\"wide folders\"><svg viewBox=\"0 0 %d %d\" role=\"img\" "
                         "aria-label=\"Treemap of directories and large files\">\n",
                         WIDTH, HEIGHT);
        error = draw_folders(&all, all.pending[0]);
        bw_buffer_format(all.page, "</svg></div>\n");
        report_remark(
            all.page,
            "The area of a directory is proportional to the total size of its files. "
            "Large files have boxes of a stronger colour; small ones are the rest of their "
            "directory. Data shared by snapshots and copies count for each of them.");
    } else if (!error) {
        report_remark(all.page, report->files
                                    ? "All files are empty, so there are no boxes to draw."
                                    : "Without files, there are no boxes to draw.");
    }
    report_section_end(&report->body);
    folder_list_free(&all.folders);
    bw_buffer_free(&all.names);
    return error;
}
