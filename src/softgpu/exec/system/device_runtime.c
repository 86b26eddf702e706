/* SPDX-License-Identifier: Apache-2.0 */
/* See device_runtime.h. */
#include "device_runtime.h"

#include "device_error.h"
#include "space.h"
#include "system_frame.h"
#include "translate.h"

#define STREAM_TAIL_LAUNCH 3u
#define STREAM_NON_BLOCKING 1u

/* Where the heap holds what a launch asks for: in front of its parameters. A kernel may write
 * anything there, so it is checked when it is launched. */
struct launch_buffer {
    uint64_t function;
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t dynamic_shared;
    uint32_t params_size;
    uint64_t reserved;
};

_Static_assert(sizeof(struct launch_buffer) % 16 == 0, "parameters are aligned to 16 bytes");

static struct grid *grid_of(const struct warp *warp)
{
    return warp->block->grid;
}

static void set_error(struct warp *warp, uint32_t error)
{
    if (error != DEVICE_SUCCESS)
        __atomic_store_n(&grid_of(warp)->device_error, error, __ATOMIC_RELAXED);
}

static void end_call(struct warp *warp, const struct insn *insn, unsigned lane, uint32_t error)
{
    set_error(warp, error);
    frame_set_result(warp, insn->d, lane, &error, sizeof(error));
}

/* ---- launches ---- */

static void read_extent(struct warp *warp, uint32_t offset, unsigned lane, uint32_t ret_extent[3])
{
    uint64_t first = frame_argument(warp, offset, lane);

    ret_extent[0] = (uint32_t)first;
    ret_extent[1] = (uint32_t)(first >> 32);
    ret_extent[2] = (uint32_t)frame_argument(warp, offset + 8, lane);
}

static uint64_t make_buffer(struct warp *warp, const struct insn *insn, unsigned lane)
{
    struct grid *grid = grid_of(warp);
    struct launch_buffer buffer = {.function = frame_argument(warp, insn->a, lane)};

    if (!grid->child_params_size(grid, buffer.function, &buffer.params_size)) {
        set_error(warp, DEVICE_INVALID_VALUE);
        return 0;
    }
    read_extent(warp, insn->b, lane, buffer.grid);
    read_extent(warp, insn->c, lane, buffer.block);
    buffer.dynamic_shared = (uint32_t)frame_argument(warp, insn->p, lane);
    uint64_t address =
        heap_allocate(grid->launch.space, grid->launch.owner, sizeof(buffer) + buffer.params_size);
    if (!address) {
        set_error(warp, DEVICE_MEMORY_ALLOCATION);
        return 0;
    }
    memcpy((void *)(uintptr_t)address, &buffer, sizeof(buffer));
    return address + sizeof(buffer);
}

/* cudaGetParameterBufferV2(function, grid, block, dynamic shared memory) */
void run_get_parameter_buffer(struct warp *warp, const struct insn *insn)
{
    EACH_ACTIVE_LANE
    {
        uint64_t params = make_buffer(warp, insn, lane);

        frame_set_result(warp, insn->d, lane, &params, sizeof(params));
    }
}

static uint32_t launch_child(struct warp *warp, uint64_t params, uint64_t stream)
{
    struct grid *grid = grid_of(warp);
    uint64_t address = params - sizeof(struct launch_buffer);
    uint64_t readable = translate_readable(warp, address);
    struct launch_buffer buffer;

    if (readable < sizeof(buffer))
        return DEVICE_INVALID_VALUE;
    memcpy(&buffer, (const void *)(uintptr_t)address, sizeof(buffer));
    if (readable - sizeof(buffer) < buffer.params_size)
        return DEVICE_INVALID_VALUE;

    struct child_launch launch = {
        .function = buffer.function,
        .dynamic_shared = buffer.dynamic_shared,
        .params = (const void *)(uintptr_t)params,
        .params_size = buffer.params_size,
        .is_tail = stream == STREAM_TAIL_LAUNCH,
    };
    memcpy(launch.grid, buffer.grid, sizeof(launch.grid));
    memcpy(launch.block, buffer.block, sizeof(launch.block));
    uint32_t error = grid->launch_child(grid, &launch);
    return heap_release(grid->launch.space, address) ? error : DEVICE_INVALID_VALUE;
}

