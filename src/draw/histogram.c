/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Histograms as SVG. */
#include "draw/histogram.h"

#include <string.h>

#include "draw/markup.h"

enum { MARGIN = 20, NAMES = 90, BARS = 360, TEXTS = 200, LINE = 20, TITLE = 40 };

static void append_text(struct bw_buffer *text, unsigned x, unsigned y, const char *attributes,
                        const char *words)
{
    bw_buffer_format(text, "<text x=\"%u\" y=\"%u\" %s>", x, y, attributes);
    bw_markup_text(text, words, strlen(words));
    bw_buffer_format(text, "</text>\n");
}

static void append_bar(struct bw_buffer *text, const struct bw_bar *bar, uint64_t longest,
                       unsigned top)
{
    const double length = longest ? BARS * ((double)bar->value / (double)longest) : 0;
    append_text(text, NAMES - 8, top + LINE * 3 / 4, "text-anchor=\"end\"", bar->name);
    bw_buffer_format(text, "<rect x=\"%d\" y=\"%u\" width=\"%.1f\" height=\"%d\"/>\n", NAMES,
                     top + 2, length < 1 ? 1 : length, LINE - 4);
    append_text(text, NAMES + (unsigned)length + 8, top + LINE * 3 / 4, "class=\"note\"",
                bar->text);
}

static unsigned append_histogram(struct bw_buffer *text, const struct bw_histogram *histogram,
                                 unsigned top)
{
    uint64_t longest = 0;
    for (size_t i = 0; i < histogram->count; i++)
        if (histogram->bars[i].value > longest)
            longest = histogram->bars[i].value;
    append_text(text, 0, top + TITLE * 3 / 4, "font-weight=\"bold\"", histogram->title);
    top += TITLE;
    for (size_t i = 0; i < histogram->count; i++, top += LINE)
        append_bar(text, &histogram->bars[i], longest, top);
    return top;
}

void bw_histograms_svg(struct bw_buffer *text, const char *title,
                       const struct bw_histogram *histograms, size_t count)
{
    unsigned height = 0;
    for (size_t i = 0; i < count; i++)
        height += TITLE + (unsigned)histograms[i].count * LINE;
    bw_buffer_format(text,
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"%d %d %u %u\" "
                     "role=\"img\" aria-labelledby=\"title\">\n<title id=\"title\">",
                     -MARGIN, -MARGIN, NAMES + BARS + TEXTS + 2 * MARGIN, height + 2 * MARGIN);
    bw_markup_text(text, title, strlen(title));
    bw_buffer_format(
        text, "</title>\n<style>svg{background:#fff;color:#1f2328}text{font:13px system-ui,"
              "sans-serif;fill:currentColor}.note{opacity:.7}rect{fill:#2f6fde}"
              "@media(prefers-color-scheme:dark){svg{background:#0d1117;color:#e6edf3}}</style>\n");
    unsigned top = 0;
    for (size_t i = 0; i < count; i++)
        top = append_histogram(text, &histograms[i], top);
    bw_buffer_format(text, "</svg>\n");
}
