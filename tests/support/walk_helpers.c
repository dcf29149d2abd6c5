/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Collecting what opening and walking say, and comparing it. */
#include "walk_helpers.h"

#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

/* Messages. */

static void log_report(void *context, enum bw_severity severity, const struct bw_error *error)
{
    static const char *const names[] = {"note", "warning", "damage"};
    struct report_log *log = context;
    log->counts[severity]++;
    if (log->text.length)
        log->text.length--; /* the NUL */
    bw_buffer_format(&log->text, "%s %s %s\n", names[severity],
                     error->way ? error->way->layer : "-", error->message);
    bw_buffer_append_byte(&log->text, '\0');
}

struct bw_reporter report_log_reporter(struct report_log *log)
{
    return (struct bw_reporter){log ? log_report : NULL, log};
}

size_t report_log_count(const struct report_log *log, const char *text)
{
    size_t count = 0;
    const char *at = log->text.length ? log->text.data : "";
    for (; (at = strstr(at, text)); at += strlen(text))
        count++;
    return count;
}

void report_log_free(struct report_log *log)
{
    bw_buffer_free(&log->text);
    *log = (struct report_log){0};
}

void expect_error(struct bw_error *error, enum bw_error_code code, const char *text)
{
    if (!error)
        fail_msg("an error was expected (%s)", text ? text : "any");
    if (error->code != code || (text && !strstr(error->message, text)))
        fail_msg("error %d \"%s\", expected %d \"%s\"", error->code, error->message, code,
                 text ? text : "");
    bw_error_free(error);
}

void expect_success(struct bw_error *error)
{
    if (error)
        fail_msg("error %d: %s", error->code, error->message);
}

/* Opening. */

struct bw_error *open_paths(const char *const *paths, size_t count, int superblock_copy,
                            struct report_log *log, struct bw_fs **fs)
{
    const struct bw_fs_options options = {.struct_size = sizeof(struct bw_fs_options),
                                          .paths = paths,
                                          .path_count = count,
                                          .superblock_copy = superblock_copy,
                                          .reporter = report_log_reporter(log)};
    *fs = NULL;
    return bw_fs_open(&options, fs);
}

struct bw_error *open_image(const struct iw_image *image, struct report_log *log, struct bw_fs **fs)
{
    const char *paths[IW_MAX_DEVICES];
    return open_paths(paths, iw_paths_of(image, paths), BW_ANY_SUPERBLOCK_COPY, log, fs);
}

/* Images that are opened. */

struct fixture make_fixture(void)
{
    return (struct fixture){.image = iw_create(&(struct iw_options){.nodesize = 4096})};
}

void open_fixture(struct fixture *fixture)
{
    iw_write_memory(fixture->image);
    open_written(fixture);
}

void open_written(struct fixture *fixture)
{
    expect_success(open_image(fixture->image, &fixture->log, &fixture->fs));
    fixture->top = bw_subvolume_by_id(fixture->fs, FS);
}

void close_fixture(struct fixture *fixture)
{
    bw_fs_close(fixture->fs);
    report_log_free(&fixture->log);
    iw_destroy(fixture->image);
}

/* Graphs that are changed. */

static void add_change(struct graph_changes *changes, enum bw_graph_edit_kind kind,
                       const char *format, va_list arguments)
{
    size_t at = changes->count++, size = sizeof changes->changes[0].text;
    if (at >= COUNT(changes->changes) ||
        (size_t)vsnprintf(changes->changes[at].text, size, format, arguments) >= size)
        abort(); /* a mistake of the test */
    changes->changes[at].kind = kind;
}

void insert_layer(struct graph_changes *changes, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_change(changes, BW_EDIT_INSERT, format, arguments);
    va_end(arguments);
}

void set_option(struct graph_changes *changes, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_change(changes, BW_EDIT_OPTION, format, arguments);
    va_end(arguments);
}

