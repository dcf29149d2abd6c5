/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The xattr command: extended attributes, in the format of getfattr(1), which setfattr --restore
 * reads, or as records.
 *
 * Each PATH, and with -R or filters each entry that a walk finds below it, is a file whose
 * attributes are copied and then printed: as a block, sorted by name, or as rows in their order. A
 * file that cannot be read is reported, and the next one follows.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/utf8.h"
#include "base/vector.h"
#include "btrfs-walk/records.h"
#include "cli/common/paths.h"
#include "cli/common/selection.h"

BW_VECTOR(attributes, struct bw_xattr);

/* A running xattr command. */
struct printer {
    /* The options. */
    const char *attribute;
    bool follow, recursive, absolute;
    struct cmd_selection selection;

    /* While it runs. */
    struct cmd_paths *paths;
    struct bw_buffer *text;
    struct attributes kept; /* attributes of the file; all their bytes are in kept_bytes */
    struct bw_buffer kept_bytes;

    /* With -R: a PATH and everything below it. */
    const char *given;           /* PATH as on the command line */
    size_t start_length;         /* length of the absolute path of PATH */
    struct bw_buffer entry_path; /* scratch space: the path of an entry */
};

static const struct cmd_option options[] = {
    CMD_FOLLOW_OPTION(struct printer, follow),
    {'R', "recursive", NULL, "also list the contents of directories that match the filters",
     CMD_FLAG(struct printer, recursive)},
    {'n', "attribute", "NAME", "only this attribute", CMD_TEXT(struct printer, attribute)},
    {0, "absolute-names", NULL, "keep the leading '/' of paths",
     CMD_FLAG(struct printer, absolute)},
    CMD_TREE(struct printer, selection),
    {0},
};

static bool is_text(const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((bytes[i] < ' ' && bytes[i] != '\t' && bytes[i] != '\n' && bytes[i] != '\r') ||
            bytes[i] == 0x7f || (bytes[i] == 0xc2 && i + 1 < length && bytes[i + 1] < 0xa0))
            return false;
    return bw_utf8_is_valid(bytes, length);
}

/* Escapes bytes that setfattr would not read back as octal: backslashes, control characters and
 * `special`. */
static void append_quoted(struct bw_buffer *text, const uint8_t *bytes, size_t length, char special)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] < ' ' || bytes[i] == 0x7f || bytes[i] == '\\' || bytes[i] == (uint8_t)special)
            bw_buffer_format(text, "\\%03o", bytes[i]);
        else
            bw_buffer_append_byte(text, (char)bytes[i]);
    }
}

/* Appends a name or path, escaped for a terminal, or for setfattr, which treats `special` as the
 * end of the name. */
static void append_name(const struct printer *printer, const void *name, size_t length,
                        char special)
{
    if (printer->paths->format.output.at_once)
        cmd_format_append_name(&printer->paths->format, name, length, printer->text);
    else
        append_quoted(printer->text, name, length, special);
}

static bool is_named(const struct bw_xattr *xattr, const char *name)
{
    return strlen(name) == xattr->name_length && memcmp(name, xattr->name, xattr->name_length) == 0;
}

static int by_name(const void *a, const void *b)
{
    const struct bw_xattr *left = a, *right = b;
    return bw_compare_bytes(left->name, left->name_length, right->name, right->name_length);
}

/* As in getfattr: without the first '/', sorted by name, and with an empty line after the last
 * attribute. On a terminal, comments repeat access control lists and capabilities in readable form;
 * setfattr does not read them. */
