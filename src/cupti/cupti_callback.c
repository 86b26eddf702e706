/* SPDX-License-Identifier: Apache-2.0 */
/* See cupti_callback.h. */
#include "cupti_callback.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "cleanup.h"
#include "context_ids.h"
#include "cupti_driver.h"
#include "cupti_names.h"
#include "cupti_state.h"
#include "text.h"

#define CBIDS_MAX 1024u
#define SUBSCRIBER_NAME_MAX 64u

enum synchronize_cbid {
    STREAM_SYNCHRONIZED = 1,
    CONTEXT_SYNCHRONIZED = 2,
};

/* CUpti_SynchronizeData */
struct synchronize_data {
    CUcontext context;
    CUstream stream;
};

static pthread_mutex_t subscriber_lock = PTHREAD_MUTEX_INITIALIZER; /* to write what follows */
static _Atomic cupti_callback callback;                             /* NULL: none */
static void *_Atomic callback_user;
static atomic_bool enabled[CUPTI_DOMAINS][CBIDS_MAX];

static struct context_ids contexts; /* that were announced; with the lock */

static __thread uint64_t correlation_data[2]; /* of a call, and of one in it */
static __thread bool in_callback;

static bool is_enabled(uint32_t domain, uint32_t cbid)
{
    return cbid < CBIDS_MAX && atomic_load_explicit(&enabled[domain][cbid], memory_order_relaxed);
}

static void call_back(uint32_t domain, uint32_t cbid, const void *data)
{
    cupti_callback function = atomic_load_explicit(&callback, memory_order_acquire);

    if (!function || in_callback)
        return;
    in_callback = true;
    function(atomic_load_explicit(&callback_user, memory_order_relaxed), domain, cbid, data);
    in_callback = false;
}

static uint32_t domain_of(const struct profiler_call *call)
{
    return call->runtime_cbid ? CUPTI_DOMAIN_RUNTIME : CUPTI_DOMAIN_DRIVER;
}

/* Of the runtime's calls libcuda says it. */
static const char *symbol_of(const struct profiler_call *call)
{
    return call->function ? cupti_function_name(call->function) : call->symbol;
}

/* `result` is that of a call that ends. */
static void report_call(const struct profiler_call *call, uint32_t cbid, uint32_t correlation,
                        int *result)
{
    CUcontext context;
    uint32_t context_id = cupti_current_context(&context);
    const struct cupti_callback_data data = {
        .site = result ? CUPTI_EXIT : CUPTI_ENTER,
        .function_name = call->name,
        .parameters = call->arguments,
        .return_value = result,
        .symbol_name = symbol_of(call),
        .context = context,
        .context_id = context_id,
        .correlation_data = &correlation_data[call->is_nested],
        .correlation = correlation,
    };

    call_back(domain_of(call), cbid, &data);
}

void cupti_callback_enter(const struct profiler_call *call, uint32_t correlation)
{
    uint32_t cbid;

    if (!atomic_load_explicit(&callback, memory_order_acquire))
        return;
    cbid = call->runtime_cbid ? call->runtime_cbid : cupti_driver_cbid(call->name);
    correlation_data[call->is_nested] = 0;
    if (is_enabled(domain_of(call), cbid))
        report_call(call, cbid, correlation, NULL);
}

/* ---- contexts and waits ---- */

static bool note_context(uint32_t id)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&subscriber_lock);

    if (context_ids_have(&contexts, id))
        return false;
    context_ids_add(&contexts, id);
    return true;
}

void cupti_callback_forget_context(uint32_t id)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&subscriber_lock);

    context_ids_remove(&contexts, id);
}

/* A context is announced by the first call after which it is current. */
static void report_context(void)
{
    struct cupti_resource_data data = {.stream = NULL};
    uint32_t id = cupti_current_context(&data.context);

    if (id && note_context(id))
        call_back(CUPTI_DOMAIN_RESOURCE, CUPTI_CONTEXT_CREATED, &data);
}

static void report_wait(const struct profiler_call *call)
{
    bool is_stream = !strncmp(call->name, "cuStreamSynchronize", strlen("cuStreamSynchronize"));
    bool is_context = !strncmp(call->name, "cuCtxSynchronize", strlen("cuCtxSynchronize"));
    uint32_t cbid = is_stream ? STREAM_SYNCHRONIZED : CONTEXT_SYNCHRONIZED;
    struct synchronize_data data = {.stream = call->stream};

    if ((!is_stream && !is_context) || !is_enabled(CUPTI_DOMAIN_SYNCHRONIZE, cbid))
        return;
    cupti_current_context(&data.context);
    call_back(CUPTI_DOMAIN_SYNCHRONIZE, cbid, &data);
}

