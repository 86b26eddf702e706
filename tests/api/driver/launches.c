/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches: parameters of every shape, grids of every shape, shared memory, and what is refused.
 */
#include "check.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static CUmodule module;
static CUdeviceptr out;

struct mixed {
    char c;
    double d;
    short s;
    uint32_t array[3];
    unsigned long long l;
};

static const struct mixed mixed = {'m', 3.0, -2, {1, 20, 300}, 0x123456789abcdef0};

static bool parameters_arrived(void)
{
    const uint32_t expected[10] = {200, (uint32_t)-7, 'm',        3,          (uint32_t)-2,
                                   321, 0x12345678,   0x9abcdef0, 1000000000, (uint32_t)-1};
    uint32_t words[10];

    MUST(cuMemcpyDtoH_v2(words, out, sizeof(words)));
    return memcmp(words, expected, sizeof(words)) == 0;
}

static void parameters_by_pointer(void)
{
    unsigned char a = 200;
    short b = -7;
    struct mixed m = mixed;
    double e = 1e9;
    signed char f = -1;
    void *parameters[] = {&a, &out, &b, &m, &e, &f};

    launch_one(get_kernel(module, "parameters"), NULL, parameters);
    IS_TRUE(parameters_arrived());
}

static void parameters_in_a_buffer(void)
{
    struct {
        unsigned char a;
        CUdeviceptr out;
        short b;
        struct mixed m;
        double e;
        signed char f;
    } buffer = {200, out, -7, mixed, 1e9, -1};
    size_t size = offsetof(__typeof__(buffer), f) + 1;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};

    MUST(cuMemsetD32_v2(out, 0, 10));
    EXPECT(CUDA_SUCCESS, cuLaunchKernel(get_kernel(module, "parameters"), 1, 1, 1, 1, 1, 1, 0, NULL,
                                        NULL, extra));
    IS_TRUE(parameters_arrived());
}

/* NCCL's kernels take 4 KiB, and a launch gives only what it uses: here no count. */
static void buffer_that_ends_early(void)
{
    struct {
        CUdeviceptr out;
        uint32_t value;
    } buffer = {out, 5};
    size_t size = 12;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};

    EXPECT(CUDA_SUCCESS,
           cuLaunchKernel(get_kernel(module, "fill"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
}

static void four_kilobytes(void)
{
    struct {
        uint32_t words[1020];
    } big;
    uint32_t n = 1020, factor = 3, expected = 0;
    void *parameters[] = {&out, &big, &n, &factor};

    for (uint32_t i = 0; i < n; i++) {
        big.words[i] = i * 7 + 1;
        expected += big.words[i] * (i + 1);
    }
    launch_one(get_kernel(module, "big_parameters"), NULL, parameters);
    /* The parameters were copied at the launch. */
    memset(&big, 0, sizeof(big));
    IS_TRUE(word_at(out) == expected * factor);
}

static void check_shape(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz)
{
    void *parameters[] = {&out};
    uint32_t blocks = gx * gy * gz, threads = bx * by * bz, expected = 0;

    for (uint32_t block = 0; block < blocks; block++)
        for (uint32_t thread = 0; thread < threads; thread++)
            expected += block * 1000 + thread;
    MUST(cuMemsetD32_v2(out, 0, 2));
    EXPECT(CUDA_SUCCESS, cuLaunchKernel(get_kernel(module, "shape"), gx, gy, gz, bx, by, bz, 0,
                                        NULL, parameters, NULL));
    IS_TRUE(word_at(out) == blocks * threads && word_at(out + 4) == expected);
}

static void shapes(void)
{
    check_shape(1, 1, 1, 1, 1, 1);
    check_shape(3, 1, 1, 33, 1, 1);
    check_shape(2, 3, 4, 5, 6, 7);
    check_shape(1, 1, 1, 1024, 1, 1);
    check_shape(1, 1, 1, 4, 4, 64);
    check_shape(70, 1, 2, 31, 2, 1);
}

static void refused(unsigned gx, unsigned gy, unsigned bx, unsigned bz, unsigned shared)
{
    void *parameters[] = {&out};

    EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(get_kernel(module, "shape"), gx, gy, 1, bx, 1,
                                                    bz, shared, NULL, parameters, NULL));
}

static void shapes_that_are_refused(void)
{
    refused(0, 1, 1, 1, 0);
    refused(1, 65536, 1, 1, 0);
    refused(1, 1, 0, 1, 0);
    refused(1, 1, 1025, 1, 0);
    refused(1, 1, 1, 65, 0);
    refused(1, 1, 512, 4, 0);
    refused(1, 1, 1, 1, 64 << 20);
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    check_shape(1, 1, 1, 32, 1, 1);
}

static void shared_memory(void)
{
    CUfunction reverse = get_kernel(module, "reverse");
    void *parameters[] = {&out};
    uint32_t words[512];
    bool right = true;

    for (uint32_t i = 0; i < 512; i++)
        words[i] = i * i;
    MUST(cuMemcpyHtoD_v2(out, words, sizeof(words)));
    EXPECT(CUDA_SUCCESS,
           cuLaunchKernel(reverse, 1, 1, 1, 512, 1, 1, sizeof(words), NULL, parameters, NULL));
    MUST(cuMemcpyDtoH_v2(words, out, sizeof(words)));
    for (uint32_t i = 0; i < 512; i++)
        right &= words[i] == (511 - i) * (511 - i);
    IS_TRUE(right);
    EXPECT(CUDA_SUCCESS,
           cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60 << 10));
    EXPECT(CUDA_SUCCESS,
           cuLaunchKernel(reverse, 1, 1, 1, 512, 1, 1, 60 << 10, NULL, parameters, NULL));
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
}

