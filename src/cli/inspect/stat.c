/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stat command: the inode of a file, its attributes and its number of extents; as lines of
 * "Name: value", or as a record. Names from the image are escaped even if stdout is not a terminal,
 * so each stays on one line.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/human.h"
#include "base/time_style.h"
#include "base/utf8.h"
#include "btrfs-walk/file.h"
#include "btrfs-walk/records.h"
#include "cli/common/paths.h"

/*
 * --format and --printf: the formats of stat(1), with directives like %-10.3s, each for a text, a
 * number or a time. A "?" replaces properties that only a mounted file system has. The device
 * number is the id of the subvolume.
 */

/* Facts about a file. For a format, only those that it contains are read. */
struct facts {
    const char *path; /* as on the command line */
    struct bw_place place;
    struct bw_inode inode;
    char *target; /* target of a symbolic link, NUL-terminated; NULL: not a link */
    size_t target_length;

    /* For lines and records. */
    char *subvolume; /* its path; NULL: it has none */
    const struct bw_xattr *xattrs;
    size_t xattr_count;
    const struct bw_xattr *compression; /* the attribute named BW_COMPRESSION_PROPERTY */
    struct bw_extent_count extents;

    /* For a format. */
    uint32_t sectorsize;
    const struct bw_user_names *user_names;
};

enum { WIDEST = 4096 };

/* A directive. */
struct directive {
    char flags[8];
    int width, precision; /* -1: not given */
    bool has_precision;   /* there is a '.', perhaps without digits after it */
    char modifier;        /* H, L or 0 */
    char letter;
};

static int parse_number(const char **at)
{
    int number = -1;
    for (; **at >= '0' && **at <= '9'; ++*at)
        if (number < 0)
            number = **at - '0';
        else if (number < WIDEST)
            number = number * 10 + (**at - '0');
    return number > WIDEST ? WIDEST : number;
}

/* Parses the rest of a directive after the '%'. */
static struct directive parse_directive(const char **at)
{
    struct directive directive = {.precision = -1};
    const size_t flags = strspn(*at, "-+ #0'I");
    memcpy(directive.flags, *at, flags < sizeof directive.flags ? flags : 0);
    *at += flags;
    directive.width = parse_number(at);
    if (**at == '.') {
        ++*at;
        directive.has_precision = true;
        directive.precision = parse_number(at);
    }
    if ((**at == 'H' || **at == 'L') && (*at)[1] && strchr("dr", (*at)[1]))
        directive.modifier = *(*at)++;
    directive.letter = **at;
    *at += **at != '\0';
    return directive;
}

/* Formatting. */

static void append_text(const struct directive *directive, const char *value,
                        struct bw_buffer *text)
{
    const int width = directive->width < 0 ? 0 : directive->width;
    int precision = directive->precision;
    if (directive->has_precision && precision < 0)
        precision = 0;
    bw_buffer_format(text, strchr(directive->flags, '-') ? "%-*.*s" : "%*.*s", width, precision,
                     value);
}

