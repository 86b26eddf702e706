/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each thread takes pairs of words, in steps of the whole grid. Nearly all words lie outside the
 * range from the first span to the last, so only few are compared with each span. Every thread that
 * finds an address writes it to one place, and the last one stays.
 */
#include "address_scan.h"

#include <string.h>

#include "clock.h"
#include "copy_state.h"
#include "gate.h"
#include "log.h"
#include "memory.h"
#include "own_kernel.h"
#include "session.h"

#define NAME "funnel_scan"

#define PAIR 16u
#define THREADS 256u
#define BLOCKS_EACH 4u          /* of a multiprocessor */
#define LAUNCH_MAX (1ull << 30) /* bytes; other clients' kernels begin between two launches */
#define TURN_NS (500 * NS_PER_MS)

struct scan_params {
    uint64_t at, pairs, first, extent, found, count;
    struct address_span spans[ADDRESS_SPANS_MAX];
};

_Static_assert(sizeof(struct scan_params) == 560, "the kernel knows the layout of its parameter");

static const char ptx[] =
    ".version 6.4\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry " NAME "(.param .align 8 .b8 scan[560])\n"
    "{\n"
    "    .reg .u32 %thread, %threads, %block, %blocks;\n"
    "    .reg .u64 %at, %pairs, %first, %extent, %found, %count, %unit, %step, %from;\n"
    "    .reg .u64 %one, %two, %offset, %other, %span, %start, %size, %i;\n"
    "    .reg .pred %done, %near, %also;\n"
    "    ld.param.u64 %at, [scan];\n"
    "    ld.param.u64 %pairs, [scan+8];\n"
    "    ld.param.u64 %first, [scan+16];\n"
    "    ld.param.u64 %extent, [scan+24];\n"
    "    ld.param.u64 %found, [scan+32];\n"
    "    ld.param.u64 %count, [scan+40];\n"
    "    cvta.to.global.u64 %at, %at;\n"
    "    cvta.to.global.u64 %found, %found;\n"
    "    mov.u32 %thread, %tid.x;\n"
    "    mov.u32 %threads, %ntid.x;\n"
    "    mov.u32 %block, %ctaid.x;\n"
    "    mov.u32 %blocks, %nctaid.x;\n"
    "    mul.wide.u32 %unit, %block, %threads;\n"
    "    cvt.u64.u32 %step, %thread;\n"
    "    add.u64 %unit, %unit, %step;\n"
    "    mul.wide.u32 %step, %blocks, %threads;\n"
    "NEXT:\n"
    "    setp.ge.u64 %done, %unit, %pairs;\n"
    "    @%done bra DONE;\n"
    "    shl.b64 %from, %unit, 4;\n"
    "    add.u64 %from, %at, %from;\n"
    "    add.u64 %unit, %unit, %step;\n"
    "    ld.global.v2.u64 {%one, %two}, [%from];\n"
    "    sub.u64 %offset, %one, %first;\n"
    "    sub.u64 %other, %two, %first;\n"
    "    setp.lt.u64 %near, %offset, %extent;\n"
    "    setp.lt.u64 %also, %other, %extent;\n"
    "    or.pred %near, %near, %also;\n"
    "    @!%near bra NEXT;\n"
    "    mov.u64 %i, 0;\n"
    "    mov.u64 %span, scan;\n"
    "SPAN:\n"
    "    ld.param.u64 %start, [%span+48];\n"
    "    ld.param.u64 %size, [%span+56];\n"
    "    add.u64 %span, %span, 16;\n"
    "    sub.u64 %offset, %one, %start;\n"
    "    sub.u64 %other, %two, %start;\n"
    "    setp.lt.u64 %near, %offset, %size;\n"
    "    setp.lt.u64 %also, %other, %size;\n"
    "    @%near st.global.u64 [%found], %one;\n"
    "    @%also st.global.u64 [%found], %two;\n"
    "    add.u64 %i, %i, 1;\n"
    "    setp.lt.u64 %near, %i, %count;\n"
    "    @%near bra SPAN;\n"
    "    bra NEXT;\n"
    "DONE:\n"
    "    ret;\n"
    "}\n";

/* ---- loading ---- */

static CUresult make_places(struct device_copies *copies)
{
    return driver.cuMemAlloc_v2 ? driver.cuMemAlloc_v2(&copies->found, SCANS_MAX * sizeof(uint64_t))
                                : CUDA_ERROR_NOT_SUPPORTED;
}

void address_scan_load(struct device *device)
{
    struct device_copies *copies = device->copies;
    CUresult result = own_kernel_load(device, ptx, NAME, &copies->scan_kernel);

    if (result == CUDA_SUCCESS)
        result = make_places(copies);
    if (result == CUDA_SUCCESS)
        return;
    copies->scan_kernel = NULL;
    log_line("Device %d: programs with variables stay in their lanes, because memory cannot be "
             "searched for addresses: %s",
             device->ordinal, driver_error_name(result));
}

/* ---- a search on one device ---- */

struct scan {
    struct session *session;
    const struct device *device;
    const struct address_spans *spans;
    CUstream stream;
    CUdeviceptr found;
    uint64_t start, end; /* memory that has been visited, and for which there is no launch yet */
    CUresult result;
};

/* Partner: give_place(). */
static bool take_place(struct device_copies *copies, unsigned *ret_place)
{
    uint32_t taken = atomic_load_explicit(&copies->scans, memory_order_relaxed);

    do {
        if (taken == UINT32_MAX)
            return false;
        *ret_place = (unsigned)__builtin_ctz(~taken);
    } while (!atomic_compare_exchange_weak_explicit(&copies->scans, &taken,
                                                    taken | 1u << *ret_place, memory_order_acquire,
                                                    memory_order_relaxed));
    return true;
}

