/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each copy has a block. The block divides its copy into words of 8 bytes, aligned at the
 * destination, and bytes before and behind them. If the source has another alignment, it uses bytes
 * only. Each thread copies such units. All loads are issued in parallel, because the latency of
 * host memory dominates. They have system scope, because the host may have written the data just
 * before. The kernel writes no byte outside the copies, since those may belong to another client.
 */
#include "copy_kernel.h"

#include <string.h>

#include "copy_state.h"
#include "log.h"
#include "own_kernel.h"

#define NAME "funnel_copy"

#define WORD 8u
#define WARP 32u

_Static_assert(sizeof(struct small_copy) == 24 && SMALL_COPIES_MAX * 24 == 1536,
               "the kernel knows the layout of its parameter");

static const char ptx[] =
    ".version 6.4\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry " NAME "(.param .align 8 .b8 copies[1536])\n"
    "{\n"
    "    .reg .u32 %block, %thread, %threads;\n"
    "    .reg .u64 %copy, %dst, %src, %size, %apart, %head, %words, %tail, %units;\n"
    "    .reg .u64 %unit, %step, %at, %to, %from, %word;\n"
    "    .reg .u16 %byte;\n"
    "    .reg .pred %bytewise, %done, %wide;\n"
    "    mov.u32 %block, %ctaid.x;\n"
    "    mul.wide.u32 %at, %block, 24;\n"
    "    mov.u64 %copy, copies;\n"
    "    add.u64 %copy, %copy, %at;\n"
    "    ld.param.u64 %dst, [%copy];\n"
    "    ld.param.u64 %src, [%copy+8];\n"
    "    ld.param.u64 %size, [%copy+16];\n"
    /* `head` bytes, `words` words, `tail` bytes */
    "    xor.b64 %apart, %dst, %src;\n"
    "    and.b64 %apart, %apart, 7;\n"
    "    setp.ne.u64 %bytewise, %apart, 0;\n"
    "    neg.s64 %head, %dst;\n"
    "    and.b64 %head, %head, 7;\n"
    "    min.u64 %head, %head, %size;\n"
    "    selp.b64 %head, %size, %head, %bytewise;\n"
    "    sub.u64 %words, %size, %head;\n"
    "    and.b64 %tail, %words, 7;\n"
    "    shr.u64 %words, %words, 3;\n"
    "    add.u64 %units, %head, %words;\n"
    "    add.u64 %units, %units, %tail;\n"
    "    cvta.to.global.u64 %dst, %dst;\n"
    "    cvta.to.global.u64 %src, %src;\n"
    "    mov.u32 %thread, %tid.x;\n"
    "    cvt.u64.u32 %unit, %thread;\n"
    "    mov.u32 %threads, %ntid.x;\n"
    "    cvt.u64.u32 %step, %threads;\n"
    "NEXT:\n"
    "    setp.ge.u64 %done, %unit, %units;\n"
    "    @%done bra DONE;\n"
    /* The number of words before the unit. To an unsigned comparison all of the head is large. */
    "    sub.s64 %at, %unit, %head;\n"
    "    setp.lt.u64 %wide, %at, %words;\n"
    "    max.s64 %at, %at, 0;\n"
    "    min.s64 %at, %at, %words;\n"
    "    mad.lo.s64 %at, %at, 7, %unit;\n"
    "    add.u64 %from, %src, %at;\n"
    "    add.u64 %to, %dst, %at;\n"
    "    @%wide ld.relaxed.sys.global.u64 %word, [%from];\n"
    "    @!%wide ld.relaxed.sys.global.u8 %byte, [%from];\n"
    "    @%wide st.global.u64 [%to], %word;\n"
    "    @!%wide st.global.u8 [%to], %byte;\n"
    "    add.u64 %unit, %unit, %step;\n"
    "    bra NEXT;\n"
    "DONE:\n"
    "    ret;\n"
    "}\n";

void copy_kernel_load(struct device *device)
{
    CUresult result = own_kernel_load(device, ptx, NAME, &device->copies->kernel);

    if (result != CUDA_SUCCESS)
        log_line("Device %d: small copies are made one by one: %s", device->ordinal,
                 driver_error_name(result));
}

bool copy_kernel_is_loaded(const struct device *device)
{
    return device->copies->kernel != NULL;
}

/* Whole warps, enough for the words of the longest copy and for the bytes around them. */
static unsigned threads_for(const struct small_copy *copies, unsigned count)
{
    uint64_t longest = 0, units;

    for (unsigned i = 0; i < count; i++)
        if (copies[i].size > longest)
            longest = copies[i].size;
    units = longest / WORD + 2 * (WORD - 1);
    return (unsigned)((units + WARP - 1) / WARP * WARP);
}

CUresult copy_kernel_launch(const struct device *device, const struct small_copy *copies,
                            unsigned count, CUstream stream)
{
    struct small_copy params[SMALL_COPIES_MAX] = {0};
    size_t size = sizeof(params);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, params, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    const CUlaunchConfig config = {
        .gridDimX = count,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = threads_for(copies, count),
        .blockDimY = 1,
        .blockDimZ = 1,
        .hStream = stream,
    };

    memcpy(params, copies, count * sizeof(*copies));
    return driver.cuLaunchKernelEx(&config, device->copies->kernel, NULL, extra);
}
