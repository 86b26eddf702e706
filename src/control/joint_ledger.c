/* SPDX-License-Identifier: Apache-2.0 */
/* See joint_ledger.h. A row belongs to the server whose number is in it. */
#include "joint_ledger.h"

#include <string.h>

#include "hash.h"
#include "process_stat.h"

#define DROPPING (-1) /* in place of the server, while its row is emptied */

/* Who finds another group with the same key can only count with that of the same user. */
uint64_t joint_key(uint32_t uid, const char *group)
{
    const uint64_t parts[] = {uid, hash_bytes(group, strlen(group))};
    uint64_t hash = hash_bytes(parts, sizeof(parts));

    return hash ? hash : 1;
}

unsigned joint_ledger_column(struct joint_ledger *ledger, const uint8_t uuid[16])
{
    uint64_t name;

    memcpy(&name, uuid, sizeof(name));
    name = name ? name : 1;
    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++) {
        uint64_t free = 0;

        if (atomic_load(&ledger->device[i]) == name ||
            atomic_compare_exchange_strong(&ledger->device[i], &free, name) || free == name)
            return i;
    }
    return SERVER_MAX_DEVICES - 1;
}

static uint32_t rows_taken(const struct joint_ledger *ledger)
{
    uint32_t rows = atomic_load(&ledger->rows);

    return rows < JOINT_ROWS ? rows : JOINT_ROWS;
}

/* Others add up the rows below that number. */
static void note_row(struct joint_ledger *ledger, uint32_t row)
{
    uint32_t rows = atomic_load(&ledger->rows);

    while (rows <= row && !atomic_compare_exchange_weak(&ledger->rows, &rows, row + 1))
        ;
}

struct joint_row *joint_ledger_take(struct joint_ledger *ledger, int32_t pid)
{
    for (uint32_t i = 0; i < JOINT_ROWS; i++) {
        int32_t free = 0;

        if (!atomic_compare_exchange_strong(&ledger->row[i].server, &free, pid))
            continue;
        note_row(ledger, i);
        return &ledger->row[i];
    }
    return NULL;
}

static void empty_row(struct joint_row *row)
{
    for (unsigned i = 0; i < JOINT_LIMITS; i++)
        atomic_store(&row->key[i], 0);
    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++)
        atomic_store(&row->used[i], 0);
    atomic_store(&row->server, 0);
}

void joint_ledger_give_back(struct joint_row *row)
{
    empty_row(row);
}

uint64_t joint_ledger_sum(const struct joint_ledger *ledger, unsigned limit, uint64_t key,
                          unsigned column)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < rows_taken(ledger); i++)
        if (atomic_load(&ledger->row[i].key[limit]) == key)
            sum += atomic_load(&ledger->row[i].used[column]);
    return sum;
}

/* Two that drop a row at a time must not empty it when the next server has it. */
static bool drop_row(struct joint_row *row, int32_t server)
{
    if (!atomic_compare_exchange_strong(&row->server, &server, DROPPING))
        return false;
    empty_row(row);
    return true;
}

bool joint_ledger_drop_dead(struct joint_ledger *ledger)
{
    bool any = false;

    for (uint32_t i = 0; i < rows_taken(ledger); i++) {
        int32_t server = atomic_load(&ledger->row[i].server);

        any |= process_is_gone(server) && drop_row(&ledger->row[i], server);
    }
    return any;
}
