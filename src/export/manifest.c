/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists of files. Both formats are split into words in place; the entries are sorted by path. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/human.h"
#include "export/manifest.h"

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

static bool parse_type(char *value, struct bw_manifest_entry *entry)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        entry->type = types[i].type;
        if (strcmp(value, types[i].name) == 0)
            return true;
    }
    return false;
}

static bool parse_number(const char *value, unsigned base, uint64_t *number)
{
    return bw_parse_digits(&value, base, number) && !*value;
}

static bool parse_mode(char *value, struct bw_manifest_entry *entry)
{
    return parse_number(value, 8, &entry->mode) && entry->mode <= 07777;
}

static bool parse_uid(char *value, struct bw_manifest_entry *entry)
{
    return parse_number(value, 10, &entry->uid);
}

static bool parse_gid(char *value, struct bw_manifest_entry *entry)
{
    return parse_number(value, 10, &entry->gid);
}

static bool parse_links(char *value, struct bw_manifest_entry *entry)
{
    return parse_number(value, 10, &entry->links);
}

static bool parse_size(char *value, struct bw_manifest_entry *entry)
{
    return parse_number(value, 10, &entry->size);
}

/* Parses SECONDS[.NANOSECONDS]. The part after the point is an integer, not a fraction: some
 * programs write it without leading zeros. */
static bool parse_time(char *value, struct bw_manifest_entry *entry)
{
    const char *next = value + (*value == '-');
    uint64_t seconds;
    if (!bw_parse_digits(&next, 10, &seconds) || seconds > INT64_MAX)
        return false;
    entry->seconds = *value == '-' ? -(int64_t)seconds : (int64_t)seconds;
    entry->nanoseconds = 0;
    return !*next || (*next == '.' && parse_number(next + 1, 10, &entry->nanoseconds));
}

/* The character for \X; 0: unknown. */
static char byte_of_escape(char letter)
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

/* Decodes the escapes of vis(3) in place. */
static void unescape_text(char *text)
{
    char *to = text;
    for (const char *from = text; *from; to++) {
        if (*from != '\\' || !from[1]) {
            *to = *from++;
        } else if (is_octal(from + 1)) {
            *to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
            from += 4;
        } else {
            *to = byte_of_escape(from[1]);
            from += 2;
        }
    }
    *to = '\0';
}

static bool parse_link(char *value, struct bw_manifest_entry *entry)
{
    unescape_text(value);
    entry->link = value;
    return true;
}

/* Parses FORMAT,MAJOR,MINOR. */
static bool parse_device(char *value, struct bw_manifest_entry *entry)
{
    const char *next = value + strcspn(value, ",:");
    return *next++ && bw_parse_digits(&next, 10, &entry->major) && *next++ == ',' &&
           parse_number(next, 10, &entry->minor);
}

static bool parse_nothing(char *value, struct bw_manifest_entry *entry)
{
    (void)entry;
    return !*value;
}

