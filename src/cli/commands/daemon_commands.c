/* SPDX-License-Identifier: Apache-2.0 */
/* funnel start, stop and log. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "command_client.h"
#include "daemon_lines.h"
#include "device_probe.h"
#include "fd.h"
#include "grammar.h"
#include "isolation.h"
#include "log_record.h"
#include "snapshot.h"
#include "text.h"

/* ---- start ---- */

/* The same forms as of http_server_start() in the daemon. */
static void print_page(const char *address)
{
    const char *colon = strrchr(address, ':');
    int length = colon ? (int)(colon - address) : 0;

    if (*address == '/')
        printf(
            "Status page and metrics: Unix socket %s (curl --unix-socket %s http://localhost/)\n",
            address, address);
    else if (!length)
        printf("Status page: http://127.0.0.1:%s/ (metrics: /metrics)\n",
               colon ? colon + 1 : address);
    else if (!strncmp(address, "0.0.0.0:", 8) || !strncmp(address, "[::]:", 5))
        printf("Status page: http://localhost%s/ (metrics: /metrics), and all addresses of this "
               "machine\n",
               colon);
    else
        printf("Status page: http://%s/ (metrics: /metrics)\n", address);
}

static void print_started(const struct daemon_options *options, const struct paths *paths,
                          bool works)
{
    printf("The daemon listens in %s (device: %s%s). Run programs with: funnel run -- PROGRAM\n",
           paths->pipe, options->device,
           strcmp(options->device, "auto") ? ""
           : works                         ? ", which is NVIDIA's driver here"
                                           : ", which is the software GPU here");
    if (options->metrics)
        print_page(options->metrics);
}

static int parse_start(int argc, char **argv, struct daemon_options *options)
{
    static const struct option known[] = {{"device", required_argument, NULL, 'D'},
                                          {"static-partitioning", no_argument, NULL, 'S'},
                                          {"multiuser", no_argument, NULL, 'm'},
                                          {"apply", required_argument, NULL, 'a'},
                                          {"spare", no_argument, NULL, 's'},
                                          {"isolate", required_argument, NULL, 'i'},
                                          {"stall-timeout", required_argument, NULL, 't'},
                                          {"metrics", required_argument, NULL, 'M'},
                                          {"server-user", required_argument, NULL, 'U'},
                                          {NULL, 0, NULL, 0}};
    int option;

    while ((option = getopt_long(argc, argv, "Sma:", known, NULL)) != -1) {
        if (option == 'D')
            options->device = optarg;
        else if (option == 'S')
            options->static_partitioning = true;
        else if (option == 'm')
            options->multiuser = true;
        else if (option == 'a')
            options->config = optarg;
        else if (option == 's')
            options->spare = true;
        else if (option == 'i')
            options->isolation = optarg;
        else if (option == 't')
            options->stall_timeout = optarg;
        else if (option == 'U')
            options->server_user = optarg;
        else if (option == 'M')
            options->metrics = optarg;
        else
            return cli_wrong_option();
    }
    if (optind < argc)
        return cli_usage("unexpected argument: %s", argv[optind]);
    return 0;
}

/* Whether the options are valid and go together: 0, or the exit status after a message. */
static int check_start(struct daemon_options *options)
{
    uint32_t isolation;
    uint64_t seconds;

    if (options->isolation && !isolation_parse(options->isolation, &isolation))
        return cli_usage("--isolate is " ISOLATION_EXPECTED ", not %s", options->isolation);
    if (options->stall_timeout && text_to_u64(options->stall_timeout, &seconds))
        return cli_usage("--stall-timeout takes a number of seconds, not %s",
                         options->stall_timeout);
    if (!options->device && !(options->device = cli_default_device()))
        return 2;
    if (!cli_is_device(options->device))
        return cli_usage("--device is auto, cuda or soft, not %s", options->device);
    if (options->multiuser && geteuid() != 0)
        return cli_fail("--multiuser needs root");
    if (options->server_user && !options->multiuser)
        return cli_usage("--server-user is for --multiuser");
    return 0;
}

/* Most that start a second daemon only want to know that there is one. */
static void say_if_one_listens(const struct paths *paths)
{
    char reason[COMMAND_REASON_MAX];
    _cleanup_fd_ int fd = -1;

    if (!command_connect(paths, &fd, reason))
        cli_fail("it listens in %s; funnel status shows it, and funnel stop ends it", paths->pipe);
}

