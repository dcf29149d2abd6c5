/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The picture command: the allocation of the devices, as SVG, PNG or blocks on a terminal. A map of
 * the space has as many cells as the picture; draw/ arranges them along a curve and colours them.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/generated.h"
#include "cli/common/output.h"
#include "cli/common/output_format.h"
#include "draw/picture.h"

enum picture_format { FORMAT_AUTO, FORMAT_SVG, FORMAT_PNG, FORMAT_TEXT };

struct picture_state {
    const struct cmd_common *common;
    const char *file;
    unsigned format, by, order_of_space, curve;
    uint64_t order, size;
    bool has_order;
    uint64_t devid;
};

static const char *const formats[] = {"auto", "svg", "png", "text", NULL};
static const char *const by_words[] = {"type", "fill", "age", "owner", "heatmap", NULL};
static const char *const orders_of_space[] = {"physical", "logical", NULL};
static const char *const curves[] = {"hilbert", "linear", "snake", NULL};

enum { PNG_SIZE = 10, SVG_ORDER = 6, SVG_MOST = 8, PNG_ORDER = 8, MOST_DEVICES = 64 };

static const struct cmd_option options[] = {
    CMD_FILE_OPTION(struct picture_state, file),
    {0, "format", "WORD", "write svg, png or text, regardless of the file name",
     CMD_WORD(struct picture_state, format, formats)},
    {0, "by", "WORD", "colour by type (default), fill, age, owner, or heatmap (like btrfs-heatmap)",
     CMD_WORD(struct picture_state, by, by_words)},
    {0, "sort", "WORD", "sort the ranges by physical (default) or logical address",
     CMD_WORD(struct picture_state, order_of_space, orders_of_space)},
    {0, "curve", "WORD", "curve that fills the square: hilbert (default), linear or snake",
     CMD_WORD(struct picture_state, curve, curves)},
    {0, "order", "N", "cut each device into 4^N cells, 0 to 11 (default: by its size)",
     CMD_NUMBER(struct picture_state, order, 0, BW_CURVE_MOST, "a number from 0 to 11"),
     CMD_GIVEN(struct picture_state, has_order)},
    {0, "size", "N", "make a PNG 2^N pixels wide and high, for each device (default: 10)",
     CMD_NUMBER(struct picture_state, size, 0, 12, "a number from 0 to 12")},
    {0, "devid", "DEVID", "show only the device with this id",
     CMD_BYTES(struct picture_state, devid)},
    {0},
};

/* Output as text. */

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

static enum bw_terminal_colors terminal_colors(const struct cmd_common *common)
{
    const char *true_color = getenv("COLORTERM");
    if (!cmd_has_color(common, STDOUT_FILENO))
        return BW_TERMINAL_PLAIN;
    if (true_color && (strcmp(true_color, "truecolor") == 0 || strcmp(true_color, "24bit") == 0))
        return BW_TERMINAL_TRUE;
    return BW_TERMINAL_256;
}

/* Drawing. */

static unsigned choose_order(const struct picture_state *state, uint64_t bytes)
{
    enum { SMALL = 16 << 10, HEATMAP = 32 << 20, HEATMAP_MOST = 10 };
    if (state->has_order)
        return (unsigned)state->order;
    if (state->by == BW_DRAW_HEATMAP)
        return bw_curve_order(bytes, HEATMAP,
                              state->size < HEATMAP_MOST ? (unsigned)state->size : HEATMAP_MOST);
    if (state->format != FORMAT_TEXT)
        return bw_curve_order(bytes, SMALL, state->format == FORMAT_SVG ? SVG_ORDER : PNG_ORDER);

    /* The largest order that fits into the window together with the legend. */
    enum { COLUMNS = 80, LINES = 24, LEGEND = 7, MOST = 8 };
    struct winsize window = {.ws_col = COLUMNS, .ws_row = LINES};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) || !window.ws_col || window.ws_row <= LEGEND)
        window = (struct winsize){.ws_col = COLUMNS, .ws_row = LINES};
    unsigned order = 3;
    while (order < MOST && 2u << order <= window.ws_col &&
           1u << order <= (unsigned)window.ws_row - LEGEND)
        order++;
    return order;
}

