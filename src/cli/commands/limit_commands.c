/* SPDX-License-Identifier: Apache-2.0 */
/* funnel limit and provision: limits of programs that run. Both use the command language of the
 * daemon, which checks the values. */
#include <errno.h>
#include <getopt.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "command_client.h"
#include "daemon_lines.h"
#include "fd.h"
#include "snapshot.h"
#include "suspend_file.h"
#include "text.h"

/* ---- limit ---- */

/* Appends " --name value"; a value is one word. */
static int append(char *line, const char *name, const char *value)
{
    size_t used = strlen(line);
    char word[64];

    if (!strcmp(name, "user")) {
        if (!daemon_user_id(value, word, sizeof(word)))
            return cli_usage("there is no user %s", value);
        value = word;
    }
    if (!strcmp(name, "sm") && *value && value[strlen(value) - 1] == '%' &&
        text_format(word, sizeof(word), "%.*s", (int)strlen(value) - 1, value))
        value = word;
    if (!*value || strpbrk(value, " \t\r\n"))
        return cli_usage("--%s takes one word, not \"%s\"", name, value);
    return text_format(line + used, DAEMON_LINE_MAX - used, " --%s %s", name, value)
               ? 0
               : cli_usage("the value of --%s is too long", name);
}

static int run_limit(int argc, char **argv)
{
    static const struct option known[] = {{"client", required_argument, NULL, 'o'},
                                          {"user", required_argument, NULL, 'o'},
                                          {"group", required_argument, NULL, 'o'},
                                          {"sm", required_argument, NULL, 'o'},
                                          {"sms", required_argument, NULL, 'o'},
                                          {"memory", required_argument, NULL, 'o'},
                                          {"device", required_argument, NULL, 'o'},
                                          {"priority", required_argument, NULL, 'o'},
                                          {"class", required_argument, NULL, 'o'},
                                          {"oversubscribe", required_argument, NULL, 'o'},
                                          {"evict-after", required_argument, NULL, 'o'},
                                          {"quota", required_argument, NULL, 'o'},
                                          {"joint-memory", required_argument, NULL, 'o'},
                                          {NULL, 0, NULL, 0}};
    char line[DAEMON_LINE_MAX] = "limit";
    _cleanup_fd_ int fd = -1;
    int option, which = 0, status = 0;

    while (!status && (option = getopt_long(argc, argv, "", known, &which)) != -1)
        status = option == 'o' ? append(line, known[which].name, optarg) : cli_wrong_option();
    if (status)
        return status;
    if (optind < argc)
        return cli_usage("unexpected argument: %s", argv[optind]);
    return daemon_connect(&fd) || daemon_run_line(fd, line, false);
}

/* ---- provision ---- */

/* A part of the plan: what clients of this name get. */
struct portion {
    char name[64]; /* process id, user or group */
    double value;
    unsigned clients;
};

#define PORTIONS_MAX 64

struct plan {
    const char *how;   /* equal, half-equal, weight, sms */
    unsigned expected; /* clients to plan for, 0 = those that run */
    struct portion portions[PORTIONS_MAX];
    unsigned count;
};

/* The process id, or where the daemon does not know it, in another PID namespace, the ID. */
static int number_of(const struct command_client *client)
{
    return client->row.identity.pid ? client->row.identity.pid : (int)client->row.id;
}

static bool has_name(const struct command_client *client, const char *name)
{
    const struct server_identity *identity = &client->row.identity;
    const struct passwd *entry = getpwuid(identity->uid);
    char pid[16];

    text_format(pid, sizeof(pid), "%d", number_of(client));
    return !strcmp(pid, name) || !strncmp(identity->group, name, sizeof(identity->group)) ||
           (entry && !strcmp(entry->pw_name, name));
}

static struct portion *portion_of(struct plan *plan, const struct command_client *client)
{
    for (unsigned i = 0; i < plan->count; i++)
        if (has_name(client, plan->portions[i].name))
            return &plan->portions[i];
    return NULL;
}

static double sum_of_weights(struct plan *plan, const struct snapshot *snapshot)
{
    double sum = 0;

    for (unsigned i = 0; i < snapshot->client_count; i++) {
        const struct portion *portion = portion_of(plan, &snapshot->clients[i]);

        sum += portion ? portion->value : 1;
    }
    return sum;
}

