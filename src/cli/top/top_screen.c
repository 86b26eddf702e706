/* SPDX-License-Identifier: Apache-2.0 */
/* See top_screen.h. Lines from the top: a title, one for each device, the titles of the columns,
 * the programs; the last line has messages, questions and the keys. */
#include "top_screen.h"

#include <unistd.h>

#include "cli.h"

#ifdef HAVE_NCURSES
#include <locale.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>

#include "client_table.h"
#include "clock.h"
#include "daemon_lines.h"
#include "text.h"

#define LINE_CAPACITY 1024
#define DEVICE_LINES_MAX 8

struct screen {
    struct top_options *options;
    struct top_sample *sample;
    struct client_rows rows;
    struct client_table table;
    unsigned selected, first; /* rows */
    pid_t pid;                /* of the selected program, which may move */
    uint32_t id;
    char message[LINE_CAPACITY];
    bool helps;
};

static const char keys[] =
    "q quit  h help  < > sort  r reverse  / filter  t tree  s SMs  m memory  p priority  k end";

bool top_screen_is_there(void)
{
    return isatty(STDOUT_FILENO) && isatty(STDIN_FILENO);
}

/* ---- what is shown ---- */

/* Without the line's last column, so that no terminal wraps. */
static void put_line(int y, const char *text, int attributes)
{
    move(y, 0);
    clrtoeol();
    attron(attributes);
    addnstr(text, COLS);
    if (attributes & A_REVERSE)
        for (int x = getcurx(stdscr); getcury(stdscr) == y && x < COLS - 1; x++)
            addch(' ');
    attroff(attributes);
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

static void remember_selection(struct screen *screen)
{
    const struct command_client *client =
        screen->selected < screen->rows.count ? screen->rows.row[screen->selected].client : NULL;

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
    if (screen->selected >= rows.count)
        screen->selected = rows.count ? rows.count - 1 : 0;
    remember_selection(screen);
}

static int show_devices(const struct screen *screen)
{
    char line[LINE_CAPACITY];
    int y = 1;

    while (y <= DEVICE_LINES_MAX && y < LINES / 2 &&
           top_sample_device(screen->sample, (unsigned)y - 1, line, sizeof(line)))
        put_line(y++, line, A_NORMAL);
    return y;
}

static void show_rows(struct screen *screen, int y)
{
    unsigned room = LINES - 1 > y ? (unsigned)(LINES - 1 - y) : 0;
    char line[LINE_CAPACITY];

    if (screen->selected < screen->first)
        screen->first = screen->selected;
    if (room && screen->selected >= screen->first + room)
        screen->first = screen->selected - room + 1;
    for (unsigned i = screen->first; i < screen->first + room; i++, y++) {
        if (i >= screen->rows.count) {
            put_line(y, "", A_NORMAL);
            continue;
        }
        client_table_format(&screen->table, &screen->rows.row[i], line, sizeof(line));
        put_line(y, line,
                 i == screen->selected                ? A_REVERSE
                 : screen->rows.row[i].client == NULL ? A_BOLD
                                                      : A_NORMAL);
    }
}

static void show_help(void)
{
    static const char *const lines[] = {
        "funnel top: keys",
        "",
        "  arrows, page up, page down   choose a program",
        "  < >                          the column to sort by        r  reverse",
        "  /                            words that programs have to fit; none shows all",
        "  t                            by user, by group, by server, or not",
        "  s                            share of the multiprocessors: percent, or none",
        "  m                            memory limit: 512M, 2G, or none",
        "  p                            priority: normal, or below normal",
        "  k                            take the GPU from the program",
        "  + -                          the time between two samples",
        "  q                            quit",
        "",
        "Any key goes back.",
    };

    erase();
    for (int i = 0; i < (int)(sizeof(lines) / sizeof(*lines)) && i < LINES; i++)
        put_line(i, lines[i], i ? A_NORMAL : A_BOLD);
    refresh();
}

static void show_last_line(const struct screen *screen)
{
    const struct client_choice *choice = &screen->options->choice;
    char line[LINE_CAPACITY];

    text_format(line, sizeof(line), "[%s%s%s%s, %gs]  %s", choice->reverse ? "-" : "",
                choice->sort ? choice->sort->name : "unsorted",
                choice->filter && *choice->filter ? ", only " : "",
                choice->filter ? choice->filter : "", screen->options->interval, keys);
    put_line(LINES - 1, *screen->message ? screen->message : line, A_DIM);
}

static void show(struct screen *screen)
{
    char line[LINE_CAPACITY];
    int y;

    if (screen->helps) {
        show_help();
        return;
    }
    if (*screen->sample->reason)
        text_copy(screen->message, sizeof(screen->message), screen->sample->reason);
    top_sample_title(screen->sample, line, sizeof(line));
    put_line(0, line, A_BOLD);
    y = show_devices(screen);
    client_table_format(&screen->table, NULL, line, sizeof(line));
    put_line(y, line, A_REVERSE);
    show_rows(screen, y + 1);
    show_last_line(screen);
    refresh();
}

/* ---- questions ---- */

/* A line that the user types; false when it was given up. */
static bool ask(const char *question, char *answer, int capacity)
{
    bool given;

    put_line(LINES - 1, question, A_BOLD);
    addch(' ');
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

static const struct command_client *selected_client(struct screen *screen)
{
    const struct client_row *row =
        screen->selected < screen->rows.count ? &screen->rows.row[screen->selected] : NULL;

    if (!row || !row->client)
        text_copy(screen->message, sizeof(screen->message), "Choose a program first");
    return row ? row->client : NULL;
}

/* What the daemon knows it by: in another PID namespace its ID. */
static long number_of(const struct command_client *client)
{
    return client->row.identity.pid ? client->row.identity.pid : (long)client->row.id;
}

static void run(struct screen *screen, const char *line)
{
    char answer[LINE_CAPACITY] = "There is no daemon";

    if (screen->sample->fd < 0 || daemon_try(screen->sample->fd, line, answer, sizeof(answer)))
        text_format(screen->message, sizeof(screen->message), "Refused: %s", answer);
    else
        text_format(screen->message, sizeof(screen->message), "Done: %s", line);
}

static void ask_limit(struct screen *screen, const char *option, const char *what)
{
    const struct command_client *client = selected_client(screen);
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
    run(screen, line);
}

static void change_priority(struct screen *screen)
{
    const struct command_client *client = selected_client(screen);
    char line[DAEMON_LINE_MAX];

    if (!client)
        return;
    text_format(line, sizeof(line), "limit --client %ld --priority %d", number_of(client),
                !client->row.limits.priority);
    run(screen, line);
}

static void ask_end(struct screen *screen)
{
    const struct command_client *client = selected_client(screen);
    char question[128], answer[8] = "", line[DAEMON_LINE_MAX];

    if (!client)
        return;
    text_format(question, sizeof(question), "Take the GPU from program %ld? (yes)",
                number_of(client));
    if (!ask(question, answer, sizeof(answer)) || strcmp(answer, "yes"))
        return;
    text_format(line, sizeof(line), "client terminate %ld", number_of(client));
    run(screen, line);
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
    int last = screen->rows.count ? (int)screen->rows.count - 1 : 0;
    int selected = (int)screen->selected + step;

    screen->selected = (unsigned)(selected < 0 ? 0 : selected > last ? last : selected);
    remember_selection(screen);
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

/* False to quit. */
static bool handle_key(struct screen *screen, int key)
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
    make_rows(screen);
    return true;
}

/* Keys until it is time for the next sample; false to quit. */
static bool handle_keys_until(struct screen *screen, double end)
{
    for (;;) {
        double left = end - (double)clock_ns() / 1e9;
        int key;

        show(screen);
        if (left <= 0)
            return true;
        timeout((int)(left * 1000) + 1);
        key = getch();
        if (key != ERR && !handle_key(screen, key))
            return false;
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
    return true;
}

int top_screen_run(struct top_options *options, struct top_sample *sample)
{
    struct screen screen = {.options = options, .sample = sample};
    bool goes_on = true;

    if (!top_sample_take(sample))
        return cli_fail("%s", sample->reason);
    if (!open_terminal())
        return cli_fail("this terminal cannot be used; set TERM, or use --plain");
    while (goes_on) {
        make_rows(&screen);
        goes_on = handle_keys_until(&screen, sample->at + options->interval);
        if (goes_on && !top_sample_take(sample))
            sample->at = (double)clock_ns() / 1e9;
    }
    endwin();
    client_rows_fini(&screen.rows);
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
