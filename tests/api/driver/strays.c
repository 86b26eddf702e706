/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One kernel that faults in the way that the argument names: thread 35 of block 1 does it. The
 * program prints which error comes of it, and what a later call says. tests/api/test_faults.py
 * knows what is right on the software GPU. A real one may answer differently.
 */
#include "check.h"

#include <stdio.h>

#define KERNEL(name, body)                                                                 \
    ".visible .entry " name "()\n{\n.reg .b32 %r<9>; .reg .b64 %d<4>; .reg .pred %p<2>;\n" \
    ".shared .align 4 .b8 room[256]; .local .align 4 .b8 depot[64];\n"                     \
    "mov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nmad.lo.u32 %r1, %r2, 100, %r1;\n"       \
    "setp.ne.u32 %p1, %r1, 135;\n@%p1 bra done;\n" body "done:\nret;\n}\n"

static const char text[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n,"
    " .param .b64 s);\n"
    ".global .align 1 .b8 message[6] = {120, 32, 62, 32, 49, 0};\n"
    ".global .align 1 .b8 file[5] = {97, 46, 99, 117, 0};\n"
    ".func deep()\n{\n.reg .b32 %r<2>; .local .b8 room[64];\n"
    "st.local.u32 [room], 1;\ncall deep, ();\nret;\n}\n"
    /* Names are long so that they are found in a message. */
    KERNEL("stray_null", "mov.u64 %d1, 0x10;\nst.global.u32 [%d1], 7;\n")
        KERNEL("stray_misaligned", "mov.u64 %d1, 0x12;\nst.global.u32 [%d1], 7;\n")
            KERNEL("stray_shared", "mov.u32 %r3, room;\nst.shared.u32 [%r3+0x100000], 7;\n")
                KERNEL("stray_local", "mov.u64 %d1, depot;\nst.local.u32 [%d1+0x100000], 7;\n")
                    KERNEL("stray_stack", "call deep, ();\n") KERNEL(
                        "stray_instruction",
                        "T: .branchtargets done, here;\nbrx.idx %r1, T;\nhere:\nmov.u32 %r1, 0;\n")
                        KERNEL("stray_pointer",
                               "P: .callprototype _ ();\nmov.u64 %d1, 0x1234;\ncall %d1, (), P;\n")
                            KERNEL("stray_trap", "trap;\n")
                                KERNEL("stray_barrier", "mov.u32 %r3, 99;\nbar.sync %r3;\n")
                                    KERNEL("stray_endless", "again:\nbra again;\n")
                                        KERNEL("stray_assert",
                                               "mov.u64 %d1, message;\nmov.u64 %d2, file;\n"
                                               "{\n.param .b64 m; .param .b64 f; .param .b32 l; "
                                               ".param .b64 n; .param .b64 s;\n"
                                               "st.param.b64 [m], %d1;\nst.param.b64 [f], "
                                               "%d2;\nst.param.b32 [l], 12;\n"
                                               "st.param.b64 [n], %d2;\nst.param.b64 [s], 1;\n"
                                               "call.uni __assertfail, (m, f, l, n, s);\n}\n");

static const char *name_of(CUresult result)
{
    const char *name = NULL;

    cuGetErrorName(result, &name);
    return name ? name : "unknown error";
}

int main(int argc, char **argv)
{
    char kernel[64];
    CUmodule module;
    CUdeviceptr pointer;

    check_open();
    MUST(cuModuleLoadData(&module, text));
    snprintf(kernel, sizeof(kernel), "stray_%s", argc > 1 ? argv[1] : "null");
    MUST(cuLaunchKernel(get_kernel(module, kernel), 3, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL));
    printf("at first %s\n", name_of(cuCtxSynchronize()));
    printf("then %s\n", name_of(cuMemAlloc_v2(&pointer, 16)));
    printf("still %s\n", name_of(cuCtxSynchronize()));
    return 0;
}