static void launch_ex(void)
{
    uint32_t value = 9, n = 300;
    void *parameters[] = {&out, &value, &n};
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = 0};
    CUlaunchConfig config = {.gridDimX = 2,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 64,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .attrs = &attribute,
                             .numAttrs = 1};

    MUST(cuMemsetD32_v2(out, 0, 512));
    EXPECT(CUDA_SUCCESS, cuLaunchKernelEx(&config, get_kernel(module, "fill"), parameters, NULL));
    IS_TRUE(words_are(out, 300, 9) && words_are(out + 1200, 212, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuLaunchKernelEx(NULL, get_kernel(module, "fill"), NULL, NULL));
}

/* As NCCL launches on a device with clusters, and the events that a launch may record. */
static void launch_with_an_event(CUlaunchAttributeID id)
{
    uint32_t value = 11, n = 64;
    void *parameters[] = {&out, &value, &n};
    CUlaunchAttribute attributes[2] = {
        {.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
         .value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE},
        {.id = id},
    };
    CUlaunchConfig config = {1, 1, 1, 64, 1, 1, 0, NULL, attributes, 2};
    CUstream other;
    CUevent event;

    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuStreamCreate(&config.hStream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
        attributes[1].value.programmaticEvent.event = event;
    else
        attributes[1].value.launchCompletionEvent.event = event;
    MUST(cuMemsetD32_v2(out, 0, 64));
    MUST(cuCtxSynchronize());
    EXPECT(CUDA_SUCCESS, cuLaunchKernelEx(&config, get_kernel(module, "fill"), parameters, NULL));
    EXPECT(CUDA_SUCCESS, cuStreamWaitEvent(other, event, 0));
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(other));
    EXPECT(CUDA_SUCCESS, cuEventQuery(event));
    EXPECT(CUDA_SUCCESS, cuStreamSynchronize(config.hStream));
    IS_TRUE(words_are(out, 64, 11));
    MUST(cuStreamDestroy_v2(config.hStream));
    MUST(cuStreamDestroy_v2(other));
    MUST(cuEventDestroy_v2(event));
}

static void events_of_launches(void)
{
    launch_with_an_event(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT);
    launch_with_an_event(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT);
}

static void launch_bounds(void)
{
    CUfunction kernel = get_kernel(module, "at_most_64");
    void *parameters[] = {&out};
    int threads = 0;

    EXPECT(CUDA_SUCCESS,
           cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel));
    IS_TRUE(threads == 64);
    MUST(cuMemsetD32_v2(out, 0, 1));
    EXPECT(CUDA_SUCCESS, cuLaunchKernel(kernel, 3, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuLaunchKernel(kernel, 1, 1, 1, 65, 1, 1, 0, NULL, parameters, NULL));
    IS_TRUE(word_at(out) == 192);
}

#define NAMED_REGISTERS 600

/* A text that names many registers, of which few are needed at a time, and all threads that a block
 * can have. A compiler makes that of long loops. */
