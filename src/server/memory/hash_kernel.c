/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread is a lane of chunk_hash.h. It issues several loads before it needs the first, because
 * the latency of memory dominates. The lanes are added up in shared memory; the order of additions
 * does not matter.
 */
#include "hash_kernel.h"

#include "log.h"
#include "own_kernel.h"

#define NAME "funnel_hash"

/* Other kernels of the device run in between. */
#define BLOCKS_MAX 1024u

_Static_assert(sizeof(struct hash_job) == 32 && CHUNK_HASH_LANES == 256,
               "the kernel knows the layout of a job and the number of lanes");

#define TEXT(value) #value
#define NUMBER(value) TEXT(value)
#define WORD NUMBER(CHUNK_HASH_WORD)
#define SPREAD NUMBER(CHUNK_HASH_SPREAD)
#define STEP NUMBER(CHUNK_HASH_STEP)
#define ADD NUMBER(CHUNK_HASH_ADD)
#define MIX_1 NUMBER(CHUNK_HASH_MIX_1)
#define MIX_2 NUMBER(CHUNK_HASH_MIX_2)

#define TAKE(word)                                  \
    "    mul.lo.u64 %spread, " word ", %c_word;\n"  \
    "    mov.b64 {%low, %high}, %spread;\n"         \
    "    mov.b64 %spread, {%high, %low};\n"         \
    "    mul.lo.u64 %spread, %spread, %c_spread;\n" \
    "    xor.b64 %a, %a, %spread;\n"                \
    "    shl.b64 %part, %a, 27;\n"                  \
    "    shr.u64 %a, %a, 37;\n"                     \
    "    or.b64 %a, %a, %part;\n"                   \
    "    mad.lo.u64 %a, %a, 5, %c_add;\n"           \
    "    add.u64 %b, %b, %spread;\n"                \
    "    mov.b64 {%low, %high}, %b;\n"              \
    "    mov.b64 %b, {%high, %low};\n"              \
    "    mul.lo.u64 %b, %b, %c_step;\n"

#define TAKE_ONE TAKE("%w0")
#define TAKE_TWO(first, second) TAKE(first) TAKE(second)
#define TAKE_FOUR(a, b, c, d) TAKE_TWO(a, b) TAKE_TWO(c, d)
#define TAKE_EIGHT TAKE_FOUR("%w0", "%w1", "%w2", "%w3") TAKE_FOUR("%w4", "%w5", "%w6", "%w7")

#define MIX(value)                                     \
    "    shr.u64 %part, " value ", 33;\n"              \
    "    xor.b64 " value ", " value ", %part;\n"       \
    "    mul.lo.u64 " value ", " value ", %c_mix_1;\n" \
    "    shr.u64 %part, " value ", 33;\n"              \
    "    xor.b64 " value ", " value ", %part;\n"       \
    "    mul.lo.u64 " value ", " value ", %c_mix_2;\n" \
    "    shr.u64 %part, " value ", 33;\n"              \
    "    xor.b64 " value ", " value ", %part;\n"
#define MIX_BOTH MIX("%a") MIX("%b")

