/* SPDX-License-Identifier: Apache-2.0 */
/* Offers windows to a client until it accepts one whose addresses are free in its own process. */
#include "attach_client.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "attach.h"
#include "channel_server.h"
#include "cleanup.h"
#include "clock.h"
#include "fd.h"
#include "host_memory.h"
#include "lending.h"
#include "limits_text.h"
#include "log.h"
#include "long_work_watch.h"
#include "memory.h"
#include "region.h"
#include "server_life.h"
#include "session_life.h"
#include "shm.h"
#include "sm_share.h"
#include "sock.h"
#include "window.h"
#include "window_claim.h"

#define ATTACH_STAGE "its attach"

#define HELLO_TIMEOUT_MS 10000
#define REPLY_TIMEOUT_MS 30000

/* A client that comes back soon finds its last session here at its end, or its window while it is
 * trimmed. */
#define OWN_WINDOW_TIMEOUT_NS (10 * NS_PER_SEC)
#define OWN_WINDOW_PAUSE_NS (2 * NS_PER_MS)

void attach_refuse(int socket, CUresult status, const char *format, ...)
{
    struct welcome welcome = {.magic = WELCOME_MAGIC, .status = (int32_t)status};
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(welcome.text, sizeof(welcome.text), format, arguments);
    va_end(arguments);
    sock_send(socket, &welcome, sizeof(welcome), NULL, 0);
}

/* The log gets the same message as the client. */
__attribute__((format(printf, 3, 4))) static void
refuse_client(const struct session *session, CUresult status, const char *format, ...)
{
    char text[sizeof(((struct welcome *)NULL)->text)];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    session_log_event(session, status, " is refused with status %d: %s", status, text);
    attach_refuse(session->socket, status, "%s", text);
}

static bool receive_hello(struct session *session)
{
    struct hello *hello = &session->life->hello;
    size_t fds = 0;

    if (hello->magic == HELLO_MAGIC)
        return true; /* the daemon has read it */
    return sock_recv(session->socket, hello, sizeof(*hello), NULL, 0, &fds, HELLO_TIMEOUT_MS) ==
               (ssize_t)sizeof(*hello) &&
           hello->magic == HELLO_MAGIC;
}

/* With --listen no daemon combines the requested limits with its own. */
static void apply_requested_limits(struct session *session)
{
    const struct hello *hello = &session->life->hello;
    struct server_limits limits = session_limits_get(&session->limits);

    if (session->server->life->control_fd >= 0)
        return;
    limits.sm_centipercent = hello->sm_centipercent ? hello->sm_centipercent : 10000;
    limits.priority = hello->priority == 1;
    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        limits.memory_limit[i] = hello->memory_limit[i];
    limits.totals_show_limit = hello->totals == HELLO_TOTALS_LIMIT;
    session_limits_init(&session->limits, &limits);
}

static bool check_hello(struct session *session)
{
    const struct hello *hello = &session->life->hello;

    if (hello->version == HELLO_VERSION && hello->api_hash == WIRE_API_HASH)
        return true;
    refuse_client(session, CUDA_ERROR_MPS_CONNECTION_FAILED,
                  "client library and server differ (%u.%016llx and %u.%016llx): restart the "
                  "daemon after an update",
                  hello->version, (unsigned long long)hello->api_hash, HELLO_VERSION,
                  (unsigned long long)WIRE_API_HASH);
    return false;
}

static bool open_channel(struct session *session)
{
    struct channel_server *channel = NULL;
    int error = channel_server_create(&channel);

    if (error) {
        refuse_client(session, CUDA_ERROR_OUT_OF_MEMORY,
                      "the server cannot create shared memory: %s", strerror(-error));
        return false;
    }
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&session->server->lock);
    session->channel = channel;
    long_work_greet(session, session->life->is_main_lane);
    return true;
}

static struct attach_offer describe_offer(const struct session *session,
                                          const struct window *window)
{
    const struct devices *devices = window->devices;

    return (struct attach_offer){
        .welcome = {.magic = WELCOME_MAGIC},
        .window_base = window->base,
        .device_span = devices->count * devices->stride,
        .device_stride = devices->stride,
        .host_span = WINDOW_HOST_SPAN,
        .region_size = REGION_SIZE,
        .gpu_address = window->host_base,
        .gpu_size = GPU_REGION_SIZE,
        .fence_address = window->host_base + GPU_REGION_FENCE_OFFSET,
        .host_wait_address = window->host_base + GPU_REGION_HOST_WAIT_OFFSET,
        .staging_address = window->host_base + GPU_REGION_STAGING_OFFSET,
        .staging_size = GPU_REGION_STAGING_SIZE,
        .ring_bytes = REGION_RING_BYTES,
        .fence_count = GPU_REGION_FENCES,
        .host_wait_count = GPU_REGION_HOST_WAITS,
        .device_count = devices->count,
        .driver_version = devices->driver_version,
        .sm_centipercent = session->limits.sm_centipercent,
    };
}

static uint64_t shown_memory(const struct session *session, unsigned device)
{
    return session_limits_shown_total(&session->limits, device,
                                      session->server->devices.device[device].record.total_memory);
}

