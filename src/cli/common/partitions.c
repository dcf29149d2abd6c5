/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Partition tables: as a few lines with aligned columns, or as a record. */
#include "cli/common/partitions.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/table.h"
#include "btrfs-walk/records.h"
#include "cli/common/output.h"

void cmd_append_partitions(struct bw_buffer *text, const struct bw_partition_table *table)
{
    struct bw_table_column columns[6] = {{0}, {.right = true}, {.right = true}};
    BW_AUTO_BUFFER struct bw_buffer cells = {0};
    bw_escape_words(text, table->path);
    bw_buffer_format(text, ": %s partition table, sectors of %" PRIu32 " bytes\n",
                     strcmp(table->kind, "gpt") == 0 ? "GPT" : "MBR", table->sector_size);
    for (size_t i = 0; i < table->count; i++) {
        /* Names come from the disk, and are escaped. */
        const struct bw_partition_info *partition = &table->partitions[i];
        const char *type = *partition->type_name ? partition->type_name : partition->type;
        bw_buffer_format(&cells, "  %3u\t%s\t%s\t%s\t", partition->number,
                         cmd_size(NULL, partition->offset).text,
                         cmd_size(NULL, partition->length).text, type);
        bw_escape_words(&cells, *partition->name ? partition->name : "-");
        bw_buffer_append_byte(&cells, '\t');
        if (*partition->content)
            bw_escape_words(&cells, partition->content);
        else
            bw_escape_words(&cells, partition->extended ? "logical partitions" : "unknown");
        if (*partition->label)
            bw_buffer_format(&cells, ", label ");
        bw_escape_words(&cells, partition->label);
        bw_buffer_format(&cells, "%s%s\n", *partition->content_uuid ? ", " : "",
                         partition->content_uuid);
    }
    bw_table_append(text, &cells, columns);
}

/* Records. Empty texts become NULL, which is a missing value. */

static const char *text_of(const char *text)
{
    return *text ? text : NULL;
}

static struct bw_error *list_partitions(void *context, struct bw_record_sink *sink)
{
    const struct bw_partition_table *table = context;
    for (size_t i = 0; i < table->count; i++) {
        const struct bw_partition_info *partition = &table->partitions[i];
        const struct bw_partitioninfo row = {.partition = partition->number,
                                             .offset = partition->offset,
                                             .size = partition->length,
                                             .partition_type = partition->type,
                                             .partition_type_name = text_of(partition->type_name),
                                             .uuid = text_of(partition->uuid),
                                             .partition_name = text_of(partition->name),
                                             .content = text_of(partition->content),
                                             .label = text_of(partition->label),
                                             .content_uuid = text_of(partition->content_uuid)};
        BW_TRY(sink->visit(sink, &row, sizeof row));
    }
    return NULL;
}

struct bw_error *cmd_write_disk(struct bw_record_sink *sink, const struct bw_partition_table *table)
{
    const struct bw_diskinfo row = {
        .device = table->path,
        .partition_table = table->kind,
        .disk_sectorsize = table->sector_size,
        .size = table->size,
        .partitions = {list_partitions, (void *)(uintptr_t)table},
    };
    return sink->visit(sink, &row, sizeof row);
}
