/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Findings on their way out. They wait until their pass has ended, so that they come in an order
 * that does not depend on threads and the paths of all of them are looked up together. Of each code
 * a pass hands out the first twenty in that order, unless all are wanted.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "check/check.h"

enum {
    SHOWN = 20,          /* findings of a code in a pass */
    ALL_SHOWN = 1 << 20, /* if all are wanted: what memory has to hold is bounded */
};

void bw_findings_init(struct bw_check *check)
{
    size_t count;
    const struct bw_finding_code *codes = bw_finding_codes(&count);
    pthread_mutex_init(&check->findings.lock, NULL);
    for (size_t i = 0; i < count; i++)
        check->findings.counts[i].code = &codes[i];
}

static void release(struct bw_held_finding *held)
{
    free((char *)(uintptr_t)held->subject.finding.message);
    for (size_t i = 0; held->paths && i < held->subject.finding.path_count; i++)
        free((char *)(uintptr_t)held->paths[i].data);
    free(held->paths);
    free(held->parts);
}

static void clear(struct bw_held_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++)
        release(&findings->held[i]);
    findings->count = 0;
    memset(findings->in_pass, 0, sizeof findings->in_pass);
}

void bw_findings_free(struct bw_check *check)
{
    clear(&check->findings);
    free(check->findings.held);
    pthread_mutex_destroy(&check->findings.lock);
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* By code, then by where it is. */
static int compare(const void *first, const void *second)
{
    const struct bw_finding *a = &((const struct bw_held_finding *)first)->subject.finding;
    const struct bw_finding *b = &((const struct bw_held_finding *)second)->subject.finding;
    int order = a->code == b->code ? 0 : a->code < b->code ? -1 : 1;
    order = order ? order : compare_numbers(a->tree, b->tree);
    order = order ? order : bw_key_compare(&a->key, &b->key);
    order = order ? order : compare_numbers(a->inode, b->inode);
    order = order ? order : compare_numbers(a->logical, b->logical);
    order = order ? order : compare_numbers(a->devid, b->devid);
    order = order ? order : compare_numbers(a->offset, b->offset);
    order = order ? order : compare_numbers(a->copy, b->copy);
    return order ? order : strcmp(a->message, b->message);
}

/* The place that a finding takes: a new one or, if enough of its code wait, that of the last one of
 * them in the order, which is forgotten; NULL if the finding itself comes after those. */
static struct bw_held_finding *place_of(struct bw_check *check, const struct bw_held_finding *new,
                                        enum bw_code_number code)
{
    struct bw_held_findings *findings = &check->findings;
    struct bw_held_finding *last = NULL;
    const uint64_t limit = check->options->all ? ALL_SHOWN : SHOWN;
    if (findings->in_pass[code] > ALL_SHOWN && check->options->all)
        return NULL;
    if (findings->in_pass[code] <= limit) {
        if (!BW_ARRAY_RESERVE(findings->held, findings->count, findings->capacity))
            return NULL;
        return &findings->held[findings->count++];
    }
    for (size_t i = 0; i < findings->count; i++)
        if (findings->held[i].subject.finding.code == new->subject.finding.code &&
            (!last || compare(&findings->held[i], last) > 0))
            last = &findings->held[i];
    if (!last || compare(new, last) >= 0)
        return NULL;
    release(last);
    return last;
}

static void hold(struct bw_check *check, struct bw_held_finding *new, enum bw_code_number code)
{
    struct bw_held_findings *findings = &check->findings;
    pthread_mutex_lock(&findings->lock);
    findings->in_pass[code]++;
    findings->counts[code].count++;
    findings->counts[code].mendable += new->subject.finding.mendable;
    struct bw_held_finding *place = place_of(check, new, code);
    if (place)
        *place = *new;
    pthread_mutex_unlock(&findings->lock);
    if (!place)
        release(new);
}

void bw_check_find(struct bw_check *check, enum bw_code_number code,
                   const struct bw_subject *subject, const char *format, ...)
{
    struct bw_held_finding new = {.subject = *subject};
    char *message = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&message, format, arguments);
    va_end(arguments);
    if (length < 0) {
        atomic_store(&check->unfinished, true);
        return;
    }
    new.subject.finding.code = check->findings.counts[code].code;
    new.subject.finding.message = message;
    hold(check, &new, code);
}

static struct bw_finding finding_of_part(const struct bw_held_finding *held,
                                         const struct bw_file_part *part)
{
    struct bw_finding finding = held->subject.finding;
    finding.known |= BW_KNOWN_TREE | BW_KNOWN_INODE | BW_KNOWN_FILE_OFFSET | BW_KNOWN_FILE_LENGTH;
    finding.offset += part->logical - finding.logical;
    finding.logical = part->logical;
    finding.length = part->length;
    finding.tree = part->tree;
    finding.inode = part->inode;
    finding.file_offset = part->file_offset;
    finding.file_length = part->file_length;
    finding.paths = held->paths + part->first_path;
    finding.path_count = part->path_count;
    finding.more_paths = part->more_paths;
    finding.more_subvolumes = part->more_subvolumes;
    return finding;
}

/* Hands out a finding or, if it is about several files, one for each of them. */
static struct bw_error *hand_out(struct bw_check *check, const struct bw_held_finding *held)
{
    const struct bw_check_options *options = check->options;
    const struct bw_finding *finding = &held->subject.finding;
    if (!held->part_count)
        return options->take(options->context, finding);
    struct bw_finding_count *count =
        &check->findings.counts[finding->code - check->findings.counts[0].code];
    count->count += held->part_count - 1;
    count->mendable += finding->mendable ? held->part_count - 1 : 0;
    for (size_t i = 0; i < held->part_count; i++) {
        const struct bw_finding each = finding_of_part(held, &held->parts[i]);
        BW_TRY(options->take(options->context, &each));
    }
    return NULL;
}

struct bw_error *bw_findings_flush(struct bw_check *check)
{
    struct bw_held_findings *findings = &check->findings;
    struct bw_error *error = NULL;
    if (findings->count)
        qsort(findings->held, findings->count, sizeof *findings->held, compare);
    if (check->options->take && findings->count)
        error = bw_check_name(check, findings->held, findings->count);
    for (size_t i = 0; !error && check->options->take && i < findings->count; i++)
        error = hand_out(check, &findings->held[i]);
    for (unsigned code = 0; code < BW_CODES; code++)
        findings->counts[code].hidden += findings->in_pass[code];
    for (size_t i = 0; i < findings->count; i++)
        findings->counts[findings->held[i].subject.finding.code - findings->counts[0].code]
            .hidden--;
    clear(findings);
    return error;
}
