/* SPDX-License-Identifier: Apache-2.0 */
/* funneld's command line, and its start as a daemon. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <libgen.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config.h"
#include "daemon_loop.h"
#include "default_limits.h"
#include "descriptor_limit.h"
#include "fd.h"
#include "feature.h"
#include "heartbeat.h"
#include "inherited.h"
#include "isolation.h"
#include "journal.h"
#include "service.h"
#include "switch.h"
#include "text.h"
#include "timeslice.h"

static const char help[] =
    "Usage: funneld -d|-f [--device auto|cuda|soft] [--spare] [--isolate WHICH] [-S]\n"
    "               [--multiuser-server] [-a FILE]\n"
    "\n"
    "The control daemon of Funnel: it starts a server for each user whose programs connect, and\n"
    "uses no GPU itself. `funnel start` runs it for you.\n"
    "\n"
    "  -d, --daemon            go to the background once programs can connect\n"
    "  -f, --foreground        stay in the foreground; the log goes to standard output, too\n"
    "      --device WHICH      what servers run on: cuda (NVIDIA's driver), soft (the software "
    "GPU)\n"
    "                          or auto (NVIDIA's driver when it works), which is the default\n"
    "      --spare             a server stands by for each other one: it takes the place of one "
    "that\n"
    "                          ends, and programs that would wait for long kernels of others use "
    "it\n"
    "      --isolate WHICH     programs that share no fault with others, each in a server of its\n"
    "                          own: new (not yet ended well once), program, group, user, class\n"
    "      --stall-timeout S   replace a server that is silent, or keeps clients waiting, for S\n"
    "                          seconds (300); 0: never\n"
    "      --multiuser-server  one server for all users, under root\n"
    "      --server-user NAME  the user of that one server, instead of root\n"
    "  -S, --static-partitioning  clients run in partitions that sm_partition creates\n"
    "  -a, --apply FILE        create the servers that this configuration file of MPS 3 names\n"
    "      --metrics ADDRESS:PORT  serve metrics for Prometheus and a status page there; PORT\n"
    "                          alone is one of 127.0.0.1, a path a Unix socket\n"
    "      --print-directory   with -d, print how programs connect\n"
    "      --check             say what is wrong with the options and the configuration file, and\n"
    "                          start nothing; `funnel reload` has the new release do so first\n"
    "  -v, --version           print the release\n"
    "  -h, --help              print this\n"
    "\n"
    "Environment: CUDA_MPS_PIPE_DIRECTORY, CUDA_MPS_LOG_DIRECTORY, FUNNEL_DEVICE (as --device).\n"
    "Signals: TERM and INT end the daemon and its servers, HUP reopens the logs.\n"
    "\n"
    "Examples:\n"
    "  funneld -d\n"
    "  CUDA_MPS_PIPE_DIRECTORY=/tmp/mine funneld -f --device soft\n";

struct options {
    bool background;
    bool foreground;
    bool multiuser;
    const char *server_user;
    bool spare;
    uint32_t isolation;
    bool static_partitioning;
    bool prints_directory;
    bool checks;
    const char *device;
    const char *config;
    const char *stall_timeout;
    const char *metrics;
};

static bool is_device(const char *name)
{
    return !strcmp(name, "auto") || !strcmp(name, "cuda") || !strcmp(name, "soft");
}

static int print_error(const char *message, const char *detail)
{
    fprintf(stderr, "funneld: %s%s\n", message, detail);
    return 1;
}

static const struct option known_options[] = {
    {"daemon", no_argument, NULL, 'd'},
    {"foreground", no_argument, NULL, 'f'},
    {"device", required_argument, NULL, 'D'},
    {"spare", no_argument, NULL, 's'},
    {"isolate", required_argument, NULL, 'i'},
    {"stall-timeout", required_argument, NULL, 't'},
    {"multiuser-server", no_argument, NULL, 'M'},
    {"server-user", required_argument, NULL, 'U'},
    {"static-partitioning", no_argument, NULL, 'S'},
    {"apply", required_argument, NULL, 'a'},
    {"metrics", required_argument, NULL, 'm'},
    {"print-directory", no_argument, NULL, 'P'},
    {"check", no_argument, NULL, 'c'},
    {"version", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

/* One option: -1 = go on, else the exit status. */
static int take_option(struct options *options, int option)
{
    switch (option) {
    case 'd':
        options->background = true;
        return -1;
    case 'f':
        options->foreground = true;
        return -1;
    case 'D':
        options->device = optarg;
        return -1;
    case 's':
        options->spare = true;
        return -1;
    case 'i':
        if (!isolation_parse(optarg, &options->isolation))
            return print_error("--isolate is " ISOLATION_EXPECTED ", not ", optarg);
        return -1;
    case 't':
        options->stall_timeout = optarg;
        return -1;
    case 'M':
        options->multiuser = true;
        return -1;
    case 'U':
        options->server_user = optarg;
        return -1;
    case 'S':
        options->static_partitioning = true;
        return -1;
    case 'a':
        options->config = optarg;
        return -1;
    case 'm':
        options->metrics = optarg;
        return -1;
    case 'P':
        options->prints_directory = true;
        return -1;
    case 'c':
        options->checks = true;
        return -1;
    case 'v':
        puts(FUNNEL_VERSION);
        return 0;
    case 'h':
        fputs(help, stdout);
        return 0;
    default:
        return 1;
    }
}

