/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A list of files as a side of a comparison: lines of mtree(5), as `tar --format mtree`, mtree(8)
 * and bsdtar(1) write them, or lines of a hash and a path, as `sum`, sha256sum(1) and similar
 * programs write them. Both formats are split into words in place, and the entries are sorted by
 * path. Of several lines with the same path, the last one counts; of several hashes in a line, the
 * strongest.
 *
 * Lists are not trusted. An entry needs a fixed number of bytes, and paths that are put together
 * from the names of directories need at most a multiple of the list.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/hash.h"
#include "base/human.h"
#include "base/vector.h"
#include "diff/entries.h"

/* A line of the list. */
struct list_entry {
    struct bw_diff_entry facts;
    const char *path; /* without a '/' before it; "" for the top */
    char *owned;      /* allocated path, if it is not a part of the text */
    unsigned algorithms;
    bool is_optional;
};

BW_VECTOR(list_entries, struct list_entry);

struct bw_list {
    struct bw_buffer text;     /* decoded in place */
    struct list_entries items; /* in the order of their paths */
    struct bw_buffer ignored;  /* keywords that are not compared, separated by commas */
    unsigned knows;            /* facts that some entry has */
    bool only_files;           /* it contains only hashes, so only regular files */
};

/* The values of keywords. */

static bool parse_type(char *value, struct list_entry *entry)
{
    static const char *const names[] = {[BW_FILE_REGULAR] = "file",
                                        [BW_FILE_DIRECTORY] = "dir",
                                        [BW_FILE_CHARACTER_DEVICE] = "char",
                                        [BW_FILE_BLOCK_DEVICE] = "block",
                                        [BW_FILE_FIFO] = "fifo",
                                        [BW_FILE_SOCKET] = "socket",
                                        [BW_FILE_SYMLINK] = "link"};
    for (uint8_t i = 1; i < sizeof names / sizeof *names; i++) {
        entry->facts.type = i;
        if (strcmp(value, names[i]) == 0)
            return true;
    }
    return false;
}

static bool parse_number(const char *value, unsigned base, uint64_t *number)
{
    return bw_parse_digits(&value, base, number) && !*value;
}

static bool parse_mode(char *value, struct list_entry *entry)
{
    uint64_t mode;
    if (!parse_number(value, 8, &mode) || mode > 07777)
        return false;
    entry->facts.mode = (uint32_t)mode;
    return true;
}

/* Parses SECONDS[.NANOSECONDS]. The part after the point is an integer, not a fraction: some
 * programs write it without leading zeros. */
static bool parse_time(char *value, struct list_entry *entry)
{
    const char *next = value + (*value == '-');
    uint64_t seconds;
    if (!bw_parse_digits(&next, 10, &seconds) || seconds > INT64_MAX)
        return false;
    uint64_t nanoseconds = 0;
    if (*next &&
        (*next != '.' || !parse_number(next + 1, 10, &nanoseconds) || nanoseconds > 999999999))
        return false;
    entry->facts.mtime.tv_sec = *value == '-' ? -(time_t)seconds : (time_t)seconds;
    entry->facts.mtime.tv_nsec = (long)nanoseconds;
    return true;
}

/* Decodes the escapes of vis(3) in place. */
static void unescape_text(char *text)
{
    static const char letters[] = "abfnrstvE", bytes[] = "\a\b\f\n\r \t\v\033";
    char *to = text;
    for (const char *from = text; *from; to++) {
        const char *letter = from[1] ? strchr(letters, from[1]) : NULL;
        if (*from != '\\' || !from[1]) {
            *to = *from++;
        } else if (from[1] >= '0' && from[1] <= '3' && from[2] >= '0' && from[2] <= '7' &&
                   from[3] >= '0' && from[3] <= '7') {
            *to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
            from += 4;
        } else {
            *to = letter ? bytes[letter - letters] : from[1];
            from += 2;
        }
    }
    *to = '\0';
}