/* Formats a number with printf(3), which interprets the flags the same way. */
static void append_integer(const struct directive *directive, uint64_t value,
                           const char *conversion, struct bw_buffer *text)
{
    char format[64];
    size_t length = (size_t)snprintf(format, sizeof format, "%%%s", directive->flags);
    if (directive->width >= 0)
        length += (size_t)snprintf(format + length, sizeof format - length, "%d", directive->width);
    if (directive->has_precision)
        length += (size_t)snprintf(format + length, sizeof format - length, ".%d",
                                   directive->precision < 0 ? 0 : directive->precision);
    snprintf(format + length, sizeof format - length, "%s", conversion);
    char number[WIDEST + 64];
    /* parse_directive() has validated flags, width and precision. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    const int written = snprintf(number, sizeof number, format, value);
#pragma GCC diagnostic pop
    bw_buffer_append(text, number, (size_t)(written < (int)sizeof number ? written : 0));
}

/* Seconds since 1970; the precision is the number of decimal places. */
static void append_seconds(const struct directive *directive, const struct timespec *time,
                           struct bw_buffer *text)
{
    char number[64];
    struct directive as_text = *directive;
    int digits = 0;
    if (directive->has_precision)
        digits = directive->precision < 0 ? 9 : directive->precision;
    const bool negative = digits && time->tv_sec < 0 && time->tv_nsec;
    const long long seconds = time->tv_sec + negative;
    long fraction = negative ? 1000000000 - time->tv_nsec : time->tv_nsec;
    as_text.has_precision = false;
    as_text.precision = -1;
    int length =
        snprintf(number, sizeof number, "%s%lld", negative && !seconds ? "-" : "", seconds);
    if (digits)
        snprintf(number + length, sizeof number - (size_t)length, ".%09ld", fraction);
    if (digits && digits < 9)
        number[length + 1 + digits] = '\0';
    append_text(&as_text, number, text);
}

/* Quotes a name for a shell. Control characters and invalid UTF-8 are escaped in $'...'. */
static void quote_name(const char *name, struct bw_buffer *text)
{
    BW_AUTO_BUFFER struct bw_buffer piece = {0};
    const size_t length = strlen(name);
    bool is_open = false;
    bw_escape_line(&piece, name, length);
    if (strchr(name, '\'') && !strpbrk(name, "\"$`\\!") && piece.length == length) {
        bw_buffer_format(text, "\"%s\"", name);
        return;
    }
    bw_buffer_append_byte(text, '\'');
    for (size_t i = 0, step; i < length; i += step) {
        step = bw_utf8_length((const uint8_t *)name + i, length - i);
        step += !step;
        piece.length = 0;
        bw_escape_line(&piece, name + i, step);
        const bool is_special = piece.length != step && name[i] != '\\';
        if (is_special != is_open)
            bw_buffer_format(text, "%s", is_special ? "'$'" : "''");
        is_open = is_special;
        if (is_special)
            bw_buffer_append(text, piece.data, piece.length);
        else if (name[i] == '\'')
            bw_buffer_format(text, "'\\''");
        else
            bw_buffer_append(text, name + i, step);
    }
    bw_buffer_append_byte(text, '\'');
}

static const char *type_of(const struct bw_inode *inode)
{
    switch (inode->mode & S_IFMT) {
    case S_IFREG:
        return inode->size ? "regular file" : "regular empty file";
    case S_IFDIR:
        return "directory";
    case S_IFLNK:
        return "symbolic link";
    case S_IFIFO:
        return "fifo";
    case S_IFSOCK:
        return "socket";
    case S_IFBLK:
        return "block special file";
    case S_IFCHR:
        return "character special file";
    default:
        return "weird file";
    }
}

static const struct timespec *time_of(char letter, const struct bw_inode *inode)
{
    switch (letter) {
    case 'w':
        return &inode->otime;
    case 'x':
        return &inode->atime;
    case 'y':
        return &inode->mtime;
    default:
        return &inode->ctime;
    }
}

/* Whether a directive is for a number; if so, the number and its conversion. */
static bool number_of(const struct directive *directive, const struct facts *facts,
                      uint64_t *number, const char **conversion)
{
    const struct bw_inode *inode = &facts->inode;
    const bool is_device = S_ISCHR(inode->mode) || S_ISBLK(inode->mode);
    const unsigned major = is_device ? bw_inode_major(inode) : 0;
    const unsigned minor = is_device ? bw_inode_minor(inode) : 0;
    const uint64_t device = makedev(major, minor);
    const uint64_t sector = facts->sectorsize;
    const uint64_t blocks = (inode->bytes + sector - 1) / sector * (sector / 512);
    uint64_t part = device; /* %Hr and %Lr */
    if (directive->modifier)
        part = directive->modifier == 'H' ? major : minor;
    const struct {
        char letter;
        const char *conversion;
        uint64_t number;
    } numbers[] = {
        {'a', PRIo64, inode->mode & 07777},
        {'b', PRIu64, blocks},
        {'B', PRIu64, 512},
        {'d', PRIu64, bw_subvolume_id(facts->place.subvolume)},
        {'D', PRIx64, bw_subvolume_id(facts->place.subvolume)},
        {'f', PRIx64, inode->mode},
        {'g', PRIu64, inode->gid},
        {'h', PRIu64, inode->link_count},
        {'i', PRIu64, facts->place.inode},
        {'o', PRIu64, facts->sectorsize},
        {'s', PRIu64, inode->size},
        {'r', PRIu64, part},
        {'R', PRIx64, device},
        {'t', PRIx64, major},
        {'T', PRIx64, minor},
        {'u', PRIu64, inode->uid},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].letter == directive->letter) {
            *number = numbers[i].number;
            *conversion = numbers[i].conversion;
            return true;
        }
    return false;
}

