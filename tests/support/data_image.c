/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Images with one file of chosen extents, and reading it in every way there is. */
#include "data_image.h"

#include "image_writer_internal.h"

/* Metadata of these, and of RAID0, may lose a device, too. */
#define REDUNDANT (BW_GROUP_RAID1 | BW_GROUP_RAID1C3 | BW_GROUP_RAID10 | BW_GROUP_RAID5)

static struct iw_options options_of(uint64_t profile, enum bw_checksum_type checksum)
{
    return (struct iw_options){.nodesize = 4096,
                               .checksum_type = checksum,
                               .data_profile = profile,
                               .profile = profile & REDUNDANT        ? profile
                                          : profile & BW_GROUP_RAID0 ? BW_GROUP_RAID1
                                                                     : 0,
                               .data_chunks = 1};
}

static uint64_t find_chunk(const struct iw_image *image)
{
    for (size_t i = 0; i < iw_chunk_count(image); i++)
        if (iw_chunk(image, i)->type & BW_GROUP_DATA)
            return iw_chunk(image, i)->logical;
    abort();
}

struct data_image *data_image_create(uint64_t profile, enum bw_checksum_type checksum)
{
    const struct iw_options options = options_of(profile, checksum);
    struct data_image *image = calloc(1, sizeof *image);
    struct iw_image *like = iw_create(&options);
    iw_write_memory(like);
    image->logical = find_chunk(like);
    iw_destroy(like);
    image->checksum = checksum;
    image->image = iw_create(&options);
    image->inode = iw_file(image->image, FS, TOP, "file");
    image->data = malloc(DATA_SIZE);
    srand(7);
    for (size_t i = 0; i < DATA_SIZE; i++)
        image->data[i] = (uint8_t)rand();
    return image;
}

unsigned data_image_first_copy(const struct data_image *image, unsigned direct)
{
    enum { PART = 2 << 20 };
    return direct < 2 ? 1 : (unsigned)(image->logical / PART % direct) + 1;
}

void data_image_free(struct data_image *image)
{
    bw_fs_close(image->fs);
    iw_destroy(image->image);
    report_log_free(&image->log);
    free(image->data);
    free(image);
}

void data_image_extent(struct data_image *image, const struct data_extent *extent)
{
    const struct bw_disk_file_extent disk = {
        .generation = bw_put64(7),
        .ram_bytes = bw_put64(extent->ram),
        .compression = extent->compression,
        .type = extent->type,
        .disk_bytenr = bw_put64(extent->hole ? 0 : image->logical + extent->disk),
        .disk_num_bytes = bw_put64(extent->disk_length),
        .offset = bw_put64(extent->skip),
        .num_bytes = bw_put64(extent->length),
    };
    iw_item(image->image, FS, (struct bw_key){image->inode, BW_EXTENT_DATA, extent->offset}, &disk,
            sizeof disk);
}

void data_image_plain(struct data_image *image, uint64_t offset, uint64_t disk, uint64_t length)
{
    data_image_extent(image, &(struct data_extent){.offset = offset,
                                                   .type = BW_FILE_EXTENT_REGULAR,
                                                   .disk = disk,
                                                   .disk_length = length,
                                                   .ram = length,
                                                   .length = length});
}

void data_image_inline(struct data_image *image, uint8_t compression, uint64_t ram,
                       const void *bytes, size_t length)
{
    uint8_t item[8192] = {0};
    const struct iw_disk_inline_extent head = {.generation = bw_put64(7),
                                               .ram_bytes = bw_put64(ram),
                                               .compression = compression,
                                               .type = BW_FILE_EXTENT_INLINE};
    memcpy(item, &head, sizeof head);
    memcpy(item + sizeof head, bytes, length);
    iw_item(image->image, FS, (struct bw_key){image->inode, BW_EXTENT_DATA, 0}, item,
            sizeof head + length);
}

void data_image_inode(struct data_image *image, uint64_t size, uint64_t flags)
{
    struct bw_disk_inode_item *inode =
        iw_item_bytes(image->image, FS, (struct bw_key){image->inode, BW_INODE_ITEM, 0}, NULL);
    inode->size = bw_put64(size);
    inode->flags = bw_put64(flags);
}

void data_image_checksums(struct data_image *image, uint32_t first, uint32_t count)
{
    size_t size = bw_checksum_size(image->checksum);
    uint8_t *sums = malloc(count * size);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t sum[32];
        bw_checksum_compute(image->checksum, image->data + (size_t)(first + i) * SECTOR, SECTOR,
                            sum);
        memcpy(sums + i * size, sum, size);
    }
    iw_item(image->image, BW_CSUM_TREE,
            (struct bw_key){BW_EXTENT_CSUM_OBJECT, BW_EXTENT_CSUM,
                            image->logical + (uint64_t)first * SECTOR},
            sums, count * size);
    free(sums);
}

void data_image_open(struct data_image *image, void (*before)(struct data_image *image))
{
    iw_write_memory(image->image);
    assert_int_equal(find_chunk(image->image), image->logical);
    iw_store(image->image, image->logical, NULL, image->data, DATA_SIZE);
    if (before)
        before(image);
    expect_success(open_image(image->image, &image->log, &image->fs));
}

