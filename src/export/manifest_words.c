/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keywords of mtree(5) that can be compared, in a table with the functions that take their values.
 * Source: the manual pages mtree(5) and vis(3) of FreeBSD. */
#include "export/manifest_words.h"

#include <string.h>
#include <sys/stat.h>

#include "base/human.h"

static const struct {
    const char *name;
    uint32_t type;
} types[] = {{"file", S_IFREG},  {"dir", S_IFDIR},  {"link", S_IFLNK},   {"char", S_IFCHR},
             {"block", S_IFBLK}, {"fifo", S_IFIFO}, {"socket", S_IFSOCK}};

const char *bw_manifest_type_name(uint32_t mode)
{
    size_t i = 0;
    while (i + 1 < sizeof types / sizeof *types && types[i].type != (mode & S_IFMT))
        i++;
    return types[i].name;
}

static bool take_type(char *value, struct bw_manifest_entry *entry)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        entry->type = types[i].type;
        if (strcmp(value, types[i].name) == 0)
            return true;
    }
    return false;
}

static bool take_number(const char *value, unsigned base, uint64_t *number)
{
    return bw_parse_digits(&value, base, number) && !*value;
}

static bool take_mode(char *value, struct bw_manifest_entry *entry)
{
    return take_number(value, 8, &entry->mode) && entry->mode <= 07777;
}

static bool take_uid(char *value, struct bw_manifest_entry *entry)
{
    return take_number(value, 10, &entry->uid);
}

static bool take_gid(char *value, struct bw_manifest_entry *entry)
{
    return take_number(value, 10, &entry->gid);
}

static bool take_links(char *value, struct bw_manifest_entry *entry)
{
    return take_number(value, 10, &entry->links);
}

static bool take_size(char *value, struct bw_manifest_entry *entry)
{
    return take_number(value, 10, &entry->size);
}

/* What follows the point is a number of nanoseconds, of which some writers leave out the zeros in
 * front. */
static bool take_time(char *value, struct bw_manifest_entry *entry)
{
    const char *next = value + (*value == '-');
    uint64_t seconds;
    if (!bw_parse_digits(&next, 10, &seconds) || seconds > INT64_MAX)
        return false;
    entry->seconds = *value == '-' ? -(int64_t)seconds : (int64_t)seconds;
    entry->nanoseconds = 0;
    return !*next || (*next == '.' && take_number(next + 1, 10, &entry->nanoseconds));
}

static bool take_link(char *value, struct bw_manifest_entry *entry)
{
    bw_manifest_unescape(value);
    entry->link = value;
    return true;
}

/* FORMAT,MAJOR,MINOR */
static bool take_device(char *value, struct bw_manifest_entry *entry)
{
    const char *next = value + strcspn(value, ",:");
    return *next++ && bw_parse_digits(&next, 10, &entry->major) && *next++ == ',' &&
           take_number(next, 10, &entry->minor);
}

static bool take_nothing(char *value, struct bw_manifest_entry *entry)
{
    (void)entry;
    return !*value;
}

static const struct keyword {
    const char *name;
    unsigned bit;
    bool (*take)(char *value, struct bw_manifest_entry *entry);
} keywords[] = {
    {"type", BW_MANIFEST_TYPE, take_type},       {"mode", BW_MANIFEST_MODE, take_mode},
    {"uid", BW_MANIFEST_UID, take_uid},          {"gid", BW_MANIFEST_GID, take_gid},
    {"nlink", BW_MANIFEST_LINKS, take_links},    {"size", BW_MANIFEST_SIZE, take_size},
    {"time", BW_MANIFEST_TIME, take_time},       {"link", BW_MANIFEST_LINK, take_link},
    {"device", BW_MANIFEST_DEVICE, take_device}, {"optional", BW_MANIFEST_OPTIONAL, take_nothing},
};

static const struct keyword *find(const char *name)
{
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strcmp(name, keywords[i].name) == 0)
            return &keywords[i];
    return NULL;
}

