/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Partition tables: as a few lines with aligned columns, or as an object. */
#include "cli/common/partitions.h"

#include <inttypes.h>
#include <string.h>

#include "base/escape.h"
#include "base/human.h"

enum { START, SIZE, TYPE, NAME, CONTENT, COLUMNS };

/* A column of a partition; names come from the disk, and are escaped. */
static void append_column(struct bw_buffer *text, const struct bw_partition_info *partition,
                          unsigned column)
{
    const char *type = *partition->type_name ? partition->type_name : partition->type;
    char size[BW_SIZE_ROOM];
    uint64_t bytes = column == START ? partition->offset : partition->length;
    switch (column) {
    case START:
    case SIZE:
        bw_buffer_append(text, size, (size_t)(bw_write_size(size, bytes, false) - size));
        break;
    case TYPE:
        bw_buffer_format(text, "%s", type);
        break;
    case NAME:
        bw_escape_words(text, *partition->name ? partition->name : "-");
        break;
    default:
        bw_escape_words(text, *partition->content   ? partition->content
                              : partition->extended ? "logical partitions"
                                                    : "unknown");
        if (*partition->label)
            bw_buffer_format(text, ", label ");
        bw_escape_words(text, partition->label);
        bw_buffer_format(text, "%s%s", *partition->content_uuid ? ", " : "",
                         partition->content_uuid);
    }
}

static void measure(const struct bw_partition_table *table, size_t widths[COLUMNS])
{
    BW_AUTO_BUFFER struct bw_buffer cell = {0};
    for (size_t i = 0; i < table->count; i++) {
        for (unsigned column = 0; column < CONTENT; column++) {
            cell.length = 0;
            append_column(&cell, &table->partitions[i], column);
            if (cell.length > widths[column])
                widths[column] = cell.length;
        }
    }
}

void cmd_append_partitions(struct bw_buffer *text, const struct bw_partition_table *table)
{
    size_t widths[COLUMNS] = {0};
    measure(table, widths);
    bw_escape_words(text, table->path);
    bw_buffer_format(text, ": %s partition table, sectors of %" PRIu32 " bytes\n",
                     strcmp(table->kind, "gpt") == 0 ? "GPT" : "MBR", table->sector_size);
    for (size_t i = 0; i < table->count; i++) {
        bw_buffer_format(text, "  %3u", table->partitions[i].number);
        for (unsigned column = 0; column < COLUMNS; column++) {
            BW_AUTO_BUFFER struct bw_buffer cell = {0};
            append_column(&cell, &table->partitions[i], column);
            size_t padding = cell.length < widths[column] ? widths[column] - cell.length : 0;
            bw_buffer_format(text, "  %*s%.*s%*s", column <= SIZE ? (int)padding : 0, "",
                             (int)cell.length, cell.data ? cell.data : "",
                             column > SIZE ? (int)padding : 0, "");
        }
        bw_buffer_append_byte(text, '\n');
    }
}

/* A text that may be missing. */
static void write_text(struct bw_json *json, const char *name, const char *text)
{
    if (*text)
        bw_json_text(json, name, text);
}

static void write_partition(struct bw_json *json, const struct bw_partition_info *partition)
{
    bw_json_begin_object(json, NULL);
    bw_json_number(json, "number", partition->number);
    bw_json_number(json, "start", partition->offset);
    bw_json_number(json, "size", partition->length);
    bw_json_text(json, "type", partition->type);
    write_text(json, "type_name", partition->type_name);
    write_text(json, "uuid", partition->uuid);
    write_text(json, "name", partition->name);
    write_text(json, "content", partition->content);
    write_text(json, "label", partition->label);
    write_text(json, "content_uuid", partition->content_uuid);
    bw_json_end(json);
}

static void write_table(struct bw_json *json, const struct bw_partition_table *table)
{
    bw_json_begin_object(json, NULL);
    bw_json_text(json, "path", table->path);
    bw_json_text(json, "table", table->kind);
    bw_json_number(json, "sector_size", table->sector_size);
    bw_json_number(json, "size", table->size);
    bw_json_begin_array(json, "partitions");
    for (size_t i = 0; i < table->count; i++)
        write_partition(json, &table->partitions[i]);
    bw_json_end(json);
    bw_json_end(json);
}

void cmd_put_partitions(struct sheet *sheet, const struct bw_partition_table *table)
{
    if (sheet->is_json) {
        write_table(&sheet->json, table);
        return;
    }
    bw_buffer_format(&sheet->text, "%s", sheet->text.length ? "\n" : "");
    cmd_append_partitions(&sheet->text, table);
}
