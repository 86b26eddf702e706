/* SPDX-License-Identifier: Apache-2.0 */
/* Texts, bars and graphs on the screen of `funnel top`: in blocks and colors where the terminal has
 * them, else in ASCII. */
#pragma once

#ifdef HAVE_NCURSES
#include <ncurses.h>

#include "top_history.h"

/* After the screen has been opened. */
void top_draw_open(void);

/* Whether the terminal has the colors by which programs are told apart. */
bool top_draw_has_colors(void);

/* The attributes of a user's, group's or server's color, which keeps it until `funnel top` ends. */
attr_t top_draw_color_of(const char *name);

/* A whole line, up to the screen's width; in reverse video it is filled. */
void top_draw_line(int y, const char *text, attr_t attributes);

/* Text at a place, not beyond column `end`. The column behind it. */
int top_draw_text(int y, int x, int end, const char *text, attr_t attributes);

/* A bar of `width` columns, with its brackets, filled by a share of 0 to 1. The column behind it.
 */
int top_draw_bar(int y, int x, int width, double share);

/* The newest shares of a series, the newest at the right, in `height` lines from `y` on. They stand
 * behind an axis of TOP_AXIS_WIDTH columns with 0 to 100 percent. */
#define TOP_AXIS_WIDTH 4
void top_draw_graph(int y, int x, int height, int width, const struct top_series *series,
                    attr_t attributes);

/* A filled square, or what stands for it. */
const char *top_draw_square(void);
#endif
