/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One round: the healthy walk, then two walks through a random graph, with one thread and with
 * several, while another thread asks for the state of all layers.
 */
#include "soak/round.h"

#include <pthread.h>
#include <stdatomic.h>

#include "soak/subject.h"

struct round {
    struct subject subject;
    struct journey journey;
    struct iw_paths expected;
    struct walk_result healthy;
    bool failed;
};

/* The results of one walk. */
struct outcome {
    struct bw_error *error; /* of opening */
    struct walk_result result;
    struct report_log log;
};

static void say_change(const struct graph_changes *changes, size_t at)
{
    fprintf(stderr, " %s '%s'",
            changes->changes[at].kind == BW_EDIT_INSERT ? "--insert" : "--xlator-option",
            changes->changes[at].text);
}

static void describe(const struct round *round)
{
    fprintf(stderr, "%s\nmissing devices: %#x; %u threads;", round->subject.about.data,
            round->journey.missing, round->journey.threads);
    for (size_t i = 0; i < round->journey.changes.count; i++)
        say_change(&round->journey.changes, i);
    fprintf(stderr, "\n");
}

static void wrong(struct round *round, const char *what, const char *example,
                  const struct outcome *outcome)
{
    describe(round);
    fprintf(stderr, "WRONG: %s%s\n%s%s\n", what, example,
            outcome->error ? outcome->error->message : "",
            outcome->log.text.length ? outcome->log.text.data : "");
    round->failed = true;
}

/* Asking for the state while others read. */

struct watcher {
    struct bw_fs *fs;
    atomic_bool stop;
    pthread_t thread;
};

static struct bw_error *swallow(void *context, const char *text, size_t length)
{
    (void)context;
    (void)text;
    (void)length;
    return NULL;
}

static void *watch(void *context)
{
    struct watcher *watcher = context;
    do
        bw_error_free(bw_fs_statedump(watcher->fs, swallow, NULL));
    while (!atomic_load(&watcher->stop));
    return NULL;
}

static struct walk_result walk_watched(struct bw_fs *fs, unsigned threads)
{
    struct watcher watcher = {.fs = fs};
    bool watched = threads > 1 && !pthread_create(&watcher.thread, NULL, watch, &watcher);
    struct walk_result result = walk_fs(fs, &(struct bw_walk_options){.threads = threads});
    atomic_store(&watcher.stop, true);
    if (watched)
        pthread_join(watcher.thread, NULL);
    return result;
}

static struct outcome walk(const struct round *round, unsigned threads)
{
    const char *paths[IW_MAX_DEVICES];
    size_t count = 0;
    struct outcome outcome = {0};
    struct bw_fs *fs;
    for (unsigned i = 0; i < iw_device_count(round->subject.image); i++)
        if (!(round->journey.missing >> i & 1))
            paths[count++] = iw_path(round->subject.image, i);
    outcome.error = open_changed(paths, count, &round->journey.changes, &outcome.log, &fs);
    if (!outcome.error)
        outcome.result = walk_watched(fs, threads);
    bw_fs_close(fs);
    return outcome;
}

static void free_outcome(struct outcome *outcome)
{
    bw_error_free(outcome->error);
    walk_result_free(&outcome->result);
    report_log_free(&outcome->log);
}

/* Checks. */

static bool same_bytes(const struct walk_result *a, const struct walk_result *b)
{
    return a->bytes.length == b->bytes.length &&
           (!a->bytes.length || memcmp(a->bytes.data, b->bytes.data, a->bytes.length) == 0);
}

static void check_form(struct round *round, const struct outcome *outcome)
{
    for (size_t i = 0; i < outcome->result.count; i++) {
        const char *path = outcome->result.paths[i];
        if (path[0] != '/' || strstr(path, "//") || path[strlen(path) - 1] == '/')
            wrong(round, "no absolute path: ", path, outcome);
    }
    if (outcome->result.summary.files != outcome->result.count)
        wrong(round, "the summary counts other files", "", outcome);
}

