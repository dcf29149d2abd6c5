/* SPDX-License-Identifier: GPL-2.0-or-later */
/* layout/lvm: physical volumes made byte by byte with good and bad metadata.
 * tests/command/containers.sh reads volumes of all types. */
#include <zlib.h>

#include "base/cleanup.h"
#include "base/endian.h"
#include "support/fake_layer.h"
#include "xlators/layout/containers.h"

enum {
    MEMBERS = 2,
    EXTENT = 8 << 10,
    FIRST = 64 << 10, /* of the extents */
    SIZE = FIRST + 8 * EXTENT,
    AREA = 4096, /* of the metadata */
    RING = FIRST - AREA,
};

struct bench {
    struct fake_layer fakes[MEMBERS];
    uint8_t bytes[MEMBERS][SIZE];
    struct report_log log;
    struct bw_graph *graph;
    struct bw_xlator *members[MEMBERS], *top;
};

static uint32_t checksum_of(const void *bytes, size_t length)
{
    return ~(uint32_t)crc32(~UINT32_C(0xf597a6cf) & UINT32_MAX, bytes, (uInt)length);
}

static void put_label(uint8_t *bytes, char letter, size_t ring)
{
    uint8_t *label = bytes + 512, *at = label + 32;
    memcpy(label, "LABELONE", 8);
    put_le64(label + 8, 1);
    put_le32(label + 20, 32);
    memcpy(label + 24, "LVM2 001", 8);
    memset(at, letter, 32);
    put_le64(at + 32, SIZE);
    put_le64(at + 40, FIRST); /* the only area with data; the list ends with zeros */
    put_le64(at + 72, AREA);
    put_le64(at + 80, ring);
    put_le32(label + 16, checksum_of(label + 20, 492));
}

/* The text begins near the end of the ring, and continues at its beginning. */
static void put_text_in(uint8_t *bytes, size_t ring, const char *text)
{
    uint8_t *area = bytes + AREA;
    const size_t length = strlen(text) + 1, first = length / 2, offset = ring - first;
    memcpy(area + 4, " LVM2 x[5A%r0N*>", 16);
    put_le32(area + 20, 1);
    put_le64(area + 24, AREA);
    put_le64(area + 32, ring);
    put_le64(area + 40, offset);
    put_le64(area + 48, length);
    put_le32(area + 56, checksum_of(text, length));
    put_le32(area, checksum_of(area + 4, 508));
    memcpy(area + offset, text, first);
    memcpy(area + 512, text + first, length - first);
}

static void put_text(uint8_t *bytes, const char *text)
{
    put_text_in(bytes, RING, text);
}

#define GROUP(number, volumes)                                                                    \
    "# a comment\nvg {\nid = \"gggggg-gggg\"\nseqno = " number                                    \
    "\nextent_size = 16 # sectors\nphysical_volumes {\npv0 {\nid = \"aaaaaa-aaaa-aaaa-aaaa-"      \
    "aaaa-aaaa-aaaaaa\"\ndevice = \"/dev/a\"\npe_start = 128\n}\npv1 {\nid = \"bbbbbb-bbbb-bbbb-" \
    "bbbb-bbbb-bbbb-bbbbbb\"\npe_start = 128\n}\n}\nlogical_volumes {\n" volumes                  \
    "}\n}\ncontents = \"Text \\\"Format\\\"\"\n"

#define VOLUME(name, begin, count, type, rest)                                     \
    name " {\nstatus = [\"READ\", \"VISIBLE\"]\nsegment1 {\nstart_extent = " begin \
         "\nextent_count = " count "\ntype = \"" type "\"\n" rest "\n}\n}\n"

/* Two extents of the second device, and one of the first one. */
static const char linear[] =
    GROUP("3", "root {\nstatus = [\"VISIBLE\"]\nsegment1 {\nstart_extent = 0\nextent_count = 2\n"
               "type = \"striped\"\nstripes = [\"pv1\", 1]\n}\nsegment2 {\nstart_extent = 2\n"
               "extent_count = 1\ntype = \"striped\"\nstripes = [\"pv0\", 5]\n}\n}\n");

static struct bench *make_bench(const char *text)
{
    struct bench *bench = calloc(1, sizeof *bench);
    for (size_t i = 0; i < MEMBERS; i++) {
        for (size_t at = FIRST; at < SIZE; at++)
            bench->bytes[i][at] = (uint8_t)(i * 100 + (at - FIRST) / EXTENT);
        put_label(bench->bytes[i], (char)(i ? 'b' : 'a'), RING);
        put_text(bench->bytes[i], text);
    }
    return bench;
}

