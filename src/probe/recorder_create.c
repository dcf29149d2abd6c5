/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Making a flight recorder: which member of each record is kept, the header that tells so, and the
 * mapping. A file gets all its blocks now, so that a full disk is an error and not SIGBUS later. It
 * is locked: a second process that made it anew would take it away from below the first.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "format/checksum.h"
#include "probe/probe.h"
#include "probe/recorder_box.h"

#ifndef BW_VERSION
#define BW_VERSION "unknown"
#endif

static unsigned member_named(const struct bw_record *record, const char *name)
{
    int index = bw_record_member(record, name, strlen(name));
    return index < 0 ? 0 : (unsigned)index;
}

/* A text says more than numbers. Names that somebody chose tell more than words of the format, and
 * the last one more than those before it, which say where: the message, not the layer. */
static int telling_text(const struct bw_probe *probe)
{
    const struct bw_record *record = probe->record;
    int found = -1;
    if (record == &bw_superinfo_record)
        return BW_superinfo_path; /* and not the label, which all images have */
    for (unsigned i = 0; i < record->member_count; i++) {
        const struct bw_member *member = &record->members[i];
        bool is_text = member->type == BW_TYPE_TEXT || member->type == BW_TYPE_BYTES;
        bool is_better = found < 0 || member->format == record->members[found].format ||
                         member->format == BW_FORMAT_NAME;
        if (is_text && (member->format == BW_FORMAT_NAME || member->format == BW_FORMAT_TEXT) &&
            is_better && !member->lazy && i != probe->primary && i != probe->secondary)
            found = (int)i;
    }
    return found;
}

static void make_plans(struct bw_recorder *recorder)
{
    unsigned count;
    const struct bw_probe *table = bw_probe_table(&count);
    for (unsigned i = 0; i < count; i++) {
        const struct bw_record *record = table[i].record;
        int text = telling_text(&table[i]);
        recorder->plans[i] = (struct bw_box_plan){
            .call = member_named(record, "call"),
            .error = member_named(record, "error"),
            .ns = member_named(record, "ns"),
            .text = text,
            .keeps_end = text >= 0 && strcmp(record->members[text].name, "path") == 0,
        };
    }
}

static void put_member(struct bw_box_member *place, const struct bw_member *member)
{
    strncpy((char *)place->name, member->name, sizeof place->name - 1);
    place->type = member->type == BW_TYPE_U64   ? BW_BOX_NUMBER
                  : member->type == BW_TYPE_I64 ? BW_BOX_SIGNED
                                                : BW_BOX_WORD;
    place->format = (uint8_t)member->format;
}

static void put_probes(const struct bw_recorder *recorder, uint8_t *header)
{
    unsigned count;
    const struct bw_probe *table = bw_probe_table(&count);
    struct bw_box_probe *probes = (void *)(header + sizeof(struct bw_box_header));
    for (unsigned i = 0; i < count; i++) {
        const struct bw_member *members = table[i].record->members;
        strncpy((char *)probes[i].name, table[i].name, sizeof probes[i].name - 1);
        put_member(&probes[i].primary, &members[table[i].primary]);
        put_member(&probes[i].secondary, &members[table[i].secondary]);
        if (recorder->plans[i].text >= 0)
            put_member(&probes[i].text, &members[recorder->plans[i].text]);
        probes[i].text.type = BW_BOX_WORD;
        probes[i].keeps_end = recorder->plans[i].keeps_end;
    }
}

static void put_header(const struct bw_recorder *recorder, uint32_t slots, uint8_t *header)
{
    struct timespec monotonic, real;
    uint8_t sum[32];
    clock_gettime(CLOCK_MONOTONIC, &monotonic);
    clock_gettime(CLOCK_REALTIME, &real);
    const uint32_t size = bw_box_header_size(BW_PROBE_COUNT);
    struct bw_box_header front = {
        .version = bw_put32(BW_BOX_VERSION),
        .header_size = bw_put32(size),
        .slot_size = bw_put32(sizeof(struct bw_box_slot)),
        .slot_count = bw_put32(slots),
        .probe_size = bw_put32(sizeof(struct bw_box_probe)),
        .probe_count = bw_put32(BW_PROBE_COUNT),
        .process = bw_put32((uint32_t)getpid()),
        .begin = bw_put64(bw_box_nanoseconds(&monotonic)),
        .begin_real = bw_put64(bw_box_nanoseconds(&real)),
    };
    memcpy(front.magic, BW_BOX_MAGIC, sizeof front.magic);
    strncpy((char *)front.program, "btrfs-walk " BW_VERSION, sizeof front.program - 1);
    memcpy(header, &front, sizeof front);
    put_probes(recorder, header);
    struct bw_box_ending *ending = (void *)(header + size - sizeof *ending);
    bw_checksum_compute(BW_CHECKSUM_CRC32C, header, size - sizeof *ending, sum);
    memcpy(&ending->checksum, sum, sizeof ending->checksum);
}

