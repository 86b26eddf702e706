/* SPDX-License-Identifier: Apache-2.0 */
/*
 * funnel run: sets the environment that brings a CUDA program to Funnel, or with --direct keeps it
 * away. Then it becomes that program, so exit status and signals are the program's.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "command_client.h"
#include "daemon_lines.h"
#include "device_probe.h"
#include "fd.h"
#include "grammar.h"
#include "hello.h"
#include "run_environment.h"
#include "run_limits.h"
#include "run_tool.h"
#include "snapshot.h"
#include "switch.h"
#include "text.h"

struct run_options {
    bool direct;
    bool quiet;
    bool verbose;
    bool no_start;
    bool nvml;
    bool profile;
    const char *device; /* NULL: auto */
    const char *group;  /* NULL: that of FUNNEL_GROUP, if any */
    struct run_limits limits;
};

static bool quiet;

__attribute__((format(printf, 1, 2))) static void print_note(const char *format, ...)
{
    va_list arguments;

    if (quiet)
        return;
    va_start(arguments, format);
    fputs("funnel: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

static int put_first(enum run_driver driver, const struct run_options *options)
{
    const struct run_libraries libraries = {
        .driver = driver,
        .nvml = options->nvml,
        .profilers = options->profile && !options->direct,
    };

    return run_environment_put_first(&libraries);
}

/* ---- without Funnel ---- */

static int prepare_direct(const struct run_options *options)
{
    const char *device = options->device ? options->device : cli_default_device();

    if (!device)
        return 2;
    unsetenv("FUNNEL_REQUIRE");
    if (put_first(RUN_DRIVER_AS_IS, options) || setenv("FUNNEL_DIRECT", "1", 1))
        return 1;
    if (!strcmp(device, "auto")) {
        device = device_probe_cuda() ? "cuda" : "soft";
        print_note("running directly on %s", !strcmp(device, "cuda")
                                                 ? "NVIDIA's driver"
                                                 : "the software GPU (no NVIDIA driver works)");
    }
    return !strcmp(device, "soft") ? put_first(RUN_DRIVER_SOFT, options) : 0;
}

/* ---- through Funnel ---- */

static bool serves_device(const struct snapshot *snapshot, const char *device)
{
    if (!device || !strcmp(device, "auto") || !strcmp(device, snapshot->daemon.device))
        return true;
    for (unsigned i = 0; i < snapshot->server_count; i++)
        if (!strcmp(snapshot_driver_name(snapshot->servers[i].driver), device))
            return true;
    return false;
}

static int check_device(int fd, const struct paths *paths, const char *device)
{
    struct snapshot snapshot;
    int error = snapshot_read(fd, &snapshot);
    bool served;

    if (error)
        return cli_fail("%s", command_lost(error));
    served = serves_device(&snapshot, device);
    if (!served)
        cli_fail("the daemon in %s was started for --device %s; stop it (funnel stop), or choose "
                 "another CUDA_MPS_PIPE_DIRECTORY",
                 paths->pipe, snapshot.daemon.device);
    snapshot_fini(&snapshot);
    return served ? 0 : 1;
}

/* A device that does not work is reported here, and not by the program in its own way: 0, or 1
 * after an error message. Then the new daemon ends. */
static int try_server(int fd)
{
    if (!daemon_start_server(fd))
        return 0;
    command_send_line(fd, "quit");
    return 1;
}

/* "the software GPU", as the server of the new daemon has it. */
static const char *device_in_use(int fd)
{
    struct snapshot snapshot;
    uint32_t driver = 0;

    if (snapshot_read(fd, &snapshot))
        return "a device unknown";
    if (snapshot.server_count)
        driver = snapshot.servers[0].driver;
    snapshot_fini(&snapshot);
    return driver == SERVER_DRIVER_CUDA ? "NVIDIA's driver" : "the software GPU";
}

/* When another `funnel run` has started the daemon first, that may not listen yet. */
static int connect_with_retries(const struct paths *paths, bool lost_race, int *ret_fd,
                                char *reason)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    int tries = lost_race ? 100 : 1;
    int error = command_connect_ahead(paths, ret_fd, reason);

    while (error && --tries > 0) {
        nanosleep(&pause, NULL);
        error = command_connect_ahead(paths, ret_fd, reason);
    }
    return error;
}

/* A mistyped name of a server must not start a daemon without that server's limits. True, after an
 * error message, when the directory above belongs to a running daemon. */
static bool names_unknown_server(const struct paths *paths)
{
    char reason[COMMAND_REASON_MAX];
    _cleanup_fd_ int fd = -1;
    struct paths above = *paths;

    *strrchr(above.pipe, '/') = '\0';
    if (path_join(above.pipe, HELLO_SOCKET_NAME, above.socket, sizeof(above.socket)) ||
        command_connect(&above, &fd, reason))
        return false;
    cli_fail(
        "the daemon in %s has no server of the name %s (funnel servers lists them); a daemon of "
        "its own can be started there with: funnel start",
        above.pipe, paths->pipe + strlen(above.pipe) + 1);
    return true;
}

static bool has_several_directories(void)
{
    const char *list = getenv("CUDA_MPS_PIPE_DIRECTORY");

    return list && strchr(list, ':');
}

/* A daemon that is started has the first of several directories. */
static int name_one_directory(const struct paths *paths)
{
    if (!has_several_directories() || !setenv("CUDA_MPS_PIPE_DIRECTORY", paths->pipe, 1))
        return 0;
    return cli_fail("cannot set the environment: %s", strerror(errno));
}

/* The daemon says why, in a second attempt that is not silent. */
static int fail_to_start(const struct daemon_options *daemon, const char *reason)
{
    return cli_fail("%s", cli_start_daemon(daemon, false)
                              ? "the daemon could not be started, so the program is not run"
                              : reason);
}

static int start_daemon(const struct paths *paths, const struct run_options *options, int *ret_fd,
                        char *reason)
{
    struct daemon_options daemon = {.device = options->device, .is_for_program = true};
    bool started;

    if (options->no_start)
        return cli_fail("%s, and --no-start is given", reason);
    if (names_unknown_server(paths) || name_one_directory(paths))
        return 1;
    if (!daemon.device && !(daemon.device = cli_default_device()))
        return 2;
    started = cli_start_daemon(&daemon, true) == 0;
    if (connect_with_retries(paths, !started, ret_fd, reason))
        return fail_to_start(&daemon, reason);
    if (!started)
        return 0;
    if (try_server(*ret_fd))
        return 1;
    print_note("no daemon was running; started one in %s on %s (end it with: funnel stop)",
               paths->pipe, device_in_use(*ret_fd));
    return 0;
}

static int reach_daemon(const struct paths *paths, const struct run_options *options)
{
    char reason[COMMAND_REASON_MAX];
    _cleanup_fd_ int fd = -1;
    int error = command_connect_ahead(paths, &fd, reason);

    if (error == -ENOENT || error == -ECONNREFUSED)
        error = start_daemon(paths, options, &fd, reason);
    else if (error)
        error = cli_fail("%s", reason);
    if (!error && options->device)
        error = check_device(fd, paths, options->device);
    return error ? error : run_limits_set(&options->limits, fd);
}

static int prepare_funnel(const struct run_options *options)
{
    struct paths paths;
    char log[PATH_MAX];

    int status = cli_find_daemon(&paths);

    if (!status)
        status = run_limits_set_lane(&options->limits);
    if (!status)
        status = reach_daemon(&paths, options);
    if (!status)
        status = put_first(RUN_DRIVER_FUNNEL, options);
    if (status)
        return status;
    if (cli_client_log(&paths, log, sizeof(log)))
        return 1;
    unsetenv("FUNNEL_DIRECT");
    /* Of several directories the program chooses one by the devices that it is to see. */
    if ((!has_several_directories() && setenv("CUDA_MPS_PIPE_DIRECTORY", paths.pipe, 1)) ||
        setenv("FUNNEL_REQUIRE", "1", 1) ||
        (options->group && setenv("FUNNEL_GROUP", options->group, 1)) ||
        (options->verbose && setenv("FUNNEL_VERBOSE", "1", 1)) || setenv("FUNNEL_LOG", log, 0) ||
        run_environment_record_ranges())
        return cli_fail("cannot set the environment: %s", strerror(errno));
    return 0;
}

/* ---- the command line ---- */

static int check_options(const struct run_options *options)
{
    if (options->device && !cli_is_device(options->device))
        return cli_usage("--device is auto, cuda or soft, not %s", options->device);
    if (options->group &&
        (!grammar_is_name(options->group) || strlen(options->group) >= HELLO_GROUP_MAX))
        return cli_usage("--group takes a name of letters, digits and _, not longer than %d",
                         HELLO_GROUP_MAX - 1);
    if (options->direct && run_limits_are_given(&options->limits))
        return cli_usage("--direct runs without Funnel, which would keep the limits");
    return run_limits_check(&options->limits);
}

static bool take_option(int option, struct run_options *options)
{
    switch (option) {
    case 'd':
        options->direct = true;
        return true;
    case 'D':
        options->device = optarg;
        return true;
    case 'g':
        options->group = optarg;
        return true;
    case 's':
        options->limits.sm = optarg;
        return true;
    case 'S':
        options->limits.sms = optarg;
        return true;
    case 'm':
        options->limits.memory = optarg;
        return true;
    case 't':
        options->limits.shows_limit = true;
        return true;
    case 'p':
        options->limits.priority = optarg;
        return true;
    case 'c':
        options->limits.class = optarg;
        return true;
    case 'i':
        options->limits.isolation = optarg;
        return true;
    case 'n':
        options->no_start = true;
        return true;
    case 'N':
        options->nvml = true;
        return true;
    case 'P':
        options->profile = true;
        return true;
    case 'q':
        options->quiet = true;
        return true;
    case 'v':
        options->verbose = true;
        return true;
    }
    return false;
}

static int parse_run(int argc, char **argv, struct run_options *options)
{
    static const struct option known[] = {
        {"direct", no_argument, NULL, 'd'},      {"device", required_argument, NULL, 'D'},
        {"group", required_argument, NULL, 'g'}, {"sm", required_argument, NULL, 's'},
        {"sms", required_argument, NULL, 'S'},   {"memory", required_argument, NULL, 'm'},
        {"show-limit", no_argument, NULL, 't'},  {"priority", required_argument, NULL, 'p'},
        {"class", required_argument, NULL, 'c'}, {"isolate", required_argument, NULL, 'i'},
        {"no-start", no_argument, NULL, 'n'},    {"nvml", no_argument, NULL, 'N'},
        {"profile", no_argument, NULL, 'P'},     {"quiet", no_argument, NULL, 'q'},
        {"verbose", no_argument, NULL, 'v'},     {NULL, 0, NULL, 0}};
    int option;

    while ((option = getopt_long(argc, argv, "+qv", known, NULL)) != -1)
        if (!take_option(option, options))
            return cli_wrong_option();
    if (optind == argc)
        return cli_usage("which program?");
    return check_options(options);
}

static void note_tool(const char *program, bool profiles)
{
    const char *tool = run_tool_find(program);
    const char *library = run_tool_library();

    if (tool)
        print_note("%s sees none of the program's kernels, which run in the server; "
                   "funnel run --direct runs the program without Funnel",
                   tool);
    if (library && !profiles)
        print_note("%s is loaded, but NVIDIA's CUPTI sees none of the program's kernels; "
                   "funnel run --profile brings Funnel's",
                   library);
}

static int run_run(int argc, char **argv)
{
    struct run_options options = {.profile = switch_is_on("FUNNEL_PROFILE")};
    int status = parse_run(argc, argv, &options);

    if (status)
        return status;
    quiet = options.quiet;
    status = options.direct ? prepare_direct(&options) : prepare_funnel(&options);
    if (!status && options.nvml && options.device && !strcmp(options.device, "soft"))
        status = run_environment_show_soft();
    if (!status && options.profile && !options.direct)
        status = run_environment_name_cupti();
    if (status)
        return status;
    if (!options.direct)
        note_tool(argv[optind], options.profile);
    execvp(argv[optind], argv + optind);
    cli_fail("cannot run %s: %s", argv[optind], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}

const struct subcommand run_subcommands[] = {
    {"run", "run a CUDA program through Funnel",
     "Usage: funnel run [--device auto|cuda|soft] [--sm PERCENT | --sms NUMBER] [--memory SIZE]\n"
     "                  [--show-limit] [--priority 0|1] [--class critical|normal|batch]\n"
     "                  [--isolate new|program|group|user|class] [--group NAME] [--nvml]\n"
     "                  [--profile] [--direct] [--no-start] [-q] [-v] -- PROGRAM [ARGUMENT...]\n\n"
     "Runs an unmodified CUDA program as a client of the daemon, which is started when none runs.\n"
     "The exit status is the program's; 127 when there is no such program.\n\n"
     "      --device WHICH  cuda: NVIDIA's driver; soft: the software GPU; auto (default): "
     "NVIDIA's\n"
     "                      driver when it works, else the software GPU\n"
     "      --sm PERCENT    share of the SMs, such as 25 or 12.5%, rounded down to what the "
     "device\n"
     "                      can be divided into\n"
     "      --sms NUMBER    the same as a number of SMs\n"
     "      --memory SIZE   memory that the program may have of each device, such as 512M or 2G\n"
     "      --show-limit    a memory limit is the total that cudaMemGetInfo and the device show\n"
     "      --priority P    0 normal, 1 below normal\n"
     "      --class CLASS   critical: before others; normal (default); batch: with the time that\n"
     "                      the others leave, in a server of its own\n"
     "      --isolate WHICH  a server of its own, so that no fault of the program reaches others,\n"
     "                      nor one of theirs the program: program; new, until it has ended once\n"
     "                      without a fault; group, with the others of --group; class\n"
     "      --group NAME    a name under which funnel limit and provision know the program\n"
     "      --nvml          for monitors such as nvidia-smi and nvitop: a libnvidia-ml.so.1 that "
     "shows\n"
     "                      the programs in place of the server\n"
     "      --direct        on the device itself, without Funnel, to compare the two\n"
     "      --profile       brings Funnel's CUPTI, so that torch.profiler and others see kernels\n"
     "      --no-start      fail when no daemon runs\n"
     "  -q, --quiet         do not print what was started or chosen\n"
     "  -v, --verbose       why calls of the program fail, on its standard error\n\n"
     "Examples:\n"
     "  funnel run -- ./vector_add\n"
     "  funnel run --device soft -- python3 train.py\n"
     "  funnel run --sm 25 --memory 4G --group batch -- ./simulate\n"
     "  funnel run --direct -- ./vector_add\n"
     "  funnel run --nvml -- nvitop\n",
     run_run},
    {NULL, NULL, NULL, NULL},
};