static void append_directive(const struct directive *directive, const struct facts *facts,
                             struct bw_buffer *text)
{
    const struct bw_inode *inode = &facts->inode;
    BW_AUTO_BUFFER struct bw_buffer buffer = {0};
    const char letter = directive->letter, *conversion, *value = "?";
    char mode[BW_MODE_LENGTH + 1];
    uint64_t number;
    if (number_of(directive, facts, &number, &conversion)) {
        append_integer(directive, number, conversion, text);
        return;
    }
    switch (letter) {
    case 'W':
    case 'X':
    case 'Y':
    case 'Z':
        append_seconds(directive, time_of((char)(letter | 32), inode), text);
        return;
    case 'w':
    case 'x':
    case 'y':
    case 'z':
        bw_time_style_append(&(struct bw_time_style){0}, time_of(letter, inode), &buffer);
        break;
    case 'N':
        quote_name(facts->path, &buffer);
        if (facts->target) {
            bw_buffer_format(&buffer, " -> ");
            quote_name(facts->target, &buffer);
        }
        break;
    case 'A':
        *bw_write_mode(mode, inode->mode) = '\0';
        value = mode;
        break;
    case '%':
        value = "%";
        break;
    case 'n':
        value = facts->path;
        break;
    case 'F':
        value = type_of(inode);
        break;
    case 'U':
        value = bw_user_names_user(facts->user_names, inode->uid);
        break;
    case 'G':
        value = bw_user_names_group(facts->user_names, inode->gid);
        break;
    default:
        break;
    }
    if (buffer.length || buffer.failed)
        value = bw_buffer_text(&buffer);
    append_text(directive, value ? value : "UNKNOWN", text);
}

/* Appends the character of an escape sequence after a backslash. */
static void append_escape(const char **at, struct bw_buffer *text)
{
    static const char letters[] = "abefnrtv\\\"", bytes[] = "\a\b\33\f\n\r\t\v\\\"";
    const char *letter = **at ? strchr(letters, **at) : NULL;
    uint64_t number = 0;
    char digits[4] = "";
    if (letter) {
        bw_buffer_append_byte(text, bytes[letter - letters]);
        ++*at;
        return;
    }
    const bool is_hex = **at == 'x';
    const char *known = is_hex ? "0123456789abcdefABCDEF" : "01234567";
    const size_t length = strspn(*at + is_hex, known), most = is_hex ? 2 : 3;
    const size_t used = length < most ? length : most;
    if (!used) /* an unknown escape: the character itself */
        return;
    memcpy(digits, *at + is_hex, used);
    number = strtoull(digits, NULL, is_hex ? 16 : 8);
    bw_buffer_append_byte(text, (char)number);
    *at += used + is_hex;
}

/* The options. */

