/* SPDX-License-Identifier: Apache-2.0 */
/* See window_claim.h. The servers of one user share one table: an entry belongs to the server that
 * has set its state to CLAIM_BUSY. */
#include "window_claim.h"

#include <unistd.h>

#include "claims.h"
#include "hello.h"
#include "process_stat.h"
#include "shm.h"

struct claims *window_claims_open(int fd)
{
    void *address;
    int own = -1;

    if (shm_check(fd, sizeof(struct claims)) &&
        shm_create("funnel-claims", sizeof(struct claims), &own))
        return NULL;
    if (shm_map(own >= 0 ? own : fd, sizeof(struct claims), NULL, 0, &address))
        address = NULL;
    if (own >= 0)
        close(own);
    return address;
}

/* Takes the same time for every pair, so that a client cannot guess byte by byte. */
static bool is_same_token(const uint8_t *a, const uint8_t *b)
{
    uint8_t differences = 0;

    for (unsigned i = 0; i < HELLO_TOKEN_SIZE; i++)
        differences |= a[i] ^ b[i];
    return differences == 0;
}

static bool is_empty(const uint8_t token[HELLO_TOKEN_SIZE])
{
    static const uint8_t none[HELLO_TOKEN_SIZE];

    return is_same_token(token, none);
}

/* Pairs with set_state(), which stores the state after the rest. */
static bool is_set(const struct claim *claim)
{
    return atomic_load_explicit(&claim->state, memory_order_acquire) == CLAIM_SET;
}

static bool take_place(struct claim *claim, uint32_t from)
{
    return atomic_compare_exchange_strong(&claim->state, &from, CLAIM_BUSY);
}

/* Publishes an entry that take_place() has taken. */
static void set_state(struct claim *claim, enum claim_state state)
{
    atomic_store_explicit(&claim->state, state, memory_order_release);
}

static void read_token(const struct claim *claim, uint8_t token[HELLO_TOKEN_SIZE])
{
    for (unsigned i = 0; i < HELLO_TOKEN_SIZE; i++)
        token[i] = atomic_load_explicit(&claim->token[i], memory_order_relaxed);
}

static void write_token(struct claim *claim, const uint8_t token[HELLO_TOKEN_SIZE])
{
    for (unsigned i = 0; i < HELLO_TOKEN_SIZE; i++)
        atomic_store_explicit(&claim->token[i], token[i], memory_order_relaxed);
}

static bool is_at(const struct claim *claim, uint64_t base)
{
    return atomic_load_explicit(&claim->base, memory_order_relaxed) == base;
}

static bool is_claim_of(const struct claim *claim, const uint8_t token[HELLO_TOKEN_SIZE],
                        uint64_t base)
{
    uint8_t its[HELLO_TOKEN_SIZE];

    read_token(claim, its);
    return is_at(claim, base) && is_same_token(its, token);
}

static struct claim *find_claim(struct claims *claims, const uint8_t token[HELLO_TOKEN_SIZE],
                                uint64_t base)
{
    if (!claims || is_empty(token))
        return NULL;
    for (unsigned i = 0; i < CLAIMS_MAX; i++) {
        struct claim *claim = &claims->claim[i];

        if (is_set(claim) && is_claim_of(claim, token, base))
            return claim;
    }
    return NULL;
}

bool window_claim_is_proven(struct claims *claims, const uint8_t token[HELLO_TOKEN_SIZE],
                            uint64_t base)
{
    return find_claim(claims, token, base);
}

/* Clients that never return leave stale claims. */
static bool is_stale(const struct claim *claim)
{
    return process_is_gone(atomic_load_explicit(&claim->pid, memory_order_relaxed));
}

bool window_claim_exists(struct claims *claims, uint64_t base)
{
    for (unsigned i = 0; claims && i < CLAIMS_MAX; i++) {
        const struct claim *claim = &claims->claim[i];

        if (is_set(claim) && is_at(claim, base) && !is_stale(claim))
            return true;
    }
    return false;
}

/* Another server must find the claim of a living client at any time, so that is never taken. */
static struct claim *take_free(struct claims *claims)
{
    for (unsigned i = 0; i < CLAIMS_MAX; i++)
        if (take_place(&claims->claim[i], CLAIM_FREE))
            return &claims->claim[i];
    for (unsigned i = 0; i < CLAIMS_MAX; i++) {
        struct claim *claim = &claims->claim[i];

        if (!is_set(claim) || !is_stale(claim) || !take_place(claim, CLAIM_SET))
            continue;
        if (is_stale(claim))
            return claim;
        set_state(claim, CLAIM_SET);
    }
    return NULL;
}

static bool is_of_process(const struct claim *claim, int32_t pid)
{
    return is_set(claim) && atomic_load_explicit(&claim->pid, memory_order_relaxed) == pid;
}

static struct claim *find_of_process(struct claims *claims, int32_t pid, unsigned *ret_count)
{
    struct claim *first = NULL;

    *ret_count = 0;
    for (unsigned i = 0; i < CLAIMS_MAX; i++) {
        if (!is_of_process(&claims->claim[i], pid))
            continue;
        first = first ? first : &claims->claim[i];
        ++*ret_count;
    }
    return first;
}

/* A process can leave claims behind while it lives: it gets the grant of a move, and never arrives.
 * So beyond some it loses one of its own, and not the place of another process. */
static struct claim *take_of_process(struct claims *claims, int32_t pid)
{
    unsigned count;
    struct claim *claim = pid > 0 ? find_of_process(claims, pid, &count) : NULL;

    if (!claim || count < CLAIMS_OF_PROCESS || !take_place(claim, CLAIM_SET))
        return NULL;
    if (atomic_load_explicit(&claim->pid, memory_order_relaxed) == pid)
        return claim;
    set_state(claim, CLAIM_SET);
    return NULL;
}

void window_claim_set(struct claims *claims, const uint8_t token[HELLO_TOKEN_SIZE], uint64_t base,
                      int32_t pid)
{
    if (!claims || is_empty(token) || find_claim(claims, token, base))
        return;
    struct claim *claim = take_of_process(claims, pid);
    if (!claim)
        claim = take_free(claims);
    if (!claim)
        return;
    atomic_store_explicit(&claim->pid, pid, memory_order_relaxed);
    atomic_store_explicit(&claim->base, base, memory_order_relaxed);
    write_token(claim, token);
    set_state(claim, CLAIM_SET);
}

/* None whose entry changes just now: its server enters it here itself. */
void window_claims_copy(struct claims *claims, struct claims *earlier)
{
    for (unsigned i = 0; earlier && i < CLAIMS_MAX; i++) {
        const struct claim *claim = &earlier->claim[i];
        uint8_t token[HELLO_TOKEN_SIZE];

        if (!is_set(claim) || is_stale(claim))
            continue;
        read_token(claim, token);
        window_claim_set(claims, token, claim->base, claim->pid);
    }
}

/* The client may have ended, and another one may have got the entry since it was found. */
void window_claim_drop(struct claims *claims, const uint8_t token[HELLO_TOKEN_SIZE], uint64_t base)
{
    static const uint8_t none[HELLO_TOKEN_SIZE];
    struct claim *claim = find_claim(claims, token, base);

    if (!claim || !take_place(claim, CLAIM_SET))
        return;
    bool own = is_claim_of(claim, token, base);
    if (own)
        write_token(claim, none);
    set_state(claim, own ? CLAIM_FREE : CLAIM_SET);
}
