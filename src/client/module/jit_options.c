/* SPDX-License-Identifier: Apache-2.0 */
/* Reading JIT options, and filling the buffers for the compiler's log. */
#include "jit_options.h"

#include <string.h>

static void add_pair(struct jit_options *options, uint64_t name, uint64_t value)
{
    uint64_t pair[2] = {name, value};

    if (options->size + sizeof(pair) > sizeof(options->pairs))
        return;
    memcpy(options->pairs + options->size, pair, sizeof(pair));
    options->size += sizeof(pair);
}

/* Options whose value is an address mean nothing to the server. Those about buffers are handled
 * here; the others that are not sent are hints that change no result. */
static void read_option(struct jit_options *options, CUjit_option name, void **value)
{
    switch (name) {
    case CU_JIT_INFO_LOG_BUFFER:
        options->info.text = *value;
        break;
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        options->info.capacity = (unsigned)(uintptr_t)*value;
        options->info.ret_size = (unsigned *)value;
        break;
    case CU_JIT_ERROR_LOG_BUFFER:
        options->error.text = *value;
        break;
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        options->error.capacity = (unsigned)(uintptr_t)*value;
        options->error.ret_size = (unsigned *)value;
        break;
    case CU_JIT_WALL_TIME:
        options->wall_time = value;
        break;
    case CU_JIT_GLOBAL_SYMBOL_COUNT:
        options->names_symbols = *value != NULL;
        break;
    case CU_JIT_MAX_REGISTERS:
    case CU_JIT_THREADS_PER_BLOCK:
    case CU_JIT_OPTIMIZATION_LEVEL:
    case CU_JIT_TARGET_FROM_CUCONTEXT:
    case CU_JIT_TARGET:
    case CU_JIT_LOG_VERBOSE:
    case CU_JIT_FALLBACK_STRATEGY:
    case CU_JIT_GENERATE_DEBUG_INFO:
    case CU_JIT_GENERATE_LINE_INFO:
    case CU_JIT_CACHE_MODE:
        add_pair(options, name, (uint32_t)(uintptr_t)*value);
        break;
    default:
        break;
    }
}

CUresult jit_options_read(struct jit_options *options, unsigned count, CUjit_option *names,
                          void **values)
{
    memset(options, 0, sizeof(*options));
    if (count > 0 && (!names || !values))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        read_option(options, names[i], &values[i]);
    return CUDA_SUCCESS;
}

void jit_log_write(const struct jit_log *log, const char *text, uint32_t size)
{
    if (!log->text || log->capacity == 0)
        return;
    if (size >= log->capacity)
        size = log->capacity - 1;
    memcpy(log->text, text, size);
    log->text[size] = '\0';
    if (log->ret_size)
        *log->ret_size = size;
}

void jit_wall_time_write(const struct jit_options *options, float milliseconds)
{
    if (options->wall_time)
        memcpy(options->wall_time, &milliseconds, sizeof(milliseconds));
}
