/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Archives. Each of the three formats has its own headers. The parts that they share are here, too:
 * the data that is stored, its padding, and the end of an archive.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "export/archive.h"

static const char zeros[64 << 10];

/*
 * Entries of pax archives (POSIX.1-2008, pax, "pax Interchange Format"), in a form that both GNU
 * tar and bsdtar restore completely: a ustar header, preceded by another one whose data are records
 * "LENGTH KEY=VALUE" for values that ustar cannot store. Extended attributes are SCHILY.xattr.NAME;
 * access control lists are also SCHILY.acl.*, as in star; files with holes are in the format
 * GNU.sparse 1.0.
 */

enum { PAX_UNIT = 512, NANOSECONDS = 1000000000 };

/* Appends zeros up to the next unit. */
static void append_padding(struct bw_buffer *text)
{
    bw_buffer_append(text, zeros, (PAX_UNIT - text->length % PAX_UNIT) % PAX_UNIT);
}

struct ustar {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
    char magic[8], user[32], group[32], major[8], minor[8], prefix[155], unused[12];
};
static_assert(sizeof(struct ustar) == PAX_UNIT, "the header of POSIX.1-1988");

/* Where the complete path is stored; the header contains at least its beginning. */
enum naming {
    IN_HEADER,
    IN_RECORD, /* in a record, which POSIX requires to be UTF-8 */
    IN_BLOCKS, /* in a separate entry, as in old GNU tar; bsdtar reads it, too */
};

static enum naming naming_of(const char *path)
{
    size_t length = strlen(path), ascii = 0;
    while (path[ascii] && !((uint8_t)path[ascii] & 0x80))
        ascii++;
    bool fits = length <= sizeof((struct ustar *)0)->name;
    if (fits && ascii == length)
        return IN_HEADER;
    if (bw_utf8_is_valid(path, length))
        return IN_RECORD;
    return fits ? IN_HEADER : IN_BLOCKS;
}

/* Sets an octal number, NUL-terminated. If it has too many digits, sets 0 and returns false. */
static bool set_number(char *field, size_t width, uint64_t number)
{
    bool fits = number >> 3 * (width - 1) == 0;
    for (size_t i = width - 1; i--; number >>= 3)
        field[i] = (char)('0' + (fits ? number & 7 : 0));
    return fits;
}
#define SET_NUMBER(field, number) set_number(field, sizeof(field), number)

static void set_path(char field[static 100], const char *path)
{
    memcpy(field, path, strnlen(path, 100));
}

/* Completes a header: sets its magic number and checksum. */
static struct ustar *complete_header(struct ustar *header)
{
    unsigned sum = 0;
    memcpy(header->magic, "ustar\00000", sizeof header->magic);
    memset(header->checksum, ' ', sizeof header->checksum);
    for (size_t i = 0; i < sizeof *header; i++)
        sum += ((const unsigned char *)header)[i];
    set_number(header->checksum, sizeof header->checksum - 1, sum);
    return header;
}

/* Makes the header of an entry with information about the next entry. */
static struct ustar extension_header(char type, uint64_t size, const char *path)
{
    struct ustar header = {.type = type};
    set_path(header.name, path);
    SET_NUMBER(header.mode, 0644);
    SET_NUMBER(header.uid, 0);
    SET_NUMBER(header.gid, 0);
    SET_NUMBER(header.size, size);
    SET_NUMBER(header.mtime, 0);
    complete_header(&header);
    return header;
}

static void append_long_path(struct bw_buffer *text, char type, const char *path)
{
    size_t length = strlen(path) + 1;
    const struct ustar header = extension_header(type, length, "././@LongLink");
    bw_buffer_append(text, &header, sizeof header);
    bw_buffer_append(text, path, length);
    append_padding(text);
}

/* Completes a record: "KEY=VALUE" was appended since `start`. The length of the whole record,
 * including its own digits, is put before it. */
static void end_record(struct bw_buffer *text, size_t start)
{
    char number[24];
    bw_buffer_append_byte(text, '\n');
    size_t rest = text->length - start, digits, length = rest;
    while ((digits = (size_t)snprintf(number, sizeof number, "%zu ", length)) + rest > length)
        length++;
    bw_buffer_append(text, number, digits);
    if (text->failed)
        return;
    char *record = text->data + start;
    memmove(record + digits, record, rest);
    memcpy(record, number, digits);
}