static struct bw_error *open_bench(struct bench *bench, unsigned members, const char *volume)
{
    size_t count = 0;
    bench->graph = fake_graph(&bench->log);
    for (unsigned i = 0; i < MEMBERS; i++) {
        if (!(members >> i & 1))
            continue;
        bench->fakes[i] = (struct fake_layer){.copies = {bench->bytes[i]}, .size = SIZE};
        bench->members[count++] = add_fake_device(bench->graph, &bench->fakes[i]);
    }
    const struct option_value options[] = {{"volume", volume}, {0}};
    const struct layer layer = {.type = "layout/lvm",
                                .name = "lvm",
                                .options = options,
                                .children = bench->members,
                                .child_count = count};
    return graph_add(bench->graph, &layer, &bench->top);
}

static void close_bench(struct bench *bench)
{
    bw_graph_destroy(bench->graph);
    report_log_free(&bench->log);
    bench->log = (struct report_log){0};
}

static void expect_extents(struct bench *bench, const uint8_t *wanted, size_t count)
{
    BW_AUTO_FREE uint8_t *buffer = malloc(count * EXTENT);
    assert_int_equal(bw_xlator_size(bench->top), count * EXTENT);
    expect_success(read_range(bench->top, 0, buffer, (uint32_t)(count * EXTENT)));
    for (size_t at = 0; at < count * EXTENT; at++)
        assert_int_equal(buffer[at], wanted[at / EXTENT]);
}

static void test_linear(void **state)
{
    uint8_t byte;
    struct bench *bench = make_bench(linear);
    expect_success(open_bench(bench, 3, "vg/root"));
    expect_extents(bench, (const uint8_t[]){101, 102, 5}, 3);
    expect_error(read_range(bench->top, 3 * EXTENT, &byte, 1), BW_ERROR_CORRUPT,
                 "the logical volume ends at");
    close_bench(bench);
    expect_error(open_bench(bench, 3, "home"), BW_ERROR_NOT_FOUND,
                 "there is no logical volume home; there are: vg/root");
    close_bench(bench);
    free(bench);
}

static void test_missing(void **state)
{
    uint8_t byte;
    struct bench *bench = make_bench(linear);
    expect_success(open_bench(bench, 2, "root"));
    expect_success(read_range(bench->top, 2 * EXTENT - 1, &byte, 1));
    assert_int_equal(byte, 102);
    expect_error(read_range(bench->top, 2 * EXTENT, &byte, 1), BW_ERROR_MISSING_DEVICE,
                 "the physical volume pv0, last seen as /dev/a of the volume group vg is missing");
    close_bench(bench);
    free(bench);
}

static void test_newest(void **state)
{
    struct bench *bench = make_bench(linear);
    put_text(bench->bytes[1],
             GROUP("4", VOLUME("root", "0", "1", "striped", "stripes = [\"pv0\", 7]")));
    expect_success(open_bench(bench, 3, "root"));
    expect_extents(bench, (const uint8_t[]){7}, 1);
    close_bench(bench);
    bench->bytes[1][AREA + 600] ^= 1; /* damaged: the other copy is used */
    expect_success(open_bench(bench, 3, "root"));
    expect_extents(bench, (const uint8_t[]){101, 102, 5}, 3);
    close_bench(bench);
    bench->bytes[0][AREA + 600] ^= 1;
    expect_error(open_bench(bench, 3, "root"), BW_ERROR_CORRUPT, "are damaged");
    close_bench(bench);
    free(bench);
}

static void test_mirror(void **state)
{
    struct bench *bench = make_bench(GROUP(
        "1", VOLUME("i0", "0", "2", "striped", "stripes = [\"pv0\", 0]")
                 VOLUME("i1", "0", "2", "striped", "stripes = [\"pv1\", 0]")
                     VOLUME("m", "0", "2", "raid1", "raids = [\"i0\", \"i0\", \"i1\", \"i1\"]")));
    expect_success(open_bench(bench, 3, "m"));
    expect_extents(bench, (const uint8_t[]){0, 1}, 2);
    bench->fakes[0].broken[0] = true;
    expect_extents(bench, (const uint8_t[]){100, 101}, 2);
    close_bench(bench);
    expect_success(open_bench(bench, 2, "m"));
    expect_extents(bench, (const uint8_t[]){100, 101}, 2);
    close_bench(bench);
    free(bench);
}

