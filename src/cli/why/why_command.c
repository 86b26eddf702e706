/* SPDX-License-Identifier: Apache-2.0 */
/* funnel why: what the logs say of a program's last errors, and what an error mostly means. */
#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "cli.h"
#include "command_client.h"
#include "cuda_error.h"
#include "error_causes.h"
#include "log_record.h"
#include "runtime_errors.h"
#include "snapshot.h"
#include "suspend_result.h"
#include "text.h"

#define LINES_MAX 6

/* The last events of a log that concern a program. */
struct findings {
    char *lines[LINES_MAX];
    unsigned count; /* all that were found */
    int error;      /* of the last one that has one; 0 = none */
};

static void add_finding(struct findings *findings, const char *line, int error)
{
    char **place = &findings->lines[findings->count++ % LINES_MAX];

    findings->error = error ? error : findings->error;
    free(*place);
    *place = strdup(line);
    if (*place)
        text_make_printable(*place);
}

static void print_findings(const struct findings *findings, const char *path)
{
    unsigned first = findings->count > LINES_MAX ? findings->count - LINES_MAX : 0;

    if (findings->count)
        printf("%s:\n", path);
    for (unsigned i = first; i < findings->count; i++)
        if (findings->lines[i % LINES_MAX])
            printf("  %s\n", findings->lines[i % LINES_MAX]);
}

static void findings_fini(struct findings *findings)
{
    for (unsigned i = 0; i < LINES_MAX; i++)
        free(findings->lines[i]);
}

/* ---- logs ---- */

/* Reads the records of the lines, and no texts. */
static void find_events(FILE *file, pid_t pid, struct findings *findings)
{
    _cleanup_free_ char *line = NULL;
    size_t capacity = 0;

    while (getline(&line, &capacity, file) > 0) {
        struct log_record record;

        if (log_record_cut(line, &record) && record.is_event && (!pid || record.client == pid))
            add_finding(findings, line, record.error);
    }
}

/* Prints the events of a log, of one program or (0) of all: how many. `*error` becomes the last
 * error in them. */
static unsigned search_log(const char *path, pid_t pid, int *error)
{
    struct findings findings = {.count = 0};
    FILE *file = fopen(path, "re");

    if (!file)
        return 0;
    find_events(file, pid, &findings);
    fclose(file);
    print_findings(&findings, path);
    findings_fini(&findings);
    *error = findings.error ? findings.error : *error;
    return findings.count;
}

static unsigned search_below(const char *directory, const char *name, pid_t pid, int *error)
{
    char path[PATH_MAX];

    return path_join(directory, name, path, sizeof(path)) ? 0 : search_log(path, pid, error);
}

static unsigned search_client_logs(const struct paths *paths, pid_t pid, int *error)
{
    char logs[2][PATH_MAX];
    unsigned count = cli_client_logs(paths, logs), found = 0;

    for (unsigned i = 0; i < count; i++)
        found += search_log(logs[i], pid, error);
    return found;
}

/* ---- programs that run ---- */

static void describe_room(const struct server_status_row *row)
{
    const char *obstacle = suspend_result_text((int)row->obstacle);

    if (row->waits_for_room)
        printf("It waits for device memory until others have made room (funnel limits shows "
               "stay-seconds and room-seconds).\n");
    if (row->suspended)
        printf("It is suspended; funnel resume %d lets it go on.\n", row->identity.pid);
    else if (row->evicted)
        printf("It is evicted: its memory returns for its next CUDA call.\n");
    if (row->usage.evictions)
        printf("Its memory has left the device %llu time%s to make room for others.\n",
               (unsigned long long)row->usage.evictions, row->usage.evictions == 1 ? "" : "s");
    if (row->obstacle && obstacle)
        printf("It makes no room for others: %s.\n", obstacle);
}

static void describe_client(const struct command_client *client)
{
    const struct server_status_row *row = &client->row;

    printf("Program %d runs (%.*s)%s.\n", row->identity.pid, (int)sizeof(row->identity.command),
           row->identity.command,
           row->state == SERVER_CLIENT_INACTIVE ? ", but gets errors only: it was ended by an "
                                                  "operator, or has lost its context to a fault"
                                                : "");
    describe_room(row);
    if (row->memory_refused)
        printf("Its memory limit has refused %llu allocation%s (funnel limits shows the limit).\n",
               (unsigned long long)row->memory_refused, row->memory_refused == 1 ? "" : "s");
}

