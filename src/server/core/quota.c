/* SPDX-License-Identifier: Apache-2.0 */
/* See quota.h. */
#include "quota.h"

#include "log.h"
#include "session.h"

static struct {
    atomic_uint_fast64_t value[QUOTA_COUNT];
} table;

void server_quotas_set(const struct quotas *quotas)
{
    for (unsigned i = 0; i < QUOTA_COUNT; i++)
        atomic_store_explicit(&table.value[i], quotas->value[i], memory_order_relaxed);
}

int server_quotas_init(const char *changes)
{
    char reason[QUOTA_REASON_MAX];
    struct quotas quotas;

    quotas_init(&quotas);
    int error = changes ? quotas_change(&quotas, changes, reason) : 0;
    if (error)
        log_line("FUNNEL_QUOTAS: %s", reason);
    else
        server_quotas_set(&quotas);
    return error;
}

uint64_t quota(enum quota which)
{
    return atomic_load_explicit(&table.value[which], memory_order_relaxed);
}

uint64_t quota_held(const struct session *session, enum quota which)
{
    return atomic_load_explicit(&session->quotas.held[which], memory_order_relaxed);
}

void quota_note(struct session *session, enum quota which, uint64_t held)
{
    atomic_store_explicit(&session->quotas.held[which], held, memory_order_relaxed);
}

bool quota_allows(struct session *session, enum quota which, uint64_t more)
{
    const struct quota_row *row = &quota_rows[which];
    uint64_t most = quota(which), held = quota_held(session, which);
    char has[QUOTA_TEXT_MAX], wants[QUOTA_TEXT_MAX], may[QUOTA_TEXT_MAX];

    if (more <= most && held <= most - more)
        return true;
    atomic_fetch_add_explicit(&session->quotas.refused, 1, memory_order_relaxed);
    quota_value_text(row->unit, held, has);
    quota_value_text(row->unit, more, wants);
    quota_value_text(row->unit, most, may);
    session_log_error(session, "%s: it has %s, wants %s more, and the quota %s is %s", row->about,
                      has, wants, row->name, may);
    return false;
}

void quota_add(struct session *session, enum quota which, uint64_t amount)
{
    quota_note(session, which, quota_held(session, which) + amount);
}

bool quota_take(struct session *session, enum quota which, uint64_t amount)
{
    bool may = quota_allows(session, which, amount);

    if (may)
        quota_add(session, which, amount);
    return may;
}

void quota_give(struct session *session, enum quota which, uint64_t amount)
{
    quota_note(session, which, quota_held(session, which) - amount);
}
