/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that allocates, launches, copies and frees at random, and compares all that with a
 * shadow copy in its own memory. "work SEED STEPS" on its standard input makes so many steps;
 * other words make what can or cannot be moved from the device.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cuda_abi.h"
#include "cuda_prototypes.h"

#define BLOCKS 24
#define DESCRIPTORS 1024
#define STREAMS 3
#define LARGEST (3u << 20)
#define THREADS 128u
#define STRIDE 16u       /* words: a launch changes one of so many, so some of each page */
#define PIECE (2u << 20) /* of memory by cuMemCreate */
#define PAGE 4096u

static const char text[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    /* data[i] = data[i] * 5 + add, in every 16th word: STRIDE */
    ".visible .entry step(.param .u64 data, .param .u32 count, .param .u32 add)\n{\n"
    ".reg .b32 %r<8>; .reg .b64 %d<4>; .reg .pred %p;\n"
    "ld.param.u64 %d1, [data];\nld.param.u32 %r1, [count];\nld.param.u32 %r2, [add];\n"
    "mov.u32 %r3, %tid.x;\nmov.u32 %r4, %ctaid.x;\nmov.u32 %r5, %ntid.x;\n"
    "mad.lo.u32 %r3, %r4, %r5, %r3;\nshl.b32 %r3, %r3, 4;\n"
    "setp.ge.u32 %p, %r3, %r1;\n@%p bra done;\n"
    "mul.wide.u32 %d2, %r3, 4;\nadd.u64 %d1, %d1, %d2;\nld.global.u32 %r6, [%d1];\n"
    "mad.lo.u32 %r6, %r6, 5, %r2;\nst.global.u32 [%d1], %r6;\ndone:\nret;\n}\n";

struct block {
    CUdeviceptr device; /* 0 = there is none */
    uint32_t *shadow, count;
    uint32_t mapped; /* bytes of memory by cuMemCreate; 0 = it is of cuMemAlloc or of a pool */
    bool pooled;
};

static struct program {
    CUfunction step;
    CUstream streams[STREAMS];
    struct block blocks[BLOCKS];
    uint64_t random;
} program;

static uint32_t pick(uint32_t below)
{
    program.random = program.random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(program.random >> 33) % below;
}

static CUstream any_stream(void)
{
    return program.streams[pick(STREAMS)];
}

/* ---- steps: each on a block that there is ---- */

static CUresult launch_on(struct block *block, uint32_t add, CUstream stream)
{
    void *parameters[] = {&block->device, &block->count, &add};
    uint32_t blocks = (block->count + STRIDE * THREADS - 1) / (STRIDE * THREADS);

    for (uint32_t i = 0; i < block->count; i += STRIDE)
        block->shadow[i] = block->shadow[i] * 5 + add;
    return cuLaunchKernel(program.step, blocks, 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL);
}

static CUresult launch_step(struct block *block)
{
    uint32_t add = pick(1000);

    return launch_on(block, add, any_stream());
}

static CUresult set_part(struct block *block)
{
    uint32_t first = pick(block->count), count = 1 + pick(block->count - first),
             value = pick(1u << 30);

    for (uint32_t i = 0; i < count; i++)
        block->shadow[first + i] = value;
    return cuMemsetD32Async(block->device + first * 4, value, count, any_stream());
}

static CUresult copy_up(struct block *block)
{
    uint32_t first = pick(block->count), count = 1 + pick(block->count - first);

    for (uint32_t i = 0; i < count; i++)
        block->shadow[first + i] = pick(1u << 30);
    return cuMemcpyHtoDAsync_v2(block->device + first * 4, block->shadow + first, count * 4,
                                any_stream());
}

static CUresult copy_across(struct block *block)
{
    const struct block *from = &program.blocks[pick(BLOCKS)];
    uint32_t count = from->count < block->count ? from->count : block->count;

    if (!from->device || from == block)
        return CUDA_SUCCESS;
    memcpy(block->shadow, from->shadow, count * 4);
    return cuMemcpyDtoDAsync_v2(block->device, from->device, count * 4, any_stream());
}

/* Kept, as the page faults of new memory would take most of the time of a check. */
static uint32_t *room_for(size_t size)
{
    static uint32_t *memory;
    static size_t available;

    if (size > available) {
        free(memory);
        memory = malloc(size);
        available = size;
    }
    return memory;
}

static CUresult check(struct block *block)
{
    size_t size = block->count * 4ul;
    uint32_t *seen = room_for(size);
    CUresult result = cuMemcpyDtoH_v2(seen, block->device, size);

    return result || !memcmp(seen, block->shadow, size) ? result : CUDA_ERROR_UNKNOWN;
}

/* ---- memory of cuMemCreate, in pieces at reserved addresses, as PyTorch's expandable segments
 * ----
 */

static CUresult create_piece(CUmemGenericAllocationHandle *ret_handle, size_t size)
{
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .requestedHandleTypes =
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

    return cuMemCreate(ret_handle, size, &prop, 0);
}

static CUresult map_piece(CUdeviceptr address, CUmemAccess_flags flags)
{
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, flags};
    CUmemGenericAllocationHandle handle;
    CUresult result = create_piece(&handle, PIECE);

    if (!result)
        result = cuMemMap(address, PIECE, 0, handle, 0);
    if (!result)
        result = cuMemSetAccess(address, PIECE, &access, 1);
    return result ? result : cuMemRelease(handle);
}