/* Each device shows as many multiprocessors as the client may use, and whether it may use none, and
 * its memory. */
static int make_own_table(struct session *session, int *ret_fd)
{
    struct device_record records[ATTACH_DEVICES_MAX];
    const struct devices *devices = &session->server->devices;

    for (unsigned i = 0; i < devices->count; i++) {
        const struct partition *partition = sm_share_own(session, i)->partition;
        records[i] = devices->device[i].record;
        records[i].context_status = sm_share_barred(session, i);
        records[i].shown_memory = shown_memory(session, i);
        if (partition)
            records[i].attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] =
                (int32_t)partition->sm_count;
    }
    return shm_create_read_only("funnel-devices", records, devices->count * sizeof(records[0]),
                                ret_fd);
}

static bool needs_own_table(const struct session *session)
{
    for (unsigned i = 0; i < session->server->devices.count; i++) {
        if (sm_share_own(session, i)->partition || sm_share_barred(session, i) != CUDA_SUCCESS ||
            shown_memory(session, i) != session->server->devices.device[i].record.shown_memory)
            return true;
    }
    return false;
}

static bool send_offer(struct session *session, const struct window *window)
{
    struct attach_offer offer = describe_offer(session, window);
    _cleanup_fd_ int own_table = -1;

    if (needs_own_table(session) && make_own_table(session, &own_table))
        return false;
    int fds[ATTACH_FDS] = {
        [ATTACH_FD_CONTROL] = channel_server_fd(session->channel),
        [ATTACH_FD_GPU] = window->gpu_fd,
        [ATTACH_FD_DEVICES] = own_table >= 0 ? own_table : window->devices->table_fd,
    };

    return !sock_send(session->socket, &offer, sizeof(offer), fds, ATTACH_FDS);
}

/* The client's answer to an offer; 0 when it is missing or malformed. */
static uint32_t receive_verdict(struct session *session)
{
    struct attach_reply reply;
    size_t fds = 0;
    ssize_t size =
        sock_recv(session->socket, &reply, sizeof(reply), NULL, 0, &fds, REPLY_TIMEOUT_MS);

    return size == (ssize_t)sizeof(reply) && reply.magic == ATTACH_REPLY_MAGIC ? reply.verdict : 0;
}

/* Makes one offer. If the client accepts, the session owns the window. From then on the client
 * expects the same window from the next server, should this one end. */
static uint32_t offer_window(struct session *session, struct window *window)
{
    struct server_life *life = session->server->life;

    window_claim_set(life->claims, session->life->hello.token, window->base, session->identity.pid);
    /* A slow client must not count as a stalled call. */
    activity_set_stage(&session->activity, NULL);
    uint32_t verdict = send_offer(session, window) ? receive_verdict(session) : 0;

    activity_set_stage(&session->activity, ATTACH_STAGE);
    if (verdict == ATTACH_OK)
        session->window = window;
    return verdict;
}

static CUresult take_window_once(struct windows *windows, uint64_t base, struct window **ret_window)
{
    return base ? windows_take_at(windows, base, ret_window) : windows_take(windows, ret_window);
}

/* Takes the window at `base`, or any for 0. It may first have to release memory of clients that are
 * gone; that waits for the work of the others. */
static CUresult take_window(struct session *session, uint64_t base, struct window **ret_window)
{
    struct windows *windows = server_windows(session->server);
    CUresult result = take_window_once(windows, base, ret_window);

    while (result == CUDA_ERROR_NOT_READY && host_memory_trim_windows(session))
        result = take_window_once(windows, base, ret_window);
    return result == CUDA_ERROR_NOT_READY ? CUDA_ERROR_MPS_MAX_CLIENTS_REACHED : result;
}

static CUresult take_own_window(struct session *session, uint64_t base, struct window **ret_window)
{
    const struct timespec pause = {.tv_nsec = OWN_WINDOW_PAUSE_NS};
    uint64_t deadline = clock_ns() + OWN_WINDOW_TIMEOUT_NS;
    CUresult result;

    while ((result = take_window(session, base, ret_window)) == CUDA_ERROR_MAP_FAILED &&
           clock_ns() < deadline && !session->stop)
        nanosleep(&pause, NULL);
    return result;
}

/* The client's memory has addresses in this window, so it needs this one. Its claim stays whatever
 * comes of the offer: a client that was too slow to answer comes again, or is still in its old
 * server. */
static bool find_own_window(struct session *session, uint64_t base)
{
    struct windows *windows = server_windows(session->server);
    struct window *window = NULL;

    if (!window_claim_is_proven(session->server->life->claims, session->life->hello.token, base)) {
        refuse_client(
            session, CUDA_ERROR_MPS_CONNECTION_FAILED,
            "no earlier server of this daemon has given this client the window that it asks for");
        return false;
    }
    CUresult result = take_own_window(session, base, &window);
    if (result != CUDA_SUCCESS) {
        refuse_client(session, result,
                      "the window that the client had with the previous server is taken: %s",
                      driver_error_name(result));
        return false;
    }
    if (offer_window(session, window) != ATTACH_OK)
        windows_put_back(windows, window);
    return session->window;
}

