/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A layer that replies from memory and records its requests: the lowest layer in tests of single
 * layers, made by add_fake() and add_fake_device().
 */
#ifndef BW_TESTS_FAKE_LAYER_H
#define BW_TESTS_FAKE_LAYER_H

#include "graph/graph.h"
#include "ondisk/chunk.h"
#include "support/walk_helpers.h"

/** Numbers as containers store them. */
static inline void put_le32(uint8_t *at, uint32_t value)
{
    const bw_le32 raw = bw_put32(value);
    memcpy(at, &raw, sizeof raw);
}

static inline void put_le64(uint8_t *at, uint64_t value)
{
    const bw_le64 raw = bw_put64(value);
    memcpy(at, &raw, sizeof raw);
}

enum { FAKE_COPIES = 4, FAKE_READS = 1024, FAKE_HINTS = 256 };

struct fake_read {
    enum bw_request_kind kind;
    uint64_t address;
    uint32_t length;
    unsigned copy;
};

struct fake_layer {
    const uint8_t *copies[FAKE_COPIES]; /**< content of each copy */
    unsigned copy_count;                /**< 0: one */
    uint64_t size;
    bool broken[FAKE_COPIES]; /**< reading this copy fails */
    bool rebuilt;             /**< the replies say that bytes were computed from parity */

    struct fake_read reads[FAKE_READS];
    size_t read_count;
    size_t calls;
    struct bw_range hints[FAKE_HINTS];
    unsigned hint_copy; /**< of the last one */
    size_t hint_count;
    size_t hint_calls;
    void (*during_read)(void *context); /**< called by each read; may be NULL */
    void *context;                      /**< for during_read() */
};

/** "test/device": a device with a size and no layer below. "test/logical": logical addresses, whose
 * copies `map` returns. "test/pass": one logical child, without operations. */
extern const struct bw_xlator_class fake_device_class, fake_logical_class, fake_pass_class;

/** An option of a layer. */
struct option_value {
    const char *name;
    const char *value;
};

/** The parameters of a layer. */
struct layer {
    const char *type;
    const char *name;
    const struct option_value *options; /**< ends with a NULL name; NULL: defaults only */
    struct bw_xlator *const *children;
    size_t child_count;
};

/** Adds a layer to a graph, validates it, and starts it; removes it after an error. */
struct bw_error *graph_add(struct bw_graph *graph, const struct layer *layer,
                           struct bw_xlator **made);

/** The same for a layer above another one, which may be NULL; so may `options`. */
struct bw_error *graph_add_above(struct bw_graph *graph, struct bw_xlator *below, const char *type,
                                 const char *name, const struct option_value *options,
                                 struct bw_xlator **made);

/** A graph that knows all built-in layers and those of `classes`, which ends with NULL and must
 * outlive it; `log` may be NULL. */
struct bw_graph *graph_of(const struct bw_xlator_class *const *classes, struct report_log *log);
/** A graph that knows the built-in and the fake layers. */
struct bw_graph *fake_graph(struct report_log *log);
/** Adds a layer that must fit. `child` may be NULL. */
struct bw_xlator *add_layer(struct bw_graph *graph, const char *type, struct bw_xlator *child,
                            const struct option_value *options);
/** Adds a "test/logical" with this state. */
struct bw_xlator *add_fake(struct bw_graph *graph, struct fake_layer *fake);
/** The same with a "test/device". */
struct bw_xlator *add_fake_device(struct bw_graph *graph, struct fake_layer *fake);

/** Gives messages to all layers of the graph that a layer is in; the answer is the error. */
struct bw_error *tell_chunk(struct bw_xlator *layer, const struct bw_chunk *chunk);
struct bw_error *tell_device(struct bw_xlator *layer, const struct bw_control_device *device);
struct bw_error *tell_ids(struct bw_xlator *layer, enum bw_checksum_type type,
                          const uint8_t (*ids)[16], size_t count);
struct bw_error *tell_moved(struct bw_xlator *layer, uint64_t from, uint64_t length, uint64_t to);

/** Reads one range; the answer is the error. */
struct bw_error *read_range(struct bw_xlator *top, uint64_t address, void *buffer, uint32_t length);

#endif