static int run_start(int argc, char **argv)
{
    struct daemon_options options = {.device = NULL};
    struct paths paths;
    bool works;
    int status = parse_start(argc, argv, &options);

    if (!status)
        status = check_start(&options);
    if (status)
        return status;
    if (cli_paths(&paths))
        return 1;
    works = strcmp(options.device, "soft") && device_probe_cuda();
    if (!strcmp(options.device, "cuda") && !works)
        return cli_fail(
            "NVIDIA's driver does not work here, so --device cuda cannot; check it with "
            "nvidia-smi, or use --device soft");
    status = cli_start_daemon(&options, false);
    if (status == 0)
        print_started(&options, &paths, works);
    else
        say_if_one_listens(&paths);
    return status;
}

/* ---- stop ---- */

struct stop_options {
    bool wait;
    bool force;
    const char *seconds;
};

static int parse_stop(int argc, char **argv, struct stop_options *options)
{
    static const struct option known[] = {{"wait", no_argument, NULL, 'w'},
                                          {"force", no_argument, NULL, 'f'},
                                          {"timeout", required_argument, NULL, 't'},
                                          {NULL, 0, NULL, 0}};
    uint64_t seconds;
    int option;

    while ((option = getopt_long(argc, argv, "wft:", known, NULL)) != -1) {
        if (option == 'w')
            options->wait = true;
        else if (option == 'f')
            options->force = true;
        else if (option == 't')
            options->seconds = optarg;
        else
            return cli_wrong_option();
    }
    if (optind < argc)
        return cli_usage("unexpected argument: %s", argv[optind]);
    if (options->seconds && text_to_u64(options->seconds, &seconds))
        return cli_usage("--timeout takes a number of seconds, not %s", options->seconds);
    if (options->wait + options->force + (options->seconds != NULL) > 1)
        return cli_usage("--wait, --force and --timeout contradict each other: use one of them");
    return 0;
}

/* The daemon is not stopped without an explicit option while programs run. */
static int check_no_programs(int fd)
{
    struct snapshot snapshot;
    unsigned count = 0;
    int error = snapshot_read(fd, &snapshot);

    if (error)
        return cli_fail("%s", command_lost(error));
    for (unsigned i = 0; i < snapshot.client_count; i++)
        count += snapshot.clients[i].row.state == SERVER_CLIENT_ACTIVE;
    snapshot_fini(&snapshot);
    if (count == 0)
        return 0;
    return cli_fail(
        "%u program%s still run%s (funnel ps shows them). Use --wait to let them finish, "
        "--timeout SECONDS to give them a while, or --force to end them now",
        count, count == 1 ? "" : "s", count == 1 ? "s" : "");
}

/* Waits until the daemon has ended, which closes the connection. 0, or 1 when it refuses to end,
 * with its reason printed. */
static int await_end(int fd)
{
    static union command_any message;
    char reason[COMMAND_TEXT_MAX] = "";
    size_t length;
    int kind;

    while ((kind = command_receive(fd, &message, &length)) >= 0) {
        if (kind == COMMAND_OUTPUT)
            text_copy(reason, sizeof(reason), message.text.text);
        else if (kind == COMMAND_DONE && message.done.status == COMMAND_REJECTED)
            return cli_fail("%s", reason);
    }
    return 0;
}

static int run_stop(int argc, char **argv)
{
    struct stop_options options = {.seconds = NULL};
    char reason[COMMAND_REASON_MAX];
    _cleanup_fd_ int fd = -1;
    struct paths paths;
    char line[64] = "quit";
    int error = parse_stop(argc, argv, &options);

    if (error)
        return error;
    if (cli_find_daemon(&paths))
        return 1;
    if (command_connect(&paths, &fd, reason))
        return cli_fail("%s", reason);
    if (!options.wait && !options.force && !options.seconds && check_no_programs(fd))
        return 1;
    if (options.force)
        text_copy(line, sizeof(line), "quit -t 0");
    else if (options.seconds)
        text_format(line, sizeof(line), "quit -t %.20s", options.seconds);
    error = command_send_line(fd, line);
    if (error)
        return cli_fail("%s", command_lost(error));
    if (await_end(fd))
        return 1;
    puts("The daemon has ended.");
    return 0;
}

