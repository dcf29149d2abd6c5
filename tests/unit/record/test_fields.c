/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Items printed from their tables: as text, as JSON, and where their bytes are hostile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"
#include "ondisk/disk_items.h"
#include "ondisk/tables.h"
#include "record/fields.h"

/* The template of an item. */

static void print(struct bw_printer *printer, const struct bw_item *item)
{
    const struct bw_structure *structure = bw_structure_numbered(bw_structure_number(&item->key));
    struct bw_rows *rows = NULL;
    if (structure)
        assert_null(bw_rows_of_structure(structure, printer->json, NULL, &rows));
    printer->text.length = 0;
    bw_item_print(printer, rows, item);
    bw_rows_destroy(rows);
    assert_false(printer->text.failed);
}

static void expect_text(struct bw_printer *printer, const struct bw_item *item, const char *text)
{
    print(printer, item);
    assert_string_equal(bw_buffer_text(&printer->text), text);
}

static void expect(const struct bw_key key, const void *data, uint32_t size, const char *text,
                   const char *json, bool cut_off)
{
    const struct bw_item item = {key, data, size};
    struct bw_printer printer = {.part = {.sectorsize = 4096, .checksum_size = 4}};
    expect_text(&printer, &item, text);
    assert_int_equal(printer.cut_off, cut_off);
    printer.json = true;
    expect_text(&printer, &item, json);
    bw_buffer_free(&printer.text);
}

#define KEY(a, b, c) ((struct bw_key){(a), (b), (c)})

static void test_names(void **state)
{
    static const uint8_t two[] = "\x02\0\0\0\0\0\0\0\x03\0a b\x07\0\0\0\0\0\0\0\x02\0\n\xff";
    expect(KEY(257, BW_INODE_REF, 256), two, sizeof two - 1,
           "\n\t\tindex 2 namelen 3 name: a b\n\t\tindex 7 namelen 2 name: \\n\\377",
           "{\"names\":[{\"index\":2,\"name_length\":3,\"name\":\"a b\"},"
           "{\"index\":7,\"name_length\":2,\"name_bytes\":\"Cv8=\"}]}",
           false);
    /* The second name is longer than the item. */
    expect(KEY(257, BW_INODE_REF, 256), two, sizeof two - 2,
           "\n\t\tindex 2 namelen 3 name: a b\n\t\tindex 7 namelen 2\n\t\tcut off, 1 byte left",
           "{\"names\":[{\"index\":2,\"name_length\":3,\"name\":\"a b\"},"
           "{\"index\":7,\"name_length\":2,\"cut_off_bytes\":1}]}",
           true);
}

static void test_counts(void **state)
{
    struct {
        struct bw_disk_chunk chunk;
        struct bw_disk_stripe stripe;
    } one = {.chunk = {.length = bw_put64(65536),
                       .type = bw_put64(BW_GROUP_DATA | BW_GROUP_RAID0 | UINT64_C(1) << 40),
                       .stripe_count = bw_put16(0xffff)},
             .stripe = {.devid = bw_put64(3)}};
    expect(KEY(256, BW_CHUNK_ITEM, 1 << 20), &one, sizeof one,
           "\n\t\tlength 65536 owner 0 stripe_len 0 type DATA|RAID0"
           "\n\t\tio_align 0 io_width 0 sector_size 0\n\t\tnum_stripes 65535 sub_stripes 0"
           "\n\t\t\tstripe 0 devid 3 offset 0"
           "\n\t\t\tdev_uuid 00000000-0000-0000-0000-000000000000\n\t\tcut off, 0 bytes left",
           "{\"length\":65536,\"owner\":0,\"stripe_length\":0,"
           "\"type\":[\"DATA\",\"RAID0\",\"0x10000000000\"],\"io_align\":0,\"io_width\":0,"
           "\"sector_size\":0,\"stripe_count\":65535,\"sub_stripes\":0,\"stripes\":[{\"devid\":3,"
           "\"offset\":0,\"dev_uuid\":\"00000000-0000-0000-0000-000000000000\"},"
           "{\"cut_off_bytes\":0}]}",
           true);
}

