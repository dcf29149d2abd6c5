/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Formats of stat(1): directives like %-10.3s, each for a text, a number or a time. A "?" replaces
 * properties that only a mounted file system has. The device number is the id of the subvolume.
 */
#include "cli/inspect/stat_format.h"

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
        if (number < WIDEST)
            number = (number < 0 ? 0 : number) * 10 + (**at - '0');
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

size_t stat_format_problem(const char *format, const char **problem)
{
    while ((format = strchr(format, '%'))) {
        *problem = format++;
        const struct directive directive = parse_directive(&format);
        if (!directive.letter || !strchr("%aAbBCdDfFgGhimnNosrRtTuUwWxXyYzZ", directive.letter))
            return (size_t)(format - *problem);
    }
    return 0;
}

bool stat_format_names_people(const char *format)
{
    while ((format = strchr(format, '%'))) {
        format++;
        const char letter = parse_directive(&format).letter;
        if (letter == 'U' || letter == 'G')
            return true;
    }
    return false;
}

/* Formatting. */

static void append_text(const struct directive *directive, const char *value,
                        struct bw_buffer *text)
{
    const int width = directive->width < 0 ? 0 : directive->width;
    const int precision =
        directive->has_precision && directive->precision < 0 ? 0 : directive->precision;
    bw_buffer_format(text, strchr(directive->flags, '-') ? "%-*.*s" : "%*.*s", width, precision,
                     value);
}

/* Formats a number with printf(3), which interprets the flags the same way. */
static void append_number(const struct directive *directive, uint64_t value, const char *conversion,
                          struct bw_buffer *text)
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
static bool number_of(const struct directive *directive, const struct stat_facts *facts,
                      uint64_t *number, const char **conversion)
{
    const struct bw_inode *inode = facts->inode;
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
        {'d', PRIu64, facts->subvolume},
        {'D', PRIx64, facts->subvolume},
        {'f', PRIx64, inode->mode},
        {'g', PRIu64, inode->gid},
        {'h', PRIu64, inode->link_count},
        {'i', PRIu64, facts->number},
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

static void append_directive(const struct directive *directive, const struct stat_facts *facts,
                             struct bw_buffer *text)
{
    const struct bw_inode *inode = facts->inode;
    BW_AUTO_BUFFER struct bw_buffer buffer = {0};
    const char letter = directive->letter, *conversion, *value = "?";
    char mode[BW_MODE_LENGTH + 1];
    uint64_t number;
    if (number_of(directive, facts, &number, &conversion)) {
        append_number(directive, number, conversion, text);
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
    if (buffer.length || buffer.failed) {
        bw_buffer_append_byte(&buffer, '\0');
        value = buffer.failed ? "" : buffer.data;
    }
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
    const size_t length =
        is_hex ? strspn(*at + 1, "0123456789abcdefABCDEF") : strspn(*at, "01234567");
    const size_t most = is_hex ? 2 : 3, used = length < most ? length : most;
    if (!used) /* an unknown escape: the character itself */
        return;
    memcpy(digits, *at + is_hex, used);
    number = strtoull(digits, NULL, is_hex ? 16 : 8);
    bw_buffer_append_byte(text, (char)number);
    *at += used + is_hex;
}

void stat_format_append(const char *format, bool escapes, const struct stat_facts *facts,
                        struct bw_buffer *text)
{
    while (*format) {
        const size_t plain = strcspn(format, escapes ? "%\\" : "%");
        bw_buffer_append(text, format, plain);
        format += plain;
        if (*format == '%') {
            format++;
            const struct directive directive = parse_directive(&format);
            append_directive(&directive, facts, text);
        } else if (*format) {
            format++;
            append_escape(&format, text);
        }
    }
}
