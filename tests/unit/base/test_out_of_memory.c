/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Each allocation of a function fails once, and then that one with all later ones: the function
 * returns the error that there is no memory, and keeps nothing. Functions of base/, ondisk/ and
 * btree/; tests/command/failures.sh does the same with commands.
 *
 * The program defines the functions of the C library that allocate, so the libraries, and the C
 * library itself, call them, too.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/xattr.h>
#include <unistd.h>
#define ZLIB_CONST
#include <zlib.h>
#include <zstd.h>
#ifdef BW_LZ4
#include <lz4frame.h>
#endif
#ifdef BW_XZ
#include <lzma.h>
#endif

#include "base/bad_map.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/hex_dump.h"
#include "base/json.h"
#include "base/packed.h"
#include "base/pair_set.h"
#include "base/patch.h"
#include "base/pool.h"
#include "base/range_set.h"
#include "base/unpack.h"
#include "btree/edit_names.h"
#include "btree/find_leaf.h"
#include "btree/scan.h"
#include "fs/fs.h"
#include "ondisk/compression.h"
#include "ondisk/item_rules.h"
#include "ondisk/items.h"
#include "ondisk/structure.h"
#include "ondisk/tree_title.h"
#include "support/walk_helpers.h"

/* Sanitizers have allocation functions of their own. */
#define REAL(type, name, ...)                                            \
    extern type __interceptor_##name(__VA_ARGS__) __attribute__((weak)); \
    extern type __libc_##name(__VA_ARGS__)
