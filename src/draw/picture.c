/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Colours of cells, and the legend. Types and trees have the colours of Okabe and Ito, which are
 * distinguishable for people with colour blindness; the scale is viridis. */
#include "draw/picture.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/generated.h"
#include "base/human.h"
#include "btrfs-walk/format.h"
#include "btrfs-walk/fs.h"
#include "btrfs-walk/subvolume.h"
#include "btrfs-walk/tree.h"

enum { SCALE = BW_PICTURE_SCALE, OWNERS = 8, OTHERS = OWNERS, TREES, UNKNOWN };

/* The opacity of allocated space that is not used. */
static const double faint = 0.22, faint_without_type = 0.11;

static const struct bw_color type_colors[BW_SPACE_KINDS] = {
    {0x00, 0x72, 0xb2}, {0xe6, 0x9f, 0x00}, {0xd5, 0x5e, 0x00}, {0xcc, 0x79, 0xa7}};
static const struct bw_color scale_colors[SCALE] = {
    {0x44, 0x01, 0x54}, {0x48, 0x28, 0x78}, {0x3e, 0x49, 0x89}, {0x31, 0x68, 0x8e},
    {0x26, 0x82, 0x8e}, {0x1f, 0x9e, 0x89}, {0x35, 0xb7, 0x79}, {0x6e, 0xce, 0x58},
    {0xb5, 0xde, 0x2b}, {0xfd, 0xe7, 0x25}};
static const struct bw_color owner_colors[] = {
    {0x00, 0x72, 0xb2}, {0xe6, 0x9f, 0x00}, {0x00, 0x9e, 0x73}, {0xcc, 0x79, 0xa7},
    {0x56, 0xb4, 0xe9}, {0xd5, 0x5e, 0x00}, {0x8b, 0x6f, 0xc0}, {0xb5, 0xa3, 0x00},
    {0xa0, 0x7a, 0x55}, {0xb0, 0x3a, 0x7c}, {0x6f, 0x7c, 0x8c}};
/* The colours of btrfs-heatmap, for a black background. */
static const struct bw_color heatmap_colors[BW_SPACE_KINDS] = {
    {0xff, 0xff, 0xff}, {0x00, 0x00, 0xff}, {0xff, 0x00, 0x33}, {0x99, 0xcc, 0xff}};

static const char *const kind_names[BW_SPACE_KINDS] = {"Data", "Metadata", "System",
                                                       "Data+Metadata"};

/* The legend. */

static void add_colors(struct bw_picture *picture, const struct bw_color *colors, size_t count)
{
    memcpy(picture->colors, colors, count * sizeof *colors);
    picture->color_count = count;
}

static const char *size_text(char room[BW_SIZE_ROOM + 1], uint64_t size)
{
    *bw_write_size(room, size, false) = '\0';
    return room;
}

/* "/home (id 257), 1.50MiB"; long names are shortened between characters. */
static struct bw_error *label_subvolume(struct bw_fs *fs, uint64_t id, uint64_t bytes,
                                        char label[BW_PICTURE_LABEL])
{
    enum { NAME = 48 };
    char size[BW_SIZE_ROOM + 1];
    BW_AUTO_FREE char *path = NULL;
    size_t length = 0;
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    BW_AUTO_ERROR struct bw_error *error = NULL;
    const struct bw_subvolume *subvolume = bw_subvolume_by_id(fs, id);
    if (subvolume)
        error = bw_subvolume_path(fs, subvolume, &path, &length);
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return BW_TAKE(error);
    if (path)
        bw_escape_line(&text, path, length);
    BW_TRY(bw_buffer_error(&text));
    const char *dots = "";
    if (text.length > NAME) {
        dots = "...";
        for (text.length = NAME;
             text.length && ((unsigned char)text.data[text.length] & 0xc0) == 0x80;)
            text.length--;
    }
    size_text(size, bytes);
    if (path)
        snprintf(label, BW_PICTURE_LABEL, "%.*s%s (id %" PRIu64 "), %s", (int)text.length,
                 text.data ? text.data : "", dots, id, size);
    else
        snprintf(label, BW_PICTURE_LABEL, "id %" PRIu64 ", %s", id, size);
    return NULL;
}

