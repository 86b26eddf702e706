/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which kind of driver is this library in this process? Nothing is decided, opened or allocated
 * before a program makes its first call; a child of fork decides anew.
 */
#include "client_start.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "cleanup.h"
#include "client.h"
#include "client_attach.h"
#include "client_call.h"
#include "client_capture.h"
#include "client_context.h"
#include "client_entry.h"
#include "client_export.h"
#include "client_fence.h"
#include "client_log.h"
#include "client_managed.h"
#include "client_memory.h"
#include "client_printf.h"
#include "client_profile.h"
#include "client_prototypes.h"
#include "client_recovery.h"
#include "client_stream.h"
#include "client_texture.h"
#include "clock.h"
#include "copy_team.h"
#include "environment.h"
#include "fd.h"
#include "feature.h"
#include "host_function.h"
#include "injection.h"
#include "managed_variable.h"
#include "passthrough.h"
#include "staging.h"
#include "streaming_copy.h"
#include "switch.h"
#include "text.h"

#define LONG_ATTACH_NS (2000 * NS_PER_MS)

static pthread_mutex_t decide_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t generation;
static bool fork_watched;

/* ---- fork ---- */

/* Parent and child need the tables of memory whole, so their locks are held during the fork. */
static void before_fork(void)
{
    pthread_mutex_lock(&decide_lock);
    if (client) {
        memory_before_fork();
        managed_before_fork();
    }
}

static void after_fork_in_parent(void)
{
    if (client) {
        managed_after_fork_in_parent();
        memory_after_fork_in_parent();
    }
    pthread_mutex_unlock(&decide_lock);
}

/* The window was not inherited, and the locks may be in any state: all of it is abandoned. */
static void after_fork_in_child(void)
{
    if (client) {
        memory_after_fork_in_child();
        managed_after_fork_in_child();
        fd_close(&client->socket);
        call_after_fork();
        export_after_fork();
        client_profile_after_fork();
        client = NULL;
        atomic_store_explicit(&client_mode_word, CLIENT_COLD, memory_order_release);
    }
    pthread_mutex_unlock(&decide_lock);
}

static void watch_fork(void)
{
    if (!fork_watched)
        fork_watched = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}

/* ---- deciding ---- */

/* Gives every subsystem its initial state, from the lowest one up. */
static CUresult init_subsystems(void)
{
    client->generation = ++generation;
    printf_output_init();
    streaming_copy_init();
    copy_team_init();
    if (fence_init() < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stream_init();
    capture_init();
    host_function_init();
    texture_init();
    if (memory_init() < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    managed_init();
    staging_init();
    recovery_init();
    if (context_init_primaries() < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    export_init();
    return CUDA_SUCCESS;
}

/* A program may try many times; the same reason is logged once. */
static void log_once(CUresult error, const char *why)
{
    static char last[600];

    if (strcmp(last, why) == 0)
        return;
    text_copy(last, sizeof(last), why);
    client_log_to_file(error, "%s", why);
}

static CUresult pass_on(void)
{
    if (passthrough_open() < 0)
        return CUDA_ERROR_NO_DEVICE;
    atomic_store_explicit(&client_mode_word, CLIENT_PASSTHROUGH, memory_order_release);
    return CUDA_SUCCESS;
}

static CUresult fall_back(CUresult status, const char *why)
{
    if (environment_requires_server()) {
        log_once(status, why);
        return status;
    }
    if (pass_on() != CUDA_SUCCESS) {
        char more[600];

        text_format(more, sizeof(more), "%s, and there is no driver to pass calls on to", why);
        log_once(CUDA_ERROR_NO_DEVICE, more);
        return CUDA_ERROR_NO_DEVICE;
    }
    return CUDA_SUCCESS;
}

/* People take a long start for a hang. */
static void log_wait(uint64_t waited_ns)
{
    if (waited_ns > LONG_ATTACH_NS)
        client_log_to_file(CUDA_SUCCESS,
                           "waited %.1f s until the server took this program: it was starting, or "
                           "ended after a fault",
                           (double)waited_ns / 1e9);
}

/* A setuid program takes nothing from its user's environment: no daemon, no log, no driver. */
static bool stays_away(void)
{
    return getauxval(AT_SECURE) || switch_is_on("FUNNEL_DIRECT");
}

static void report_unknown_features(void)
{
    char message[512];

    if (feature_complaint(message, sizeof(message)))
        client_log_to_file(CUDA_SUCCESS, "%s", message);
}

static CUresult decide_locked(void)
{
    struct client *made;
    CUresult status;
    uint64_t began;
    char why[512];

    if (client || client_mode() == CLIENT_PASSTHROUGH)
        return CUDA_SUCCESS;
    if (stays_away())
        return pass_on();
    client_log_open();
    began = clock_ns();
    switch (attach(&made, &status, why, sizeof(why))) {
    case ATTACHED:
        client = made;
        watch_fork();
        report_unknown_features();
        log_wait(clock_ns() - began);
        return init_subsystems();
    case ATTACH_NO_DAEMON:
        return fall_back(status, why);
    case ATTACH_REFUSED:
        log_once(status, why);
        return status;
    }
    return CUDA_ERROR_UNKNOWN;
}

bool client_may_use_daemons(void)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&decide_lock);

    if (stays_away())
        return false;
    client_log_open();
    return true;
}

CUresult client_decide(void)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&decide_lock);

    return decide_locked();
}

CUresult client_start(void)
{
    CUresult result = client_decide();

    if (result == CUDA_SUCCESS && client)
        client_mode_change(CLIENT_COLD, CLIENT_FUNNEL);
    return result;
}

/* ---- threads whose stack lies in managed memory ---- */

static CUresult refuse_managed_stack(void)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set_explicit(&said, memory_order_relaxed))
        client_log_to_file(
            CUDA_ERROR_NOT_SUPPORTED,
            "a thread has its stack in managed memory, which moves to the device: its "
            "calls get error 801 (CUDA_ERROR_NOT_SUPPORTED); FUNNEL_MANAGED=host "
            "leaves the memory with the host");
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult client_not_ready(int mode)
{
    return mode == CLIENT_ON_MANAGED ? refuse_managed_stack() : CUDA_ERROR_NOT_INITIALIZED;
}

/* ---- the calls that get here undecided ---- */

CUresult client_cuInit(unsigned Flags)
{
    CUresult result;

    if (Flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    result = client_start();
    if (result != CUDA_SUCCESS)
        return result;
    if (!client)
        return passthrough_init(Flags);
    if (client->device_count == 0)
        return CUDA_ERROR_NO_DEVICE;
    injection_load();
    return CUDA_SUCCESS;
}

/* Never fails when there is no server: libcudart would take that for a driver that is too old,
 * while cuInit reports the real reason. */
CUresult client_cuDriverGetVersion(int *driverVersion)
{
    if (client_decide() == CUDA_SUCCESS && !client)
        return passthrough_driver_version(driverVersion);
    *driverVersion = CUDA_VERSION;
    return CUDA_SUCCESS;
}