REAL(void *, malloc, size_t);
REAL(void *, calloc, size_t, size_t);
REAL(void *, realloc, void *, size_t);
REAL(void *, memalign, size_t, size_t);
REAL(void, free, void *);
#define CALL(name, ...) \
    (__interceptor_##name ? __interceptor_##name(__VA_ARGS__) : __libc_##name(__VA_ARGS__))

static atomic_long live;     /* blocks that are not free */
static atomic_ulong calls;   /* since a failure was chosen */
static unsigned long chosen; /* the call that fails; 0: none */
static bool later_ones;      /* fail as well */

static bool fails(void)
{
    const unsigned long call = atomic_fetch_add(&calls, 1) + 1;
    if (!chosen || !(call == chosen || (later_ones && call > chosen)))
        return false;
    errno = ENOMEM;
    return true;
}

static void *count(void *block)
{
    atomic_fetch_add(&live, block != NULL);
    return block;
}

void *malloc(size_t size)
{
    return fails() ? NULL : count(CALL(malloc, size));
}

void *calloc(size_t number, size_t size)
{
    return fails() ? NULL : count(CALL(calloc, number, size));
}

void *realloc(void *block, size_t size)
{
    if (fails())
        return NULL;
    void *moved = CALL(realloc, block, size);
    return block ? moved : count(moved);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : count(CALL(memalign, alignment, size));
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    void *made = aligned_alloc(alignment, size);
    if (!made)
        return ENOMEM;
    *block = made;
    return 0;
}

void free(void *block)
{
    atomic_fetch_sub(&live, block != NULL);
    CALL(free, block);
}

/* With sanitizers, these would not call malloc(). */
char *strndup(const char *text, size_t most)
{
    const size_t length = strnlen(text, most);
    char *copy = malloc(length + 1);
    if (!copy)
        return NULL;
    copy[length] = '\0';
    return memcpy(copy, text, length);
}

char *strdup(const char *text)
{
    return strndup(text, strlen(text));
}

/* vasprintf() gives back what it did not need, and that may fail. */
enum { SHORTENED = 1 };

/* The blocks that layers keep for the next request come and go: they are counted at the end. */
static bool with_layers;

/* Lets each allocation of a function fail. The function may succeed without `spared` of them. */
static void fail_each(struct bw_error *(*run)(void *context), void *context, size_t spared)
{
    expect_success(run(context)); /* what libraries keep is allocated now */
    for (int later = 0; later < 2; later++) {
        size_t successes = 0, failures = 0;
        for (unsigned long call = 1;; call++) {
            const long before = atomic_load(&live);
            later_ones = later;
            atomic_store(&calls, 0);
            chosen = call;
            struct bw_error *error = run(context);
            chosen = 0;
            const bool reached = atomic_load(&calls) >= call, failed = error != NULL;
            if (error && error->code != BW_ERROR_NO_MEMORY)
                fail_msg("call %lu: %s", call, error->message);
            assert_true(reached || !failed);
            bw_error_free(error);
            if (!with_layers)
                assert_int_equal(atomic_load(&live), before);
            if (!reached) {
                assert_int_not_equal(call, 1);
                break;
            }
            failures += failed;
            successes += !failed;
        }
        assert_true(failures && successes <= spared);
    }
}

/* base/ */

static struct bw_error *append_texts(void *context)
{
    static const char words[] = "a word\n\xff\x01";
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    for (int i = 0; i < 40; i++) {
        bw_buffer_format(&text, "%d %s", i, words);
        bw_buffer_append_hex(&text, (const uint8_t *)words, sizeof words);
        bw_escape_append(&text, words, sizeof words);
        bw_append_shell_word(&text, words);
        bw_decimal_append(&text, UINT64_MAX);
        bw_hex_dump(&text, "  ", 0, (const uint8_t *)words, sizeof words);
        struct bw_json json = bw_json_start(&text, false);
        bw_json_raw_bytes(&json, "bytes", words, sizeof words);
        bw_print_objectid(&text, BW_ORPHAN, 0);
        bw_print_key(&text, &(struct bw_key){257, BW_INODE_ITEM, 0});
    }
    assert_non_null(bw_buffer_text(&text));
    return bw_buffer_error(&text);
}

static void test_a_text_whose_memory_runs_out_says_so(void **state)
{
    fail_each(append_texts, NULL, 0);
}

/* Each step alone, at the end of a buffer. */
static void test_a_text_that_does_not_fit_is_dropped_as_a_whole(void **state)
{
    static const uint8_t bytes[] = "\xff bytes";
    char memory[4];
    for (int step = 0; step < 9; step++) {
        struct bw_buffer text = {.data = memory, .capacity = sizeof memory, .fixed = true};
        struct bw_json json = bw_json_start(&text, false);
        switch (step) {
        case 0:
            bw_buffer_format(&text, "%s", "longer");
            break;
        case 1:
            bw_buffer_append_hex(&text, bytes, sizeof bytes);
            break;
        case 2:
            bw_escape_append(&text, bytes, sizeof bytes);
            break;
        case 3:
            bw_decimal_append(&text, 1);
            break;
        case 4:
            bw_hex_dump(&text, "", 0, bytes, sizeof bytes);
            break;
        case 5:
            bw_json_raw_bytes(&json, NULL, bytes, sizeof bytes);
            break;
        case 6:
            bw_print_objectid(&text, BW_ORPHAN, 0);
            break;
        case 7:
            bw_print_key(&text, &(struct bw_key){257, BW_INODE_ITEM, 0});
            break;
        default:
            bw_buffer_append(&text, bytes, sizeof bytes);
        }
        assert_true(text.failed);
        assert_true(text.length <= sizeof memory);
    }
}

static struct bw_error *give_text(void *context)
{
    struct bw_buffer text = {0};
    char *given;
    size_t length;
    bw_buffer_append(&text, "text", 4);
    BW_TRY(bw_give_text(&text, NULL, &given, &length));
    assert_int_equal(length, 4);
    free(given);
    return NULL;
}

static void test_a_text_is_given_completely_or_not_at_all(void **state)
{
    fail_each(give_text, NULL, 0);
}

/* Without memory for its message, an error is replaced by BW_ERROR_NO_MEMORY; without memory for
 * more words, it keeps its present ones. */
static struct bw_error *describe_error(void *context)
{
    const int *kind = context;
    struct bw_error *error = *kind ? bw_error_from_errno(EIO, "%s", "reading")
                                   : bw_error_create(BW_ERROR_CORRUPT, "%s", "damaged");
    error = bw_error_prefix(error, "%s", "block");
    error = bw_error_in(error, "image");
    error = bw_error_advise(error, "%s", "try another");
    bw_error_add_hop(error, "layer", "volume", 0);
    struct bw_error *copy = bw_error_copy(error);
    bw_error_add_cause(copy, bw_error_create(BW_ERROR_CORRUPT, "cause"));
    const bool no_memory = copy->code == BW_ERROR_NO_MEMORY || error->code == BW_ERROR_NO_MEMORY;
    assert_non_null(strstr(error->message, no_memory ? "" : *kind ? "reading" : "damaged"));
    bw_error_free(copy);
    bw_error_free(error);
    return no_memory ? bw_error_no_memory() : NULL;
}

static void test_an_error_survives_the_lack_of_memory_for_its_words(void **state)
{
    for (int kind = 0; kind < 2; kind++)
        fail_each(describe_error, &kind, 20);
}

static struct bw_error *fill_sets(void *context)
{
    struct bw_pair_set pairs = {0};
    struct bw_range_set ranges = {0};
    struct bw_patch patch = {0};
    struct bw_error *error = NULL;
    bool is_new;
    for (uint64_t i = 0; i < 40 && !error; i++) {
        error = bw_pair_set_insert(&pairs, i % 20, i * 1000, &is_new);
        if (!error)
            error = bw_range_set_insert(&ranges, 10 * i, 10 * i + 5);
        static const uint8_t sector[BW_PATCH_SECTOR];
        if (!error)
            error = bw_patch_write(&patch, i * BW_PATCH_PAGE, sector, sizeof sector);
    }
    if (!error)
        assert_int_equal(bw_range_set_total(&ranges), 200);
    bw_pair_set_free(&pairs);
    bw_range_set_free(&ranges);
    bw_patch_free(&patch);
    return error;
}

static void test_sets_and_patches_without_memory_fail_and_can_be_freed(void **state)
{
    fail_each(fill_sets, NULL, 0);
}

static struct bw_error *pack_records(void *context)
{
    struct bw_packed packed = {0};
    struct bw_error *error = NULL;
    for (uint32_t i = 0; i < 100 && !error; i++) {
        uint8_t *bytes;
        const uint32_t place = bw_packed_begin(&packed, 100, &bytes);
        if (place == BW_NO_RECORD ||
            (!bw_packed_has_room(&packed) && !bw_packed_enlarge(&packed))) {
            error = bw_error_no_memory();
            break;
        }
        memset(bytes, 1, 100);
        bw_packed_end(&packed, bytes + 100);
        bw_packed_index(&packed, i * 2654435761u, place);
    }
    bw_packed_free(&packed);
    return error;
}

static void test_packed_records_without_memory_fail_and_can_be_freed(void **state)
{
    fail_each(pack_records, NULL, 0);
}

static struct bw_error *hash_bytes(void *context)
{
    const enum bw_hash_algorithm *algorithm = context;
    char text[BW_HASH_TEXT];
    struct bw_hash *hash;
    BW_TRY(bw_hash_create(*algorithm, &hash));
    bw_hash_add(hash, "bytes", 5);
    bw_hash_end(hash, text);
    bw_hash_destroy(hash);
    assert_int_equal(strlen(text), bw_hash_digits(*algorithm));
    return NULL;
}

static void test_a_hash_without_memory_is_an_error(void **state)
{
    bw_hash_prepare();
    enum bw_hash_algorithm algorithms[] = {BW_HASH_SHA256, BW_HASH_XXH64};
    for (size_t i = 0; i < COUNT(algorithms); i++)
        fail_each(hash_bytes, &algorithms[i], 0);
}

static struct bw_error *start_pool(void *context)
{
    struct bw_pool *pool = bw_pool_create(2);
    bw_pool_destroy(pool);
    return pool ? NULL : bw_error_no_memory();
}

static void test_there_is_no_pool_of_workers_without_memory(void **state)
{
    fail_each(start_pool, NULL, 0);
}

/* Files and folders. */

static struct bw_error *ignore_range(void *context, uint64_t start, uint64_t length)
{
    ++*(int *)context;
    return NULL;
}

static struct bw_error *read_folder(void *context)
{
    const char *path = context;
    struct bw_folder folder;
    struct bw_folder_names names = {0};
    struct bw_folder_xattrs xattrs = {0};
    struct bw_buffer target = {0}, contents = {0};
    char file[PATH_MAX];
    int ranges = 0;
    snprintf(file, sizeof file, "%s/list", path);
    BW_TRY(bw_folder_open(path, &folder));
    struct bw_error *error = bw_folder_list(&folder, "", &names);
    if (!error)
        error = bw_folder_readlink(&folder, "link", &target);
    if (!error)
        error = bw_folder_xattrs_read(&folder, "list", &xattrs);
    if (!error)
        error = bw_buffer_read_file(&contents, file);
    if (!error)
        error = bw_bad_map_read(file, ignore_range, &ranges, NULL);
    if (!error) {
        assert_int_equal(names.offsets.count, 2);
        assert_int_equal(ranges, 2);
    }
    bw_folder_names_free(&names);
    bw_folder_xattrs_free(&xattrs);
    bw_buffer_free(&target);
    bw_buffer_free(&contents);
    bw_folder_close(&folder);
    /* The C library has none for a directory, which is an error of the system. */
    if (error && error->code == BW_ERROR_SYSTEM && strstr(error->message, strerror(ENOMEM))) {
        bw_error_free(error);
        return bw_error_no_memory();
    }
    return error;
}

static void test_a_folder_that_is_read_without_memory_is_an_error(void **state)
{
    char path[] = "/tmp/bw-memory-XXXXXX", link[64], list[64];
    assert_non_null(mkdtemp(path));
    snprintf(link, sizeof link, "%s/link", path);
    snprintf(list, sizeof list, "%s/list", path);
    assert_int_equal(symlink("target", link), 0);
    FILE *file = fopen(list, "w");
    assert_non_null(file);
    fputs("10\n20\n", file);
    fclose(file);
    if (setxattr(list, "user.name", "value", 5, 0))
        print_message("without extended attributes\n");
    fail_each(read_folder, path, 0);
    unlink(link);
    unlink(list);
    rmdir(path);
}

/* Compressed data. */

enum { PLAIN = 300 << 10 };

struct compressed {
    uint8_t bytes[PLAIN + 4096];
    size_t length;
};

static const uint8_t *plain_bytes(void)
{
    static uint8_t plain[PLAIN];
    for (size_t i = 0; i < PLAIN; i++)
        plain[i] = (uint8_t)(i * i >> 7);
    return plain;
}

static void compress_zstd(struct compressed *made, size_t length)
{
    made->length = ZSTD_compress(made->bytes, sizeof made->bytes, plain_bytes(), length, 3);
    assert_false(ZSTD_isError(made->length));
}

/* With a header of gzip, or one of zlib. */
static void compress_zlib(struct compressed *made, size_t length, bool gzip)
{
    z_stream stream = {.next_in = plain_bytes(),
                       .avail_in = (uInt)length,
                       .next_out = made->bytes,
                       .avail_out = sizeof made->bytes};
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, gzip ? 31 : 15, 8, Z_DEFAULT_STRATEGY),
                     Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    made->length = stream.total_out;
    deflateEnd(&stream);
}

