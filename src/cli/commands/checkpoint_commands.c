/* SPDX-License-Identifier: Apache-2.0 */
/* funnel checkpoint and restore: the device memory of a program in a directory. It outlives daemon,
 * servers and, with CRIU, the process; docs/operating.md says how they go together. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "checkpoint_directory.h"
#include "checkpoint_pack.h"
#include "cli.h"
#include "command_client.h"
#include "control_group.h"
#include "daemon_lines.h"
#include "fd.h"
#include "memory_left.h"
#include "process_stat.h"
#include "snapshot.h"
#include "text.h"

/* How long a detached program may be known to its server. */
#define LEAVE_PAUSE_NS 10000000
#define LEAVE_TRIES 1000

static bool is_named(const struct command_client *client, uint64_t name)
{
    return (uint64_t)client->row.identity.pid == name ||
           (!client->row.identity.pid && client->row.id == name);
}

static const struct command_client *find_client(const struct snapshot *snapshot, uint64_t name)
{
    for (unsigned i = 0; i < snapshot->client_count; i++)
        if (is_named(&snapshot->clients[i], name))
            return &snapshot->clients[i];
    return NULL;
}

/* ---- checkpoint ---- */

struct choice {
    enum checkpoint_state state;
    const char *store_path; /* or NULL */
    bool compress;
    struct chunk_store store;      /* open when there is a path */
    pid_t server_pid;              /* 0 = not to be seen from here */
    char answer[COMMAND_TEXT_MAX]; /* the daemon's */
};

static int describe_client(int fd, uint64_t name, struct choice *choice,
                           struct checkpoint_manifest *manifest)
{
    struct snapshot snapshot;
    int error = snapshot_read(fd, &snapshot);

    if (error)
        return cli_fail("%s", command_lost(error));
    const struct command_client *client = find_client(&snapshot, name);
    if (client) {
        checkpoint_manifest_fill(manifest, &snapshot, client);
        choice->server_pid = snapshot_server_of(&snapshot, client)->seen_pid;
    }
    snapshot_fini(&snapshot);
    return client ? 0
                  : cli_fail("there is no program %llu; funnel ps lists them",
                             (unsigned long long)name);
}

static int order_contents(int fd, uint64_t name, int envelope, struct choice *choice)
{
    static const char *const commands[] = {"checkpoint", "suspend", "detach"};
    char line[DAEMON_LINE_MAX];

    text_format(line, sizeof(line), "%s %llu", commands[choice->state], (unsigned long long)name);
    return daemon_try_with(fd, line, envelope, choice->answer, sizeof(choice->answer))
               ? cli_fail("%s", choice->answer)
               : 0;
}

/* The program may depend on the memory's file by now. */
static int publish(struct checkpoint_directory *checkpoint, struct checkpoint_manifest *manifest,
                   const struct choice *choice)
{
    if (!checkpoint_directory_publish(checkpoint, manifest)) {
        puts(choice->answer);
        return 0;
    }
    if (manifest->state == CHECKPOINT_RUNNING)
        checkpoint_directory_remove(checkpoint);
    else
        cli_fail("the memory of the %s program is in %s", checkpoint_state_name(manifest->state),
                 checkpoint->temporary);
    return 1;
}

static int fill_directory(int fd, uint64_t name, struct checkpoint_directory *checkpoint,
                          int envelope, struct choice *choice, struct checkpoint_manifest *manifest)
{
    if ((choice->store_path && checkpoint_pack_check(checkpoint, &choice->store)) ||
        order_contents(fd, name, envelope, choice) ||
        (choice->store_path && checkpoint_pack_new(checkpoint, &choice->store, manifest))) {
        checkpoint_directory_remove(checkpoint);
        return 1;
    }
    return publish(checkpoint, manifest, choice);
}

/* Then only chunks that are new are written to a disk. The server makes the pages, so its control
 * groups count. */
static bool goes_through_memory(const struct choice *choice,
                                const struct checkpoint_manifest *manifest)
{
    return choice->store_path && choice->server_pid &&
           manifest->device_bytes <
               memory_left("/proc", CONTROL_GROUP_ROOT, choice->server_pid) / 2;
}

