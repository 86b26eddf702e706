/* SPDX-License-Identifier: Apache-2.0 */
/* See nvml_soft_devices.h. */
#include "nvml_soft_devices.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "command_client.h"
#include "fd.h"

#define START_NS (10 * NS_PER_SEC) /* until a server of the software GPU has started, at most */

/* Devices stay in their places, which are the handles of programs. */
static struct soft_gpu gpus[SERVER_MAX_DEVICES];
static unsigned gpu_count;
static atomic_uint init_count;
static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;

void soft_before_fork(void)
{
    pthread_mutex_lock(&init_lock);
}

void soft_after_fork(void)
{
    pthread_mutex_unlock(&init_lock);
}

/* ---- devices ---- */

static const struct soft_gpu *find_gpu(const uint8_t uuid[16])
{
    for (unsigned i = 0; i < gpu_count; i++)
        if (!memcmp(gpus[i].facts.uuid, uuid, 16))
            return &gpus[i];
    return NULL;
}

static void add_gpus(const struct command_server *server)
{
    for (unsigned i = 0; i < server->device_count && i < SERVER_MAX_DEVICES; i++) {
        const struct soft_gpu *gpu = find_gpu(server->devices[i].uuid);

        if (!gpu && gpu_count < SERVER_MAX_DEVICES)
            gpus[gpu_count++] = (struct soft_gpu){server->devices[i], server->driver_version};
    }
}

/* Whether a server has devices, of NVIDIA's driver or of the software GPU, is told, too. */
static int look_for_gpus(bool *ret_any)
{
    const struct facts *facts = facts_begin(false);

    if (!facts)
        return NVML_ERROR_DRIVER_NOT_LOADED;
    *ret_any = false;
    for (unsigned i = 0; i < facts->now.server_count; i++) {
        *ret_any |= facts->now.servers[i].device_count > 0;
        if (facts->now.servers[i].driver == SERVER_DRIVER_SOFT)
            add_gpus(&facts->now.servers[i]);
    }
    facts_end(facts);
    return NVML_SUCCESS;
}

/* Servers start with the first program; a monitor that comes before it wants to see the devices. */
static void start_server(void)
{
    char reason[COMMAND_REASON_MAX];
    _cleanup_fd_ int fd = -1;
    struct paths paths;

    if (!paths_find_daemon(&paths))
        command_connect_within(&paths, HELLO_AHEAD, FACTS_TIMEOUT_MS, &fd, reason);
}

static int await_gpus(void)
{
    const struct timespec pause = {.tv_nsec = 100 * NS_PER_MS};
    uint64_t deadline = clock_ns() + START_NS;
    bool any = false;
    int result = look_for_gpus(&any);

    if (result == NVML_SUCCESS && !any)
        start_server();
    while (result == NVML_SUCCESS && !any && clock_ns() < deadline) {
        nanosleep(&pause, NULL);
        result = look_for_gpus(&any);
    }
    return result;
}

/* ---- init and shutdown ---- */

int soft_init_with_flags(unsigned flags)
{
    int result = NVML_SUCCESS;

    pthread_mutex_lock(&init_lock);
    if (!init_count)
        result = await_gpus();
    if (result == NVML_SUCCESS)
        init_count++;
    pthread_mutex_unlock(&init_lock);
    return result;
}

int soft_init(void)
{
    return soft_init_with_flags(0);
}

int soft_shutdown(void)
{
    bool initialized;

    pthread_mutex_lock(&init_lock);
    initialized = init_count > 0;
    init_count -= initialized;
    pthread_mutex_unlock(&init_lock);
    return initialized ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

int soft_check_initialized(const void *argument)
{
    if (!atomic_load(&init_count))
        return NVML_ERROR_UNINITIALIZED;
    return argument ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

int soft_check_device(nvml_device device, const void *argument, const struct soft_gpu **ret_gpu)
{
    const struct soft_gpu *gpu = (const struct soft_gpu *)device;
    int result = soft_check_initialized(argument);

    if (result != NVML_SUCCESS)
        return result;
    for (unsigned i = 0; i < gpu_count; i++) {
        *ret_gpu = &gpus[i];
        if (gpu == *ret_gpu)
            return NVML_SUCCESS;
    }
    return NVML_ERROR_INVALID_ARGUMENT;
}

unsigned soft_gpu_count(void)
{
    return gpu_count;
}

const struct soft_gpu *soft_gpu_at(unsigned index)
{
    return index < gpu_count ? &gpus[index] : NULL;
}
