/* SPDX-License-Identifier: Apache-2.0 */
/* See pointer_act.h. */
#include "pointer_act.h"

#include <stdbool.h>
#include <stdint.h>

#include "cuda_prototypes.h"

/* `keep` stores the address of a function, and `call` calls it: out = 42. */
static const char text_with_pointer[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".func (.param .b32 r) answer(.param .b32 a)\n{\n.reg .b32 %r<2>;\n"
    "ld.param.b32 %r1, [a];\nadd.u32 %r1, %r1, 35;\nst.param.b32 [r], %r1;\nret;\n}\n"
    ".visible .entry keep(.param .u64 at)\n{\n.reg .b64 %d<3>;\nld.param.u64 %d1, [at];\n"
    "mov.u64 %d2, answer;\nst.global.u64 [%d1], %d2;\nret;\n}\n"
    ".visible .entry call(.param .u64 at)\n{\n.reg .b32 %r<2>; .reg .b64 %d<3>;\n"
    "ld.param.u64 %d1, [at];\nld.global.u64 %d2, [%d1];\n"
    "{\n.param .b32 p;\n.param .b32 q;\nmov.u32 %r1, 7;\nst.param.b32 [p], %r1;\n"
    "kind: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
    "call (q), %d2, (p), kind;\nld.param.b32 %r1, [q];\n}\n"
    "st.global.u32 [%d1+8], %r1;\nret;\n}\n";

static CUresult launch_at(CUmodule module, const char *name, CUdeviceptr at)
{
    void *parameters[] = {&at};
    CUfunction function;
    CUresult result = cuModuleGetFunction(&function, module, name);

    return result ? result : cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
}

CUresult pointer_act(void)
{
    static CUmodule module;
    static CUdeviceptr at;
    bool is_first = !module;
    uint32_t answer = 0;
    CUresult result = is_first ? cuModuleLoadData(&module, text_with_pointer) : CUDA_SUCCESS;

    if (!result && is_first)
        result = cuMemAlloc_v2(&at, 16);
    if (!result && is_first)
        result = launch_at(module, "keep", at);
    if (!result)
        result = launch_at(module, "call", at);
    if (!result)
        result = cuMemcpyDtoH_v2(&answer, at + 8, sizeof(answer));
    return result || answer == 42 ? result : CUDA_ERROR_UNKNOWN;
}