static bool parse_link(char *value, struct list_entry *entry)
{
    unescape_text(value);
    entry->facts.target = value;
    entry->facts.target_length = strlen(value);
    return true;
}

/* Parses FORMAT,MAJOR,MINOR. */
static bool parse_device(char *value, struct list_entry *entry)
{
    const char *next = value + strcspn(value, ",:");
    return *next++ && bw_parse_digits(&next, 10, &entry->facts.major) && *next++ == ',' &&
           parse_number(next, 10, &entry->facts.minor);
}

static bool parse_optional(char *value, struct list_entry *entry)
{
    entry->is_optional = true;
    return !*value;
}

static const struct keyword {
    const char *name;
    unsigned bit;                                         /* enum bw_diff_facts; 0: none */
    bool (*parse)(char *value, struct list_entry *entry); /* NULL: a number */
    size_t offset;                                        /* of the number, in the facts */
} keywords[] = {
    {"type", BW_KNOWS_TYPE, parse_type, 0},
    {"mode", BW_KNOWS_MODE, parse_mode, 0},
    {"uid", BW_KNOWS_UID, NULL, offsetof(struct bw_diff_entry, uid)},
    {"gid", BW_KNOWS_GID, NULL, offsetof(struct bw_diff_entry, gid)},
    {"nlink", BW_KNOWS_LINKS, NULL, offsetof(struct bw_diff_entry, links)},
    {"size", BW_KNOWS_SIZE, NULL, offsetof(struct bw_diff_entry, size)},
    {"time", BW_KNOWS_TIME, parse_time, 0},
    {"link", BW_KNOWS_TARGET, parse_link, 0},
    {"device", BW_KNOWS_DEVICE, parse_device, 0},
    {"optional", 0, parse_optional, 0},
};

static const struct keyword *find_keyword(const char *name)
{
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strcmp(name, keywords[i].name) == 0)
            return &keywords[i];
    return NULL;
}

/* The algorithm of "sha256" or "sha256digest"; BW_HASH_ALGORITHMS: not a hash. */
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

static size_t count_digits(const char *text)
{
    return strspn(text, "0123456789abcdefABCDEF");
}

/* Keywords that are not compared: other hashes, and properties that an image does not have. */
static const char *const other_keywords[] = {
    "cksum",           "contents",  "flags",           "gname",  "ignore",
    "inode",           "nochange",  "resdevice",       "rmd160", "rmd160digest",
    "ripemd160digest", "sha512256", "sha512256digest", "tags",   "uname"};

/* Stores KEYWORD=VALUE in an entry; adds a keyword that is not compared to `ignored`. Returns why
 * it is invalid, or NULL. Changes the word, which must outlive the entry. */
static const char *parse_word(char *word, struct list_entry *entry, struct bw_buffer *ignored)
{
    char *equals = strchr(word, '='), *value = equals ? equals + 1 : word + strlen(word);
    if (equals)
        *equals = '\0';
    const struct keyword *keyword = find_keyword(word);
    const enum bw_hash_algorithm algorithm = find_hash(word);
    const bool is_hash = algorithm < BW_HASH_ALGORITHMS;
    if (!keyword && !is_hash) {
        enum { ENOUGH = 1024 };
        bool is_other = false, is_listed = false;
        for (size_t i = 0; i < sizeof other_keywords / sizeof *other_keywords; i++)
            is_other |= strcmp(word, other_keywords[i]) == 0;
        if (!is_other)
            return "unknown keyword";
        const size_t length = strlen(word);
        for (size_t at = 0, end; at < ignored->length; at = end + 1) {
            const char *comma = memchr(ignored->data + at, ',', ignored->length - at);
            end = comma ? (size_t)(comma - ignored->data) : ignored->length;
            is_listed |= end - at == length && memcmp(ignored->data + at, word, length) == 0;
        }
        if (!is_listed && ignored->length < ENOUGH)
            bw_buffer_format(ignored, "%s%s", ignored->length ? "," : "", word);
        return NULL;
    }
    if (is_hash && entry->facts.known & BW_KNOWS_HASH && entry->algorithms < 1U << algorithm)
        return NULL; /* the previous hash is stronger */
    bool is_good;
    if (is_hash) {
        const size_t digits = bw_hash_digits(algorithm);
        entry->algorithms = 1U << algorithm;
        entry->facts.hash = value;
        entry->facts.hash_name = bw_hash_names[algorithm];
        is_good = count_digits(value) == digits && !value[digits];
    } else if (keyword->parse)
        is_good = keyword->parse(value, entry);
    else
        is_good = parse_number(value, 10, (uint64_t *)((char *)&entry->facts + keyword->offset));
    if (!is_good) {
        if (equals)
            *equals = '=';
        return "a value that the keyword does not have";
    }
    entry->facts.known |= keyword ? keyword->bit : BW_KNOWS_HASH;
    return NULL;
}