static struct bw_error *unpack_file(void *context)
{
    const struct compressed *file = context;
    static uint8_t output[PLAIN + 1];
    struct bw_unpacking bytes = {.input = file->bytes, .input_length = file->length};
    struct bw_unpacker *unpacker;
    struct bw_error *error = NULL;
    size_t done = 0;
    BW_TRY(bw_unpacker_create(bw_packing_find(file->bytes, file->length), &unpacker));
    while (!error && done < PLAIN) {
        bytes.output = output + done;
        bytes.output_length = 50000;
        if (bytes.output_length > PLAIN - done)
            bytes.output_length = PLAIN - done;
        error = bw_unpack(unpacker, &bytes);
        done = (size_t)(bytes.output - output);
    }
    if (!error)
        assert_memory_equal(output, plain_bytes(), PLAIN);
    bw_unpacker_destroy(unpacker);
    return error;
}

static void
test_a_file_that_cannot_be_unpacked_for_lack_of_memory_is_not_called_damaged(void **state)
{
    static struct compressed file;
    compress_zstd(&file, PLAIN);
    fail_each(unpack_file, &file, 0);
    compress_zlib(&file, PLAIN, true);
    fail_each(unpack_file, &file, 0);
#ifdef BW_LZ4
    file.length = LZ4F_compressFrame(file.bytes, sizeof file.bytes, plain_bytes(), PLAIN, NULL);
    assert_false(LZ4F_isError(file.length));
    fail_each(unpack_file, &file, 0);
#endif
#ifdef BW_XZ
    file.length = 0;
    assert_int_equal(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, plain_bytes(), PLAIN,
                                             file.bytes, &file.length, sizeof file.bytes),
                     LZMA_OK);
    fail_each(unpack_file, &file, 0);
