/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See client_profile.h. The commands that belong to each call. Before the first command of a call,
 * a thread sends the number of the call. It holds the lock of the channel, so the numbers of
 * several threads do not mix.
 */
#include "client_profile.h"

#include <pthread.h>
#include <stdatomic.h>

#include "cleanup.h"
#include "client_arguments.h"
#include "client_call.h"
#include "client_entry.h"
#include "client_log.h"
#include "client_socket.h"
#include "clock.h"
#include "fd.h"
#include "shm.h"
#include "wire_calls.h"

static struct {
    pthread_mutex_t lock; /* of what follows; hooks are called with it */
    const struct profiler_hooks *_Atomic hooks;
    struct trace_header *file; /* NULL: the server does not measure yet */
    uint32_t taken;            /* records so far */
    uint64_t lost;             /* in files before this one */
    _Atomic uint32_t session;  /* counts profilers */
    _Atomic uint32_t sent;     /* the number that the server knows; with the channel's lock */
} profile = {.lock = PTHREAD_MUTEX_INITIALIZER};

static __thread uint32_t correlation;
static __thread bool in_hook;

/* The call of the runtime in which the thread is. */
static __thread struct runtime_call {
    uint32_t session; /* the profiler's that was told of it; 0 = in none */
    uint64_t began_ns;
} runtime_call;

static bool is_in_runtime(void)
{
    return runtime_call.session &&
           runtime_call.session == atomic_load_explicit(&profile.session, memory_order_relaxed);
}

bool client_profile_is_on(void)
{
    return atomic_load_explicit(&profile.hooks, memory_order_acquire) != NULL;
}

uint32_t client_profile_correlation(void)
{
    return correlation;
}

void client_profile_set_correlation(uint32_t number)
{
    correlation = number;
}

/* ---- the server's part ---- */

/* Sending the number is a command, too, before which this is called again. */
static void send_correlation(struct channel *channel)
{
    const struct wire_fnCorrelation in = {.number = correlation};

    if (atomic_load_explicit(&profile.sent, memory_order_relaxed) == correlation)
        return;
    atomic_store_explicit(&profile.sent, correlation, memory_order_relaxed);
    wire_fnCorrelation(channel, &in);
}

static void observe_commands(bool observe)
{
    channel_lock(&client->channel);
    atomic_store_explicit(&profile.sent, 0, memory_order_relaxed);
    atomic_store_explicit(&client->channel.before_command, observe ? send_correlation : NULL,
                          memory_order_relaxed);
    channel_unlock(&client->channel);
}

static CUresult ask_server(uint32_t action, uint32_t blob)
{
    const struct wire_fnProfile in = {.action = action, .blob = blob};

    return wire_fnProfile(&client->channel, &in);
}

static void drop_file(void)
{
    if (profile.file)
        profile.lost += atomic_load_explicit(&profile.file->lost, memory_order_relaxed);
    shm_unmap(profile.file, PROFILE_FILE_SIZE);
    profile.file = NULL;
    profile.taken = 0;
}

static CUresult offer_file(int fd)
{
    uint32_t blob;
    CUresult result = client_send_descriptor(fd, PROFILE_FILE_SIZE, &blob);

    return result == CUDA_SUCCESS ? ask_server(WIRE_PROFILE_BEGIN, blob) : result;
}

static CUresult measure_locked(void)
{
    _cleanup_fd_ int fd = -1;
    void *file = NULL;
    CUresult result;

    drop_file();
    if (shm_create("funnel-profile", PROFILE_FILE_SIZE, &fd) ||
        shm_populate(fd, PROFILE_FILE_SIZE) || shm_map(fd, PROFILE_FILE_SIZE, NULL, 0, &file))
        return CUDA_ERROR_OUT_OF_MEMORY;
    profile.file = file;
    result = offer_file(fd);
    if (result == CUDA_SUCCESS)
        observe_commands(true);
    else
        drop_file();
    return result;
}

/* Another server, to which the client was moved, does not know of the file. */
static bool is_measured(void)
{
    return atomic_load_explicit(&client->channel.before_command, memory_order_relaxed) != NULL;
}