static const char ptx[] =
    ".version 6.0\n"
    ".target sm_50\n"
    ".address_size 64\n"
    ".visible .entry " NAME "(.param .u64 jobs)\n"
    ".maxntid 256, 1, 1\n"
    "{\n"
    "    .reg .u32 %thread, %block, %low, %high;\n"
    "    .reg .u64 %job, %at, %words, %lane, %i, %last, %a, %b, %spread, %part, %sum;\n"
    "    .reg .u64 %w0, %w1, %w2, %w3, %w4, %w5, %w6, %w7;\n"
    "    .reg .u64 %c_word, %c_spread, %c_step, %c_add, %c_mix_1, %c_mix_2;\n"
    "    .reg .pred %first, %done;\n"
    "    .shared .align 8 .b64 sums[2];\n"
    "    mov.u64 %c_word, " WORD ";\n"
    "    mov.u64 %c_spread, " SPREAD ";\n"
    "    mov.u64 %c_step, " STEP ";\n"
    "    mov.u64 %c_add, " ADD ";\n"
    "    mov.u64 %c_mix_1, " MIX_1 ";\n"
    "    mov.u64 %c_mix_2, " MIX_2 ";\n"
    "    mov.u32 %thread, %tid.x;\n"
    "    mov.u32 %block, %ctaid.x;\n"
    "    ld.param.u64 %job, [jobs];\n"
    "    cvta.to.global.u64 %job, %job;\n"
    "    mad.wide.u32 %job, %block, 32, %job;\n"
    "    ld.global.u64 %at, [%job];\n"
    "    ld.global.u64 %words, [%job+8];\n"
    "    cvta.to.global.u64 %at, %at;\n"
    "    setp.eq.u32 %first, %thread, 0;\n"
    "    mov.u64 %sum, 0;\n"
    "    @%first st.shared.u64 [sums], %sum;\n"
    "    @%first st.shared.u64 [sums+8], %sum;\n"
    "    bar.sync 0;\n"
    "    cvt.u64.u32 %i, %thread;\n"
    "    mad.lo.u64 %at, %i, 8, %at;\n"
    "    add.u64 %lane, %i, 1;\n"
    "    mul.lo.u64 %a, %lane, %c_word;\n"
    "    xor.b64 %a, %a, %words;\n"
    "    mul.lo.u64 %b, %lane, %c_step;\n"
    "NEXT:\n"
    "    add.u64 %last, %i, 1792;\n"
    "    setp.ge.u64 %done, %last, %words;\n"
    "    @%done bra REST;\n"
    "    ld.global.u64 %w0, [%at];\n"
    "    ld.global.u64 %w1, [%at+2048];\n"
    "    ld.global.u64 %w2, [%at+4096];\n"
    "    ld.global.u64 %w3, [%at+6144];\n"
    "    ld.global.u64 %w4, [%at+8192];\n"
    "    ld.global.u64 %w5, [%at+10240];\n"
    "    ld.global.u64 %w6, [%at+12288];\n"
    "    ld.global.u64 %w7, [%at+14336];\n" TAKE_EIGHT "    add.u64 %at, %at, 16384;\n"
    "    add.u64 %i, %i, 2048;\n"
    "    bra NEXT;\n"
    "REST:\n"
    "    setp.ge.u64 %done, %i, %words;\n"
    "    @%done bra END;\n"
    "    ld.global.u64 %w0, [%at];\n" TAKE_ONE "    add.u64 %at, %at, 2048;\n"
    "    add.u64 %i, %i, 256;\n"
    "    bra REST;\n"
    "END:\n" MIX_BOTH "    atom.shared.add.u64 %sum, [sums], %a;\n"
    "    atom.shared.add.u64 %sum, [sums+8], %b;\n"
    "    bar.sync 0;\n"
    "    @!%first bra OUT;\n"
    "    ld.shared.u64 %a, [sums];\n"
    "    ld.shared.u64 %b, [sums+8];\n"
    "    st.global.u64 [%job+16], %a;\n"
    "    st.global.u64 [%job+24], %b;\n"
    "OUT:\n"
    "    ret;\n"
    "}\n";

CUfunction hash_kernel_load(const struct device *device)
{
    CUfunction kernel = NULL;
    CUresult result = own_kernel_load(device, ptx, NAME, &kernel);

    if (result == CUDA_SUCCESS)
        return kernel;
    log_line("Device %d: memory that has not changed since it was evicted is copied again: %s",
             device->ordinal, driver_error_name(result));
    return NULL;
}

static CUresult launch_blocks(CUfunction kernel, struct hash_job *jobs, unsigned count,
                              CUstream stream)
{
    uint64_t parameter = (uintptr_t)jobs;
    void *parameters[] = {&parameter};
    const CUlaunchConfig config = {.gridDimX = count,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = CHUNK_HASH_LANES,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .hStream = stream};

    return driver.cuLaunchKernelEx(&config, kernel, parameters, NULL);
}

CUresult hash_kernel_launch(CUfunction kernel, struct hash_job *jobs, unsigned count,
                            CUstream stream)
{
    CUresult result = CUDA_SUCCESS;

    for (unsigned done = 0; done < count && result == CUDA_SUCCESS; done += BLOCKS_MAX) {
        unsigned left = count - done;
        result = launch_blocks(kernel, jobs + done, left < BLOCKS_MAX ? left : BLOCKS_MAX, stream);
    }
    return result;
}