#endif
}

enum { EXTENT = 128 << 10 };

static struct bw_error *decompress_extent(void *context)
{
    const struct compressed *data = context;
    const unsigned compression = data->bytes[0] == 0x28 ? BW_COMPRESS_ZSTD : BW_COMPRESS_ZLIB;
    static uint8_t output[EXTENT];
    struct bw_decompressor *decompressor;
    BW_TRY(bw_decompressor_create(4096, &decompressor));
    struct bw_error *error =
        bw_decompress(decompressor, compression, false, data->bytes, data->length, output, EXTENT);
    if (!error)
        assert_memory_equal(output, plain_bytes(), EXTENT);
    bw_decompressor_destroy(decompressor);
    return error;
}

static void
test_an_extent_that_cannot_be_decompressed_for_lack_of_memory_is_not_called_damaged(void **state)
{
    static struct compressed data;
    compress_zstd(&data, EXTENT);
    fail_each(decompress_extent, &data, 0);
    compress_zlib(&data, EXTENT, false);
    fail_each(decompress_extent, &data, 0);
}

/* ondisk/ */

static struct bw_error *name_features(void *context)
{
    struct bw_error *error = bw_features_check(UINT64_C(7) << 60);
    assert_non_null(error);
    if (error->code == BW_ERROR_NO_MEMORY)
        return error;
    expect_error(error, BW_ERROR_UNSUPPORTED, "60, 61, 62");
    return NULL;
}

