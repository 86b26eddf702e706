/* SPDX-License-Identifier: Apache-2.0 */
/* See top_screen.h. Samples and keys in turn; top_view.c draws, and top_actions.c does what keys
 * order. */
#include "top_screen.h"

#include <unistd.h>

#include "cli.h"

#ifdef HAVE_NCURSES
#include <locale.h>
#include <ncurses.h>

#include "clock.h"
#include "top_actions.h"
#include "top_draw.h"

bool top_screen_is_there(void)
{
    return isatty(STDOUT_FILENO) && isatty(STDIN_FILENO);
}

/* ---- the selection ---- */

const struct command_client *top_selected_client(const struct screen *screen)
{
    return screen->selected < screen->rows.count ? screen->rows.row[screen->selected].client : NULL;
}

/* Keeps the same program selected. */
static void follow_selection(struct screen *screen)
{
    for (unsigned i = 0; screen->id && i < screen->rows.count; i++) {
        const struct command_client *client = screen->rows.row[i].client;

        if (client && client->row.id == screen->id && client->row.identity.pid == screen->pid)
            screen->selected = i;
    }
}

void top_select(struct screen *screen, int row)
{
    int last = screen->rows.count ? (int)screen->rows.count - 1 : 0;
    const struct command_client *client;

    screen->selected = (unsigned)(row < 0 ? 0 : row > last ? last : row);
    client = top_selected_client(screen);
    screen->id = client ? client->row.id : 0;
    screen->pid = client ? client->row.identity.pid : 0;
}

static void make_rows(struct screen *screen)
{
    const struct top_sample *sample = screen->sample;
    struct client_rows rows;

    if (!sample->has_now ||
        client_rows_make(&sample->now, sample->has_before ? &sample->before : NULL, sample->seconds,
                         &screen->options->choice, &rows))
        return;
    client_rows_fini(&screen->rows);
    screen->rows = rows;
    client_table_init(&screen->table, screen->options->columns, screen->options->column_count,
                      &rows, (unsigned)COLS);
    follow_selection(screen);
    top_select(screen, (int)screen->selected);
}

/* ---- samples and keys ---- */

/* Keys until it is time for the next sample; false to quit. */
static bool handle_keys_until(struct screen *screen, double end)
{
    for (;;) {
        double left = end - (double)clock_ns() / 1e9;
        int key;

        top_show(screen);
        if (left <= 0)
            return true;
        timeout((int)(left * 1000) + 1);
        key = getch();
        if (key != ERR && !top_handle_key(screen, key))
            return false;
        if (key != ERR)
            make_rows(screen);
    }
}

static bool open_terminal(void)
{
    setlocale(LC_CTYPE, "");
    if (!newterm(NULL, stdout, stdin))
        return false;
    cbreak();
    noecho();
    curs_set(0);
    keypad(stdscr, TRUE);
    set_escdelay(100);
    mousemask(ALL_MOUSE_EVENTS, NULL);
    mouseinterval(0);
    top_draw_open();
    return true;
}

int top_screen_run(struct top_options *options, struct top_sample *sample)
{
    static struct screen screen;
    bool goes_on = true;

    screen = (struct screen){.options = options, .sample = sample};
    if (!top_sample_take(sample))
        return cli_fail("%s", sample->reason);
    if (!open_terminal())
        return cli_fail("this terminal cannot be used; set TERM, or use --plain");
    top_history_add(&screen.history, sample);
    while (goes_on) {
        make_rows(&screen);
        goes_on = handle_keys_until(&screen, sample->at + options->interval);
        if (goes_on && top_sample_take(sample))
            top_history_add(&screen.history, sample);
        else
            sample->at = (double)clock_ns() / 1e9;
    }
    endwin();
    client_rows_fini(&screen.rows);
    top_history_fini(&screen.history);
    return 0;
}

#else

bool top_screen_is_there(void)
{
    return false;
}

int top_screen_run(struct top_options *options, struct top_sample *sample)
{
    return cli_fail("this build has no full screen: it was made without the ncurses library");
}

#endif