static const struct keyword {
    const char *name;
    unsigned bit;
    bool (*parse)(char *value, struct bw_manifest_entry *entry);
} keywords[] = {
    {"type", BW_MANIFEST_TYPE, parse_type},       {"mode", BW_MANIFEST_MODE, parse_mode},
    {"uid", BW_MANIFEST_UID, parse_uid},          {"gid", BW_MANIFEST_GID, parse_gid},
    {"nlink", BW_MANIFEST_LINKS, parse_links},    {"size", BW_MANIFEST_SIZE, parse_size},
    {"time", BW_MANIFEST_TIME, parse_time},       {"link", BW_MANIFEST_LINK, parse_link},
    {"device", BW_MANIFEST_DEVICE, parse_device}, {"optional", BW_MANIFEST_OPTIONAL, parse_nothing},
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

static bool parse_hash(char *value, struct bw_manifest_entry *entry,
                       enum bw_hash_algorithm algorithm)
{
    size_t digits = bw_hash_digits(algorithm);
    if (entry->given & BW_MANIFEST_HASH && entry->algorithm < algorithm)
        return true; /* the existing one is preferred */
    entry->algorithm = algorithm;
    entry->hash = value;
    return strlen(value) == digits && strspn(value, "0123456789abcdefABCDEF") == digits;
}

/* Keywords that are not compared: other hashes, and properties that an image does not have. */
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

/* Adds a keyword to the list of ignored ones, unless it is already there. */
static void ignore_keyword(struct bw_buffer *ignored, const char *name)
{
    const size_t length = strlen(name);
    for (size_t at = 0, end; at < ignored->length; at = end + 1) {
        const char *word = ignored->data + at, *comma = memchr(word, ',', ignored->length - at);
        end = comma ? (size_t)(comma - ignored->data) : ignored->length;
        if (end - at == length && memcmp(word, name, length) == 0)
            return;
    }
    enum { ENOUGH = 1024 };
    if (ignored->length < ENOUGH)
        bw_buffer_format(ignored, "%s%s", ignored->length ? "," : "", name);
}

/* Stores KEYWORD=VALUE in an entry; adds a keyword that is not compared to `ignored`. Returns why
 * it is invalid, or NULL. Changes the word, which must outlive the entry. */
static const char *parse_word(char *word, struct bw_manifest_entry *entry,
                              struct bw_buffer *ignored)
{
    char *equals = strchr(word, '='), *value = equals ? equals + 1 : word + strlen(word);
    if (equals)
        *equals = '\0';
    const struct keyword *keyword = find_keyword(word);
    const enum bw_hash_algorithm algorithm = find_hash(word);
    const bool is_hash = algorithm < BW_HASH_ALGORITHMS;
    if (!keyword && !is_hash && !is_other(word))
        return "unknown keyword";
    if (!keyword && !is_hash) {
        ignore_keyword(ignored, word);
        return NULL;
    }
    if (!(keyword ? keyword->parse(value, entry) : parse_hash(value, entry, algorithm))) {
        if (equals)
            *equals = '=';
        return "a value that the keyword does not have";
    }
    entry->given |= keyword ? keyword->bit : BW_MANIFEST_HASH;
    return NULL;
}

/* Removes a KEYWORD, or "all", from an entry. Returns NULL. */
static const char *manifest_unset(const char *name, struct bw_manifest_entry *entry)
{
    const struct keyword *keyword = find_keyword(name);
    const unsigned hash = find_hash(name) < BW_HASH_ALGORITHMS ? BW_MANIFEST_HASH : 0;
    entry->given &= strcmp(name, "all") == 0 ? 0 : ~(keyword ? keyword->bit : hash);
    return NULL;
}

/* Parsing. */

/* The state of the parser. */
struct reader {
    struct bw_manifest *manifest;
    const char *file;
    char *next, *end;
    unsigned line;
    struct bw_manifest_entry defaults; /* of /set */
    struct bw_buffer directory; /* directory of entries without a '/'; ends with '/', or is empty */
};

static struct bw_error *line_error(const struct reader *reader, const char *why, const char *word)
{
    return bw_error_create(BW_ERROR_USAGE, "%s, line %u: %s%s%s", reader->file, reader->line, why,
                           *word ? ": " : "", word);
}

/* Removes '/' and "./" at the beginning: paths are relative to the top. */
static char *relative_path(char *path)
{
    while (*path == '/' || (path[0] == '.' && path[1] == '/'))
        path++;
    return strcmp(path, ".") == 0 ? path + 1 : path;
}

static struct bw_manifest_entry *add_entry(struct bw_manifest *manifest)
{
    if (!BW_ARRAY_RESERVE(manifest->entries, manifest->count, manifest->capacity))
        return NULL;
    return &manifest->entries[manifest->count++];
}

/* Lists of hashes. */

/* The parts of a line with a hash and a name. */
struct hash_line {
    char *hash, *name;
    enum bw_hash_algorithm algorithm;
};

/* Finds the algorithm of a hash by its length. 128 digits are either BLAKE2b or SHA-512; BLAKE2b is
 * assumed until bw_manifest_settle(). */
static bool has_algorithm(size_t digits, enum bw_hash_algorithm *algorithm)
{
    *algorithm = 0;
    while (*algorithm < BW_HASH_ALGORITHMS &&
           (*algorithm == BW_HASH_SHA512 || bw_hash_digits(*algorithm) != digits))
        ++*algorithm;
    return *algorithm < BW_HASH_ALGORITHMS;
}

static size_t count_digits(const char *text)
{
    return strspn(text, "0123456789abcdefABCDEF");
}

/* Splits a line "SHA256 (NAME) = HASH". Does not change other lines. */
static bool cut_tagged(char *line, struct hash_line *parts)
{
    char *bracket = strstr(line, " ("), *equals = NULL;
    for (char *next = line; (next = strstr(next, ") = ")); next++)
        equals = next;
    parts->algorithm = 0;
    while (bracket && parts->algorithm < BW_HASH_ALGORITHMS &&
           (strlen(bw_hash_tags[parts->algorithm]) != (size_t)(bracket - line) ||
            memcmp(line, bw_hash_tags[parts->algorithm], (size_t)(bracket - line)) != 0))
        parts->algorithm++;
    if (!bracket || !equals || parts->algorithm == BW_HASH_ALGORITHMS || equals <= bracket + 2)
        return false;
    parts->name = bracket + 2;
    parts->hash = equals + 4;
    return count_digits(parts->hash) == bw_hash_digits(parts->algorithm) &&
           !parts->hash[count_digits(parts->hash)];
}

/* Splits a line: HASH, two spaces, NAME; or a space and an asterisk. */
static bool cut_plain(char *line, struct hash_line *parts)
{
    size_t digits = count_digits(line);
    *parts = (struct hash_line){.hash = line, .name = line + digits + 2};
    return has_algorithm(digits, &parts->algorithm) && line[digits] == ' ' &&
           (line[digits + 1] == ' ' || line[digits + 1] == '*') && *parts->name;
}

static bool cut_hash_line(char *line, struct hash_line *parts)
{
    return cut_plain(line, parts) || cut_tagged(line, parts);
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

/* Decodes escapes in a name, which are used if the line begins with a backslash. */
static void unescape_name(char *name)
{
    char *to = name;
    for (char *from = name; *from; from++) {
        bool escape = *from == '\\' && (from[1] == 'n' || from[1] == 'r' || from[1] == '\\');
        from += escape;
        *to++ = !escape || *from == '\\' ? *from : *from == 'n' ? '\n' : '\r';
    }
    *to = '\0';
}

static struct bw_error *read_hash_line(struct reader *reader, char *line)
{
    struct hash_line parts;
    bool escapes = *line == '\\';
    if (!cut_hash_line(line + escapes, &parts))
        return line_error(reader, "neither a hash and a path nor a line of mtree(5)", "");
    struct bw_manifest_entry *entry = add_entry(reader->manifest);
    if (!entry)
        return bw_error_no_memory();
    char *end = parts.hash > parts.name ? parts.hash - strlen(") = ") : parts.name - strlen("  ");
    *end = '\0';
    if (escapes)
        unescape_name(parts.name);
    *entry = (struct bw_manifest_entry){.path = relative_path(parts.name),
                                        .line = reader->line,
                                        .given = BW_MANIFEST_HASH,
                                        .hash = parts.hash,
                                        .algorithm = parts.algorithm,
                                        .is_doubtful = parts.hash < parts.name &&
                                                       parts.algorithm == BW_HASH_BLAKE2B};
    reader->manifest->is_doubtful |= entry->is_doubtful;
    return NULL;
}

/* Whether the first line contains a hash. */
static bool begins_with_hash(const struct reader *reader)
{
    struct hash_line parts;
    char *line = reader->next + (*reader->next == '\\');
    char *end = line + strcspn(line, "\n"), before = *end;
    *end = '\0';
    bool is_one = cut_hash_line(line, &parts);
    *end = before;
    return is_one;
}

static struct bw_error *read_hashes(struct reader *reader)
{
    char terminator =
        memchr(reader->next, '\0', (size_t)(reader->end - reader->next)) ? '\0' : '\n';
    reader->manifest->only_files = true;
    while (reader->next < reader->end) {
        char *line = next_line(reader, terminator);
        if (*line)
            BW_TRY(read_hash_line(reader, line));
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

static struct bw_error *read_keywords(struct reader *reader, char *line, bool set,
                                      struct bw_manifest_entry *entry)
{
    for (char *word; (word = next_word(&line));) {
        const char *bad =
            set ? parse_word(word, entry, &reader->manifest->ignored) : manifest_unset(word, entry);
        if (bad)
            return line_error(reader, bad, word);
    }
    return NULL;
}

/* Removes the last component of the directory. */
static void leave_directory(struct bw_buffer *directory)
{
    directory->length -= directory->length > 0;
    while (directory->length && directory->data[directory->length - 1] != '/')
        directory->length--;
}

/* Sets the path of an entry: a path with a '/' is complete. Others are relative to the current
 * directory; if the entry is a directory, it becomes the current one. */
static struct bw_error *set_path(struct reader *reader, char *name, struct bw_manifest_entry *entry)
{
    struct bw_buffer *directory = &reader->directory;
    bool whole = strchr(name, '/');
    unescape_text(name);
    entry->path = relative_path(name);
    if (whole || !*entry->path)
        return NULL;
    if (directory->length) {
        const size_t size = strlen(entry->path) + 1;
        entry->owned = malloc(directory->length + size);
        if (!entry->owned)
            return bw_error_no_memory();
        memcpy(entry->owned, directory->data, directory->length);
        memcpy(entry->owned + directory->length, entry->path, size);
        entry->path = entry->owned;
    }
    if (entry->type == S_IFDIR && entry->given & BW_MANIFEST_TYPE)
        bw_buffer_format(directory, "%s/", relative_path(name));
    return directory->failed ? bw_error_no_memory() : NULL;
}

static struct bw_error *read_entry(struct reader *reader, char *name, char *words)
{
    struct bw_manifest_entry *entry = add_entry(reader->manifest);
    if (!entry)
        return bw_error_no_memory();
    *entry = reader->defaults;
    entry->line = reader->line;
    BW_TRY(read_keywords(reader, words, true, entry));
    return set_path(reader, name, entry);
}

/* Joins lines that end with a backslash with the next line. */
static void join_lines(char *text, char *end)
{
    for (char *at = text; at + 1 < end; at++)
        if (*at == '\\' && at[1] == '\n')
            at[0] = at[1] = JOINED;
        else if (*at == '\\')
            at++;
}

static unsigned count_joined(const char *line)
{
    unsigned count = 0;
    while ((line = strchr(line, JOINED))) {
        const bool joined = line[1] == JOINED;
        line += 1 + joined;
        count += joined;
    }
    return count;
}

static struct bw_error *read_mtree(struct reader *reader)
{
    join_lines(reader->next, reader->end);
    for (unsigned joined = 0; reader->next < reader->end;) {
        char *line = next_line(reader, '\n');
        reader->line += joined;
        joined = count_joined(line);
        char *name = next_word(&line);
        if (!name || *name == '#')
            continue;
        if (strcmp(name, "/set") == 0 || strcmp(name, "/unset") == 0)
            BW_TRY(read_keywords(reader, line, name[1] == 's', &reader->defaults));
        else if (strcmp(name, "..") == 0)
            leave_directory(&reader->directory);
        else
            BW_TRY(read_entry(reader, name, line));
    }
    return NULL;
}

/* Both formats. */

static int by_path(const void *a, const void *b)
{
    const struct bw_manifest_entry *left = a, *right = b;
    return strcmp(left->path, right->path);
}

/* Sorts the last line with a path before earlier ones, because it overrides them. */
static int by_path_and_line(const void *a, const void *b)
{
    const struct bw_manifest_entry *left = a, *right = b;
    int order = by_path(a, b);
    return order ? order : (left->line < right->line) - (left->line > right->line);
}

static void sort_entries(struct bw_manifest *manifest)
{
    size_t kept = 0;
    if (manifest->count)
        qsort(manifest->entries, manifest->count, sizeof *manifest->entries, by_path_and_line);
    for (size_t i = 0; i < manifest->count; i++)
        if (!kept || by_path(&manifest->entries[kept - 1], &manifest->entries[i]) != 0)
            manifest->entries[kept++] = manifest->entries[i];
        else
            free(manifest->entries[i].owned);
    manifest->count = kept;
}

/* Selects one algorithm for all files: the strongest in the list. Other hashes are ignored. */
static void choose_algorithm(struct bw_manifest *manifest)
{
    manifest->algorithm = BW_HASH_ALGORITHMS;
    for (size_t i = 0; i < manifest->count; i++)
        if (manifest->entries[i].given & BW_MANIFEST_HASH &&
            manifest->entries[i].algorithm < manifest->algorithm)
            manifest->algorithm = manifest->entries[i].algorithm;
    for (size_t i = 0; i < manifest->count; i++)
        if (manifest->entries[i].algorithm != manifest->algorithm)
            manifest->entries[i].given &= ~(unsigned)BW_MANIFEST_HASH;
}

void bw_manifest_settle(struct bw_manifest *manifest, enum bw_hash_algorithm algorithm)
{
    for (size_t i = 0; i < manifest->count; i++) {
        struct bw_manifest_entry *entry = &manifest->entries[i];
        if (!entry->is_doubtful)
            continue;
        entry->algorithm = algorithm;
        entry->given |= BW_MANIFEST_HASH;
    }
    choose_algorithm(manifest);
}

struct bw_error *bw_manifest_read(const char *file, struct bw_manifest *manifest)
{
    *manifest = (struct bw_manifest){0};
    BW_TRY(bw_buffer_read_file(&manifest->text, file));
    bw_buffer_append_byte(&manifest->text, '\0'); /* room for the NUL of the last line */
    if (manifest->text.failed)
        return bw_error_no_memory();
    char *text = manifest->text.data;
    struct reader reader = {
        .manifest = manifest, .file = file, .next = text, .end = text + manifest->text.length - 1};
    struct bw_error *error = begins_with_hash(&reader) ? read_hashes(&reader) : read_mtree(&reader);
    bw_buffer_free(&reader.directory);
    bw_buffer_append_byte(&manifest->ignored, '\0');
    if (!error && manifest->ignored.failed)
        error = bw_error_no_memory();
    if (error)
        return error;
    sort_entries(manifest);
    choose_algorithm(manifest);
    return NULL;
}

void bw_manifest_free(struct bw_manifest *manifest)
{
    for (size_t i = 0; i < manifest->count; i++)
        free(manifest->entries[i].owned);
    free(manifest->entries);
    bw_buffer_free(&manifest->text);
    bw_buffer_free(&manifest->ignored);
}

struct bw_manifest_entry *bw_manifest_find(const struct bw_manifest *manifest, const char *path)
{
    const struct bw_manifest_entry wanted = {.path = path};
    return manifest->count ? bsearch(&wanted, manifest->entries, manifest->count,
                                     sizeof *manifest->entries, by_path)
                           : NULL;
}