static void append_text(struct bw_buffer *text, const char *key, const char *value)
{
    size_t start = text->length;
    bw_buffer_format(text, "%s=%s", key, value);
    end_record(text, start);
}

static void append_number(struct bw_buffer *text, const char *key, uint64_t number)
{
    size_t start = text->length;
    bw_buffer_format(text, "%s=%" PRIu64, key, number);
    end_record(text, start);
}

/* Appends a decimal number of seconds. Times before 1970 are negative as a whole, "-0.25", which
 * GNU tar parses; bsdtar 3.6 ignores their fraction. sqfstar 4.5 rejects an mtime without a
 * fraction: `always_fraction`. */
static void append_time(struct bw_buffer *text, const char *key, struct timespec time,
                        bool always_fraction)
{
    size_t start = text->length;
    bool before = time.tv_sec < 0;
    uint64_t seconds = before ? -(uint64_t)time.tv_sec : (uint64_t)time.tv_sec;
    long fraction = time.tv_nsec;
    if (before && fraction) {
        seconds--;
        fraction = NANOSECONDS - fraction;
    }
    bw_buffer_format(text, "%s=%s%" PRIu64, key, before ? "-" : "", seconds);
    if (fraction || always_fraction)
        bw_buffer_format(text, ".%09ld", fraction);
    end_record(text, start);
}

/* Appends an attribute, with '=' in its name as %3D, because it would end the name. GNU tar decodes
 * %3D and %25, so the '%' of these is written as %25. */
static void append_xattr(struct bw_buffer *text, const struct bw_xattr *xattr)
{
    size_t start = text->length;
    bw_buffer_format(text, "SCHILY.xattr.");
    for (const char *name = (const char *)xattr->name; *name; name++) {
        bool is_code = strncmp(name, "%3D", 3) == 0 || strncmp(name, "%25", 3) == 0;
        if (*name == '=' || is_code)
            bw_buffer_format(text, "%%%02X", (unsigned char)*name);
        else
            bw_buffer_append_byte(text, *name);
    }
    bw_buffer_append_byte(text, '=');
    bw_buffer_append(text, xattr->value, xattr->value_length);
    end_record(text, start);
}

/* Appends an access control list for GNU tar --acls and bsdtar. It is also appended as an
 * attribute, for GNU tar --xattrs-include. */
static void append_acl(struct bw_buffer *text, const struct bw_xattr *xattr)
{
    BW_AUTO_FREE char *list = NULL;
    bool is_default = strcmp((const char *)xattr->name, BW_ACL_DEFAULT) == 0;
    BW_AUTO_ERROR struct bw_error *error = bw_acl_text(xattr, &list);
    text->failed |= error != NULL;
    if (list)
        append_text(text, is_default ? "SCHILY.acl.default" : "SCHILY.acl.access", list);
}

/* The number of bytes of data that the archive stores. */
static uint64_t stored_bytes(const struct bw_archive_entry *entry)
{
    uint64_t length = 0;
    if (entry->hardlink || !S_ISREG(entry->inode->mode))
        return 0;
    if (!entry->is_sparse)
        return entry->inode->size;
    for (size_t i = 0; i < entry->range_count; i++)
        length += entry->ranges[i].length;
    return length;
}

static char type_of(const struct bw_archive_entry *entry)
{
    static const struct {
        uint32_t format;
        char type;
    } types[] = {{S_IFREG, '0'}, {S_IFLNK, '2'}, {S_IFCHR, '3'},
                 {S_IFBLK, '4'}, {S_IFDIR, '5'}, {S_IFIFO, '6'}};
    for (size_t i = 0; i < sizeof types / sizeof *types && !entry->hardlink; i++)
        if ((entry->inode->mode & S_IFMT) == types[i].format)
            return types[i].type;
    return entry->hardlink ? '1' : '\0';
}

/* Sets the path of an entry, or the target of a link, and adds a record if it does not fit. */
static void add_path(struct bw_buffer *records, char field[static 100], const char *key,
                     const char *path)
{
    set_path(field, path);
    if (naming_of(path) == IN_RECORD)
        append_text(records, key, path);
}

static void add_number(struct bw_buffer *records, char *field, size_t width, const char *key,
                       uint64_t number)
{
    if (!set_number(field, width, number))
        append_number(records, key, number);
}

/* Sets the name of a user or a group, or adds a record if it does not fit. */
static void add_owner(struct bw_buffer *records, char field[static 32], const char *key,
                      const char *name)
{
    const size_t length = name ? strlen(name) : 0;
    if (length >= 32)
        append_text(records, key, name);
    else if (name)
        memcpy(field, name, length);
}

