/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of other clients. A name identifies an allocation; the server maps the allocation's
 * granule, once for each client, at a free address of that client's window. The client that opens
 * it is charged as for its own memory, so that clients cannot evade limits by sharing.
 */
#include "ipc_memory.h"

#include <stdlib.h>

#include "ipc_share.h"
#include "memory_state.h"
#include "server_dispatch.h"

/* A granule of another client in this one's window. */
struct ipc_import {
    struct list link;
    struct ipc_share *share;
    uint64_t address;
    unsigned opens;
};

/* ---- giving names ---- */

static struct granule *find_granule(const struct session *session, uint64_t address, uint64_t size)
{
    struct granule *granule = memory_granule_at(session, address);

    if (!granule || granule->kind != GRANULE_DEVICE || !size ||
        size > granule->size - (address - granule->address))
        return NULL;
    return granule;
}

/* The share has a reference of its own on the granule's memory. */
static CUresult share_granule(struct session *session, struct granule *granule)
{
    struct ipc_share share = {.kind = IPC_MEMORY,
                              .device = &session->server->devices.device[granule->part],
                              .size = granule->size};
    CUresult result = session_enter(session, share.device);

    if (result == CUDA_SUCCESS)
        result = driver.cuMemRetainAllocationHandle(&share.memory, (void *)granule->address);
    if (result != CUDA_SUCCESS)
        return result;
    granule->share = ipc_share_create(&share);
    if (granule->share)
        return CUDA_SUCCESS;
    driver.cuMemRelease(share.memory);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult serve_cuIpcGetMemHandle(struct session *session, const struct wire_cuIpcGetMemHandle *in,
                                 struct wire_cuIpcGetMemHandle_reply *ret_out)
{
    struct granule *granule = find_granule(session, in->ptr, in->size);
    CUresult result = CUDA_SUCCESS;
    struct ipc_key key;

    if (!granule) {
        session_log_error(session, "cuIpcGetMemHandle: %llu bytes at %#llx are in no granule",
                          (unsigned long long)in->size, (unsigned long long)in->ptr);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!granule->share)
        result = share_granule(session, granule);
    if (result != CUDA_SUCCESS)
        return result;
    const struct ipc_item item = {granule->share, in->ptr - granule->address, in->size};
    result = ipc_name(session, &item, &key);
    if (result != CUDA_SUCCESS)
        return result;
    ret_out->key0 = key.words[0];
    ret_out->key1 = key.words[1];
    return CUDA_SUCCESS;
}

CUresult serve_fnIpcWithdraw(struct session *session, const struct wire_fnIpcWithdraw *in)
{
    const struct granule *granule = find_granule(session, in->ptr, 1);

    if (!granule || !granule->share)
        return CUDA_ERROR_INVALID_VALUE;
    ipc_withdraw_part(session, granule->share, in->ptr - granule->address);
    return CUDA_SUCCESS;
}

/* ---- opening ---- */

static struct ipc_import *find_import(const struct session *session, const struct ipc_share *share)
{
    list_for_each (struct ipc_import, import, &session->memory->imports, link) {
        if (import->share == share)
            return import;
    }
    return NULL;
}

static CUresult map_at(const struct session *session, const struct ipc_share *share,
                       uint64_t address)
{
    CUresult result = driver.cuMemMap(address, share->size, 0, share->memory, 0);

    if (result != CUDA_SUCCESS)
        return result;
    result = memory_grant(session, (unsigned)share->device->ordinal, address, share->size);
    if (result != CUDA_SUCCESS)
        driver.cuMemUnmap(address, share->size);
    return result;
}

static CUresult place_share(struct session *session, const struct ipc_share *share,
                            uint64_t *ret_address)
{
    struct granule extent = {.kind = GRANULE_IMPORTED,
                             .part = (unsigned)share->device->ordinal,
                             .size = share->size,
                             .fd = -1};
    CUresult result =
        window_place(session->window, session->window->part_of[extent.part], share->size,
                     share->size, share->device->record.granularity, &extent.address);

    if (result != CUDA_SUCCESS)
        return result;
    result = session_enter(session, share->device);
    if (result == CUDA_SUCCESS)
        result = map_at(session, share, extent.address);
    if (result == CUDA_SUCCESS) {
        result = memory_allow(session, &extent);
        if (result != CUDA_SUCCESS)
            driver.cuMemUnmap(extent.address, share->size);
    }
    if (result != CUDA_SUCCESS) {
        window_unplace(session->window, extent.address);
        return result;
    }
    *ret_address = extent.address;
    return CUDA_SUCCESS;
}

/* Takes the reference over. */
static CUresult import_share(struct session *session, struct ipc_share *share,
                             struct ipc_import **ret_import)
{
    unsigned device = (unsigned)share->device->ordinal;
    struct ipc_import *made = calloc(1, sizeof(*made));

    if (!made || !memory_charge(session, device, share->size)) {
        free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = place_share(session, share, &made->address);
    if (result != CUDA_SUCCESS) {
        memory_refund(session, device, share->size);
        free(made);
        return result;
    }
    made->share = share;
    list_append(&session->memory->imports, &made->link);
    *ret_import = made;
    return CUDA_SUCCESS;
}

static void unimport(struct session *session, struct ipc_import *import)
{
    struct ipc_share *share = import->share;

    session_enter(session, share->device);
    memory_forbid(session, import->address);
    driver.cuMemUnmap(import->address, share->size);
    window_unplace(session->window, import->address);
    memory_refund(session, (unsigned)share->device->ordinal, share->size);
    list_remove(&import->link);
    ipc_share_unref(session->server, share);
    free(import);
}

CUresult serve_cuIpcOpenMemHandle_v2(struct session *session,
                                     const struct wire_cuIpcOpenMemHandle_v2 *in,
                                     struct wire_cuIpcOpenMemHandle_v2_reply *ret_out)
{
    struct ipc_import *imported;
    struct ipc_item item;
    CUresult result =
        ipc_resolve(session, IPC_MEMORY, (struct ipc_key){{in->key0, in->key1}}, &item);

    if (result != CUDA_SUCCESS)
        return result;
    imported = find_import(session, item.share);
    if (!imported)
        result = import_share(session, item.share, &imported);
    if (result != CUDA_SUCCESS || imported->opens)
        ipc_share_unref(session->server, item.share);
    if (result != CUDA_SUCCESS)
        return result;
    imported->opens++;
    ret_out->address = imported->address + item.offset;
    ret_out->size = item.size;
    ret_out->device = (uint32_t)item.share->device->ordinal;
    return CUDA_SUCCESS;
}

CUresult serve_cuIpcCloseMemHandle(struct session *session,
                                   const struct wire_cuIpcCloseMemHandle *in)
{
    list_for_each (struct ipc_import, import, &session->memory->imports, link) {
        if (in->address - import->address >= import->share->size)
            continue;
        if (--import->opens == 0)
            unimport(session, import);
        return CUDA_SUCCESS;
    }
    session_log_error(session, "cuIpcCloseMemHandle: nothing was opened at %#llx",
                      (unsigned long long)in->address);
    return CUDA_ERROR_INVALID_VALUE;
}

void ipc_memory_close_all(struct session *session)
{
    list_for_each_safe (struct ipc_import, import, &session->memory->imports, link)
        unimport(session, import);
}
