/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a socket to a struct client: the daemon's directories, the hello, the window, the shared
 * memory.
 */
#include "client_attach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "attach_attempt.h"
#include "attach_socket.h"
#include "daemon_trust.h"
#include "environment.h"
#include "fd.h"
#include "job.h"
#include "page_reserve.h"
#include "text.h"
#include "wire_calls.h"

#ifndef FUNNEL_RELEASE
#define FUNNEL_RELEASE "unknown"
#endif

/* ---- the conversation ---- */

static int connect_to(struct attempt *attempt, const char *path)
{
    int r = daemon_connect_trusted(path, &attempt->socket);

    if (r == 0 && strlen(path) < sizeof(attempt->request.path))
        text_copy(attempt->request.path, sizeof(attempt->request.path), path);
    return r;
}

static bool is_absent(int error)
{
    return error == -ENOENT || error == -ECONNREFUSED || error == -ENOTDIR;
}

/* To the next directory in which a daemon answers: 0 or -errno, with the last path that was tried.
 * An error that says more than that none is there counts most. */
static int connect_next(struct attempt *attempt, char *path, size_t capacity)
{
    int result = -ENOENT, found;

    while ((found = environment_socket_path(attempt->directory, path, capacity)) != 0) {
        int r = found < 0 ? found : connect_to(attempt, path);

        attempt->directory++;

        if (r == 0)
            return 0;
        if (is_absent(result))
            result = r;
    }
    return result;
}

static enum attach_outcome connect_daemon(struct attempt *attempt)
{
    char path[4096] = "", system_path[64];
    int r = connect_next(attempt, path, sizeof(path));

    if (r == -ENAMETOOLONG)
        return attempt_refuse(attempt, CUDA_ERROR_MPS_CONNECTION_FAILED,
                              "the path of the pipe directory is too long");
    if (r != 0 && environment_system_socket_path(system_path, sizeof(system_path)) &&
        connect_to(attempt, system_path) == 0)
        return ATTACHED;
    if (r == 0)
        return ATTACHED;
    if (r == -EPERM)
        return attempt_refuse(
            attempt, CUDA_ERROR_MPS_CONNECTION_FAILED,
            "the process that listens in the pipe directory is neither root's nor this "
            "user's; FUNNEL_DAEMON_UID may name its user");
    text_format(attempt->why, attempt->why_size,
                "no daemon serves %s (%s); start one with: funnel start", path, strerror(-r));
    attempt->status = CUDA_ERROR_MPS_CONNECTION_FAILED;
    return is_absent(r) ? ATTACH_NO_DAEMON : ATTACH_REFUSED;
}

/* The description of this process for operators, cut to the capacity of the hello. */
static void fill_command(struct hello *hello)
{
    _cleanup_fd_ int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);

    if (fd >= 0 && read(fd, hello->command, sizeof(hello->command)) <= 0)
        hello->command[0] = '\0';
}

/* By the token a later server knows that the window is this process's. Without one it moves to
 * none. */
static void fill_token(struct hello *hello)
{
    if (getrandom(hello->token, sizeof(hello->token), GRND_NONBLOCK) != sizeof(hello->token))
        memset(hello->token, 0, sizeof(hello->token));
}

static void fill_hello(struct hello *hello)
{
    *hello = (struct hello){
        .magic = HELLO_MAGIC,
        .version = HELLO_VERSION,
        .kind = HELLO_CLIENT,
        .api_hash = WIRE_API_HASH,
    };
    environment_limits(hello);
    environment_names(hello);
    text_copy(hello->program, sizeof(hello->program), program_invocation_short_name);
    fill_command(hello);
    hello->is_of_job = job_has_several_processes(hello->command, sizeof(hello->command));
    fill_token(hello);
    text_copy(hello->release, sizeof(hello->release), FUNNEL_RELEASE);
}

/* ---- the window ---- */

static enum attach_outcome agree_on_window(struct attempt *attempt)
{
    for (int i = 0; i < ATTACH_TRIES; i++) {
        enum attach_outcome outcome = attempt_receive_offer(attempt);

        if (outcome != ATTACHED)
            return outcome;
        if (page_reserve(attempt->offer.window_base, offer_window_size(&attempt->offer)))
            return ATTACHED;
        attempt_close_descriptors(attempt);
        if (!attempt_answer(attempt, ATTACH_TAKEN))
            return attempt_refuse(attempt, CUDA_ERROR_MPS_CONNECTION_FAILED,
                                  "the server ended during the attach");
    }
    return attempt_refuse(
        attempt, CUDA_ERROR_MPS_CONNECTION_FAILED,
        "every range of addresses that the server offered is taken in this process");
}

/* ---- the contents of the window ---- */

