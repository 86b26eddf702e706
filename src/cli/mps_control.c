/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvidia-cuda-mps-control: the daemon's start and the command shell, with the options, texts and
 * exit statuses of NVIDIA's, so that scripts need not know which of the two they talk to.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command_client.h"
#include "fd.h"
#include "paths.h"
#include "text.h"

#ifdef HAVE_LIBEDIT
#include <editline/readline.h>
#endif

static const char usage[] =
    "Usage: nvidia-cuda-mps-control [-d | -f] [-S] [-multiuser-server] | -v | -h\n"
    "\n"
    "Funnel's stand-in for the control program of NVIDIA MPS. Without an option it reads commands\n"
    "from standard input, one a line, and prints their answers.\n"
    "\n"
    "  -d                 start the daemon in the background\n"
    "  -f                 start it in the foreground, with the log on standard output, too\n"
    "  -S                 every client runs in a static partition; see sm_partition\n"
    "  -multiuser-server  (-M) one server for all users; needs root\n"
    "  -v                 print the version of CUDA MPS that the commands follow\n"
    "  -h                 print this\n"
    "\n"
    "Examples:\n"
    "  nvidia-cuda-mps-control -d\n"
    "  echo get_server_list | nvidia-cuda-mps-control\n"
    "  echo quit | nvidia-cuda-mps-control\n"
    "\n"
    "`funnel help` lists the commands of Funnel's own front end, which says more.\n";

static const struct {
    const char *name;
    const char *grammar;
    const char *help;
} commands[] = {
#define COMMAND(name, who, grammar, help) {#name, grammar, help},
#include "command_list.h"
#undef COMMAND
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(*commands))

static int print_help(FILE *out)
{
    fprintf(out, "%s\nCommands:\n", usage);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %s%s%s\n      %s\n", commands[i].name, *commands[i].grammar ? " " : "",
                commands[i].grammar, commands[i].help);
    return ferror(out) != 0;
}

/* ---- the daemon ---- */

/* Tools look for this program's name and for the pipe directory in the daemon's /proc entry. */
static int become_daemon(const struct paths *paths, const char *how, bool multiuser, bool statics)
{
    const char *more = multiuser ? "-M" : statics ? "-S" : NULL;

    char program[PATH_MAX];
    int error = path_of_sibling("bin/funneld", program, sizeof(program));

    if (error || setenv("CUDA_MPS_PIPE_DIRECTORY", paths->pipe, 1) ||
        setenv("CUDA_MPS_LOG_DIRECTORY", paths->log, 1)) {
        fprintf(stderr, "Cannot find funneld or set its environment\n");
        return 1;
    }
    execl(program, "nvidia-cuda-mps-control", how, more,
          multiuser && statics ? "-S" : NULL, (char *)NULL);
    fprintf(stderr, "Cannot run %s: %s\n", program, strerror(errno));
    return 1;
}

/* ---- the shell ---- */

/* Prints one answer: its status, or -errno when the daemon is gone. */
static int print_answer(int fd)
{
    static union command_any message;
    size_t length;
    int kind;

    while ((kind = command_receive(fd, &message, &length)) >= 0) {
        if (kind == COMMAND_OUTPUT)
            puts(message.text.text);
        else if (kind == COMMAND_DONE)
            return message.done.status;
    }
    return kind;
}

static bool is_quit(const char *line)
{
    line += strspn(line, " \t");
    return strcspn(line, " \t\r\n") == strlen("quit") && text_starts_with(line, "quit");
}

/* One line: -1 = go on with the next, else the exit status. NVIDIA's stays 0 for rejected commands.
 */
static int run_line(int fd, const char *line)
{
    int status = command_send_line(fd, line);

    if (status == -EMSGSIZE) {
        puts("The line is too long");
        return -1;
    }
    if (!status)
        status = print_answer(fd);
    fflush(stdout);
    if (status < 0) {
        puts("The connection to the MPS control daemon was lost");
        return 1;
    }
    return is_quit(line) && status != COMMAND_REJECTED ? status : -1;
}

static int read_commands(int fd)
{
    char *line = NULL;
    size_t capacity = 0;
    int status = -1;

    while (status < 0 && getline(&line, &capacity, stdin) >= 0)
        status = run_line(fd, line);
    free(line);
    return status < 0 ? 0 : status;
}

#ifdef HAVE_LIBEDIT
/* The next command that begins with `text`; libedit frees what it gets. */
static char *complete(const char *text, int again)
{
    static size_t next;

    next = again ? next : 0;
    while (next < COMMAND_COUNT)
        if (text_starts_with(commands[next++].name, text))
            return strdup(commands[next - 1].name);
    return NULL;
}

static int converse(int fd)
{
    char *line;
    int status = -1;

    rl_completion_entry_function = complete;
    while (status < 0 && (line = readline("mps> "))) {
        if (*line)
            add_history(line);
        status = run_line(fd, line);
        free(line);
    }
    return status < 0 ? 0 : status;
}
#else
static int converse(int fd)
{
    return read_commands(fd);
}
#endif

static int run_shell(const struct paths *paths)
{
    char reason[COMMAND_REASON_MAX];
    _cleanup_fd_ int fd = -1;
    int error = command_connect(paths, &fd, reason);

    if (error) {
        puts("Cannot find MPS control daemon process");
        /* NVIDIA's text is for scripts; this is for whoever wonders why. */
        if (error != -ENOENT && error != -ECONNREFUSED)
            fprintf(stderr, "%s\n", reason);
        return 1;
    }
    return isatty(STDIN_FILENO) ? converse(fd) : read_commands(fd);
}

/* ---- options ---- */

struct options {
    const char *daemon; /* "-d", "-f", or NULL */
    bool multiuser;
    bool statics;
};

static int refuse(const char *sentence)
{
    fprintf(stderr, "%s\n", sentence);
    return 1;
}

/* -1 = go on, else the exit status. */
static int parse_option(const char *option, struct options *options)
{
    if (!strcmp(option, "-d") || !strcmp(option, "-f"))
        options->daemon = option;
    else if (!strcmp(option, "-M") || !strcmp(option, "-multiuser-server"))
        options->multiuser = true;
    else if (!strcmp(option, "-v") || !strcmp(option, "--version"))
        return printf("%d\n", MPS_BINARY_VERSION) < 0;
    else if (!strcmp(option, "-h") || !strcmp(option, "--help"))
        return print_help(stdout);
    else if (!strcmp(option, "-S") || !strcmp(option, "--static-partitioning"))
        options->statics = true;
    else if (!strcmp(option, "-p") || text_starts_with(option, "--protocol"))
        return refuse("Funnel speaks version 2 of the MPS interface only, and takes no -p");
    else {
        fprintf(stderr, "Unknown option %s\n%s", option, usage);
        return 1;
    }
    return -1;
}

int main(int argc, char **argv)
{
    struct options options = {NULL, false, false};
    struct paths paths;
    int status = -1;

    for (int i = 1; i < argc && status < 0; i++)
        status = parse_option(argv[i], &options);
    if (status >= 0)
        return status;
    if (options.daemon ? paths_resolve(&paths) : paths_find_daemon(&paths))
        return refuse("The path of the pipe or log directory is too long");
    if (options.daemon)
        return become_daemon(&paths, options.daemon, options.multiuser, options.statics);
    if (options.multiuser)
        return refuse("-multiuser-server goes with -d or -f");
    if (options.statics)
        return refuse("-S goes with -d or -f");
    return run_shell(&paths);
}
