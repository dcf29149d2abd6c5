/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parsing modes. A symbolic mode is a list of clauses: classes, and one or more operations. */
#include "base/mode.h"

#include <string.h>
#include <sys/stat.h>

#include "base/human.h"

enum {
    ALL_BITS = 07777,
    ANY_EXECUTE = 0111,
    ANY_WRITE = 0222,
    ANY_READ = 0444,
    SET_IDS = S_ISUID | S_ISGID,
};

/* A mode being made. */
struct making {
    uint32_t mode;
    bool directory;
};

static uint32_t parse_classes(const char **text)
{
    uint32_t classes = 0;
    for (;; ++*text)
        switch (**text) {
        case 'u':
            classes |= S_ISUID | S_IRWXU;
            break;
        case 'g':
            classes |= S_ISGID | S_IRWXG;
            break;
        case 'o':
            classes |= S_ISVTX | S_IRWXO;
            break;
        case 'a':
            classes |= ALL_BITS;
            break;
        default:
            return classes;
        }
}

/* The permissions of one class, for all classes. */
static uint32_t copy_of(uint32_t bits)
{
    return (bits & ANY_READ ? ANY_READ : 0) | (bits & ANY_WRITE ? ANY_WRITE : 0) |
           (bits & ANY_EXECUTE ? ANY_EXECUTE : 0);
}

static uint32_t parse_permissions(const char **text, const struct making *making)
{
    static const char letters[] = "rwxst";
    static const uint32_t bits[] = {ANY_READ, ANY_WRITE, ANY_EXECUTE, SET_IDS, S_ISVTX};
    uint32_t value = 0;
    for (; **text && strchr("rwxXst", **text); ++*text)
        if (**text != 'X')
            value |= bits[strchr(letters, **text) - letters];
        else if (making->directory || making->mode & ANY_EXECUTE)
            value |= ANY_EXECUTE;
    return value;
}

/* Parses the operand of an operator: permissions, a class whose permissions are copied, or octal
 * digits. */
static bool parse_operand(const char **text, uint32_t *classes, const struct making *making,
                          uint32_t *value)
{
    uint64_t number;
    const char class = **text;
    if (class == 'u' || class == 'g' || class == 'o') {
        ++*text;
        *value = copy_of(making->mode & (class == 'u'   ? S_IRWXU
                                         : class == 'g' ? S_IRWXG
                                                        : S_IRWXO));
    } else if (class >= '0' && class <= '7') {
        if (*classes || !bw_parse_digits(text, 8, &number) || number > ALL_BITS)
            return false;
        *classes = ALL_BITS;
        *value = (uint32_t)number;
        return **text == ',' || !**text;
    } else {
        *value = parse_permissions(text, making);
    }
    return true;
}

/* In directories, bits that give new files their owner are only changed if they are named. */
static bool apply_operation(const char **text, uint32_t classes, struct making *making)
{
    const char sign = *(*text)++;
    uint32_t value;
    if (!parse_operand(text, &classes, making, &value))
        return false;
    const uint32_t kept = making->directory ? SET_IDS & ~(classes ? classes & value : value) : 0;
    value &= (classes ? classes : ALL_BITS) & ~kept;
    if (sign == '-')
        making->mode &= ~value;
    else
        making->mode =
            value | (sign == '+' ? making->mode : making->mode & ((classes ? ~classes : 0) | kept));
    return true;
}

static bool is_operator(char byte)
{
    return byte == '+' || byte == '-' || byte == '=';
}

bool bw_parse_mode(const char *text, bool directory, uint32_t *mode)
{
    struct making making = {0, directory};
    uint64_t number;
    if (*text >= '0' && *text <= '7') {
        bool good = bw_parse_digits(&text, 8, &number) && !*text && number <= ALL_BITS;
        *mode = (uint32_t)number;
        return good;
    }
    for (;; text++) {
        const uint32_t classes = parse_classes(&text);
        if (!is_operator(*text))
            return false;
        while (is_operator(*text))
            if (!apply_operation(&text, classes, &making))
                return false;
        if (*text != ',')
            break;
    }
    *mode = making.mode;
    return !*text;
}