static void take_offer(struct client *made, const struct attach_offer *offer)
{
    made->driver_version = offer->driver_version;
    made->window_base = offer->window_base;
    made->window_end = offer->window_base + offer_window_size(offer);
    made->device_span = offer->device_span;
    made->device_stride = offer->device_stride;
    made->host_base = offer->window_base + offer->device_span;
    made->fences = (const _Atomic uint32_t *)(uintptr_t)offer->fence_address;
    made->host_wait_words = (_Atomic uint32_t *)(uintptr_t)offer->host_wait_address;
    made->fence_count = offer->fence_count;
    made->host_wait_count = offer->host_wait_count;
    made->staging_address = offer->staging_address;
    made->staging_slots = (uint32_t)(offer->staging_size / GPU_REGION_STAGING_SLOT_SIZE);
}

static void take_devices(struct client *made, int count)
{
    uint32_t indices[ATTACH_DEVICES_MAX];

    made->device_count =
        environment_visible_devices(getenv("CUDA_VISIBLE_DEVICES"), made->records, count, indices);
    for (int i = 0; i < made->device_count; i++) {
        struct device *device = &made->devices[i];

        device->ordinal = i;
        device->index = device->part = indices[i];
        device->record = &made->records[indices[i]];
    }
}

static int build(struct client *made, struct attempt *attempt)
{
    int r = attempt_map_gpu_region(attempt);

    if (r == 0)
        r = attempt_read_devices(attempt, &made->records);
    if (r == 0)
        r = handles_init(&made->handles, ATTACH_HANDLES_MAX);
    if (r == 0)
        r = channel_open(&made->channel, attempt->fds[ATTACH_FD_CONTROL],
                         attempt->offer.region_size, attempt->offer.ring_bytes, attempt->socket);
    if (r < 0)
        return r;
    attach_note_socket(made, attempt->socket);
    made->request = attempt->request;
    made->record_count = attempt->offer.device_count;
    pthread_mutex_init(&made->socket_lock, NULL);
    pthread_mutex_init(&made->lock, NULL);
    list_init(&made->contexts);
    take_offer(made, &attempt->offer);
    take_devices(made, (int)attempt->offer.device_count);
    return 0;
}

static void release_window(const struct attempt *attempt)
{
    munmap((void *)(uintptr_t)attempt->offer.window_base, offer_window_size(&attempt->offer));
}

static enum attach_outcome finish_attach(struct client *made, struct attempt *attempt)
{
    int r = build(made, attempt);

    if (r == 0 && attempt_answer(attempt, ATTACH_OK))
        return ATTACHED;
    release_window(attempt);
    return attempt_refuse(attempt, CUDA_ERROR_MPS_CONNECTION_FAILED,
                          r < 0 ? "the server's shared memory could not be mapped"
                                : "the server ended during the attach");
}

static void discard(struct client *made)
{
    if (!made)
        return;
    channel_close(&made->channel);
    handles_fini(&made->handles);
    free(made->records);
    free(made);
}

static enum attach_outcome try_attach(struct attempt *attempt, struct client **ret_client)
{
    struct client *made = calloc(1, sizeof(*made));
    enum attach_outcome outcome = connect_daemon(attempt);

    if (outcome == ATTACHED && !made)
        outcome = attempt_refuse(attempt, CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
    if (outcome == ATTACHED)
        outcome = attempt_send_hello(attempt);
    if (outcome == ATTACHED)
        outcome = agree_on_window(attempt);
    if (outcome == ATTACHED)
        outcome = finish_attach(made, attempt);
    attempt_close_descriptors(attempt);
    if (outcome == ATTACHED) {
        *ret_client = made;
        return ATTACHED;
    }
    fd_close(&attempt->socket);
    discard(made);
    attempt_explain(attempt, outcome);
    return outcome;
}

/* To a daemon from directory number `*directory` on, which is the next one afterwards. */
static enum attach_outcome attach_from(unsigned *directory, struct client **ret_client,
                                       CUresult *ret_status, char *why, size_t why_size)
{
    for (size_t tries = 0;; tries++) {
        struct attempt attempt = {.socket = -1,
                                  .directory = *directory,
                                  .fds = {-1, -1, -1},
                                  .why = why,
                                  .why_size = why_size};
        fill_hello(&attempt.request.hello);
        enum attach_outcome outcome = try_attach(&attempt, ret_client);

        *ret_status = attempt.status;
        if (!attempt_pause(&attempt, tries)) {
            *directory = attempt.directory;
            return outcome;
        }
    }
}

static void leave_server(struct client *made)
{
    munmap((void *)(uintptr_t)made->window_base, made->window_end - made->window_base);
    fd_close(&made->socket);
    discard(made);
}

static bool has_several_directories(void)
{
    char path[4096];

    return environment_socket_path(1, path, sizeof(path)) != 0;
}

/* Of several daemons the first counts that has a device which the program is to see. */
enum attach_outcome attach(struct client **ret_client, CUresult *ret_status, char *why,
                           size_t why_size)
{
    unsigned directory = 0;

    while (has_several_directories() &&
           attach_from(&directory, ret_client, ret_status, why, why_size) == ATTACHED) {
        if ((*ret_client)->device_count > 0)
            return ATTACHED;
        leave_server(*ret_client);
    }
    directory = 0;
    return attach_from(&directory, ret_client, ret_status, why, why_size);
}