/* Sets all fields of the header, and appends it, with records before it for values that do not fit.
 * `size` is the size of the data in the archive. */
static void append_headers(struct bw_buffer *text, struct ustar *header,
                           const struct bw_archive_entry *entry, uint64_t size)
{
    static const struct ustar none;
    const struct bw_inode *inode = entry->inode;
    const size_t start = text->length;
    bw_buffer_append(text, &none, sizeof none); /* the header of the records */

    /* The paths. Programs that do not support holes get a different one, so that users do not
     * mistake the extracted data for the file. */
    const char *link = entry->hardlink ? entry->hardlink : entry->symlink;
    if (entry->is_sparse && bw_utf8_is_valid(entry->path, strlen(entry->path))) {
        char other[100 + sizeof "GNUSparseFile.0/"];
        snprintf(other, sizeof other, "GNUSparseFile.0/%s", entry->path);
        set_path(header->name, other);
        append_text(text, "GNU.sparse.name", entry->path);
    } else if (entry->is_sparse) {
        set_path(header->name, entry->path);
    } else {
        add_path(text, header->name, "path", entry->path);
    }
    if (link)
        add_path(text, header->link, "linkpath", link);

    SET_NUMBER(header->mode, inode->mode & 07777);
    add_number(text, header->uid, sizeof header->uid, "uid", inode->uid);
    add_number(text, header->gid, sizeof header->gid, "gid", inode->gid);
    add_owner(text, header->user, "uname", entry->user);
    add_owner(text, header->group, "gname", entry->group);
    add_number(text, header->size, sizeof header->size, "size", size);

    const struct timespec mtime = inode->mtime;
    const bool before = mtime.tv_sec < 0;
    const bool fits = SET_NUMBER(header->mtime, before ? 0 : (uint64_t)mtime.tv_sec);
    if (before || !fits || mtime.tv_nsec)
        append_time(text, "mtime", mtime, true);
    if (entry->has_atime)
        append_time(text, "atime", inode->atime, false);
    if (entry->has_ctime)
        append_time(text, "ctime", inode->ctime, false);
    for (size_t i = 0; i < entry->xattr_count; i++) {
        append_acl(text, &entry->xattrs[i]);
        append_xattr(text, &entry->xattrs[i]);
    }
    if (entry->is_sparse) {
        append_number(text, "GNU.sparse.major", 1);
        append_number(text, "GNU.sparse.minor", 0);
        append_number(text, "GNU.sparse.realsize", inode->size);
    }

    /* The header of the records, if there are any, before the header of the entry. */
    if (text->length == start + sizeof none) {
        text->length = start;
        bw_buffer_append(text, complete_header(header), sizeof *header);
        return;
    }
    char name[100 + sizeof "PaxHeaders/"];
    snprintf(name, sizeof name, "PaxHeaders/%s", entry->path);
    const struct ustar first = extension_header('x', text->length - start - sizeof none, name);
    append_padding(text);
    if (!text->failed)
        memcpy(text->data + start, &first, sizeof first);
    bw_buffer_append(text, complete_header(header), sizeof *header);
}

static struct bw_error *append_pax(struct bw_buffer *text, const struct bw_archive_entry *entry,
                                   uint64_t *data)
{
    const struct bw_inode *inode = entry->inode;
    struct ustar header = {.type = type_of(entry)};
    bool is_device = header.type == '3' || header.type == '4';
    const char *link = entry->hardlink ? entry->hardlink : entry->symlink;
    if (!header.type)
        return bw_error_create(BW_ERROR_USAGE, "tar cannot store this type of file");
    if (!SET_NUMBER(header.major, is_device ? bw_inode_major(inode) : 0))
        return bw_error_create(BW_ERROR_USAGE, "device number too large for tar");
    SET_NUMBER(header.minor, is_device ? bw_inode_minor(inode) : 0);
    if (naming_of(entry->path) == IN_BLOCKS)
        append_long_path(text, 'L', entry->path);
    if (link && naming_of(link) == IN_BLOCKS)
        append_long_path(text, 'K', link);
    *data = stored_bytes(entry);

    /* The map of a sparse file: the number of ranges, then each range. As in maps of GNU tar, the
     * last range has length 0; without it, sqfstar 4.5 reads beyond the map. sqfstar also forgets
     * the padding of the data if it is the first range; then a range of length 0 is put before it.
     */
    BW_AUTO_BUFFER struct bw_buffer map = {0};
    if (entry->is_sparse) {
        const bool is_padded = entry->range_count == 1 && entry->ranges[0].length % PAX_UNIT;
        bw_buffer_format(&map, "%zu\n%s", entry->range_count + 1 + is_padded,
                         is_padded ? "0\n0\n" : "");
        for (size_t i = 0; i < entry->range_count; i++)
            bw_buffer_format(&map, "%" PRIu64 "\n%" PRIu64 "\n", entry->ranges[i].offset,
                             entry->ranges[i].length);
        bw_buffer_format(&map, "%" PRIu64 "\n0\n", inode->size);
        append_padding(&map);
    }
    append_headers(text, &header, entry, map.length + *data);
    bw_buffer_append(text, map.data, map.length);
    text->failed |= map.failed;
    return NULL;
}

