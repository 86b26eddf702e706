/* SPDX-License-Identifier: Apache-2.0 */
/* funnel server, namespace, partition and memory: the daemon's commands of these modules. Options
 * are written as elsewhere in funnel, users go by name, and listings are also JSON. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "cli.h"
#include "command_help.h"
#include "daemon_lines.h"
#include "fd.h"
#include "lines.h"
#include "text.h"
#include "view_csv.h"

struct request {
    char line[DAEMON_LINE_MAX];
    bool json;
};

/* ---- from the command line to a line ---- */

static int append_word(struct request *request, const char *word)
{
    size_t used = strlen(request->line);

    if (!*word || strpbrk(word, " \t\r\n"))
        return cli_usage("\"%s\" is not one word", word);
    return text_format(request->line + used, sizeof(request->line) - used, "%s%s", used ? " " : "",
                       word)
               ? 0
               : cli_usage("the command is too long");
}

static bool is_switch(const char *option)
{
    return !strcmp(option, "--force") || !strcmp(option, "--all");
}

/* "--uid=1001" of "--uid alice"; `*at` moves on where the value is a word of its own. */
static int append_option(struct request *request, char **argv, int *at)
{
    char word[DAEMON_LINE_MAX], uid[64];
    const char *equals = strchr(argv[*at], '='), *value;
    int length = equals ? (int)(equals - argv[*at]) : (int)strlen(argv[*at]);

    if (is_switch(argv[*at]))
        return append_word(request, argv[*at]);
    value = equals ? equals + 1 : argv[*at + 1];
    if (!value)
        return cli_usage("%s wants a value", argv[*at]);
    if (!strncmp(argv[*at], "--uid", (size_t)length)) {
        if (!daemon_user_id(value, uid, sizeof(uid)))
            return cli_usage("there is no user %s", value);
        value = uid;
    }
    text_format(word, sizeof(word), "%.*s=%s", length, argv[*at], value);
    *at += !equals;
    return append_word(request, word);
}

static int make_request(struct request *request, const char *module, int argc, char **argv)
{
    int status = append_word(request, module);

    for (int i = 1; i < argc && !status; i++) {
        if (!strcmp(argv[i], "--json"))
            request->json = true;
        else if (argv[i][0] == '-')
            status = append_option(request, argv, &i);
        else
            status = append_word(request, argv[i]);
    }
    return status;
}

/* ---- the answer ---- */

static int print_json(int fd, struct request *request)
{
    struct lines lines = {.count = 0};
    int status = append_word(request, "--format=csv");

    if (!status)
        status = daemon_ask(fd, request->line, lines_add, &lines);
    if (!status)
        status = view_json_of_csv(&lines);
    lines_fini(&lines);
    return status;
}

static void print_line(void *context, const char *text)
{
    fprintf(context, "%s\n", text);
}

static int manage(const char *module, int argc, char **argv)
{
    char *words[] = {(char *)module, argc > 1 ? argv[1] : "help", "--help"};
    struct request request = {.line = ""};
    _cleanup_fd_ int fd = -1;
    bool found;
    int status;

    if (argc < 2 || !strcmp(argv[argc - 1], "--help")) {
        command_help(words, argc < 3 ? 2 : 3, print_line, stdout, &found);
        return argc < 2 ? 2 : !found;
    }
    status = make_request(&request, module, argc, argv);
    if (!status)
        status = daemon_connect(&fd);
    if (status)
        return status;
    return request.json ? print_json(fd, &request) : daemon_run_line(fd, request.line, false);
}

static int run_server(int argc, char **argv)
{
    return manage("server", argc, argv);
}

static int run_namespace(int argc, char **argv)
{
    return manage("namespace", argc, argv);
}

static int run_partition(int argc, char **argv)
{
    return manage("sm-partition", argc, argv);
}

static int run_memory(int argc, char **argv)
{
    return manage("memacct", argc, argv);
}

const struct subcommand manage_subcommands[] = {
    {"server", "create, change and delete servers by name",
     "Usage: funnel server create NAME [--uid USER] [--allowed-devices DEVICE,...]\n"
     "       funnel server set NAME [--uid USER] [--active-thread-percentage PERCENT]\n"
     "                              [--pinned-memory-limit SIZE] [--client-priority 0|1]\n"
     "       funnel server delete NAME [--force]\n"
     "       funnel server list [NAME] [--json] | get NAME FIELD\n\n"
     "A server with a name has devices and limits of its own; its programs choose it by the pipe\n"
     "directory that create prints. funnel server VERB --help describes the options.\n\n"
     "Examples:\n"
     "  funnel server create night --allowed-devices 1\n"
     "  funnel server set night --active-thread-percentage 50 --pinned-memory-limit 8G\n"
     "  funnel server delete night --force\n",
     run_server},
    {"namespace", "create, change and delete namespaces of servers",
     "Usage: funnel namespace create NAME --server SERVER\n"
     "       funnel namespace set NAME --server SERVER [--active-thread-percentage PERCENT]\n"
     "                                 [--pinned-memory-limit SIZE] [--client-priority 0|1]\n"
     "       funnel namespace delete NAME --server SERVER [--force]\n"
     "       funnel namespace list [NAME] [--server SERVER] [--json] | get NAME SERVER FIELD\n\n"
     "A group of a server's programs with a pipe directory and limits of its own.\n\n"
     "Examples:\n"
     "  funnel namespace create batch --server night\n"
     "  funnel namespace set batch --server night --active-thread-percentage 10\n",
     run_namespace},
    {"partition", "create and delete partitions of a server's multiprocessors",
     "Usage: funnel partition create NAME --server SERVER --device DEVICE --chunks NUMBER\n"
     "                               [--include-remainder true|false] [--shareable true|false]\n"
     "                               [--max-chunks NUMBER]\n"
     "       funnel partition delete NAME --server SERVER --device DEVICE\n"
     "       funnel partition list [--server SERVER] [--device DEVICE] [--all] [--json]\n\n"
     "Partitions divide the multiprocessors of a server's device statically, in chunks of 8.\n"
     "From then on each of its programs has to name one in CUDA_MPS_SM_PARTITION.\n\n"
     "Example:\n"
     "  funnel partition create serving --server divided --device 0 --chunks 12\n",
     run_partition},
    {"memory", "device memory of programs, and its audit log",
     "Usage: funnel memory list [--server SERVER] [--json]\n"
     "       funnel memory describe [--json] | set --audit_log true|false\n\n"
     "What each program holds, has held at most, and may hold. With the audit log the daemon's\n"
     "log says so of each program that leaves.\n\n"
     "Examples:\n"
     "  funnel memory list --json\n"
     "  funnel memory set --audit_log true\n",
     run_memory},
    {NULL, NULL, NULL, NULL},
};