static struct bw_error *append_block(struct printer *printer, const char *path)
{
    struct bw_buffer *text = printer->text;
    if (!printer->kept.count)
        return NULL;
    if (!printer->absolute)
        path += strspn(path, "/");
    if (!*path)
        path = ".";
    bw_buffer_format(text, "# file: ");
    append_name(printer, path, strlen(path), '\\');
    bw_buffer_append_byte(text, '\n');
    attributes_sort(&printer->kept, by_name);
    for (size_t i = 0; i < printer->kept.count; i++) {
        const struct bw_xattr *xattr = &printer->kept.items[i];
        append_name(printer, xattr->name, xattr->name_length, '=');
        bw_buffer_append_byte(text, '=');
        const bool is_plain = is_text(xattr->value, xattr->value_length);
        bw_buffer_format(text, "%s", is_plain ? "\"" : "0x");
        for (size_t k = 0; is_plain && k < xattr->value_length; k++) {
            const uint8_t byte = xattr->value[k];
            if (byte == '\\' || byte == '"')
                bw_buffer_format(text, "\\%c", byte);
            else
                append_quoted(text, &byte, 1, '"');
        }
        if (is_plain)
            bw_buffer_append_byte(text, '"');
        else
            bw_buffer_append_hex(text, xattr->value, xattr->value_length);
        bw_buffer_append_byte(text, '\n');

        BW_AUTO_FREE char *list = NULL;
        if (printer->paths->format.output.at_once)
            BW_TRY(bw_acl_text(xattr, &list));
        const char *prefix = is_named(xattr, BW_ACL_DEFAULT) ? "default:" : "";
        for (const char *line = list; line && *line;) {
            const size_t length = strcspn(line, "\n") + 1;
            bw_buffer_format(text, "# %s%.*s", prefix, (int)length, line);
            line += length;
        }
        BW_AUTO_FREE char *capabilities = NULL;
        if (printer->paths->format.output.at_once)
            BW_TRY(bw_capability_text(xattr, &capabilities));
        if (capabilities)
            bw_buffer_format(text, "# %s\n", capabilities);
    }
    bw_buffer_append_byte(text, '\n');
    return NULL;
}

/* Prints the attributes of one file. They are copied, because they are sorted by name. */
static struct bw_error *print_file(struct printer *printer, const char *path,
                                   const struct bw_place *place)
{
    printer->kept.count = 0;
    printer->kept_bytes.length = 0;
    const char *wanted = printer->attribute;
    struct bw_xattrs *xattrs;
    struct bw_error *error = bw_xattrs_open(printer->paths->format.session.fs, place, &xattrs);
    for (const struct bw_xattr *xattr; !error && (xattr = bw_xattrs_next(xattrs));) {
        if (wanted && !is_named(xattr, wanted))
            continue;
        bw_buffer_append(&printer->kept_bytes, xattr->name, xattr->name_length);
        bw_buffer_append(&printer->kept_bytes, xattr->value, xattr->value_length);
        error = attributes_push(&printer->kept, *xattr);
    }
    BW_TRY(bw_error_first(error, bw_xattrs_close(xattrs)));
    BW_TRY(bw_buffer_error(&printer->kept_bytes));

    /* The pointers are set after all bytes have been added, because the buffer may have moved. */
    const uint8_t *next = (const uint8_t *)printer->kept_bytes.data;
    for (size_t i = 0; i < printer->kept.count; i++) {
        struct bw_xattr *xattr = &printer->kept.items[i];
        xattr->name = next;
        xattr->value = next + xattr->name_length;
        next = xattr->value + xattr->value_length;
    }
    if (printer->paths->format.rows) {
        BW_AUTO_BUFFER struct bw_buffer whole = {0};
        BW_TRY(cmd_paths_absolute(path, &whole));
        for (size_t i = 0; i < printer->kept.count; i++) {
            const struct bw_xattr *xattr = &printer->kept.items[i];
            BW_AUTO_FREE char *list = NULL, *capabilities = NULL;
            struct bw_xattrinfo row = {
                .path = {whole.data, whole.length},
                .path_bytes = {whole.data, whole.length},
                .subvolume = bw_subvolume_id(place->subvolume),
                .inode = place->inode,
                .xattr = {(const char *)xattr->name, xattr->name_length},
                .value = {(const char *)xattr->value, xattr->value_length},
            };
            BW_TRY(bw_acl_text(xattr, &list));
            if (list && *list)
                row.acl = (struct bw_bytes){list, strlen(list) - 1};
            BW_TRY(bw_capability_text(xattr, &capabilities));
            row.capabilities = capabilities;
            BW_TRY(cmd_format_write(&printer->paths->format, &row, sizeof row));
        }
        return NULL;
    }
    return append_block(printer, path);
}

