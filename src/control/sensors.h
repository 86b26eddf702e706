/* SPDX-License-Identifier: Apache-2.0 */
/* The measurements of a device: how values travel, and how JSON and metrics name them. */
#pragma once

#include <stdint.h>

enum sensor {
    SENSOR_POWER,           /* milliwatts */
    SENSOR_POWER_LIMIT,     /* milliwatts */
    SENSOR_TEMPERATURE,     /* degrees Celsius */
    SENSOR_UTILIZATION,     /* percent of the time with a kernel, of any process */
    SENSOR_MEMORY_ACTIVITY, /* percent of the time in which memory was read or written */
    SENSOR_SM_CLOCK,        /* megahertz */
    SENSOR_MEMORY_CLOCK,    /* megahertz */
    SENSOR_MEMORY_IN_USE,   /* bytes, by all processes and the driver */
    SENSOR_COUNT,
};

#define SENSOR_UNKNOWN UINT64_MAX

struct server_sensors {
    uint64_t value[SENSOR_COUNT]; /* by enum sensor; SENSOR_UNKNOWN = the device does not tell */
};

struct sensor_row {
    const char *name; /* "power_watts": its last word is the unit */
    double scale;     /* from the value to that unit */
    uint64_t most;    /* a larger value is nonsense */
    const char *help;
};

/* By enum sensor. */
extern const struct sensor_row sensor_rows[SENSOR_COUNT];

/* Nothing is known. */
void sensors_init(struct server_sensors *sensors);

/* Values that cannot be become unknown. */
void sensors_clean(struct server_sensors *sensors);

/* In the unit of the name; negative where it is not known. */
double sensor_value(const struct server_sensors *sensors, enum sensor sensor);