/* Refused windows are put back only after the client's decision, because the next offer must be
 * another window. */
static bool find_any_window(struct session *session)
{
    struct windows *windows = server_windows(session->server);
    struct window *refused[ATTACH_TRIES];
    unsigned tries = 0;
    uint32_t verdict = ATTACH_TAKEN;

    while (verdict == ATTACH_TAKEN && tries < ATTACH_TRIES) {
        struct window *window = NULL;
        CUresult result = take_window(session, 0, &window);
        if (result != CUDA_SUCCESS) {
            refuse_client(session, result, "the server has no free window of addresses: %s",
                          driver_error_name(result));
            break;
        }
        verdict = offer_window(session, window);
        if (verdict != ATTACH_OK) {
            window_claim_drop(session->server->life->claims, session->life->hello.token,
                              window->base);
            refused[tries++] = window;
        }
    }
    if (verdict == ATTACH_TAKEN && tries == ATTACH_TRIES)
        refuse_client(session, CUDA_ERROR_MPS_CONNECTION_FAILED,
                      "the addresses of %u windows are taken in this process", ATTACH_TRIES);
    while (tries)
        windows_put_back(windows, refused[--tries]);
    return session->window;
}

static bool find_window(struct session *session)
{
    uint64_t base = session->life->hello.window_base;

    return base ? find_own_window(session, base) : find_any_window(session);
}

/* Copies may access fences and staging memory like other memory of the client. */
static bool allow_shared_region(struct session *session)
{
    const struct granule shared = {.kind = GRANULE_SHARED,
                                   .part = session->window->devices->count,
                                   .address = session->window->host_base,
                                   .size = GPU_REGION_SIZE,
                                   .fd = -1};

    return memory_allow(session, &shared) == CUDA_SUCCESS;
}

static bool take_sm_share(struct session *session, unsigned device)
{
    uint32_t percent = session->limits.sm_centipercent / 100,
             rest = session->limits.sm_centipercent % 100;
    unsigned sm_count = 0;
    CUresult result = sm_share_open(session, device, &sm_count);

    if (result != CUDA_SUCCESS) {
        refuse_client(session, result, "no partition of device %u with %u multiprocessors: %s",
                      device, sm_count, driver_error_name(result));
        return false;
    }
    if (sm_share_own(session, device)->partition && session->limits.fixed_count)
        session_log(session, ": static partition of %u SMs on device %u", sm_count, device);
    else if (sm_share_own(session, device)->partition)
        session_log(session, ": Active Threads Percentage set to %u.%u on device %u, %u SMs",
                    percent, rest / 10, device, sm_count);
    return true;
}

static bool take_sm_shares(struct session *session)
{
    session->limits.changed = 0;
    for (unsigned i = 0; i < session->server->devices.count; i++) {
        if (!take_sm_share(session, i))
            return false;
    }
    lending_begin(session);
    return true;
}

static void log_devices(const struct devices *devices)
{
    for (unsigned i = 0; i < devices->count; i++) {
        const struct device_record *record = &devices->device[i].record;
        const uint8_t *id = record->uuid;
        log_line("Device %s (uuid GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
                 "%02x%02x%02x%02x%02x%02x) is associated",
                 record->name, id[0], id[1], id[2], id[3], id[4], id[5], id[6], id[7], id[8], id[9],
                 id[10], id[11], id[12], id[13], id[14], id[15]);
    }
}

static void log_limits(const struct session *session)
{
    const struct server_limits limits = session_limits_get(&session->limits);
    char text[LIMITS_TEXT_MAX];

    limits_describe(&limits, session->server->devices.count, text);
    session_log(session, " has %s", text);
    for (unsigned i = 0; i < session->server->devices.count; i++)
        if (limits.memory_limit[i])
            log_line("Device pinned memory limit for device %u set to 0x%llx bytes", i,
                     (unsigned long long)limits.memory_limit[i]);
    log_line("Server Priority set to %u", limits.priority);
}

static bool negotiate(struct session *session)
{
    if (!receive_hello(session))
        return false;
    activity_set_stage(&session->activity, ATTACH_STAGE);
    apply_requested_limits(session);
    return check_hello(session) && open_channel(session) &&
           session_visit(session, &session->server->devices.device[0]) == CUDA_SUCCESS &&
           take_sm_shares(session) && find_window(session) && allow_shared_region(session);
}

bool attach_client(struct session *session)
{
    const struct devices *devices = &session->server->devices;

    if (!negotiate(session)) {
        session_log(session, " does not attach");
        return false;
    }
    activity_set_stage(&session->activity, NULL);
    log_limits(session);
    channel_server_close_fd(session->channel);
    session_log(session, " connected%s",
                session->life->hello.window_base ? ", coming from another server" : "");
    log_devices(devices);
    log_line("Status of client " CLIENT_FORMAT " is ACTIVE", CLIENT_ARGS(session));
    return true;
}
