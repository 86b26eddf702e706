/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A module with variables of several kinds. Kernels change them and report what they hold, so the
 * program need not ask for an address.
 */
#include "variable_acts.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_prototypes.h"
#include "symbol_calls.h"

static const char text[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .global .align 4 .u32 count = 100;\n"
    ".visible .global .align 4 .b8 untouched[4096];\n"
    ".visible .global .align 8 .u64 link;\n"
    ".visible .const .align 4 .u32 scale = 3;\n"
    ".visible .global .align 8 .u64 table[2] = {count, generic(count)};\n"
    ".visible .global .align 8 .u64 pair[2] = {7, count};\n"
    /* out = {count, *table[0] * scale, link, pair[0]} */
    ".visible .entry report(.param .u64 out)\n{\n"
    ".reg .b32 %r<4>; .reg .b64 %d<6>;\nld.param.u64 %d1, [out];\n"
    "ld.global.u32 %r1, [count];\nst.global.u32 [%d1], %r1;\n"
    "ld.global.u64 %d2, [table];\nld.global.u32 %r1, [%d2];\nld.const.u32 %r2, [scale];\n"
    "mul.lo.u32 %r1, %r1, %r2;\nst.global.u32 [%d1+4], %r1;\n"
    "ld.global.u64 %d3, [link];\ncvt.u32.u64 %r3, %d3;\nst.global.u32 [%d1+8], %r3;\n"
    "ld.global.u64 %d3, [pair];\ncvt.u32.u64 %r3, %d3;\nst.global.u32 [%d1+12], %r3;\nret;\n}\n"
    ".visible .entry count_up()\n{\n.reg .b32 %r<2>; .reg .b64 %d<2>;\n"
    "ld.global.u32 %r1, [count];\nadd.u32 %r1, %r1, 1;\nst.global.u32 [count], %r1;\n"
    "ld.global.u64 %d1, [link];\nadd.u64 %d1, %d1, 5;\nst.global.u64 [link], %d1;\nret;\n}\n"
    /* Addresses go where the server has to find them. */
    ".visible .entry point(.param .u64 out)\n{\n.reg .b64 %d<3>;\n"
    "ld.param.u64 %d1, [out];\nmov.u64 %d2, untouched;\nadd.u64 %d2, %d2, 4095;\n"
    "st.global.u64 [%d1], %d2;\nret;\n}\n"
    ".visible .entry point_end(.param .u64 out)\n{\n.reg .b64 %d<3>;\n"
    "ld.param.u64 %d1, [out];\nmov.u64 %d2, pair;\nadd.u64 %d2, %d2, 16;\n"
    "st.global.u64 [%d1], %d2;\nret;\n}\n"
    ".visible .entry point_link()\n{\n.reg .b64 %d<2>;\nmov.u64 %d1, count;\n"
    "st.global.u64 [link], %d1;\nret;\n}\n"
    ".visible .entry put_link(.param .align 8 .b8 s[8])\n{\n.reg .b64 %d<3>;\n"
    "ld.param.u64 %d1, [s];\nmov.u64 %d2, 77;\nst.global.u64 [%d1], %d2;\nret;\n}\n"
    ".visible .entry raise(.param .u64 at)\n{\n.reg .b64 %d<3>;\nld.param.u64 %d1, [at];\n"
    "ld.global.u64 %d2, [%d1];\nadd.u64 %d2, %d2, 1;\nst.global.u64 [%d1], %d2;\nret;\n}\n"
    ".visible .entry set_pair()\n{\n.reg .b64 %d<2>;\nmov.u64 %d1, 8;\n"
    "st.global.u64 [pair], %d1;\nret;\n}\n";

#define WORDS 4
#define FAR ((8u << 20) - 16) /* bytes into memory of 8 MiB */

static struct {
    CUmodule module;
    CUdeviceptr out, memory;
    void *pinned;
    uint32_t expected[WORDS];
    uint32_t scale;
} variables = {.expected = {100, 300, 0, 7}, .scale = 3};

static CUresult launch(const char *name, void *parameter)
{
    void *parameters[] = {&parameter};
    CUfunction function;
    CUresult result = cuModuleGetFunction(&function, variables.module, name);

    if (!result)
        result = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
    return result;
}

static CUresult open_module(void)
{
    CUresult result = CUDA_SUCCESS;

    if (!variables.module)
        result = cuModuleLoadData(&variables.module, text);
    if (!result && !variables.out)
        result = cuMemAlloc_v2(&variables.out, sizeof(variables.expected));
    if (!result && !variables.memory) {
        result = cuMemAlloc_v2(&variables.memory, FAR + 16);
        if (!result)
            result = cuMemsetD8_v2(variables.memory, 0, FAR + 16);
    }
    if (!result && !variables.pinned)
        result = cuMemHostAlloc(&variables.pinned, 4096, 0);
    return result;
}

static CUresult check(void)
{
    uint32_t seen[WORDS];
    CUresult result = launch("report", (void *)(uintptr_t)variables.out);

    if (!result)
        result = cuMemcpyDtoH_v2(seen, variables.out, sizeof(seen));
    return result || !memcmp(seen, variables.expected, sizeof(seen)) ? result : CUDA_ERROR_UNKNOWN;
}

/* What was there before, and then one more. */
static CUresult do_count(void)
{
    CUresult result = check();

    if (!result)
        result = launch("count_up", NULL);
    variables.expected[0]++;
    variables.expected[1] = variables.expected[0] * variables.scale;
    variables.expected[2] += 5;
    return result ? result : check();
}

static CUresult do_point(void)
{
    return launch("point", (void *)(uintptr_t)(variables.memory + FAR));
}

static CUresult do_point_end(void)
{
    return launch("point_end", (void *)(uintptr_t)(variables.memory + FAR));
}

static CUresult do_clear(void)
{
    memset(variables.pinned, 0, 4096);
    return cuMemsetD8_v2(variables.memory, 0, FAR + 16);
}

static CUresult do_point_pinned(void)
{
    CUresult result = launch("point", variables.pinned);

    return result ? result : cuCtxSynchronize();
}

static CUresult do_point_link(void)
{
    return launch("point_link", NULL);
}

static CUresult do_set_pair(void)
{
    variables.expected[3] = 8;
    return launch("set_pair", NULL);
}

static CUresult do_ask(void)
{
    CUdeviceptr address;
    size_t size;

    return cuModuleGetGlobal_v2(&address, &size, variables.module, "count");
}

static CUresult do_reload(void)
{
    static const uint32_t fresh[WORDS] = {100, 300, 0, 7};
    CUresult result = cuModuleUnload(variables.module);

    variables.module = NULL;
    variables.scale = 3;
    symbols_forget();
    memcpy(variables.expected, fresh, sizeof(fresh));
    return result ? result : open_module();
}

/* ---- as the runtime does ---- */

static CUresult do_symbol_to(void)
{
    CUresult result = check();

    variables.scale++;
    variables.expected[1] = variables.expected[0] * variables.scale;
    if (!result)
        result = symbol_copy_to(variables.module, "scale", &variables.scale,
                                sizeof(variables.scale), NULL);
    return result ? result : check();
}

static CUresult do_symbol_from(void)
{
    uint32_t seen = 0;
    CUresult result = symbol_copy_from(&seen, variables.module, "count", sizeof(seen));

    return result || seen == variables.expected[0] ? result : CUDA_ERROR_UNKNOWN;
}

/* The program has an address from then on, and kernels use it. */
static CUresult do_symbol_address(void)
{
    CUdeviceptr address;
    uint32_t seen = 0;
    CUresult result = symbol_address(&address, variables.module, "count");

    if (!result)
        result = cuMemcpyDtoD_v2(variables.out, address, sizeof(seen));
    if (!result)
        result = cuMemcpyDtoH_v2(&seen, variables.out, sizeof(seen));
    return result || seen == variables.expected[0] ? result : CUDA_ERROR_UNKNOWN;
}

/* A kernel writes to the variable through the address, which is in a struct among its parameters.
 */
static CUresult do_symbol_struct(void)
{
    CUdeviceptr address;
    CUresult result = symbol_address(&address, variables.module, "link");

    if (!result)
        result = launch("put_link", (void *)(uintptr_t)address);
    variables.expected[2] = 77;
    return result ? result : check();
}

static CUresult do_symbol_captured(void)
{
    CUgraph graph = NULL;
    CUstream stream;
    CUresult result = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);

    if (!result)
        result = cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (!result)
        result = symbol_copy_to(variables.module, "scale", &variables.scale,
                                sizeof(variables.scale), stream);
    if (!result)
        result = cuStreamEndCapture(stream, &graph);
    return result ? result : cuStreamDestroy_v2(stream);
}

