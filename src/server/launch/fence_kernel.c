/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store is a release at system scope. A thread that reads the number sees all that the kernel
 * before it, and the work before that, has written.
 */
#include "fence_kernel.h"

#include <stddef.h>
#include <stdlib.h>

#include "fence_counter.h"
#include "function.h"
#include "launch_state.h"
#include "own_function.h"
#include "stream.h"

#define NAME "funnel_fence"

/* Addresses are the same here and on the GPU. */
struct params {
    uint64_t word; /* gets seq, or, when that is 0, one more than the fence counter */
    uint64_t
        fence_counter; /* the fence counter, which remembers what the word got; 0 = there is none */
    uint32_t seq;
};

/* The size that the GPU reads: the structure without the padding that C adds. */
#define PARAMS_SIZE (offsetof(struct params, seq) + sizeof(uint32_t))

static const char ptx[] =
    ".version 6.4\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry " NAME "(.param .u64 word, .param .u64 counter, .param .u32 seq)\n"
    "{\n"
    "    .reg .u64 %word, %counter;\n"
    "    .reg .u32 %value;\n"
    "    .reg .pred %told, %uncounted;\n"
    "    ld.param.u64 %word, [word];\n"
    "    ld.param.u64 %counter, [counter];\n"
    "    ld.param.u32 %value, [seq];\n"
    "    setp.eq.u64 %uncounted, %counter, 0;\n"
    "    @%uncounted bra WRITE;\n"
    "    cvta.to.global.u64 %counter, %counter;\n"
    "    setp.ne.u32 %told, %value, 0;\n"
    "    @%told bra REMEMBER;\n"
    "    ld.relaxed.gpu.global.u32 %value, [%counter];\n"
    "    add.u32 %value, %value, 1;\n"
    "REMEMBER:\n"
    "    st.relaxed.gpu.global.u32 [%counter], %value;\n"
    "WRITE:\n"
    "    cvta.to.global.u64 %word, %word;\n"
    "    st.release.sys.global.u32 [%word], %value;\n"
    "    ret;\n"
    "}\n";

void fence_kernel_load(struct device *device)
{
    device->launch->fence_kernel =
        own_function_load(device, ptx, NAME, PARAMS_SIZE, "fences are written without a kernel");
}

void fence_kernel_unload(struct device *device)
{
    fence_counters_destroy(device->launch->fence_counters);
    device->launch->fence_counters = NULL;
    free(device->launch->fence_kernel);
    device->launch->fence_kernel = NULL;
}

static struct launch launch_with(const struct device *device, const struct params *params)
{
    return (struct launch){
        .function = device->launch->fence_kernel,
        .shape = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .params_size = PARAMS_SIZE},
        .params = params,
        .urgent = true,
    };
}

/* When the stream comes to this fence, the counter holds stream->launch->fence_counter_value. */
static struct params next_params(struct stream *stream, uint32_t seq)
{
    struct fence_counters *counters = stream->device->launch->fence_counters;

    if (!stream->launch->fence_counter)
        stream->launch->fence_counter = fence_counters_take(counters);
    bool counts = stream->launch->fence_counter && stream->launch->fence_counter_value &&
                  stream->launch->fence_counter_value + 1 == seq;
    return (struct params){
        .word = (uintptr_t)stream->fence,
        .fence_counter = stream->launch->fence_counter,
        .seq = counts ? 0 : seq,
    };
}

bool fence_kernel_behind(struct stream *stream, const struct launch *launch, uint32_t seq)
{
    const struct params params = next_params(stream, seq);
    const struct launch both[] = {*launch, launch_with(stream->device, &params)};

    if (!graph_batches_launch_fenced(&stream->launch->graph_batches, stream->driver, both))
        return false;
    stream->launch->fence_counter_value = seq;
    return true;
}