static struct bw_error *label_owners(struct bw_picture *picture, struct bw_fs *fs)
{
    static const char *const rest[] = {"other subvolumes", "trees of the file system",
                                       "unknown owner"};
    uint64_t sums[sizeof rest / sizeof *rest] = {0};
    char size[BW_SIZE_ROOM + 1];
    add_colors(picture, owner_colors, sizeof owner_colors / sizeof *owner_colors);
    for (size_t i = 0; i < picture->info->owner_count; i++) {
        const struct bw_space_owner *owner = &picture->info->owners[i];
        if (bw_is_subvolume_id(owner->id) && picture->owner_count < OWNERS) {
            BW_TRY(label_subvolume(fs, owner->id, owner->bytes,
                                   picture->labels[picture->owner_count]));
            picture->in_legend[picture->owner_count] = true;
            picture->owners[picture->owner_count++] = owner->id;
        } else {
            unsigned number = 2;
            if (bw_is_subvolume_id(owner->id))
                number = 0;
            else if (owner->id)
                number = 1;
            sums[number] += owner->bytes;
        }
    }
    for (unsigned i = 0; i < sizeof rest / sizeof *rest; i++) {
        picture->in_legend[OTHERS + i] = sums[i];
        snprintf(picture->labels[OTHERS + i], BW_PICTURE_LABEL, "%s, %s", rest[i],
                 size_text(size, sums[i]));
    }
    return NULL;
}

struct bw_error *bw_picture_make(struct bw_fs *fs, const struct bw_space_map *map,
                                 enum bw_draw_by by, enum bw_curve curve,
                                 struct bw_picture *picture)
{
    *picture =
        (struct bw_picture){.map = map, .info = bw_space_map_info(map), .by = by, .curve = curve};
    picture->order = bw_curve_order(picture->info->areas[0].cell_count, 1, BW_CURVE_MOST);
    const struct bw_space_map_info *info = picture->info;
    if (by == BW_DRAW_OWNER) {
        BW_TRY(label_owners(picture, fs));
    } else if (by == BW_DRAW_FILL || by == BW_DRAW_AGE) {
        /* The whole scale has one label. */
        add_colors(picture, scale_colors, SCALE);
        if (by == BW_DRAW_FILL)
            snprintf(picture->scale, BW_PICTURE_LABEL,
                     "nothing to all of the allocated space used");
        else if (info->newest > info->oldest)
            snprintf(picture->scale, BW_PICTURE_LABEL,
                     "generation %" PRIu64 " (oldest) to %" PRIu64 " (newest)", info->oldest,
                     info->newest);
        else if (info->newest)
            snprintf(picture->scale, BW_PICTURE_LABEL, "all of generation %" PRIu64, info->newest);
    } else {
        char part[BW_SIZE_ROOM + 1], all[BW_SIZE_ROOM + 1];
        add_colors(picture, by == BW_DRAW_HEATMAP ? heatmap_colors : type_colors, BW_SPACE_KINDS);
        for (unsigned kind = 0; kind < BW_SPACE_KINDS; kind++) {
            picture->in_legend[kind] = info->allocated[kind];
            snprintf(picture->labels[kind], BW_PICTURE_LABEL, "%s, %s of %s used", kind_names[kind],
                     size_text(part, info->used[kind]), size_text(all, info->allocated[kind]));
        }
    }

