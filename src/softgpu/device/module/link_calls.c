/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linking jobs. Inputs are PTX; what is linked comes out as a container with one PTX, which the
 * calls that load modules take.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "link.h"
#include "soft_context.h"
#include "soft_module.h"

#define NS_PER_MS 1e6f

struct link_job {
    uint64_t handle;
    struct fatbin_code code;
    struct jit_log log;
    void **wall_time; /* an option's value, to become a float of milliseconds; or NULL */
    float milliseconds;
    void *cubin;
    size_t cubin_size;
};

static void **wall_time_of(unsigned count, const CUjit_option *options, void **values)
{
    for (unsigned i = 0; i < count; i++)
        if (options[i] == CU_JIT_WALL_TIME)
            return &values[i];
    return NULL;
}

static float now_ms(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (float)(time.tv_sec % 100000) * 1e3f + (float)time.tv_nsec / NS_PER_MS;
}

static void add_time(struct link_job *job, float since)
{
    job->milliseconds += now_ms() - since;
    if (job->wall_time)
        memcpy(job->wall_time, &job->milliseconds, sizeof(job->milliseconds));
}

static CUresult check_options(unsigned count, const CUjit_option *options, void **values)
{
    if (count && (!options || !values))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        if (options[i] == CU_JIT_GLOBAL_SYMBOL_COUNT && values[i])
            return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

CUresult soft_cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options, void **optionValues,
                              CUlinkState *stateOut)
{
    struct context *context;
    struct link_job *job;
    CUresult result = check_options(numOptions, options, optionValues);

    if (result)
        return result;
    SOFT_LOCKED;
    result = context_use_locked(&context);
    job = result ? NULL : calloc(1, sizeof(*job));
    if (!job)
        return result ? result : CUDA_ERROR_OUT_OF_MEMORY;
    job->log = jit_log_of(numOptions, options, optionValues);
    job->wall_time = wall_time_of(numOptions, options, optionValues);
    job->handle = soft_add(SOFT_LINK, job);
    if (!job->handle) {
        free(job);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *stateOut = (CUlinkState)job->handle;
    return CUDA_SUCCESS;
}

/* The job, which its program uses from one thread at a time. */
static struct link_job *job_of(CUlinkState state)
{
    SOFT_LOCKED;

    return soft_get(SOFT_LINK, state);
}

static int read_input(CUjitInputType type, const void *data, size_t size,
                      struct fatbin_code *ret_code, struct fatbin_reason *reason)
{
    if (type == CU_JIT_INPUT_PTX)
        return fatbin_read_text(data, strnlen(data, size), ret_code, reason);
    return fatbin_read_container(data, size, SOFT_SM_VERSION, ret_code, reason);
}

static CUresult add_input(struct link_job *job, CUjitInputType type, const void *data, size_t size)
{
    struct fatbin_code code;
    struct fatbin_reason reason = {0};
    CUresult result = CUDA_SUCCESS;
    int error = read_input(type, data, size, &code, &reason);

    if (error) {
        jit_log_write(&job->log, reason.text);
        return fatbin_result(error);
    }
    for (unsigned i = 0; !result && i < code.count; i++)
        result = code_check(&code.parts[i], &job->log, false);
    if (!result && fatbin_code_join(&job->code, &code))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    fatbin_code_fini(&code);
    return result;
}

CUresult soft_cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
                               const char *name, unsigned int numOptions, CUjit_option *options,
                               void **optionValues)
{
    struct link_job *job = job_of(state);
    CUresult result = check_options(numOptions, options, optionValues);
    float began = now_ms();

    if (!job)
        return CUDA_ERROR_INVALID_HANDLE;
    if (result)
        return result;
    if (!data || !size || (unsigned)type >= CU_JIT_NUM_INPUT_TYPES)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY && type != CU_JIT_INPUT_CUBIN) {
        jit_log_write(&job->log, "the software GPU links PTX, and neither objects nor libraries");
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    result = add_input(job, type, data, size);
    add_time(job, began);
    return result;
}

CUresult soft_cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
                               unsigned int numOptions, CUjit_option *options, void **optionValues)
{
    _cleanup_free_ char *bytes = NULL;
    size_t size;
    CUresult result = file_read(path, &bytes, &size);

    return result ? result
                  : soft_cuLinkAddData_v2(state, type, bytes, size, path, numOptions, options,
                                          optionValues);
}

static CUresult keep_cubin(struct link_job *job, const struct fatbin_part *whole)
{
    CUresult result = code_check(whole, &job->log, true);

    if (result)
        return result;
    free(job->cubin);
    job->cubin = NULL;
    return fatbin_write_container(whole, SOFT_SM_VERSION, &job->cubin, &job->cubin_size)
               ? CUDA_ERROR_OUT_OF_MEMORY
               : CUDA_SUCCESS;
}

static CUresult complete_job(struct link_job *job)
{
    struct fatbin_part whole;
    CUresult result;

    if (fatbin_link(&job->code, &whole))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = keep_cubin(job, &whole);
    free(whole.text);
    return result;
}

CUresult soft_cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
    struct link_job *job = job_of(state);
    float began = now_ms();
    CUresult result;

    if (!job)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!job->code.count)
        return CUDA_ERROR_INVALID_VALUE;
    result = complete_job(job);
    add_time(job, began);
    if (result)
        return result;
    *cubinOut = job->cubin;
    if (sizeOut)
        *sizeOut = job->cubin_size;
    return CUDA_SUCCESS;
}

CUresult soft_cuLinkDestroy(CUlinkState state)
{
    struct link_job *job;
    SOFT_LOCKED;

    job = soft_get(SOFT_LINK, state);
    if (!job)
        return CUDA_ERROR_INVALID_HANDLE;
    handles_remove(&soft_handles, SOFT_LINK, job->handle);
    fatbin_code_fini(&job->code);
    free(job->cubin);
    free(job);
    return CUDA_SUCCESS;
}
