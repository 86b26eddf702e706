/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a profiler hooks into libcudart, which reads a flag for each of its entry points. It calls
 * a hook only where the flag is set. The flags of entry points are set while there is a profiler,
 * and those of calls with variables always. Those of resources never are.
 */
#include "cudart.h"
#include "tables.h"

#include <stdatomic.h>

#define API_FLAGS 1024u

/* Counted in flags, not bytes; libcudart 13.0 insists on more than 522 and 13. */
static _Atomic uint32_t api_flags[API_FLAGS];
static uint32_t resource_flags[14];

/* What libcudart says of a call; it is as long as `size` says. */
struct api_call {
    uint32_t size, reserved;
    uint64_t context_id, stream_id, reserved2;
    uint64_t *data; /* of the profiler, the same at both ends of the call */
    const void *result;
    const char *name;
    const void *arguments;
    CUcontext context;
    CUstream stream;
    uint32_t id;
    uint32_t exits; /* 0 = the call begins */
    const char *symbol;
};

static void (*_Atomic profiler)(const struct cudart_call *call);
static void (*watch_symbol)(enum cudart_symbol symbol, const struct cudart_call *call);

/* The calls with variables as of CUDA 13.0. A call that came later may be one, too. */
#define KNOWN_CALLS 524u

static const struct symbol_calls {
    uint16_t first, last;
    uint8_t symbol;
} symbol_calls[] = {
    {39, 39, CUDART_SYMBOL_COPY_TO},   {40, 40, CUDART_SYMBOL_COPY_FROM},
    {47, 47, CUDART_SYMBOL_COPY_TO},   {48, 48, CUDART_SYMBOL_COPY_FROM},
    {53, 53, CUDART_SYMBOL_ADDRESS},   {54, 54, CUDART_SYMBOL_SIZE},
    {223, 223, CUDART_SYMBOL_COPY_TO}, {224, 224, CUDART_SYMBOL_COPY_FROM},
    {231, 231, CUDART_SYMBOL_COPY_TO}, {232, 232, CUDART_SYMBOL_COPY_FROM},
    {350, 351, CUDART_SYMBOL_NODE},    {353, 354, CUDART_SYMBOL_NODE},
    {356, 357, CUDART_SYMBOL_NODE},    {KNOWN_CALLS, API_FLAGS - 1, CUDART_SYMBOL_NODE},
};

static const struct symbol_calls *find_symbol_calls(uint32_t id)
{
    for (size_t i = 0; i < sizeof(symbol_calls) / sizeof(*symbol_calls); i++)
        if (id >= symbol_calls[i].first && id <= symbol_calls[i].last)
            return &symbol_calls[i];
    return NULL;
}

static void pass_on(const struct cudart_call *call)
{
    const struct symbol_calls *symbols = watch_symbol ? find_symbol_calls(call->id) : NULL;
    void (*hook)(const struct cudart_call *) =
        atomic_load_explicit(&profiler, memory_order_acquire);

    if (symbols)
        watch_symbol((enum cudart_symbol)symbols->symbol, call);
    if (hook)
        hook(call);
}

/* `id` is CUPTI's number of the entry point. */
static void on_api_call(uint32_t id, void *parameters)
{
    const struct api_call *given = parameters;

    if (given->size < sizeof(*given))
        return;
    pass_on(&(struct cudart_call){
        .id = id,
        .exits = given->exits != 0,
        .name = given->name,
        .arguments = given->arguments,
        .result = given->exits ? given->result : NULL,
        .stream = given->stream,
        .symbol = given->symbol,
    });
}

void cudart_observe(void (*hook)(const struct cudart_call *call))
{
    if (hook)
        atomic_store_explicit(&profiler, hook, memory_order_release);
    for (unsigned i = 1; i < API_FLAGS; i++)
        atomic_store_explicit(&api_flags[i], hook || (watch_symbol && find_symbol_calls(i)),
                              memory_order_relaxed);
    if (!hook)
        atomic_store_explicit(&profiler, NULL, memory_order_release);
}

void cudart_watch_symbols(void (*hook)(enum cudart_symbol symbol, const struct cudart_call *call))
{
    watch_symbol = hook;
    for (unsigned i = 1; i < API_FLAGS; i++)
        if (find_symbol_calls(i))
            atomic_store_explicit(&api_flags[i], 1, memory_order_relaxed);
}

static void get_api_flags(uint32_t **ret_flags, size_t *ret_count)
{
    *ret_flags = (uint32_t *)api_flags;
    *ret_count = sizeof(api_flags) / sizeof(api_flags[0]);
}

static void describe_stream(CUcontext context, CUstream stream, uint64_t *ret_id)
{
}

static void describe_context(CUcontext context, uint32_t *ret_id)
{
}

static void on_resource_event(uint32_t id, void *parameters)
{
}

static void get_resource_flags(uint32_t **ret_flags, size_t *ret_count)
{
    *ret_flags = resource_flags;
    *ret_count = sizeof(resource_flags) / sizeof(resource_flags[0]);
}

const table_word callback_hooks_table[7] = {
    TABLE_SIZE(7),    on_api_call,       get_api_flags,      describe_stream,
    describe_context, on_resource_event, get_resource_flags,
};