struct stat_state {
    const char *subvolume;
    const char *format; /* NULL: lines */
    bool escapes;       /* --printf: the format contains escapes */
    bool follow;
    struct bw_user_names *user_names; /* read if the format prints names of owners */
    bool not_first;                   /* something has been written */
};

/* --format adds a newline; --printf interprets escapes instead. BW_ERROR_USAGE for directives that
 * stat(1) does not have for inodes. */
static struct bw_error *store_format(void *target, const struct cmd_option *option,
                                     const char *format)
{
    struct stat_state *stat = target;
    stat->format = format;
    stat->escapes = strcmp(option->name, "printf") == 0;
    while ((format = strchr(format, '%'))) {
        const char *start = format++;
        const struct directive directive = parse_directive(&format);
        if (!directive.letter || !strchr("%aAbBCdDfFgGhimnNosrRtTuUwWxXyYzZ", directive.letter))
            return bw_error_create(BW_ERROR_USAGE,
                                   "--%s: unknown directive '%.*s' (allowed: %%a %%A %%b %%B %%C "
                                   "%%d %%D %%f %%F %%g %%G %%h %%i %%m %%n %%N %%o %%s %%r %%R "
                                   "%%t %%T %%u %%U %%w %%W %%x %%X %%y %%Y %%z %%Z %%%%)",
                                   option->name, (int)(format - start), start);
    }
    return NULL;
}

static const struct cmd_option options[] = {
    {'c', "format", "FORMAT",
     "print FORMAT and a newline for each file; directives are those of stat(1)",
     .store = store_format},
    {0, "printf", "FORMAT", "like --format, but with escapes like \\n and without the newline",
     .store = store_format},
    CMD_FOLLOW_OPTION(struct stat_state, follow),
    CMD_SUBVOLUME_OPTION(struct stat_state, subvolume),
    {0},
};

static struct bw_error *gather_facts(struct bw_fs *fs, struct bw_xattr_reader *reader,
                                     struct facts *facts)
{
    static const char compression[] = BW_COMPRESSION_PROPERTY;
    const struct bw_place *place = &facts->place;
    size_t length;
    BW_TRY(bw_inode_get(fs, place, &facts->inode));
    /* A subvolume without a path is identified by its id. */
    BW_TRY(bw_error_tolerate(bw_subvolume_path(fs, place->subvolume, &facts->subvolume, &length)));
    if (place->inode == BW_EMPTY_DIRECTORY)
        return NULL;
    BW_TRY(bw_xattr_reader_read(reader, place, &facts->xattrs, &facts->xattr_count));
    for (size_t i = facts->xattr_count; i-- > 0;)
        if (facts->xattrs[i].name_length == sizeof compression - 1 &&
            memcmp(facts->xattrs[i].name, compression, sizeof compression - 1) == 0)
            facts->compression = &facts->xattrs[i];
    BW_TRY(bw_file_count_extents(fs, place, &facts->extents));
    if (!S_ISLNK(facts->inode.mode))
        return NULL;
    return bw_inode_readlink(fs, place, &facts->target, &facts->target_length);
}

static bool is_device(const struct facts *facts)
{
    return S_ISCHR(facts->inode.mode) || S_ISBLK(facts->inode.mode);
}

static const char *type_name(const struct facts *facts)
{
    return bw_file_type_name(bw_file_type_of_mode(facts->inode.mode));
}

/* Output as lines. */

static void append_bytes(const char *label, const void *bytes, size_t length,
                         struct bw_buffer *text)
{
    bw_buffer_format(text, "%s: ", label);
    bw_escape_append(text, bytes, length);
    bw_buffer_append_byte(text, '\n');
}

static void append_number(const char *label, uint64_t number, struct bw_buffer *text)
{
    bw_buffer_format(text, "%s: %" PRIu64 "\n", label, number);
}