static void check_no_harm(struct round *round, const struct outcome *outcome)
{
    if (outcome->error)
        wrong(round, "it does not open", "", outcome);
    else if (!same_bytes(&outcome->result, &round->healthy))
        wrong(round, "the listing is not the healthy one", "", outcome);
    else if (outcome->log.counts[BW_DAMAGE] || outcome->result.summary.lost_blocks)
        wrong(round, "damage is reported", "", outcome);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static const char *find_foreign(const struct walk_result *result, const struct iw_paths *expected)
{
    for (size_t i = 0; i < result->count; i++)
        if (!expected->count || !bsearch(&result->paths[i], expected->paths, expected->count,
                                         sizeof *expected->paths, by_bytes))
            return result->paths[i];
    return NULL;
}

static const char *find_twice(const struct walk_result *result)
{
    for (size_t i = 1; i < result->count; i++)
        if (strcmp(result->paths[i - 1], result->paths[i]) == 0)
            return result->paths[i];
    return NULL;
}

static void check_losses(struct round *round, const struct outcome *outcome)
{
    const char *foreign = find_foreign(&outcome->result, &round->expected);
    const char *twice = find_twice(&outcome->result), *missing = "";
    if (outcome->error)
        return;
    if (foreign)
        wrong(round, "a path that does not exist: ", foreign, outcome);
    /* A block that was read before it is lost: what it holds may be both listed and recovered. */
    if (twice && !round->journey.by_order)
        wrong(round, "a path comes twice: ", twice, outcome);
    if (count_missing(&outcome->result, &round->expected, &missing) &&
        !outcome->log.counts[BW_DAMAGE])
        wrong(round, "paths are missing without a message, as ", missing, outcome);
}

static void check(struct round *round, const struct outcome *outcome)
{
    if (outcome->result.error)
        wrong(round, "the walk failed: ", outcome->result.error->message, outcome);
    check_form(round, outcome);
    if (round->journey.harm == NO_HARM)
        check_no_harm(round, outcome);
    else if (round->journey.harm == LOSSES || !round->journey.any_lies)
        check_losses(round, outcome);
}

/* Nobody may notice how many threads there are. */
static void compare(struct round *round, const struct outcome *one, const struct outcome *many)
{
    if (round->journey.by_order)
        return;
    if (!one->error != !many->error)
        wrong(round, "it opens only sometimes", "", one->error ? one : many);
    if (!same_bytes(&one->result, &many->result))
        wrong(round, "the listing depends on the number of threads", "", many);
    if (one->result.summary.lost_blocks != many->result.summary.lost_blocks ||
        one->log.counts[BW_DAMAGE] != many->log.counts[BW_DAMAGE])
        wrong(round, "damage depends on the number of threads", "", many);
}

static void check_healthy(struct round *round)
{
    struct outcome outcome = walk(round, 1);
    const char *example = "";
    if (outcome.error || outcome.log.text.length)
        wrong(round, "the image is not healthy", "", &outcome);
    else if (count_foreign(&outcome.result, &round->expected, &example) ||
             count_missing(&outcome.result, &round->expected, &example))
        wrong(round, "the healthy listing is not right: ", example, &outcome);
    round->healthy = outcome.result;
    outcome.result = (struct walk_result){0};
    free_outcome(&outcome);
}

bool run_round(uint64_t seed, bool verbose)
{
    struct dice dice = {seed};
    struct round round = {.subject = make_subject(&dice)};
    round.expected = iw_expected_paths(round.subject.image);
    check_healthy(&round);
    round.journey = make_journey(&round.subject, &dice);
    if (verbose)
        describe(&round);
    struct outcome one = walk(&round, 1), many = walk(&round, round.journey.threads);
    check(&round, &one);
    check(&round, &many);
    compare(&round, &one, &many);
    if (verbose)
        fprintf(stderr, "%zu of %zu paths; %zu notes, %zu warnings, %zu damages%s%s\n",
                one.result.count, round.expected.count, one.log.counts[BW_NOTE],
                one.log.counts[BW_WARNING], one.log.counts[BW_DAMAGE], one.error ? "; " : "",
                one.error ? one.error->message : "");
    free_outcome(&one);
    free_outcome(&many);
    walk_result_free(&round.healthy);
    iw_paths_free(&round.expected);
    free_subject(&round.subject);
    return !round.failed;
}
