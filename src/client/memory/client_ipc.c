/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuIpc...: memory that has a handle for other processes, and memory of theirs that is open here.
 * Opening the same handle again returns the same address, which stays open until it is closed as
 * often.
 */
#include "client_ipc.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cleanup.h"
#include "client_call.h"
#include "client_event.h"
#include "client_peer_access.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "ranges.h"
#include "recovery_hook.h"
#include "stream_wait.h"
#include "wire_calls.h"

/* The contents of the 64 bytes of a handle. */
struct ipc_handle {
    char magic[8];
    uint32_t kind;
    uint32_t reserved;
    uint64_t key0, key1;
};

static const char magic[8] = "FunlIPC1";

enum {
    IPC_MEMORY = 1,
    IPC_EVENT = 2,
};

struct opened {
    struct allocation allocation;
    uint64_t key0, key1;
    unsigned opens;
};

static struct ipc {
    pthread_mutex_t lock;
    struct ranges named;  /* this client's allocations that have a handle; no values */
    struct ranges opened; /* struct opened */
    bool has_opened_memory, has_opened_event;
} ipc;

#define IPC_LOCKED _cleanup_mutex_ pthread_mutex_t *ipc_held = call_mutex_hold(&ipc.lock)

void ipc_init(void)
{
    pthread_mutex_init(&ipc.lock, NULL);
    ranges_init(&ipc.named);
    ranges_init(&ipc.opened);
}

static void write_handle(void *bytes, uint32_t kind, uint64_t key0, uint64_t key1)
{
    struct ipc_handle handle = {.kind = kind, .key0 = key0, .key1 = key1};

    memcpy(handle.magic, magic, sizeof(magic));
    memset(bytes, 0, sizeof(CUipcMemHandle));
    memcpy(bytes, &handle, sizeof(handle));
}

static bool read_handle(const void *bytes, uint32_t kind, struct ipc_handle *ret_handle)
{
    memcpy(ret_handle, bytes, sizeof(*ret_handle));
    return memcmp(ret_handle->magic, magic, sizeof(magic)) == 0 && ret_handle->kind == kind;
}

/* The server that knows the name. */
static uint32_t server_of(const struct ipc_handle *handle)
{
    return (uint32_t)handle->key1;
}

/* ---- naming memory ---- */

CUresult ipc_name_allocation(const struct allocation *allocation, void *ret_handle)
{
    const struct wire_cuIpcGetMemHandle in = {.ptr = allocation->address, .size = allocation->size};
    struct wire_cuIpcGetMemHandle_reply out;
    IPC_LOCKED;
    CUresult result = wire_cuIpcGetMemHandle(&client->channel, &in, &out);

    if (result != CUDA_SUCCESS)
        return result;
    ranges_add(&ipc.named, allocation->address, allocation->size, client);
    write_handle(ret_handle, IPC_MEMORY, out.key0, out.key1);
    return CUDA_SUCCESS;
}

CUresult client_cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
    struct allocation allocation;
    struct context *context;
    CUresult result = context_enter(&context);

    if (result != CUDA_SUCCESS)
        return result;
    return address_map_find(dptr, &allocation) && allocation.kind->has_ipc_handle
               ? ipc_name_allocation(&allocation, pHandle)
               : CUDA_ERROR_INVALID_VALUE;
}

void ipc_withdraw_at(uint64_t address)
{
    struct wire_fnIpcWithdraw in = {.ptr = address};
    IPC_LOCKED;

    if (ranges_remove(&ipc.named, address, NULL))
        return;
    channel_lock(&client->channel);
    wire_fnIpcWithdraw(&client->channel, &in);
    channel_unlock(&client->channel);
}

/* ---- opening memory ---- */

static struct opened *find_opened_locked(uint64_t address)
{
    const struct range *range = ranges_find(&ipc.opened, address);

    return range ? range->value : NULL;
}

bool ipc_find(uint64_t address, struct allocation *ret_allocation)
{
    IPC_LOCKED;
    const struct opened *opened = find_opened_locked(address);

    if (opened)
        *ret_allocation = opened->allocation;
    return opened != NULL;
}