/* Parsing. */

/* The state of the parser. */
struct reader {
    struct bw_list *list;
    char *next, *end;
    unsigned line;
    struct list_entry defaults; /* of /set */
    struct bw_buffer directory; /* directory of entries without a '/'; ends with '/', or is empty */
    size_t path_room;           /* bytes that paths below directories may still need */
};

static struct bw_error *line_error(const struct reader *reader, const char *why, const char *word)
{
    return bw_error_create(BW_ERROR_USAGE, "line %u: %s%s%s", reader->line, why, *word ? ": " : "",
                           word);
}

/* Makes a path relative to the top, without empty names and ".", in place; false if it leads up. */
static bool clean_path(char *path)
{
    char *to = path;
    for (const char *from = path; *from;) {
        const size_t length = strcspn(from, "/"), step = length + (from[length] == '/');
        if (length == 2 && memcmp(from, "..", 2) == 0)
            return false;
        if (length && !(length == 1 && *from == '.')) {
            if (to > path)
                *to++ = '/';
            memmove(to, from, length);
            to += length;
        }
        from += step;
    }
    *to = '\0';
    return true;
}

/* Lists of hashes. */

/* Splits a line into a hash and a name: HASH, two spaces, NAME; or a space and an asterisk. The
 * length of the hash gives the algorithms: 128 digits are either BLAKE2b or SHA-512. The other form
 * is "SHA256 (NAME) = HASH". Returns the name, or NULL. The line does not change. */
static char *cut_hash_line(char *line, struct list_entry *entry)
{
    const size_t digits = count_digits(line);
    *entry = (struct list_entry){.facts.hash = line};
    for (unsigned i = 0; i < BW_HASH_ALGORITHMS; i++)
        entry->algorithms |= (unsigned)(bw_hash_digits(i) == digits) << i;
    if (entry->algorithms && line[digits] == ' ' &&
        (line[digits + 1] == ' ' || line[digits + 1] == '*') && line[digits + 2])
        return line + digits + 2;

    char *bracket = strstr(line, " ("), *equals = NULL;
    for (char *next = line; (next = strstr(next, ") = ")); next++)
        equals = next;
    unsigned algorithm = 0;
    while (bracket && algorithm < BW_HASH_ALGORITHMS &&
           (strlen(bw_hash_tags[algorithm]) != (size_t)(bracket - line) ||
            memcmp(line, bw_hash_tags[algorithm], (size_t)(bracket - line)) != 0))
        algorithm++;
    if (!bracket || !equals || algorithm == BW_HASH_ALGORITHMS || equals <= bracket + 2)
        return NULL;
    entry->facts.hash = equals + strlen(") = ");
    entry->algorithms = 1U << algorithm;
    const size_t length = count_digits(entry->facts.hash);
    const bool is_whole = length == bw_hash_digits(algorithm) && !entry->facts.hash[length];
    return is_whole ? bracket + 2 : NULL;
}

/* Terminates the next line, or text up to a NUL, and advances. */
static char *next_line(struct reader *reader, char terminator)
{
    char *line = reader->next;
    char *end = memchr(line, terminator, (size_t)(reader->end - line));
    end = end ? end : reader->end;
    *end = '\0';
    reader->next = end < reader->end ? end + 1 : end;
    reader->line++;
    return line;
}

