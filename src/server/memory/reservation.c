/* SPDX-License-Identifier: Apache-2.0 */
#include "reservation.h"

#include "attach.h"
#include "memory_state.h"
#include "server_dispatch.h"

/* The least size of a holding, so that small reservations share them. */
#define HOLDING_LEAST (64ull << 20)

static bool within_bounds(const struct session *session, uint64_t size, uint64_t alignment)
{
    return size && size % RESERVE_GRANULARITY == 0 && alignment >= RESERVE_GRANULARITY &&
           (alignment & (alignment - 1)) == 0 &&
           size <= reserve_area_limit(&session->server->devices) &&
           session->memory->reservations.count < SESSION_RESERVATIONS_MAX;
}

static bool find_in_holding(const struct session *session, const struct range *holding,
                            const struct wire_fnReserve *in, uint64_t *ret_address)
{
    uint64_t start = in->from > holding->start ? in->from : holding->start;

    return !ranges_gap(&session->memory->reservations, start, holding->start + holding->size,
                       in->size, in->alignment, ret_address);
}

/* Finds a free range at or behind in->from in one holding; for in->from = 0 anywhere in any
 * holding. */
static bool find_place(const struct session *session, const struct wire_fnReserve *in,
                       uint64_t *ret_address)
{
    const struct range *holding;
    uint64_t at = 0;

    if (in->from) {
        holding = ranges_find(&session->memory->holdings, in->from);
        return holding && find_in_holding(session, holding, in, ret_address);
    }
    while ((holding = ranges_next(&session->memory->holdings, at))) {
        if (find_in_holding(session, holding, in, ret_address))
            return true;
        at = holding->start + 1;
    }
    return false;
}

/* A program that asks for an address may ask for the following ones, too. */
static uint64_t holding_size(const struct wire_fnReserve *in)
{
    return in->from || in->size > HOLDING_LEAST ? in->size : HOLDING_LEAST;
}

/* A driver may refuse addresses that are far up. */
static CUresult take_addresses(struct session *session, const struct wire_fnReserve *in,
                               uint64_t size, uint64_t *ret_address)
{
    struct reserve_area *area = &session->server->memory->reserve_area;
    uint64_t own = reserve_area_start(window_number(session->window));

    if (!in->from && reserve_area_take(area, own, size, in->alignment, ret_address) == CUDA_SUCCESS)
        return CUDA_SUCCESS;
    return reserve_area_take(area, in->from, size, in->alignment, ret_address);
}

static CUresult take_holding(struct session *session, const struct wire_fnReserve *in,
                             uint64_t *ret_address)
{
    struct reserve_area *area = &session->server->memory->reserve_area;
    struct session_memory *memory = session->memory;
    uint64_t share = reserve_area_limit(&session->server->devices), size = holding_size(in);

    if (size > share || memory->held_bytes > share - size ||
        memory->holdings.count >= SESSION_RESERVATIONS_MAX)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = session_visit(session, session_device(session, 0));
    if (result == CUDA_SUCCESS)
        result = take_addresses(session, in, size, ret_address);
    if (result != CUDA_SUCCESS)
        return result;
    if (ranges_add(&memory->holdings, *ret_address, size, session)) {
        reserve_area_give_back(area, *ret_address, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memory->held_bytes += size;
    return CUDA_SUCCESS;
}

CUresult serve_fnReserve(struct session *session, const struct wire_fnReserve *in,
                         struct wire_fnReserve_reply *ret)
{
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

    if (within_bounds(session, in->size, in->alignment))
        result = find_place(session, in, &ret->address) ? CUDA_SUCCESS
                                                        : take_holding(session, in, &ret->address);
    if (result != CUDA_SUCCESS) {
        session_log_error(
            session, "fnReserve: %llu more bytes of addresses, aligned to %llu, exceed the limit",
            (unsigned long long)in->size, (unsigned long long)in->alignment);
        return result;
    }
    return ranges_add(&session->memory->reservations, ret->address, in->size, session)
               ? CUDA_ERROR_OUT_OF_MEMORY
               : CUDA_SUCCESS;
}

static bool has_mapping(const struct session *session, const struct range *range)
{
    const struct range *next = ranges_next(&session->memory->mappings, range->start);

    return next && next->start - range->start < range->size;
}

CUresult serve_fnUnreserve(struct session *session, const struct wire_fnUnreserve *in)
{
    const struct range *range = ranges_find(&session->memory->reservations, in->address);

    if (!range || range->start != in->address || has_mapping(session, range)) {
        session_log_error(session, "fnUnreserve: no empty reservation begins at %#llx",
                          (unsigned long long)in->address);
        return CUDA_ERROR_INVALID_VALUE;
    }
    ranges_remove(&session->memory->reservations, in->address, NULL);
    return CUDA_SUCCESS;
}

bool reservation_covers(const struct session *session, uint64_t address, uint64_t size)
{
    const struct range *range = ranges_find(&session->memory->reservations, address);

    return size && range && size <= range->size - (address - range->start);
}

void reservations_end(struct session *session)
{
    struct reserve_area *area = &session->server->memory->reserve_area;
    const struct range *holding;

    ranges_fini(&session->memory->reservations);
    while ((holding = ranges_next(&session->memory->holdings, 0))) {
        struct range range = *holding;
        ranges_remove(&session->memory->holdings, range.start, NULL);
        reserve_area_give_back(area, range.start, range.size);
    }
    ranges_fini(&session->memory->holdings);
}
