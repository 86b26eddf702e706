/* SPDX-License-Identifier: Apache-2.0 */
/* The full screen of `funnel top`. Lines from the top: a title, one for each device, the colors'
 * legend, graphs of a device and of the selected program or group. Then the titles of the columns,
 * and the programs. The last line has messages, questions and keys. */
#ifdef HAVE_NCURSES
#include <ncurses.h>
#include <string.h>

#include "text.h"
#include "top_draw.h"
#include "top_screen_state.h"
#include "view_text.h"

#define DEVICE_LINES_MAX 8

#define SENSORS_WIDE 100 /* columns, from which on a device has its power and temperature */
#define KEYS_WIDE 110    /* columns, from which on all of them fit */

static const char few_keys[] = "q quit  ? keys  / filter  t tree  s SMs  m memory  k end";
static const char all_keys[] = "q quit  ? keys  / filter  t tree  < > sort  r reverse  s SMs  "
                               "m memory  p priority  k end";

/* ---- devices ---- */

static int clamp(int value, int least, int most)
{
    return value < least ? least : value > most ? most : value;
}

/* "GPU 0 NAME  SM [####    ]  63.4%  MEM [##      ] 12 GiB of 80 GiB  51 C, 320 of 700 W". A narrow
 * terminal does not show the end of it. */
static void show_device(int y, const struct top_device *device)
{
    char used[VIEW_CELL], total[VIEW_CELL], sensors[VIEW_CELL], text[TOP_LINE_CAPACITY];
    int name = clamp(COLS / 4, 12, 40), x;
    double share = top_series_share(&device->sm_use, 0);
    uint64_t whole = device->device->memory_total;

    view_format_sensors(&device->sensors, sensors);
    int end = COLS < SENSORS_WIDE || !*sensors ? COLS : COLS - (int)strlen(sensors) - 2;
    int bar = clamp((end - name - 45) / 2, 5, 42);

    view_format_bytes(device->memory_used, used);
    view_format_bytes(whole, total);
    top_draw_line(y, "", A_NORMAL);
    text_format(text, sizeof(text), "GPU %-2u%-*.*s SM ", device->ordinal, name, name,
                device->device->name);
    x = top_draw_text(y, 0, COLS, text, A_NORMAL);
    x = top_draw_bar(y, x, bar, share);
    text_format(text, sizeof(text), "%6.1f%%  MEM ", 100 * (share < 0 ? 0 : share));
    x = top_draw_text(y, x, COLS, text, A_NORMAL);
    x = top_draw_bar(y, x, bar, whole ? (double)device->memory_used / (double)whole : 0);
    text_format(text, sizeof(text), "%8s of %8s", used, total);
    top_draw_text(y, x, COLS, text, A_NORMAL);
    if (end < COLS)
        top_draw_text(y, end + 2, COLS, sensors, A_NORMAL);
}

/* The line behind them. */
static int show_devices(const struct screen *screen)
{
    int y = 1;

    for (unsigned i = 0; i < screen->history.device_count && i < DEVICE_LINES_MAX; i++)
        if (y < LINES / 3)
            show_device(y++, &screen->history.device[i]);
    return y;
}

/* ---- colors ---- */

/* The column by which programs have their colors. */
static const char *color_column(const struct screen *screen)
{
    static const char *const names[] = {"user", "user", "group", "server"};

    return names[screen->options->choice.grouping];
}

static void color_name(const struct screen *screen, const struct client_row *row,
                       char name[COLUMN_CELL])
{
    const char *column = color_column(screen);

    if (row->client)
        client_column_find(column, strlen(column))->format(row, name);
    else
        text_copy(name, COLUMN_CELL, row->group);
}

static bool is_first_of_name(const struct screen *screen, unsigned which, const char *name)
{
    char earlier[COLUMN_CELL];

    for (unsigned i = 0; i < which; i++) {
        color_name(screen, &screen->rows.row[i], earlier);
        if (!strcmp(earlier, name))
            return false;
    }
    return true;
}