    /* The space without a colour: unallocated, and in pictures of the age also unused space; and
     * the allocated space that is not used, which has a faint colour. */
    char size[BW_SIZE_ROOM + 1];
    uint64_t allocated = 0, used = 0;
    for (unsigned kind = 0; kind < BW_SPACE_KINDS; kind++) {
        allocated += info->allocated[kind];
        used += info->used[kind];
    }
    const bool is_age = by == BW_DRAW_AGE, has_type = by == BW_DRAW_TYPE;
    const uint64_t colored = is_age ? used : allocated;
    if (info->bytes > colored)
        snprintf(picture->unallocated, BW_PICTURE_LABEL, "%s, %s",
                 is_age ? "unused or unallocated" : "unallocated",
                 size_text(size, info->bytes - colored));
    if (allocated > used && (has_type || by == BW_DRAW_OWNER)) {
        snprintf(picture->unused, BW_PICTURE_LABEL, "%sallocated, not used, %s",
                 has_type ? "faint: " : "", size_text(size, allocated - used));
        picture->unused_paint.color = has_type ? 0 : UNKNOWN;
        picture->unused_paint.opacity = (uint8_t)(255 * (has_type ? faint : faint_without_type));
        while (has_type && !picture->in_legend[picture->unused_paint.color])
            picture->unused_paint.color++;
    }

    BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
    BW_TRY(bw_fs_devices(fs, &devices));
    for (size_t i = 0; i < devices.count && picture->missing_count < BW_PICTURE_MISSING; i++)
        if (devices.items[i].state == BW_DEVICE_MISSING)
            picture->missing[picture->missing_count++] = devices.items[i].devid;
    return NULL;
}

/* Cells. */

static unsigned owner_color(const struct bw_picture *picture, uint64_t owner)
{
    for (unsigned i = 0; i < picture->owner_count; i++)
        if (picture->owners[i] == owner)
            return i;
    if (bw_is_subvolume_id(owner))
        return OTHERS;
    return owner ? TREES : UNKNOWN;
}

static unsigned age_color(const struct bw_space_map_info *info, uint64_t generation)
{
    if (generation <= info->oldest || info->newest <= info->oldest)
        return generation < info->newest ? 0 : SCALE - 1;
    const double age = (double)(generation - info->oldest) / (double)(info->newest - info->oldest);
    return age >= 1 ? SCALE - 1 : (unsigned)(age * (SCALE - 1) + 0.5);
}

/* Rounds to the nearest integer, and halves to the even one. */
static uint8_t to_byte(double value)
{
    const unsigned whole = (unsigned)value;
    const double rest = value - whole;
    return (uint8_t)(whole + (rest > 0.5 || (rest == 0.5 && whole % 2)));
}

/* The brightness of a cell in btrfs-heatmap: at least a tenth if it is allocated. */
static double light_of(const struct bw_space_cell *cell)
{
    const double darkest = 0.1;
    return darkest + cell->fill * (1 - darkest);
}

/* The colour of a cell in btrfs-heatmap: a mixture of the types, weighted by their shares. */
static struct bw_color mix_colors(const struct bw_space_cell *cell)
{
    const double light = light_of(cell);
    double red = 0, green = 0, blue = 0;
    for (unsigned kind = 0; kind < BW_SPACE_KINDS; kind++) {
        const double share = (double)cell->allocated[kind] / (double)cell->bytes;
        red += heatmap_colors[kind].red * share;
        green += heatmap_colors[kind].green * share;
        blue += heatmap_colors[kind].blue * share;
    }
    return (struct bw_color){to_byte(red * light), to_byte(green * light), to_byte(blue * light)};
}