static struct bw_error *draw_picture(void *context, const struct cmd_session *session,
                                     struct cmd_output_file *file)
{
    const struct picture_state *state = context;
    struct bw_fs *fs = session->fs;
    BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
    uint64_t total = 0, largest = 0; /* sizes of devices */
    struct bw_space_map *map;
    BW_TRY(bw_fs_devices(fs, &devices));
    for (size_t i = 0; i < devices.count; i++) {
        const uint64_t size = devices.items[i].total_bytes;
        total += size;
        largest = size > largest ? size : largest;
    }
    const bool together = state->by == BW_DRAW_HEATMAP || state->order_of_space == BW_SPACE_LOGICAL;
    const bool apart = state->devid || (!together && devices.count <= MOST_DEVICES);
    const unsigned order = choose_order(state, apart ? largest : total);
    const struct bw_space_map_options wanted = {
        .struct_size = sizeof wanted,
        .order = state->order_of_space,
        .detail = state->by == BW_DRAW_HEATMAP ? BW_SPACE_CHUNKS : BW_SPACE_EXTENTS,
        .cells = (size_t)1 << 2 * order,
        .by_device = apart,
        .devid = state->devid,
    };
    BW_TRY(bw_space_map_open(fs, &wanted, &map));
    struct bw_picture picture;
    struct bw_buffer BW_AUTO_BUFFER text = {0};
    struct bw_error *error =
        bw_picture_make(fs, map, state->by, (enum bw_curve)state->curve, &picture);
    if (error)
        ; /* without a picture */
    else if (state->format == FORMAT_SVG)
        bw_picture_svg(&text, &picture);
    else if (state->format == FORMAT_TEXT)
        bw_picture_terminal(&text, &picture, terminal_colors(state->common));
    else
        error = bw_picture_png(&text, &picture, (unsigned)state->size);
    bw_space_map_close(map);
    if (error)
        return error;
    return cmd_output_file_write(file, &text);
}

/* Chooses the format if none is given, and rejects invalid combinations of options. */
static struct bw_error *complete_options(struct picture_state *state)
{
    const char *file = state->file ? state->file : "-";
    if (state->format != FORMAT_AUTO)
        ; /* --format was given */
    else if (ends_with(file, ".svg"))
        state->format = FORMAT_SVG;
    else if (ends_with(file, ".png"))
        state->format = FORMAT_PNG;
    else if (strcmp(file, "-") == 0)
        state->format = FORMAT_TEXT;
    else
        return bw_error_create(BW_ERROR_USAGE,
                               "%s: unknown type of picture; use .svg, .png or --format", file);
    if (state->format == FORMAT_PNG && strcmp(file, "-") == 0 && isatty(STDOUT_FILENO))
        return bw_error_create(BW_ERROR_USAGE,
                               "refusing to write a PNG to a terminal; use -f FILE");
    if (state->format == FORMAT_SVG && state->order > SVG_MOST)
        return bw_error_create(BW_ERROR_USAGE, "--order must be at most %d for SVG", SVG_MOST);
    if (state->devid && state->order_of_space == BW_SPACE_LOGICAL)
        return bw_error_create(BW_ERROR_USAGE, "--devid excludes --sort logical");
    return NULL;
}

static int run(const struct cmd_common *common, void *context)
{
    struct picture_state *state = context;
    struct bw_error *error = complete_options(state);
    if (error)
        return cmd_fail(common, error);
    state->common = common;
    return cmd_output_file_run(common, state->file, draw_picture, state);
}

static const struct picture_state defaults = {.size = PNG_SIZE};

const struct command cmd_picture = {
    .name = "picture",
    .topic = cmd_topic_space,
    .operands = "IMAGE...",
    .summary = "Draws a map of the devices: chunks, usage, age, owners.",
    .details =
        "\n"
        "Each device is a square, cut into cells of equal size along a Hilbert curve:\n"
        "neighbours on the device are neighbours in the picture. The colour of a cell shows\n"
        "the type of its chunk; the more of it is used, the stronger the colour. --by selects\n"
        "other colours: how much is used; the generation of the used blocks, from the oldest\n"
        "to the newest; or the subvolume that owns them, from the references in the extent\n"
        "tree.\n\n"
        "The name of the file selects SVG or PNG. Without -f, the picture is text: coloured\n"
        "blocks if stdout is a terminal and NO_COLOR is not set; otherwise letters (D data, M\n"
        "metadata, S system, X mixed; lower case if at most half is used) or digits.\n\n"
        "--by heatmap draws the pixels of btrfs-heatmap: all devices along one curve,\n"
        "coloured by how full each chunk is. --sort logical equals its --sort virtual: chunks\n"
        "sorted by address, then unallocated space.\n",
    .examples =
        "  btrfs-walk picture disk.img                      in the terminal\n"
        "  btrfs-walk picture -f map.svg a.img b.img c.img  a square for each device\n"
        "  btrfs-walk picture --by age -f age.png disk.img  old and new data\n"
        "  btrfs-walk picture --by owner disk.img           colours by subvolume\n"
        "  btrfs-walk picture --by heatmap -f heat.png disk.img  as btrfs-heatmap draws it\n",
    .options = options,
    .run = run,
    .state_size = sizeof(struct picture_state),
    .defaults = &defaults,
};
