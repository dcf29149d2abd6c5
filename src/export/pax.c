/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Entries of pax archives (POSIX.1-2008, pax, "pax Interchange Format"), such that GNU tar and
 * bsdtar restore them as they were: a ustar header, preceded by one whose data are records "LENGTH
 * KEY=VALUE" with what ustar cannot hold. Extended attributes are SCHILY.xattr.NAME, access control
 * lists also SCHILY.acl.*, as star has them; files with holes are in the format GNU.sparse 1.0.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "export/archive.h"

enum { UNIT = 512, NANOSECONDS = 1000000000 };

struct ustar {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
    char magic[8], user[32], group[32], major[8], minor[8], prefix[155], unused[12];
};
static_assert(sizeof(struct ustar) == UNIT, "the header of POSIX.1-1988");

/* Where a path is stored, besides its beginning in the header. */
enum naming {
    IN_HEADER,
    IN_RECORD, /* POSIX wants UTF-8 there */
    IN_BLOCKS, /* an entry of its own with its bytes, as of old in GNU tar; bsdtar reads it, too */
};

static enum naming naming_of(const char *path)
{
    size_t length = strlen(path), ascii = 0;
    while (path[ascii] && !((uint8_t)path[ascii] & 0x80))
        ascii++;
    bool fits = length <= sizeof((struct ustar *)0)->name;
    if (fits && ascii == length)
        return IN_HEADER;
    return bw_utf8_is_valid(path, length) ? IN_RECORD : fits ? IN_HEADER : IN_BLOCKS;
}

/* Sets an octal number that ends with NUL; false if it has too many digits: it is 0 then. */
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

/* A header is whole with this. */
static struct ustar *sealed(struct ustar *header)
{
    unsigned sum = 0;
    memcpy(header->magic, "ustar\00000", sizeof header->magic);
    memset(header->checksum, ' ', sizeof header->checksum);
    for (size_t i = 0; i < sizeof *header; i++)
        sum += ((const unsigned char *)header)[i];
    set_number(header->checksum, sizeof header->checksum - 1, sum);
    return header;
}

/* A header with information about the entry after it. */
static struct ustar helping_header(char type, uint64_t size, const char *path)
{
    struct ustar header = {.type = type};
    set_path(header.name, path);
    SET_NUMBER(header.mode, 0644);
    SET_NUMBER(header.uid, 0);
    SET_NUMBER(header.gid, 0);
    SET_NUMBER(header.size, size);
    SET_NUMBER(header.mtime, 0);
    sealed(&header);
    return header;
}

static void append_long_path(struct bw_buffer *text, char type, const char *path)
{
    size_t length = strlen(path) + 1;
    const struct ustar header = helping_header(type, length, "././@LongLink");
    bw_buffer_append(text, &header, sizeof header);
    bw_buffer_append(text, path, length);
    bw_archive_pad(text, UNIT);
}

/* Makes a record of "KEY=VALUE", which was appended since `start`: its length comes first, and
 * counts itself. */
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

/* A decimal number, negative before 1970 as a whole, which GNU tar understands, and bsdtar 3.6 but
 * for the fraction. sqfstar 4.5 rejects an mtime that has none: `always_fraction`. */
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

/* GNU tar reads %3D as '=', which would end the name, and so %25 as '%'. */
static void append_xattr_name(struct bw_buffer *text, const char *name)
{
    for (; *name; name++) {
        bool is_code = strncmp(name, "%3D", 3) == 0 || strncmp(name, "%25", 3) == 0;
        if (*name == '=' || is_code)
            bw_buffer_format(text, "%%%02X", (unsigned char)*name);
        else
            bw_buffer_append_byte(text, *name);
    }
}

static void append_xattr(struct bw_buffer *text, const struct bw_xattr *xattr)
{
    size_t start = text->length;
    bw_buffer_format(text, "SCHILY.xattr.");
    append_xattr_name(text, (const char *)xattr->name);
    bw_buffer_append_byte(text, '=');
    bw_buffer_append(text, xattr->value, xattr->value_length);
    end_record(text, start);
}

/* For GNU tar --acls, and bsdtar; as an attribute it is for GNU tar --xattrs-include. */
static void append_acl(struct bw_buffer *text, const struct bw_xattr *xattr)
{
    BW_AUTO_FREE char *list = NULL;
    bool is_default = strcmp((const char *)xattr->name, BW_ACL_DEFAULT) == 0;
    BW_AUTO_ERROR struct bw_error *error = bw_acl_text(xattr, &list);
    text->failed |= error != NULL;
    if (list)
        append_text(text, is_default ? "SCHILY.acl.default" : "SCHILY.acl.access", list);
}

/* The number of bytes of data that are stored. */
static uint64_t stored(const struct bw_archive_entry *entry)
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

/* The map of a sparse file: how many ranges, and each. As in GNU tar's maps, the last one has the
 * length 0. sqfstar 4.5 reads past a map without it, and forgets the padding of the data if they
 * are the first range: then another one of length 0 comes before them. */