/* Manifests as in mtree(5), with complete paths: each entry is a line with the path and keywords
 * with values. Bytes other than printable ASCII are written as \ooo. */

/* Escapes like vis(3) with VIS_OCTAL. */
static void append_mtree_text(struct bw_buffer *text, const char *bytes)
{
    for (const unsigned char *next = (const unsigned char *)bytes; *next; next++) {
        bool plain = *next > ' ' && *next < 0x7f && !strchr("\\#=*?[", *next);
        if (plain)
            bw_buffer_append_byte(text, (char)*next);
        else
            bw_buffer_format(text, "\\%03o", *next);
    }
}

static struct bw_error *append_mtree(struct bw_buffer *text, const struct bw_archive_entry *entry,
                                     uint64_t *data)
{
    static const char *const types[] = {"unknown", "file", "dir",    "char",
                                        "block",   "fifo", "socket", "link"};
    (void)data; /* manifests contain no data */
    const struct bw_inode *inode = entry->inode;
    bool in_top = entry->path[0] == '.' && (!entry->path[1] || entry->path[1] == '/');
    bw_buffer_format(text, "%s", in_top ? "" : "./");
    append_mtree_text(text, entry->path);
    bw_buffer_format(text, " type=%s mode=%04o uid=%" PRIu32 " gid=%" PRIu32 " nlink=%" PRIu32,
                     types[bw_file_type_of_mode(inode->mode)], inode->mode & 07777, inode->uid,
                     inode->gid, inode->link_count);
    bw_buffer_format(text, " time=%" PRId64 ".%09ld", (int64_t)entry->inode->mtime.tv_sec,
                     entry->inode->mtime.tv_nsec);
    if (S_ISREG(inode->mode))
        bw_buffer_format(text, " size=%" PRIu64, inode->size);
    if (S_ISCHR(inode->mode) || S_ISBLK(inode->mode))
        bw_buffer_format(text, " device=native,%u,%u", bw_inode_major(inode),
                         bw_inode_minor(inode));
    if (entry->symlink) {
        bw_buffer_format(text, " link=");
        append_mtree_text(text, entry->symlink);
    }
    if (entry->hash)
        bw_buffer_format(text, " sha256digest=%s", entry->hash);
    bw_buffer_append_byte(text, '\n');
    return NULL;
}

/* Writing entries and their data. */

static const struct format {
    struct bw_error *(*append)(struct bw_buffer *, const struct bw_archive_entry *, uint64_t *);
    const char *head;
    size_t last_zeros; /* zeros at the end of the archive */
    size_t data_unit;  /* alignment of data */
    size_t end_unit;   /* alignment of the end of the archive */
} formats[] = {
    [BW_ARCHIVE_PAX] = {.append = append_pax, "", 1024, 512, 10240},
    [BW_ARCHIVE_MTREE] = {.append = append_mtree, "#mtree\n", 0, 1, 1},
};

struct bw_archive {
    const struct format *format;
    bw_archive_writer *write;
    void *context;
    struct bw_buffer text; /* headers of an entry, not written yet */
    uint64_t written;      /* bytes written */

    /* Of the current entry: */
    uint64_t left, padding; /* bytes of data still to be stored, and zeros after them */
    uint64_t position;      /* offset in the file */
    const struct bw_archive_range *range; /* range that contains the position or is the next after
                                           * it */
    size_t range_count;                   /* number of remaining ranges, including `range` */
    bool is_sparse;
};

