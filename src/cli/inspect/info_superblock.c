/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a superblock tells, for the info command. */
#include "cli/inspect/info.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <uuid/uuid.h>

#include "base/cleanup.h"

/* Appends the names of flags to a line, or writes them as elements; a bit without a name by its
 * number. */
static void add_flags(struct sheet *sheet, struct bw_buffer *line, uint64_t flags,
                      const char *(*name_of)(unsigned))
{
    for (unsigned bit = 0; bit < 64; bit++) {
        char number[16];
        if (!(flags >> bit & 1))
            continue;
        snprintf(number, sizeof number, "bit-%u", bit);
        const char *name = name_of(bit) ? name_of(bit) : number;
        sheet_text(sheet, NULL, name);
        bw_buffer_format(line, "%s%s", line->length ? ", " : "", name);
    }
}

static void put_features(struct sheet *sheet, const struct bw_superblock_info *super)
{
    BW_AUTO_BUFFER struct bw_buffer line = {0};
    sheet_array(sheet, "features");
    add_flags(sheet, &line, super->incompat_flags, bw_incompat_name);
    add_flags(sheet, &line, super->compat_ro_flags, bw_compat_ro_name);
    sheet_close(sheet);
    sheet_number(sheet, "incompat_flags", super->incompat_flags);
    sheet_number(sheet, "compat_ro_flags", super->compat_ro_flags);
    sheet_line(sheet, "Features:", "%.*s", (int)line.length, line.data ? line.data : "");
}

void info_put_uuid(struct sheet *sheet, const char *label, const char *name,
                   const uint8_t uuid[BW_UUID_SIZE])
{
    char text[UUID_STR_LEN];
    uuid_unparse_lower(uuid, text);
    sheet_text(sheet, name, text);
    if (label)
        sheet_line(sheet, label, "%s", text);
}

static void put_sizes(struct sheet *sheet, const struct bw_superblock_info *super)
{
    uint64_t size = super->total_bytes, used = super->bytes_used;
    char all[BW_SIZE_ROOM + 1], part[BW_SIZE_ROOM + 1];
    sheet_number(sheet, "size", size);
    sheet_number(sheet, "used", used);
    sheet_line(sheet, "Size:", "%s, %s used (%.0f%%)", sheet_size(all, size),
               sheet_size(part, used), 100.0 * (double)used / (double)(size ? size : 1));
}

void info_put_superblock(struct sheet *sheet, const struct bw_superblock_info *super)
{
    bool same_uuid = memcmp(super->fsid, super->metadata_uuid, BW_UUID_SIZE) == 0;
    sheet_bytes(sheet, "Label:", "label", super->label);
    info_put_uuid(sheet, "UUID:", "uuid", super->fsid);
    info_put_uuid(sheet, same_uuid ? NULL : "Metadata UUID:", "metadata_uuid",
                  super->metadata_uuid);
    put_sizes(sheet, super);
    sheet_number(sheet, "nodesize", super->nodesize);
    sheet_number(sheet, "sectorsize", super->sectorsize);
    sheet_text(sheet, "checksum", bw_checksum_name(super->checksum_type));
    sheet_line(sheet, "Blocks:", "nodes of %" PRIu32 " bytes, sectors of %" PRIu32 ", %s",
               super->nodesize, super->sectorsize, bw_checksum_name(super->checksum_type));
    put_features(sheet, super);
}