/* Whether options go together: -1 = yes, else the exit status. */
static int check_options(const struct options *options)
{
    uint64_t seconds;

    if (options->background == options->foreground && !options->checks)
        return print_error("use -d (background) or -f (foreground); see --help", "");
    if (options->stall_timeout && text_to_u64(options->stall_timeout, &seconds))
        return print_error("--stall-timeout takes a number of seconds, not ",
                           options->stall_timeout);
    if (!is_device(options->device))
        return print_error("--device is auto, cuda or soft, not ", options->device);
    if (options->multiuser && geteuid() != 0)
        return print_error("--multiuser-server needs root", "");
    if (options->server_user && !options->multiuser)
        return print_error("--server-user is for --multiuser-server", "");
    return -1;
}

/* -1 = go on, else the exit status. */
static int parse_options(int argc, char **argv, struct options *options)
{
    int option;

    while ((option = getopt_long(argc, argv, "dfvhMSa:", known_options, NULL)) != -1) {
        int status = take_option(options, option);
        if (status >= 0)
            return status;
    }
    if (optind < argc)
        return print_error("unexpected argument: ", argv[optind]);
    return check_options(options);
}

/* By name or number; NULL is the daemon's own. */
static bool find_user(const char *name, uid_t *ret_uid)
{
    const struct passwd *entry = name ? getpwnam(name) : NULL;
    uint64_t uid = geteuid();

    if (name && !entry && (text_to_u64(name, &uid) || uid >= UINT32_MAX))
        return false;
    *ret_uid = entry ? entry->pw_uid : (uid_t)uid;
    return true;
}

static unsigned parse_seconds(const char *text)
{
    uint64_t seconds = STALL_TIMEOUT_DEFAULT_S;

    if (text && text_to_u64(text, &seconds))
        seconds = STALL_TIMEOUT_DEFAULT_S;
    return seconds > INT_MAX ? INT_MAX : (unsigned)seconds;
}

/* Scripts look for the name that the daemon was started under. */
static void take_name(char *name)
{
    prctl(PR_SET_NAME, basename(name));
}

/* Below this a server would fail in the middle of its start, or with its first clients. */
#define DESCRIPTORS_LEAST 64u

static int check_descriptor_limit(void)
{
    uint64_t limit = descriptor_limit_raise();
    char message[256];

    if (limit >= DESCRIPTORS_LEAST)
        return 0;
    text_format(message, sizeof(message),
                "the hard limit of open files is %llu, and has to be %u or more; %s",
                (unsigned long long)limit, DESCRIPTORS_LEAST, DESCRIPTORS_REMEDY);
    return print_error(message, "");
}

static void leave_terminal(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    setsid();
    if (null < 0)
        return;
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    fd_close(&null);
}

/* The parent exits when programs can connect to the child, or the child has died, so that a script
 * can run programs at once. */
static int wait_for_child(int ready_fd)
{
    char reason[INSTANCE_REASON_MAX] = "";
    ssize_t size = read(ready_fd, reason, sizeof(reason) - 1);

    if (size > 0 && !*reason)
        return 0;
    return size > 0 ? print_error(reason, "")
                    : print_error("could not start; see control.log in the log directory", "");
}

/* A daemon that could not start has released the directory when its parent exits. So the next one
 * does not hear that an instance is running. */
static int await_start(pid_t child, int ready_fd)
{
    int status = wait_for_child(ready_fd);

    if (status)
        waitpid(child, NULL, 0);
    return status;
}

static int run_in_background(struct daemon *daemon, bool prints_directory)
{
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC))
        return print_error("no pipe: ", strerror(errno));
    pid = fork();
    if (pid < 0)
        return print_error("cannot fork: ", strerror(errno));
    if (pid > 0) {
        int status;

        fd_close(&ends[1]);
        status = await_start(pid, ends[0]);
        if (status == 0 && prints_directory)
            printf("To connect CUDA applications to this daemon, set env "
                   "CUDA_MPS_PIPE_DIRECTORY=%s\n",
                   daemon->paths.pipe);
        return status;
    }
    fd_close(&ends[0]);
    leave_terminal();
    if (chdir("/"))
        return 1;
    return daemon_run(daemon, ends[1]);
}