static void test_features_without_memory_for_their_names_are_an_error_too(void **state)
{
    fail_each(name_features, NULL, SHORTENED);
}

static struct bw_error *parse_keys(void *context)
{
    struct bw_key first, last;
    BW_TRY(bw_key_range_parse("300,INODE_ITEM,2..ORPHAN", &first, &last));
    assert_int_equal(first.objectid, 300);
    return NULL;
}

static struct bw_error *parse_tree(void *context)
{
    uint64_t id;
    struct bw_error *error = bw_tree_id_parse("nonsense", &id);
    assert_non_null(error);
    if (error->code == BW_ERROR_NO_MEMORY)
        return error;
    expect_error(error, BW_ERROR_USAGE, "unknown tree 'nonsense'");
    return NULL;
}

static void test_an_unknown_tree_is_an_error_also_without_memory_for_the_names_of_all(void **state)
{
    fail_each(parse_tree, NULL, 3); /* of the names, of the message */
}

static void test_keys_that_cannot_be_read_for_lack_of_memory_are_not_called_wrong(void **state)
{
    fail_each(parse_keys, NULL, 0);
}

static struct bw_error *check_extent(void *context)
{
    static const uint8_t bytes[3];
    const struct bw_item item = {{257, BW_EXTENT_DATA, 0}, bytes, sizeof bytes};
    const struct bw_item_rules rules = {.sectorsize = 4096, .nodesize = 16384, .owner = FS};
    struct bw_item_fault fault;
    assert_true(bw_check_item(&rules, &item, &fault));
    return fault.kind == BW_FAULT_no_memory ? bw_error_no_memory() : NULL;
}

static void
test_an_item_that_was_not_checked_for_lack_of_memory_has_a_fault_of_its_own(void **state)
{
    fail_each(check_extent, NULL, 6); /* words in front of the message */
}

/* btree/ */

/* Layers do without memory for requests that can be made one by one, at most so many times. */
enum { FOR_LAYERS = 30 };

enum { ITEMS = 60, TREE = BW_UUID_TREE };

struct bench {
    struct iw_image *image;
    struct bw_fs *fs;
    struct bw_tree tree, files;
    struct bw_adopted adopted;
    struct bw_adopter adopter;
    uint64_t file;
    size_t filled; /* places in memory that are in use before a change */
    size_t leaves; /* that can be read */
    long before;   /* blocks of memory before it was made */
};

static struct bw_key key_of(uint64_t n)
{
    return (struct bw_key){1000 + n, 1, n};
}

static struct bw_tree tree_of(const struct iw_image *image, uint64_t id)
{
    const struct iw_block *root = iw_root_block(image, id);
    return (struct bw_tree){id, {root->logical, root->generation, (uint8_t)root->level}, 0};
}

/* Answers for each node. */
static struct bw_error *find_adopted(void *context, const struct bw_tree *tree, uint64_t bytenr,
                                     const struct bw_adopted **adopted)
{
    void *memory = malloc(1);
    if (!memory)
        return bw_error_no_memory();
    free(memory);
    *adopted = context;
    return NULL;
}