static void registers_by_name(void)
{
    static char text[NAMED_REGISTERS * 48];
    void *parameters[] = {&out};
    CUmodule many;
    int length = snprintf(text, sizeof(text),
                          ".version 8.0\n.target sm_80\n.address_size 64\n"
                          ".visible .entry add_up(.param .u64 to)\n{\n.reg .u64 %%x;\n"
                          ".reg .u32 %%r<%d>;\nmov.u32 %%r0, %%tid.x;\n",
                          NAMED_REGISTERS + 1);

    for (int i = 0; i < NAMED_REGISTERS; i++)
        length += sprintf(text + length, "mad.lo.u32 %%r%d, %%r%d, 3, %%r0;\n", i + 1, i);
    sprintf(text + length,
            "ld.param.u64 %%x, [to];\nmad.wide.u32 %%x, %%r0, 4, %%x;\n"
            "st.global.u32 [%%x], %%r%d;\nret;\n}\n",
            NAMED_REGISTERS);
    MUST(cuModuleLoadData(&many, text));
    EXPECT(CUDA_SUCCESS, cuLaunchKernel(get_kernel(many, "add_up"), 1, 1, 1, 1024, 1, 1, 0, NULL,
                                        parameters, NULL));
    EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
    uint32_t sum = 1;
    for (int i = 0; i < NAMED_REGISTERS; i++)
        sum = sum * 3 + 1;
    IS_TRUE(word_at(out + 4) == sum);
    IS_TRUE(word_at(out + 4 * 1023) == sum * 1023);
    MUST(cuModuleUnload(many));
}

static void function_attributes(void)
{
    CUfunction kernel = get_kernel(module, "parameters");
    CUmodule same = NULL;
    const char *name = NULL;
    size_t offset = 0, size = 0;
    int value = -1;

    EXPECT(CUDA_SUCCESS, cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel));
    IS_TRUE(value == 0);
    EXPECT(CUDA_SUCCESS, cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel));
    IS_TRUE(value > 0 && value <= 255);
    EXPECT(CUDA_SUCCESS, cuFuncGetName(&name, kernel));
    IS_TRUE(name && strcmp(name, "parameters") == 0);
    EXPECT(CUDA_SUCCESS, cuFuncGetModule(&same, kernel));
    IS_TRUE(same == module);
    EXPECT(CUDA_SUCCESS, cuFuncGetParamInfo(kernel, 3, &offset, &size));
    IS_TRUE(offset == 24 && size == sizeof(struct mixed));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(kernel, 6, &offset, &size));
    EXPECT(CUDA_SUCCESS, cuFuncSetCacheConfig(kernel, CU_FUNC_CACHE_PREFER_SHARED));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuFuncGetAttribute(&value, (CUfunction_attribute)999, kernel));
}

static CUfunction sized;

/* The program may call the driver while it is asked. */
static size_t shared_for(int block_size)
{
    int fixed = 0;

    MUST(cuFuncGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, sized));
    return block_size > 256 ? (size_t)1 << 30 : (size_t)fixed;
}

static void occupancy(void)
{
    CUfunction kernel = get_kernel(module, "fill");
    int blocks = 0, grid = 0, block = 0, warps = 0;
    CUdevice device;

    MUST(cuCtxGetDevice(&device));
    MUST(cuDeviceGetAttribute(&warps, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device));
    EXPECT(CUDA_SUCCESS, cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 256, 0));
    IS_TRUE(blocks >= 1 && blocks <= warps / 256);
    EXPECT(CUDA_SUCCESS, cuOccupancyMaxPotentialBlockSize(&grid, &block, kernel, NULL, 0, 0));
    IS_TRUE(grid >= 1 && block >= 32 && block <= 1024);
    sized = kernel;
    EXPECT(CUDA_SUCCESS, cuOccupancyMaxPotentialBlockSize(&grid, &block, kernel, shared_for, 0, 0));
    IS_TRUE(grid >= 1 && block == 256);
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuOccupancyMaxActiveBlocksPerMultiprocessor(NULL, kernel, 256, 0));
}

int main(void)
{
    check_open();
    module = load_kernels();
    out = make_words(4096, 0);
    RUN(parameters_by_pointer);
    RUN(parameters_in_a_buffer);
    RUN(buffer_that_ends_early);
    RUN(four_kilobytes);
    RUN(shapes);
    RUN(shapes_that_are_refused);
    RUN(shared_memory);
    RUN(launch_ex);
    RUN(events_of_launches);
    RUN(launch_bounds);
    RUN(registers_by_name);
    RUN(function_attributes);
    RUN(occupancy);
    return check_close();
}
