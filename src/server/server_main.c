/* SPDX-License-Identifier: Apache-2.0 */
/*
 * funnel-server: from its command line to its end.
 */
#include "server_main.h"
#include "sandbox.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "accounting.h"
#include "capacity.h"
#include "claims.h"
#include "code_cache.h"
#include "command_protocol.h"
#include "cpus.h"
#include "daemon_link.h"
#include "daemon_report.h"
#include "descriptor_limit.h"
#include "driver_output.h"
#include "early_report.h"
#include "fault.h"
#include "feature.h"
#include "image_reader.h"
#include "joint_memory.h"
#include "log.h"
#include "memory.h"
#include "next_daemon.h"
#include "overdue.h"
#include "ptx_compiler.h"
#include "quota.h"
#include "sensor_watch.h"
#include "server_life.h"
#include "server_parts.h"
#include "stall.h"
#include "swap_ahead.h"
#include "switch.h"
#include "text.h"
#include "watchdog.h"
#include "window.h"
#include "window_claim.h"
#include "worker.h"
#include "worker_pool.h"

/* The server never takes more clients than this, however many windows there are. */
#define CLIENTS_MAX 512u
#define CPUS_MAX 4096u

/* Hardware queues of a context. A waiting stream occupies one, and once all are occupied every
 * other stream stalls. The driver's default is 8. Each costs 15 ms at the creation of a context,
 * and 9 ms at its end. So clients go on 0.7 s after the end of a server with 24 queues, and 0.9 s
 * with 32. */
#define HARDWARE_QUEUES_DEFAULT 24u
#define HARDWARE_QUEUES_MIN 8u
#define HARDWARE_QUEUES_MAX 32u /* that NVIDIA's driver takes */

#define BATCH_NICE 10

/* CPU seconds to read an image. The largest images take some tenths. */
#define IMAGE_SECONDS 10u

struct options {
    enum driver_kind device;
    const char *listen_path;
    int control_fd;
    int log_fd;
    bool spare;       /* its service has a spare lane */
    bool batch;       /* the batch lane of its service */
    uid_t user;       /* to change to, or -1 */
    uid_t daemon_uid; /* of the process that started the server */
};

static const char usage[] =
    "usage: funnel-server [--device auto|cuda|soft] [--spare] [--batch] [--control-fd N]\n"
    "                     [--log-fd N] [--user UID]\n"
    "       funnel-server [--device auto|cuda|soft] --listen SOCKET\n"
    "       funnel-server -v\n"
    "Shares a GPU between CUDA programs. Started by funneld; --listen is for tests, and -v prints "
    "the\n"
    "version of CUDA MPS whose server this stands for.\n";

static int parse_number(const char *text, int *ret_number)
{
    uint64_t number;

    if (text_to_u64(text, &number) || number > INT32_MAX)
        return -1;
    *ret_number = (int)number;
    return 0;
}

static int parse_user(const char *text, uid_t *ret_uid)
{
    uint64_t number;

    if (text_to_u64(text, &number) || number >= (uid_t)-1)
        return -1;
    *ret_uid = (uid_t)number;
    return 0;
}

