/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handlers of loads, stores, copies and atomic operations that are compiled for the CPU at
 * hand.
 */
#include "async_copy.h"
#include "atomics.h"
#include "isa.h"
#include "load_store.h"

const struct access_handlers *access_handlers(enum access_kind kind)
{
    static const struct access_handlers *const tables[] = ISA_TABLE(access_handlers);
    return &tables[isa_best()][kind];
}

team_handler_fn access_team_handler(handler_fn run)
{
    for (enum access_kind kind = 0; kind < ACCESS_COUNT; kind++) {
        const struct access_handlers *handlers = access_handlers(kind);
        if (handlers->load.run == run)
            return handlers->load.in_team;
        if (handlers->store.run == run)
            return handlers->store.in_team;
    }
    return NULL;
}

static const struct atomic_row *atomic_row(enum ptx_type type)
{
    static const struct atomic_row *const tables[] = ISA_TABLE(atomic_rows);
    return &tables[isa_best()][type];
}

handler_fn atomic_handler(enum atomic_op op, enum ptx_type type)
{
    const struct atomic_row *row = atomic_row(type);
    return row->allowed >> op & 1 ? row->run : NULL;
}

void atomic_reduce(enum atomic_op op, enum ptx_type type, void *to, const void *from, uint32_t size)
{
    const struct atomic_row *row = atomic_row(type);
    unsigned step = ptx_type_size(type);
    for (uint32_t at = 0; at < size; at += step)
        row->reduce((unsigned char *)to + at, op, (const unsigned char *)from + at);
}

handler_fn copy_async_handler(void)
{
    const handler_fn handlers[] = ISA_TABLE(copy_async);
    return handlers[isa_best()];
}
