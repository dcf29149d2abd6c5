/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Testing files by a selection. Names are decided first, when the conditions on inodes are taken
 * for met; then all is decided again, if an inode is needed. "Not" is carried down to the single
 * conditions, so that what is not known yet can be taken for met on either side of it.
 */
#include <string.h>

#include "walk/entry_choice.h"
#include "walk/condition.h"

/* A file that meets conditions on its type is taken whatever the default types are. */
enum verdict { NO, YES, YES_BY_TYPE };

static enum verdict unit_of(bool is_and)
{
    return is_and ? YES : NO;
}

static enum verdict join(bool is_and, enum verdict one, enum verdict other)
{
    const enum verdict more = one > other ? one : other;
    return is_and && (!one || !other) ? NO : more;
}

/* Without a name or file, those conditions are not known yet, or no longer in question. */
static enum verdict judge_condition(const struct bw_subject *subject,
                                    const struct bw_condition *condition, bool negated)
{
    const struct bw_named *named = subject->named;
    negated ^= condition->negated;
    switch (condition->list) {
    case BW_ANY_TYPE:
    case BW_TYPES:
        return !named || (condition->types >> named->type & 1) != negated ? YES_BY_TYPE : NO;
    case BW_INODES:
        return !subject->file ||
               (subject->file->inode && condition->kind->test(subject, condition) != negated);
    default:
        return !named || !named->path || condition->kind->test(subject, condition) != negated;
    }
}

/* Conditions one of which has to be met. */
struct run {
    bool is_begun;
    enum verdict verdict;
};

static void extend(struct run *run, bool negated, enum verdict verdict)
{
    run->verdict = join(negated, run->is_begun ? run->verdict : unit_of(negated), verdict);
    run->is_begun = true;
}

/* Ends both runs, of names and types. */
static enum verdict end_runs(struct run *runs, bool negated, enum verdict verdict)
{
    for (size_t i = 0; i < 2; i++) {
        if (runs[i].is_begun)
            verdict = join(!negated, verdict, runs[i].verdict);
        runs[i].is_begun = false;
    }
    return verdict;
}

static enum verdict judge_group(const struct bw_subject *subject, size_t number, bool negated);

static enum verdict judge_set(const struct bw_subject *subject, size_t number, bool negated)
{
    const struct bw_condition *nodes = subject->selection->nodes;
    const size_t end = nodes[number].end;
    enum verdict verdict = unit_of(!negated);
    struct run runs[2] = {{0}};
    for (size_t i = number + 1; i < end && (verdict || negated); i++) {
        const struct bw_condition *node = &nodes[i];
        if (node->list == BW_AND) {
            verdict = end_runs(runs, negated, verdict);
        } else if (node->list == BW_GROUP) {
            verdict = join(!negated, verdict, judge_group(subject, i, negated ^ node->negated));
            i = node->end - 1;
        } else if (node->list == BW_ANY_NAME || node->list == BW_ANY_TYPE) {
            extend(&runs[node->list == BW_ANY_TYPE], negated,
                   judge_condition(subject, node, negated));
        } else if (node->list != BW_EXCLUDE) {
            verdict = join(!negated, verdict, judge_condition(subject, node, negated));
        }
    }
    return end_runs(runs, negated, verdict);
}

static enum verdict judge_group(const struct bw_subject *subject, size_t number, bool negated)
{
    const struct bw_condition *nodes = subject->selection->nodes;
    enum verdict verdict = unit_of(negated);
    for (size_t i = number + 1; i < nodes[number].end; i = nodes[i].end)
        verdict = join(negated, verdict, judge_set(subject, i, negated));
    return verdict;
}

static bool accepts(const struct bw_subject *subject)
{
    const enum verdict verdict = judge_group(subject, 0, false);
    const unsigned types = verdict == YES_BY_TYPE ? BW_WALK_ALL : subject->selection->default_types;
    return verdict && (!subject->named || types >> subject->named->type & 1);
}

unsigned bw_selection_types(const struct bw_selection *selection)
{
    unsigned types = 0;
    for (unsigned type = 0; type <= BW_FILE_SYMLINK; type++) {
        const struct bw_named named = {.type = (uint8_t)type};
        types |= (unsigned)accepts(&(struct bw_subject){selection, &named, NULL}) << type;
    }
    return types;
}

bool bw_selection_needs_inode(const struct bw_selection *selection)
{
    return selection->has_inodes;
}

bool bw_selection_excludes(const struct bw_selection *selection, const struct bw_named *named)
{
    const struct bw_subject subject = {selection, named, NULL};
    for (size_t i = 0; selection && selection->has_exclude && i < selection->node_count; i++)
        if (selection->nodes[i].list == BW_EXCLUDE &&
            selection->nodes[i].kind->test(&subject, &selection->nodes[i]))
            return true;
    return false;
}

bool bw_selection_takes_name(const struct bw_selection *selection, const struct bw_named *named)
{
    return accepts(&(struct bw_subject){selection, named, NULL});
}

static struct bw_named name_of(const char *path, size_t length)
{
    const char *slash = memrchr(path, '/', length);
    size_t before = slash && length > 1 ? (size_t)(slash + 1 - path) : 0;
    return (struct bw_named){path, length, length - before, 0, 0};
}

bool bw_selection_takes_inode(const struct bw_selection *selection,
                              const struct bw_walked_file *file)
{
    struct bw_named named;
    struct bw_subject subject = {selection, NULL, file};
    if (!selection->has_inodes)
        return true;
    if (!selection->is_flat) {
        named = name_of(file->path, file->path_length);
        named.number = file->number;
        named.type = file->type;
        subject.named = &named;
    }
    return accepts(&subject);
}

/* The same for entries of the public headers. */

static struct bw_named name_of_entry(const struct bw_entry *entry)
{
    struct bw_named named = name_of(entry->path, entry->path_length);
    named.number = entry->place.inode;
    named.type = bw_known_type(entry->place.type);
    return named;
}

bool bw_selection_excludes_entry(const struct bw_selection *selection, const struct bw_entry *entry)
{
    const struct bw_named named = name_of_entry(entry);
    return bw_selection_excludes(selection, &named);
}

bool bw_selection_accepts_name(const struct bw_selection *selection, const struct bw_entry *entry)
{
    const struct bw_named named = name_of_entry(entry);
    return bw_selection_takes_name(selection, &named);
}

bool bw_selection_accepts_inode(const struct bw_selection *selection, const struct bw_entry *entry)
{
    const struct bw_walked_file file = {.path = entry->path,
                                        .path_length = entry->path_length,
                                        .number = entry->place.inode,
                                        .type = bw_known_type(entry->place.type),
                                        .inode = entry->inode};
    return bw_selection_takes_inode(selection, &file);
}
