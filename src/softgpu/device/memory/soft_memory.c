/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The register of memory, and the pages behind it.
 */
#include "soft_memory.h"
#include "pool_calls.h"
#include "soft_pool.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ipc_file.h"
#include "ranges.h"
#include "soft_arena.h"
#include "soft_context.h"

/* The hardware rounds allocations up, and programs read a little past the end of their own. */
#define ALLOCATION_UNIT 512ull

#define NOT_IN_ARENA UINT64_MAX

/* Above position-independent programs, below the libraries. */
#define SHARED_VARIABLES_FROM 0x600000000000ull

static struct ranges all_memory;
static unsigned long long last_id;

static uint64_t round_up(uint64_t size, uint64_t unit)
{
    return (size + unit - 1) & ~(unit - 1);
}

bool memory_is_host(const struct memory *memory)
{
    return memory->kind == MEMORY_HOST || memory->kind == MEMORY_REGISTERED;
}

bool memory_is_managed(const struct memory *memory)
{
    return memory->kind == MEMORY_MANAGED || memory->kind == MEMORY_SHARED_VARIABLE;
}

static bool owns_pages(const struct memory *memory)
{
    return memory->kind == MEMORY_DEVICE || memory->kind == MEMORY_MANAGED ||
           memory->kind == MEMORY_HOST || memory->kind == MEMORY_VARIABLE ||
           memory->kind == MEMORY_IMPORTED;
}

/* There may be more managed memory than the device has, but where that has to have all of it. */
static bool is_charged(enum memory_kind kind)
{
    return kind == MEMORY_DEVICE || kind == MEMORY_VARIABLE ||
           (kind == MEMORY_MANAGED && managed_takes_turns());
}

/* Host memory, managed memory and mapped memory are every context's. */
static bool is_shared(const struct memory *memory)
{
    return memory_is_host(memory) || memory_is_managed(memory) || memory->kind == MEMORY_MAPPED;
}

static struct context *audience(const struct memory *memory)
{
    return is_shared(memory) ? NULL : memory->context;
}

static uint64_t reach(const struct memory *memory)
{
    return owns_pages(memory) ? round_up(memory->size, ALLOCATION_UNIT) : memory->size;
}

void memory_set_access_locked(struct memory *memory, unsigned access)
{
    if (memory->access)
        contexts_retract_locked(audience(memory), memory->address);
    memory->access = access;
    if (access)
        contexts_publish_locked(audience(memory), memory->address, reach(memory), access);
}

