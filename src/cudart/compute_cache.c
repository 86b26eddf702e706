/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's cache of compiled code, as NVRTC and nvJitLink use it. They make a key of all inputs
 * of a compilation and look its result up. Without a result they compile, and add it.
 */
#include "tables.h"

#include <stdlib.h>
#include <string.h>

#include "compute_store.h"

#define SOURCE_MAX (256u << 20)

/* The key holds the numbers and the option strings, and then the inputs of the compilation, back to
 * back. */
struct numbers {
    uint32_t kind, sm, flags, source_size;
};

static char *append_bytes(char *to, const void *bytes, size_t size)
{
    memcpy(to, bytes, size);
    return to + size;
}

static size_t size_of(const char *text)
{
    return text ? strlen(text) + 1 : 1;
}

static char *append_text(char *to, const char *text)
{
    return append_bytes(to, text ? text : "", size_of(text));
}

/* The source is LLVM bitcode, PTX or machine code. `kind` is the kind of the result, `host` the
 * kind of machine, and `compiler` the date of the compiler. */
static CUresult create_key(struct compute_key **ret_key, uint32_t kind, const void *source,
                           size_t size, const char *options, const char *host, const char *compiler,
                           uint32_t sm, uint32_t flags)
{
    const struct numbers numbers = {kind, sm, flags, (uint32_t)size};
    size_t all = sizeof(numbers) + size_of(options) + size_of(host) + size_of(compiler) + size;

    if (!ret_key || !source || size > SOURCE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (compute_store_is_off())
        return CUDA_ERROR_NOT_SUPPORTED;
    struct compute_key *key = malloc(sizeof(*key) + all);
    if (!key)
        return CUDA_ERROR_OUT_OF_MEMORY;
    key->size = all;
    char *end = append_bytes(key->bytes, &numbers, sizeof(numbers));
    end = append_text(append_text(append_text(end, options), host), compiler);
    append_bytes(end, source, size);
    *ret_key = key;
    return CUDA_SUCCESS;
}

static CUresult destroy_key(struct compute_key *key)
{
    free(key);
    return CUDA_SUCCESS;
}

/* The caller frees the data by the last function of the table. */
static CUresult find_code(const struct compute_key *key, uint32_t flags, void **ret_data,
                          uint32_t *ret_size)
{
    if (!key || !ret_data || !ret_size)
        return CUDA_ERROR_INVALID_VALUE;
    return compute_store_find(key, ret_data, ret_size) == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult add_code(const struct compute_key *key, uint32_t flags, const void *data,
                         uint32_t size)
{
    if (!key || !data)
        return CUDA_ERROR_INVALID_VALUE;
    return compute_store_add(key, data, size) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

static CUresult free_data(void *data)
{
    free(data);
    return CUDA_SUCCESS;
}

const table_word compute_cache_table[7] = {
    [0] = TABLE_SIZE(7), [1] = create_key,   [2] = destroy_key, [3] = find_code,
    [4] = add_code,      [5] = UNKNOWN_SLOT, [6] = free_data,
};
