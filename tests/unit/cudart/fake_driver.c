/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver of two devices and a few contexts, whose state the tests set by hand.
 */
#include "fake_driver.h"

#include <stdio.h>
#include <string.h>

CUcontext fake_current;
CUresult fake_state;
const void *fake_loaded;

static CUresult device_count(int *ret_count)
{
    *ret_count = FAKE_DEVICES;
    return CUDA_SUCCESS;
}

static CUresult device_uuid(CUuuid *ret_uuid, CUdevice device)
{
    memset(ret_uuid, 0xa0 + device, sizeof(*ret_uuid));
    return CUDA_SUCCESS;
}

static CUresult device_attribute(int *ret_value, CUdevice_attribute attribute, CUdevice device)
{
    *ret_value = (int)attribute * 10 + device;
    return CUDA_SUCCESS;
}

static CUresult primary_context(CUcontext *ret_context, CUdevice device)
{
    if (device != 0)
        return CUDA_ERROR_INVALID_DEVICE;
    *ret_context = FAKE_CONTEXT;
    return CUDA_SUCCESS;
}

static CUcontext current_context(void)
{
    return fake_current;
}

static CUresult context_state(CUcontext context)
{
    return context == FAKE_CONTEXT ? fake_state : CUDA_SUCCESS;
}

static CUresult context_device(CUcontext context, CUdevice *ret_device)
{
    *ret_device = context == FAKE_CONTEXT ? 0 : 1;
    return CUDA_SUCCESS;
}

static CUresult context_id(CUcontext context, unsigned long long *ret_id)
{
    if (context != FAKE_CONTEXT)
        return CUDA_ERROR_INVALID_CONTEXT;
    *ret_id = 77;
    return CUDA_SUCCESS;
}

static CUresult stream_id(CUcontext context, CUstream stream, unsigned long long *ret_id)
{
    *ret_id = 1000 + (uintptr_t)stream;
    return CUDA_SUCCESS;
}

static int for_each_function(CUcontext context, CUmodule module,
                             void (*visit)(void *user, CUfunction function), void *user)
{
    visit(user, (CUfunction)0x51);
    visit(user, (CUfunction)0x52);
    return 2;
}

static CUresult module_load(CUmodule *ret_module, const void *image)
{
    fake_loaded = image;
    *ret_module = (CUmodule)0x61;
    return CUDA_SUCCESS;
}

static const struct cudart_ops ops = {
    .driver_version = FAKE_DRIVER_VERSION,
    .device_count = device_count,
    .device_uuid = device_uuid,
    .device_attribute = device_attribute,
    .primary_context = primary_context,
    .current_context = current_context,
    .context_state = context_state,
    .context_device = context_device,
    .context_id = context_id,
    .stream_id = stream_id,
    .for_each_function = for_each_function,
    .module_load = module_load,
};

int fake_driver_setup(void **state)
{
    cudart_init(&ops);
    fake_current = NULL;
    fake_state = CUDA_SUCCESS;
    fake_loaded = NULL;
    return 0;
}

void *const *fake_table(const char *uuid)
{
    CUuuid id;
    const void *table = NULL;

    for (int i = 0; i < 16; i++) {
        unsigned byte;

        assert_int_equal(sscanf(uuid + 2 * i, "%2x", &byte), 1);
        ((uint8_t *)&id)[i] = (uint8_t)byte;
    }
    assert_int_equal(cudart_get_export_table(&table, &id), CUDA_SUCCESS);
    assert_non_null(table);
    return (void *const *)table;
}