/* Whether the first line of a text contains a hash. */
static bool begins_with_hash(char *text)
{
    struct list_entry entry;
    char *line = text + (*text == '\\');
    char *end = line + strcspn(line, "\n"), before = *end;
    *end = '\0';
    const bool is_one = cut_hash_line(line, &entry);
    *end = before;
    return is_one;
}

/* Reads lines of hashes and names. */
static struct bw_error *read_hashes(struct reader *reader)
{
    char terminator =
        memchr(reader->next, '\0', (size_t)(reader->end - reader->next)) ? '\0' : '\n';
    reader->list->only_files = true;
    while (reader->next < reader->end) {
        char *line = next_line(reader, terminator);
        const bool escapes = *line == '\\';
        struct list_entry entry;
        if (!*line)
            continue;
        char *const name = cut_hash_line(line + escapes, &entry), *to = name;
        if (!name)
            return line_error(reader, "neither a hash and a path nor a line of mtree(5)", "");
        char *first_end = name - strlen("  "); /* of the hash or the name, whichever is first */
        if (entry.facts.hash > name)
            first_end = name + (entry.facts.hash - name) - strlen(") = ");
        *first_end = '\0';
        for (const char *from = to; *from && escapes; from++) {
            const bool is_escape =
                *from == '\\' && (from[1] == 'n' || from[1] == 'r' || from[1] == '\\');
            from += is_escape;
            *to = *from;
            if (is_escape && *from != '\\')
                *to = *from == 'n' ? '\n' : '\r';
            to++;
        }
        if (escapes)
            *to = '\0';
        if (!clean_path(name))
            return line_error(reader, "a path that leads up", "");
        entry.path = name;
        entry.facts.known = BW_KNOWS_TYPE | BW_KNOWS_HASH;
        entry.facts.type = BW_FILE_REGULAR;
        entry.facts.line = reader->line;
        BW_TRY(list_entries_push(&reader->list->items, entry));
    }
    return NULL;
}

/* Manifests as in mtree(5). */

/* Separates joined lines; counted later to find line numbers. */
#define JOINED '\v'
#define SPACES " \t\r\v"

/* The next word of a line; NULL at the end. */
static char *next_word(char **line)
{
    char *word = *line + strspn(*line, SPACES);
    *line = word + strcspn(word, SPACES);
    if (**line)
        *(*line)++ = '\0';
    return *word ? word : NULL;
}

/* Stores the keywords of a line in an entry; or removes these keywords, or "all", from it. */
static struct bw_error *read_keywords(struct reader *reader, char *line, bool set,
                                      struct list_entry *entry)
{
    for (char *word; (word = next_word(&line));) {
        if (set) {
            const char *bad = parse_word(word, entry, &reader->list->ignored);
            if (bad)
                return line_error(reader, bad, word);
            continue;
        }
        const struct keyword *keyword = find_keyword(word);
        unsigned bits = keyword ? keyword->bit : 0;
        if (find_hash(word) < BW_HASH_ALGORITHMS)
            bits = BW_KNOWS_HASH;
        if (strcmp(word, "all") == 0)
            *entry = (struct list_entry){.path = ""};
        else if (strcmp(word, "optional") == 0)
            entry->is_optional = false;
        entry->facts.known &= ~bits;
    }
    return NULL;
}

/* Reads the line of an entry. The type may follow from other facts; a file whose type is unknown
 * counts as a regular one. */
