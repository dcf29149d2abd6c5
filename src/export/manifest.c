/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists of files: both forms are cut into words in place, and sorted by path. manifest_words.c has
 * the keywords. */
#include "export/manifest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "export/manifest_words.h"

/* Where reading has come to. */
struct reader {
    struct bw_manifest *manifest;
    const char *file;
    char *next, *end;
    unsigned line;
    struct bw_manifest_entry defaults; /* of /set */
    struct bw_buffer directory; /* that entries without a '/' are in; ends with one, or is empty */
};

static struct bw_error *refuse(const struct reader *reader, const char *why, const char *word)
{
    return bw_error_create(BW_ERROR_USAGE, "%s, line %u: %s%s%s", reader->file, reader->line, why,
                           *word ? ": " : "", word);
}

/* Paths are relative to the top. */
static char *relative(char *path)
{
    while (*path == '/' || (path[0] == '.' && path[1] == '/'))
        path++;
    return strcmp(path, ".") == 0 ? path + 1 : path;
}

static struct bw_manifest_entry *add(struct bw_manifest *manifest)
{
    if (!BW_ARRAY_RESERVE(manifest->entries, manifest->count, manifest->capacity))
        return NULL;
    return &manifest->entries[manifest->count++];
}

/* Lines of hashes. */

/* A line of a hash and a name, cut into them. */
struct hash_line {
    char *hash, *name;
    enum bw_hash_algorithm algorithm;
};

/* Hashes of one length cannot be told apart without a tag: 128 digits are taken for BLAKE2b's,
 * until bw_manifest_settle(). */
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

/* SHA256 (NAME) = HASH. Nothing is written where it does not fit. */
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

/* HASH, two spaces, NAME; or a space and an asterisk. */
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

/* Ends the next line, or what ends with NUL, and moves on. */
static char *take_line(struct reader *reader, char terminator)
{
    char *line = reader->next;
    char *end = memchr(line, terminator, (size_t)(reader->end - line));
    end = end ? end : reader->end;
    *end = '\0';
    reader->next = end < reader->end ? end + 1 : end;
    reader->line++;
    return line;
}

/* A backslash in front says that there are escapes in the path. */
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
        return refuse(reader, "neither a hash and a path nor a line of mtree(5)", "");
    struct bw_manifest_entry *entry = add(reader->manifest);
    if (!entry)
        return bw_error_no_memory();
    char *end = parts.hash > parts.name ? parts.hash - strlen(") = ") : parts.name - strlen("  ");
    *end = '\0';
    if (escapes)
        unescape_name(parts.name);
    *entry = (struct bw_manifest_entry){.path = relative(parts.name),
                                        .line = reader->line,
                                        .given = BW_MANIFEST_HASH,
                                        .hash = parts.hash,
                                        .algorithm = parts.algorithm,
                                        .is_doubtful = parts.hash < parts.name &&
                                                       parts.algorithm == BW_HASH_BLAKE2B};
    reader->manifest->is_doubtful |= entry->is_doubtful;
    return NULL;
}

/* Whether that is what the first line is. */
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
        char *line = take_line(reader, terminator);
        if (*line)
            BW_TRY(read_hash_line(reader, line));
    }
    return NULL;
}

/* mtree(5). */

/* Lines are joined by a vertical tab, so that they can be counted. */
#define JOINED '\v'
#define SPACES " \t\r\v"

/* The next word of a line; NULL at its end. */
static char *take_word(char **line)
{
    char *word = *line + strspn(*line, SPACES);
    *line = word + strcspn(word, SPACES);
    if (**line)
        *(*line)++ = '\0';
    return *word ? word : NULL;
}

static struct bw_error *take_keywords(struct reader *reader, char *line, bool set,
                                      struct bw_manifest_entry *entry)
{
    for (char *word; (word = take_word(&line));) {
        const char *bad = set ? bw_manifest_take(word, entry, &reader->manifest->ignored)
                              : bw_manifest_unset(word, entry);
        if (bad)
            return refuse(reader, bad, word);
    }
    return NULL;
}

/* Back to the directory above. */
static void leave(struct bw_buffer *directory)
{
    directory->length -= directory->length > 0;
    while (directory->length && directory->data[directory->length - 1] != '/')
        directory->length--;
}

/* Entries with a '/' have their whole path; others are in the present directory, and a directory
 * among them becomes that. */
static struct bw_error *place(struct reader *reader, char *name, struct bw_manifest_entry *entry)
{
    struct bw_buffer *directory = &reader->directory;
    bool whole = strchr(name, '/');
    bw_manifest_unescape(name);
    entry->path = relative(name);
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
        bw_buffer_format(directory, "%s/", relative(name));
    return directory->failed ? bw_error_no_memory() : NULL;
}

static struct bw_error *read_entry(struct reader *reader, char *name, char *keywords)
{
    struct bw_manifest_entry *entry = add(reader->manifest);
    if (!entry)
        return bw_error_no_memory();
    *entry = reader->defaults;
    entry->line = reader->line;
    BW_TRY(take_keywords(reader, keywords, true, entry));
    return place(reader, name, entry);
}

/* A backslash at the end joins a line with the next. */
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
        char *line = take_line(reader, '\n');
        reader->line += joined;
        joined = count_joined(line);
        char *name = take_word(&line);
        if (!name || *name == '#')
            continue;
        if (strcmp(name, "/set") == 0 || strcmp(name, "/unset") == 0)
            BW_TRY(take_keywords(reader, line, name[1] == 's', &reader->defaults));
        else if (strcmp(name, "..") == 0)
            leave(&reader->directory);
        else
            BW_TRY(read_entry(reader, name, line));
    }
    return NULL;
}

/* Both. */

static int by_path(const void *a, const void *b)
{
    const struct bw_manifest_entry *left = a, *right = b;
    return strcmp(left->path, right->path);
}

/* Of entries with one path the last counts. */
static int by_path_and_line(const void *a, const void *b)
{
    const struct bw_manifest_entry *left = a, *right = b;
    int order = by_path(a, b);
    return order ? order : (left->line < right->line) - (left->line > right->line);
}

static void sort(struct bw_manifest *manifest)
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

/* All files are hashed in one way: that of the strongest hash that the list has. */
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
    bw_buffer_append_byte(&manifest->text, '\0'); /* room for the end of the last line */
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
    sort(manifest);
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