/* "user:  ■ alice  ■ bob". The line behind it. */
static int show_legend(const struct screen *screen, int y)
{
    char name[COLUMN_CELL];
    int x;

    if (!top_draw_has_colors() || LINES < 12)
        return y;
    top_draw_line(y, "", A_NORMAL);
    x = top_draw_text(y, 0, COLS, color_column(screen), A_DIM);
    for (unsigned i = 0; i < screen->rows.count && x < COLS - 4; i++) {
        attr_t color;

        color_name(screen, &screen->rows.row[i], name);
        if (!is_first_of_name(screen, i, name))
            continue;
        color = top_draw_color_of(name);
        x = top_draw_text(y, x + 2, COLS, top_draw_square(), color);
        x = top_draw_text(y, x + 1, COLS, name, color);
    }
    return y + 1;
}

/* ---- graphs ---- */

/* The first device that the program works on, else the first of all. */
static const struct top_device *device_of_program(const struct screen *screen,
                                                  const struct command_client *client)
{
    const struct command_server *server =
        client ? snapshot_server_of(&screen->sample->now, client) : NULL;
    unsigned first = client && client->row.device_mask
                         ? (unsigned)__builtin_ctzll(client->row.device_mask)
                         : SERVER_MAX_DEVICES;

    for (unsigned i = 0; server && i < screen->history.device_count; i++)
        if (first < server->device_count &&
            !memcmp(server->devices[first].uuid, screen->history.device[i].uuid,
                    sizeof(server->devices[first].uuid)))
            return &screen->history.device[i];
    return screen->history.device_count ? &screen->history.device[0] : NULL;
}

static void show_device_graph(const struct screen *screen, int y, int height, int width)
{
    const struct top_device *device = device_of_program(screen, top_selected_client(screen));
    char text[TOP_LINE_CAPACITY];

    if (!device)
        return;
    text_format(text, sizeof(text), "GPU %u, SM%% of %u SMs, last %.0f s", device->ordinal,
                device->device->sm_count, (width - TOP_AXIS_WIDTH) * screen->options->interval);
    top_draw_text(y, 0, width, text, A_DIM);
    top_draw_graph(y + 1, 0, height, width, &device->sm_use, top_draw_color_of(""));
}

/* The sums of a group's programs. */
static const struct top_series *sum_of_group(const struct screen *screen, const char *group)
{
    static struct top_series sum;

    sum = (struct top_series){.count = TOP_HISTORY_LENGTH};
    for (unsigned i = 0; i < screen->rows.count; i++) {
        const struct client_row *row = &screen->rows.row[i];
        const struct top_series *series =
            row->client ? top_history_of(&screen->history, row->client) : NULL;

        for (unsigned back = 0; series && back < TOP_HISTORY_LENGTH; back++)
            if (!strcmp(row->group, group) && top_series_share(series, back) > 0)
                sum.share[TOP_HISTORY_LENGTH - 1 - back] += top_series_share(series, back);
    }
    return &sum;
}

/* Of the selected program or group. */
static void show_selected_graph(const struct screen *screen, int y, int height, int x)
{
    char text[TOP_LINE_CAPACITY], name[COLUMN_CELL];
    const struct top_series *series;

    if (screen->selected >= screen->rows.count)
        return;
    const struct client_row *row = &screen->rows.row[screen->selected];
    color_name(screen, row, name);
    if (row->client) {
        text_format(text, sizeof(text), "Program %d, SM%%", row->client->row.identity.pid);
        series = top_history_of(&screen->history, row->client);
    } else {
        text_format(text, sizeof(text), "%s %s, SM%%", color_column(screen), name);
        series = sum_of_group(screen, row->group);
    }
    top_draw_text(y, x, COLS, text, A_DIM);
    top_draw_graph(y + 1, x, height, COLS - x, series, top_draw_color_of(name));
}

/* Side by side; on a low terminal none. The line behind them. */
static int show_graphs(const struct screen *screen, int y)
{
    int height = LINES >= 22 ? 3 : LINES >= 18 ? 2 : 0, half = (COLS - 2) / 2;

    if (!height || !screen->history.device_count)
        return y;
    for (int i = 0; i <= height; i++)
        top_draw_line(y + i, "", A_NORMAL);
    show_device_graph(screen, y, height, half);
    show_selected_graph(screen, y, height, half + 2);
    return y + height + 1;
}

/* ---- programs ---- */

static double memory_share(const struct client_row *row)
{
    uint64_t whole = row->memory_limit ? row->memory_limit : row->memory_total;

    return whole ? (double)row->memory / (double)whole : 0;
}

