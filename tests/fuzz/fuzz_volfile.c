/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The target for volfiles, which are parsed and checked against the built-in layers. Graphs are
 * never started, because that would open files.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/targets.h"
#include "graph/graph.h"

static const char source[] = "fuzz.vol";

static void expect_place(const struct bw_error *error)
{
    if (error->code != BW_ERROR_USAGE)
        fuzz_fail("code %d: %s", error->code, error->message);
    if (strncmp(error->message, source, sizeof source - 1) != 0)
        fuzz_fail("a refusal without a place: %s", error->message);
}

static void expect_word(const struct bw_word *word, size_t size)
{
    if (!word->text || !word->at.line || !word->at.column || word->at.line > size ||
        word->at.column > size)
        fuzz_fail("a word without text or place");
}

static void expect_good_words(const struct bw_graph *graph, size_t size)
{
    for (size_t i = 0; i < graph->layers.count; i++) {
        const struct bw_xlator *volume = graph->layers.items[i];
        expect_word(&volume->name, size);
        expect_word(&volume->type_name, size);
        for (size_t k = 0; k < volume->settings.count; k++) {
            expect_word(&volume->settings.items[k].name, size);
            expect_word(&volume->settings.items[k].value, size);
        }
        for (size_t k = 0; k < volume->children.count; k++)
            expect_word(&volume->children.items[k].name, size);
    }
}

static void check(struct bw_graph *graph)
{
    struct bw_file_set inputs = {0};
    struct bw_error *error = bw_graph_check(graph, &inputs);
    bw_file_set_free(&inputs);
    if (error)
        expect_place(error);
    bw_error_free(error);
}

void fuzz_volfile(const uint8_t *data, size_t size)
{
    struct bw_registry *registry = NULL;
    struct bw_graph *graph = NULL;
    char *text = malloc(size + 1);
    if (!text || bw_registry_open("", &registry) ||
        bw_graph_create(registry, (struct bw_reporter){0}, &graph))
        fuzz_fail("out of memory");
    if (size)
        memcpy(text, data, size);
    struct bw_error *error = bw_volfile_parse(graph, source, text, size);
    free(text); /* the graph must not need it */
    if (error) {
        expect_place(error);
    } else {
        expect_good_words(graph, size);
        check(graph);
    }
    bw_error_free(error);
    bw_graph_destroy(graph);
}