struct bw_error *open_changed(const char *const *paths, size_t count,
                              const struct graph_changes *changes, struct report_log *log,
                              struct bw_fs **fs)
{
    struct bw_graph_edit edits[COUNT(changes->changes)];
    size_t edit_count = changes ? changes->count : 0;
    for (size_t i = 0; i < edit_count; i++)
        edits[i] = (struct bw_graph_edit){changes->changes[i].kind, changes->changes[i].text};
    const struct bw_fs_options options = {
        .struct_size = sizeof(struct bw_fs_options),
        .paths = paths,
        .path_count = count,
        .superblock_copy = BW_ANY_SUPERBLOCK_COPY,
        .graph = &(struct bw_graph_options){.struct_size = sizeof(struct bw_graph_options),
                                            .edits = edits,
                                            .edit_count = edit_count},
        .reporter = report_log_reporter(log)};
    *fs = NULL;
    return bw_fs_open(&options, fs);
}

/* Walking. */

static struct bw_error *collect(void *context, const char *paths, size_t length)
{
    struct walk_result *result = context;
    bw_buffer_append(&result->bytes, paths, length);
    return NULL;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_paths(struct walk_result *result)
{
    for (size_t i = 0; i < result->bytes.length; i++)
        result->count += result->bytes.data[i] == '\0';
    result->paths = calloc(result->count + 1, sizeof *result->paths);
    char *next = result->bytes.data;
    for (size_t i = 0; i < result->count; i++, next += strlen(next) + 1)
        result->paths[i] = next;
    if (result->count)
        qsort(result->paths, result->count, sizeof *result->paths, by_bytes);
}

struct walk_result walk_fs(struct bw_fs *fs, const struct bw_walk_options *options)
{
    struct walk_result result = {0};
    struct bw_walk_options with_consumer = *options;
    with_consumer.struct_size = sizeof with_consumer;
    with_consumer.consume = collect;
    with_consumer.context = &result;
    result.error = bw_walk(fs, &with_consumer, &result.summary);
    sort_paths(&result);
    return result;
}

void walk_result_free(struct walk_result *result)
{
    bw_error_free(result->error);
    bw_buffer_free(&result->bytes);
    free(result->paths);
    *result = (struct walk_result){0};
}

/* How many of the sorted strings of `a` have no partner in `b`. */
static size_t count_alone(char **a, size_t a_count, char **b, size_t b_count, const char **example)
{
    size_t alone = 0;
    for (size_t i = 0, j = 0; i < a_count; i++) {
        while (j < b_count && strcmp(b[j], a[i]) < 0)
            j++;
        if (j < b_count && strcmp(b[j], a[i]) == 0) {
            j++;
        } else {
            alone++;
            *example = a[i];
        }
    }
    return alone;
}

size_t count_foreign(const struct walk_result *result, const struct iw_paths *expected,
                     const char **example)
{
    return count_alone(result->paths, result->count, expected->paths, expected->count, example);
}

size_t count_missing(const struct walk_result *result, const struct iw_paths *expected,
                     const char **example)
{
    return count_alone(expected->paths, expected->count, result->paths, result->count, example);
}

void expect_paths(const struct iw_image *image, const struct walk_result *result)
{
    struct iw_paths expected = iw_expected_paths(image);
    const char *example = "";
    size_t foreign = count_foreign(result, &expected, &example);
    if (foreign)
        fail_msg("%zu of %zu paths are not expected, as \"%s\"", foreign, result->count, example);
    size_t missing = count_missing(result, &expected, &example);
    if (missing)
        fail_msg("%zu of %zu paths are missing, as \"%s\"", missing, expected.count, example);
    assert_int_equal(result->summary.files, expected.count);
    iw_paths_free(&expected);
}

void check_walk_of(const struct iw_image *image, const char *const *paths, size_t count,
                   struct report_log *log)
{
    struct report_log own = {0}, *used = log ? log : &own;
    struct bw_fs *fs;
    expect_success(open_paths(paths, count, BW_ANY_SUPERBLOCK_COPY, used, &fs));
    struct walk_result result = walk_fs(fs, &(struct bw_walk_options){.threads = 1});
    expect_success(result.error);
    expect_paths(image, &result);
    if (used->counts[BW_DAMAGE] || result.summary.lost_blocks)
        fail_msg("damage was reported: %s", used->text.data);
    walk_result_free(&result);
    bw_fs_close(fs);
    report_log_free(&own);
}

void check_walk(const struct iw_image *image, struct report_log *log)
{
    const char *paths[IW_MAX_DEVICES];
    check_walk_of(image, paths, iw_paths_of(image, paths), log);
}

/* Content. */

static void make_files(struct iw_image *image, uint64_t subvolume, uint64_t directory,
                       const char *prefix, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s %u", prefix, i);
        iw_file(image, subvolume, directory, name);
    }
}