/* The coarse probes are always recorded. */
static void choose(struct bw_recorder *recorder, const bool selected[BW_PROBES_MAX])
{
    unsigned count;
    const struct bw_probe *table = bw_probe_table(&count);
    for (unsigned i = 0; i < count; i++)
        recorder->consumer.selected[i] = table[i].coarse || (selected && selected[i]);
}

static struct bw_error *map(struct bw_recorder *recorder, const char *name)
{
    int flags = recorder->descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED | MAP_POPULATE;
    void *bytes =
        mmap(NULL, recorder->size, PROT_READ | PROT_WRITE, flags, recorder->descriptor, 0);
    if (bytes == MAP_FAILED)
        return name ? bw_error_from_errno(errno, "cannot map %s", name) : bw_error_no_memory();
    recorder->bytes = bytes;
    return NULL;
}

/* The header goes first, with write(2): a file that was begun is known as a black box ever after.
 */
static struct bw_error *write_header(int descriptor, const char *name, const uint8_t *header,
                                     size_t size)
{
    if (ftruncate(descriptor, 0) || lseek(descriptor, 0, SEEK_SET) < 0)
        return bw_error_from_errno(errno, "cannot empty %s", name);
    while (size) {
        ssize_t written = write(descriptor, header, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return bw_error_from_errno(written ? errno : ENOSPC, "cannot write to %s", name);
        header += written;
        size -= (size_t)written;
    }
    return NULL;
}

static struct bw_error *reserve(int descriptor, const char *name, uint64_t size)
{
    int error;
    do
        error = posix_fallocate(descriptor, 0, (off_t)size);
    while (error == EINTR);
    return error ? bw_error_from_errno(error, "cannot make room for %" PRIu64 " bytes in %s", size,
                                       name)
                 : NULL;
}

/* With which everything there is of a recorder in a file begins; nothing else is thrown away. */
static struct bw_error *check_old(int descriptor, const char *name)
{
    char magic[sizeof BW_BOX_MAGIC - 1];
    struct stat status;
    if (fstat(descriptor, &status))
        return bw_error_from_errno(errno, "cannot stat %s", name);
    if (!S_ISREG(status.st_mode))
        return bw_error_create(BW_ERROR_USAGE,
                               "%s is no regular file: the black box would not survive", name);
    /* Not every file system can lock. */
    if (flock(descriptor, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        return bw_error_create(BW_ERROR_USAGE, "%s is the black box of a process that runs", name);
    if (status.st_size == 0)
        return NULL;
    bool is_box = lseek(descriptor, 0, SEEK_SET) == 0 &&
                  read(descriptor, magic, sizeof magic) == sizeof magic &&
                  memcmp(magic, BW_BOX_MAGIC, sizeof magic) == 0;
    return is_box
               ? NULL
               : bw_error_create(BW_ERROR_USAGE,
                                 "%s is not empty and no black box: it is not overwritten", name);
}

/* Sets up the bytes, behind the header that is handed in. */
static struct bw_error *make_box(struct bw_recorder *recorder, const char *name, uint8_t *header)
{
    uint32_t size = bw_get32(((struct bw_box_header *)(void *)header)->header_size);
    if (recorder->descriptor >= 0) {
        BW_TRY(write_header(recorder->descriptor, name, header, size));
        BW_TRY(reserve(recorder->descriptor, name, recorder->size));
    }
    BW_TRY(map(recorder, name));
    if (recorder->descriptor < 0)
        memcpy(recorder->bytes, header, size);
    recorder->ending = (void *)(recorder->bytes + size - sizeof *recorder->ending);
    recorder->slots = (void *)(recorder->bytes + size);
    bw_recording_view(recorder->bytes, &recorder->view);
    bw_recorder_attach(recorder);
    return NULL;
}

static struct bw_error *create(int descriptor, const char *name, const bool selected[BW_PROBES_MAX],
                               uint32_t slots, struct bw_recorder **result)
{
    const uint32_t header_size = bw_box_header_size(BW_PROBE_COUNT);
    BW_AUTO_FREE uint8_t *header = calloc(1, header_size);
    BW_AUTO_FREE struct bw_recorder *recorder = aligned_alloc(64, sizeof *recorder);
    if (!header || !recorder)
        return bw_error_no_memory();
    memset(recorder, 0, sizeof *recorder);
    recorder->descriptor = descriptor;
    recorder->size = header_size + (uint64_t)slots * sizeof(struct bw_box_slot);
    choose(recorder, selected);
    make_plans(recorder);
    put_header(recorder, slots, header);
    BW_TRY(make_box(recorder, name, header));
    *result = BW_TAKE(recorder);
    return NULL;
}

struct bw_error *bw_recorder_create(const bool selected[BW_PROBES_MAX], uint32_t slots,
                                    struct bw_recorder **recorder)
{
    return create(-1, NULL, selected, slots, recorder);
}

struct bw_error *bw_recorder_create_file(int descriptor, const char *name,
                                         const bool selected[BW_PROBES_MAX], uint32_t slots,
                                         struct bw_recorder **recorder)
{
    struct bw_error *error = check_old(descriptor, name);
    if (!error)
        error = create(descriptor, name, selected, slots, recorder);
    if (error)
        close(descriptor);
    return error;
}
