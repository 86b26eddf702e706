/* SPDX-License-Identifier: Apache-2.0 */
/* The table of windows: only who has the token gets the window again, also in the next table. */
#include "window_claim.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "claims.h"
#include "shm.h"
#include "unit.h"

#define BASE 0x100000000ull

static const uint8_t own[HELLO_TOKEN_SIZE] = {1, 2, 3}, other[HELLO_TOKEN_SIZE] = {1, 2, 4},
                     none[HELLO_TOKEN_SIZE];

static struct claims *make_table(void)
{
    struct claims *claims = window_claims_open(-1);

    assert_non_null(claims);
    return claims;
}

static void test_tokens(void **state)
{
    struct claims *claims = make_table();

    window_claim_set(claims, own, BASE, getpid());
    assert_true(window_claim_is_proven(claims, own, BASE));
    assert_false(window_claim_is_proven(claims, own, BASE + 1));
    assert_false(window_claim_is_proven(claims, other, BASE));
    assert_true(window_claim_exists(claims, BASE));
    window_claim_drop(claims, other, BASE);
    assert_true(window_claim_is_proven(claims, own, BASE));
    window_claim_drop(claims, own, BASE);
    assert_false(window_claim_is_proven(claims, own, BASE));
    assert_false(window_claim_exists(claims, BASE));
    shm_unmap(claims, sizeof(*claims));
}

static void test_no_token(void **state)
{
    struct claims *claims = make_table();

    window_claim_set(claims, none, BASE, getpid());
    assert_false(window_claim_exists(claims, BASE));
    assert_false(window_claim_is_proven(claims, none, BASE));
    shm_unmap(claims, sizeof(*claims));
}

/* Of two that know of a client, the daemon and its server, the second adds nothing. */
static void test_next_table(void **state)
{
    struct claims *earlier = make_table(), *next = make_table();

    window_claim_set(earlier, own, BASE, getpid());
    window_claim_set(next, own, BASE, getpid());
    window_claim_set(earlier, other, 2 * BASE, getpid());
    window_claims_copy(next, earlier);
    assert_true(window_claim_is_proven(next, other, 2 * BASE));
    window_claim_drop(next, own, BASE);
    assert_false(window_claim_is_proven(next, own, BASE));
    shm_unmap(next, sizeof(*next));
    shm_unmap(earlier, sizeof(*earlier));
}

/* Without memory for a table no window can be proven. */
static void test_no_table(void **state)
{
    window_claim_set(NULL, own, BASE, getpid());
    assert_false(window_claim_is_proven(NULL, own, BASE));
    assert_false(window_claim_exists(NULL, BASE));
    window_claim_drop(NULL, own, BASE);
}

static void fill_table(struct claims *claims)
{
    for (unsigned i = 0; i < CLAIMS_MAX; i++) {
        claims->claim[i].pid = getppid();
        claims->claim[i].base = BASE;
        claims->claim[i].token[1] = 1;
        atomic_store(&claims->claim[i].state, CLAIM_SET);
    }
    for (unsigned i = 0; i < HELLO_TOKEN_SIZE; i++)
        claims->claim[CLAIMS_MAX / 2].token[i] = own[i];
}

static atomic_bool is_searched;

static void *search_room(void *claims)
{
    for (unsigned i = 0; i < 100; i++)
        window_claim_set(claims, other, 2 * BASE, getpid());
    atomic_store(&is_searched, true);
    return NULL;
}

/* Another server looks for a claim that is stale, in a full table. */
static void test_a_living_client_is_found_at_any_time(void **state)
{
    struct claims *claims = make_table();
    pthread_t searcher;

    fill_table(claims);
    assert_int_equal(pthread_create(&searcher, NULL, search_room, claims), 0);
    while (!atomic_load(&is_searched))
        assert_true(window_claim_is_proven(claims, own, BASE));
    pthread_join(searcher, NULL);
    assert_false(window_claim_is_proven(claims, other, 2 * BASE));
    shm_unmap(claims, sizeof(*claims));
}

/* One that leaves claims behind again and again, beside another one that has its own. */
static void test_a_process_has_so_many(void **state)
{
    struct claims *claims = make_table();
    unsigned count = 0;

    window_claim_set(claims, other, BASE, getppid());
    for (uint8_t i = 1; i <= 2 * CLAIMS_OF_PROCESS; i++) {
        const uint8_t token[HELLO_TOKEN_SIZE] = {i};

        window_claim_set(claims, token, i * BASE, getpid());
        assert_true(window_claim_is_proven(claims, token, i * BASE));
    }
    for (unsigned i = 0; i < CLAIMS_MAX; i++)
        count += claims->claim[i].state == CLAIM_SET;
    assert_int_equal(count, 1 + CLAIMS_OF_PROCESS);
    assert_true(window_claim_is_proven(claims, other, BASE));
    shm_unmap(claims, sizeof(*claims));
}

static pid_t ended_process(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return pid;
}

static atomic_bool is_over;
static pid_t gone;

/* A client that has ended, whose server takes its claim back. */
static void *claim_and_drop(void *claims)
{
    while (!atomic_load(&is_over)) {
        window_claim_set(claims, own, BASE, gone);
        window_claim_drop(claims, own, BASE);
    }
    return NULL;
}

static void claim(struct claims *claims)
{
    while (!window_claim_is_proven(claims, other, 2 * BASE))
        window_claim_set(claims, other, 2 * BASE, getpid());
    for (unsigned i = 0; i < 20; i++)
        assert_true(window_claim_is_proven(claims, other, 2 * BASE));
    window_claim_drop(claims, other, 2 * BASE);
}

/* Another client has got its entry meanwhile, and keeps it. */
static void test_a_drop_takes_its_own_claim_only(void **state)
{
    struct claims *claims = make_table();
    pthread_t dropper;

    gone = ended_process();
    fill_table(claims);
    atomic_store(&claims->claim[CLAIMS_MAX / 2].state, CLAIM_FREE); /* the only one */
    assert_int_equal(pthread_create(&dropper, NULL, claim_and_drop, claims), 0);
    for (unsigned i = 0; i < 20; i++)
        claim(claims);
    atomic_store(&is_over, true);
    pthread_join(dropper, NULL);
    shm_unmap(claims, sizeof(*claims));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_no_token),
        cmocka_unit_test(test_next_table),
        cmocka_unit_test(test_no_table),
        cmocka_unit_test(test_a_living_client_is_found_at_any_time),
        cmocka_unit_test(test_a_process_has_so_many),
        cmocka_unit_test(test_a_drop_takes_its_own_claim_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