static struct bw_error *read_entry(struct reader *reader, char *name, char *words)
{
    struct list_entry entry = reader->defaults;
    struct bw_diff_entry *facts = &entry.facts;
    facts->line = reader->line;
    BW_TRY(read_keywords(reader, words, true, &entry));
    if (!(facts->known & BW_KNOWS_TYPE)) {
        facts->type = facts->known & BW_KNOWS_TARGET ? BW_FILE_SYMLINK : BW_FILE_REGULAR;
        if (facts->known & (BW_KNOWS_TARGET | BW_KNOWS_HASH))
            facts->known |= BW_KNOWS_TYPE;
    }
    if (facts->type != BW_FILE_REGULAR)
        facts->known &= ~(unsigned)(BW_KNOWS_HASH | BW_KNOWS_SIZE);
    if (facts->type == BW_FILE_DIRECTORY)
        facts->known &= ~(unsigned)BW_KNOWS_LINKS;

    /* A path with a '/' is complete. Others are relative to the current directory; if the entry is
     * a directory, it becomes the current one. */
    struct bw_buffer *directory = &reader->directory;
    const bool is_whole = strchr(name, '/');
    BW_AUTO_FREE char *owned = NULL;
    unescape_text(name);
    if (!clean_path(name))
        return line_error(reader, "a path that leads up", "");
    entry.path = name;
    if (!is_whole && *name && directory->length) {
        const size_t size = directory->length + strlen(name) + 1;
        if (size > reader->path_room)
            return line_error(reader, "the paths are too long", "");
        reader->path_room -= size;
        entry.path = entry.owned = owned = malloc(size);
        if (!owned)
            return bw_error_no_memory();
        memcpy(owned, directory->data, directory->length);
        strcpy(owned + directory->length, name);
    }
    if (!is_whole && *name && facts->known & BW_KNOWS_TYPE && facts->type == BW_FILE_DIRECTORY)
        bw_buffer_format(directory, "%s/", name);
    BW_TRY(bw_buffer_error(directory));
    BW_TRY(list_entries_push(&reader->list->items, entry));
    owned = NULL;
    return NULL;
}

static struct bw_error *read_mtree(struct reader *reader)
{
    /* Lines that end with a backslash are joined with the next line. */
    for (char *at = reader->next; at + 1 < reader->end; at++)
        if (*at == '\\' && at[1] == '\n')
            at[0] = at[1] = JOINED;
        else if (*at == '\\')
            at++;

    struct bw_buffer *directory = &reader->directory;
    for (unsigned joined = 0; reader->next < reader->end;) {
        char *line = next_line(reader, '\n');
        reader->line += joined;
        joined = 0;
        for (const char *at = line; (at = strchr(at, JOINED));) {
            const bool is_join = at[1] == JOINED;
            at += 1 + is_join;
            joined += is_join;
        }
        char *name = next_word(&line);
        if (!name || *name == '#')
            continue;
        if (strcmp(name, "/set") == 0 || strcmp(name, "/unset") == 0) {
            BW_TRY(read_keywords(reader, line, name[1] == 's', &reader->defaults));
        } else if (strcmp(name, "..") == 0) {
            directory->length -= directory->length > 0;
            while (directory->length && directory->data[directory->length - 1] != '/')
                directory->length--;
        } else {
            BW_TRY(read_entry(reader, name, line));
        }
    }
    return NULL;
}

/* Both formats. */

static int by_path(const struct list_entry *a, const struct list_entry *b)
{
    return bw_compare_paths(a->path, strlen(a->path), b->path, strlen(b->path));
}

/* Sorts the last line with a path before earlier ones, because it overrides them. */
static int by_path_and_line(const void *left, const void *right)
{
    const struct list_entry *a = left, *b = right;
    const int order = by_path(a, b);
    return order ? order : (a->facts.line < b->facts.line) - (a->facts.line > b->facts.line);
}

struct bw_error *bw_list_open(const void *text, size_t length, struct bw_list **result)
{
    enum { MOST_TIMES = 16, ALWAYS = 1 << 20 };
    struct bw_list *list = calloc(1, sizeof *list);
    if (!list)
        return bw_error_no_memory();
    bw_buffer_append(&list->text, text, length);
    struct bw_error *error = bw_buffer_terminate(&list->text); /* the NUL of the last line */
    if (error) {
        bw_list_close(list);
        return error;
    }
    struct reader reader = {.list = list,
                            .defaults.path = "",
                            .next = list->text.data,
                            .end = list->text.data + length,
                            .path_room = ALWAYS + MOST_TIMES * length};
    error = begins_with_hash(reader.next) ? read_hashes(&reader) : read_mtree(&reader);
    if (!error)
        error = bw_buffer_terminate(&list->ignored);
    bw_buffer_free(&reader.directory);
    if (error) {
        bw_list_close(list);
        return error;
    }

