/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The target for lists of files: the entries have paths that ascend, and facts that are complete.
 */
#include <stdlib.h>
#include <string.h>

#include "base/compare.h"
#include "diff/entries.h"
#include "fuzz/targets.h"

static void expect_good_path(const struct bw_side_entry *entry)
{
    const char *path = entry->path;
    if (strlen(path) != entry->path_length || (*path && (*path != '/' || !path[1])))
        fuzz_fail("a path without a '/' before it: '%s'", path);
    for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
        const size_t length = strcspn(slash + 1, "/");
        if (!length || strncmp(slash + 1, ".", length) == 0 ||
            strncmp(slash + 1, "..", length) == 0)
            fuzz_fail("a name that is none in '%s'", path);
    }
}

static void expect_good_facts(const struct bw_side_entry *entry)
{
    const struct bw_diff_entry *facts = &entry->facts;
    if (!facts->type || facts->mode > 07777 || facts->mtime.tv_nsec > 999999999)
        fuzz_fail("impossible facts of '%s'", entry->path);
    if (facts->known & BW_KNOWS_HASH && (!facts->hash || !entry->algorithms))
        fuzz_fail("'%s' has no hash", entry->path);
    if (facts->known & BW_KNOWS_TARGET && strlen(facts->target) != facts->target_length)
        fuzz_fail("'%s' has no target", entry->path);
}

void fuzz_list(const uint8_t *data, size_t size)
{
    struct bw_list *list;
    struct bw_entries *side;
    char *before = NULL;
    bw_list_detect(data, size);
    struct bw_error *error = bw_list_open(data, size, &list);
    if (error && (error->code != BW_ERROR_USAGE || strncmp(error->message, "line ", 5) != 0))
        fuzz_fail("a refusal without a line: %s", error->message);
    bw_error_free(error);
    if (error)
        return;
    if (bw_entries_open_list(list, &side))
        fuzz_fail("out of memory");
    for (size_t count = 0; !side->class->next(side) && !side->ended; count++) {
        const struct bw_side_entry *entry = &side->entry;
        expect_good_path(entry);
        expect_good_facts(entry);
        if (count > size + 1 || !count != !*entry->path)
            fuzz_fail("entry %zu is '%s'", count, entry->path);
        if (before &&
            bw_compare_paths(before, strlen(before), entry->path, entry->path_length) >= 0)
            fuzz_fail("'%s' before '%s'", before, entry->path);
        free(before);
        before = strdup(entry->path);
    }
    free(before);
    side->class->close(side);
    bw_list_close(list);
}
