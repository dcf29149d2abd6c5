/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The layer that answers from memory. */
#include "support/fake_layer.h"

#include "base/cleanup.h"
#include "graph/graph.h"

static void fake_read_one(struct fake_layer *fake, struct bw_request *request)
{
    unsigned copy = request->mirror ? request->mirror : 1;
    if (fake->read_count < FAKE_READS)
        fake->reads[fake->read_count++] =
            (struct fake_read){request->kind, request->address, request->length, request->mirror};
    request->error = NULL;
    request->rebuilt = fake->rebuilt;
    if (copy > FAKE_COPIES || fake->broken[copy - 1])
        request->error = bw_error_create(BW_ERROR_SYSTEM, "fake copy %u is broken", copy);
    else if (request->address > fake->size || request->length > fake->size - request->address)
        request->error = bw_error_create(BW_ERROR_CORRUPT, "behind the fake's end");
    else
        memcpy(request->buffer, fake->copies[copy - 1] + request->address, request->length);
}

static void fake_read_all(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    (void)frame;
    struct fake_layer *fake = bw_xlator_private(xlator);
    fake->calls++;
    if (fake->during_read)
        fake->during_read(fake->context);
    for (size_t i = 0; i < count; i++)
        fake_read_one(fake, &requests[i]);
}

static struct bw_error *fake_map(const struct bw_frame *frame, struct bw_xlator *xlator,
                                 uint64_t address, uint32_t length, unsigned copy,
                                 struct bw_map_reply *reply)
{
    (void)frame;
    const struct fake_layer *fake = bw_xlator_private(xlator);
    *reply = (struct bw_map_reply){.copies = fake->copy_count ? fake->copy_count : 1,
                                   .location = {.devid = copy, .offset = address, .present = true},
                                   .length = length};
    return NULL;
}

static void fake_advise(const struct bw_frame *frame, struct bw_xlator *xlator,
                        const struct bw_range *ranges, size_t count, unsigned copy)
{
    (void)frame;
    struct fake_layer *fake = bw_xlator_private(xlator);
    fake->hint_calls++;
    fake->hint_copy = copy;
    for (size_t i = 0; i < count && fake->hint_count < FAKE_HINTS; i++)
        fake->hints[fake->hint_count++] = ranges[i];
}

static uint64_t fake_size(struct bw_xlator *xlator)
{
    const struct fake_layer *fake = bw_xlator_private(xlator);
    return fake ? fake->size : 0;
}

const struct bw_xlator_class fake_device_class = {
    .type = "test/device",
    .description = "a device in memory",
    .above = BW_ADDRESS_DEVICE,
    .below = BW_ADDRESS_NONE,
    .operations = {.size = fake_size, .read = fake_read_all, .advise = fake_advise},
};

const struct bw_xlator_class fake_logical_class = {
    .type = "test/logical",
    .description = "logical addresses in memory",
    .above = BW_ADDRESS_LOGICAL,
    .below = BW_ADDRESS_NONE,
    .operations = {.read = fake_read_all, .map = fake_map, .advise = fake_advise},
};

const struct bw_xlator_class fake_pass_class = {
    .type = "test/pass",
    .description = "passes everything on",
    .above = BW_ADDRESS_LOGICAL,
    .below = BW_ADDRESS_LOGICAL,
    .minimum_children = 1,
    .maximum_children = 1,
};

struct bw_graph *graph_of(const struct bw_xlator_class *const *classes, struct report_log *log)
{
    struct bw_graph *graph = NULL;
    struct bw_registry *registry = NULL;
    expect_success(bw_registry_open("", &registry));
    expect_success(bw_registry_add(registry, classes));
    expect_success(bw_graph_create(registry, report_log_reporter(log), &graph));
    return graph;
}

struct bw_graph *fake_graph(struct report_log *log)
{
    static const struct bw_xlator_class *const classes[] = {&fake_device_class, &fake_logical_class,
                                                            &fake_pass_class, NULL};
    return graph_of(classes, log);
}

static const struct bw_text_place nowhere;