/* Replaces the beginning of the entry's path with PATH as on the command line. */
static struct bw_error *visit_entry(void *context, const struct bw_entry *entry)
{
    struct printer *printer = context;
    struct bw_buffer *path = &printer->entry_path;
    const size_t before = printer->text->length;
    size_t given = strlen(printer->given), rest = printer->start_length;
    while (given && printer->given[given - 1] == '/')
        given--;
    rest += rest < entry->path_length && entry->path[rest] == '/';
    path->length = 0;
    bw_buffer_append(path, printer->given, given);
    if (rest < entry->path_length || !given)
        bw_buffer_append_byte(path, '/');
    if (rest < entry->path_length)
        bw_buffer_append(path, entry->path + rest, entry->path_length - rest);
    BW_TRY(bw_buffer_terminate(path));
    struct bw_error *error = print_file(printer, path->data, &entry->place);
    if (error) {
        printer->text->length = before;
        cmd_format_miss(&printer->paths->format, bw_error_prefix(error, "%s", path->data));
    }
    if (!cmd_paths_flush(printer->paths, printer->text))
        return bw_error_create(BW_ERROR_STOPPED, "the output was closed");
    return NULL;
}

/* Filters apply to the contents of a directory; without filters and -R, only PATH itself is
 * printed. */
static struct bw_error *handle_path(void *context, struct cmd_paths *paths, const char *path,
                                    const struct bw_place *place, struct bw_buffer *text)
{
    struct printer *printer = context;
    printer->paths = paths;
    printer->text = text;
    printer->given = path;
    if (!printer->recursive && !cmd_selection_is_set(&printer->selection))
        return print_file(printer, path, place);

    /* The entries below PATH that pass the filters, PATH included. */
    struct bw_fs *fs = paths->format.session.fs;
    struct bw_walk_options how = {.struct_size = sizeof how,
                                  .start = path,
                                  .types = BW_WALK_ALL,
                                  .visit = visit_entry,
                                  .context = printer};
    BW_AUTO_FREE char *start = NULL;
    struct bw_error *error = cmd_selection_prepare(&printer->selection, fs);
    cmd_selection_apply(&printer->selection, &how);
    how.has_maxdepth |= !printer->recursive;
    if (!error)
        error = bw_walk_start_path(fs, &how, &start, &printer->start_length);
    if (!error)
        error = bw_walk(fs, &how, NULL);
    if (error && error->code == BW_ERROR_STOPPED && paths->broken)
        bw_error_free(BW_TAKE(error)); /* the error of stdout is more specific */
    return error;
}

static int run(const struct cmd_common *common, void *state)
{
    struct printer *printer = state;
    const struct cmd_format_plan plan = {.record = cmd_xattr.record};
    const int status = cmd_paths_run(common, printer->selection.subvolume, printer->follow, &plan,
                                     handle_path, printer);
    attributes_free(&printer->kept);
    bw_buffer_free(&printer->kept_bytes);
    bw_buffer_free(&printer->entry_path);
    return status;
}

const struct command cmd_xattr = {
    .name = "xattr",
    .topic = cmd_topic_files,
    .operands = "IMAGE PATH...",
    .summary = "Prints the extended attributes of files.",
    .details = CMD_PATHS_DETAILS
    "The format is that of getfattr: name=\"text\", or hexadecimal if the value is not\n"
    "text; setfattr --restore reads it. On a terminal, comments explain access control\n"
    "lists and capabilities. Links in a directory are not followed.\n",
    .examples = "  btrfs-walk xattr disk.img /users/me/file            all attributes of a file\n"
                "  btrfs-walk xattr -R -n security.selinux disk.img /  labels of all files\n"
                "  btrfs-walk xattr -R -n security.capability -o path,capabilities disk.img /\n"
                "  btrfs-walk xattr -R disk.img / > attributes         for setfattr --restore\n"
                "  btrfs-walk xattr --json disk.img / | jq .xattr      the names\n",
    .options = options,
    .record = "xattrinfo",
    .run = run,
    .state_size = sizeof(struct printer),
    .takes_paths = true,
    .takes_list = true,
    .missing = "no path given",
};