struct bw_data_file data_image_file(const struct data_image *image, uint64_t size, bool unchecked)
{
    return (struct bw_data_file){.subvolume = bw_subvolume_by_id(image->fs, FS),
                                 .inode = image->inode,
                                 .size = size,
                                 .unchecked = unchecked};
}

/* Reading. */

struct reading {
    const struct bw_stream_file *file;
    bool given;
    bool small;      /* holes are written out as zeros */
    uint64_t offset; /* where the next part must begin */
    struct data_result *result;
};

static struct bw_error *take(void *context, const struct bw_data_part *part)
{
    struct reading *reading = context;
    struct data_result *result = reading->result;
    assert_int_equal(part->offset, reading->offset);
    assert_true(part->length > 0);
    reading->offset += part->length;
    if (part->kind == BW_DATA_BYTES)
        bw_buffer_append(&result->bytes, part->bytes, (size_t)part->length);
    if (part->kind == BW_DATA_HOLE)
        result->holes += part->length;
    if (part->kind == BW_DATA_BAD) {
        result->bad += part->length;
        if (!result->bad_parts++)
            snprintf(result->first_error, sizeof result->first_error, "%s", part->error->message);
    }
    for (uint64_t i = 0; part->kind != BW_DATA_BYTES && reading->small && i < part->length; i++)
        bw_buffer_append_byte(&result->bytes, part->kind == BW_DATA_BAD ? '!' : 0);
    return NULL;
}

static struct bw_error *next(void *context, struct bw_stream_file *file, bool *got)
{
    struct reading *reading = context;
    *got = !reading->given;
    reading->given = true;
    *file = *reading->file;
    return NULL;
}

static struct bw_error *take_streamed(void *context, const struct bw_stream_file *file,
                                      const struct bw_data_part *part)
{
    (void)file;
    return take(context, part);
}

static struct bw_error *finish(void *context, const struct bw_stream_file *file, bool complete)
{
    struct reading *reading = context;
    (void)file;
    assert_true(complete);
    reading->result->finished++;
    return NULL;
}

static void read_streamed(struct data_image *image, const struct bw_stream_file *file,
                          unsigned threads, struct data_result *result)
{
    struct reading reading = {.file = file,
                              .small = file->data.size <= DATA_SIZE,
                              .offset = file->offset,
                              .result = result};
    expect_success(
        bw_stream_run(image->fs, &(struct bw_stream){.struct_size = sizeof(struct bw_stream),
                                                     .threads = threads,
                                                     .next = next,
                                                     .visit = take_streamed,
                                                     .finish = finish,
                                                     .context = &reading}));
    assert_int_equal(result->finished, 1);
}

static void expect_same(const struct data_result *one, const struct data_result *other)
{
    assert_int_equal(one->bytes.length, other->bytes.length);
    if (one->bytes.length)
        assert_memory_equal(one->bytes.data, other->bytes.data, one->bytes.length);
    assert_int_equal(one->holes, other->holes);
    assert_int_equal(one->bad, other->bad);
}

void data_image_read(struct data_image *image, const struct bw_data_file *file, uint64_t offset,
                     uint64_t length, struct data_result *result)
{
    const struct bw_stream_file wanted = {.data = *file, .offset = offset, .length = length};
    struct data_result threaded = {.holes = 0}, direct = {.holes = 0};
    struct reading reading = {
        .small = file->size <= DATA_SIZE, .offset = offset, .result = &direct};
    struct bw_data_reader *reader;
    *result = (struct data_result){.holes = 0};
    read_streamed(image, &wanted, 1, result);
    read_streamed(image, &wanted, 4, &threaded);
    expect_same(result, &threaded);
    expect_success(bw_data_reader_create(image->fs, &reader));
    bw_data_begin(reader, file, offset, length);
    for (const struct bw_data_part *part;;) {
        expect_success(bw_data_next(reader, &part));
        if (!part)
            break;
        expect_success(take(&reading, part));
    }
    bw_data_reader_destroy(reader);
    expect_same(result, &direct);
    data_result_free(&threaded);
    data_result_free(&direct);
}

void data_result_free(struct data_result *result)
{
    bw_buffer_free(&result->bytes);
}

struct data_image *data_image_begin(void)
{
    struct data_image *image = data_image_create(0, BW_CHECKSUM_CRC32C);
    data_image_checksums(image, 0, 100);
    return image;
}

void data_image_read_all(struct data_image *image, uint64_t size, struct data_result *result)
{
    data_image_inode(image, size, 0);
    if (!image->fs)
        data_image_open(image, NULL);
    const struct bw_data_file file = data_image_file(image, size, false);
    data_image_read(image, &file, 0, UINT64_MAX, result);
}

void data_image_finish(struct data_image *image, struct data_result *result)
{
    data_result_free(result);
    data_image_free(image);
}

void data_expect_bytes(const struct data_result *result, uint64_t offset, const void *bytes,
                       size_t length)
{
    assert_true(result->bytes.length >= offset + length);
    assert_memory_equal(result->bytes.data + offset, bytes, length);
}

void data_expect_all(const struct data_result *result, uint64_t offset, char byte, size_t length)
{
    assert_true(result->bytes.length >= offset + length);
    for (size_t i = 0; i < length; i++)
        assert_int_equal(result->bytes.data[offset + i], byte);
}