    /* By path, the last line of each. */
    struct list_entry *items = list->items.items;
    size_t kept = 0;
    if (list->items.count)
        qsort(items, list->items.count, sizeof *items, by_path_and_line);
    for (size_t i = 0; i < list->items.count; i++) {
        if (kept && by_path(&items[kept - 1], &items[i]) == 0) {
            free(items[i].owned);
            continue;
        }
        list->knows |= items[i].facts.known;
        items[kept++] = items[i];
    }
    list->items.count = kept;
    *result = list;
    return NULL;
}

const char *bw_list_ignored(const struct bw_list *list)
{
    return list->ignored.data;
}

void bw_list_close(struct bw_list *list)
{
    if (!list)
        return;
    for (size_t i = 0; i < list->items.count; i++)
        free(list->items.items[i].owned);
    list_entries_free(&list->items);
    bw_buffer_free(&list->text);
    bw_buffer_free(&list->ignored);
    free(list);
}

bool bw_list_detect(const void *start, size_t length)
{
    enum { ENOUGH = 4096 };
    char text[ENOUGH + 1];
    length = length < ENOUGH ? length : ENOUGH;
    memcpy(text, start, length);
    text[length] = '\0';
    if (begins_with_hash(text))
        return true;
    return strlen(text) == length && length && strchr("#./", *text);
}

/* The cursor. */

struct list_side {
    struct bw_entries entries;
    const struct bw_list *list;
    size_t next;
    bool has_begun;        /* the top has been returned */
    struct bw_buffer path; /* of the current entry, with a '/' before it */
};

static struct bw_error *next_entry(struct bw_entries *entries)
{
    struct list_side *side = (struct list_side *)entries;
    const bool has_more = side->next < side->list->items.count;
    const struct list_entry *item = has_more ? &side->list->items.items[side->next] : NULL;
    side->path.length = 0;
    entries->entry = (struct bw_side_entry){.path = "", .facts.type = BW_FILE_DIRECTORY};
    if (!side->has_begun) {
        side->has_begun = true;
        if (!item || *item->path)
            return NULL; /* the list does not contain the top */
    }
    entries->ended = !item;
    if (!item)
        return NULL;
    side->next++;
    entries->entry.facts = item->facts;
    entries->entry.algorithms = item->algorithms;
    entries->entry.is_optional = item->is_optional;
    if (!*item->path)
        return NULL;
    bw_buffer_format(&side->path, "/%s", item->path);
    entries->entry.path = side->path.data;
    entries->entry.path_length = side->path.length;
    return bw_buffer_error(&side->path);
}

static void close_list(struct bw_entries *entries)
{
    struct list_side *side = (struct list_side *)entries;
    bw_buffer_free(&side->path);
    free(side);
}

static const struct bw_entries_class list_class = {.next = next_entry, .close = close_list};

struct bw_error *bw_entries_open_list(const struct bw_list *list, struct bw_entries **result)
{
    struct list_side *side = calloc(1, sizeof *side);
    if (!side)
        return bw_error_no_memory();
    const unsigned sockets = 1U << BW_FILE_SOCKET; /* which mtree(8) omits */
    side->entries.class = &list_class;
    side->entries.knows = list->knows;
    side->entries.types =
        list->only_files ? 1U << BW_FILE_REGULAR : BW_ENTRIES_ALL_TYPES & ~sockets;
    side->entries.tells_nested = true; /* what it lists in a nested subvolume is expected to be
                                          there */
    side->list = list;
    *result = &side->entries;
    return NULL;
}