/* cudaLaunchDeviceV2(parameters, stream) */
void run_launch_device(struct warp *warp, const struct insn *insn)
{
    EACH_ACTIVE_LANE
    {
        uint64_t params = frame_argument(warp, insn->a, lane);
        uint64_t stream = frame_argument(warp, insn->b, lane);

        end_call(warp, insn, lane, launch_child(warp, params, stream));
    }
}

/* ---- copies ---- */

/* cudaMemcpyAsync(to, from, size, kind, stream) */
void run_device_memcpy(struct warp *warp, const struct insn *insn)
{
    EACH_ACTIVE_LANE
    {
        const struct child_copy copy = {
            .to = frame_argument(warp, insn->a, lane),
            .from = frame_argument(warp, insn->b, lane),
            .size = frame_argument(warp, insn->c, lane),
            .is_tail = frame_argument(warp, (uint32_t)insn->imm, lane) == STREAM_TAIL_LAUNCH,
        };

        end_call(warp, insn, lane, grid_of(warp)->copy_later(grid_of(warp), &copy));
    }
}

/* cudaMemsetAsync(to, value, size, stream) */
void run_device_memset(struct warp *warp, const struct insn *insn)
{
    EACH_ACTIVE_LANE
    {
        const struct child_copy copy = {
            .to = frame_argument(warp, insn->a, lane),
            .sets = true,
            .value = (uint8_t)frame_argument(warp, insn->b, lane),
            .size = frame_argument(warp, insn->c, lane),
            .is_tail = frame_argument(warp, insn->p, lane) == STREAM_TAIL_LAUNCH,
        };

        end_call(warp, insn, lane, grid_of(warp)->copy_later(grid_of(warp), &copy));
    }
}

/* ---- streams and events ---- */

static uint32_t store_handle(struct warp *warp, uint64_t address, uint64_t handle)
{
    if (address % sizeof(handle) || translate_readable(warp, address) < sizeof(handle))
        return DEVICE_INVALID_VALUE;
    memcpy((void *)(uintptr_t)address, &handle, sizeof(handle));
    return DEVICE_SUCCESS;
}