/* " --sm 12.5" for one client; nothing when the plan says nothing about it. */
static void share_words(struct plan *plan, const struct snapshot *snapshot,
                        const struct command_client *client, char words[64])
{
    const struct portion *portion = portion_of(plan, client);
    unsigned clients = plan->expected ? plan->expected : snapshot->client_count;
    double percent = 0;

    *words = '\0';
    if (!strcmp(plan->how, "sms")) {
        if (portion)
            text_format(words, 64, " --sms %.0f", portion->value);
        return;
    }
    if (!strcmp(plan->how, "weight"))
        percent = 100 * (portion ? portion->value : 1) / sum_of_weights(plan, snapshot);
    else
        percent = (!strcmp(plan->how, "equal") ? 100.0 : 200.0) / clients;
    /* Shares are rounded down to multiprocessors, so the percentage is rounded up. */
    text_format(words, 64, " --sm %.2f", percent > 100 ? 100 : percent + 0.005);
}

static int provision_running(int fd, struct plan *plan, const struct snapshot *snapshot)
{
    for (unsigned i = 0; i < snapshot->client_count; i++) {
        char line[DAEMON_LINE_MAX], words[64];

        share_words(plan, snapshot, &snapshot->clients[i], words);
        text_format(line, sizeof(line), "limit --client %d%s", number_of(&snapshot->clients[i]),
                    words);
        if (*words && daemon_run_line(fd, line, false))
            return 1;
    }
    return 0;
}

/* Programs that come later get the same. */
static int provision_later(int fd, const struct plan *plan, const struct snapshot *snapshot)
{
    double percent = (!strcmp(plan->how, "equal") ? 100.0 : 200.0) / plan->expected;
    char line[DAEMON_LINE_MAX];

    percent = percent > 100 ? 100 : percent;
    text_format(line, sizeof(line), "set_default_active_thread_percentage %.2f", percent);
    if (daemon_run_line(fd, line, true))
        return 1;
    for (unsigned i = 0; i < snapshot->server_count; i++) {
        if (!snapshot->servers[i].pid)
            continue;
        text_format(line, sizeof(line), "set_active_thread_percentage %d %.2f",
                    snapshot->servers[i].pid, percent);
        if (daemon_run_line(fd, line, true))
            return 1;
    }
    printf("Clients that come later: %.4g %% of the SMs\n", percent);
    return 0;
}

static int check_names(struct plan *plan, const struct snapshot *snapshot)
{
    for (unsigned i = 0; i < snapshot->client_count; i++) {
        struct portion *portion = portion_of(plan, &snapshot->clients[i]);

        if (portion)
            portion->clients++;
    }
    for (unsigned i = 0; i < plan->count; i++)
        if (plan->portions[i].clients == 0)
            return cli_fail("no client, user or group that runs is called %s",
                            plan->portions[i].name);
    return 0;
}

static int provision(struct plan *plan)
{
    _cleanup_fd_ int fd = -1;
    struct snapshot snapshot;
    int status;

    if (daemon_connect(&fd))
        return 1;
    status = snapshot_read(fd, &snapshot);
    if (status)
        return cli_fail("%s", command_lost(status));
    status = check_names(plan, &snapshot);
    if (!status)
        status = provision_running(fd, plan, &snapshot);
    if (!status && plan->expected)
        status = provision_later(fd, plan, &snapshot);
    snapshot_fini(&snapshot);
    return status;
}

/* "name=4" */
static int parse_portion(struct plan *plan, const char *text)
{
    struct portion *portion = &plan->portions[plan->count];
    const char *value = strchr(text, '=');
    char *end = NULL;

    if (plan->count == PORTIONS_MAX)
        return cli_usage("more than %d names", PORTIONS_MAX);
    if (value)
        portion->value = strtod(value + 1, &end);
    if (!value || value == text || end == value + 1 || *end || !(portion->value > 0) ||
        portion->value > 1e6 || (size_t)(value - text) >= sizeof(portion->name))
        return cli_usage("%s is not NAME=NUMBER with a number above 0", text);
    memcpy(portion->name, text, (size_t)(value - text));
    plan->count++;
    return 0;
}

static int parse_plan(int argc, char **argv, struct plan *plan)
{
    static const struct option known[] = {{"clients", required_argument, NULL, 'c'},
                                          {NULL, 0, NULL, 0}};
    uint64_t clients = 0;
    int option, status = 0;

    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1)
        if (option != 'c' || text_to_u64(optarg, &clients) || !clients || clients > 10000)
            return cli_usage("--clients takes a number of clients; there is no other option");
    if (optind == argc)
        return cli_usage("say how: equal, half-equal, weight or sms");
    plan->how = argv[optind++];
    plan->expected = (unsigned)clients;
    for (; optind < argc && !status; optind++)
        status = parse_portion(plan, argv[optind]);
    return status;
}