static void send_close(uint64_t address)
{
    struct wire_cuIpcCloseMemHandle in = {.address = address};

    channel_lock(&client->channel);
    wire_cuIpcCloseMemHandle(&client->channel, &in);
    channel_unlock(&client->channel);
}

/* Memory of a device that the program does not see cannot be opened. */
static CUresult enter_opened_locked(struct opened *opened, struct context *context,
                                    const struct wire_cuIpcOpenMemHandle_v2_reply *out)
{
    struct device *device = memory_device_of(out->address);

    if (!device || device->index != out->device)
        return CUDA_ERROR_INVALID_DEVICE;
    opened->allocation = (struct allocation){
        .address = out->address,
        .size = out->size,
        .id = client_next_id(),
        .context = context->device == device ? context : device->primary,
    };
    return ranges_add(&ipc.opened, out->address, out->size, opened) ? CUDA_ERROR_OUT_OF_MEMORY
                                                                    : CUDA_SUCCESS;
}

/* A client that has opened something does not move. One whose only tries have failed does. */
static void note_try_locked(bool *has_opened, uint32_t op, CUresult result)
{
    *has_opened |= result == CUDA_SUCCESS;
    if (!*has_opened)
        channel_forget_call(&client->channel, op);
}

static CUresult open_anew_locked(const struct ipc_handle *handle, struct context *context,
                                 struct opened **ret_opened)
{
    struct wire_cuIpcOpenMemHandle_v2 in = {.key0 = handle->key0, .key1 = handle->key1};
    struct wire_cuIpcOpenMemHandle_v2_reply out;
    struct opened *opened = calloc(1, sizeof(*opened));
    CUresult result;

    if (!opened)
        return CUDA_ERROR_OUT_OF_MEMORY;
    opened->key0 = handle->key0;
    opened->key1 = handle->key1;
    result = wire_cuIpcOpenMemHandle_v2(&client->channel, &in, &out);
    note_try_locked(&ipc.has_opened_memory, WIRE_cuIpcOpenMemHandle_v2, result);
    if (result == CUDA_SUCCESS) {
        result = enter_opened_locked(opened, context, &out);
        if (result != CUDA_SUCCESS)
            send_close(out.address);
    }
    if (result != CUDA_SUCCESS) {
        free(opened);
        return result;
    }
    *ret_opened = opened;
    return CUDA_SUCCESS;
}

static struct opened *find_handle_locked(const struct ipc_handle *handle)
{
    const struct range *range = ranges_next(&ipc.opened, 0);

    for (; range; range = ranges_next(&ipc.opened, range->start + 1)) {
        struct opened *opened = range->value;

        if (opened->key0 == handle->key0 && opened->key1 == handle->key1)
            return opened;
    }
    return NULL;
}

static CUresult open_named(struct context *context, const struct ipc_handle *name,
                           const struct memory_kind *kind, CUdeviceptr *ret_address)
{
    struct opened *opened;
    CUresult result = CUDA_SUCCESS;
    IPC_LOCKED;

    opened = find_handle_locked(name);
    if (!opened)
        result = open_anew_locked(name, context, &opened);
    if (result != CUDA_SUCCESS)
        return result;
    opened->opens++;
    opened->allocation.kind = kind;
    *ret_address = opened->allocation.address;
    return CUDA_SUCCESS;
}

CUresult ipc_open(struct context *context, const void *handle, const struct memory_kind *kind,
                  CUdeviceptr *ret_address)
{
    struct ipc_handle name;
    CUresult result;

    if (!read_handle(handle, IPC_MEMORY, &name))
        return CUDA_ERROR_INVALID_VALUE;
    result = open_named(context, &name, kind, ret_address);
    if (result != CUDA_ERROR_INVALID_VALUE)
        return result;
    recovery_join(server_of(&name));
    return open_named(context, &name, kind, ret_address);
}

static void close_locked(struct opened *opened)
{
    ranges_remove(&ipc.opened, opened->allocation.address, NULL);
    send_close(opened->allocation.address);
    free(opened);
}

