/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a socket to a struct client: hello and welcome, the window, the shared memory. What the
 * server sends is checked as far as a wrong number could harm this process.
 */
#include "client_attach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "daemon_trust.h"
#include "environment.h"
#include "fd.h"
#include "job.h"
#include "page_reserve.h"
#include "restored_process.h"
#include "shm.h"
#include "sock.h"
#include "text.h"
#include "wire_calls.h"

/* A daemon that starts a server first waits for the driver. */
#define WELCOME_TIMEOUT_MS 120000

/* A server may end after the daemon has passed the socket on and before it answers: pauses before
 * new tries. */
static const unsigned pauses_ms[] = {10, 40, 160, 640};

#ifndef FUNNEL_RELEASE
#define FUNNEL_RELEASE "unknown"
#endif

struct attempt {
    int socket;
    unsigned directory; /* the first one to try, then the one behind that of the daemon */
    struct attach_offer offer;
    int fds[ATTACH_FDS];
    CUresult status;
    bool lost; /* the connection ended before an answer came */
    struct attach_request request;
    char *why;
    size_t why_size;
};

static enum attach_outcome refuse_attach(struct attempt *attempt, CUresult status, const char *why)
{
    attempt->status = status;
    text_copy(attempt->why, attempt->why_size, why);
    return ATTACH_REFUSED;
}