static int run_provision(int argc, char **argv)
{
    static struct plan plan;
    int status = parse_plan(argc, argv, &plan);
    bool by_name;

    if (status)
        return status;
    by_name = !strcmp(plan.how, "weight") || !strcmp(plan.how, "sms");
    if (!by_name && strcmp(plan.how, "equal") && strcmp(plan.how, "half-equal"))
        return cli_usage("equal, half-equal, weight or sms, not %s", plan.how);
    if (by_name != (plan.count > 0) || (by_name && plan.expected))
        return cli_usage("weight and sms take NAME=NUMBER; equal and half-equal do not");
    return provision(&plan);
}

/* ---- terminate, suspend, evict, resume ---- */

/* A line for the daemon about one program: 0, or 2 after an error message. */
static int name_client(const char *command, int argc, char **argv, char line[DAEMON_LINE_MAX])
{
    uint64_t client;

    if (argc != 1)
        return cli_usage("which program? funnel ps lists them");
    if (text_to_u64(argv[0], &client))
        return cli_usage("%s is not the process id of a program", argv[0]);
    text_format(line, DAEMON_LINE_MAX, "%s %s", command, argv[0]);
    return 0;
}

/* Has the daemon do something to one program. */
static int order_for_client(const char *command, int argc, char **argv, bool quiet)
{
    char line[DAEMON_LINE_MAX];
    _cleanup_fd_ int fd = -1;
    int status = name_client(command, argc - 1, argv + 1, line);

    return status ? status : daemon_connect(&fd) || daemon_run_line(fd, line, quiet);
}

static int run_terminate(int argc, char **argv)
{
    int status = order_for_client("client terminate", argc, argv, true);

    if (!status)
        printf("Program %s has lost the GPU: its next CUDA call fails.\n", argv[1]);
    return status;
}

static int suspend_to(const char *line, const char *directory)
{
    _cleanup_fd_ int fd = -1, envelope = -1;

    if (daemon_connect(&fd) || (directory && suspend_file_make(directory, &envelope)))
        return 1;
    return daemon_run_line_with(fd, line, envelope);
}

static int run_suspend(int argc, char **argv)
{
    static const struct option known[] = {{"to", required_argument, NULL, 't'}, {NULL, 0, NULL, 0}};
    const char *directory = NULL;
    char line[DAEMON_LINE_MAX];
    int option;

    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option != 't')
            return cli_usage("--to takes a directory; there is no other option");
        directory = optarg;
    }
    int status = name_client("suspend", argc - optind, argv + optind, line);
    return status ? status : suspend_to(line, directory);
}

static int run_evict(int argc, char **argv)
{
    return order_for_client("evict", argc, argv, false);
}

static int run_resume(int argc, char **argv)
{
    return order_for_client("resume", argc, argv, false);
}

static int run_migrate(int argc, char **argv)
{
    static const struct option known[] = {{"device", required_argument, NULL, 'd'},
                                          {NULL, 0, NULL, 0}};
    char client[DAEMON_LINE_MAX], line[DAEMON_LINE_MAX];
    const char *device = NULL;
    _cleanup_fd_ int fd = -1;
    int option;

    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option != 'd')
            return cli_usage("--device takes a device; there is no other option");
        device = optarg;
    }
    if (!device || !*device || strpbrk(device, " \t\r\n"))
        return cli_usage("to which device? --device takes its number or UUID");
    int status = name_client("migrate", argc - optind, argv + optind, client);
    if (!status && !text_format(line, sizeof(line), "%s --device %s", client, device))
        status = cli_usage("%s is no device", device);
    return status ? status : daemon_connect(&fd) || daemon_run_line(fd, line, false);
}