static void append_map(struct bw_buffer *text, const struct bw_archive_entry *entry)
{
    const bool is_padded = entry->range_count == 1 && entry->ranges[0].length % UNIT;
    bw_buffer_format(text, "%zu\n%s", entry->range_count + 1 + is_padded,
                     is_padded ? "0\n0\n" : "");
    for (size_t i = 0; i < entry->range_count; i++)
        bw_buffer_format(text, "%" PRIu64 "\n%" PRIu64 "\n", entry->ranges[i].offset,
                         entry->ranges[i].length);
    bw_buffer_format(text, "%" PRIu64 "\n0\n", entry->inode->size);
    bw_archive_pad(text, UNIT);
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

/* Sets the path, or that of a hard or symbolic link, with a record if need be. */
static void add_path(struct bw_buffer *records, char field[static 100], const char *key,
                     const char *path)
{
    set_path(field, path);
    if (naming_of(path) == IN_RECORD)
        append_text(records, key, path);
}

/* If a tar knows nothing of holes, what it extracts must not be mistaken for the file. */
static void add_sparse_path(struct bw_buffer *records, char field[static 100], const char *path)
{
    char other[100 + sizeof "GNUSparseFile.0/"];
    size_t length = strlen(path);
    if (!bw_utf8_is_valid(path, length)) {
        set_path(field, path);
        return;
    }
    snprintf(other, sizeof other, "GNUSparseFile.0/%s", path);
    set_path(field, other);
    append_text(records, "GNU.sparse.name", path);
}

static void add_number(struct bw_buffer *records, char *field, size_t width, const char *key,
                       uint64_t number)
{
    if (!set_number(field, width, number))
        append_number(records, key, number);
}

static void add_paths(struct bw_buffer *records, struct ustar *header,
                      const struct bw_archive_entry *entry)
{
    const char *link = entry->hardlink ? entry->hardlink : entry->symlink;
    if (entry->is_sparse)
        add_sparse_path(records, header->name, entry->path);
    else
        add_path(records, header->name, "path", entry->path);
    if (link)
        add_path(records, header->link, "linkpath", link);
}

static void add_times(struct bw_buffer *records, struct ustar *header,
                      const struct bw_archive_entry *entry)
{
    const struct timespec mtime = entry->inode->mtime;
    const bool before = mtime.tv_sec < 0;
    const bool fits = SET_NUMBER(header->mtime, before ? 0 : (uint64_t)mtime.tv_sec);
    if (before || !fits || mtime.tv_nsec)
        append_time(records, "mtime", mtime, true);
    append_time(records, "atime", entry->inode->atime, false);
    append_time(records, "ctime", entry->inode->ctime, false);
}

static void append_sparse(struct bw_buffer *records, uint64_t size)
{
    append_number(records, "GNU.sparse.major", 1);
    append_number(records, "GNU.sparse.minor", 0);
    append_number(records, "GNU.sparse.realsize", size);
}

/* Sets all that the header holds, and appends what it does not as records; `size` is that of the
 * data in the archive. */
static void add_all(struct bw_buffer *records, struct ustar *header,
                    const struct bw_archive_entry *entry, uint64_t size)
{
    const struct bw_inode *inode = entry->inode;
    add_paths(records, header, entry);
    SET_NUMBER(header->mode, inode->mode & 07777);
    add_number(records, header->uid, sizeof header->uid, "uid", inode->uid);
    add_number(records, header->gid, sizeof header->gid, "gid", inode->gid);
    add_number(records, header->size, sizeof header->size, "size", size);
    add_times(records, header, entry);
    for (size_t i = 0; i < entry->xattr_count; i++) {
        append_acl(records, &entry->xattrs[i]);
        append_xattr(records, &entry->xattrs[i]);
    }
    if (entry->is_sparse)
        append_sparse(records, inode->size);
}

/* Appends records and header; the header of the records comes first, when their length is known. */
static void append_headers(struct bw_buffer *text, struct ustar *header,
                           const struct bw_archive_entry *entry, uint64_t size)
{
    static const struct ustar none;
    char name[100 + sizeof "PaxHeaders/"];
    size_t start = text->length;
    bw_buffer_append(text, &none, sizeof none);
    add_all(text, header, entry, size);
    snprintf(name, sizeof name, "PaxHeaders/%s", entry->path);
    const struct ustar first = helping_header('x', text->length - start - sizeof none, name);
    bw_archive_pad(text, UNIT);
    if (!text->failed)
        memcpy(text->data + start, &first, sizeof first);
    bw_buffer_append(text, sealed(header), sizeof *header);
}

struct bw_error *bw_pax_append(struct bw_buffer *text, const struct bw_archive_entry *entry,
                               uint64_t *data)
{
    const struct bw_inode *inode = entry->inode;
    struct ustar header = {.type = type_of(entry)};
    bool is_device = header.type == '3' || header.type == '4';
    const char *link = entry->hardlink ? entry->hardlink : entry->symlink;
    if (!header.type)
        return bw_error_create(BW_ERROR_USAGE, "tar has no such type of file");
    if (!SET_NUMBER(header.major, is_device ? bw_inode_major(inode) : 0))
        return bw_error_create(BW_ERROR_USAGE, "tar has no such device number");
    SET_NUMBER(header.minor, is_device ? bw_inode_minor(inode) : 0);
    if (naming_of(entry->path) == IN_BLOCKS)
        append_long_path(text, 'L', entry->path);
    if (link && naming_of(link) == IN_BLOCKS)
        append_long_path(text, 'K', link);
    *data = stored(entry);
    BW_AUTO_BUFFER struct bw_buffer map = {0};
    if (entry->is_sparse)
        append_map(&map, entry);
    append_headers(text, &header, entry, map.length + *data);
    bw_buffer_append(text, map.data, map.length);
    text->failed |= map.failed;
    return NULL;
}
