/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/draw: curves, text in markup, treemaps. */
#include "support/walk_helpers.h"

#include "draw/layout.h"
#include "draw/markup.h"

/* Each cell has its own number. */
static void test_curves_fill_squares(void **state)
{
    for (unsigned curve = BW_CURVE_HILBERT; curve <= BW_CURVE_SNAKE; curve++)
        for (unsigned order = 0; order <= 5; order++) {
            const uint32_t side = UINT32_C(1) << order;
            bool seen[1 << 10] = {false};
            for (uint32_t i = 0; i < side * side; i++) {
                const struct bw_point point = {i % side, i / side};
                const uint32_t number = bw_curve_number(curve, order, point);
                assert_true(number < side * side);
                assert_false(seen[number]);
                seen[number] = true;
            }
        }
}

static unsigned distance(uint32_t a, uint32_t b)
{
    return a > b ? a - b : b - a;
}

static void test_neighbours_stay_together(void **state)
{
    enum { ORDER = 6, SIDE = 1 << ORDER };
    struct bw_point points[SIDE * SIDE];
    for (uint32_t i = 0; i < SIDE * SIDE; i++) {
        const struct bw_point point = {i % SIDE, i / SIDE};
        points[bw_curve_number(BW_CURVE_HILBERT, ORDER, point)] = point;
    }
    for (uint32_t i = 1; i < SIDE * SIDE; i++)
        assert_int_equal(
            distance(points[i].x, points[i - 1].x) + distance(points[i].y, points[i - 1].y), 1);
    assert_true(points[0].x == 0 && points[0].y == 63);
    assert_true(points[SIDE * SIDE - 1].x == 63 && points[SIDE * SIDE - 1].y == 63);
    assert_int_equal(bw_curve_number(BW_CURVE_SNAKE, 2, (struct bw_point){3, 1}), 4);
    assert_int_equal(bw_curve_number(BW_CURVE_LINEAR, 2, (struct bw_point){0, 1}), 4);
}

static void test_orders(void **state)
{
    assert_int_equal(bw_curve_order(0, 16, 10), 0);
    assert_int_equal(bw_curve_order(16, 16, 10), 0);
    assert_int_equal(bw_curve_order(17, 16, 10), 1);
    assert_int_equal(bw_curve_order(64, 16, 10), 1);
    assert_int_equal(bw_curve_order(65, 16, 10), 2);
    assert_int_equal(bw_curve_order(UINT64_MAX, 1, 10), 10);
}

#define EXPECT_MARKUP(function, bytes, expected)  \
    do {                                          \
        struct bw_buffer text = {0};              \
        function(&text, bytes, sizeof bytes - 1); \
        bw_buffer_append_byte(&text, '\0');       \
        assert_false(text.failed);                \
        assert_string_equal(text.data, expected); \
        bw_buffer_free(&text);                    \
    } while (0)

static void test_markup(void **state)
{
    EXPECT_MARKUP(bw_markup_text, "plain, \xc3\xa4", "plain, \xc3\xa4");
    EXPECT_MARKUP(bw_markup_text, "<b>&\"'", "&lt;b&gt;&amp;&quot;&#39;");
    EXPECT_MARKUP(bw_markup_text,
                  "a\xe2\x80\xae"
                  "b",
                  "a\\u{202e}b");
    EXPECT_MARKUP(bw_markup_text, "\xef\xbb\xbf\xef\xbf\xbf\xf3\xa0\x81\x81",
                  "\\u{feff}\\u{ffff}\\u{e0041}");
    EXPECT_MARKUP(bw_markup_text, "\xff\xc0\xaf", "\\377\\300\\257");
    EXPECT_MARKUP(bw_markup_text, "a\n\x1b\x7f\xc2\x85", "a\\u{a}\\u{1b}\\u{7f}\\u{85}");
    EXPECT_MARKUP(bw_markup_bytes, "a\n\\<\x1b\xff", "a\\n\\\\&lt;\\033\\377");
    EXPECT_MARKUP(bw_markup_bytes, "\xe2\x80\xaex", "\\u{202e}x");
}

static void expect_near(double a, double b)
{
    assert_true(a - b < 1e-6 && b - a < 1e-6);
}

/* Boxes have their share of the area, lie inside, and do not overlap. */
static void check_layout(const double *sizes, size_t count, struct bw_box box)
{
    struct bw_box boxes[16];
    double total = 0;
    bw_treemap_layout(sizes, count, box, boxes);
    for (size_t i = 0; i < count; i++)
        total += sizes[i] > 0 ? sizes[i] : 0;
    for (size_t i = 0; i < count; i++) {
        const struct bw_box *a = &boxes[i];
        const double share = sizes[i] > 0 ? sizes[i] / total * box.width * box.height : 0;
        expect_near(a->width * a->height, share);
        assert_true(a->x >= box.x - 1e-6 && a->x + a->width <= box.x + box.width + 1e-6);
        assert_true(a->y >= box.y - 1e-6 && a->y + a->height <= box.y + box.height + 1e-6);
        for (size_t j = 0; j < i; j++) {
            const struct bw_box *b = &boxes[j];
            assert_true(share == 0 || b->width == 0 || a->x >= b->x + b->width - 1e-6 ||
                        b->x >= a->x + a->width - 1e-6 || a->y >= b->y + b->height - 1e-6 ||
                        b->y >= a->y + a->height - 1e-6);
        }
    }
}

static void test_treemap(void **state)
{
    /* The example of the paper that describes the method. */
    static const double paper[] = {6, 6, 4, 3, 2, 2, 1}, uneven[] = {1000, 1, 0, -5, 0.001},
                        nothing[] = {0, 0}, giant[] = {1e18, 1};
    struct bw_box boxes[7];
    bw_treemap_layout(paper, 7, (struct bw_box){0, 0, 6, 4}, boxes);
    expect_near(boxes[0].width, 3);
    expect_near(boxes[0].height, 2);
    expect_near(boxes[1].y, 2);
    expect_near(boxes[2].x, 3);
    expect_near(boxes[2].width, 4.0 / (7.0 / 3.0));
    check_layout(paper, 7, (struct bw_box){0, 0, 6, 4});
    check_layout(uneven, 5, (struct bw_box){10, 20, 300, 5});
    bw_treemap_layout(nothing, 2, (struct bw_box){1, 2, 3, 4}, boxes);
    assert_true(boxes[0].width == 0 && boxes[1].height == 0);
    bw_treemap_layout(giant, 2, (struct bw_box){0, 0, 3, 4}, boxes);
    assert_true(boxes[1].width <= 3 && boxes[1].height <= 4); /* no space remains for it */
    bw_treemap_layout(paper, 7, (struct bw_box){0, 0, 0, 0}, boxes);
    assert_true(boxes[6].width == 0);
}
