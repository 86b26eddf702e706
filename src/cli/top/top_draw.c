/* SPDX-License-Identifier: Apache-2.0 */
/* See top_draw.h. */
#include "top_draw.h"

#ifdef HAVE_NCURSES
#include <langinfo.h>
#include <string.h>

#include "text.h"

#define NAMES_MAX 64
#define COLORS_OF_NAMES 6

enum { PAIR_LOW = COLORS_OF_NAMES + 1, PAIR_MEDIUM, PAIR_HIGH };

static bool has_blocks, has_pairs;

static void open_colors(void)
{
    static const short colors[COLORS_OF_NAMES] = {COLOR_CYAN,  COLOR_YELLOW, COLOR_MAGENTA,
                                                  COLOR_GREEN, COLOR_BLUE,   COLOR_RED};

    has_pairs = has_colors() && start_color() == OK && use_default_colors() == OK &&
                COLOR_PAIRS > PAIR_HIGH;
    for (short i = 0; has_pairs && i < COLORS_OF_NAMES; i++)
        init_pair((short)(i + 1), colors[i], -1);
    if (!has_pairs)
        return;
    init_pair(PAIR_LOW, COLOR_GREEN, -1);
    init_pair(PAIR_MEDIUM, COLOR_YELLOW, -1);
    init_pair(PAIR_HIGH, COLOR_RED, -1);
}

void top_draw_open(void)
{
    has_blocks = !strcmp(nl_langinfo(CODESET), "UTF-8");
    open_colors();
}

bool top_draw_has_colors(void)
{
    return has_pairs;
}

attr_t top_draw_color_of(const char *name)
{
    static char names[NAMES_MAX][64];
    static unsigned count;
    unsigned i = 0;

    if (!has_pairs)
        return A_NORMAL;
    while (i < count && strncmp(names[i], name, sizeof(names[i]) - 1))
        i++;
    if (i == count && count < NAMES_MAX)
        text_format(names[count++], sizeof(names[i]), "%.63s", name);
    return COLOR_PAIR(i % COLORS_OF_NAMES + 1) |
           (i / COLORS_OF_NAMES % 2 ? (attr_t)A_BOLD : A_NORMAL);
}

static attr_t color_of_share(double share)
{
    if (!has_pairs)
        return A_NORMAL;
    return COLOR_PAIR(share < 0.6 ? PAIR_LOW : share < 0.9 ? PAIR_MEDIUM : PAIR_HIGH);
}

/* ---- text ---- */

/* Bytes of at most `columns` characters. */
static int bytes_of(const char *text, int columns)
{
    int bytes = 0;

    for (; text[bytes] && columns >= 0; bytes++)
        if ((text[bytes] & 0xc0) != 0x80 && --columns < 0)
            break;
    return bytes;
}

static int columns_of(const char *text, int bytes)
{
    int columns = 0;

    for (int i = 0; i < bytes; i++)
        columns += (text[i] & 0xc0) != 0x80;
    return columns;
}

int top_draw_text(int y, int x, int end, const char *text, attr_t attributes)
{
    int bytes = x < end ? bytes_of(text, end - x) : 0;

    if (y >= LINES || bytes == 0)
        return x;
    attron(attributes);
    mvaddnstr(y, x, text, bytes);
    attroff(attributes);
    return x + columns_of(text, bytes);
}

void top_draw_line(int y, const char *text, attr_t attributes)
{
    move(y, 0);
    clrtoeol();
    top_draw_text(y, 0, COLS, text, attributes);
    if (attributes & A_REVERSE)
        mvchgat(y, 0, -1, attributes, (short)PAIR_NUMBER(attributes), NULL);
}

const char *top_draw_square(void)
{
    return has_blocks ? "\u25a0" : "*";
}

/* ---- bars and graphs ---- */

static const char *const eighths[] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                      "\u2585", "\u2586", "\u2587", "\u2588"};

/* A rest that does not fill a column shows as half of one. */
int top_draw_bar(int y, int x, int width, double share)
{
    int halves = (int)((share < 0 ? 0 : share > 1 ? 1 : share) * 2 * (width - 2) + 0.5);

    if (width < 3)
        return x;
    if (share > 0 && !halves)
        halves = 1;
    mvaddch(y, x, '[');
    attron(color_of_share(share));
    for (int i = 0; i < width - 2; i++) {
        int here = halves - 2 * i;

        if (here >= 2)
            mvaddstr(y, x + 1 + i, has_blocks ? "\u2588" : "#");
        else if (here == 1)
            mvaddstr(y, x + 1 + i, has_blocks ? "\u258c" : "#");
        else
            mvaddch(y, x + 1 + i, ' ');
    }
    attroff(color_of_share(share));
    mvaddch(y, x + width - 1, ']');
    return x + width;
}

/* The part of one column that lies in a line, in eighths of its height. */
static const char *glyph_of(int filled)
{
    if (has_blocks)
        return eighths[filled < 0 ? 0 : filled > 8 ? 8 : filled];
    return filled >= 6 ? "#" : filled >= 3 ? ":" : filled >= 1 ? "." : " ";
}

/* The first line ends at 100 percent, and the last one begins at 0. */
static void draw_axis(int y, int x, int height)
{
    for (int line = 0; line < height; line++) {
        const char *label = line == 0                          ? "100"
                            : line == height - 1               ? "  0"
                            : height % 2 && line == height / 2 ? " 50"
                                                               : "   ";

        x = top_draw_text(y + line, x, COLS, label, A_DIM) - 3;
        top_draw_text(y + line, x + 3, COLS, has_blocks ? "\u2524" : "|", A_DIM);
    }
}

void top_draw_graph(int y, int x, int height, int width, const struct top_series *series,
                    attr_t attributes)
{
    draw_axis(y, x, height);
    x += TOP_AXIS_WIDTH;
    width -= TOP_AXIS_WIDTH;
    attron(attributes);
    for (int column = 0; column < width; column++) {
        float share = series ? top_series_share(series, (unsigned)(width - 1 - column)) : -1;
        int filled = (int)(share * 8 * (float)height + 0.5f);

        filled = share > 0 && !filled ? 1 : filled;
        for (int line = 0; line < height; line++)
            mvaddstr(y + line, x + column, glyph_of(filled - 8 * (height - 1 - line)));
    }
    attroff(attributes);
}
#endif
