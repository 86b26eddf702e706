/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual devices: how many, how large, and who may see them.
 */
#include "soft_device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "soft.h"
#include "soft_context.h"
#include "soft_part.h"

#define DEFAULT_SMS 8
#define DEFAULT_MEMORY (2ull << 30)
#define LEAST_MEMORY (16ull << 20)
#define UUID_TEXT_SIZE 41

static struct device devices[SOFT_MAX_DEVICES];
static unsigned device_count;

struct shape {
    unsigned long count;
    unsigned long sms;
    uint64_t memory;
};

static uint64_t default_memory(void)
{
    uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);

    return ram / 2 < DEFAULT_MEMORY ? ram / 2 : DEFAULT_MEMORY;
}

static bool read_size(const char **text, uint64_t *ret_size)
{
    char *end;
    uint64_t size = strtoull(*text, &end, 10);
    const char *unit = *end ? strchr("KMGT", *end) : NULL;

    if (end == *text)
        return false;
    if (unit) {
        size <<= 10 * (unit - "KMGT" + 1);
        end++;
    }
    *text = end;
    *ret_size = size;
    return true;
}

static bool read_setting(const char **text, struct shape *shape)
{
    uint64_t value;
    bool is_sms = strncmp(*text, "sms=", 4) == 0;

    if (!is_sms && strncmp(*text, "mem=", 4) != 0)
        return false;
    *text += 4;
    if (!read_size(text, &value))
        return false;
    if (is_sms)
        shape->sms = value;
    else
        shape->memory = value;
    return true;
}

static bool shape_is_sane(const struct shape *shape)
{
    return shape->count <= SOFT_MAX_DEVICES && shape->sms >= 1 && shape->sms <= SG_MAX_SMS &&
           shape->memory >= LEAST_MEMORY;
}

/* "2:sms=16,mem=4G" */
static bool read_shape(const char *text, struct shape *shape)
{
    char *end;

    shape->count = strtoul(text, &end, 10);
    if (end == text)
        return false;
    text = end;
    for (char expected = ':'; *text; expected = ',') {
        if (*text++ != expected || !read_setting(&text, shape))
            return false;
    }
    return shape_is_sane(shape);
}

/* The same devices have the same names in every process and after every restart. */
static void device_fill(struct device *device, unsigned number, const struct shape *shape)
{
    *device = (struct device){
        .number = number,
        .sm_count = shape->sms,
        .memory_size = shape->memory & ~((2ull << 20) - 1),
    };
    memcpy(device->uuid.bytes, "Funnel soft GPU", 15);
    device->uuid.bytes[15] = number;
}

void device_uuid_text(const struct device *device, char *text, size_t size)
{
    const unsigned char *b = (const unsigned char *)device->uuid.bytes;

    snprintf(text, size, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
             b[14], b[15]);
}

static bool is_named(const struct device *device, const char *word, size_t length)
{
    char text[UUID_TEXT_SIZE];
    char *end;
    unsigned long number = strtoul(word, &end, 10);

    if (end != word && end == word + length)
        return number == device->number;
    device_uuid_text(device, text, sizeof(text));
    return length > 4 && strncasecmp(word, text, length) == 0;
}

/* CUDA_VISIBLE_DEVICES names devices in the order wanted; the first unknown name ends the list. */
static void devices_choose(const struct device *all, unsigned count, const char *names)
{
    while (*names) {
        size_t length = strcspn(names, ",");
        unsigned i = 0;

        while (i < count && !is_named(&all[i], names, length))
            i++;
        if (i == count || device_count == SOFT_MAX_DEVICES)
            return;
        devices[device_count++] = all[i];
        names += length + (names[length] == ',');
    }
}

CUresult devices_init_locked(void)
{
    const char *text = getenv("FUNNEL_SOFT_DEVICES");
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    struct shape shape = {.count = 1, .sms = DEFAULT_SMS, .memory = default_memory()};
    struct device all[SOFT_MAX_DEVICES];

    if (text && *text && !read_shape(text, &shape)) {
        soft_log("FUNNEL_SOFT_DEVICES=%s is not of the form COUNT:sms=N,mem=SIZE", text);
        return CUDA_ERROR_NO_DEVICE;
    }
    for (unsigned i = 0; i < shape.count; i++)
        device_fill(&all[i], i, &shape);

    device_count = 0;
    if (visible)
        devices_choose(all, shape.count, visible);
    else
        for (unsigned i = 0; i < shape.count; i++)
            devices[device_count++] = all[i];

    for (unsigned i = 0; i < device_count; i++) {
        devices[i].ordinal = i;
        devices[i].primary = context_create_primary_locked(&devices[i]);
        if (!devices[i].primary)
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return device_count ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

unsigned devices_count(void)
{
    return device_count;
}

struct device *device_get(CUdevice ordinal)
{
    return ordinal >= 0 && (unsigned)ordinal < device_count ? &devices[ordinal] : NULL;
}

/* FUNNEL_SOFT_TIMEOUT counts seconds; anything senseless is no limit. */
static uint64_t timeout_ms(void)
{
    const char *text = getenv("FUNNEL_SOFT_TIMEOUT");
    double seconds = text ? strtod(text, NULL) : 0;

    return seconds > 0 && seconds < 1e9 ? (uint64_t)(seconds * 1000 + 0.999) : 0;
}

struct sg_engine *device_engine_locked(struct device *device)
{
    struct sg_engine_config config = {
        .sm_count = device->sm_count,
        .threads_per_sm = SOFT_THREADS_PER_SM,
        .blocks_per_sm = SOFT_BLOCKS_PER_SM,
        .shared_per_sm = SOFT_SHARED_PER_SM,
        .registers_per_sm = SOFT_REGISTERS_PER_SM,
        .timeout_ms = timeout_ms(),
    };

    if (!device->engine)
        device->engine = sg_engine_create(&config);
    return device->engine;
}

bool device_charge_locked(struct device *device, uint64_t size)
{
    if (size > device->memory_size - device->memory_used)
        parts_release_locked(device);
    if (size > device->memory_size - device->memory_used)
        return false;
    device->memory_used += size;
    return true;
}

void device_refund_locked(struct device *device, uint64_t size)
{
    device->memory_used -= size;
}
