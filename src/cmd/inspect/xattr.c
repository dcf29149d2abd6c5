/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The xattr command: extended attributes, in the form that setfattr --restore reads, or as JSON. */
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cmd/common/paths.h"

struct xattr_state {
    const char *subvolume;
    bool json, follow;
};

static const struct cmd_option options[] = {
    {0, "json", NULL, "an object a line for each attribute", CMD_FLAG(struct xattr_state, json)},
    {'L', "dereference", NULL, "follow a PATH that is a symbolic link",
     CMD_FLAG(struct xattr_state, follow)},
    CMD_SUBVOLUME_OPTION(struct xattr_state),
    {0},
};

/* The answer for one path under way. */
struct answer {
    const struct cmd_paths *paths;
    const struct bw_place *place;
    struct bw_buffer absolute; /* the path, for JSON */
    struct bw_buffer *text;
};

static bool is_text(const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((bytes[i] < ' ' && bytes[i] != '\t' && bytes[i] != '\n' && bytes[i] != '\r') ||
            bytes[i] == 0x7f || (bytes[i] == 0xc2 && i + 1 < length && bytes[i + 1] < 0xa0))
            return false;
    return bw_utf8_is_valid(bytes, length);
}

/* Bytes that would not be read back: backslashes, ends of lines and `special` become octal. */
static void append_quoted(struct bw_buffer *text, const uint8_t *bytes, size_t length, char special)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] < ' ' || bytes[i] == 0x7f || bytes[i] == '\\' || bytes[i] == (uint8_t)special)
            bw_buffer_format(text, "\\%03o", bytes[i]);
        else
            bw_buffer_append_byte(text, (char)bytes[i]);
    }
}

static void append_hex(struct bw_buffer *text, const uint8_t *bytes, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    bw_buffer_append(text, "0x", 2);
    for (size_t i = 0; i < length; i++) {
        bw_buffer_append_byte(text, digits[bytes[i] >> 4]);
        bw_buffer_append_byte(text, digits[bytes[i] & 15]);
    }
}

static void append_value(struct bw_buffer *text, const struct bw_xattr *xattr)
{
    if (!is_text(xattr->value, xattr->value_length)) {
        append_hex(text, xattr->value, xattr->value_length);
        return;
    }
    bw_buffer_append_byte(text, '"');
    append_quoted(text, xattr->value, xattr->value_length, '"');
    bw_buffer_append_byte(text, '"');
}

/* A name or path, escaped for a terminal or for setfattr, which must not find `special` in it. */
static void append_name(const struct answer *answer, const void *name, size_t length, char special)
{
    if (answer->paths->terminal)
        cmd_paths_append_name(answer->paths, name, length, answer->text);
    else
        append_quoted(answer->text, name, length, special);
}

/* An access control list once more, as comments. */
static void append_comments(struct bw_buffer *text, const struct bw_xattr *xattr, const char *list)
{
    static const char name[] = BW_ACL_DEFAULT;
    bool is_default =
        xattr->name_length == sizeof name - 1 && memcmp(xattr->name, name, xattr->name_length) == 0;
    for (size_t length; *list; list += length) {
        length = strcspn(list, "\n") + 1;
        bw_buffer_format(text, "# %s%.*s", is_default ? "default:" : "", (int)length, list);
    }
}

static struct bw_error *take_text(void *context, const struct bw_xattr *xattr)
{
    struct answer *answer = context;
    BW_AUTO_FREE char *list = NULL;
    append_name(answer, xattr->name, xattr->name_length, '=');
    bw_buffer_append_byte(answer->text, '=');
    append_value(answer->text, xattr);
    bw_buffer_append_byte(answer->text, '\n');
    BW_TRY(bw_acl_text(xattr, &list));
    if (list)
        append_comments(answer->text, xattr, list);
    return NULL;
}

static struct bw_error *take_json(void *context, const struct bw_xattr *xattr)
{
    const struct answer *answer = context;
    BW_AUTO_FREE char *list = NULL;
    BW_TRY(bw_acl_text(xattr, &list));
    struct bw_json json = bw_json_start(answer->text, false);
    bw_json_begin_object(&json, NULL);
    bw_json_bytes(&json, "path", answer->absolute.data, answer->absolute.length);
    bw_json_number(&json, "subvolume", bw_subvolume_id(answer->place->subvolume));
    bw_json_number(&json, "inode", answer->place->inode);
    bw_json_bytes(&json, "name", xattr->name, xattr->name_length);
    bw_json_bytes(&json, "value", xattr->value, xattr->value_length);
    if (list && *list)
        bw_json_bytes(&json, "acl", list, strlen(list) - 1);
    bw_json_end(&json);
    bw_buffer_append_byte(answer->text, '\n');
    return NULL;
}

/* As getfattr does, without the first '/', and with an empty line after the last attribute. */
static struct bw_error *answer_text(struct answer *answer, const char *path)
{
    struct bw_buffer *text = answer->text;
    path += strspn(path, "/");
    if (!*path)
        path = ".";
    bw_buffer_format(text, "# file: ");
    append_name(answer, path, strlen(path), '\\');
    bw_buffer_append_byte(text, '\n');
    size_t head = text->length;
    BW_TRY(bw_inode_xattrs(answer->paths->session.fs, answer->place, take_text, answer));
    if (text->length == head)
        text->length = 0;
    else
        bw_buffer_append_byte(text, '\n');
    return NULL;
}

static struct bw_error *answer_json(struct answer *answer, const char *path)
{
    BW_TRY(cmd_paths_absolute(answer->paths, path, &answer->absolute));
    return bw_inode_xattrs(answer->paths->session.fs, answer->place, take_json, answer);
}

static struct bw_error *answer_path(void *context, struct cmd_paths *paths, const char *path,
                                    const struct bw_place *place, struct bw_buffer *text)
{
    const struct xattr_state *state = context;
    struct answer answer = {.paths = paths, .place = place, .text = text};
    struct bw_error *error = state->json ? answer_json(&answer, path) : answer_text(&answer, path);
    bw_buffer_free(&answer.absolute);
    return error;
}

static int run(const struct cmd_common *common, void *state)
{
    const struct xattr_state *xattr = state;
    return cmd_paths_run(common, xattr->subvolume, xattr->follow, answer_path, state);
}

const struct command cmd_xattr = {
    .name = "xattr",
    .topic = cmd_topic_files,
    .operands = "IMAGE PATH...",
    .summary = "Prints the extended attributes of files, with their values.",
    .details = CMD_PATHS_DETAILS
    "The form is that of getfattr: name=\"text\", or hexadecimal where the value is not text; "
    "setfattr\n"
    "--restore reads it. Access control lists are repeated in words, as "
    "comments.\n",
    .examples = "  btrfs-walk xattr disk.img /users/me/file          all attributes of a file\n"
                "  btrfs-walk xattr --json disk.img / | jq .name    the names, for programs\n",
    .options = options,
    .run = run,
    .state_size = sizeof(struct xattr_state),
    .takes_paths = true,
    .takes_list = true,
    .missing = "no path given",
};
