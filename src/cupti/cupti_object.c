/* SPDX-License-Identifier: Apache-2.0 */
/* See cupti_object.h. A context is told by the first call after which it is current. Whether it is
 * a green one, its parent and its CIG mode are 0. */
#include "cupti_object.h"

#include <pthread.h>
#include <string.h>

#include "cleanup.h"
#include "context_ids.h"
#include "cupti_abi.h"
#include "cupti_buffer.h"
#include "cupti_call.h"
#include "cupti_driver.h"
#include "cupti_state.h"

#define NAME_MAX_SIZE 256
#define NONE UINT32_MAX
#define BITS_OF_BYTE 8u

static pthread_mutex_t told_lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static struct context_ids contexts; /* with a record; those beyond have none */
static bool devices_told;

/* ---- devices ---- */

static uint32_t attribute(CUdevice device, CUdevice_attribute which)
{
    int value = 0;

    cupti_driver()->device_attribute(&value, which, device);
    return (uint32_t)value;
}

/* Each attribute has its place in the record. */
static void describe_limits(CUdevice device, struct cupti_device *record)
{
    const struct {
        uint32_t *place;
        CUdevice_attribute which;
    } limits[] = {
        {&record->constant_size, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY},
        {&record->l2_size, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
        {&record->warp_size, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
        {&record->clock_rate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE},
        {&record->copy_engines, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT},
        {&record->multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
        {&record->max_blocks, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR},
        {&record->shared_size, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR},
        {&record->registers, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
        {&record->block_registers, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK},
        {&record->block_shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK},
        {&record->block_threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
        {&record->block[0], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X},
        {&record->block[1], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y},
        {&record->block[2], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z},
        {&record->grid[0], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X},
        {&record->grid[1], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y},
        {&record->grid[2], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z},
        {&record->major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
        {&record->minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
        {&record->ecc_enabled, CU_DEVICE_ATTRIBUTE_ECC_ENABLED},
    };

    for (unsigned i = 0; i < sizeof(limits) / sizeof(*limits); i++)
        *limits[i].place = attribute(device, limits[i].which);
}

/* Twice a clock, for memory of double data rate. */
static uint64_t memory_bandwidth(CUdevice device)
{
    uint64_t width = attribute(device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / BITS_OF_BYTE;

    return 2 * width * attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
}

static void append_device(CUdevice device)
{
    struct cupti_device record = {
        .kind = CUPTI_KIND_DEVICE,
        .memory_bandwidth = memory_bandwidth(device),
        .id = (uint32_t)device,
        .is_visible = true,
        .gpu_instance = NONE,
        .compute_instance = NONE,
        .numa_node = NONE,
    };
    char name[NAME_MAX_SIZE] = "";
    size_t size = 0;

    describe_limits(device, &record);
    if (record.warp_size)
        record.max_warps = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) /
                           record.warp_size;
    cupti_driver()->device_memory(&size, device);
    cupti_driver()->device_uuid(&record.uuid, device);
    cupti_driver()->device_name(name, sizeof(name), device);
    record.memory_size = size;
    record.name = strdup(name);
    cupti_buffer_append(&record);
}

static bool note_devices(void)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&told_lock);
    bool are_new = !devices_told;

    devices_told = true;
    return are_new;
}

/* Without the lock, since a record may need a new buffer, and a tool may enable kinds of records
 * when it is asked for one. */
static void tell_devices(void)
{
    int count;

    if (cupti_driver()->device_count(&count) != CUDA_SUCCESS || !note_devices())
        return;
    for (CUdevice device = 0; device < count; device++)
        append_device(device);
}

/* ---- contexts ---- */

static bool note_context(uint32_t id)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&told_lock);

    return !context_ids_have(&contexts, id) && context_ids_add(&contexts, id);
}

void cupti_object_forget_context(uint32_t id)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&told_lock);

    context_ids_remove(&contexts, id);
}

static void tell_context(void)
{
    CUcontext context;
    struct cupti_context record = {
        .kind = CUPTI_KIND_CONTEXT,
        .context = cupti_current_context(&context),
        .compute_kind = CUPTI_COMPUTE_CUDA,
    };

    if (!record.context || !note_context(record.context))
        return;
    record.device = cupti_current_device();
    record.null_stream = (uint16_t)cupti_stream_number(NULL);
    cupti_buffer_append(&record);
}

/* ---- streams ---- */

/* The first parameter of cuStreamCreate() and its like. */
static void tell_stream(const struct profiler_call *call)
{
    CUstream stream = **(CUstream *const *)call->arguments;
    CUcontext context;
    unsigned flags = 0;
    int priority = 0;

    cupti_driver()->stream_flags(stream, &flags);
    cupti_driver()->stream_priority(stream, &priority);
    const struct cupti_stream record = {
        .kind = CUPTI_KIND_STREAM,
        .context = cupti_current_context(&context),
        .stream = cupti_stream_number(stream),
        .priority = (uint32_t)priority,
        .flag = flags & CU_STREAM_NON_BLOCKING ? CUPTI_STREAM_NON_BLOCKING : CUPTI_STREAM_DEFAULT,
        .correlation = call->correlation,
    };
    cupti_buffer_append(&record);
}

static bool makes_stream(const struct profiler_call *call)
{
    return cupti_call_begins(call, "cuStreamCreate") ||
           cupti_call_begins(call, "cuGreenCtxStreamCreate");
}

void cupti_object_leave(const struct profiler_call *call)
{
    if (call->runtime_cbid)
        return;
    if (cupti_kind_is_on(CUPTI_KIND_DEVICE))
        tell_devices();
    if (cupti_kind_is_on(CUPTI_KIND_CONTEXT))
        tell_context();
    if (cupti_kind_is_on(CUPTI_KIND_STREAM) && call->result == CUDA_SUCCESS && call->arguments &&
        makes_stream(call))
        tell_stream(call);
}

void cupti_object_forget(uint32_t kind)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&told_lock);

    if (kind == CUPTI_KIND_DEVICE)
        devices_told = false;
    else if (kind == CUPTI_KIND_CONTEXT)
        contexts.count = 0;
}

void cupti_object_after_fork(void)
{
    pthread_mutex_init(&told_lock, NULL);
    devices_told = false;
    contexts.count = 0;
}