static void measure(void)
{
    CUresult result = is_measured() ? CUDA_SUCCESS : measure_locked();

    if (result != CUDA_SUCCESS)
        client_log("the profiler gets no times of kernels: the server answered %d", (int)result);
}

/* A thread inside the library must not wait for another one that has the lock. */
static void measure_now(void)
{
    if (pthread_mutex_trylock(&profile.lock))
        return;
    if (client_profile_is_on())
        measure();
    pthread_mutex_unlock(&profile.lock);
}

/* ---- around calls ---- */

static void begin_call(const struct profiler_hooks *hooks, struct profiler_call *call)
{
    call->correlation = call->is_nested ? correlation : 0;
    in_hook = true;
    correlation = hooks->enter(call);
    in_hook = false;
}

static void end_call(const struct profiler_hooks *hooks, const struct profiler_call *call)
{
    if (!call->is_nested)
        correlation = 0;
    in_hook = true;
    hooks->leave(call);
    in_hook = false;
}

/* `packed` lives as long as the call that is described. */
static void describe_arguments(struct profiler_call *call, const struct client_arguments *packed)
{
    call->arguments = packed->is_partial || !packed->size ? NULL : packed->bytes;
    call->stream = packed->stream;
    call->event = packed->event;
    call->function = packed->function;
}

void client_profile_enter(const char *name, const char *format, va_list arguments)
{
    const struct profiler_hooks *hooks = atomic_load_explicit(&profile.hooks, memory_order_acquire);
    struct profiler_call call = {.name = name, .is_nested = is_in_runtime()};
    struct client_arguments packed;

    if (!hooks || in_hook)
        return;
    if (client_mode() == CLIENT_FUNNEL && call_is_outermost() && !is_measured())
        measure_now();
    client_arguments_pack(&packed, format, arguments);
    describe_arguments(&call, &packed);
    begin_call(hooks, &call);
}

void client_profile_leave(const char *name, uint64_t began_ns, CUresult result, const char *format,
                          va_list arguments)
{
    const struct profiler_hooks *hooks = atomic_load_explicit(&profile.hooks, memory_order_acquire);
    struct client_arguments packed;
    struct profiler_call call = {
        .name = name,
        .is_nested = is_in_runtime(),
        .begin_ns = began_ns,
        .end_ns = clock_ns(),
        .correlation = correlation,
        .result = (int)result,
    };

    if (!hooks || in_hook || !call.correlation)
        return;
    client_arguments_pack(&packed, format, arguments);
    describe_arguments(&call, &packed);
    end_call(hooks, &call);
}

/* ---- around calls of the runtime ---- */

static void runtime_enters(const struct profiler_hooks *hooks, struct profiler_call *call)
{
    runtime_call = (struct runtime_call){
        .session = atomic_load_explicit(&profile.session, memory_order_relaxed),
        .began_ns = clock_ns(),
    };
    begin_call(hooks, call);
}

static void runtime_leaves(const struct profiler_hooks *hooks, struct profiler_call *call)
{
    if (!is_in_runtime())
        return;
    call->begin_ns = runtime_call.began_ns;
    call->end_ns = clock_ns();
    call->correlation = correlation;
    runtime_call.session = 0;
    end_call(hooks, call);
}

void client_profile_runtime(const struct profiler_call *given, bool exits)
{
    const struct profiler_hooks *hooks = atomic_load_explicit(&profile.hooks, memory_order_acquire);
    struct profiler_call call = *given;

    if (!hooks || in_hook)
        return;
    if (exits)
        runtime_leaves(hooks, &call);
    else
        runtime_enters(hooks, &call);
}

void client_profile_mark(const struct profiler_mark *mark)
{
    const struct profiler_hooks *hooks = atomic_load_explicit(&profile.hooks, memory_order_acquire);

    if (!hooks || in_hook)
        return;
    in_hook = true;
    hooks->mark(mark);
    in_hook = false;
}

void client_profile_resource(const struct profiler_resource *resource)
{
    const struct profiler_hooks *hooks = atomic_load_explicit(&profile.hooks, memory_order_acquire);

    if (!hooks || in_hook)
        return;
    in_hook = true;
    hooks->resource(resource);
    in_hook = false;
}