/* After a reload the working directory may be another one. */
static char **keep_arguments(int argc, char **argv, const char *config)
{
    static char apply[] = "--apply";
    char *absolute = config && *config != '/' ? realpath(config, NULL) : NULL;
    char **arguments = calloc((size_t)argc + 3, sizeof(*arguments));

    if (!arguments)
        return argv;
    memcpy(arguments, argv, (size_t)argc * sizeof(*arguments));
    if (absolute) {
        arguments[argc] = apply;
        arguments[argc + 1] = absolute;
    }
    return arguments;
}

/* The daemon that runs would leave its sockets to this program in a way that it does not know. */
static bool fits_daemon(void)
{
    const char *format = getenv(INHERITED_FORMAT_VARIABLE);

    return !format || !strcmp(format, INHERITED_FORMAT);
}

static int check_installation(struct daemon *daemon, const struct options *options)
{
    char server[PATH_MAX], reason[CONFIG_REASON_MAX];

    daemon->is_trial = true;
    if (!fits_daemon())
        return print_error("this release, " FUNNEL_VERSION ", cannot go on where the running "
                           "daemon stops; stop that, and start this",
                           "");
    if (path_of_sibling("bin/funnel-server", server, sizeof(server)) || access(server, X_OK))
        return print_error("there is no program ", server);
    if (options->config && config_apply(daemon, options->config, reason))
        return print_error(reason, "");
    return 0;
}

/* What the options and the environment say. 0, or the exit status after a message. */
static int configure(struct daemon *daemon, const struct options *options)
{
    if (!find_user(options->server_user, &daemon->server_uid))
        return print_error("there is no user ", options->server_user);
    int error = paths_resolve(&daemon->paths);
    if (error)
        return print_error(paths_error_text(error), "");
    if (path_of_sibling("bin/funneld", daemon->program, sizeof(daemon->program)))
        return print_error("the path of this program is too long", "");
    daemon->device = options->device;
    bool spare = options->spare || switch_is_on("FUNNEL_SPARE");

    daemon->standby = spare && !feature_is_off(FEATURE_STANDBY);
    daemon->isolation = options->isolation;
    daemon->lane_moves_on = !feature_is_off(FEATURE_LANE_MOVES);
    daemon->spare_lane_on = spare || switch_is_on("FUNNEL_SPARE_LANE");
    daemon->batch_percent = TIMESLICE_BATCH_PERCENT;
    daemon->batch_slice_us = TIMESLICE_BATCH_US;
    daemon->metrics_address = options->metrics;
    daemon->stall_timeout_s = parse_seconds(options->stall_timeout);
    daemon->foreground = options->foreground;
    daemon->multiuser = options->multiuser;
    daemon->partitions.on = options->static_partitioning;
    return 0;
}

/* Takes the pipe directory, and opens the log in the log directory. 0, or the exit status. */
static int open_directories(struct daemon *daemon, const struct options *options)
{
    char reason[INSTANCE_REASON_MAX];

    if (instance_open(&daemon->instance, &daemon->paths, reason)) {
        fprintf(stderr, "%s\n", reason);
        return 1;
    }
    if (!inherited_exists())
        services_sweep(daemon->paths.pipe);
    int error = journal_open(daemon->paths.log, options->foreground);
    if (error) {
        instance_close(&daemon->instance);
        return print_error("cannot open control.log in the log directory: ", strerror(-error));
    }
    return 0;
}

static int apply_config(struct daemon *daemon, const char *config)
{
    char reason[CONFIG_REASON_MAX];

    if (!config || !config_apply(daemon, config, reason))
        return 0;
    services_close(daemon);
    instance_close(&daemon->instance);
    fprintf(stderr, "%s\n", reason);
    return 1;
}

int main(int argc, char **argv)
{
    static struct daemon daemon;
    const char *device = getenv("FUNNEL_DEVICE");
    struct options options = {.device = device && *device ? device : "auto"};
    int status = parse_options(argc, argv, &options);

    if (status >= 0)
        return status;
    if (inherited_read())
        return print_error("what the daemon before has left cannot be read", "");
    if (check_descriptor_limit()) /* a quota depends on it */
        return 1;
    daemon_init(&daemon);
    daemon.arguments = keep_arguments(argc, argv, options.config);
    take_name(argv[0]);
    if (configure(&daemon, &options))
        return 1;
    if (options.checks)
        return check_installation(&daemon, &options);
    if (open_directories(&daemon, &options))
        return 1;
    quotas_change_from_environment(&daemon.quotas);
    timeslice_read_environment(&daemon);
    if (apply_config(&daemon, options.config))
        return 1;
    return options.foreground || inherited_exists()
               ? daemon_run(&daemon, -1)
               : run_in_background(&daemon, options.prints_directory);
}
