/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The picture command: the allocation of the devices, as SVG, PNG or blocks on a terminal
 * (draw/drawing.c). */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/common/output.h"
#include "cli/common/output_format.h"
#include "draw/picture.h"

struct picture {
    const char *file;
    struct bw_drawing drawing;
};

static const char *const formats[] = {"auto", "svg", "png", "text", NULL};
static const char *const by_words[] = {"type", "fill", "age", "owner", "heatmap", NULL};
static const char *const orders_of_space[] = {"physical", "logical", NULL};
static const char *const curves[] = {"hilbert", "linear", "snake", NULL};

static const struct cmd_option options[] = {
    CMD_FILE_OPTION(struct picture, file),
    {0, "format", "WORD", "write svg, png or text, regardless of the file name",
     CMD_WORD(struct picture, drawing.format, formats)},
    {0, "by", "WORD", "colour by type (default), fill, age, owner, or heatmap (like btrfs-heatmap)",
     CMD_WORD(struct picture, drawing.by, by_words)},
    {0, "sort", "WORD", "sort the ranges by physical (default) or logical address",
     CMD_WORD(struct picture, drawing.order_of_space, orders_of_space)},
    {0, "curve", "WORD", "curve that fills the square: hilbert (default), linear or snake",
     CMD_WORD(struct picture, drawing.curve, curves)},
    {0, "order", "N", "cut each device into 4^N cells, 0 to 11 (default: by its size)",
     CMD_NUMBER(struct picture, drawing.order, 0, BW_CURVE_MOST, "a number from 0 to 11"),
     CMD_GIVEN(struct picture, drawing.has_order)},
    {0, "size", "N", "make a PNG 2^N pixels wide and high, for each device (default: 10)",
     CMD_NUMBER(struct picture, drawing.size, 0, 12, "a number from 0 to 12")},
    {0, "devid", "DEVID", "show only the device with this id",
     CMD_BYTES(struct picture, drawing.devid)},
    {0},
};

static struct bw_error *write_picture(void *context, const struct cmd_session *session,
                                      struct cmd_output_file *file)
{
    const struct picture *picture = context;
    struct bw_buffer BW_AUTO_BUFFER text = {0};
    BW_TRY(bw_draw(session->fs, &picture->drawing, &text));
    return cmd_output_file_write(file, &text);
}

static int run(const struct cmd_common *common, void *state)
{
    enum { SVG_MOST = 8 };
    struct picture *picture = state;
    struct bw_drawing *drawing = &picture->drawing;
    const char *file = picture->file ? picture->file : "-", *suffix = strrchr(file, '.');
    if (drawing->format == BW_DRAW_AUTO) {
        if (strcmp(file, "-") == 0)
            drawing->format = BW_DRAW_TEXT;
        else if (suffix && strcmp(suffix, ".svg") == 0)
            drawing->format = BW_DRAW_SVG;
        else if (suffix && strcmp(suffix, ".png") == 0)
            drawing->format = BW_DRAW_PNG;
        else
            return cmd_fail(common,
                            bw_error_create(BW_ERROR_USAGE,
                                            "%s: unknown type of picture; use .svg, .png or "
                                            "--format",
                                            file));
    }
    if (drawing->format == BW_DRAW_SVG && drawing->order > SVG_MOST)
        return cmd_refuse(common, "--order must be at most 8 for SVG");
    if (drawing->devid && drawing->order_of_space == BW_SPACE_LOGICAL)
        return cmd_refuse(common, "--devid excludes --sort logical");

    struct winsize window = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col && window.ws_row) {
        drawing->columns = window.ws_col;
        drawing->lines = window.ws_row;
    }
    const char *color = getenv("COLORTERM");
    if (cmd_has_color(common, STDOUT_FILENO))
        drawing->colors = BW_TERMINAL_256;
    if (drawing->colors && color && (!strcmp(color, "truecolor") || !strcmp(color, "24bit")))
        drawing->colors = BW_TERMINAL_TRUE;
    return cmd_output_file_run(common, file, drawing->format == BW_DRAW_PNG ? "a PNG" : NULL,
                               write_picture, picture);
}

static const struct picture defaults = {.drawing = {.size = 10, .columns = 80, .lines = 24}};

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
    .state_size = sizeof(struct picture),
    .defaults = &defaults,
};