static void append_time(const char *label, const struct timespec *time, struct bw_buffer *text)
{
    char value[BW_DATE_LENGTH];
    bw_write_date(value, bw_time_nanoseconds(time), 'T');
    bw_buffer_format(text, "%s: %.*sZ\n", label, BW_DATE_LENGTH, value);
}

static void append_part(const char **separator, uint64_t number, const char *kind,
                        struct bw_buffer *text)
{
    if (!number)
        return;
    bw_buffer_format(text, "%s%" PRIu64 " %s", *separator, number, kind);
    *separator = ", ";
}

static struct bw_error *print_lines(struct cmd_format *format, const void *record)
{
    const struct bw_statinfo *row = record;
    const struct facts *facts = row->extent_counts.context;
    struct stat_state *state = format->plan->context;
    struct bw_buffer *text = &format->text;
    if (state->not_first)
        bw_buffer_append_byte(text, '\n');
    state->not_first = true;
    append_bytes("Path", facts->path, strlen(facts->path), text);
    bw_buffer_format(text, "Subvolume: %" PRIu64, bw_subvolume_id(facts->place.subvolume));
    if (facts->subvolume) {
        bw_buffer_append_byte(text, ' ');
        bw_escape_append(text, facts->subvolume, strlen(facts->subvolume));
    }
    bw_buffer_append_byte(text, '\n');
    append_number("Inode", facts->place.inode, text);
    bw_buffer_format(text, "Type: %s\n", type_name(facts));
    if (facts->target_length)
        append_bytes("Target", facts->target, facts->target_length, text);
    const struct bw_inode *inode = &facts->inode;
    char mode[BW_MODE_LENGTH];
    bw_write_mode(mode, inode->mode);
    bw_buffer_format(text, "Mode: %04o %.*s\n", inode->mode & 07777, BW_MODE_LENGTH, mode);
    append_number("User", inode->uid, text);
    append_number("Group", inode->gid, text);
    append_number("Links", inode->link_count, text);
    append_number("Size", inode->size, text);
    append_number("Allocated", inode->bytes, text);
    if (is_device(facts))
        bw_buffer_format(text, "Device: %u, %u\n", bw_inode_major(inode), bw_inode_minor(inode));
    append_time("Accessed", &inode->atime, text);
    append_time("Modified", &inode->mtime, text);
    append_time("Changed", &inode->ctime, text);
    append_time("Created", &inode->otime, text);
    append_number("Generation", inode->generation, text);
    append_number("Transid", inode->transid, text);
    append_number("Sequence", inode->sequence, text);
    const char *separator = " (";
    bw_buffer_format(text, "Flags: 0x%" PRIx64, inode->flags);
    for (unsigned bit = 0; bit < 64; bit++) {
        if (!(inode->flags >> bit & 1))
            continue;
        const char *name = bw_inode_flag_name(bit);
        if (name)
            bw_buffer_format(text, "%s%s", separator, name);
        else
            bw_buffer_format(text, "%s0x%" PRIx64, separator, UINT64_C(1) << bit);
        separator = ", ";
    }
    bw_buffer_format(text, "%s\n", inode->flags ? ")" : "");
    for (size_t i = 0; i < facts->xattr_count; i++) {
        bw_buffer_format(text, "%s", i ? ", " : "Attributes: ");
        bw_escape_append(text, facts->xattrs[i].name, facts->xattrs[i].name_length);
    }
    if (facts->xattr_count)
        bw_buffer_append_byte(text, '\n');
    if (row->acl.length)
        append_bytes("Access list", row->acl.data, row->acl.length, text);
    if (row->capabilities)
        append_bytes("Capabilities", row->capabilities, strlen(row->capabilities), text);
    if (facts->compression)
        append_bytes("Compression", facts->compression->value, facts->compression->value_length,
                     text);