/* ---- a module that has constants only ---- */

static const char constant_text[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .const .align 4 .u32 only = 1;\n"
    ".visible .entry tell(.param .u64 out)\n{\n.reg .b32 %r<2>; .reg .b64 %d<2>;\n"
    "ld.param.u64 %d1, [out];\nld.const.u32 %r1, [only];\nst.global.u32 [%d1], %r1;\nret;\n}\n";

static struct {
    CUmodule module;
    uint32_t value;
} constant = {.value = 1};

static CUresult check_constant(void)
{
    void *parameters[] = {&variables.out};
    CUfunction function;
    uint32_t seen = 0;
    CUresult result = cuModuleGetFunction(&function, constant.module, "tell");

    if (!result)
        result = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
    if (!result)
        result = cuMemcpyDtoH_v2(&seen, variables.out, sizeof(seen));
    return result || seen == constant.value ? result : CUDA_ERROR_UNKNOWN;
}

static CUresult do_constant(void)
{
    CUresult result = CUDA_SUCCESS;

    if (!constant.module)
        result = cuModuleLoadData(&constant.module, constant_text);
    if (!result)
        result = check_constant();
    constant.value++;
    if (!result)
        result =
            symbol_copy_to(constant.module, "only", &constant.value, sizeof(constant.value), NULL);
    return result ? result : check_constant();
}

/* ---- a module without kernels, whose variables others use by their address ---- */

static const char lonely_text[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
                                  ".visible .global .align 8 .u64 padding = 9;\n"
                                  ".visible .global .align 8 .u64 numbers[3] = {5, 6, 7};\n";

static struct {
    CUmodule module;
    CUdeviceptr address; /* as the program keeps it */
    uint64_t expected[3];
} lonely;

static CUresult check_lonely(void)
{
    uint64_t seen[3] = {0};
    CUdeviceptr address = 0, base = 0;
    size_t size = 0, there = 0;
    CUresult result = cuModuleGetGlobal_v2(&address, &size, lonely.module, "numbers");

    if (!result)
        result = cuMemGetAddressRange_v2(&base, &there, address + 8);
    if (!result)
        result = cuMemcpyDtoH_v2(seen, lonely.address, sizeof(seen));
    if (result)
        return result;
    return address == lonely.address && size == sizeof(seen) && base == address && there == size &&
                   !memcmp(seen, lonely.expected, sizeof(seen)) && cuMemFree_v2(address)
               ? CUDA_SUCCESS
               : CUDA_ERROR_UNKNOWN;
}

static CUresult open_lonely(void)
{
    static const uint64_t first[3] = {5, 6, 7};
    CUresult result = cuModuleLoadData(&lonely.module, lonely_text);

    memcpy(lonely.expected, first, sizeof(first));
    if (!result)
        result = cuModuleGetGlobal_v2(&lonely.address, NULL, lonely.module, "numbers");
    return result ? result : check_lonely();
}

/* A kernel of another module, and a copy by symbol. The address is in memory as well. */
static CUresult do_lonely(void)
{
    CUresult result = lonely.module ? check_lonely() : open_lonely();

    if (!result)
        result = launch("raise", (void *)(uintptr_t)(lonely.address + 8));
    lonely.expected[1]++;
    if (!result)
        result = cuMemcpyHtoD_v2(variables.memory, &lonely.address, sizeof(lonely.address));
    if (!result)
        result = check_lonely();
    lonely.expected[0] += 10;
    if (!result)
        result = symbol_copy_to(lonely.module, "numbers", lonely.expected, 8, NULL);
    return result ? result : check_lonely();
}

/* Its memory ends with the module. */
static CUresult do_end_lonely(void)
{
    CUresult result = cuModuleUnload(lonely.module);

    lonely.module = NULL;
    symbols_forget();
    return result || cuMemGetAddressRange_v2(NULL, NULL, lonely.address) ? result
                                                                         : CUDA_ERROR_UNKNOWN;
}

static const struct {
    const char *word;
    CUresult (*act)(void);
} acts[] = {
    {"count", do_count},
    {"point", do_point},
    {"point_end", do_point_end},
    {"point_pinned", do_point_pinned},
    {"point_link", do_point_link},
    {"clear", do_clear},
    {"set_pair", do_set_pair},
    {"ask", do_ask},
    {"reload", do_reload},
    {"symbol_to", do_symbol_to},
    {"symbol_from", do_symbol_from},
    {"symbol_address", do_symbol_address},
    {"symbol_struct", do_symbol_struct},
    {"symbol_captured", do_symbol_captured},
    {"constant", do_constant},
    {"lonely", do_lonely},
    {"end_lonely", do_end_lonely},
};

CUresult variable_act(const char *word)
{
    for (size_t i = 0; i < sizeof(acts) / sizeof(*acts); i++) {
        if (strcmp(acts[i].word, word))
            continue;
        CUresult result = open_module();
        return result ? result : acts[i].act();
    }
    return CUDA_ERROR_NOT_FOUND;
}