/* An image of a mirror that consists of more segments than the other one. */
static void test_mirror_in_segments(void **state)
{
    struct bench *bench = make_bench(GROUP(
        "1",
        VOLUME(
            "i0", "0", "2", "striped",
            "stripes = [\"pv0\", 0]") "i1 {\nsegment1 {\nstart_extent = 0\nextent_count = 1\ntype "
                                      "= \"striped\"\n"
                                      "stripes = [\"pv1\", 5]\n}\nsegment2 {\nstart_extent = "
                                      "1\nextent_count = 1\n"
                                      "type = \"striped\"\nstripes = [\"pv1\", 2]\n}\n}\n" VOLUME(
                                          "m", "0", "2", "raid1",
                                          "raids = [\"i0\", \"i0\", \"i1\", \"i1\"]")));
    expect_success(open_bench(bench, 3, "m"));
    expect_extents(bench, (const uint8_t[]){0, 1}, 2);
    bench->fakes[0].broken[0] = true;
    expect_extents(bench, (const uint8_t[]){105, 102}, 2);
    close_bench(bench);
    free(bench);
}

/* The state of the legs of RAID1, in an extent of a device. */
static void put_state(struct bench *bench, size_t device, uint64_t events, uint64_t failed,
                      uint64_t recovered)
{
    uint8_t *state = bench->bytes[device] + FIRST + 7 * EXTENT;
    put_le32(state, 0x64526d44);
    put_le64(state + 16, events);
    put_le64(state + 24, failed);
    put_le64(state + 32, recovered);
}

/* A leg of RAID1 that was missing for a while is not read until it is rebuilt. */
static void test_stale_leg(void **state)
{
    struct bench *bench = make_bench(GROUP(
        "1", VOLUME("i0", "0", "2", "striped", "stripes = [\"pv0\", 0]")
                 VOLUME("m0", "0", "1", "striped", "stripes = [\"pv0\", 7]")
                     VOLUME("i1", "0", "2", "striped", "stripes = [\"pv1\", 0]")
                         VOLUME("m1", "0", "1", "striped", "stripes = [\"pv1\", 7]") VOLUME(
                             "m", "0", "2", "raid1", "raids = [\"m0\", \"i0\", \"m1\", \"i1\"]")));
    put_state(bench, 0, 5, 0, UINT64_MAX);
    put_state(bench, 1, 6, 1, UINT64_MAX);
    expect_success(open_bench(bench, 3, "m"));
    expect_extents(bench, (const uint8_t[]){100, 101}, 2);
    assert_int_equal(report_log_count(&bench->log, "pv0 of the volume group vg was missing"), 1);
    bench->fakes[1].broken[0] = true;
    struct bw_request request = {.kind = BW_REQUEST_RAW, .length = 1, .buffer = &(uint8_t){0}};
    bw_wind(NULL, bench->top, &request, 1);
    expect_error(request.error, BW_ERROR_SYSTEM, "is broken");
    close_bench(bench);
    expect_success(open_bench(bench, 1, "m")); /* the only leg there is */
    expect_extents(bench, (const uint8_t[]){0, 1}, 2);
    close_bench(bench);
    put_state(bench, 0, 7, 0, EXTENT / 512); /* it is back, and half rebuilt */
    put_state(bench, 1, 7, 0, UINT64_MAX);
    expect_success(open_bench(bench, 3, "m"));
    expect_extents(bench, (const uint8_t[]){0, 101}, 2);
    close_bench(bench);
    free(bench);
}

static void expect_refusal(const char *text, enum bw_error_code code, const char *message)
{
    struct bench *bench = make_bench(text);
    expect_error(open_bench(bench, 3, "root"), code, message);
    close_bench(bench);
    free(bench);
}

#define PLAIN(name, extent) VOLUME(name, "0", "1", "striped", "stripes = [\"pv0\", " extent "]")
#define POOL(parts)         VOLUME("pool", "0", "1", "thin-pool", parts)
#define THIN(rest)          VOLUME("root", "0", "1", "thin", "thin_pool = \"pool\"\n" rest)

