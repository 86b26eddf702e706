/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages of an allocation are parts one behind the other, in each of which all pages have the
 * same advice. There is one part at first.
 */
#include "cuda_advice.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_managed.h"

#define PAGE 4096u
#define HOST_BIT 63

struct of_pages {
    bool read_mostly;
    CUmemLocation preferred, last_prefetch;
    uint64_t accessed_by; /* bit d: device d; the highest: the host */
};

struct part {
    uint64_t end; /* offset of the page behind its last one */
    struct of_pages pages;
};

struct cuda_advice {
    struct part *parts;
    size_t count;
};

struct cuda_advice *cuda_advice_create(uint64_t size)
{
    struct cuda_advice *advice = calloc(1, sizeof(*advice));
    struct part *first = calloc(1, sizeof(*first));

    if (!advice || !first) {
        free(advice);
        free(first);
        return NULL;
    }
    first->end = (size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    *advice = (struct cuda_advice){first, 1};
    return advice;
}

void cuda_advice_destroy(struct cuda_advice *advice)
{
    if (advice)
        free(advice->parts);
    free(advice);
}

/* ---- parts ---- */

static size_t part_at(const struct cuda_advice *advice, uint64_t offset)
{
    size_t i = 0;

    while (i + 1 < advice->count && advice->parts[i].end <= offset)
        i++;
    return i;
}

/* A part ends at this offset from now on; there is space for one more. */
static void split(struct cuda_advice *advice, uint64_t offset)
{
    size_t i = part_at(advice, offset);
    struct part *part = &advice->parts[i];

    if (offset == 0 || offset >= part->end || (i > 0 && part[-1].end == offset))
        return;
    memmove(part + 1, part, (advice->count - i) * sizeof(*part));
    part->end = offset;
    advice->count++;
}

static bool are_alike(const struct of_pages *a, const struct of_pages *b)
{
    return a->read_mostly == b->read_mostly && a->accessed_by == b->accessed_by &&
           memcmp(&a->preferred, &b->preferred, sizeof(a->preferred)) == 0 &&
           memcmp(&a->last_prefetch, &b->last_prefetch, sizeof(a->last_prefetch)) == 0;
}

static void merge(struct cuda_advice *advice)
{
    size_t kept = 0;

    for (size_t i = 1; i < advice->count; i++) {
        if (are_alike(&advice->parts[kept].pages, &advice->parts[i].pages))
            advice->parts[kept].end = advice->parts[i].end;
        else
            advice->parts[++kept] = advice->parts[i];
    }
    advice->count = kept + 1;
}

/* Makes the pages of a range parts of their own: the first of them, and how many; 0 = no memory. */
static size_t cut_parts(struct cuda_advice *advice, uint64_t offset, uint64_t size,
                        struct part **ret_first)
{
    uint64_t start = offset & ~(uint64_t)(PAGE - 1);
    uint64_t end = (offset + size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    struct part *more = realloc(advice->parts, (advice->count + 2) * sizeof(*more));
    size_t first;

    if (!more)
        return 0;
    advice->parts = more;
    split(advice, start);
    split(advice, end);
    first = part_at(advice, start);
    *ret_first = &advice->parts[first];
    return part_at(advice, end - 1) - first + 1;
}

/* ---- advice ---- */

static uint64_t bit_of(CUmemLocation location)
{
    return 1ull << (location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : HOST_BIT);
}

static void take_advice(struct of_pages *pages, CUmem_advise what, CUmemLocation location)
{
    switch (what) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
        pages->read_mostly = what == CU_MEM_ADVISE_SET_READ_MOSTLY;
        break;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        pages->preferred = location;
        break;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        pages->preferred = (CUmemLocation){0};
        break;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
        pages->accessed_by |= bit_of(location);
        break;
    default:
        pages->accessed_by &= ~bit_of(location);
    }
}

static CUresult check_advice(CUmem_advise what, CUmemLocation location, int device_count)
{
    switch (what) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY: /* these have no location */
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        return CUDA_SUCCESS;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
        return cuda_location_check(location, device_count);
    default:
        return cuda_location_check(location, device_count) == CUDA_ERROR_INVALID_DEVICE
                   ? CUDA_ERROR_INVALID_DEVICE
                   : CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuda_advice_take(struct cuda_advice *advice, uint64_t offset, uint64_t size,
                          CUmem_advise what, CUmemLocation location, int device_count)
{
    CUresult result = check_advice(what, location, device_count);
    struct part *first;
    size_t count;

    if (result != CUDA_SUCCESS)
        return result;
    count = cut_parts(advice, offset, size, &first);
    if (count == 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++)
        take_advice(&first[i].pages, what, location);
    merge(advice);
    return CUDA_SUCCESS;
}

CUresult cuda_advice_prefetched(struct cuda_advice *advice, uint64_t offset, uint64_t size,
                                CUmemLocation location)
{
    struct part *first;
    size_t count = cut_parts(advice, offset, size, &first);

    if (count == 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++)
        first[i].pages.last_prefetch = location;
    merge(advice);
    return CUDA_SUCCESS;
}

/* ---- questions ---- */

static void keep_common(CUmemLocation *location, CUmemLocation other)
{
    if (memcmp(location, &other, sizeof(other)) != 0)
        *location = (CUmemLocation){0};
}

static struct of_pages common(const struct cuda_advice *advice, uint64_t offset, uint64_t size)
{
    size_t first = part_at(advice, offset), last = part_at(advice, offset + size - 1);
    struct of_pages all = advice->parts[first].pages;

    for (size_t i = first + 1; i <= last; i++) {
        const struct of_pages *pages = &advice->parts[i].pages;

        all.read_mostly &= pages->read_mostly;
        all.accessed_by &= pages->accessed_by;
        keep_common(&all.preferred, pages->preferred);
        keep_common(&all.last_prefetch, pages->last_prefetch);
    }
    return all;
}

static int ordinal_of(CUmemLocation location)
{
    switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return location.id;
    case CU_MEM_LOCATION_TYPE_HOST:
        return CU_DEVICE_CPU;
    default:
        return CU_DEVICE_INVALID;
    }
}

/* As many as fit, and CU_DEVICE_INVALID behind them. */
static void list_accessors(uint64_t accessed_by, int *ret_list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int bit = accessed_by ? __builtin_ctzll(accessed_by) : -1;

        ret_list[i] = bit < 0 ? CU_DEVICE_INVALID : bit == HOST_BIT ? CU_DEVICE_CPU : bit;
        accessed_by &= accessed_by - 1;
    }
}

static CUresult get_word(const struct of_pages *pages, CUmem_range_attribute attribute,
                         int *ret_word)
{
    switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
        *ret_word = pages->read_mostly;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
        *ret_word = ordinal_of(pages->preferred);
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
        *ret_word = ordinal_of(pages->last_prefetch);
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
        *ret_word = (int)pages->preferred.type;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
        *ret_word = pages->preferred.id;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
        *ret_word = (int)pages->last_prefetch.type;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
        *ret_word = pages->last_prefetch.id;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuda_advice_get(const struct cuda_advice *advice, uint64_t offset, uint64_t size,
                         CUmem_range_attribute attribute, void *ret_data, size_t data_size)
{
    const struct of_pages pages = common(advice, offset, size);

    if (!ret_data || data_size == 0 || data_size % sizeof(int))
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY) {
        list_accessors(pages.accessed_by, ret_data, data_size / sizeof(int));
        return CUDA_SUCCESS;
    }
    return data_size == sizeof(int) ? get_word(&pages, attribute, ret_data)
                                    : CUDA_ERROR_INVALID_VALUE;
}