void cupti_callback_leave(const struct profiler_call *call, uint32_t cbid)
{
    int result = call->result;

    if (!atomic_load_explicit(&callback, memory_order_acquire))
        return;
    if (is_enabled(CUPTI_DOMAIN_RESOURCE, CUPTI_CONTEXT_CREATED))
        report_context();
    report_wait(call);
    if (is_enabled(domain_of(call), cbid))
        report_call(call, cbid, call->correlation, &result);
}

bool cupti_callback_wants_resources(void)
{
    if (!atomic_load_explicit(&callback, memory_order_acquire))
        return false;
    for (uint32_t cbid = CUPTI_CONTEXT_DESTROY_STARTING; cbid <= CUPTI_GRAPHNODE_CLONED; cbid++)
        if (is_enabled(CUPTI_DOMAIN_RESOURCE, cbid))
            return true;
    return false;
}

void cupti_callback_resource(uint32_t cbid, const struct cupti_resource_data *resource)
{
    struct cupti_resource_data data = *resource;

    if (!is_enabled(CUPTI_DOMAIN_RESOURCE, cbid))
        return;
    if (!data.context)
        cupti_current_context(&data.context);
    call_back(CUPTI_DOMAIN_RESOURCE, cbid, &data);
}

/* ---- NVTX ---- */

void cupti_callback_nvtx(const struct profiler_mark *mark)
{
    const struct cupti_nvtx_data data = {
        .function_name = mark->name,
        .parameters = mark->arguments,
        .return_value = mark->result,
    };

    if (is_enabled(CUPTI_DOMAIN_NVTX, mark->cbid))
        call_back(CUPTI_DOMAIN_NVTX, mark->cbid, &data);
}

/* ---- CUPTI's functions ---- */

/* The only subscriber's handle. */
static char subscriber;
static char subscriber_name[SUBSCRIBER_NAME_MAX]; /* with the lock */

CUPTI_EXPORT CUptiResult cuptiSubscribe(void **ret_subscriber, cupti_callback function, void *user);
CUPTI_EXPORT CUptiResult cuptiSubscribe_v2(void **ret_subscriber, cupti_callback function,
                                           void *user, struct cupti_subscriber *parameters);
CUPTI_EXPORT CUptiResult cuptiUnsubscribe(void *handle);
CUPTI_EXPORT CUptiResult cuptiEnableCallback(uint32_t enable, void *handle, uint32_t domain,
                                             uint32_t cbid);
CUPTI_EXPORT CUptiResult cuptiEnableDomain(uint32_t enable, void *handle, uint32_t domain);
CUPTI_EXPORT CUptiResult cuptiEnableAllDomains(uint32_t enable, void *handle);
CUPTI_EXPORT CUptiResult cuptiGetCallbackState(uint32_t *ret_enabled, void *handle, uint32_t domain,
                                               uint32_t cbid);
CUPTI_EXPORT CUptiResult cuptiGetCallbackName(uint32_t domain, uint32_t cbid,
                                              const char **ret_name);
CUPTI_EXPORT CUptiResult cuptiSupportedDomains(size_t *ret_count, const uint32_t **ret_domains);

static CUptiResult subscribe_locked(void **ret_subscriber, cupti_callback function, void *user,
                                    const char *name)
{
    if (atomic_load_explicit(&callback, memory_order_relaxed))
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    contexts.count = 0;
    text_format(subscriber_name, sizeof(subscriber_name), name ? "CUPTI for %s" : "CUPTI", name);
    atomic_store_explicit(&callback_user, user, memory_order_relaxed);
    atomic_store_explicit(&callback, function, memory_order_release);
    *ret_subscriber = &subscriber;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(void **ret_subscriber, cupti_callback function, void *user)
{
    return cuptiSubscribe_v2(ret_subscriber, function, user, NULL);
}

/* A program that is newer than these parameters has more of them. */
CUptiResult cuptiSubscribe_v2(void **ret_subscriber, cupti_callback function, void *user,
                              struct cupti_subscriber *parameters)
{
    CUptiResult result;

    if (!ret_subscriber || !function || (parameters && parameters->size < sizeof(*parameters)))
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (!cupti_driver())
        return CUPTI_ERROR_NOT_SUPPORTED;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&subscriber_lock);
    result = subscribe_locked(ret_subscriber, function, user, parameters ? parameters->name : NULL);
    if (result != CUPTI_SUCCESS && parameters && parameters->old_name)
        text_copy(parameters->old_name, parameters->old_size, subscriber_name);
    return result;
}