static void close_descriptors(struct attempt *attempt)
{
    for (int i = 0; i < ATTACH_FDS; i++)
        fd_close(&attempt->fds[i]);
}

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
        return refuse_attach(attempt, CUDA_ERROR_MPS_CONNECTION_FAILED,
                             "the path of the pipe directory is too long");
    if (r != 0 && environment_system_socket_path(system_path, sizeof(system_path)) &&
        connect_to(attempt, system_path) == 0)
        return ATTACHED;
    if (r == 0)
        return ATTACHED;
    if (r == -EPERM)
        return refuse_attach(
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

static enum attach_outcome send_hello(struct attempt *attempt)
{
    const struct hello *hello = &attempt->request.hello;

    if (sock_send(attempt->socket, hello, sizeof(*hello), NULL, 0) < 0)
        return refuse_attach(attempt, CUDA_ERROR_MPS_CONNECTION_FAILED,
                             "the daemon closed the connection at once");
    return ATTACHED;
}

/* Nothing here may wrap around: addresses are below 2^47, sizes below 2^46. */
#define ADDRESS_END (UINT64_C(1) << 47)
#define SIZE_END (UINT64_C(1) << 46)

static bool range_contains(uint64_t start, uint64_t size, uint64_t address, uint64_t length)
{
    return address >= start && length <= size && address - start <= size - length;
}

static bool window_is_valid(const struct attach_offer *offer)
{
    return offer->window_base >= WINDOW_FIRST && offer->window_base < ADDRESS_END &&
           offer->device_span < SIZE_END && offer->host_span < SIZE_END &&
           offer->device_count >= 1 && offer->device_count <= ATTACH_DEVICES_MAX &&
           offer->device_stride > 0 &&
           offer->device_span / offer->device_count >= offer->device_stride;
}

static bool words_are_valid(const struct attach_offer *offer, uint64_t address, uint32_t count)
{
    return count > 0 && address % sizeof(uint32_t) == 0 &&
           range_contains(offer->gpu_address, offer->gpu_size, address,
                          sizeof(uint32_t) * (uint64_t)count);
}

static bool offer_is_valid(const struct attach_offer *offer)
{
    return window_is_valid(offer) && offer->gpu_size > 0 &&
           range_contains(offer->window_base + offer->device_span, offer->host_span,
                          offer->gpu_address, offer->gpu_size) &&
           words_are_valid(offer, offer->fence_address, offer->fence_count) &&
           words_are_valid(offer, offer->host_wait_address, offer->host_wait_count) &&
           offer->host_wait_count >= offer->fence_count &&
           offer->staging_size >= GPU_REGION_STAGING_SLOT_SIZE &&
           range_contains(offer->gpu_address, offer->gpu_size, offer->staging_address,
                          offer->staging_size);
}

static enum attach_outcome receive_offer(struct attempt *attempt)
{
    size_t fd_count = 0;
    ssize_t bytes = sock_recv(attempt->socket, &attempt->offer, sizeof(attempt->offer),
                              attempt->fds, ATTACH_FDS, &fd_count, WELCOME_TIMEOUT_MS);
    struct welcome *welcome = &attempt->offer.welcome;

    for (size_t i = bytes < 0 ? 0 : fd_count; i < ATTACH_FDS; i++)
        attempt->fds[i] = -1;
    attempt->lost = bytes == 0 || bytes == -ECONNRESET;
    if (bytes < (ssize_t)sizeof(*welcome) || welcome->magic != WELCOME_MAGIC)
        return refuse_attach(attempt, CUDA_ERROR_MPS_CONNECTION_FAILED,
                             "the daemon or its server ended without an answer");
    welcome->text[sizeof(welcome->text) - 1] = '\0';
    if (welcome->status != 0)
        return refuse_attach(attempt, (CUresult)welcome->status, welcome->text);
    if (bytes != sizeof(attempt->offer) || fd_count != ATTACH_FDS ||
        !offer_is_valid(&attempt->offer))
        return refuse_attach(attempt, CUDA_ERROR_MPS_CONNECTION_FAILED,
                             "the server's offer is not valid; is the server of another release?");
    return ATTACHED;
}

static bool answer_offer(struct attempt *attempt, enum attach_verdict verdict)
{
    struct attach_reply reply = {.magic = ATTACH_REPLY_MAGIC, .verdict = verdict};

    return sock_send(attempt->socket, &reply, sizeof(reply), NULL, 0) == 0;
}

/* ---- the window ---- */

static size_t window_size(const struct attach_offer *offer)
{
    return offer->device_span + offer->host_span;
}

static enum attach_outcome agree_on_window(struct attempt *attempt)
{
    for (int i = 0; i < ATTACH_TRIES; i++) {
        enum attach_outcome outcome = receive_offer(attempt);

        if (outcome != ATTACHED)
            return outcome;
        if (page_reserve(attempt->offer.window_base, window_size(&attempt->offer)))
            return ATTACHED;
        close_descriptors(attempt);
        if (!answer_offer(attempt, ATTACH_TAKEN))
            break;
    }
    return refuse_attach(
        attempt, CUDA_ERROR_MPS_CONNECTION_FAILED,
        "every range of addresses that the server offered is taken in this process");
}

/* ---- the contents of the window ---- */

static int map_gpu_region(struct attempt *attempt)
{
    const struct attach_offer *offer = &attempt->offer;
    int fd = attempt->fds[ATTACH_FD_GPU];
    void *mapped;
    int r = shm_check(fd, offer->gpu_size);

    if (r == 0)
        r = shm_map(fd, offer->gpu_size, (void *)(uintptr_t)offer->gpu_address, SHM_REPLACE,
                    &mapped);
    if (r == 0)
        madvise(mapped, offer->gpu_size, MADV_DONTFORK);
    return r;
}

/* A text has an end, and the rest of a record is numbers that are checked where they are used. */
static void end_texts(struct device_record *records, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        records[i].name[sizeof(records[i].name) - 1] = '\0';
        records[i].pci_bus_id[sizeof(records[i].pci_bus_id) - 1] = '\0';
    }
}

_Static_assert(sizeof(struct device_record) == WIRE_DEVICE_RECORD_BYTES,
               "a record of another size is another protocol");