/* With or without a lost node, above four leaves; none of them is found. */
static struct bench make_bench(bool damaged)
{
    struct bench bench = {.before = atomic_load(&live)};
    with_layers = true;
    bench.image = iw_create(&(struct iw_options){.nodesize = 4096});
    for (uint64_t n = 0; n < ITEMS; n++)
        iw_item(bench.image, TREE, key_of(n), "item", 4);
    iw_shape(bench.image, TREE, 3, 4, 2);
    bench.file = iw_file(bench.image, FS, TOP, "a");
    iw_write_memory(bench.image);
    if (damaged)
        iw_corrupt(bench.image, iw_block_find(bench.image, TREE, 1, 1)->logical, IW_ALL_COPIES, 0,
                   32, IW_FLIP);
    bench.leaves = ITEMS / 3 - (damaged ? 4 : 0);
    bench.tree = tree_of(bench.image, TREE);
    bench.files = tree_of(bench.image, FS);
    expect_success(open_image(bench.image, NULL, &bench.fs));
    return bench;
}

static void free_bench(struct bench *bench)
{
    bw_adopted_free(&bench->adopted);
    bw_fs_close(bench->fs);
    iw_destroy(bench->image);
    with_layers = false;
}

/* The number of blocks after opening and closing an image, minus that before: sanitizers allocate
 * some blocks without malloc(). */
static long difference;

static int open_and_close(void **state)
{
    for (int i = 0; i < 2; i++) { /* the first time, libraries allocate what they keep */
        struct bench bench = make_bench(false);
        free_bench(&bench);
        difference = atomic_load(&live) - bench.before;
    }
    return 0;
}

/* Nothing may be left of the image. */
static void close_bench(struct bench *bench)
{
    free_bench(bench);
    assert_int_equal(atomic_load(&live) - bench->before, difference);
}

static struct bw_tree_reader reader_of(struct bench *bench)
{
    struct bw_tree_reader reader = bench->fs->reader;
    bench->adopter = (struct bw_adopter){find_adopted, &bench->adopted};
    reader.adopter = &bench->adopter;
    return reader;
}

static struct bw_error *scan_tree(void *context)
{
    struct bench *bench = context;
    const struct bw_tree_reader reader = reader_of(bench);
    BW_SCOPED(bw_block_scan)
    struct bw_block_scan scan = {BW_SCAN_ALL, .adopt = true, .announce = true, .nodes = true};
    struct bw_error *lost = NULL;
    size_t leaves = 0;
    bw_block_scan_begin(&scan, &reader, &bench->tree);
    while (bw_block_scan_next(&scan)) {
        leaves += scan.step == BW_SCAN_LEAF;
        if (scan.step == BW_SCAN_LOST && scan.error->code == BW_ERROR_NO_MEMORY) {
            bw_error_free(lost);
            lost = bw_error_no_memory();
        }
    }
    struct bw_error *error = bw_block_scan_end(&scan);
    bw_error_free(lost);
    assert_null(lost); /* memory that runs out ends the scan: it loses nothing */
    if (!error)
        assert_int_equal(leaves, bench->leaves);
    return error;
}

static struct bw_error *read_range_of_tree(void *context)
{
    struct bench *bench = context;
    const struct bw_tree_reader reader = reader_of(bench);
    struct bw_item_range range;
    size_t items = 0, losses = 0;
    bw_item_range_begin(&range, &reader, &bench->tree, key_of(0), key_of(ITEMS));
    while (bw_item_range_next(&range)) {
        items += !range.error;
        losses += range.error != NULL;
        assert_true(!range.error || range.error->code != BW_ERROR_NO_MEMORY);
    }
    BW_TRY(bw_item_range_end(&range, NULL));
    assert_int_equal(items, 3 * bench->leaves);
    assert_int_equal(losses > 0, bench->leaves < ITEMS / 3);
    return NULL;
}

static void test_memory_that_runs_out_ends_the_reading_of_a_tree_and_loses_no_block(void **state)
{
    for (int damaged = 0; damaged < 2; damaged++) {
        struct bench bench = make_bench(damaged);
        fail_each(scan_tree, &bench, FOR_LAYERS);
        fail_each(read_range_of_tree, &bench, FOR_LAYERS);
        close_bench(&bench);
    }
}

