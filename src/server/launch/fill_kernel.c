/* SPDX-License-Identifier: Apache-2.0 */
/* Each thread writes words of 4 bytes, as far apart as there are threads. */
#include "fill_kernel.h"

#include <stddef.h>
#include <stdlib.h>

#include "launch_state.h"
#include "own_function.h"
#include "server_dispatch.h"
#include "window.h"

#define NAME "funnel_fill"

#define WORD 4u
#define THREADS 256u

/* Enough for all multiprocessors. More threads would write fewer words each. */
#define BLOCKS_MAX 1024u

/* What takes longer than a few launches is left to the driver. */
#define BYTES_MAX (4u << 20)

/* Addresses are the same here and on the GPU. */
struct params {
    uint64_t dst;
    uint64_t words;
    uint32_t value;
};

/* The size that the GPU reads: the structure without the padding that C adds. */
#define PARAMS_SIZE (offsetof(struct params, value) + sizeof(uint32_t))

static const char ptx[] =
    ".version 6.4\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry " NAME "(.param .u64 dst, .param .u64 words, .param .u32 value)\n"
    "{\n"
    "    .reg .u64 %dst, %words, %at, %word, %step;\n"
    "    .reg .u32 %value, %block, %size, %thread, %blocks;\n"
    "    .reg .pred %done;\n"
    "    ld.param.u64 %dst, [dst];\n"
    "    ld.param.u64 %words, [words];\n"
    "    ld.param.u32 %value, [value];\n"
    "    cvta.to.global.u64 %dst, %dst;\n"
    "    mov.u32 %block, %ctaid.x;\n"
    "    mov.u32 %size, %ntid.x;\n"
    "    mov.u32 %thread, %tid.x;\n"
    "    mov.u32 %blocks, %nctaid.x;\n"
    "    mad.lo.u32 %block, %block, %size, %thread;\n"
    "    cvt.u64.u32 %word, %block;\n"
    "    mul.wide.u32 %step, %size, %blocks;\n"
    "NEXT:\n"
    "    setp.ge.u64 %done, %word, %words;\n"
    "    @%done bra DONE;\n"
    "    shl.b64 %at, %word, 2;\n"
    "    add.u64 %at, %at, %dst;\n"
    "    st.global.u32 [%at], %value;\n"
    "    add.u64 %word, %word, %step;\n"
    "    bra NEXT;\n"
    "DONE:\n"
    "    ret;\n"
    "}\n";

void fill_kernel_load(struct device *device)
{
    device->launch->fill_kernel =
        own_function_load(device, ptx, NAME, PARAMS_SIZE, "memsets are made without a kernel");
}

void fill_kernel_unload(struct device *device)
{
    free(device->launch->fill_kernel);
    device->launch->fill_kernel = NULL;
}

/* A word of elements. */
static uint32_t word_of(const struct wire_fnMemset *in)
{
    switch (in->element_size) {
    case 1:
        return (in->value & UINT8_MAX) * 0x01010101u;
    case 2:
        return (in->value & UINT16_MAX) * 0x00010001u;
    default:
        return in->value;
    }
}

/* Whether it is one row of whole words. `width` may be any number. */
static bool is_row_of_words(const struct wire_fnMemset *in)
{
    return in->height == 1 && in->width && in->width <= BYTES_MAX / in->element_size &&
           !(in->dst % WORD) && !(in->width * in->element_size % WORD);
}

/* A kernel has no access to other devices unless the client has asked for it. */
static bool is_on_device(const struct window *window, const struct device *device, uint64_t address)
{
    const unsigned part = window->part_of[device->ordinal];

    return address >= window_part_start(window, part) && address < window_part_end(window, part);
}

bool fill_kernel_add(struct session *session, const struct wire_fnMemset *in, struct stream *stream)
{
    struct function *function = stream->device->launch->fill_kernel;

    if (!function || in->seq || !is_row_of_words(in) ||
        !is_on_device(session->window, stream->device, in->dst))
        return false;
    const struct params params = {in->dst, in->width * in->element_size / WORD, word_of(in)};
    uint64_t blocks = (params.words + THREADS - 1) / THREADS;
    const struct wire_cuLaunchKernelEx launch = {
        .shape = {blocks < BLOCKS_MAX ? (uint32_t)blocks : BLOCKS_MAX, 1, 1, THREADS, 1, 1},
        .params = &params,
        .params_size = PARAMS_SIZE,
    };
    launch_batch_add(session, &launch, function, stream);
    return true;
}