    /* The extents by kind, then by compression. */
    const struct bw_extent_count *extents = &facts->extents;
    if (!extents->total)
        return NULL;
    separator = " (";
    bw_buffer_format(text, "Extents: %" PRIu64, extents->total);
    append_part(&separator, extents->inlined, "inline", text);
    append_part(&separator, extents->regular, "regular", text);
    append_part(&separator, extents->unwritten, "preallocated", text);
    append_part(&separator, extents->holes, extents->holes == 1 ? "hole" : "holes", text);
    separator = "; ";
    for (unsigned i = BW_COMPRESS_NONE + 1; i < BW_COMPRESS_TYPES; i++)
        append_part(&separator, extents->compressions[i], bw_compression_name(i), text);
    bw_buffer_format(text, ")\n");
    return NULL;
}

/* Output as a record. */

static struct bw_error *list_extents(void *context, struct bw_record_sink *sink)
{
    const struct bw_extent_count *extents = &((const struct facts *)context)->extents;
    const struct bw_extentsuminfo row = {
        .extent_count = extents->total,
        .inline_ = extents->inlined,
        .regular = extents->regular,
        .preallocated = extents->unwritten,
        .holes = extents->holes,
        .zlib = extents->compressions[BW_COMPRESS_ZLIB],
        .lzo = extents->compressions[BW_COMPRESS_LZO],
        .zstd = extents->compressions[BW_COMPRESS_ZSTD],
    };
    return sink->visit(sink, &row, sizeof row);
}

static struct bw_error *write_record(struct cmd_format *format, const struct facts *facts)
{
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    BW_AUTO_FREE struct bw_bytes *xattrs = calloc(facts->xattr_count + 1, sizeof *xattrs);
    BW_AUTO_FREE char *acl = NULL, *capabilities = NULL;
    const struct bw_xattr *compression = facts->compression;
    const struct bw_inode *inode = &facts->inode;
    BW_TRY(bw_xattr_texts(facts->xattrs, facts->xattr_count, &acl, &capabilities));
    BW_TRY(cmd_paths_absolute(facts->path, &path));
    if (!xattrs)
        return bw_error_no_memory();
    for (size_t i = 0; i < facts->xattr_count; i++)
        xattrs[i] =
            (struct bw_bytes){(const char *)facts->xattrs[i].name, facts->xattrs[i].name_length};
    struct bw_statinfo row = {
        .path = {path.data, path.length},
        .path_bytes = {path.data, path.length},
        .subvolume = bw_subvolume_id(facts->place.subvolume),
        .inode = facts->place.inode,
        .type = type_name(facts),
        .subvolume_path = facts->subvolume,
        .target = {facts->target_length ? facts->target : NULL, facts->target_length},
        .xattrs = {xattrs, facts->xattr_count},
        .acl = {acl, acl ? strlen(acl) : 0},
        .capabilities = capabilities,
        .extent_counts = {list_extents, (void *)(uintptr_t)facts},
        .mode = inode->mode,
        .uid = inode->uid,
        .gid = inode->gid,
        .size = inode->size,
        .allocated = inode->bytes,
        .nlink = inode->link_count,
        .atime = bw_time_nanoseconds(&inode->atime),
        .mtime = bw_time_nanoseconds(&inode->mtime),
        .ctime = bw_time_nanoseconds(&inode->ctime),
        .otime = bw_time_nanoseconds(&inode->otime),
        .generation = inode->generation,
        .transid = inode->transid,
        .sequence = inode->sequence,
        .flags = inode->flags,
        .rdev_major = bw_inode_major(inode),
        .rdev_minor = bw_inode_minor(inode),
    };
    if (compression)
        row.compression =
            (struct bw_bytes){(const char *)compression->value, compression->value_length};
    if (!is_device(facts))
        row.rdev_major = row.rdev_minor = BW_ABSENT;
    return cmd_format_write(format, &row, sizeof row);
}