void fill_depths(struct iw_image *image, unsigned depths, unsigned files)
{
    uint64_t directory = TOP;
    for (unsigned depth = 0; depth < depths; depth++) {
        for (unsigned i = 0; i < files; i++) {
            char name[32];
            snprintf(name, sizeof name, "file %u-%u", depth, i);
            iw_file(image, FS, directory, name);
        }
        directory = iw_directory(image, FS, directory, "directory");
    }
}

void fill_sample(struct iw_image *image)
{
    uint64_t low = iw_directory(image, FS, TOP, "low");
    make_files(image, FS, low, "in low", 6);
    uint64_t inner = iw_directory(image, FS, low, "inner");
    make_files(image, FS, inner, "in inner", 6);
    uint64_t linked = iw_file(image, FS, TOP, "linked");
    iw_link(image, FS, linked, inner, "hard");
    iw_link(image, FS, linked, TOP, "second");
    iw_link_extended(image, FS, linked, low, "extended");
    iw_symlink(image, FS, TOP, "symlink", "linked");
    iw_make(image, FS, TOP, "fifo", BW_FILE_FIFO);
    iw_directory(image, FS, TOP, "empty");
    iw_next_inode(image, FS, 5000);
    uint64_t high = iw_directory(image, FS, TOP, "high");
    make_files(image, FS, high, "in high", 4);
    iw_move(image, FS, low, TOP, "low", high, "moved");
    iw_subvolume(image, 256, FS, high, "nest", 0);
    make_files(image, 256, iw_directory(image, 256, TOP, "directory"), "in nest", 5);
    iw_subvolume(image, 257, 256, TOP, "inner", 0);
    make_files(image, 257, TOP, "in inner subvolume", 3);
    iw_snapshot(image, 300, 256, FS, TOP, "snapshot", BW_ROOT_READ_ONLY);
    make_files(image, 256, TOP, "after the snapshot", 2);
    iw_alias(image, 301, 300, 257, TOP, "alias");
    iw_subvolume(image, 302, FS, TOP, "doomed", 0);
    make_files(image, 302, TOP, "gone", 2);
    iw_delete_subvolume(image, 302);
}

struct iw_image *sample_image(const struct iw_options *options)
{
    struct iw_image *image = iw_create(options);
    fill_sample(image);
    iw_write_memory(image);
    return image;
}

struct iw_image *spread_image(struct iw_options options)
{
    static const uint64_t devids[] = {4, 2, 9, 1, 77, 3, 5};
    options.devids = devids;
    options.nodesize = 8192;
    options.items_per_leaf = options.pointers_per_node = 6;
    options.block_step = 5;
    options.chunk_gap = options.device_extent_length = 1 << 20;
    return sample_image(&options);
}

/* Limits. */

size_t sweep_step(size_t step)
{
    return getenv("WORST") ? 1 : step;
}

unsigned variant_step(void)
{
    const char *text = getenv("SWEEP");
    const int step = text ? atoi(text) : 1;
    return step > 1 ? (unsigned)step : 1; /* scripts ignore an empty one, too */
}

void limit_seconds(unsigned seconds)
{
    const char *slowness = getenv("SLOWNESS");
    seconds *= slowness ? (unsigned)atoi(slowness) : 1;
    const struct itimerval busy = {.it_value.tv_sec = seconds};
    setitimer(ITIMER_PROF, &busy, NULL);
    alarm(10 * seconds);
}

int limit_time(void **state)
{
    (void)state;
    limit_seconds(300);
    return 0;
}

int limit_resources(void **state)
{
    limit_time(state);
    const struct rlimit limit = {UINT64_C(2) << 30, UINT64_C(2) << 30};
    return ADDRESS_SPACE_LIMITED ? setrlimit(RLIMIT_AS, &limit) : 0;
}