/* ---- the interface ---- */

/* The caller is inside the library before it has the lock. While it waits there for the server, the
 * library may change under it, but not the state that the lock guards. */
static bool enter_attached(void)
{
    if (client_mode() != CLIENT_FUNNEL)
        return false;
    call_begin();
    return true;
}

static CUresult begin_locked(const struct profiler_hooks *hooks, bool attached)
{
    if (client_mode() == CLIENT_PASSTHROUGH)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (client_profile_is_on())
        return CUDA_ERROR_NOT_PERMITTED;
    profile.lost = 0;
    atomic_fetch_add_explicit(&profile.session, 1, memory_order_relaxed);
    atomic_store_explicit(&profile.hooks, hooks, memory_order_release);
    if (attached)
        measure();
    client_log_follow_profile();
    return CUDA_SUCCESS;
}

CUresult client_profile_begin(const struct profiler_hooks *hooks)
{
    bool attached = enter_attached();
    CUresult result;

    pthread_mutex_lock(&profile.lock);
    result = begin_locked(hooks, attached);
    pthread_mutex_unlock(&profile.lock);
    if (attached)
        call_end();
    return result;
}

static void take_records(const struct profiler_hooks *hooks, profile_take *take)
{
    while (profile.file) {
        struct trace_record *at = &trace_records(profile.file)[profile.taken % PROFILE_RECORDS_MAX];
        /* Partner: the server, which writes the rest before. */
        if (!atomic_load_explicit(&at->kind, memory_order_acquire))
            break;
        struct trace_record record = *at;
        record.name[TRACE_NAME_MAX - 1] = '\0';
        atomic_store_explicit(&at->kind, 0, memory_order_release);
        profile.taken++;
        take(&record, hooks);
    }
}

/* The hook's own calls are not the program's. */
static CUresult collect_locked(bool ask, profile_take *take)
{
    const struct profiler_hooks *hooks = atomic_load_explicit(&profile.hooks, memory_order_relaxed);
    bool outer = in_hook;
    CUresult result = CUDA_SUCCESS;

    if (!hooks)
        return CUDA_SUCCESS;
    in_hook = true;
    if (ask && is_measured())
        result = ask_server(WIRE_PROFILE_COLLECT, 0);
    take_records(hooks, take);
    in_hook = outer;
    return result;
}

/* Without a question to the server another thread that collects does it for this one, too. */
CUresult client_profile_collect(bool ask, profile_take *take)
{
    CUresult result = CUDA_SUCCESS;

    if (!enter_attached())
        return CUDA_SUCCESS;
    if (ask)
        pthread_mutex_lock(&profile.lock);
    if (ask || !pthread_mutex_trylock(&profile.lock)) {
        result = collect_locked(ask, take);
        pthread_mutex_unlock(&profile.lock);
    }
    call_end();
    return result;
}

static void end_locked(bool attached, profile_take *take)
{
    const struct profiler_hooks *hooks = atomic_load_explicit(&profile.hooks, memory_order_relaxed);

    atomic_store_explicit(&profile.hooks, NULL, memory_order_release);
    client_log_follow_profile();
    if (attached && is_measured()) {
        observe_commands(false);
        ask_server(WIRE_PROFILE_END, 0);
    }
    if (hooks)
        take_records(hooks, take);
    drop_file();
}

CUresult client_profile_end(profile_take *take)
{
    bool attached = enter_attached();

    pthread_mutex_lock(&profile.lock);
    end_locked(attached, take);
    pthread_mutex_unlock(&profile.lock);
    if (attached)
        call_end();
    return CUDA_SUCCESS;
}

uint64_t client_profile_lost(void)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&profile.lock);
    uint64_t now =
        profile.file ? atomic_load_explicit(&profile.file->lost, memory_order_relaxed) : 0;

    return profile.lost + now;
}

void client_profile_after_fork(void)
{
    pthread_mutex_init(&profile.lock, NULL);
    atomic_store_explicit(&profile.hooks, NULL, memory_order_relaxed);
    profile.file = NULL;
    profile.taken = 0;
    correlation = 0;
    client_log_follow_profile();
}