static struct bw_error *describe(struct bw_xlator *made, const struct layer *layer)
{
    BW_TRY(bw_layer_set_type(made, layer->type, nowhere));
    for (const struct option_value *option = layer->options; option && option->name; option++)
        BW_TRY(bw_layer_set_option(made, option->name, nowhere, option->value, nowhere));
    for (size_t i = 0; i < layer->child_count; i++)
        BW_TRY(bw_layer_add_child(made, bw_xlator_name(layer->children[i]), nowhere));
    return bw_graph_check_layer(made);
}

struct bw_error *graph_add(struct bw_graph *graph, const struct layer *layer,
                           struct bw_xlator **made)
{
    struct bw_xlator *added;
    BW_TRY(bw_graph_add(graph, graph->layers.count, layer->name, nowhere, &added));
    struct bw_error *error = describe(added, layer);
    if (!error)
        error = bw_graph_start(graph, NULL);
    if (error)
        bw_graph_remove(graph, added);
    else
        *made = added;
    return error;
}

struct bw_error *graph_add_above(struct bw_graph *graph, struct bw_xlator *below, const char *type,
                                 const char *name, const struct option_value *options,
                                 struct bw_xlator **made)
{
    const struct layer layer = {type, name, options, &below, below != NULL};
    return graph_add(graph, &layer, made);
}

struct bw_xlator *add_layer(struct bw_graph *graph, const char *type, struct bw_xlator *child,
                            const struct option_value *options)
{
    char name[32];
    struct bw_xlator *made = NULL;
    snprintf(name, sizeof name, "layer-%zu", graph->layers.count);
    expect_success(graph_add_above(graph, child, type, name, options, &made));
    return made;
}

struct bw_xlator *add_fake(struct bw_graph *graph, struct fake_layer *fake)
{
    struct bw_xlator *made = add_layer(graph, "test/logical", NULL, NULL);
    made->state = fake;
    return made;
}

struct bw_xlator *add_fake_device(struct bw_graph *graph, struct fake_layer *fake)
{
    struct bw_xlator *made = add_layer(graph, "test/device", NULL, NULL);
    made->state = fake;
    return made;
}

struct bw_error *tell_chunk(struct bw_xlator *layer, const struct bw_chunk *chunk)
{
    struct bw_stripe_info stripes[256];
    const struct bw_chunk_info info = {.logical = chunk->logical,
                                       .length = chunk->length,
                                       .type = chunk->type,
                                       .profile = chunk->profile->name,
                                       .stripe_count = chunk->stripe_count,
                                       .stripes = stripes};
    assert_true(chunk->stripe_count <= COUNT(stripes));
    for (unsigned i = 0; i < chunk->stripe_count; i++) {
        stripes[i].devid = bw_get64(chunk->stripes[i].devid);
        stripes[i].offset = bw_get64(chunk->stripes[i].offset);
        memcpy(stripes[i].device_uuid, chunk->stripes[i].device_uuid, BW_UUID_SIZE);
    }
    return bw_graph_control(layer->graph, &(struct bw_control){BW_CONTROL_CHUNK, {.chunk = &info}});
}

struct bw_error *tell_device(struct bw_xlator *layer, const struct bw_control_device *device)
{
    return bw_graph_control(layer->graph,
                            &(struct bw_control){BW_CONTROL_DEVICE, {.device = device}});
}

struct bw_error *tell_ids(struct bw_xlator *layer, enum bw_checksum_type type,
                          const uint8_t (*ids)[16], size_t count)
{
    const struct bw_control_file_system facts = {
        .checksum_type = type, .ids = ids, .id_count = count};
    return bw_graph_control(layer->graph,
                            &(struct bw_control){BW_CONTROL_FILE_SYSTEM, {.file_system = &facts}});
}

struct bw_error *tell_moved(struct bw_xlator *layer, uint64_t from, uint64_t length, uint64_t to)
{
    const struct bw_moved_range range = {from, length, to};
    return bw_graph_control(layer->graph,
                            &(struct bw_control){BW_CONTROL_MOVED_RANGE, {.moved = &range}});
}

struct bw_error *read_range(struct bw_xlator *top, uint64_t address, void *buffer, uint32_t length)
{
    struct bw_request request = {
        .kind = BW_REQUEST_RAW, .length = length, .address = address, .buffer = buffer};
    bw_wind(NULL, top, &request, 1);
    return request.error;
}