/* Also the logs of the servers, whose names the daemon knows. */
static unsigned search_servers(const struct paths *paths, pid_t pid, int *error)
{
    char reason[COMMAND_REASON_MAX], name[2 * SERVER_NAME_MAX];
    struct snapshot snapshot;
    unsigned found = search_below(paths->log, "server.log", pid, error);

    if (snapshot_take(paths, &snapshot, reason))
        return found;
    for (unsigned i = 0; i < snapshot.server_count; i++)
        if (text_format(name, sizeof(name), "%s/server.log", snapshot.servers[i].name))
            found += search_below(paths->log, name, pid, error);
    for (unsigned i = 0; i < snapshot.client_count; i++)
        if (snapshot.clients[i].row.identity.pid == pid && ++found)
            describe_client(&snapshot.clients[i]);
    snapshot_fini(&snapshot);
    return found;
}

/* ---- the answer ---- */

static const char *name_of_error(int error)
{
    const char *name = cuda_error_name((CUresult)error);

    return name ? name : runtime_error_name(error);
}

static int explain_error(int error)
{
    const struct error_cause *cause = error_cause_find(error);
    const char *name = name_of_error(error), *text = cuda_error_string((CUresult)error);

    if (!cause || !name)
        return cli_fail("%d is not an error of CUDA", error);
    printf("%s (%d)%s%s\n\n%s\n%s\n", name, error, text ? ": " : "", text ? text : "", cause->cause,
           cause->remedy);
    return 0;
}

static int explain_client(const struct paths *paths, pid_t pid)
{
    int error = 0;
    unsigned found = search_client_logs(paths, pid, &error);

    if (pid) {
        found += search_servers(paths, pid, &error);
        found += search_below(paths->log, "control.log", pid, &error);
    }
    if (!found && pid)
        return cli_fail("no log that you may read says anything of a program %d", (int)pid);
    if (!found)
        puts("No log has an error of your programs. Programs that run on NVIDIA's driver itself "
             "(funnel run --direct) log none,\nand answers that programs expect, such as "
             "CUDA_ERROR_NOT_SUPPORTED, are left out.");
    if (error) {
        putchar('\n');
        return explain_error(error);
    }
    return 0;
}

/* "CUDA_ERROR_NOT_FOUND", "cudaErrorNotFound" and "not_found" are the same word. */
static bool is_same_word(const char *name, const char *known)
{
    static const char *const starts[] = {"CUDA_ERROR_", "cudaError"};

    for (unsigned i = 0; i < 2; i++)
        if (!strncasecmp(name, starts[i], strlen(starts[i]))) {
            name += strlen(starts[i]);
            break;
        }
    known += strlen(starts[0]);
    while (*name && *known) {
        name += *name == '_';
        known += *known == '_';
        if (tolower((unsigned char)*name++) != tolower((unsigned char)*known++))
            return false;
    }
    return !*name && !*known;
}

static int error_of_name(const char *name)
{
    for (int error = 1; error < 1000; error++) {
        const char *known = cuda_error_name((CUresult)error);

        if (known && is_same_word(name, known))
            return error;
    }
    return runtime_error_of_name(name);
}

static int run_why(int argc, char **argv)
{
    static const struct option known[] = {{"client", required_argument, NULL, 'c'},
                                          {NULL, 0, NULL, 0}};
    const char *subject, *client = NULL;
    struct paths paths;
    uint64_t number = 0;
    int option;

    while ((option = getopt_long(argc, argv, "c:", known, NULL)) != -1) {
        if (option != 'c')
            return cli_usage("unknown option, or --client without a process id");
        client = optarg;
    }
    subject = client ? client : argv[optind];
    if (optind + (client == NULL) < argc)
        return cli_usage("unexpected argument: %s", argv[argc - 1]);
    if (subject && error_of_name(subject))
        return explain_error(error_of_name(subject));
    if (subject && (text_to_u64(subject, &number) || !number || number > INT_MAX))
        return cli_usage("%s is neither a process id nor an error of CUDA", subject);
    if (subject && !client && name_of_error((int)number))
        return explain_error((int)number);
    if (cli_find_daemon(&paths))
        return 1;
    cli_find_logs(&paths);
    return explain_client(&paths, (pid_t)number);
}

const struct subcommand why_subcommands[] = {
    {"why", "why a program failed, and what an error means",
     "Usage: funnel why [PID | CODE | NAME | --client PID]\n\n"
     "Without an argument: the last errors of programs of yours. For a program: what its log, and\n"
     "those logs of the daemon and its servers that you may read, say of it, whether it still "
     "runs\n"
     "or not. For an error of CUDA, by its number or its name in the driver's or the runtime's "
     "API:\n"
     "its cause and remedy under Funnel. A number that is an error is taken for one; --client "
     "takes\n"
     "it for a process.\n\n"
     "Examples:\n"
     "  funnel why\n"
     "  funnel why 4711\n"
     "  funnel why 805\n"
     "  funnel why cudaErrorIllegalAddress\n",
     run_why},
    {NULL, NULL, NULL, NULL},
};