static struct bw_error *change_tree(void *context)
{
    struct bench *bench = context;
    struct bw_block_memory memory = {.nodesize = 4096};
    struct bw_tree_editor editor;
    struct bw_error *error =
        bw_editor_create(&editor, &bench->fs->reader, &memory, &bench->tree, 77);
    static const uint8_t bytes[1500];
    const struct bw_key first = key_of(0);
    for (uint64_t n = 0; n < 30 && !error; n++) {
        const struct bw_key key = {2000 + n, 1, 0};
        struct bw_item item;
        error = bw_edit_put(&editor, &key, bytes, sizeof bytes);
        if (error) {
            chosen = 0; /* the tree has not changed */
            const struct bw_key last = {1999 + n, 1, 0};
            expect_success(bw_edit_find(&editor, n ? &last : &first, &item));
            assert_non_null(item.data);
            expect_success(bw_edit_find(&editor, &key, &item));
            assert_null(item.data);
        }
    }
    bw_editor_destroy(&editor);
    bw_memory_free(&memory);
    return error;
}

static struct bw_error *make_tree(void *context)
{
    struct bench *bench = context;
    struct bw_block_memory memory = {.nodesize = 4096};
    struct bw_tree_editor editor;
    const struct bw_key key = key_of(1), end = key_of(2);
    for (size_t i = 0; i < bench->filled; i++) {
        struct bw_error *full = bw_memory_blocks_push(&memory.blocks, NULL);
        if (full)
            return full;
    }
    struct bw_error *error = bw_editor_create_empty(&editor, &bench->fs->reader, &memory, TREE, 77);
    if (!error)
        error = bw_edit_put(&editor, &key, "item", 4);
    if (!error)
        error = bw_edit_surround(&memory, &editor.tree, &key, &end, false);
    bw_editor_destroy(&editor);
    bw_memory_free(&memory);
    return error;
}

static struct bw_error *change_names(void *context)
{
    struct bench *bench = context;
    struct bw_block_memory memory = {.nodesize = 4096};
    struct bw_tree_editor editor;
    struct bw_error *error =
        bw_editor_create(&editor, &bench->fs->reader, &memory, &bench->files, 77);
    for (uint64_t n = 0; n < 60 && !error; n++) {
        char name[101];
        snprintf(name, sizeof name, "%0100" PRIu64, n);
        const struct bw_link link = {TOP, bench->file, 10 + n, (const uint8_t *)name, 100};
        error = bw_edit_link(&editor, &link, true);
        if (!error && n % 7 == 0)
            error = bw_edit_unlink(&editor, &link);
    }
    bw_editor_destroy(&editor);
    bw_memory_free(&memory);
    return error;
}

static void test_a_change_for_which_memory_runs_out_leaves_the_tree_as_it_was(void **state)
{
    struct bench bench = make_bench(false);
    fail_each(change_tree, &bench, 0);
    for (bench.filled = 9; bench.filled < 16; bench.filled++) /* 16 fit without growing */
        fail_each(make_tree, &bench, 0);
    fail_each(change_names, &bench, 0);
    close_bench(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_text_whose_memory_runs_out_says_so),
        cmocka_unit_test(test_a_text_that_does_not_fit_is_dropped_as_a_whole),
        cmocka_unit_test(test_a_text_is_given_completely_or_not_at_all),
        cmocka_unit_test(test_an_error_survives_the_lack_of_memory_for_its_words),
        cmocka_unit_test(test_sets_and_patches_without_memory_fail_and_can_be_freed),
        cmocka_unit_test(test_packed_records_without_memory_fail_and_can_be_freed),
        cmocka_unit_test(test_a_hash_without_memory_is_an_error),
        cmocka_unit_test(test_there_is_no_pool_of_workers_without_memory),
        cmocka_unit_test(test_a_folder_that_is_read_without_memory_is_an_error),
        cmocka_unit_test(
            test_a_file_that_cannot_be_unpacked_for_lack_of_memory_is_not_called_damaged),
        cmocka_unit_test(
            test_an_extent_that_cannot_be_decompressed_for_lack_of_memory_is_not_called_damaged),
        cmocka_unit_test(test_features_without_memory_for_their_names_are_an_error_too),
        cmocka_unit_test(test_an_unknown_tree_is_an_error_also_without_memory_for_the_names_of_all),
        cmocka_unit_test(test_keys_that_cannot_be_read_for_lack_of_memory_are_not_called_wrong),
        cmocka_unit_test(
            test_an_item_that_was_not_checked_for_lack_of_memory_has_a_fault_of_its_own),
        cmocka_unit_test(test_memory_that_runs_out_ends_the_reading_of_a_tree_and_loses_no_block),
        cmocka_unit_test(test_a_change_for_which_memory_runs_out_leaves_the_tree_as_it_was),
    };
    return cmocka_run_group_tests(tests, open_and_close, NULL);
}
