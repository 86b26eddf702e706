/* SPDX-License-Identifier: Apache-2.0 */
/* See sensor_watch.h. */
#include "sensor_watch.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "cleanup.h"
#include "clock.h"
#include "log.h"
#include "nvml.h"
#include "server_protocol.h"
#include "text.h"

#define PERIOD_S 3
#define OLD_NS (4 * PERIOD_S * NS_PER_SEC)

/* Of one device. */
struct sensor_reading {
    char pci_bus_id[16];
    struct server_sensors sensors; /* under the lock */
    uint64_t read_at;              /* clock_ns(); under the lock */
};

struct sensor_watch {
    char driver_path[4096];
    unsigned count;
    struct sensor_reading reading[SERVER_MAX_DEVICES];
    pthread_mutex_t lock; /* never held in a call of the library */
};

/* ---- one device ---- */

typedef int number_entry(void *device, unsigned *ret_number);

static void read_number(number_entry *entry, void *device, uint64_t *ret_value)
{
    unsigned number;

    if (entry && entry(device, &number) == 0)
        *ret_value = number;
}

static void read_power(const struct nvml *nvml, void *device, uint64_t *value)
{
    read_number(nvml->power, device, &value[SENSOR_POWER]);
    read_number(nvml->power_limit, device, &value[SENSOR_POWER_LIMIT]);
}

static void read_temperature(const struct nvml *nvml, void *device, uint64_t *value)
{
    unsigned celsius;

    if (nvml->temperature && nvml->temperature(device, NVML_TEMPERATURE_GPU, &celsius) == 0)
        value[SENSOR_TEMPERATURE] = celsius;
}

static void read_clock(const struct nvml *nvml, void *device, enum nvml_clock kind,
                       uint64_t *ret_value)
{
    unsigned megahertz;

    if (nvml->clock && nvml->clock(device, kind, &megahertz) == 0)
        *ret_value = megahertz;
}

static void read_use(const struct nvml *nvml, void *device, uint64_t *value)
{
    struct nvml_utilization utilization;
    struct nvml_memory memory;

    if (nvml->utilization && nvml->utilization(device, &utilization) == 0) {
        value[SENSOR_UTILIZATION] = utilization.gpu;
        value[SENSOR_MEMORY_ACTIVITY] = utilization.memory;
    }
    if (nvml->memory && nvml->memory(device, &memory) == 0 && memory.used <= memory.total)
        value[SENSOR_MEMORY_IN_USE] = memory.used;
}

static void read_sensors(const struct nvml *nvml, const char *pci_bus_id,
                         struct server_sensors *ret_sensors)
{
    void *device;

    sensors_init(ret_sensors);
    if (nvml->find_device(pci_bus_id, &device))
        return;
    read_power(nvml, device, ret_sensors->value);
    read_temperature(nvml, device, ret_sensors->value);
    read_use(nvml, device, ret_sensors->value);
    read_clock(nvml, device, NVML_CLOCK_SM, &ret_sensors->value[SENSOR_SM_CLOCK]);
    read_clock(nvml, device, NVML_CLOCK_MEM, &ret_sensors->value[SENSOR_MEMORY_CLOCK]);
    sensors_clean(ret_sensors);
}

static bool are_unknown(const struct server_sensors *sensors)
{
    for (unsigned i = 0; i < SENSOR_COUNT; i++)
        if (sensors->value[i] != SENSOR_UNKNOWN)
            return false;
    return true;
}

/* ---- the thread ---- */

/* Returns whether the library tells something of each device. */
static bool read_all(struct sensor_watch *watch, const struct nvml *nvml)
{
    bool tells = true;

    for (unsigned i = 0; i < watch->count; i++) {
        struct server_sensors sensors;

        read_sensors(nvml, watch->reading[i].pci_bus_id, &sensors);
        tells &= !are_unknown(&sensors);
        _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&watch->lock);
        watch->reading[i].sensors = sensors;
        watch->reading[i].read_at = clock_ns();
    }
    return tells;
}

static void *watch_thread(void *context)
{
    const struct timespec period = {.tv_sec = PERIOD_S};
    struct sensor_watch *watch = context;
    struct nvml nvml;

    if (!nvml_open(watch->driver_path, &nvml)) {
        log_line("Power, temperature and clocks of the devices are not known: the driver's "
                 "libnvidia-ml.so.1 is missing or cannot start");
        return NULL;
    }
    if (!read_all(watch, &nvml))
        log_line("libnvidia-ml.so.1 tells neither power nor temperature of some device");
    for (;;) {
        nanosleep(&period, NULL);
        read_all(watch, &nvml);
    }
    return NULL;
}

/* ---- for other threads ---- */

static struct sensor_watch *watch_create(const char *driver_path, const char *const *pci_bus_ids,
                                         unsigned count)
{
    struct sensor_watch *watch = calloc(1, sizeof(*watch));

    if (!watch)
        return NULL;
    watch->count = count < SERVER_MAX_DEVICES ? count : SERVER_MAX_DEVICES;
    text_copy(watch->driver_path, sizeof(watch->driver_path), driver_path);
    pthread_mutex_init(&watch->lock, NULL);
    for (unsigned i = 0; i < watch->count; i++) {
        text_copy(watch->reading[i].pci_bus_id, sizeof(watch->reading[i].pci_bus_id),
                  pci_bus_ids[i]);
        sensors_init(&watch->reading[i].sensors);
    }
    return watch;
}

struct sensor_watch *sensor_watch_start(const char *driver_path, const char *const *pci_bus_ids,
                                        unsigned count)
{
    struct sensor_watch *watch = watch_create(driver_path, pci_bus_ids, count);
    pthread_t thread;

    if (!watch)
        return NULL;
    if (pthread_create(&thread, NULL, watch_thread, watch)) {
        free(watch);
        return NULL;
    }
    pthread_detach(thread);
    return watch;
}

void sensor_watch_get(struct sensor_watch *watch, unsigned device, uint64_t now,
                      struct server_sensors *ret_sensors)
{
    sensors_init(ret_sensors);
    if (!watch || device >= watch->count)
        return;
    const struct sensor_reading *reading = &watch->reading[device];
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&watch->lock);
    if (now < reading->read_at + OLD_NS)
        *ret_sensors = reading->sensors;
}
