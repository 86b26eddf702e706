/* SPDX-License-Identifier: Apache-2.0 */
/* See kernel_query.h. */
#include "kernel_query.h"

#include "cached_state.h"
#include "function.h"
#include "memory.h"

/* About what the driver takes for the code of a library. */
#define CODE_MEMORY (16ull << 20)

#define PARAMS_MAX 1000u

static CUresult read_attributes(CUfunction function, int32_t *ret_attributes)
{
    for (int i = 0; i < FUNCTION_ATTRIBUTES; i++) {
        int value = 0;
        CUresult result = driver.cuFuncGetAttribute(&value, (CUfunction_attribute)i, function);
        /* An attribute that this driver does not have reads as 0. */
        if (result != CUDA_SUCCESS && result != CUDA_ERROR_INVALID_VALUE)
            return result;
        ret_attributes[i] = result == CUDA_SUCCESS ? value : 0;
    }
    return CUDA_SUCCESS;
}

/* Offset and size of each parameter, as pairs of u32. */
static CUresult walk_layout(CUfunction function, struct kernel_facts *ret_facts,
                            uint32_t *ret_pairs)
{
    uint32_t count = 0, params_size = 0;

    for (;; count++) {
        size_t offset = 0, size = 0;
        CUresult result = driver.cuFuncGetParamInfo(function, count, &offset, &size);
        if (result == CUDA_ERROR_INVALID_VALUE)
            break; /* past the last one */
        if (result != CUDA_SUCCESS)
            return result;
        if (count == PARAMS_MAX)
            return CUDA_ERROR_NOT_SUPPORTED;
        ret_pairs[2 * count] = (uint32_t)offset;
        ret_pairs[2 * count + 1] = (uint32_t)size;
        if (offset + size > params_size)
            params_size = (uint32_t)(offset + size);
    }
    ret_facts->param_count = count;
    ret_facts->params_size = params_size;
    ret_facts->layout = ret_pairs;
    return CUDA_SUCCESS;
}

/* The driver refuses a query behind the last parameter; nothing else shows how many there are. */
static CUresult read_layout(CUfunction function, struct kernel_facts *ret_facts,
                            uint32_t *ret_pairs)
{
    driver_expect_refusal(true);
    CUresult result = walk_layout(function, ret_facts, ret_pairs);
    driver_expect_refusal(false);
    return result;
}

static CUresult find_function(const struct cached *cached, const char *name,
                              CUfunction *ret_function)
{
    CUkernel kernel = NULL;
    CUresult result = driver.cuLibraryGetKernel(&kernel, cached_library(cached)->driver, name);

    return result != CUDA_SUCCESS ? result : driver.cuKernelGetFunction(ret_function, kernel);
}

/* The driver allocates memory for the library with its first kernel. */
static CUresult find_exclusively(struct cached *cached, struct session *session, const char *name,
                                 CUfunction *ret_function)
{
    struct exclusive_call call;
    CUresult result = cached_query_begin(cached, session, "cuKernelGetFunction", &call);

    if (result != CUDA_SUCCESS)
        return result;
    result = find_function(cached, name, ret_function);
    cached_query_end(cached, session, result, &call);
    return result;
}

struct kernel_search {
    struct cached *cached;
    const char *name;
    CUfunction *function;
};

static CUresult attempt_search(struct session *session, void *context)
{
    const struct kernel_search *search = context;

    return find_exclusively(search->cached, session, search->name, search->function);
}

/* Two clients may look the same kernel up at the same time. The first record is kept, because no
 * client can have changed an attribute before it. */
CUresult kernel_query(struct cached *cached, struct session *session, const char *name,
                      struct known_kernel **ret_known)
{
    uint32_t pairs[2 * PARAMS_MAX];
    struct known_kernel kernel = {.facts = {.name = name}};
    struct kernel_search search = {cached, name, &kernel.driver};
    CUresult result = session ? memory_attempt_with_room(session, cached->device, CODE_MEMORY,
                                                         attempt_search, &search)
                              : attempt_search(NULL, &search);

    if (result == CUDA_SUCCESS)
        result = read_attributes(kernel.driver, kernel.facts.attributes);
    if (result == CUDA_SUCCESS)
        result = read_layout(kernel.driver, &kernel.facts, pairs);
    if (result != CUDA_SUCCESS)
        return result;
    atomic_init(&kernel.carveout,
                kernel.facts.attributes[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT]);
    *ret_known = kernel_table_add(cached_kernels(cached), &kernel);
    return *ret_known ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