static attr_t cell_attributes(const struct screen *screen, const struct client_row *row,
                              const struct client_column *column)
{
    const char *colored = row->client ? color_column(screen) : "command";
    char name[COLUMN_CELL];

    if (strcmp(column->name, colored))
        return A_NORMAL;
    color_name(screen, row, name);
    return top_draw_color_of(name);
}

static void show_row(const struct screen *screen, int y, unsigned which)
{
    const struct client_row *row = &screen->rows.row[which];
    bool selected = which == screen->selected;
    attr_t attributes = selected ? A_REVERSE : row->client ? A_NORMAL : A_BOLD;
    char cell[COLUMN_CELL];
    int x = 0;

    top_draw_line(y, "", attributes);
    for (unsigned i = 0; i < screen->table.count; i++) {
        const struct client_column *column = screen->table.columns[i];
        attr_t color = selected ? A_NORMAL : cell_attributes(screen, row, column);

        client_table_cell(&screen->table, i, row, cell);
        if (!strcmp(column->name, "bar") && i + 1 < screen->table.count)
            x = top_draw_bar(y, x, (int)screen->table.width[i], memory_share(row)) + 1;
        else
            x = top_draw_text(y, x, COLS, cell, attributes | color) + 1;
    }
}

static void show_titles(const struct screen *screen, int y)
{
    char line[TOP_LINE_CAPACITY];

    client_table_format(&screen->table, NULL, line, sizeof(line));
    top_draw_line(y, line, A_REVERSE);
}

static void show_rows(struct screen *screen, int y)
{
    unsigned space = LINES - 1 > y ? (unsigned)(LINES - 1 - y) : 0;

    if (screen->selected < screen->first)
        screen->first = screen->selected;
    if (space && screen->selected >= screen->first + space)
        screen->first = screen->selected - space + 1;
    for (unsigned i = screen->first; i < screen->first + space; i++, y++)
        if (i < screen->rows.count)
            show_row(screen, y, i);
        else
            top_draw_line(y, "", A_NORMAL);
}

/* ---- all ---- */

static void show_help(void)
{
    static const char *const lines[] = {
        "funnel top: keys",
        "",
        "  arrows, page up, page down   choose a program; so do a click and the wheel",
        "  < >                          the column to sort by, or click it      r  reverse",
        "  /                            words that programs have to fit; none shows all",
        "  t                            by user, by group, by server, or not",
        "  s                            share of the multiprocessors: percent, or none",
        "  m                            memory limit: 512M, 2G, or none",
        "  p                            priority: normal, or below normal",
        "  k                            take the GPU from the program",
        "  + -                          the time between two samples",
        "  q                            quit",
        "",
        "The graphs show the share of the multiprocessors in use, of the device and of the",
        "program or group that is selected, the newest sample at the right.",
        "",
        "Any key goes back.",
    };

    erase();
    for (int i = 0; i < (int)(sizeof(lines) / sizeof(*lines)) && i < LINES; i++)
        top_draw_line(i, lines[i], i ? A_NORMAL : A_BOLD);
    refresh();
}

static void show_last_line(const struct screen *screen)
{
    const struct client_choice *choice = &screen->options->choice;
    char line[TOP_LINE_CAPACITY];

    text_format(line, sizeof(line), "[%s%s%s%s, %gs]  %s", choice->reverse ? "-" : "",
                choice->sort ? choice->sort->name : "unsorted",
                choice->filter && *choice->filter ? ", only " : "",
                choice->filter ? choice->filter : "", screen->options->interval,
                COLS < KEYS_WIDE ? few_keys : all_keys);
    top_draw_line(LINES - 1, *screen->message ? screen->message : line, A_DIM);
}

void top_show_question(const char *question)
{
    top_draw_line(LINES - 1, question, A_BOLD);
    addch(' ');
}

void top_show(struct screen *screen)
{
    char line[TOP_LINE_CAPACITY];

    if (screen->helps) {
        show_help();
        return;
    }
    if (*screen->sample->reason)
        text_copy(screen->message, sizeof(screen->message), screen->sample->reason);
    top_sample_title(screen->sample, line, sizeof(line));
    top_draw_line(0, line, A_BOLD);
    screen->titles_y = show_graphs(screen, show_legend(screen, show_devices(screen)));
    show_titles(screen, screen->titles_y);
    show_rows(screen, screen->titles_y + 1);
    show_last_line(screen);
    refresh();
}
#endif
