/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvidia-cuda-mps-control: the daemon's start and the command shell. Options, texts and exit
 * statuses are NVIDIA's, so scripts need not know which of the two they talk to.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command_client.h"
#include "command_help.h"
#include "device_probe.h"
#include "fd.h"
#include "grammar.h"
#include "paths.h"
#include "text.h"

#ifdef HAVE_LIBEDIT
#include <editline/readline.h>
#endif

static const char usage[] =
    "Usage: nvidia-cuda-mps-control [-d | -f] [-S] [-multiuser-server] [-p 2|3] [-a FILE] | "
    "COMMAND | -q | -v "
    "| -h\n"
    "\n"
    "Funnel's stand-in for the control program of NVIDIA MPS. Without an option it reads commands\n"
    "from standard input, one a line, and prints their answers.\n"
    "\n"
    "  -d, --daemon               start the daemon in the background\n"
    "  -f, --foreground           start it in the foreground, with the log on standard output, "
    "too\n"
    "  -S, --static-partitioning  every client runs in a static partition; see sm_partition\n"
    "  -multiuser-server          (-M, -m, --multiuser) one server for all users; needs root\n"
    "  -p, --protocol VERSION     of the interface: 2 or 3; any daemon takes the commands of "
    "both.\n"
    "                             CUDA_MPS_PROTOCOL_VERSION overrides it\n"
    "  -a, --apply FILE           create the servers and namespaces of this file\n"
    "  -q, --quit                 the same as the command quit\n"
    "  -v, --version              print the version of CUDA MPS that the commands follow\n"
    "  -h, --help                 print this, and all commands\n"
    "\n"
    "Examples:\n"
    "  nvidia-cuda-mps-control -d\n"
    "  echo get_server_list | nvidia-cuda-mps-control\n"
    "  nvidia-cuda-mps-control client list --format=csv\n"
    "  echo quit | nvidia-cuda-mps-control\n"
    "\n"
    "`funnel help` lists the commands of Funnel's own front end, which prints more.\n";

static void print_line(void *context, const char *text)
{
    fprintf(context, "%s\n", text);
}

static int print_help(FILE *out)
{
    fprintf(out, "%s\n", usage);
    command_help_all(print_line, out);
    return ferror(out) != 0;
}

/* ---- the daemon ---- */

struct options {
    const char *daemon;   /* "-d", "-f", or NULL */
    const char *protocol; /* "2", or what was asked for instead */
    const char *config;   /* of -a, or NULL */
    bool multiuser;
    bool static_partitioning;
    bool quit;
};

/* The environment overrides the option. */
static const char *asked_protocol(const char *option)
{
    const char *variable = getenv("CUDA_MPS_PROTOCOL_VERSION");

    return variable && *variable ? variable : option;
}

/* NVIDIA's daemon has no other device than NVIDIA's, so the fallback must not stay unnoticed. */
static void note_software_gpu(void)
{
    const char *device = getenv("FUNNEL_DEVICE");

    if ((!device || !*device || !strcmp(device, "auto")) && !device_probe_cuda())
        fprintf(stderr, "NVIDIA's driver does not work here: programs will run on the software GPU "
                        "(FUNNEL_DEVICE=soft chooses it, FUNNEL_DEVICE=cuda forbids it)\n");
}

/* Tools look for this program's name and for the pipe directory in the daemon's /proc entry. */
static int become_daemon(const struct paths *paths, const struct options *options)
{
    const char *words[10] = {"nvidia-cuda-mps-control", options->daemon};
    unsigned count = 2;
    char program[PATH_MAX];
    int error = path_of_sibling("bin/funneld", program, sizeof(program));

    if (error || setenv("CUDA_MPS_PIPE_DIRECTORY", paths->pipe, 1) ||
        setenv("CUDA_MPS_LOG_DIRECTORY", paths->log, 1)) {
        fprintf(stderr, "Cannot find funneld or set its environment\n");
        return 1;
    }
    if (options->multiuser)
        words[count++] = "-M";
    if (options->static_partitioning)
        words[count++] = "-S";
    if (asked_protocol(options->protocol)[0] == '3')
        words[count++] = "--print-directory";
    if (options->config) {
        words[count++] = "--apply";
        words[count++] = options->config;
    }
    note_software_gpu();
    execv(program, (char **)words);
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
        if (kind == COMMAND_DONE)
            return message.done.status;
        if (kind == COMMAND_OUTPUT)
            puts(message.text.text);
    }
    return kind;
}