/* Partner: take_place(). */
static void give_place(struct device_copies *copies, unsigned place)
{
    atomic_fetch_and_explicit(&copies->scans, ~(1u << place), memory_order_release);
}

static CUresult launch_scan(const struct scan *scan, uint64_t at, uint64_t size)
{
    const struct address_spans *spans = scan->spans;
    const struct address_span *last = &spans->each[spans->count - 1];
    struct scan_params params = {.at = at,
                                 .pairs = size / PAIR,
                                 .first = spans->each[0].start,
                                 .extent = last->start + last->size - spans->each[0].start,
                                 .found = scan->found,
                                 .count = spans->count};
    const struct device_record *record = &scan->device->record;
    unsigned blocks =
        (unsigned)record->attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] * BLOCKS_EACH;
    uint64_t needed = (params.pairs + THREADS - 1) / THREADS;
    size_t params_size = sizeof(params);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &params, CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &params_size, CU_LAUNCH_PARAM_END};
    const CUlaunchConfig config = {.gridDimX =
                                       needed < blocks ? (unsigned)needed + !needed : blocks,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = THREADS,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .hStream = scan->stream};

    memcpy(params.spans, spans->each, sizeof(params.spans));
    return driver.cuLaunchKernelEx(&config, scan->device->copies->scan_kernel, NULL, extra);
}

/* Launches for the range that has been visited so far. */
static void end_range(struct scan *scan)
{
    while (scan->start < scan->end && scan->result == CUDA_SUCCESS) {
        uint64_t size = scan->end - scan->start;

        size = size < LAUNCH_MAX ? size : LAUNCH_MAX;
        scan->result = launch_scan(scan, scan->start, size);
        scan->start += size;
    }
}

static void visit(void *context, uint64_t address, uint64_t size)
{
    struct scan *scan = context;

    if (address != scan->end) {
        end_range(scan);
        scan->start = address;
    }
    scan->end = address + size;
}

/* Of a kernel that reads nothing. */
static CUresult await_turn(const struct scan *scan)
{
    CUresult result = launch_scan(scan, 0, 0);

    if (result == CUDA_SUCCESS)
        result = own_kernel_await(scan->stream, TURN_NS);
    if (result == CUDA_ERROR_NOT_READY)
        session_log(scan->session,
                    ": its memory is not searched for addresses, since kernels of other programs "
                    "have filled the device for %llu ms",
                    (unsigned long long)(TURN_NS / NS_PER_MS));
    return result;
}

static CUresult read_found(const struct scan *scan, uint64_t *ret_address)
{
    CUresult result = gate_close(scan->device->gate, "Searching for addresses");

    if (result != CUDA_SUCCESS)
        return result;
    result =
        driver.cuMemcpyDtoHAsync_v2(ret_address, scan->found, sizeof(*ret_address), scan->stream);
    if (result == CUDA_SUCCESS)
        result = driver.cuStreamSynchronize(scan->stream);
    gate_open(scan->device->gate);
    return result;
}

static CUresult search(struct scan *scan, bool with_host, uint64_t *ret_address)
{
    scan->result = driver.cuMemsetD8Async(scan->found, 0, sizeof(uint64_t), scan->stream);
    bool seen = memory_visit(scan->session, scan->device, with_host, visit, scan);
    end_range(scan);
    /* The memory must stay until the kernels have ended. */
    CUresult result = own_kernel_await(scan->stream, UINT64_MAX);
    if (result == CUDA_SUCCESS)
        result = scan->result;
    if (result == CUDA_SUCCESS && !seen)
        result = CUDA_ERROR_NOT_SUPPORTED;
    return result == CUDA_SUCCESS ? read_found(scan, ret_address) : result;
}

static CUresult search_in_stream(struct scan *scan, bool with_host, uint64_t *ret_address)
{
    CUresult result = driver.cuStreamCreateWithPriority(&scan->stream, CU_STREAM_NON_BLOCKING,
                                                        scan->device->record.priority_greatest);

    if (result != CUDA_SUCCESS)
        return result;
    result = await_turn(scan);
    if (result == CUDA_SUCCESS)
        result = search(scan, with_host, ret_address);
    driver.cuStreamDestroy_v2(scan->stream);
    return result;
}

static CUresult search_device(struct session *session, unsigned ordinal, bool with_host,
                              const struct address_spans *spans, uint64_t *ret_address)
{
    struct scan scan = {
        .session = session, .device = session_device(session, ordinal), .spans = spans};
    struct device_copies *copies = scan.device->copies;
    CUresult result =
        copies->scan_kernel ? session_visit(session, scan.device) : CUDA_ERROR_NOT_SUPPORTED;
    unsigned place;

    if (result != CUDA_SUCCESS)
        return result;
    if (!take_place(copies, &place))
        return CUDA_ERROR_NOT_READY;
    scan.found = copies->found + place * sizeof(uint64_t);
    result = search_in_stream(&scan, with_host, ret_address);
    give_place(copies, place);
    return result;
}

/* Any device reaches page-locked memory, so one searches it. */
CUresult address_scan(struct session *session, const struct address_spans *spans,
                      uint64_t *ret_address)
{
    uint64_t devices = session->device_mask;
    CUresult result = CUDA_SUCCESS;
    bool with_host = true;

    *ret_address = 0;
    for (unsigned i = 0; i < session->server->devices.count; i++) {
        if (!(devices >> i & 1) || result != CUDA_SUCCESS || *ret_address)
            continue;
        result = search_device(session, i, with_host, spans, ret_address);
        with_host = false;
    }
    return result;
}
