/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table that libcudart itself runs on: primary contexts that are known before they are active.
 * For runtimes before CUDA 12 it also loads the modules that a program was linked with.
 */
#include "tables.h"

static CUresult load_module(CUmodule *ret_module, const void *wrapper)
{
    return cudart_ops->module_load(ret_module, wrapper);
}

/*
 * libcudart calls this once for each device while it starts. The call must not activate the
 * context: a program that only queries devices must not use memory on each of them.
 */
static CUresult get_primary_context(CUcontext *ret_context, CUdevice device)
{
    if (!ret_context)
        return CUDA_ERROR_INVALID_VALUE;
    return cudart_ops->primary_context(ret_context, device);
}

/* OpenGL and VDPAU announce that they share a device. We share with neither. */
static CUresult prepare_graphics(CUdevice device, const uint64_t *settings)
{
    return CUDA_SUCCESS;
}

static CUresult register_module(CUmodule *ret_module, const void *wrapper, void *variables,
                                void *extra, uint32_t count)
{
    return cudart_ops->module_load(ret_module, wrapper);
}

/* The module goes with its context. */
static void unregister_module(uintptr_t module)
{
}

static CUresult register_container(const void *container, CUmodule *ret_module, void *variables,
                                   void *extra, uint32_t count)
{
    return cudart_ops->module_load(ret_module, container);
}

static CUresult load_compilers(void)
{
    return CUDA_SUCCESS;
}

const table_word cudart_interface_table[13] = {
    [0] = TABLE_SIZE(13),      [1] = load_module,
    [2] = get_primary_context, [3] = prepare_graphics,
    [4 ... 5] = UNKNOWN_SLOT,  [6] = register_module,
    [7] = unregister_module,   [8] = register_container,
    [9] = UNKNOWN_SLOT,        [10] = NULL,
    [11] = UNKNOWN_SLOT,       [12] = load_compilers,
};