static bool is_subscriber(const void *handle)
{
    return handle == &subscriber && atomic_load_explicit(&callback, memory_order_acquire);
}

static bool is_any_enabled(void)
{
    for (uint32_t domain = 0; domain < CUPTI_DOMAINS; domain++)
        for (uint32_t cbid = 0; cbid < CBIDS_MAX; cbid++)
            if (is_enabled(domain, cbid))
                return true;
    return false;
}

static void set_domain(uint32_t domain, bool on)
{
    for (uint32_t cbid = 1; cbid < CBIDS_MAX; cbid++)
        atomic_store_explicit(&enabled[domain][cbid], on, memory_order_relaxed);
}

static void forget_subscriber(void)
{
    atomic_store_explicit(&callback, NULL, memory_order_release);
    for (uint32_t domain = 1; domain < CUPTI_DOMAINS; domain++)
        set_domain(domain, false);
}

void cupti_callback_end(void)
{
    forget_subscriber();
    cupti_callbacks_switch(false);
}

void cupti_callback_after_fork(void)
{
    pthread_mutex_init(&subscriber_lock, NULL);
    forget_subscriber();
    in_callback = false;
}

CUptiResult cuptiUnsubscribe(void *handle)
{
    if (!is_subscriber(handle))
        return CUPTI_ERROR_INVALID_PARAMETER;
    cupti_callback_end();
    return CUPTI_SUCCESS;
}

static bool is_domain(uint32_t domain)
{
    return domain > 0 && domain < CUPTI_DOMAINS;
}

CUptiResult cuptiEnableCallback(uint32_t enable, void *handle, uint32_t domain, uint32_t cbid)
{
    if (!is_subscriber(handle) || !is_domain(domain) || cbid >= CBIDS_MAX)
        return CUPTI_ERROR_INVALID_PARAMETER;
    atomic_store_explicit(&enabled[domain][cbid], enable != 0, memory_order_relaxed);
    return cupti_callbacks_switch(is_any_enabled());
}

CUptiResult cuptiEnableDomain(uint32_t enable, void *handle, uint32_t domain)
{
    if (!is_subscriber(handle) || !is_domain(domain))
        return CUPTI_ERROR_INVALID_PARAMETER;
    set_domain(domain, enable != 0);
    return cupti_callbacks_switch(is_any_enabled());
}

CUptiResult cuptiEnableAllDomains(uint32_t enable, void *handle)
{
    if (!is_subscriber(handle))
        return CUPTI_ERROR_INVALID_PARAMETER;
    for (uint32_t domain = 1; domain < CUPTI_DOMAINS; domain++)
        set_domain(domain, enable != 0);
    return cupti_callbacks_switch(is_any_enabled());
}

CUptiResult cuptiGetCallbackState(uint32_t *ret_enabled, void *handle, uint32_t domain,
                                  uint32_t cbid)
{
    if (!ret_enabled || !is_subscriber(handle) || !is_domain(domain) || cbid >= CBIDS_MAX)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *ret_enabled = is_enabled(domain, cbid);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(uint32_t domain, uint32_t cbid, const char **ret_name)
{
    const char *name;

    if (!ret_name || (domain != CUPTI_DOMAIN_DRIVER && domain != CUPTI_DOMAIN_RUNTIME))
        return CUPTI_ERROR_INVALID_PARAMETER;
    name = cupti_call_name(domain == CUPTI_DOMAIN_RUNTIME, cbid);
    if (!name)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *ret_name = name;
    return CUPTI_SUCCESS;
}

/* Nothing is called back for the domain of states. */
CUptiResult cuptiSupportedDomains(size_t *ret_count, const uint32_t **ret_domains)
{
    static const uint32_t domains[] = {CUPTI_DOMAIN_DRIVER, CUPTI_DOMAIN_RUNTIME,
                                       CUPTI_DOMAIN_RESOURCE, CUPTI_DOMAIN_SYNCHRONIZE,
                                       CUPTI_DOMAIN_NVTX};

    if (!ret_count || !ret_domains)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *ret_count = sizeof(domains) / sizeof(*domains);
    *ret_domains = domains;
    return CUPTI_SUCCESS;
}