static bool is_command(const char *line, const char *name)
{
    line += strspn(line, " \t");
    return strcspn(line, " \t\r\n") == strlen(name) && text_starts_with(line, name);
}

/* Help needs no daemon: whether the line asks for it, with the status that it leaves. */
static bool answer_help(const char *line, int *ret_status)
{
    char copy[COMMAND_TEXT_MAX], *words[GRAMMAR_WORDS_MAX];
    bool found;
    int count = text_copy(copy, sizeof(copy), line) ? grammar_split(copy, words) : 0;

    if (count <= 0 || !command_help(words, count, print_line, stdout, &found))
        return false;
    fflush(stdout);
    *ret_status = found ? COMMAND_OK : COMMAND_REJECTED;
    return true;
}

/* One line: -1 = go on with the next, else the exit status. NVIDIA's stays 0 for rejected commands.
 */
static int run_line(int fd, const char *line)
{
    int status;

    if (answer_help(line, &status))
        return -1;
    status = command_send_line(fd, line);
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
    return is_command(line, "quit") && status != COMMAND_REJECTED ? status : -1;
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
/* libedit would quote the = of an option as if it were part of a file name. */
static char *without_equals_sign(char *word)
{
    char *sign = word ? strchr(word, '=') : NULL;

    if (sign)
        *sign = '\0';
    if (word)
        rl_completion_append_character = sign ? '=' : ' ';
    return word;
}

/* The next word that may stand here and begins with `text`; libedit frees what it gets. */
static char *complete(const char *text, int again)
{
    static unsigned next;
    char before[COMMAND_TEXT_MAX];
    size_t length = (size_t)rl_point - strlen(text);

    if (!text_format(before, sizeof(before), "%.*s", (int)length, rl_line_buffer))
        return NULL;
    next = again ? next + 1 : 0;
    return without_equals_sign(command_complete(before, text, next));
}

static int run_prompt(int fd)
{
    char *line;
    int status = -1;

    puts("exit leaves this prompt; quit ends the daemon; help lists the commands");
    rl_completion_entry_function = complete;
    while (status < 0 && (line = readline("mps> "))) {
        if (*line)
            add_history(line);
        status = is_command(line, "exit") ? 0 : run_line(fd, line);
        free(line);
    }
    return status < 0 ? 0 : status;
}
#else
static int run_prompt(int fd)
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
        /* Scripts read NVIDIA's text above; this is the reason. */
        if (error != -ENOENT && error != -ECONNREFUSED)
            fprintf(stderr, "%s\n", reason);
        return 1;
    }
    return isatty(STDIN_FILENO) ? run_prompt(fd) : read_commands(fd);
}

/* ---- options ---- */

static int refuse_usage(const char *message)
{
    fprintf(stderr, "%s\n", message);
    return 1;
}

static bool is_either(const char *option, const char *letter, const char *word)
{
    return !strcmp(option, letter) || !strcmp(option, word);
}

