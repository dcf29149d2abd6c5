/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/owners/node_runs.c: a child is reported once for a run of nodes, with all subvolumes that
 * reach them. */
#include "owners/node_runs.h"

#include "ondisk/disk.h"
#include "support/walk_helpers.h"

enum { NODESIZE = 4096, NEWEST = 100 };

struct bench {
    struct bw_root_sets sets;
    pthread_mutex_t lock;
    struct bw_buffer told; /* "CHILD SUBVOLUME..., " */
};

/* The child "!" is not shared. */
static bool find(void *context, struct bw_run_child *child)
{
    return child->bytenr != '!';
}

static void reach(void *context, const struct bw_run_child *child, unsigned level, uint32_t set)
{
    struct bench *bench = context;
    struct bw_root_range run = {0};
    assert_int_equal(level, 0);
    assert_int_equal(child->value, NEWEST - 7);
    bw_buffer_format(&bench->told, "%c", (char)child->bytenr);
    while (bw_root_set_next(&bench->sets, set, &run))
        bw_buffer_format(&bench->told, run.end - run.first > 1 ? " %u-%u" : " %u", run.first,
                         run.end - 1);
    bw_buffer_append(&bench->told, ", ", 2);
}

/* A node of level 1 that begins with a key, and has a child for each letter. */
static void take(struct bw_node_runs *runs, uint64_t key, const char *children, uint32_t begin,
                 uint32_t set, const char *alone)
{
    uint8_t block[NODESIZE] = {0};
    bool are_alone[8] = {false};
    struct bw_disk_header *header = (void *)block;
    struct bw_disk_key_pointer *pointers = (void *)(block + sizeof *header);
    header->level = 1;
    header->item_count = bw_put32((uint32_t)strlen(children));
    for (size_t i = 0; children[i]; i++)
        pointers[i] = (struct bw_disk_key_pointer){.key.objectid = bw_put64(key + i),
                                                   .bytenr = bw_put64((uint8_t)children[i]),
                                                   .generation = bw_put64(7)};
    const struct bw_node node = bw_node_view(block, NODESIZE);
    bw_node_runs_add(runs, &node, begin, NEWEST, set, are_alone);
    for (size_t i = 0; children[i]; i++)
        assert_int_equal(are_alone[i], strchr(alone, children[i]) != NULL);
}

static struct bw_node_runs *begin(struct bench *bench, struct bw_run_receiver *receiver)
{
    pthread_mutex_init(&bench->lock, NULL);
    assert_true(bw_root_sets_init(&bench->sets, 3000));
    *receiver = (struct bw_run_receiver){&bench->sets, &bench->lock, find, reach, bench};
    struct bw_node_runs *runs = bw_node_runs_create(receiver);
    assert_non_null(runs);
    return runs;
}

static void end(struct bench *bench, struct bw_node_runs *runs, const char *told)
{
    bw_node_runs_end(runs);
    bw_node_runs_end(runs); /* nothing is reported twice */
    assert_string_equal(bw_buffer_text(&bench->told), told);
    bw_node_runs_destroy(runs);
    bw_buffer_free(&bench->told);
    bw_root_sets_free(&bench->sets);
    pthread_mutex_destroy(&bench->lock);
}

/* Two nodes in many versions, one node after the other. */
static void test_versions(void **state)
{
    struct bench bench = {0};
    struct bw_run_receiver receiver;
    struct bw_node_runs *runs = begin(&bench, &receiver);
    uint32_t roots[8];
    for (uint32_t i = 0; i < COUNT(roots); i++)
        roots[i] = bw_root_set_of(&bench.sets, i * 30);
    take(runs, 1, "abc", 0, roots[0], "");
    take(runs, 1, "abd", 0, roots[1], "");
    take(runs, 1, "abd", 0, bw_root_set_union(&bench.sets, roots[3], roots[7]), "");
    take(runs, 1, "a", 0, roots[5], "");
    take(runs, 1, "ab", 1, roots[6], "");
    take(runs, 9, "xy!", 0, roots[2], "!");
    take(runs, 9, "xz!", 0, roots[4], "!");
    end(&bench, runs,
        "c 0, b 0 30 90 210, d 30 90 210, a 0 30 90 150 210, b 180, y 60, x 60 120, z 120, ");
}

/* Another node ends all runs. */
static void test_nodes_in_turn(void **state)
{
    struct bench bench = {0};
    struct bw_run_receiver receiver;
    struct bw_node_runs *runs = begin(&bench, &receiver);
    for (uint32_t i = 0; i < 4; i++)
        take(runs, 10 * (i % 2), i % 2 ? "b" : "a", 0, bw_root_set_of(&bench.sets, i), "");
    end(&bench, runs, "a 0, b 1, a 2, b 3, ");
}

/* More versions of a node than are kept, most of snapshots in a row. */
static void test_many_versions(void **state)
{
    struct bench bench = {0};
    struct bw_run_receiver receiver;
    struct bw_node_runs *runs = begin(&bench, &receiver);
    for (uint32_t i = 0; i < 2500; i++)
        if (i != 2000)
            take(runs, 1, i == 2400 ? "ac" : "ab", 0, bw_root_set_of(&bench.sets, i), "");
    end(&bench, runs,
        "a 0-1023, b 0-1023, a 1024-1999 2001-2048, b 1024-1999 2001-2048, b 2049-2399, c 2400, "
        "a 2049-2499, b 2401-2499, ");
}