/* The algorithm of "sha256" or "sha256digest"; BW_HASH_ALGORITHMS: that is no hash. */
static enum bw_hash_algorithm find_hash(const char *name)
{
    enum bw_hash_algorithm algorithm = 0;
    for (; algorithm < BW_HASH_ALGORITHMS; algorithm++) {
        size_t length = strlen(bw_hash_names[algorithm]);
        if (strncmp(name, bw_hash_names[algorithm], length) == 0 &&
            (!name[length] || strcmp(name + length, "digest") == 0))
            break;
    }
    return algorithm;
}

static bool take_hash(char *value, struct bw_manifest_entry *entry,
                      enum bw_hash_algorithm algorithm)
{
    size_t digits = bw_hash_digits(algorithm);
    if (entry->given & BW_MANIFEST_HASH && entry->algorithm < algorithm)
        return true; /* the other one is preferred */
    entry->algorithm = algorithm;
    entry->hash = value;
    return strlen(value) == digits && strspn(value, "0123456789abcdefABCDEF") == digits;
}

/* Keywords that are not compared: hashes of other kinds, and what an image does not have. */
static bool is_other(const char *name)
{
    static const char *const others[] = {
        "cksum",           "contents",  "flags",           "gname",  "ignore",
        "inode",           "nochange",  "resdevice",       "rmd160", "rmd160digest",
        "ripemd160digest", "sha512256", "sha512256digest", "tags",   "uname"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i]) == 0)
            return true;
    return false;
}

/* Once each. */
static void ignore(struct bw_buffer *ignored, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = ignored->data, *end = at + ignored->length; at && at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        comma = comma ? comma : end;
        if ((size_t)(comma - at) == length && memcmp(at, name, length) == 0)
            return;
        at = comma + 1;
    }
    enum { ENOUGH = 1024 };
    if (ignored->length < ENOUGH)
        bw_buffer_format(ignored, "%s%s", ignored->length ? "," : "", name);
}

const char *bw_manifest_take(char *word, struct bw_manifest_entry *entry, struct bw_buffer *ignored)
{
    char *equals = strchr(word, '='), *value = equals ? equals + 1 : word + strlen(word);
    if (equals)
        *equals = '\0';
    const struct keyword *keyword = find(word);
    const enum bw_hash_algorithm algorithm = find_hash(word);
    const bool is_hash = algorithm < BW_HASH_ALGORITHMS;
    if (!keyword && !is_hash && !is_other(word))
        return "unknown keyword";
    if (!keyword && !is_hash) {
        ignore(ignored, word);
        return NULL;
    }
    if (!(keyword ? keyword->take(value, entry) : take_hash(value, entry, algorithm))) {
        if (equals)
            *equals = '=';
        return "a value that the keyword does not have";
    }
    entry->given |= keyword ? keyword->bit : BW_MANIFEST_HASH;
    return NULL;
}

const char *bw_manifest_unset(const char *name, struct bw_manifest_entry *entry)
{
    const struct keyword *keyword = find(name);
    const unsigned hash = find_hash(name) < BW_HASH_ALGORITHMS ? BW_MANIFEST_HASH : 0;
    entry->given &= strcmp(name, "all") == 0 ? 0 : ~(keyword ? keyword->bit : hash);
    return NULL;
}

/* The character of \X; 0: there is no such escape. */
static char escaped(char letter)
{
    static const char letters[] = "abfnrstvE", bytes[] = "\a\b\f\n\r \t\v\033";
    const char *found = strchr(letters, letter);
    return found ? bytes[found - letters] : letter;
}

static bool is_octal(const char *text)
{
    for (int i = 0; i < 3; i++)
        if (text[i] < '0' || text[i] > (i ? '7' : '3'))
            return false;
    return true;
}

void bw_manifest_unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from; to++) {
        if (*from != '\\' || !from[1]) {
            *to = *from++;
        } else if (is_octal(from + 1)) {
            *to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
            from += 4;
        } else {
            *to = escaped(from[1]);
            from += 2;
        }
    }
    *to = '\0';
}