/* A copy of the table, which the server cannot change any more, for the caller to free. */
static int read_device_table(const struct attempt *attempt, struct device_record **ret_records)
{
    uint32_t count = attempt->offer.device_count;
    int fd = attempt->fds[ATTACH_FD_DEVICES];
    struct device_record *records = calloc(count, sizeof(*records));
    int r = records ? shm_check(fd, count * sizeof(*records)) : -ENOMEM;

    if (r == 0)
        r = pread_all(fd, records, count * sizeof(*records), 0);
    if (r < 0) {
        free(records);
        return r;
    }
    end_texts(records, count);
    *ret_records = records;
    return 0;
}

static void take_offer(struct client *made, const struct attach_offer *offer)
{
    made->driver_version = offer->driver_version;
    made->window_base = offer->window_base;
    made->window_end = offer->window_base + window_size(offer);
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

static uint64_t inode_of(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

static int build(struct client *made, struct attempt *attempt)
{
    int r = map_gpu_region(attempt);

    if (r == 0)
        r = read_device_table(attempt, &made->records);
    if (r == 0)
        r = handles_init(&made->handles, ATTACH_HANDLES_MAX);
    if (r == 0)
        r = channel_open(&made->channel, attempt->fds[ATTACH_FD_CONTROL],
                         attempt->offer.region_size, attempt->offer.ring_bytes, attempt->socket);
    if (r < 0)
        return r;
    made->socket = attempt->socket;
    made->socket_inode = inode_of(attempt->socket);
    made->attached_ns = machine_ns();
    made->request = attempt->request;
    made->record_count = attempt->offer.device_count;
    pthread_mutex_init(&made->socket_lock, NULL);
    pthread_mutex_init(&made->lock, NULL);
    list_init(&made->contexts);
    take_offer(made, &attempt->offer);
    take_devices(made, (int)attempt->offer.device_count);
    return 0;
}

static enum attach_outcome finish_attach(struct client *made, struct attempt *attempt)
{
    int r = build(made, attempt);

    if (r < 0) {
        munmap((void *)(uintptr_t)attempt->offer.window_base, window_size(&attempt->offer));
        return refuse_attach(attempt, CUDA_ERROR_MPS_CONNECTION_FAILED,
                             "the server's shared memory could not be mapped");
    }
    if (!answer_offer(attempt, ATTACH_OK))
        return refuse_attach(attempt, CUDA_ERROR_MPS_CONNECTION_FAILED,
                             "the server ended during the attach");
    return ATTACHED;
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
        outcome = refuse_attach(attempt, CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
    if (outcome == ATTACHED)
        outcome = send_hello(attempt);
    if (outcome == ATTACHED)
        outcome = agree_on_window(attempt);
    if (outcome == ATTACHED)
        outcome = finish_attach(made, attempt);
    close_descriptors(attempt);
    if (outcome == ATTACHED) {
        *ret_client = made;
        return ATTACHED;
    }
    fd_close(&attempt->socket);
    discard(made);
    return outcome;
}

static void pause_ms(unsigned ms)
{
    struct timespec pause = {.tv_nsec = (long)(ms * NS_PER_MS)};

    while (nanosleep(&pause, &pause) < 0 && errno == EINTR)
        ;
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
        if (!attempt.lost || tries == sizeof(pauses_ms) / sizeof(*pauses_ms)) {
            *directory = attempt.directory;
            return outcome;
        }
        pause_ms(pauses_ms[tries]);
    }
}

static void leave(struct client *made)
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
        leave(*ret_client);
    }
    directory = 0;
    return attach_from(&directory, ret_client, ret_status, why, why_size);
}

/* ---- from one server to another ---- */

static bool is_same_place(const struct attach_offer *offer)
{
    return offer->window_base == client->window_base &&
           offer->window_base + window_size(offer) == client->window_end &&
           offer->device_span == client->device_span &&
           offer->device_stride == client->device_stride &&
           offer->fence_address == (uintptr_t)client->fences &&
           offer->host_wait_address == (uintptr_t)client->host_wait_words &&
           offer->fence_count == client->fence_count &&
           offer->host_wait_count == client->host_wait_count &&
           offer->staging_address == client->staging_address &&
           offer->staging_size / GPU_REGION_STAGING_SLOT_SIZE == client->staging_slots;
}

