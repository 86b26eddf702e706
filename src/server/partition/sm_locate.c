/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A green context for each part would take a millisecond each. So there is one for each binary
 * digit of the parts' numbers, with the parts that have that digit: seven identify 66 parts.
 */
#include "sm_locate.h"

#include <string.h>

#include "own_kernel.h"

#define NAME "funnel_locate"
#define BLOCK_THREADS 1024u

/* How often the kernel runs until all of its blocks have begun in time. On a busy machine the
 * threads of the software GPU may lack a CPU for so long. */
#define ATTEMPTS_MAX 5u

/* The kernel's result: the number of multiprocessors that ran a block, and a flag for each. */
struct sighting {
    uint32_t count;
    uint32_t seen[SM_NUMBERS_MAX];
};

_Static_assert(SM_NUMBERS_MAX == 512, "the kernel knows it");

/* The launch has as many blocks as fit at once. Each block runs until all multiprocessors have a
 * block, so that every multiprocessor must run one. */
static const char ptx[] =
    ".version 6.4\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry " NAME "(.param .u64 sighting, .param .u32 expected)\n"
    "{\n"
    "    .reg .u64 %sighting, %flag;\n"
    "    .reg .u32 %thread, %sm, %seen, %count, %expected, %turns;\n"
    "    .reg .pred %done;\n"
    "    mov.u32 %thread, %tid.x;\n"
    "    setp.ne.u32 %done, %thread, 0;\n"
    "    @%done bra DONE;\n"
    "    mov.u32 %sm, %smid;\n"
    "    setp.ge.u32 %done, %sm, 512;\n"
    "    @%done bra DONE;\n"
    "    ld.param.u64 %sighting, [sighting];\n"
    "    cvta.to.global.u64 %sighting, %sighting;\n"
    "    ld.param.u32 %expected, [expected];\n"
    "    mad.wide.u32 %flag, %sm, 4, %sighting;\n"
    "    atom.global.exch.b32 %seen, [%flag+4], 1;\n"
    "    setp.ne.u32 %done, %seen, 0;\n"
    "    @!%done red.global.add.u32 [%sighting], 1;\n"
    "    mov.u32 %turns, 0;\n"
    "WAIT:\n"
    "    ld.relaxed.gpu.global.u32 %count, [%sighting];\n"
    "    setp.ge.u32 %done, %count, %expected;\n"
    "    @%done bra DONE;\n"
    "    add.u32 %turns, %turns, 1;\n"
    "    setp.lt.u32 %done, %turns, 100000;\n" /* a tenth of a second, in which all begin */
    "    @%done bra WAIT;\n"
    "DONE:\n"
    "    ret;\n"
    "}\n";

CUresult sm_locator_init(struct sm_locator *locator, const struct device *device)
{
    CUresult result = own_kernel_load(device, ptx, NAME, &locator->kernel);

    locator->device = device;
    if (result == CUDA_SUCCESS)
        result = driver.cuMemAlloc_v2(&locator->sighting, sizeof(struct sighting));
    return result;
}

void sm_locator_fini(const struct sm_locator *locator)
{
    driver.cuMemFree_v2(locator->sighting);
}

static unsigned blocks_at_once(const struct device *device, unsigned sm_count)
{
    const int32_t *attributes = device->record.attributes;
    unsigned threads = (unsigned)attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR];

    return threads > BLOCK_THREADS ? threads / BLOCK_THREADS * sm_count : sm_count;
}

static CUresult launch_locator(const struct sm_locator *locator, CUstream stream, unsigned sm_count)
{
    struct {
        CUdeviceptr sighting;
        uint32_t expected;
    } params = {locator->sighting, sm_count};
    void *pointers[] = {&params.sighting, &params.expected};
    const CUlaunchConfig config = {
        .gridDimX = blocks_at_once(locator->device, sm_count),
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = BLOCK_THREADS,
        .blockDimY = 1,
        .blockDimZ = 1,
        .hStream = stream,
    };

    return driver.cuLaunchKernelEx(&config, locator->kernel, pointers, NULL);
}

static CUresult run_locator(const struct sm_locator *locator, CUstream stream, unsigned sm_count,
                            struct sighting *ret_sighting)
{
    CUresult result = driver.cuMemsetD8Async(locator->sighting, 0, sizeof(*ret_sighting), stream);

    if (result == CUDA_SUCCESS)
        result = launch_locator(locator, stream, sm_count);
    if (result == CUDA_SUCCESS)
        result = driver.cuMemcpyDtoHAsync_v2(ret_sighting, locator->sighting, sizeof(*ret_sighting),
                                             stream);
    if (result == CUDA_SUCCESS)
        result = driver.cuStreamSynchronize(stream);
    if (result == CUDA_SUCCESS && ret_sighting->count != sm_count)
        result = CUDA_ERROR_NOT_READY;
    return result;
}

static CUresult look_inside(const struct sm_locator *locator, CUgreenCtx green, unsigned sm_count,
                            struct sighting *ret_sighting)
{
    CUstream stream;
    CUresult result = driver.cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0);

    if (result != CUDA_SUCCESS)
        return result;
    result = CUDA_ERROR_NOT_READY;
    for (unsigned i = 0; i < ATTEMPTS_MAX && result == CUDA_ERROR_NOT_READY; i++)
        result = run_locator(locator, stream, sm_count, ret_sighting);
    driver.cuStreamDestroy_v2(stream);
    return result;
}

/* Finds the multiprocessors of these parts together. */
static CUresult look_at(const struct sm_locator *locator, CUdevResource *parts, unsigned count,
                        struct sighting *ret_sighting)
{
    CUdevResourceDesc description = NULL;
    CUgreenCtx green = NULL;
    unsigned sm_count = 0;

    for (unsigned i = 0; i < count; i++)
        sm_count += parts[i].sm.smCount;
    CUresult result = driver.cuDevResourceGenerateDesc(&description, parts, count);
    if (result == CUDA_SUCCESS)
        result = driver.cuGreenCtxCreate(&green, description, locator->device->ordinal,
                                         CU_GREEN_CTX_DEFAULT_STREAM);
    if (result != CUDA_SUCCESS)
        return result;
    result = look_inside(locator, green, sm_count, ret_sighting);
    driver.cuGreenCtxDestroy(green);
    return result;
}

/* Sets one binary digit of the part number of each multiprocessor. */
static CUresult find_digit(const struct sm_locator *locator, const CUdevResource *parts,
                           unsigned count, unsigned digit, uint16_t *part)
{
    CUdevResource chosen[SM_NUMBERS_MAX];
    unsigned chosen_count = 0;
    struct sighting sighting;

    for (unsigned i = 0; i < count; i++)
        if ((i + 1) >> digit & 1)
            chosen[chosen_count++] = parts[i];
    CUresult result = look_at(locator, chosen, chosen_count, &sighting);
    if (result != CUDA_SUCCESS)
        return result;
    for (unsigned sm = 0; sm < SM_NUMBERS_MAX; sm++)
        if (sighting.seen[sm])
            part[sm] |= (uint16_t)(1u << digit);
    return CUDA_SUCCESS;
}

CUresult sm_locate(const struct sm_locator *locator, const CUdevResource *parts, unsigned count,
                   uint16_t ret_part[SM_NUMBERS_MAX])
{
    CUresult result = CUDA_SUCCESS;

    memset(ret_part, 0, SM_NUMBERS_MAX * sizeof(*ret_part));
    for (unsigned digit = 0; count >> digit && result == CUDA_SUCCESS; digit++)
        result = find_digit(locator, parts, count, digit, ret_part);
    return result;
}