static void test_thin(void **state)
{
    expect_refusal(GROUP("1", VOLUME("root", "0", "1", "thin", "")), BW_ERROR_CORRUPT,
                   "impossible numbers");
    expect_refusal(GROUP("1", VOLUME("root", "0", "1", "thin", "thin_pool = \"pv0\"")),
                   BW_ERROR_CORRUPT, "the thin volume root has no pool");
    expect_refusal(GROUP("1", THIN("") PLAIN("pool", "0")), BW_ERROR_CORRUPT,
                   "the thin volume root has no pool");
    expect_refusal(GROUP("1", THIN("") POOL("pool = \"root\"")), BW_ERROR_CORRUPT,
                   "impossible numbers");
    expect_refusal(GROUP("1", THIN("") POOL("pool = \"root\"\nmetadata = \"root\"")),
                   BW_ERROR_UNSUPPORTED, "the logical volume root has the type thin");
    expect_refusal(GROUP("1", THIN("") PLAIN("meta", "0")
                                  POOL("pool = \"meta\"\nmetadata = \"meta\"\nchunk_size = 1")),
                   BW_ERROR_CORRUPT, "block 0 of the thin metadata: the checksum is wrong");
    expect_refusal(GROUP("1", THIN("external_origin = \"x\"") POOL("pool = \"root\"")),
                   BW_ERROR_CORRUPT, "impossible numbers");
}

static void test_refused(void **state)
{
    expect_refusal(GROUP("1", VOLUME("root", "0", "1", "vdo", "")), BW_ERROR_UNSUPPORTED,
                   "the logical volume root has the type vdo");
    expect_refusal(GROUP("1", VOLUME("root", "0", "1", "striped", "stripes = [\"pv0\", 0]")
                                  VOLUME("snapshot0", "0", "1", "snapshot",
                                         "origin = \"x\"\ncow_store = \"root\"")),
                   BW_ERROR_UNSUPPORTED, "read its origin vg/x,");
    expect_refusal(GROUP("1", VOLUME("root", "0", "1", "striped", "stripes = [\"root\", 0]")),
                   BW_ERROR_CORRUPT, "root contains itself");
    expect_refusal(GROUP("1", VOLUME("root", "0", "1", "striped", "stripes = [\"pv9\", 0]")),
                   BW_ERROR_CORRUPT, "there is no volume 'pv9'");
    expect_refusal(GROUP("1", VOLUME("root", "0", "99999999999999999", "striped", "")),
                   BW_ERROR_CORRUPT, "impossible numbers in root");
    expect_refusal(GROUP("1", VOLUME("root", "1", "1", "striped", "stripes = [\"pv0\", 0]")),
                   BW_ERROR_CORRUPT, "impossible numbers in root");
    expect_refusal(GROUP("1", VOLUME("root", "0", "1", "striped", "stripes = [\"pv0\"]")),
                   BW_ERROR_CORRUPT, "impossible numbers");
    expect_refusal(
        GROUP("1", VOLUME("root", "0", "1", "striped", "stripes = [\"pv0\", 0, \"pv1\", 0]")),
        BW_ERROR_CORRUPT, "impossible numbers");
    expect_refusal("vg {\nseqno = 1\nextent_size = 16\nlogical_volumes = [\"root\"]\n}\n",
                   BW_ERROR_CORRUPT, "impossible numbers in vg");
    expect_refusal("vg {\nseqno = 1\n", BW_ERROR_CORRUPT, "an open section");
    expect_refusal("vg {\nseqno = 99999999999999999999999\n}", BW_ERROR_CORRUPT, "too large");
    expect_refusal("vg {\nseqno = \"", BW_ERROR_CORRUPT, "an open string");
    expect_refusal("vg {\nseqno = [1 2]", BW_ERROR_CORRUPT, "no comma");
    expect_refusal("a{a{a{a{a{a{a{a{a{a{a{a{a{a{a{a{a{a{", BW_ERROR_CORRUPT, "no section");
    expect_refusal("a = 1\n", BW_ERROR_CORRUPT, "without a group");
}

static void expect_size(const char *volumes, const char *name, unsigned members, uint64_t size)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    bw_buffer_format(&text, GROUP("1", "%s"), volumes);
    bw_buffer_append(&text, "", 1);
    struct bench *bench = make_bench(text.data);
    expect_success(open_bench(bench, members, name));
    assert_int_equal(bw_xlator_size(bench->top), size);
    close_bench(bench);
    free(bench);
}

/* Volumes are not larger than their devices, whatever the metadata contain. */
static void test_sizes(void **state)
{
    static const char volumes[] = VOLUME("whole", "0", "3", "striped", "stripes = [\"pv1\", 5]")
        VOLUME("long", "0", "99999999999", "striped", "stripes = [\"pv1\", 6]")
            VOLUME("striped", "0", "99999999999", "striped",
                   "stripe_size = 1\nstripes = [\"pv0\", 7, \"pv0\", 6]")
                VOLUME("mirror", "0", "999999", "mirror",
                       "mirrors = [\"whole\", 1, \"long\", 0, \"striped\", 2]")
                    VOLUME("after", "0", "2", "striped", "stripes = [\"pv1\", 9]")
                        VOLUME("missing", "0", "99999", "striped",
                               "stripe_size = 16\nstripes = [\"pv0\", 7, \"pv1\", 1]");
    expect_size(volumes, "whole", 3, 3 * EXTENT);
    expect_size(volumes, "long", 3, 2 * EXTENT);
    expect_size(volumes, "striped", 3, 4 * EXTENT); /* the last half of it on one device only */
    expect_size(volumes, "mirror", 3, 2 * EXTENT);
    expect_size(volumes, "after", 3, 0);
    expect_size(volumes, "missing", 3, 14 * EXTENT);
    expect_size(volumes, "missing", 1, UINT64_C(99999) * EXTENT);
}