/* Reads only the facts that the format contains. */
static struct bw_error *write_format(struct stat_state *state, const struct cmd_paths *paths,
                                     struct facts *facts, struct bw_buffer *text)
{
    struct bw_fs *fs = paths->format.session.fs;
    struct bw_superblock_info superblock;
    BW_TRY(bw_inode_get(fs, &facts->place, &facts->inode));
    if (S_ISLNK(facts->inode.mode) && strstr(state->format, "N"))
        BW_TRY(bw_inode_readlink(fs, &facts->place, &facts->target, &facts->target_length));
    bool has_owners = false;
    for (const char *at = state->format; (at = strchr(at, '%'));) {
        at++;
        const char letter = parse_directive(&at).letter;
        has_owners |= letter == 'U' || letter == 'G';
    }
    if (has_owners && !state->user_names)
        BW_TRY(bw_user_names_open(fs, state->subvolume ? paths->from : NULL, &state->user_names));
    facts->user_names = state->user_names;
    bw_fs_superblock(fs, &superblock);
    facts->sectorsize = superblock.sectorsize;

    for (const char *at = state->format; *at;) {
        const size_t plain = strcspn(at, state->escapes ? "%\\" : "%");
        bw_buffer_append(text, at, plain);
        at += plain;
        if (*at == '%') {
            at++;
            const struct directive directive = parse_directive(&at);
            append_directive(&directive, facts, text);
        } else if (*at) {
            at++;
            append_escape(&at, text);
        }
    }
    if (!state->escapes)
        bw_buffer_append_byte(text, '\n');
    return NULL;
}

static struct bw_error *write_stat(void *context, struct cmd_paths *paths, const char *path,
                                   const struct bw_place *place, struct bw_buffer *text)
{
    struct stat_state *state = context;
    struct facts facts = {.path = path, .place = *place};
    struct bw_xattr_reader *reader = NULL;
    struct bw_error *error;
    if (state->format) {
        error = write_format(state, paths, &facts, text);
    } else {
        error = bw_xattr_reader_create(paths->format.session.fs, &reader);
        if (!error)
            error = gather_facts(paths->format.session.fs, reader, &facts);
        if (!error)
            error = write_record(&paths->format, &facts);
        bw_xattr_reader_destroy(reader);
    }
    free(facts.subvolume);
    free(facts.target);
    return error;
}

static int run(const struct cmd_common *common, void *state)
{
    struct stat_state *stat = state;
    const struct cmd_format_plan plan = {
        .record = cmd_stat.record, .print = print_lines, .context = state};
    if (stat->format && !cmd_format_is_for_people(common))
        return cmd_fail(common, bw_error_create(BW_ERROR_USAGE, "--format excludes %s",
                                                common->format.columns ? "-o" : "--json"));
    const int status =
        cmd_paths_run(common, stat->subvolume, stat->follow, &plan, write_stat, state);
    bw_user_names_close(stat->user_names);
    return status;
}

const struct command cmd_stat = {
    .name = "stat",
    .topic = cmd_topic_files,
    .operands = "IMAGE PATH...",
    .summary = "Prints everything about a file or directory.",
    .details = CMD_PATHS_DETAILS
    "Prints the fields of the inode, times in UTC, flags, the subvolume, the names of the\n"
    "extended attributes, and the number of extents of each kind.\n\n"
    "The directives of --format are those of stat(1); times are in UTC. User and group\n"
    "names are those in the image. %d is the id of the subvolume; %m and %C exist only on\n"
    "a mount and are '?'.\n",
    .examples = "  btrfs-walk stat disk.img /etc/passwd               one file\n"
                "  btrfs-walk stat -c '%A %U %s %y %N' disk.img /etc  in a custom format\n"
                "  btrfs-walk stat --json disk.img /a /b | jq .flags  for programs\n",
    .options = options,
    .record = "statinfo",
    .run = run,
    .state_size = sizeof(struct stat_state),
    .takes_paths = true,
    .takes_list = true,
    .missing = "no path given",
};
