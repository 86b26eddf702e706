/* SPDX-License-Identifier: Apache-2.0 */
/* See symbol_calls.h. */
#include "symbol_calls.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_prototypes.h"

/* CUPTI's numbers of the calls. */
#define COPY_TO 39u
#define COPY_FROM 40u
#define COPY_TO_ASYNC 47u
#define ADDRESS 53u

/* What libcudart tells of a call. */
struct call {
    uint32_t size, reserved;
    uint64_t unused[3];
    uint64_t *data;
    const void *result;
    const char *name;
    const void *arguments;
    CUcontext context;
    CUstream stream;
    uint32_t id, exits;
    const char *symbol;
    uint64_t more[2];
};

typedef void hook_call(uint32_t id, void *call);
typedef void get_flags(uint32_t **ret_flags, size_t *ret_count);

static const uint8_t hooks_id[16] = {0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74,
                                     0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a, 0x66};

static void tell(uint32_t id, bool exits, const void *arguments, const int *status)
{
    struct call call = {
        .size = sizeof(call), .id = id, .exits = exits, .arguments = arguments, .result = status};
    const void *const *table = NULL;
    uint32_t *flags;
    size_t count;
    CUuuid uuid;

    memcpy(&uuid, hooks_id, sizeof(hooks_id));
    if (cuGetExportTable((const void **)&table, &uuid))
        return;
    ((get_flags *)(uintptr_t)table[2])(&flags, &count);
    if (id < count && flags[id])
        ((hook_call *)(uintptr_t)table[1])(id, &call);
}

/* ---- addresses ---- */

#define KEPT_MAX 8
static struct {
    CUmodule module;
    const char *name;
    CUdeviceptr address;
} kept[KEPT_MAX];
static unsigned kept_count;

void symbols_forget(void)
{
    kept_count = 0;
}

static CUresult find(CUmodule module, const char *name, CUdeviceptr *ret_address)
{
    size_t size;

    for (unsigned i = 0; i < kept_count && !getenv("ASKS_AGAIN"); i++) {
        if (kept[i].module != module || strcmp(kept[i].name, name))
            continue;
        *ret_address = kept[i].address;
        return CUDA_SUCCESS;
    }
    CUresult result = cuModuleGetGlobal_v2(ret_address, &size, module, name);
    if (!result && kept_count < KEPT_MAX) {
        kept[kept_count].module = module;
        kept[kept_count].name = name;
        kept[kept_count++].address = *ret_address;
    }
    return result;
}

/* ---- calls ---- */

CUresult symbol_copy_to(CUmodule module, const char *name, const void *from, size_t size,
                        CUstream stream)
{
    uint32_t id = stream ? COPY_TO_ASYNC : COPY_TO;
    CUdeviceptr address;

    tell(id, false, NULL, NULL);
    CUresult result = find(module, name, &address);
    if (!result)
        result = stream ? cuMemcpyHtoDAsync_v2(address, from, size, stream)
                        : cuMemcpyHtoD_v2(address, from, size);
    tell(id, true, NULL, (const int *)&result);
    return result;
}

CUresult symbol_copy_from(void *to, CUmodule module, const char *name, size_t size)
{
    CUdeviceptr address;

    tell(COPY_FROM, false, NULL, NULL);
    CUresult result = find(module, name, &address);
    if (!result)
        result = cuMemcpyDtoH_v2(to, address, size);
    tell(COPY_FROM, true, NULL, (const int *)&result);
    return result;
}

CUresult symbol_address(CUdeviceptr *ret_address, CUmodule module, const char *name)
{
    const struct {
        CUdeviceptr *address;
        const char *symbol;
    } arguments = {ret_address, name};

    tell(ADDRESS, false, &arguments, NULL);
    CUresult result = find(module, name, ret_address);
    tell(ADDRESS, true, &arguments, (const int *)&result);
    return result;
}
