/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Manifests as in mtree(5), with whole paths: a line for each entry, of its path and keywords with
 * values. Bytes that are not plain text are written as \ooo. */
#include <inttypes.h>
#include <sys/stat.h>

#include "export/archive.h"
#include "export/manifest.h"

/* As vis(3) with VIS_OCTAL does it. */
static void append_escaped(struct bw_buffer *text, const char *bytes)
{
    for (const unsigned char *next = (const unsigned char *)bytes; *next; next++) {
        bool plain = *next > ' ' && *next < 0x7f && !strchr("\\#=*?[", *next);
        if (plain)
            bw_buffer_append_byte(text, (char)*next);
        else
            bw_buffer_format(text, "\\%03o", *next);
    }
}

struct bw_error *bw_mtree_append(struct bw_buffer *text, const struct bw_archive_entry *entry,
                                 uint64_t *data)
{
    (void)data; /* none follow */
    const struct bw_inode *inode = entry->inode;
    bool in_top = entry->path[0] == '.' && (!entry->path[1] || entry->path[1] == '/');
    bw_buffer_format(text, "%s", in_top ? "" : "./");
    append_escaped(text, entry->path);
    bw_buffer_format(text, " type=%s mode=%04o uid=%" PRIu32 " gid=%" PRIu32 " nlink=%" PRIu32,
                     bw_manifest_type_name(inode->mode), inode->mode & 07777, inode->uid,
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
        append_escaped(text, entry->symlink);
    }
    if (entry->hash)
        bw_buffer_format(text, " sha256digest=%s", entry->hash);
    bw_buffer_append_byte(text, '\n');
    return NULL;
}