const struct subcommand limit_subcommands[] = {
    {"limit", "change limits of programs that run",
     "Usage: funnel limit --client PID|ID | --user USER | --group NAME\n"
     "                    [--sm PERCENT|none | --sms NUMBER] [--priority 0|1]\n"
     "                    [--memory SIZE|none] [--joint-memory SIZE|none] [--device DEVICE]\n"
     "                    [--class critical|normal|batch] [--oversubscribe true|false]\n"
     "                    [--evict-after SECONDS|none]\n"
     "       funnel limit --quota NAME=VALUE[,NAME=VALUE]...\n\n"
     "Changes limits of programs that run, from their next command on. For a user or a group it\n"
     "binds later programs, too. A program is in the group that FUNNEL_GROUP names.\n\n"
     "      --sm PERCENT     share of the SMs, at most 100, rounded down to what the device can "
     "be\n"
     "                       divided into; none lifts the limit\n"
     "      --sms NUMBER     the same as a number of SMs\n"
     "      --memory SIZE    device memory it may have, such as 512M or 2G; none lifts the limit\n"
     "      --joint-memory SIZE\n"
     "                       device memory that all programs of the user, or of the group, may "
     "have\n"
     "                       together; none lifts the limit\n"
     "      --device DEVICE  memory of this device only, by ordinal or UUID\n"
     "      --priority P     0 normal, 1 below normal\n"
     "      --class CLASS    critical, normal or batch; a program moves to the other lane at its "
     "next\n"
     "                       idle point. For --user and --group: the highest class of their "
     "programs,\n"
     "                       and the one of those that ask for none\n"
     "      --oversubscribe true|false\n"
     "                       whether its memory may leave the device for that of others that say\n"
     "                       true, and theirs for its own, where there is not enough for all\n"
     "      --evict-after SECONDS\n"
     "                       its memory leaves the device when it has rested for so long, and "
     "comes\n"
     "                       back for its next CUDA call; none lifts that\n"
     "      --quota CHANGES  quotas of every client and user; funnel limits shows them, and\n"
     "                       NAME=default takes a change back\n\n"
     "Examples:\n"
     "  funnel limit --client 4711 --sm 25\n"
     "  funnel limit --client 4711 --class batch\n"
     "  funnel limit --group batch --sms 32 --memory 20G --priority 1\n"
     "  funnel limit --group pod_0f1e2d3c4b5a --joint-memory 24G\n"
     "  funnel limit --user alice --sm 50\n"
     "  funnel limit --quota host-memory=8G,servers=8\n",
     run_limit},
    {"provision", "divide the SMs among the programs that run",
     "Usage: funnel provision equal|half-equal [--clients N]\n"
     "       funnel provision weight|sms NAME=NUMBER...\n\n"
     "Sets the shares that are usual with MPS. NAME is a process id, a user or a group.\n\n"
     "  equal       100/n percent each: no interference, but idle SMs are not used by others\n"
     "  half-equal  200/n percent each: shares overlap, which is better for most\n"
     "  weight      in these proportions; a program that is not named has weight 1\n"
     "  sms         these numbers of SMs; a program that is not named keeps its share\n"
     "  --clients N plan for so many, and give those that come later the same\n\n"
     "Examples:\n"
     "  funnel provision half-equal --clients 4\n"
     "  funnel provision weight serving=3 batch=1\n"
     "  funnel provision sms 4711=64 4712=32\n",
     run_provision},
    {"terminate", "take the GPU from a program that runs",
     "Usage: funnel terminate PID|ID\n\n"
     "Ends what the program has on the GPU and frees its memory there; other programs continue.\n"
     "The process itself is not killed: its CUDA calls fail with error 810 from then on. A "
     "program\n"
     "of another PID namespace, whose PID is 0, is named by its ID.\n\n"
     "Example:\n  funnel terminate 4711\n",
     run_terminate},
    {"suspend", "move the GPU memory of a program to the host",
     "Usage: funnel suspend [--to DIRECTORY] PID|ID\n\n"
     "Waits until the program has no work on the GPU, at most 30 seconds, and moves its memory\n"
     "there to page-locked host memory, whose size the quota swap-memory bounds. The program\n"
     "stands still at its next CUDA call until funnel resume; others may use its memory.\n"
     "Where it has memory that cannot be moved, the answer says what, and it goes on.\n\n"
     "      --to DIRECTORY   to a file without a name in this directory instead. The program\n"
     "                       outlives its server then: it waits in the next one\n\n"
     "Examples:\n  funnel suspend 4711\n  funnel suspend --to /scratch 4711\n"
     "  funnel resume 4711\n",
     run_suspend},
    {"evict", "move the GPU memory of a program to the host until it is used",
     "Usage: funnel evict PID|ID\n\n"
     "Moves the memory of a program to the host like funnel suspend. For its next CUDA call the\n"
     "memory returns by itself, and the call waits until the GPU has enough free memory.\n\n"
     "Example:\n  funnel evict 4711\n",
     run_evict},
    {"resume", "move the memory of a suspended program back to the GPU",
     "Usage: funnel resume PID|ID\n\n"
     "The program goes on with the same memory at the same addresses. Where the device has too\n"
     "little free memory it stays suspended.\n\n"
     "Example:\n  funnel resume 4711\n",
     run_resume},
    {"migrate", "move a program that runs to another GPU",
     "Usage: funnel migrate PID|ID --device DEVICE\n\n"
     "Moves the program with all that it has to another GPU of its server, of the same model, by\n"
     "number or UUID (funnel devices). It does so at its next CUDA call without work in flight,\n"
     "and stands still while its memory is copied. Its addresses stay, and so does what it has\n"
     "been told of its GPU. Where it has something that cannot be moved, the answer says what,\n"
     "and it goes on where it is. An order to the GPU where it is takes an earlier one back.\n\n"
     "Example:\n  funnel migrate 4711 --device 1\n",
     run_migrate},
    {NULL, NULL, NULL, NULL},
};
