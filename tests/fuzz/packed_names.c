/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of files in a sanitized metadump: no image must make the program forget one. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "btree/block.h"
#include "fuzz/packed.h"
#include "fuzz/targets.h"
#include "ondisk/items.h"

enum { NAMES = 200, SHORTEST = 8 };

/* Names that are unlikely to be anything else. */
struct names {
    struct {
        const uint8_t *text;
        size_t length;
    } items[NAMES];
    size_t count;
};

static bool is_plain(const uint8_t *name, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!(name[i] >= 'a' && name[i] <= 'z') && name[i] != '-' && name[i] != '_')
            return false;
    return length >= SHORTEST;
}

static void add_names(struct names *names, const struct bw_item *item)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_dir_entry entry;
    if (item->key.type != BW_DIR_ITEM && item->key.type != BW_DIR_INDEX)
        return;
    while (names->count < NAMES && bw_dir_entry_next(&cursor, &entry)) {
        names->items[names->count].text = entry.name;
        names->items[names->count].length = entry.name_length;
        names->count += is_plain(entry.name, entry.name_length);
    }
}

static void add_leaf(struct names *names, const uint8_t *block, uint32_t nodesize)
{
    const struct bw_node node = bw_node_view(block, nodesize);
    const size_t room = (nodesize - sizeof(struct bw_disk_header)) / sizeof(struct bw_disk_item);
    struct bw_item item;
    if (node.level || node.item_count > room)
        return; /* no leaf, or one with a wrong count, whose table would not end inside the block */
    for (uint32_t slot = 0; bw_leaf_next(&node, &slot, &item);)
        add_names(names, &item);
}

void fuzz_check_dump(const struct packed_image *image, const char *path)
{
    struct names names = {.count = 0};
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const off_t size = file < 0 ? 0 : lseek(file, 0, SEEK_END);
    void *dump = size > 0 ? mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    for (size_t i = 0; dump != MAP_FAILED && i < image->page_count; i++) {
        const uint8_t *block = packed_block(image, &image->pages[i]);
        if (block)
            add_leaf(&names, block, packed_nodesize(image));
    }
    for (size_t i = 0; i < names.count; i++)
        if (memmem(dump, (size_t)size, names.items[i].text, names.items[i].length))
            fuzz_fail("the name '%.*s' is in a sanitized metadump", (int)names.items[i].length,
                      (const char *)names.items[i].text);
    if (dump != MAP_FAILED)
        munmap(dump, (size_t)size);
    if (file >= 0)
        close(file);
}