CUresult memory_enter_locked(struct context *context, enum memory_kind kind, uint64_t address,
                             uint64_t size, unsigned access, struct memory **ret_memory)
{
    struct memory *memory = calloc(1, sizeof(*memory));

    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *memory = (struct memory){
        .kind = kind,
        .address = address,
        .size = size,
        .id = ++last_id,
        .context = context,
        .arena_offset = NOT_IN_ARENA,
        .ipc_slot = -1,
    };
    list_init(&memory->in_context);
    if (context)
        memory->device = context->device;
    if (ranges_add(&all_memory, address, reach(memory), memory)) {
        free(memory);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (context)
        list_append(&context->memory, &memory->in_context);
    memory_set_access_locked(memory, access);
    *ret_memory = memory;
    return CUDA_SUCCESS;
}

static void *map_fresh(void *place, uint64_t size)
{
    void *pages = mmap(place, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return pages == MAP_FAILED ? NULL : pages;
}

/* Funnel's client needs a library's managed variables at the same addresses in its process, so they
 * are where few programs have anything. */
void *memory_map_variables_locked(uint64_t size)
{
    static uint64_t next = SHARED_VARIABLES_FROM;
    uint64_t place = next;

    next += memory_mapped_size(size);
    return map_fresh((void *)(uintptr_t)place, memory_mapped_size(size));
}

void memory_unmap_variables(void *pages, uint64_t size)
{
    munmap(pages, memory_mapped_size(size));
}

/* Device memory comes from the arena, so that it can be shown to other processes. */
static void *map_pages_locked(enum memory_kind kind, uint64_t size, uint64_t *ret_offset)
{
    void *pages = kind == MEMORY_DEVICE ? arena_map_locked(size, ret_offset) : NULL;

    if (pages)
        return pages;
    *ret_offset = NOT_IN_ARENA;
    return map_fresh(NULL, size);
}

static void unmap_pages_locked(void *pages, uint64_t size, uint64_t offset)
{
    if (offset == NOT_IN_ARENA)
        munmap(pages, size);
    else
        arena_unmap_locked(pages, size, offset);
}

uint64_t memory_mapped_size(uint64_t size)
{
    return round_up(size, sysconf(_SC_PAGESIZE));
}

bool memory_is_in_arena(const struct memory *memory)
{
    return memory->arena_offset != NOT_IN_ARENA;
}

CUresult memory_allocate_locked(struct context *context, enum memory_kind kind, uint64_t size,
                                struct memory **ret_memory)
{
    uint64_t charge = is_charged(kind) ? round_up(size, ALLOCATION_UNIT) : 0;
    uint64_t mapped = memory_mapped_size(size), offset;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    void *pages;

    if (size == 0 || size > INT64_MAX || charge > context->device->memory_size)
        return size ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    if (!device_charge_locked(context->device, charge))
        return CUDA_ERROR_OUT_OF_MEMORY;
    pages = map_pages_locked(kind, mapped, &offset);
    if (pages)
        result = memory_enter_locked(context, kind, (uintptr_t)pages, size, SG_READ | SG_WRITE,
                                     ret_memory);
    if (result) {
        if (pages)
            unmap_pages_locked(pages, mapped, offset);
        device_refund_locked(context->device, charge);
        return result;
    }
    (*ret_memory)->charged = charge;
    (*ret_memory)->arena_offset = offset;
    return CUDA_SUCCESS;
}

void memory_leave_context_locked(struct memory *memory)
{
    list_remove(&memory->in_context);
    memory->context = NULL;
}

void memory_free_locked(struct memory *memory)
{
    memory_set_access_locked(memory, 0);
    ipc_forget_memory_locked(memory);
    ranges_remove(&all_memory, memory->address, NULL);
    list_remove(&memory->in_context);
    if (memory->charged)
        device_refund_locked(memory->device, memory->charged);
    if (memory->pool)
        pool_refund_locked(memory->pool, memory->size, memory->charged);
    if (owns_pages(memory))
        unmap_pages_locked((void *)memory->address, memory_mapped_size(memory->size),
                           memory->arena_offset);
    cuda_advice_destroy(memory->advice);
    free(memory);
}

struct memory *memory_find_locked(uint64_t address)
{
    const struct range *range = ranges_find(&all_memory, address);

    return range ? range->value : NULL;
}

bool memory_extent_locked(const struct memory *memory, uint64_t address, uint64_t *ret_start,
                          uint64_t *ret_size)
{
    if (memory->variable_at_locked)
        return memory->variable_at_locked(memory, address, ret_start, ret_size);
    *ret_start = memory->address;
    *ret_size = memory->size;
    return address - memory->address < memory->size;
}

struct memory *memory_next_locked(uint64_t address)
{
    const struct range *range = ranges_next(&all_memory, address);

    return range ? range->value : NULL;
}

/* Like NVIDIA's driver: a copy goes from one mapping of a reservation into the next. It goes past
 * the end of no other memory, whatever lies behind it. */
static bool continues(const struct memory *before, const struct memory *memory)
{
    return before->kind == MEMORY_MAPPED && memory->kind == MEMORY_MAPPED;
}

uint64_t memory_covered_locked(uint64_t address, uint64_t size)
{
    const struct memory *before = NULL;
    uint64_t covered = 0;

    while (covered < size) {
        const struct range *range = ranges_find(&all_memory, address + covered);

        if (!range || (before && !continues(before, range->value)))
            return covered;
        uint64_t here = range->start + range->size - (address + covered);
        covered += here < size - covered ? here : size - covered;
        before = range->value;
    }
    return size;
}

bool memory_covers_locked(uint64_t address, uint64_t size)
{
    return memory_covered_locked(address, size) == size;
}

bool memory_overlaps_locked(uint64_t address, uint64_t size)
{
    const struct range *next = ranges_next(&all_memory, address);

    return ranges_find(&all_memory, address) || (next && next->start - address < size);
}

void memory_show_shared_locked(struct context *context)
{
    const struct range *range = ranges_next(&all_memory, 0);

    for (; range; range = ranges_next(&all_memory, range->start + 1)) {
        struct memory *memory = range->value;

        if (is_shared(memory) && memory->access)
            sg_space_add(context->space, memory->address, reach(memory), memory->access);
    }
}

void memory_show_peer_locked(struct context *owner, struct context *context)
{
    list_for_each (struct memory, memory, &owner->memory, in_context) {
        if (!is_shared(memory) && memory->access)
            sg_space_add(context->space, memory->address, reach(memory), memory->access);
    }
}

void memory_hide_peer_locked(struct context *owner, struct context *context)
{
    list_for_each (struct memory, memory, &owner->memory, in_context) {
        if (!is_shared(memory))
            sg_space_remove(context->space, memory->address);
    }
}

void memory_drop_context_locked(struct context *context)
{
    list_for_each_safe (struct memory, memory, &context->memory, in_context)
        memory_free_locked(memory);
}
