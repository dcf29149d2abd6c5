/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * toys/rot13: a layer from outside of the project, built only with the installed headers. It
 * rotates every letter by 13. One such layer breaks every checksum; two of them have no effect.
 */
#include <btrfs-walk/graph.h>
#include <stdatomic.h>
#include <stdlib.h>

/* The private state of a layer: its options and counters. */
struct rot13 {
    uint64_t kind;
    atomic_uint_fast64_t letters;
};

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct rot13 *rot13 = bw_xlator_private(xlator);
    rot13->kind = bw_xlator_option_number(xlator, "kind");
    return NULL;
}

static uint8_t turn(uint8_t byte, uint8_t first)
{
    return (uint8_t)(first + (byte - first + 13) % 26);
}

static uint64_t turn_all(uint8_t *bytes, uint32_t length)
{
    uint64_t letters = 0;
    for (uint32_t i = 0; i < length; i++) {
        bool lower = bytes[i] >= 'a' && bytes[i] <= 'z', upper = bytes[i] >= 'A' && bytes[i] <= 'Z';
        if (lower || upper)
            bytes[i] = turn(bytes[i], lower ? 'a' : 'A');
        letters += lower || upper;
    }
    return letters;
}

/* Passes the requests on unchanged, and changes the results in place. */
static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    struct rot13 *rot13 = bw_xlator_private(xlator);
    bw_wind(frame, bw_xlator_child(xlator, 0), requests, count);
    for (size_t i = 0; i < count; i++)
        if (!requests[i].error && bw_request_kind_selected(rot13->kind, requests[i].kind))
            rot13->letters += turn_all(requests[i].buffer, requests[i].length);
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    struct rot13 *rot13 = bw_xlator_private(xlator);
    bw_json_number(json, "letters", rot13->letters);
}

static const struct bw_option options[] = {
    {"kind", BW_OPTION_ENUM, "data", 0, 0, "requests whose bytes are changed",
     bw_request_kind_choices},
    {0},
};

static const struct bw_xlator_class rot13_class = {
    .type = "toys/rot13",
    .description = "turns letters by thirteen places",
    .page =
        "Turns every letter of what is read by thirteen places in the alphabet.\n\n"
        "It shows how a layer is made outside of the project. Two of them cancel each other:\n\n"
        "    btrfs-walk --insert toys/rot13@device-1,kind=any --insert "
        "toys/rot13@device-1,kind=any "
        "image.img",
    BW_ONE_CHILD(BW_ADDRESS_ANY),
    .private_size = sizeof(struct rot13),
    .options = options,
    .operations = {.init = init, .read = read_requests, .dump = dump},
};

BW_XLATOR_EXPORT(rot13_class);