/* -1 = go on, else the exit status. `value` is the next word, or NULL. */
static int parse_option(const char *option, const char *value, struct options *options)
{
    if (is_either(option, "-d", "--daemon"))
        options->daemon = "-d";
    else if (is_either(option, "-f", "--foreground"))
        options->daemon = "-f";
    else if (is_either(option, "-M", "-multiuser-server") || is_either(option, "-m", "--multiuser"))
        options->multiuser = true;
    else if (is_either(option, "-v", "--version"))
        return printf("%d\n", MPS_BINARY_VERSION) < 0;
    else if (is_either(option, "-h", "--help"))
        return print_help(stdout);
    else if (is_either(option, "-S", "--static-partitioning"))
        options->static_partitioning = true;
    else if (is_either(option, "-q", "--quit"))
        options->quit = true;
    else if (is_either(option, "-p", "--protocol"))
        options->protocol = value ? value : "";
    else if (text_starts_with(option, "--protocol="))
        options->protocol = option + strlen("--protocol=");
    else if (is_either(option, "-a", "--apply"))
        options->config = value ? value : "";
    else if (text_starts_with(option, "--apply="))
        options->config = option + strlen("--apply=");
    else {
        fprintf(stderr, "Unknown option %s\n%s", option, usage);
        return 1;
    }
    return -1;
}

/* 0, or 1 after an error message. The environment overrides the option. A daemon takes the commands
 * of both versions, so nothing else depends on it. */
static int check_protocol(const char *option)
{
    const char *protocol = asked_protocol(option);

    if (!strcmp(protocol, "2") || !strcmp(protocol, "3"))
        return 0;
    fprintf(stderr, "The MPS interface has versions 2 and 3; %s asks for \"%s\"\n",
            protocol == option ? "-p" : "CUDA_MPS_PROTOCOL_VERSION", protocol);
    return 1;
}

/* A command on the command line, as in version 3: its status is the exit status. */
static int run_words(const struct paths *paths, char **words)
{
    char reason[COMMAND_REASON_MAX], line[COMMAND_TEXT_MAX] = "";
    _cleanup_fd_ int fd = -1;
    int status;

    for (; *words; words++)
        if (strpbrk(*words, " \t\r\n") ||
            !text_format(line + strlen(line), sizeof(line) - strlen(line), "%s ", *words))
            return refuse_usage("A word of a command is too long, or has blanks in it");
    if (answer_help(line, &status))
        return status;
    if (command_connect(paths, &fd, reason)) {
        puts("Cannot find MPS control daemon process");
        return 1;
    }
    status = command_send_line(fd, line);
    if (!status)
        status = print_answer(fd);
    return status < 0 ? refuse_usage("The connection to the MPS control daemon was lost") : status;
}

static int quit_daemon(const struct paths *paths)
{
    char reason[COMMAND_REASON_MAX];
    _cleanup_fd_ int fd = -1;
    int status;

    if (command_connect(paths, &fd, reason)) {
        puts("Cannot find MPS control daemon process");
        return 1;
    }
    status = run_line(fd, "quit");
    return status < 0 ? 1 : status;
}

int main(int argc, char **argv)
{
    struct options options = {.protocol = "2"};
    struct paths paths;
    int status = -1, error;

    int i;

    for (i = 1; i < argc && status < 0 && *argv[i] == '-'; i++) {
        status = parse_option(argv[i], argv[i + 1], &options);
        i += (is_either(argv[i], "-p", "--protocol") || is_either(argv[i], "-a", "--apply")) &&
             argv[i + 1];
    }
    if (status >= 0)
        return status;
    if (check_protocol(options.protocol))
        return 1;
    error = options.daemon ? paths_resolve(&paths) : paths_find_daemon(&paths);
    if (error)
        return refuse_usage(paths_error_text(error));
    if (i < argc && (options.daemon || options.quit))
        return refuse_usage("A command goes with none of -d, -f and -q");
    if (options.daemon && options.quit)
        return refuse_usage("-q goes neither with -d nor with -f");
    if (options.daemon)
        return become_daemon(&paths, &options);
    if (options.multiuser)
        return refuse_usage("-multiuser-server goes with -d or -f");
    if (options.static_partitioning)
        return refuse_usage("-S goes with -d or -f");
    if (options.config)
        return refuse_usage("-a goes with -d or -f");
    if (i < argc)
        return run_words(&paths, argv + i);
    return options.quit ? quit_daemon(&paths) : run_shell(&paths);
}