/* A volume in many parts, each of which is searched by its name among many. */
static struct bw_buffer many_names(size_t volumes, size_t parts)
{
    struct bw_buffer text = {0};
    bw_buffer_format(&text,
                     "vg{id=\"g\" seqno=1 extent_size=16 physical_volumes{p{id=\"%032d\" "
                     "pe_start=128}}logical_volumes{",
                     0);
    for (size_t i = 0; i < volumes; i++)
        bw_buffer_format(&text, "v%zu{}", i);
    bw_buffer_format(&text, "root{status=[\"VISIBLE\"]segment1{start_extent=0 extent_count=1 "
                            "type=\"striped\" stripe_size=8 stripes=[\"p\",0");
    for (size_t i = 0; i < parts; i++)
        bw_buffer_format(&text, ",\"v%zu\",0", volumes - 1);
    bw_buffer_format(&text, "]}}}}");
    bw_buffer_append(&text, "", 1);
    assert_false(text.failed);
    return text;
}

static void open_many(size_t volumes, size_t parts, enum bw_error_code code, const char *message)
{
    struct bench *bench = calloc(1, sizeof *bench);
    BW_AUTO_BUFFER struct bw_buffer text = many_names(volumes, parts);
    const size_t ring = text.length + (1 << 20);
    BW_AUTO_FREE uint8_t *bytes = calloc(1, AREA + ring);
    put_label(bytes, '0', ring);
    put_text_in(bytes, ring, text.data);
    bench->graph = fake_graph(&bench->log);
    bench->fakes[0] = (struct fake_layer){.copies = {bytes}, .size = AREA + ring};
    bench->members[0] = add_fake_device(bench->graph, &bench->fakes[0]);
    const struct option_value options[] = {{"volume", "root"}, {0}};
    struct bw_error *error =
        graph_add_above(bench->graph, bench->members[0], "layout/lvm", "lvm", options, &bench->top);
    if (message)
        expect_error(error, code, message);
    else
        expect_success(error);
    close_bench(bench);
    free(bench);
}

/* If each name were compared with all volumes, this would take minutes. */
static void test_many(void **state)
{
    open_many(10, 0, BW_ERROR_CORRUPT, NULL);
    open_many(60000, 1200000, BW_ERROR_CORRUPT, "the logical volume v59999 ends at 0");
    open_many(70000, 1, BW_ERROR_CORRUPT, "more than 65536 volumes");
}

/* Every volume that is listed gets a layer, which reads the text again. */
static void test_listing(void **state)
{
    for (size_t count = 3000; count <= 6000; count += 3000) {
        BW_AUTO_BUFFER struct bw_buffer text = {0};
        struct bw_strings names = {0};
        struct bench *bench = make_bench("");
        bw_buffer_format(&text, "vg{id=\"g\" seqno=1 extent_size=16 logical_volumes{");
        for (size_t i = 0; i < count; i++)
            bw_buffer_format(&text, "%zu{status=[\"VISIBLE\"]}", i);
        bw_buffer_format(&text, "}}");
        bw_buffer_append(&text, "", 1);
        const size_t ring = text.length + 4096;
        BW_AUTO_FREE uint8_t *bytes = calloc(1, AREA + ring);
        put_label(bytes, '0', ring);
        put_text_in(bytes, ring, text.data);
        bench->graph = fake_graph(&bench->log);
        bench->fakes[0] = (struct fake_layer){.copies = {bytes}, .size = AREA + ring};
        struct bw_xlator *device = add_fake_device(bench->graph, &bench->fakes[0]);
        struct bw_error *error = bw_lvm_container.list(&device, 1, &names);
        if (count == 3000)
            expect_success(error);
        else
            expect_error(error, BW_ERROR_UNSUPPORTED, "it has 6000 logical volumes, too many");
        assert_int_equal(names.count, count == 3000 ? count : 0);
        bw_strings_free_all(&names);
        close_bench(bench);
        free(bench);
    }
}