static CUresult map_pieces(struct block *block, uint32_t size)
{
    CUresult result;

    block->mapped = (size + PIECE - 1) / PIECE * PIECE;
    result = cuMemAddressReserve(&block->device, block->mapped, 0, 0, 0);
    for (uint32_t at = 0; at < block->mapped && !result; at += PIECE)
        result = map_piece(block->device + at, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    return result;
}

static CUresult unmap_pieces(const struct block *block)
{
    CUresult result = cuMemUnmap(block->device, block->mapped);

    return result ? result : cuMemAddressFree(block->device, block->mapped);
}

static CUresult release(struct block *block)
{
    CUresult result = block->mapped   ? unmap_pieces(block)
                      : block->pooled ? cuMemFreeAsync(block->device, any_stream())
                                      : cuMemFree_v2(block->device);

    free(block->shadow);
    memset(block, 0, sizeof(*block));
    return result;
}

/* The stream may be another than that of the block's first use, so it is waited for. */
static CUresult take_from_pool(struct block *block, uint32_t size)
{
    CUstream stream = any_stream();
    CUresult result = cuMemAllocAsync(&block->device, size, stream);

    block->pooled = true;
    return result ? result : cuStreamSynchronize(stream);
}

static CUresult make_memory(struct block *block, uint32_t size)
{
    switch (pick(6)) {
    case 0:
    case 1:
        return map_pieces(block, size);
    case 2:
        return take_from_pool(block, size);
    default:
        return cuMemAlloc_v2(&block->device, size);
    }
}

static CUresult allocate(struct block *block)
{
    uint32_t size = 4 * (1 + pick(pick(4) ? 64u << 10 : LARGEST / 4));
    CUresult result = make_memory(block, size);

    block->count = size / 4;
    block->shadow = calloc(1, size);
    return result ? result : cuMemsetD8Async(block->device, 0, size, any_stream());
}

/* Streams are in order with each other from one step to the next, so that the shadow is right. */
static CUresult make_step(void)
{
    static CUresult (*const steps[])(struct block * block) = {
        launch_step, launch_step, set_part, copy_up, copy_across, check, release};
    struct block *block = &program.blocks[pick(BLOCKS)];
    CUresult result =
        block->device ? steps[pick(sizeof(steps) / sizeof(*steps))](block) : allocate(block);

    for (unsigned i = 0; i < STREAMS && !result; i++)
        result = cuStreamSynchronize(program.streams[i]);
    return result;
}

static CUresult work(uint64_t seed, unsigned steps)
{
    CUresult result = CUDA_SUCCESS;

    program.random = seed;
    for (unsigned i = 0; i < steps && !result; i++)
        result = make_step();
    for (unsigned i = 0; i < BLOCKS && !result; i++)
        if (program.blocks[i].device)
            result = check(&program.blocks[i]);
    return result;
}

/* ---- words ---- */

/* So many MiB, filled with a pattern, and whether it is there. */
static struct block held, more;

static CUresult fill_new(struct block *block, uint64_t mebibytes, unsigned seed)
{
    CUresult result = cuMemAlloc_v2(&block->device, mebibytes << 20);

    if (result)
        return result;
    block->count = (uint32_t)(mebibytes << 18);
    block->shadow = malloc((size_t)block->count * 4);
    for (uint32_t i = 0; i < block->count; i++)
        block->shadow[i] = i * 2654435761u + seed;
    return cuMemcpyHtoD_v2(block->device, block->shadow, (size_t)block->count * 4);
}

static CUresult hold(uint64_t mebibytes, unsigned seed)
{
    return fill_new(&held, mebibytes, seed);
}

static CUresult hold_more(uint64_t mebibytes, unsigned seed)
{
    return fill_new(&more, mebibytes, seed);
}

/* In allocations that are large enough for granules of their own, so each can leave alone. */
#define PARTS 16
#define PART 8u /* MiB */

static struct block parts[PARTS];

static CUresult hold_parts(uint64_t mebibytes, unsigned seed)
{
    CUresult result = CUDA_SUCCESS;

    for (unsigned i = 0; i < PARTS && i < mebibytes / PART && !result; i++)
        result = fill_new(&parts[i], PART, seed + i);
    return result;
}

static CUresult check_if_held(struct block *block)
{
    return block->device ? check(block) : CUDA_SUCCESS;
}

static CUresult check_held(uint64_t unused, unsigned also_unused)
{
    CUresult result = check_if_held(&held);

    if (!result)
        result = check_if_held(&more);
    for (unsigned i = 0; i < PARTS && !result; i++)
        result = check_if_held(&parts[i]);
    return result;
}

/* A word in that MiB. The server has made the change then: a memset alone may wait in the ring
 * while the program is suspended. */
static CUresult change_held(uint64_t mebibyte, unsigned value)
{
    CUresult result = cuMemsetD32_v2(held.device + (mebibyte << 20), value, 1);

    held.shadow[mebibyte << 18] = value;
    return result ? result : cuCtxSynchronize();
}

/* An array, and memory of cuMemCreate that another process may have, of so many MiB. */
static CUresult hold_array(uint64_t mebibytes, unsigned unused)
{
    const CUDA_ARRAY_DESCRIPTOR descriptor = {
        .Width = 1024, .Height = mebibytes * 256, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    CUarray array;

    return cuArrayCreate_v2(&array, &descriptor);
}

static CUresult hold_handle(uint64_t mebibytes, unsigned unused)
{
    CUmemGenericAllocationHandle handle;
    CUresult result = create_piece(&handle, mebibytes << 20);
    int fd;

    return result ? result
                  : cuMemExportToShareableHandle(&fd, handle,
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

/* Memory of cuMemCreate that its device may only read, at two places; that it reaches nowhere; and
 * that is mapped nowhere. Each piece has its contents. */
static struct places {
    CUdeviceptr base, readable, again, closed;
    CUmemGenericAllocationHandle shown, hidden, unmapped;
} places;

static CUresult set_access(CUdeviceptr address, CUmemAccess_flags flags)
{
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, flags};

    return cuMemSetAccess(address, PIECE, &access, 1);
}

/* Waits, since the access or the mapping may be taken away next. */
static CUresult fill_at(CUdeviceptr address, CUmemGenericAllocationHandle handle, unsigned value)
{
    CUresult result = cuMemMap(address, PIECE, 0, handle, 0);

    if (!result)
        result = set_access(address, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    if (!result)
        result = cuMemsetD32_v2(address, value, PIECE / 4);
    return result ? result : cuCtxSynchronize();
}

static CUresult make_places(void)
{
    CUresult result = cuMemAddressReserve(&places.base, 3 * PIECE, 0, 0, 0);

    places.readable = places.base;
    places.again = places.base + PIECE;
    places.closed = places.base + 2 * PIECE;
    if (!result)
        result = create_piece(&places.shown, PIECE);
    if (!result)
        result = create_piece(&places.hidden, PIECE);
    if (!result)
        result = create_piece(&places.unmapped, PIECE);
    return result;
}

static CUresult hold_places(uint64_t seed, unsigned unused)
{
    CUresult result = make_places();

    if (!result)
        result = fill_at(places.again, places.unmapped, (unsigned)seed);
    if (!result)
        result = cuMemUnmap(places.again, PIECE);
    if (!result)
        result = fill_at(places.closed, places.hidden, (unsigned)seed + 1);
    if (!result)
        result = set_access(places.closed, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    if (!result)
        result = fill_at(places.readable, places.shown, (unsigned)seed + 2);
    if (!result)
        result = set_access(places.readable, CU_MEM_ACCESS_FLAGS_PROT_READ);
    if (!result)
        result = cuMemMap(places.again, PIECE, 0, places.shown, 0);
    return result ? result : set_access(places.again, CU_MEM_ACCESS_FLAGS_PROT_READ);
}

static CUresult check_words(CUdeviceptr address, unsigned value)
{
    static uint32_t seen[PIECE / 4];
    CUresult result = cuMemcpyDtoH_v2(seen, address, PIECE);

    for (unsigned i = 0; i < PIECE / 4 && !result; i++)
        if (seen[i] != value)
            result = CUDA_ERROR_UNKNOWN;
    return result;
}

/* That the device cannot reach one place is seen by the error of a copy. */
static CUresult check_places(uint64_t seed, unsigned unused)
{
    CUresult result = check_words(places.readable, (unsigned)seed + 2);

    if (!result)
        result = check_words(places.again, (unsigned)seed + 2);
    if (!result && !check_words(places.closed, 0))
        result = CUDA_ERROR_UNKNOWN;
    if (!result)
        result = set_access(places.closed, CU_MEM_ACCESS_FLAGS_PROT_READ);
    if (!result)
        result = check_words(places.closed, (unsigned)seed + 1);
    if (!result)
        result = set_access(places.closed, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    if (!result)
        result = cuMemUnmap(places.again, PIECE);
    if (!result)
        result = cuMemMap(places.again, PIECE, 0, places.unmapped, 0);
    if (!result)
        result = set_access(places.again, CU_MEM_ACCESS_FLAGS_PROT_READ);
    if (!result)
        result = check_words(places.again, (unsigned)seed);
    if (!result)
        result = cuMemUnmap(places.again, PIECE);
    if (!result)
        result = cuMemMap(places.again, PIECE, 0, places.shown, 0);
    return result ? result : set_access(places.again, CU_MEM_ACCESS_FLAGS_PROT_READ);
}

/* So many launches without a wait. */
static CUresult rush(uint64_t launches, unsigned unused)
{
    CUresult result = CUDA_SUCCESS;

    while (launches-- && !result)
        result = launch_on(&held, (uint32_t)launches, program.streams[0]);
    return result;
}

static CUresult check_held_after(uint64_t unused, unsigned also_unused)
{
    CUresult result = cuStreamSynchronize(program.streams[0]);

    return result ? result : check(&held);
}

static bool has_input(void)
{
    struct pollfd input = {.fd = 0, .events = POLLIN};

    return poll(&input, 1, 0) > 0;
}

/* Sets the first page of each chunk of what is held to 1, then to 2, and so on, until there is a
 * line to read. So at any moment no chunk has more than the one before it, and the last has at
 * least one less. A round is shorter than a checkpoint, to which the sleep leaves the CPU. */
static CUresult count_up(uint64_t chunk, unsigned unused)
{
    CUresult result = CUDA_SUCCESS;
    char line[64];

    for (unsigned round = 1; !has_input() && !result; round++) {
        for (uint64_t at = 0; at < held.count * 4ull && !result; at += chunk)
            result = cuMemsetD32Async(held.device + at, round, PAGE / 4, program.streams[0]);
        usleep(1000);
    }
    return result || !fgets(line, sizeof(line), stdin) ? CUDA_ERROR_UNKNOWN
                                                       : cuStreamSynchronize(program.streams[0]);
}

/* So many calls that leave nothing behind: each is an idle point. */
static CUresult rest(uint64_t calls, unsigned unused)
{
    CUresult result = CUDA_SUCCESS;
    size_t available, total;

    while (calls-- && !result)
        result = cuMemGetInfo_v2(&available, &total);
    return result;
}

static CUresult share(uint64_t unused, unsigned also_unused)
{
    CUipcMemHandle handle;

    return cuIpcGetMemHandle(&handle, held.device);
}

/* CUDA_ERROR_NOT_READY while descriptors of device memory wait in sockets of this process. */
static CUresult look_for_lent(uint64_t unused, unsigned also_unused)
{
    char byte;

    for (int fd = 0; fd < DESCRIPTORS; fd++)
        if (recv(fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) == 1)
            return CUDA_ERROR_NOT_READY;
    return CUDA_SUCCESS;
}

static const struct {
    const char *word;
    CUresult (*act)(uint64_t first, unsigned second);
} acts[] = {{"work", work},          {"hold", hold},        {"more", hold_more},
            {"check", check_held},   {"share", share},      {"array", hold_array},
            {"handle", hold_handle}, {"rush", rush},        {"finish", check_held_after},
            {"places", hold_places}, {"parts", hold_parts}, {"seen", check_places},
            {"change", change_held}, {"count", count_up},   {"rest", rest},
            {"lent", look_for_lent}};

static CUresult act_on(const char *word, uint64_t first, unsigned second)
{
    for (size_t i = 0; i < sizeof(acts) / sizeof(*acts); i++)
        if (!strcmp(acts[i].word, word))
            return acts[i].act(first, second);
    return CUDA_ERROR_INVALID_VALUE;
}

static CUresult open_device(void)
{
    CUcontext context;
    CUmodule module;
    CUresult result = cuInit(0);

    if (!result)
        result = cuDevicePrimaryCtxRetain(&context, 0);
    if (!result)
        result = cuCtxSetCurrent(context);
    if (!result)
        result = cuModuleLoadData(&module, text);
    if (!result)
        result = cuModuleGetFunction(&program.step, module, "step");
    for (unsigned i = 0; i < STREAMS && !result; i++)
        result = cuStreamCreate(&program.streams[i], CU_STREAM_NON_BLOCKING);
    return result;
}

static void say(const char *word, CUresult result)
{
    const char *name = NULL;

    cuGetErrorName(result, &name);
    printf("%s %s\n", word, name ? name : "unknown");
    fflush(stdout);
}

int main(void)
{
    char line[128], word[16];

    say("open", open_device());
    while (fgets(line, sizeof(line), stdin)) {
        unsigned long long first = 0;
        unsigned second = 0;

        if (sscanf(line, "%15s %llu %u", word, &first, &second) > 0)
            say(word, act_on(word, first, second));
    }
    return 0;
}