/* CRIU can dump a process when its server has closed the last socket to it. */
static int await_end(int fd, uint64_t name)
{
    const struct timespec pause = {.tv_nsec = LEAVE_PAUSE_NS};
    bool is_there = true;

    for (int tries = 0; is_there && tries < LEAVE_TRIES; tries++) {
        struct snapshot snapshot;

        int error = snapshot_read(fd, &snapshot);
        if (error)
            return cli_fail("%s", command_lost(error));
        is_there = find_client(&snapshot, name) != NULL;
        snapshot_fini(&snapshot);
        nanosleep(&pause, NULL);
    }
    return is_there ? cli_fail("its server has not closed its sockets; server.log may say why") : 0;
}

static int make_checkpoint(uint64_t name, const char *path, struct choice *choice)
{
    struct checkpoint_manifest manifest = {.state = choice->state};
    struct checkpoint_directory checkpoint;
    _cleanup_fd_ int fd = -1, envelope = -1;

    if (daemon_connect(&fd) || describe_client(fd, name, choice, &manifest) ||
        checkpoint_directory_make(&checkpoint, path, goes_through_memory(choice, &manifest),
                                  &envelope))
        return 1;
    int status = fill_directory(fd, name, &checkpoint, envelope, choice, &manifest);
    checkpoint_directory_close(&checkpoint);
    return status || choice->state != CHECKPOINT_DETACHED ? status : await_end(fd, name);
}

static int make_packed(uint64_t name, const char *path, struct choice *choice)
{
    if (pack_open_store(&choice->store, choice->store_path, choice->compress))
        return 1;
    int status = make_checkpoint(name, path, choice);
    chunk_store_close(&choice->store);
    return status;
}

/* 0, or 2 after an error message. */
static int take_option(int option, struct choice *choice)
{
    if (option == 't' || option == 'z') {
        choice->compress |= option == 'z';
        choice->store_path = option == 't' ? optarg : choice->store_path;
        return 0;
    }
    if (option != 's' && option != 'd')
        return cli_wrong_option();
    if (choice->state != CHECKPOINT_RUNNING)
        return cli_usage("either --stop or --detach");
    choice->state = option == 's' ? CHECKPOINT_SUSPENDED : CHECKPOINT_DETACHED;
    return 0;
}

static int take_options(int argc, char **argv, struct choice *choice)
{
    static const struct option known[] = {{"stop", no_argument, NULL, 's'},
                                          {"detach", no_argument, NULL, 'd'},
                                          {"store", required_argument, NULL, 't'},
                                          {"zstd", no_argument, NULL, 'z'},
                                          {NULL, 0, NULL, 0}};
    int option, status = 0;

    while (!status && (option = getopt_long(argc, argv, "", known, NULL)) != -1)
        status = take_option(option, choice);
    return status;
}

static int run_checkpoint(int argc, char **argv)
{
    struct choice choice = {.state = CHECKPOINT_RUNNING};
    int status = take_options(argc, argv, &choice);
    uint64_t name;

    if (status)
        return status;
    if (argc - optind != 2)
        return cli_usage("which program, and into which directory?");
    if (text_to_u64(argv[optind], &name))
        return cli_usage("%s is not the process id of a program", argv[optind]);
    if (choice.compress && !choice.store_path)
        return cli_usage("--zstd is for the chunks of --store");
    if (choice.store_path && choice.state != CHECKPOINT_RUNNING)
        return cli_usage("--store is for programs that go on; funnel pack packs the file of "
                         "another one when that has come back, or ended");
    return choice.store_path ? make_packed(name, argv[optind + 1], &choice)
                             : make_checkpoint(name, argv[optind + 1], &choice);
}

/* ---- restore ---- */

static int check_memory(const char *path, const struct checkpoint_manifest *manifest)
{
    char name[PATH_MAX];
    struct stat status;

    if (manifest->is_packed)
        return 0;

    if (path_join(path, "memory", name, sizeof(name)) || stat(name, &status))
        return cli_fail("%s has no file \"memory\"", path);
    if ((uint64_t)status.st_size != manifest->memory_size)
        return cli_fail("%s has %llu bytes, and its manifest says %llu", name,
                        (unsigned long long)status.st_size,
                        (unsigned long long)manifest->memory_size);
    return 0;
}

static bool has_device(const struct command_server *server, const struct checkpoint_device *device)
{
    char uuid[GPU_UUID_TEXT];

    for (unsigned i = 0; i < server->device_count; i++) {
        device_uuid_text(&server->devices[i], uuid);
        if (!strcmp(uuid, device->uuid))
            return true;
    }
    return false;
}