/* ---- reload ---- */

static int run_reload(int argc, char **argv)
{
    _cleanup_fd_ int fd = -1;

    if (argc > 1)
        return cli_usage("unexpected argument: %s", argv[1]);
    return daemon_connect(&fd) ? 1 : daemon_run_line(fd, "reload", false);
}

/* ---- log ---- */

/* The server of the daemon's own user has no folder of its own. */
static bool name_server_log(const struct paths *paths, const char *server, char *name, size_t size)
{
    struct stat status;
    char own[32] = "";

    if (!stat(paths->log, &status))
        text_format(own, sizeof(own), "uid_%u", (unsigned)status.st_uid);
    if (!*server || !strcmp(server, own))
        return text_copy(name, size, "server.log");
    return grammar_is_name(server) && text_format(name, size, "%s/server.log", server);
}

struct log_options {
    const char *server; /* of this server, "" of the daemon's own user; NULL = not of a server */
    const char *lines;
    bool daemon;
    bool follow;
};

static int parse_log(int argc, char **argv, struct log_options *options)
{
    static const struct option known[] = {{"follow", no_argument, NULL, 'f'},
                                          {"server", optional_argument, NULL, 's'},
                                          {"client", no_argument, NULL, 'c'},
                                          {"daemon", no_argument, NULL, 'd'},
                                          {NULL, 0, NULL, 0}};
    uint64_t number;
    int option;

    while ((option = getopt_long(argc, argv, "fscdn:", known, NULL)) != -1) {
        if (option == 'f')
            options->follow = true;
        else if (option == 's')
            options->server = optarg ? optarg : "";
        else if (option == 'd')
            options->daemon = true;
        else if (option == 'n')
            options->lines = optarg;
        else if (option != 'c')
            return cli_wrong_option();
    }
    if (text_to_u64(options->lines, &number))
        return cli_usage("-n takes a number of lines, not %s", options->lines);
    return optind < argc ? cli_usage("unexpected argument: %s", argv[optind]) : 0;
}

/* Lines contain texts of other users' programs. Records are for programs. */
static void print_lines(int fd)
{
    FILE *file = fdopen(fd, "r");
    char *line = NULL;
    size_t capacity = 0;

    while (file && getline(&line, &capacity, file) > 0) {
        struct log_record record;

        log_record_cut(line, &record);
        text_make_printable(line);
        if (puts(line) < 0 || fflush(stdout))
            break;
    }
    free(line);
    if (file)
        fclose(file);
}

static int wait_for(pid_t pid)
{
    int status = 0;

    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* `second` may be NULL. */
static int show_files(const struct log_options *options, const char *first, const char *second)
{
    if (access(first, R_OK))
        return cli_fail("cannot read %s: %s", first, strerror(errno));
    int ends[2];
    pid_t pid = pipe(ends) ? -1 : fork();
    if (pid < 0)
        return cli_fail("cannot run tail: %s", strerror(errno));
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        execlp("tail", "tail", "-n", options->lines, options->follow ? "-F" : "--", first, second,
               (char *)NULL);
        _exit(cli_fail("cannot run tail: %s", strerror(errno)));
    }
    close(ends[1]);
    print_lines(ends[0]);
    return wait_for(pid);
}

/* A log is there from the first program on. */
static bool has_text(const char *path)
{
    struct stat status;

    return !stat(path, &status) && status.st_size > 0;
}

static int show_client_logs(const struct log_options *options, const struct paths *paths)
{
    char logs[2][PATH_MAX];
    unsigned count = cli_client_logs(paths, logs);
    bool any = options->follow && count;

    for (unsigned i = 0; i < count; i++)
        any |= has_text(logs[i]);
    if (any)
        return show_files(options, logs[0], count > 1 ? logs[1] : NULL);
    puts("Your programs have logged no errors (funnel log --daemon shows the daemon's log).");
    return 0;
}

static int run_log(int argc, char **argv)
{
    struct log_options options = {.lines = "40"};
    char name[NAME_MAX] = "control.log";
    char path[PATH_MAX];
    struct paths paths;
    int status = parse_log(argc, argv, &options);

    if (status)
        return status;
    if (cli_find_daemon(&paths))
        return 1;
    cli_find_logs(&paths);
    if (!options.server && !options.daemon)
        return show_client_logs(&options, &paths);
    if (options.server && !name_server_log(&paths, options.server, name, sizeof(name)))
        return cli_usage("%s is not the name of a server; funnel servers lists them",
                         options.server);
    if (path_join(paths.log, name, path, sizeof(path)))
        return cli_fail("the path of the log directory is too long");
    return show_files(&options, path, NULL);
}