struct bw_paint bw_picture_paint(const struct bw_picture *picture, const struct bw_space_cell *cell)
{
    uint64_t allocated = 0;
    unsigned largest = 0;
    for (unsigned kind = 0; kind < BW_SPACE_KINDS; kind++) {
        allocated += cell->allocated[kind];
        if (cell->allocated[kind] > cell->allocated[largest])
            largest = kind;
    }
    struct bw_paint paint = {.color = largest,
                             .mixed = picture->by == BW_DRAW_HEATMAP && cell->bytes};
    if (paint.mixed)
        paint.mixture = mix_colors(cell);
    if (!allocated)
        return paint;
    const double share = (double)allocated / (double)cell->bytes;
    const double fill = (double)cell->used / (double)allocated;
    double opacity = faint + (1 - faint) * fill;
    switch (picture->by) {
    case BW_DRAW_FILL:
        paint.color = (unsigned)(fill * (SCALE - 1) + 0.5);
        opacity = 1;
        break;
    case BW_DRAW_AGE:
        paint.color = age_color(picture->info, cell->generation);
        opacity = cell->used ? opacity + (1 - opacity) / 2 : 0;
        break;
    case BW_DRAW_OWNER:
        paint.color = UNKNOWN;
        if (cell->used)
            paint.color = owner_color(picture, cell->owner);
        else
            opacity = faint_without_type;
        break;
    case BW_DRAW_HEATMAP:
        opacity = light_of(cell);
        break;
    case BW_DRAW_TYPE:
        break;
    }
    paint.opacity = (uint8_t)(255 * opacity * share + 0.5);
    return paint;
}

static uint8_t blend_channel(uint8_t color, uint8_t ground, uint8_t opacity)
{
    return (uint8_t)((color * opacity + ground * (255 - opacity) + 127) / 255);
}

struct bw_color bw_paint_color(uint8_t opacity, struct bw_color color, struct bw_color ground)
{
    return (struct bw_color){blend_channel(color.red, ground.red, opacity),
                             blend_channel(color.green, ground.green, opacity),
                             blend_channel(color.blue, ground.blue, opacity)};
}

struct bw_color bw_picture_color(const struct bw_picture *picture, size_t area,
                                 struct bw_point point, struct bw_color ground)
{
    const uint32_t number = bw_curve_number(picture->curve, picture->order, point);
    const struct bw_space_cell cell = bw_space_map_cell(picture->map, area, number);
    const struct bw_paint paint = bw_picture_paint(picture, &cell);
    if (paint.mixed)
        return paint.mixture;
    if (!paint.opacity)
        return ground;
    return bw_paint_color(paint.opacity, picture->colors[paint.color], ground);
}

/* The whole picture. */

unsigned bw_picture_columns(const struct bw_picture *picture)
{
    unsigned columns = 1;
    while ((size_t)columns * columns < picture->info->area_count)
        columns++;
    return columns;
}

bool bw_picture_is_missing(const struct bw_picture *picture, size_t area)
{
    for (size_t i = 0; i < picture->missing_count; i++)
        if (picture->missing[i] == picture->info->areas[area].devid)
            return true;
    return false;
}

void bw_picture_caption(struct bw_buffer *text, const struct bw_picture *picture, size_t number)
{
    const struct bw_space_area *area = &picture->info->areas[number];
    char size[BW_SIZE_ROOM + 1], cell[BW_SIZE_ROOM + 1];
    if (area->devid)
        bw_buffer_format(text, "device %" PRIu64, area->devid);
    else
        bw_buffer_format(text, "all devices");
    bw_buffer_format(text, ", %s, cells of %s", size_text(size, area->bytes),
                     size_text(cell, area->bytes / area->cell_count));
    if (bw_picture_is_missing(picture, number))
        bw_buffer_format(text, ", missing");
}

void bw_picture_summary(struct bw_buffer *text, const struct bw_picture *picture)
{
    const struct bw_space_map_info *info = picture->info;
    char size[BW_SIZE_ROOM + 1];
    uint64_t allocated = 0;
    for (unsigned kind = 0; kind < BW_SPACE_KINDS; kind++)
        allocated += info->allocated[kind];
    bw_buffer_format(text, "%s", size_text(size, allocated));
    bw_buffer_format(text, " of %s are allocated.", size_text(size, info->bytes));
    for (unsigned i = 0; i < picture->color_count; i++)
        if (picture->in_legend[i])
            bw_buffer_format(text, " %s.", picture->labels[i]);
    if (*picture->scale)
        bw_buffer_format(text, " Colours: %s.", picture->scale);
}