static int check_devices(const char *path, const struct command_server *server,
                         const struct checkpoint_manifest *manifest)
{
    for (unsigned i = 0; i < manifest->device_count; i++) {
        const struct checkpoint_device *device = &manifest->devices[i];

        if (!has_device(server, device))
            return cli_fail("%s is of a program on %s (%s), which the server does not have", path,
                            device->name, device->uuid);
    }
    return 0;
}

/* Another process may have the number by now. */
static bool is_same_process(const struct command_client *client,
                            const struct checkpoint_manifest *manifest)
{
    uint64_t started = process_stat_read(client->seen_pid).started;

    return !started || !manifest->started || started == manifest->started;
}

static int check_client(const char *path, const struct snapshot *snapshot,
                        const struct command_client *client,
                        const struct checkpoint_manifest *manifest)
{
    if (!is_same_process(client, manifest))
        return cli_fail("process %d is another one than that of %s", manifest->pid, path);
    return check_devices(path, snapshot_server_of(snapshot, client), manifest);
}

static int resume(int fd, const char *path, const struct checkpoint_manifest *manifest)
{
    uint64_t name = (uint64_t)(manifest->pid ? manifest->pid : manifest->id);
    char line[DAEMON_LINE_MAX];
    struct snapshot snapshot;

    int error = snapshot_read(fd, &snapshot);
    if (error)
        return cli_fail("%s", command_lost(error));
    const struct command_client *client = find_client(&snapshot, name);
    int status = client ? check_client(path, &snapshot, client, manifest)
                        : cli_fail("program %llu waits in no server; when it lives, its next CUDA "
                                   "call brings it there",
                                   (unsigned long long)name);
    snapshot_fini(&snapshot);
    text_format(line, sizeof(line), "resume %llu", (unsigned long long)name);
    return status ? status : daemon_run_line(fd, line, false);
}

static int restore(const char *path)
{
    struct checkpoint_manifest manifest;
    _cleanup_fd_ int fd = -1;

    if (checkpoint_manifest_read(path, &manifest) || check_memory(path, &manifest))
        return 1;
    if (manifest.state == CHECKPOINT_RUNNING)
        return cli_fail("%s was made of a program that went on, so nothing waits for it; "
                        "checkpoint --stop or --detach makes one that can be restored",
                        path);
    if (manifest.is_packed && checkpoint_unpack(path, &manifest))
        return 1;
    if (manifest.state == CHECKPOINT_DETACHED) {
        printf("%s is whole. The memory returns with the next CUDA call of process %d.\n", path,
               manifest.pid);
        return 0;
    }
    return daemon_connect(&fd) || resume(fd, path, &manifest);
}

static int run_restore(int argc, char **argv)
{
    if (argc != 2)
        return cli_usage("which directory?");
    return restore(argv[1]);
}

const struct subcommand checkpoint_subcommands[] = {
    {"checkpoint", "write the GPU memory of a program to a directory",
     "Usage: funnel checkpoint [--stop | --detach] PID|ID DIRECTORY\n"
     "       funnel checkpoint --store STORE [--zstd] PID|ID DIRECTORY\n\n"
     "Writes the memory of the program on the GPU to the new directory, which appears when it is\n"
     "complete. Then waits until the program has no work there, at most 30 seconds. The program\n"
     "stands still while the server copies what has changed meanwhile, within the GPU where that\n"
     "has enough free memory, and goes on. CRIU keeps what it has in host memory.\n\n"
     "      --stop     the program stays suspended, without memory on the GPU, until funnel\n"
     "                 restore, and outlives its server\n"
     "      --detach   the program leaves the server as well, so that CRIU can dump it. Its next\n"
     "                 CUDA call attaches it again, and the memory returns\n"
     "      --store STORE  put the contents into chunks that checkpoints share, as funnel pack.\n"
     "                 They go through host memory, if half of what is free suffices, and only\n"
     "                 chunks that are new to the disk\n"
     "      --zstd     compress chunks that are new\n\n"
     "Examples:\n  funnel checkpoint 4711 /scratch/4711\n"
     "  funnel checkpoint --stop 4711 /scratch/4711 && funnel restore /scratch/4711\n",
     run_checkpoint},
    {"restore", "give a program its GPU memory back",
     "Usage: funnel restore DIRECTORY\n\n"
     "Resumes the program that funnel checkpoint --stop has suspended, in the server where it\n"
     "waits, after a look at the directory. For one that was detached it only looks. The file of\n"
     "a packed checkpoint (funnel pack) is made again from its chunks first.\n\n"
     "Example:\n  funnel restore /scratch/4711\n",
     run_restore},
    {NULL, NULL, NULL, NULL},
};