static struct bw_error *put_bytes(struct bw_archive *archive, const char *bytes, size_t length)
{
    archive->written += length;
    return length ? archive->write(archive->context, bytes, length) : NULL;
}

static struct bw_error *put_zeros(struct bw_archive *archive, uint64_t length)
{
    for (uint64_t step; length; length -= step) {
        step = length < sizeof zeros ? length : sizeof zeros;
        BW_TRY(put_bytes(archive, zeros, (size_t)step));
    }
    return NULL;
}

static struct bw_error *put_text(struct bw_archive *archive)
{
    struct bw_error *error = archive->text.failed
                                 ? bw_error_no_memory()
                                 : put_bytes(archive, archive->text.data, archive->text.length);
    archive->text.length = 0;
    return error;
}

struct bw_error *bw_archive_create(enum bw_archive_format format, bw_archive_writer *write,
                                   void *context, struct bw_archive **result)
{
    struct bw_archive *archive = calloc(1, sizeof *archive);
    if (!archive)
        return bw_error_no_memory();
    *archive = (struct bw_archive){.format = &formats[format], .write = write, .context = context};
    bw_buffer_format(&archive->text, "%s", archive->format->head);
    *result = archive;
    return NULL;
}

void bw_archive_destroy(struct bw_archive *archive)
{
    if (archive)
        bw_buffer_free(&archive->text);
    free(archive);
}

/* Pads the previous entry. Missing data becomes zeros. */
static struct bw_error *end_entry(struct bw_archive *archive)
{
    uint64_t missing = archive->left + archive->padding;
    archive->left = archive->padding = 0;
    return put_zeros(archive, missing);
}

struct bw_error *bw_archive_begin(struct bw_archive *archive, const struct bw_archive_entry *entry,
                                  uint64_t *wanted)
{
    size_t before = archive->text.length;
    uint64_t data = 0, unit = archive->format->data_unit;
    *wanted = 0;
    BW_TRY(end_entry(archive));
    struct bw_error *error = archive->format->append(&archive->text, entry, &data);
    if (error) {
        archive->text.length = before;
        return error;
    }
    BW_TRY(put_text(archive));
    archive->left = data;
    archive->padding = (unit - data % unit) % unit;
    archive->is_sparse = entry->is_sparse;
    archive->range = entry->ranges;
    archive->range_count = entry->range_count;
    archive->position = 0;
    *wanted = entry->is_sparse ? entry->inode->size : data;
    return NULL;
}

/* Stores bytes; `bytes` is NULL for zeros. */
static struct bw_error *store_bytes(struct bw_archive *archive, const char *bytes, uint64_t length)
{
    length = length < archive->left ? length : archive->left;
    archive->left -= length;
    if (bytes)
        return put_bytes(archive, bytes, (size_t)length);
    return put_zeros(archive, length);
}

/* Stores the next bytes of a sparse file, except those in holes. */
static struct bw_error *store_ranges(struct bw_archive *archive, const char *bytes, uint64_t length)
{
    while (length && archive->range_count) {
        const struct bw_archive_range *range = archive->range;
        bool in_hole = archive->position < range->offset;
        uint64_t end = in_hole ? range->offset : range->offset + range->length;
        uint64_t step = end - archive->position < length ? end - archive->position : length;
        if (!in_hole)
            BW_TRY(store_bytes(archive, bytes, step));
        archive->position += step;
        bytes = bytes ? bytes + step : NULL;
        length -= step;
        if (archive->position == range->offset + range->length) {
            archive->range++;
            archive->range_count--;
        }
    }
    return NULL;
}

struct bw_error *bw_archive_add(struct bw_archive *archive, const void *bytes, size_t length)
{
    return archive->is_sparse ? store_ranges(archive, bytes, length)
                              : store_bytes(archive, bytes, length);
}

struct bw_error *bw_archive_add_zeros(struct bw_archive *archive, uint64_t length)
{
    return archive->is_sparse ? store_ranges(archive, NULL, length)
                              : store_bytes(archive, NULL, length);
}

struct bw_error *bw_archive_end(struct bw_archive *archive)
{
    const struct format *format = archive->format;
    BW_TRY(end_entry(archive));
    BW_TRY(put_text(archive)); /* the head of the archive, if it has no entries */
    BW_TRY(put_zeros(archive, format->last_zeros));
    return put_zeros(archive,
                     (format->end_unit - archive->written % format->end_unit) % format->end_unit);
}