static int parse_options(int argc, char **argv, struct options *ret_options)
{
    static const struct option known[] = {
        {"device", required_argument, NULL, 'd'}, {"control-fd", required_argument, NULL, 'c'},
        {"log-fd", required_argument, NULL, 'l'}, {"listen", required_argument, NULL, 'L'},
        {"spare", no_argument, NULL, 's'},        {"batch", no_argument, NULL, 'b'},
        {"user", required_argument, NULL, 'u'},   {NULL, 0, NULL, 0},
    };
    struct options options = {
        .control_fd = -1, .log_fd = -1, .user = (uid_t)-1, .daemon_uid = geteuid()};
    int option, error = 0;

    while (!error && (option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (option) {
        case 'd':
            error = driver_kind_parse(optarg, &options.device);
            break;
        case 'c':
            error = parse_number(optarg, &options.control_fd);
            break;
        case 'l':
            error = parse_number(optarg, &options.log_fd);
            break;
        case 'L':
            options.listen_path = optarg;
            break;
        case 's':
            options.spare = true;
            break;
        case 'b':
            options.batch = true;
            break;
        case 'u':
            error = parse_user(optarg, &options.user);
            break;
        default:
            error = -1;
        }
    }
    if (!options.listen_path && options.control_fd < 0)
        options.control_fd = SERVER_CONTROL_FD;
    if (options.log_fd < 0)
        options.log_fd = options.listen_path ? STDERR_FILENO : SERVER_LOG_FD;
    *ret_options = options;
    return error || optind < argc ? -1 : 0;
}

/* Programs may preload Funnel's client library; the server with the real driver must not load it.
 */
static void drop_preload(char **argv)
{
    const char *preload = getenv("LD_PRELOAD");

    if (!preload || !strstr(preload, "libcuda.so"))
        return;
    unsetenv("LD_PRELOAD");
    execv("/proc/self/exe", argv);
}

/* Eagerly loaded libraries wait for the kernels of all contexts. */
static void prepare_loading(void)
{
    setenv("CUDA_MODULE_LOADING", "LAZY", 1);
}

/* The environment's number if it is valid, else `normal`. */
static unsigned number_from_environment(const char *name, unsigned least, unsigned most,
                                        unsigned normal)
{
    const char *value = getenv(name);
    uint64_t number;

    return value && !text_to_u64(value, &number) && number >= least && number <= most
               ? (unsigned)number
               : normal;
}

static void set_hardware_queues(void)
{
    unsigned queues = number_from_environment("FUNNEL_HARDWARE_QUEUES", HARDWARE_QUEUES_MIN,
                                              HARDWARE_QUEUES_MAX, HARDWARE_QUEUES_DEFAULT);
    char text[12];

    text_format(text, sizeof(text), "%u", queues);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", text, 1);
    if (queues != HARDWARE_QUEUES_DEFAULT)
        log_line("Contexts have %u hardware queues", queues);
}

/* The driver must not become a client of Funnel's or NVIDIA's daemon. So its MPS pipe directory is
 * one that no user can create. */
static void prepare_environment(void)
{
    setenv("CUDA_MPS_PIPE_DIRECTORY", "/proc/self/no-daemon", 1);
    set_hardware_queues();
    unsetenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    unsetenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
    unsetenv("CUDA_MPS_CLIENT_PRIORITY");
}

static unsigned wanted_clients_max(void)
{
    return number_from_environment("FUNNEL_MAX_CLIENTS", 1, CLIENTS_MAX, CLIENTS_MAX);
}

static void report_unknown_features(void)
{
    char message[512];

    if (feature_complaint(message, sizeof(message)))
        log_line("%s", message);
}

static int start_pool(struct server *server)
{
    return worker_pool_start(server, pool_size_for(server->life->cpus, server->devices.count));
}

static void read_switches(struct server_life *life)
{
    life->cpus = number_from_environment("FUNNEL_CPUS", 1, CPUS_MAX, cpus_available());
    life->no_spare_partitions = feature_is_off(FEATURE_SPARE_SHARES);
    life->no_short_spin = feature_is_off(FEATURE_SHORT_SPIN);
    life->no_copy_load = feature_is_off(FEATURE_COPY_LOAD);
}

/* Before the sandbox closes, and beside the start, which waits for no management library. The
 * software GPU has no sensors; FUNNEL_SOFT_NVML is for tests of the library. */
static void start_sensors(struct server *server)
{
    const char *pci_bus_ids[ATTACH_DEVICES_MAX];

    bool has_sensors = server->life->driver_kind != DRIVER_SOFT || switch_is_on("FUNNEL_SOFT_NVML");

    if (!has_sensors || feature_is_off(FEATURE_SENSORS))
        return;
    for (unsigned i = 0; i < server->devices.count; i++)
        pci_bus_ids[i] = server->devices.device[i].record.pci_bus_id;
    server->life->sensors = sensor_watch_start(driver_path(), pci_bus_ids, server->devices.count);
}

/* Where kernels run on CPUs, the operating system's scheduler takes the place of time slices.
 * Threads of a batch lane are 10 steps nicer than others, and get about a tenth of a CPU that both
 * want. Threads inherit both settings. */
static void yield_cpus(void)
{
    const struct sched_param none = {.sched_priority = 0};

    errno = 0;
    int now = nice(BATCH_NICE);
    if ((now == -1 && errno) || sched_setscheduler(0, SCHED_BATCH, &none))
        log_line("The batch lane cannot leave the CPUs to others: %s", strerror(errno));
    else
        log_line("Batch lane: its threads have nice %d and SCHED_BATCH", now);
}

static int start_devices(struct server *server, const struct options *options, char *why,
                         size_t why_size)
{
    prepare_environment();
    prepare_loading();
    sandbox_drop_privileges(options->device != DRIVER_SOFT, options->listen_path);
    if (driver_output_capture())
        log_line("Device printf output cannot be separated from the server's own");
    int error = driver_load(options->device, &server->life->driver_kind, why, why_size);
    if (!error && options->batch && server->life->driver_kind == DRIVER_SOFT)
        yield_cpus();
    server->asks_for_lanes = options->spare;
    if (!error)
        error = devices_init(&server->devices, options->spare, capacity_prepare, why, why_size);
    if (!error && exclusive_init(&server->devices)) {
        text_format(why, why_size, "no memory for the gates of %u contexts", server->devices.count);
        error = -ENOMEM;
    }
    if (error)
        return error;

    start_sensors(server);
    sandbox_seal();
    server->life->clients_max = windows_limit(&server->devices);
    if (server->life->clients_max > wanted_clients_max())
        server->life->clients_max = wanted_clients_max();
    log_line("Takes %u clients at a time", server->life->clients_max);
    log_line("Driver library %s, version %d (%s)", driver_path(), server->devices.driver_version,
             server->life->driver_kind == DRIVER_SOFT ? "the software GPU" : "NVIDIA's");
    return 0;
}

static void on_signal(void *context, int signal_number)
{
    log_line("Signal %d", signal_number);
    server_leave(context, true);
}

/* A client of another lane may come here, and needs the window that it has there. */
static bool is_claimed(void *context, uint64_t base)
{
    const struct server *server = context;

    return window_claim_exists(server->life->claims, base);
}

static int start_serving(struct server *server, const struct options *options, char *why,
                         size_t why_size)
{
    int error = server_parts_init(server);

    server->life->claims = window_claims_open(SERVER_CLAIMS_FD);
    windows_set_claims(server_windows(server), is_claimed, server);
    if (!error && server->life->claims)
        joint_memory_use(server, &server->life->claims->joint);
    overdue_watch(server);
    if (!error)
        error = server_life_start(server);

    if (!error)
        error = stall_watch_start(server);
    if (!error)
        error = early_report_start(server);
    if (!error)
        error = start_pool(server);
    if (!error)
        error = watchdog_start(server); /* which uses the pool and hurries heartbeats */
    if (!error)
        error = swap_ahead_start(server);
    if (!error)
        error = accounting_start(server);
    if (!error)
        error = code_cache_start(server);
    if (!error && server->life->control_fd >= 0)
        error = daemon_link_start(server);
    if (!error && server->life->control_fd >= 0)
        error = next_daemon_watch(server, options->daemon_uid);
    if (!error && options->listen_path)
        error = server_listen(server, options->listen_path);
    if (!error && (!loop_watch_signal(server->life->loop, SIGTERM, on_signal, server) ||
                   !loop_watch_signal(server->life->loop, SIGINT, on_signal, server)))
        error = -1;
    if (error)
        text_format(why, why_size, "the server cannot start serving: %s", strerror(-error));
    return error;
}

/* The reader must have no data of clients, driver and daemon in memory, so it starts before them.
 */
static void start_image_reader(struct server_life *life)
{
    if (feature_is_off(FEATURE_SANDBOX))
        return;
    int error = image_reader_start(image_facts_read, IMAGE_SECONDS, &life->image_reader);
    if (error)
        log_line("No process can be started to read images in (%s): the server reads them itself",
                 strerror(-error));
}

/* Early for the same reason. A failure is an error, because an operator who sets
 * FUNNEL_PTX_COMPILER does not want the driver's compiler. */
static int start_ptx_compiler(struct server_life *life, char *why, size_t why_size)
{
    const char *path = getenv("FUNNEL_PTX_COMPILER");
    char reason[IMAGE_PROCESS_WHY] = "";

    if (!path || !*path)
        return 0;
    int error = ptx_compiler_start(path, reason, sizeof(reason), &life->ptx_compiler);
    if (error)
        text_format(why, why_size, "FUNNEL_PTX_COMPILER=%s cannot compile PTX: %s", path, reason);
    else
        log_line("PTX is compiled with %s, in processes of its own", path);
    return error;
}

static int start_server(struct server *server, const struct options *options, char *why,
                        size_t why_size)
{
    int error = start_ptx_compiler(server->life, why, why_size);

    if (!error)
        error = start_devices(server, options, why, why_size);
    read_switches(server->life);
    return error ? error : start_serving(server, options, why, why_size);
}

/* Gives up the user that started the server. 0, or -errno after the daemon has heard of it. */
static int become_user(const struct options *options)
{
    int error = sandbox_become_user(options->user);

    if (error) {
        char why[100];

        text_format(why, sizeof(why), "cannot become user %u: %s", (unsigned)options->user,
                    strerror(-error));
        daemon_report_failed(options->control_fd, CUDA_ERROR_NOT_PERMITTED, why);
    }
    return error;
}

static void begin_log(const struct options *options)
{
    log_open(options->log_fd == STDOUT_FILENO ? dup(STDOUT_FILENO) : options->log_fd, "Server");
    log_line("Startup");
    report_unknown_features();
    log_line("CUDA MPS Server binary version: %d, of Funnel", MPS_BINARY_VERSION);
    if (options->control_fd >= 0)
        log_line("Connecting to control daemon on descriptor %d", options->control_fd);
}

/* Runs until the last client has left a server that shall end, and exits. */
_Noreturn static void serve_and_exit(struct server *server)
{
    daemon_report_ready(server);
    log_line("Server has started");
    loop_run(server->life->loop);
    daemon_report_clients_lost(server, CUDA_ERROR_MPS_RPC_FAILURE);
    code_cache_finish(server);
    for (unsigned i = 0; i < server->devices.count; i++)
        log_line("Destroy server context on device %u", i);
    log_line("Server exits");
    /* Threads of sessions may still be inside the driver, so no object is destroyed. */
    _exit(0);
}

int server_main(int argc, char **argv)
{
    static struct server server;
    struct options options;
    char why[400] = "";

    if (argc == 2 && (!strcmp(argv[1], "-v") || !strcmp(argv[1], "--version")))
        return printf("%d\n", MPS_BINARY_VERSION) < 0;
    if (argc == 2 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help")))
        return fputs(usage, stdout) < 0;
    if (parse_options(argc, argv, &options)) {
        fputs(usage, stderr);
        return 2;
    }
    drop_preload(argv);
    if (become_user(&options))
        return 1;
    signal(SIGPIPE, SIG_IGN);
    begin_log(&options);
    descriptor_limit_raise();
    if (server_quotas_init(getenv("FUNNEL_QUOTAS")))
        log_line("FUNNEL_QUOTAS is ignored");
    server_init(&server);
    server.on_fatal = fault_on_fatal;
    if (server_life_init(&server, worker_run)) {
        log_line("Server cannot start: it is out of memory");
        return 1;
    }
    start_image_reader(server.life);
    server.life->control_fd = options.control_fd;

    if (start_server(&server, &options, why, sizeof(why))) {
        log_line("Server cannot start: %s", why);
        daemon_report_failed(options.control_fd, CUDA_ERROR_SYSTEM_NOT_READY, why);
        return 1;
    }
    serve_and_exit(&server);
}