const struct subcommand daemon_subcommands[] = {
    {"start", "start the daemon",
     "Usage: funnel start [--device auto|cuda|soft] [--spare] [--isolate WHICH] [-S]\n"
     "                    [--stall-timeout SECONDS] [-m [--server-user NAME]] [--metrics "
     "ADDRESS:PORT] [-a FILE]\n\n"
     "Starts the daemon of your pipe directory in the background.\n\n"
     "  --device WHICH  cuda: NVIDIA's driver; soft: the software GPU;\n"
     "                  auto: NVIDIA's driver when it works, else the software GPU (default)\n"
     "  --spare         keep a standby server beside each main lane: for when its server ends,\n"
     "                  and for programs that would wait for long kernels of others; it takes\n"
     "                  some 500 MiB of each NVIDIA GPU\n"
     "  --isolate WHICH  keep faults of programs from others, by servers of their own: new (that\n"
     "                  have not yet ended well once), program (each), group, user (with -m),\n"
     "                  class; each takes some 600 MiB of each NVIDIA GPU\n"
     "  --stall-timeout SECONDS  replace a server that is silent, or keeps programs waiting, for\n"
     "                  that long (300); 0: never\n"
     "  -S, --static-partitioning  every program runs in a static partition of the SMs, which\n"
     "                  sm_partition of nvidia-cuda-mps-control cuts\n"
     "  -m, --multiuser one server for the programs of all users; needs root\n"
     "  --server-user NAME  the user of that server, instead of root\n"
     "  --metrics ADDRESS:PORT  serve metrics for Prometheus and a status page there; PORT alone\n"
     "                  is one of 127.0.0.1, a path a Unix socket\n"
     "  -a, --apply FILE  create the servers and namespaces of this configuration file\n\n"
     "Examples:\n"
     "  funnel start\n"
     "  CUDA_MPS_PIPE_DIRECTORY=/tmp/mine funnel start --device soft\n"
     "  funnel start -S && echo 'sm_partition add 0 4' | nvidia-cuda-mps-control\n",
     run_start},
    {"stop", "stop the daemon and its servers",
     "Usage: funnel stop [--wait | --force | --timeout SECONDS]\n\n"
     "Stops the daemon. While programs run it is stopped only with one of these options:\n\n"
     "  -w, --wait             accept no new programs, and end when the last has finished\n"
     "  -t, --timeout SECONDS  the same, but end programs that still run after this time\n"
     "  -f, --force            end programs now; their next CUDA call fails with error 806\n\n"
     "Examples:\n"
     "  funnel stop\n"
     "  funnel stop --timeout 30\n",
     run_stop},
    {"reload", "have the daemon become the release that is installed",
     "Usage: funnel reload\n\n"
     "The daemon becomes the program that is installed now, with the options that it was started\n"
     "with, and reads its configuration file again. Running programs notice nothing, programs\n"
     "that start at that moment wait for some milliseconds, and accounts and what commands have\n"
     "set go on. When the new program or the file does not do, the daemon goes on as it was.\n\n"
     "Example:\n"
     "  funnel reload\n",
     run_reload},
    {"log", "errors of your programs; the daemon's and the servers' logs",
     "Usage: funnel log [-f] [-n LINES] [--client | --daemon | --server[=NAME]]\n\n"
     "With --client, or none of these: what went wrong in programs of yours. funnel why explains "
     "it.\n\n"
     "  -f, --follow   print further lines as they are written\n"
     "  -n LINES       how many lines to show first (40)\n"
     "      --daemon   the daemon's log: programs that came and went, commands, faults\n"
     "      --server   the log of the server of the daemon's own user\n"
     "      --server=NAME  the log of another server, by its name in funnel servers\n\n"
     "Examples:\n"
     "  funnel log\n"
     "  funnel log -f --server\n"
     "  funnel log -n 100 --server=night\n",
     run_log},
    {NULL, NULL, NULL, NULL},
};
