/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The target beside the image: the bytes are a volfile, which is parsed and checked against the
 * built-in layers, and never built: that would open files.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/targets.h"
#include "graph/check.h"
#include "graph/volfile.h"
#include "xlators/classes.h"

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

static void expect_good_words(const struct bw_plan *plan, size_t size)
{
    for (size_t i = 0; i < plan->count; i++) {
        const struct bw_volume *volume = &plan->volumes[i];
        expect_word(&volume->name, size);
        expect_word(&volume->type, size);
        for (size_t k = 0; k < volume->option_count; k++) {
            expect_word(&volume->options[k].name, size);
            expect_word(&volume->options[k].value, size);
        }
        for (size_t k = 0; k < volume->child_count; k++)
            expect_word(&volume->children[k], size);
    }
}

static void check_plan(const struct bw_plan *plan)
{
    struct bw_registry *registry = NULL;
    if (bw_registry_open("", &registry))
        fuzz_fail("out of memory");
    struct bw_file_set inputs = {0};
    struct bw_error *error = bw_check_plan(plan, registry, &inputs);
    bw_file_set_free(&inputs);
    if (error)
        expect_place(error);
    bw_error_free(error);
    bw_registry_close(registry);
}

void fuzz_volfile(const uint8_t *data, size_t size)
{
    struct bw_plan plan = {0};
    char *text = malloc(size + 1);
    if (!text)
        fuzz_fail("out of memory");
    if (size)
        memcpy(text, data, size);
    struct bw_error *error = bw_volfile_parse(source, text, size, &plan);
    free(text); /* the plan must not need it */
    if (error) {
        expect_place(error);
        if (plan.volumes || plan.sources)
            fuzz_fail("a refused plan is not empty");
    } else {
        expect_good_words(&plan, size);
        check_plan(&plan);
    }
    bw_error_free(error);
    bw_plan_free(&plan);
}