/* Nothing uses it any more. */
static CUresult close_one(CUdeviceptr address, const struct memory_kind *kind)
{
    struct opened *opened;
    IPC_LOCKED;

    opened = find_opened_locked(address);
    if (!opened || opened->allocation.address != address || opened->allocation.kind != kind)
        return CUDA_ERROR_INVALID_VALUE;
    if (--opened->opens == 0)
        close_locked(opened);
    return client_sync_error();
}

/* CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS: the context's device reaches memory of another one. */
static CUresult reach_opened(struct context *context, CUdeviceptr address)
{
    const struct device *home = memory_device_of(address);
    CUresult result =
        home && home != context->device ? peer_reach(context->device, home) : CUDA_SUCCESS;

    if (result != CUDA_SUCCESS)
        close_one(address, &kind_opened);
    return result;
}

CUresult client_cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned Flags)
{
    struct context *context;
    CUresult result = context_enter(&context);

    if (Flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = ipc_open(context, &handle, &kind_opened, pdptr);
    return result == CUDA_SUCCESS ? reach_opened(context, *pdptr) : result;
}

CUresult client_cuIpcCloseMemHandle(CUdeviceptr dptr)
{
    struct allocation allocation;
    struct context *context;
    CUresult result = context_enter(&context);

    if (result != CUDA_SUCCESS)
        return result;
    if (!ipc_find(dptr, &allocation))
        return CUDA_ERROR_INVALID_VALUE;
    result = stream_drain_device(allocation.context->device);
    return result != CUDA_SUCCESS ? result : close_one(dptr, &kind_opened);
}

const struct memory_kind kind_opened = {.place = PLACE_DEVICE};

static CUresult give_imported(const struct allocation *allocation)
{
    return close_one(allocation->address, &kind_imported);
}

static CUresult give_imported_async(const struct allocation *allocation, struct stream *stream)
{
    CUresult result = stream_drain_device(allocation->context->device);

    return result != CUDA_SUCCESS ? result : give_imported(allocation);
}

const struct memory_kind kind_imported = {
    .place = PLACE_DEVICE,
    .free = give_imported,
    .free_async = give_imported_async,
};

void ipc_close_all(struct context *context)
{
    uint64_t address = 0;
    const struct range *range;
    IPC_LOCKED;

    while ((range = ranges_next(&ipc.opened, address)) != NULL) {
        struct opened *opened = range->value;

        address = range->start + 1;
        if (opened->allocation.context == context)
            close_locked(opened);
    }
}

/* ---- events ---- */

CUresult client_cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event)
{
    struct wire_cuIpcGetEventHandle in = {.hEvent = (uint64_t)event};
    struct wire_cuIpcGetEventHandle_reply out;
    CUresult result = client_error();

    if (result != CUDA_SUCCESS)
        return result;
    if (!event_is_shared(event))
        return CUDA_ERROR_INVALID_HANDLE;
    result = wire_cuIpcGetEventHandle(&client->channel, &in, &out);
    if (result == CUDA_SUCCESS)
        write_handle(pHandle, IPC_EVENT, out.key0, out.key1);
    return result;
}

static CUresult open_event(struct context *context, const struct ipc_handle *name,
                           CUevent *ret_event)
{
    IPC_LOCKED;
    CUresult result = event_open(context, name->key0, name->key1, ret_event);

    note_try_locked(&ipc.has_opened_event, WIRE_cuIpcOpenEventHandle, result);
    return result;
}

CUresult client_cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle)
{
    struct context *context;
    struct ipc_handle name;
    CUresult result = context_enter(&context);

    if (result != CUDA_SUCCESS)
        return result;
    if (!read_handle(&handle, IPC_EVENT, &name))
        return CUDA_ERROR_INVALID_VALUE;
    result = open_event(context, &name, phEvent);
    if (result != CUDA_ERROR_INVALID_VALUE)
        return result;
    recovery_join(server_of(&name));
    return open_event(context, &name, phEvent);
}