static bool are_same_devices(const struct attempt *attempt)
{
    uint32_t count = attempt->offer.device_count;
    struct device_record *records;
    bool same = true;

    if (count != client->record_count || read_device_table(attempt, &records) < 0)
        return false;
    for (uint32_t i = 0; i < count; i++)
        same &= !memcmp(records[i].uuid, client->records[i].uuid, sizeof(records[i].uuid)) &&
                records[i].context_status == client->records[i].context_status;
    free(records);
    return same;
}

/* The new region gets the contents of the old one: fences that have been reached stay reached, and
 * host waits that have ended stay ended. */
static int move_gpu_region(struct attempt *attempt)
{
    const struct attach_offer *offer = &attempt->offer;
    int fd = attempt->fds[ATTACH_FD_GPU];
    void *mapped;
    int r = shm_check(fd, offer->gpu_size);

    if (r == 0)
        r = shm_map(fd, offer->gpu_size, NULL, 0, &mapped);
    if (r < 0)
        return r;
    memcpy(mapped, (const void *)(uintptr_t)offer->gpu_address, offer->gpu_size);
    shm_unmap(mapped, offer->gpu_size);
    return map_gpu_region(attempt);
}

static bool is_socket(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
}

bool attach_is_whole(void)
{
    if (client->socket_inode && inode_of(client->socket) == client->socket_inode)
        return true;
    return process_is_restored_since(client->attached_ns) && is_socket(client->socket);
}

/* The descriptor keeps its number. */
static int move_socket(const struct attempt *attempt)
{
    if (dup3(attempt->socket, client->socket, O_CLOEXEC) < 0)
        return -errno;
    client->socket_inode = inode_of(client->socket);
    client->attached_ns = machine_ns();
    return 0;
}

static bool move_in(struct attempt *attempt)
{
    return move_gpu_region(attempt) == 0 && move_socket(attempt) == 0 &&
           channel_reopen(&client->channel, attempt->fds[ATTACH_FD_CONTROL],
                          attempt->offer.region_size, attempt->offer.ring_bytes) == 0 &&
           answer_offer(attempt, ATTACH_OK);
}

static bool attach_again_once(struct attempt *attempt)
{
    enum attach_outcome outcome = ATTACHED;

    if (daemon_connect_trusted(client->request.path, &attempt->socket) != 0)
        outcome =
            refuse_attach(attempt, CUDA_ERROR_MPS_CONNECTION_FAILED, "the daemon does not answer");
    if (outcome == ATTACHED)
        outcome = send_hello(attempt);
    if (outcome == ATTACHED)
        outcome = receive_offer(attempt);
    if (outcome == ATTACHED && (!is_same_place(&attempt->offer) || !are_same_devices(attempt)))
        outcome =
            refuse_attach(attempt, CUDA_ERROR_MPS_CONNECTION_FAILED,
                          "the server has other devices, or another place for the client's memory");
    if (outcome == ATTACHED && !move_in(attempt))
        outcome = refuse_attach(attempt, CUDA_ERROR_MPS_CONNECTION_FAILED,
                                "the server's shared memory could not be mapped");
    close_descriptors(attempt);
    fd_close(&attempt->socket);
    return outcome == ATTACHED;
}

bool attach_again(char *why, size_t why_size)
{
    for (size_t tries = 0;; tries++) {
        struct attempt attempt = {.socket = -1,
                                  .fds = {-1, -1, -1},
                                  .request = client->request,
                                  .why = why,
                                  .why_size = why_size};
        attempt.request.hello.window_base = client->window_base;
        bool done = attach_again_once(&attempt);

        if (done || !attempt.lost || tries == sizeof(pauses_ms) / sizeof(*pauses_ms))
            return done;
        pause_ms(pauses_ms[tries]);
    }
}
