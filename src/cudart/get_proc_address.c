/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuGetProcAddress: the newest form of a function that is not newer than the caller.
 */
#include "cudart.h"

#include <string.h>

/* The order of the table's rows. */
static int compare_entry_points(const struct entry_point *a, const struct entry_point *b)
{
    int order = strcmp(a->name, b->name);

    if (order == 0)
        order = (a->flag > b->flag) - (a->flag < b->flag);
    if (order == 0)
        order = (a->version > b->version) - (a->version < b->version);
    return order;
}

/* The last row that does not come after the wanted one, or NULL. */
static const struct entry_point *last_not_after(const struct entry_point *table, size_t count,
                                                const struct entry_point *wanted)
{
    size_t first = 0, end = count;

    while (first < end) {
        size_t middle = first + (end - first) / 2;

        if (compare_entry_points(&table[middle], wanted) <= 0)
            first = middle + 1;
        else
            end = middle;
    }
    return first ? &table[first - 1] : NULL;
}

static const struct entry_point *find_entry_point(const struct entry_point *table, size_t count,
                                                  const char *name, uint8_t flag, int version)
{
    struct entry_point wanted = {.name = name, .flag = flag, .version = version};
    const struct entry_point *row = last_not_after(table, count, &wanted);

    if (!row || row->flag != flag || strcmp(row->name, name) != 0)
        return NULL;
    return row;
}

static const struct entry_point *find_with_flag(const struct entry_point *table, size_t count,
                                                const char *name, uint8_t flag, int version)
{
    if (flag == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM &&
        find_entry_point(table, count, name, flag, INT32_MAX))
        return find_entry_point(table, count, name, flag, version);
    return find_entry_point(table, count, name, CU_GET_PROC_ADDRESS_DEFAULT, version);
}

CUresult cudart_get_proc_address(const struct entry_point *table, size_t count, const char *symbol,
                                 void **ret_function, int version, cuuint64_t flags,
                                 CUdriverProcAddressQueryResult *ret_status, int driver_version)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    const struct entry_point *row;

    if (!symbol || !ret_function || flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM ||
        version > driver_version)
        return CUDA_ERROR_INVALID_VALUE;
    row = find_with_flag(table, count, symbol, (uint8_t)flags, version);
    if (!row && find_entry_point(table, count, symbol, CU_GET_PROC_ADDRESS_DEFAULT, INT32_MAX))
        status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    else if (!row)
        status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    *ret_function = row ? row->function : NULL;
    if (ret_status)
        *ret_status = status;
    return CUDA_SUCCESS;
}