/* Beyond the numbers of the streams that there always are. */
static uint64_t new_handle(void)
{
    static uint64_t last = 0xff;

    return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

/* cudaStreamCreateWithFlags(address, flags): others than these do not exist on a device. */
void run_device_stream_create(struct warp *warp, const struct insn *insn)
{
    EACH_ACTIVE_LANE
    {
        bool possible = (uint32_t)frame_argument(warp, insn->b, lane) == STREAM_NON_BLOCKING;
        uint64_t address = frame_argument(warp, insn->a, lane);

        end_call(warp, insn, lane,
                 possible ? store_handle(warp, address, new_handle()) : DEVICE_INVALID_VALUE);
    }
}

/* cudaEventCreateWithFlags(address, flags) */
void run_device_event_create(struct warp *warp, const struct insn *insn)
{
    EACH_ACTIVE_LANE
    {
        uint64_t address = frame_argument(warp, insn->a, lane);

        end_call(warp, insn, lane, store_handle(warp, address, new_handle()));
    }
}

void run_device_success(struct warp *warp, const struct insn *insn)
{
    EACH_ACTIVE_LANE
    {
        end_call(warp, insn, lane, DEVICE_SUCCESS);
    }
}

/* ---- errors ---- */

void run_device_get_last_error(struct warp *warp, const struct insn *insn)
{
    EACH_ACTIVE_LANE
    {
        uint32_t error =
            __atomic_exchange_n(&grid_of(warp)->device_error, DEVICE_SUCCESS, __ATOMIC_RELAXED);

        frame_set_result(warp, insn->d, lane, &error, sizeof(error));
    }
}

void run_device_peek_at_last_error(struct warp *warp, const struct insn *insn)
{
    EACH_ACTIVE_LANE
    {
        uint32_t error = __atomic_load_n(&grid_of(warp)->device_error, __ATOMIC_RELAXED);

        frame_set_result(warp, insn->d, lane, &error, sizeof(error));
    }
}

/* The errors that the functions here return; the last is for all others. */
static const struct error_text {
    uint32_t error;
    char name[44];
    char text[48];
} error_texts[] = {
    {DEVICE_SUCCESS, "cudaSuccess", "no error"},
    {DEVICE_INVALID_VALUE, "cudaErrorInvalidValue", "invalid argument"},
    {DEVICE_MEMORY_ALLOCATION, "cudaErrorMemoryAllocation", "out of memory"},
    {DEVICE_INVALID_CONFIGURATION, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {DEVICE_LAUNCH_MAX_DEPTH_EXCEEDED, "cudaErrorLaunchMaxDepthExceeded",
     "launch would exceed maximum depth"},
    {DEVICE_LAUNCH_PENDING_COUNT_EXCEEDED, "cudaErrorLaunchPendingCountExceeded",
     "too many launches are pending"},
    {DEVICE_LAUNCH_OUT_OF_RESOURCES, "cudaErrorLaunchOutOfResources",
     "too many resources requested for launch"},
    {0, "unrecognized error code", "unrecognized error code"},
};

/* Kernels read the texts where they are. */
static const struct error_text *text_of(const struct warp *warp, uint32_t error)
{
    const struct error_text *text = error_texts;
    const struct error_text *last = text + sizeof(error_texts) / sizeof(error_texts[0]) - 1;
    struct sg_space *space = warp->block->grid->launch.space;
    struct range_cache range;

    if (!space_lookup(space, (uintptr_t)error_texts, &range))
        sg_space_add(space, (uintptr_t)error_texts, sizeof(error_texts), SG_READ);
    while (text != last && text->error != error)
        text++;
    return text;
}

void run_device_get_error_name(struct warp *warp, const struct insn *insn)
{
    EACH_ACTIVE_LANE
    {
        uint64_t name =
            (uintptr_t)text_of(warp, (uint32_t)frame_argument(warp, insn->a, lane))->name;

        frame_set_result(warp, insn->d, lane, &name, sizeof(name));
    }
}

void run_device_get_error_string(struct warp *warp, const struct insn *insn)
{
    EACH_ACTIVE_LANE
    {
        uint64_t text =
            (uintptr_t)text_of(warp, (uint32_t)frame_argument(warp, insn->a, lane))->text;

        frame_set_result(warp, insn->d, lane, &text, sizeof(text));
    }
}

/* ---- memory ---- */

/* cudaMalloc(address, size), which takes from the heap of the kernels' malloc */
void run_device_malloc(struct warp *warp, const struct insn *insn)
{
    EACH_ACTIVE_LANE
    {
        uint64_t size = frame_argument(warp, insn->b, lane);
        uint64_t memory =
            heap_allocate(grid_of(warp)->launch.space, grid_of(warp)->launch.owner, size);
        uint32_t error = memory || !size ? DEVICE_SUCCESS : DEVICE_MEMORY_ALLOCATION;

        if (error == DEVICE_SUCCESS)
            error = store_handle(warp, frame_argument(warp, insn->a, lane), memory);
        if (error != DEVICE_SUCCESS && memory)
            heap_release(grid_of(warp)->launch.space, memory);
        end_call(warp, insn, lane, error);
    }
}

/* cudaFree(address) */
void run_device_free(struct warp *warp, const struct insn *insn)
{
    EACH_ACTIVE_LANE
    {
        uint64_t memory = frame_argument(warp, insn->a, lane);
        bool freed = !memory || heap_release(grid_of(warp)->launch.space, memory);

        end_call(warp, insn, lane, freed ? DEVICE_SUCCESS : DEVICE_INVALID_VALUE);
    }
}
