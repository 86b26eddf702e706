/* SPDX-License-Identifier: Apache-2.0 */
/* See top_actions.h. */
#include "top_actions.h"

#ifdef HAVE_NCURSES
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>

#include "daemon_lines.h"
#include "text.h"

/* ncurses has the wheel's second button where its mouse interface is of version 2. */
#ifdef BUTTON5_PRESSED
#define TOP_WHEEL_DOWN BUTTON5_PRESSED
#else
#define TOP_WHEEL_DOWN 0
#endif

/* ---- questions ---- */

/* A line that the user types; false when it was given up. */
static bool ask(const char *question, char *answer, int capacity)
{
    bool given;

    top_show_question(question);
    echo();
    curs_set(1);
    timeout(-1);
    given = getnstr(answer, capacity - 1) == OK;
    noecho();
    curs_set(0);
    return given;
}

static void ask_filter(struct screen *screen)
{
    struct top_options *options = screen->options;
    char words[sizeof(options->filter)] = "", unknown[64];

    if (!ask("Filter (NAME=VALUE, or parts):", words, sizeof(words)))
        return;
    if (!client_filter_is_valid(words, unknown, sizeof(unknown))) {
        text_format(screen->message, sizeof(screen->message), "There is no column %s", unknown);
        return;
    }
    text_copy(options->filter, sizeof(options->filter), words);
    options->choice.filter = *words ? options->filter : NULL;
}

static const struct command_client *demand_client(struct screen *screen)
{
    const struct command_client *client = top_selected_client(screen);

    if (!client)
        text_copy(screen->message, sizeof(screen->message), "Choose a program first");
    return client;
}

/* The number by which the daemon knows it: in another PID namespace its ID. */
static long number_of(const struct command_client *client)
{
    return client->row.identity.pid ? client->row.identity.pid : (long)client->row.id;
}

static void run_command_line(struct screen *screen, const char *line)
{
    char answer[TOP_LINE_CAPACITY] = "There is no daemon";

    if (screen->sample->fd < 0 || daemon_try(screen->sample->fd, line, answer, sizeof(answer)))
        text_format(screen->message, sizeof(screen->message), "Refused: %s", answer);
    else
        text_format(screen->message, sizeof(screen->message), "Done: %s", line);
}

static void ask_limit(struct screen *screen, const char *option, const char *what)
{
    const struct command_client *client = demand_client(screen);
    char question[128], value[32] = "", line[DAEMON_LINE_MAX];

    if (!client)
        return;
    text_format(question, sizeof(question), "%s of program %ld:", what, number_of(client));
    if (!ask(question, value, sizeof(value)) || !*value)
        return;
    if (strpbrk(value, " \t")) {
        text_copy(screen->message, sizeof(screen->message), "One word, please");
        return;
    }
    text_format(line, sizeof(line), "limit --client %ld --%s %s", number_of(client), option, value);
    run_command_line(screen, line);
}

static void change_priority(struct screen *screen)
{
    const struct command_client *client = demand_client(screen);
    char line[DAEMON_LINE_MAX];

    if (!client)
        return;
    text_format(line, sizeof(line), "limit --client %ld --priority %d", number_of(client),
                !client->row.limits.priority);
    run_command_line(screen, line);
}

static void ask_end(struct screen *screen)
{
    const struct command_client *client = demand_client(screen);
    char question[128], answer[8] = "", line[DAEMON_LINE_MAX];

    if (!client)
        return;
    text_format(question, sizeof(question), "Take the GPU from program %ld? (yes)",
                number_of(client));
    if (!ask(question, answer, sizeof(answer)) || strcmp(answer, "yes"))
        return;
    text_format(line, sizeof(line), "client terminate %ld", number_of(client));
    run_command_line(screen, line);
}

/* ---- keys ---- */

/* The column beside that which sorts now, among those that are shown. */
static void move_sort(struct screen *screen, int step)
{
    const struct client_table *table = &screen->table;
    struct client_choice *choice = &screen->options->choice;
    int at = -1;

    for (unsigned i = 0; i < table->count; i++)
        if (table->columns[i] == choice->sort)
            at = (int)i;
    at = at < 0 ? 0 : at + step;
    if (at >= 0 && at < (int)table->count)
        choice->sort = table->columns[at];
}

static void move_selection(struct screen *screen, int step)
{
    top_select(screen, (int)screen->selected + step);
}

static void change_interval(struct screen *screen, double factor)
{
    double seconds = screen->options->interval * factor;

    screen->options->interval = seconds < 0.25 ? 0.25 : seconds > 60 ? 60 : seconds;
}

static void handle_choice_key(struct screen *screen, int key)
{
    struct client_choice *choice = &screen->options->choice;

    if (key == '<' || key == KEY_LEFT)
        move_sort(screen, -1);
    else if (key == '>' || key == KEY_RIGHT)
        move_sort(screen, 1);
    else if (key == 'r')
        choice->reverse = !choice->reverse;
    else if (key == 't')
        choice->grouping = (choice->grouping + 1) % (GROUP_BY_SERVER + 1);
    else if (key == '/')
        ask_filter(screen);
    else if (key == '+')
        change_interval(screen, 2);
    else if (key == '-')
        change_interval(screen, 0.5);
}

static void handle_program_key(struct screen *screen, int key)
{
    if (key == KEY_UP || key == KEY_DOWN)
        move_selection(screen, key == KEY_UP ? -1 : 1);
    else if (key == KEY_PPAGE || key == KEY_NPAGE)
        move_selection(screen, key == KEY_PPAGE ? -LINES / 2 : LINES / 2);
    else if (key == 's')
        ask_limit(screen, "sm", "Share of the multiprocessors in percent, or none,");
    else if (key == 'm')
        ask_limit(screen, "memory", "Memory limit (512M, 2G, none)");
    else if (key == 'p')
        change_priority(screen);
    else if (key == 'k')
        ask_end(screen);
}

/* ---- the mouse ---- */

/* The column under a click on the titles sorts; a second click reverses. */
static void sort_by_click(struct screen *screen, int x)
{
    const struct client_table *table = &screen->table;
    struct client_choice *choice = &screen->options->choice;
    int end = 0;

    for (unsigned i = 0; i < table->count; i++) {
        end = i + 1 < table->count ? end + (int)table->width[i] + 1 : COLS;
        if (x >= end)
            continue;
        choice->reverse = choice->sort == table->columns[i] && !choice->reverse;
        choice->sort = table->columns[i];
        return;
    }
}

static void handle_mouse(struct screen *screen)
{
    int row;
    MEVENT event;

    if (getmouse(&event) != OK)
        return;
    row = event.y - screen->titles_y - 1;
    if (event.bstate & BUTTON4_PRESSED)
        move_selection(screen, -1);
    else if (event.bstate & TOP_WHEEL_DOWN)
        move_selection(screen, 1);
    else if (row == -1)
        sort_by_click(screen, event.x);
    else if (row >= 0 && screen->first + (unsigned)row < screen->rows.count)
        top_select(screen, (int)screen->first + row);
}

bool top_handle_key(struct screen *screen, int key)
{
    if (screen->helps) {
        screen->helps = false;
        erase();
        return true;
    }
    *screen->message = '\0';
    if (key == 'q' || key == 'Q')
        return false;
    if (key == 'h' || key == '?')
        screen->helps = true;
    if (key == KEY_RESIZE)
        erase();
    handle_choice_key(screen, key);
    handle_program_key(screen, key);
    if (key == KEY_MOUSE)
        handle_mouse(screen);
    return true;
}

#endif
