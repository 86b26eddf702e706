/* SPDX-License-Identifier: Apache-2.0 */
/* See sensors.h. */
#include "sensors.h"

const struct sensor_row sensor_rows[SENSOR_COUNT] = {
    [SENSOR_POWER] = {"power_watts", 1e-3, 10000000, "Power that the GPU draws."},
    [SENSOR_POWER_LIMIT] = {"power_limit_watts", 1e-3, 10000000, "Power that it may draw."},
    [SENSOR_TEMPERATURE] = {"temperature_celsius", 1, 200, "Temperature of the GPU."},
    [SENSOR_UTILIZATION] = {"utilization_ratio", 1e-2, 100,
                            "Share of the time with a kernel of any process, as NVML counts."},
    [SENSOR_MEMORY_ACTIVITY] = {"memory_activity_ratio", 1e-2, 100,
                                "Share of the time in which its memory was read or written."},
    [SENSOR_SM_CLOCK] = {"sm_clock_hertz", 1e6, 100000, "Clock of the multiprocessors."},
    [SENSOR_MEMORY_CLOCK] = {"memory_clock_hertz", 1e6, 100000, "Clock of the memory."},
    [SENSOR_MEMORY_IN_USE] = {"memory_in_use_bytes", 1, 1ull << 50,
                              "Memory that all processes and the driver have, as NVML counts."},
};

void sensors_init(struct server_sensors *sensors)
{
    for (unsigned i = 0; i < SENSOR_COUNT; i++)
        sensors->value[i] = SENSOR_UNKNOWN;
}

void sensors_clean(struct server_sensors *sensors)
{
    for (unsigned i = 0; i < SENSOR_COUNT; i++)
        if (sensors->value[i] > sensor_rows[i].most)
            sensors->value[i] = SENSOR_UNKNOWN;
}

double sensor_value(const struct server_sensors *sensors, enum sensor sensor)
{
    uint64_t value = sensors->value[sensor];

    return value == SENSOR_UNKNOWN ? -1 : (double)value * sensor_rows[sensor].scale;
}