static void test_choices(void **state)
{
    const struct bw_disk_file_extent extent = {.generation = bw_put64(9),
                                               .ram_bytes = bw_put64(5),
                                               .compression = 3,
                                               .type = BW_FILE_EXTENT_INLINE};
    expect(KEY(257, BW_EXTENT_DATA, 0), &extent, 26,
           "\n\t\tgeneration 9 type 0 (inline)"
           "\n\t\tinline extent data size 5 ram_bytes 5 compression 3 (zstd)",
           "{\"generation\":9,\"type\":\"inline\",\"encryption\":0,\"other_encoding\":0,"
           "\"inline_size\":5,\"ram_bytes\":5,\"compression\":\"zstd\"}",
           false);
    /* An unknown type of reference: the rest is shown as bytes. */
    static const uint8_t extent_item[24 + 3] = {[0] = 1, [16] = 1, [24] = 99, [25] = 0xab};
    expect(KEY(4096, BW_EXTENT_ITEM, 4096), extent_item, sizeof extent_item,
           "\n\t\trefs 1 gen 0 flags DATA\n\t\traw 0: ab00",
           "{\"references\":1,\"generation\":0,\"flags\":[\"DATA\"],"
           "\"inline_references\":[{\"type\":\"UNKNOWN.99\"}],\"raw\":\"ab00\"}",
           false);
}

static void test_sizes(void **state)
{
    static const uint8_t bytes[3] = {1, 2, 0xfe};
    expect(KEY(1, 77, 0), bytes, 3, "\n\t\traw 0: 0102fe", "{\"raw\":\"0102fe\"}", false);
    expect(KEY(1, BW_INODE_ITEM, 0), bytes, 3, "\n\t\tcut off, 3 bytes left",
           "{\"cut_off_bytes\":3}", true);
    expect(KEY(1, BW_INODE_ITEM, 0), bytes, 0, "\n\t\tcut off, 0 bytes left",
           "{\"cut_off_bytes\":0}", true);
    expect(KEY(1, BW_QGROUP_RELATION, 2), bytes, 0, "", "{}", false);
}

/* All members that templates name exist. */
static void test_templates(void **state)
{
    for (unsigned i = 0; i < BW_ITEM_TYPES; i++) {
        const struct bw_structure *structure = bw_structure_numbered(i);
        struct bw_rows *rows = NULL;
        if (structure)
            assert_null(bw_rows_of_structure(structure, false, NULL, &rows));
        bw_rows_destroy(rows);
    }
}

/* Any bytes, as items of every type: nothing outside of them is read, and neither text nor JSON
 * holds a control byte. */
static void test_any_bytes(void **state)
{
    enum { MOST = 600 };
    uint32_t seed = 1;
    for (unsigned round = 0; round < 256 * 24; round++) {
        uint8_t bytes[MOST];
        seed = seed * 1664525 + 1013904223;
        const uint32_t size = seed % 3 == 0 ? seed >> 8 & 63 : (seed >> 8) % MOST;
        for (uint32_t i = 0; i < size; i++) {
            seed = seed * 1664525 + 1013904223;
            bytes[i] = seed >> 30 ? (uint8_t)(seed >> 28 & 3) : (uint8_t)(seed >> 16);
        }
        /* Where a read beyond the item is noticed. */
        uint8_t *data = malloc(size ? size : 1);
        memcpy(data, bytes, size);
        const struct bw_item item = {
            {seed >> 20 ? seed : 0 - (uint64_t)(seed % 16), (uint8_t)round, seed % 2}, data, size};
        struct bw_printer printer = {.checksum_items = true,
                                     .part = {.sectorsize = 4096, .checksum_size = 32}};
        const struct bw_buffer *text = &printer.text;
        print(&printer, &item);
        for (size_t i = 0; i < text->length; i++)
            assert_true((uint8_t)text->data[i] >= ' ' || strchr("\n\t", text->data[i]));
        printer.json = true;
        print(&printer, &item);
        assert_true(bw_utf8_is_valid(text->data, text->length));
        for (size_t i = 0; i < text->length; i++)
            assert_true((uint8_t)text->data[i] >= ' ' && text->data[i] != 0x7f);
        bw_buffer_free(&printer.text);
        free(data);
    }
}

/* Rows of records on disk need bytes. */
static void test_wrong_records(void **state)
{
    static const uint8_t bytes[BW_SUPERBLOCK_BYTES];
    const struct bw_rows_options options = {.struct_size = sizeof options};
    const char *const records[] = {"superblockinfo", "fileinfo"};
    for (size_t i = 0; i < 2; i++) {
        struct bw_rows *rows;
        assert_null(bw_rows_create(records[i], &options, &rows));
        struct bw_rows_stream stream = {.rows = rows};
        struct bw_error *error = i ? bw_rows_write_superblock(&stream, "image", 0, 0, bytes, NULL)
                                   : bw_rows_write(&stream, bytes, sizeof bytes);
        assert_int_equal(error->code, BW_ERROR_USAGE);
        bw_error_free(error);
        bw_rows_destroy(rows);
    }
}
