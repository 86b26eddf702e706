/* SPDX-License-Identifier: Apache-2.0 */
/* Names of shares: which clients may use them, and how long the shared object lives. */
#include "fake_driver.h"
#include "ipc_share.h"
#include "session_life.h"

struct trio {
    struct ipc_share *share;
    struct session *friend, *stranger;
};

static struct session *another(struct fixture *fixture, uint32_t uid)
{
    const struct server_client who = {.identity.pid = 4712, .identity.uid = uid};

    return session_create(&fixture->server, &who, 2);
}

static struct trio meet(struct fixture *fixture)
{
    const struct ipc_share like = {
        .kind = IPC_MEMORY, .device = &fixture->server.devices.device[0], .memory = 5};

    return (struct trio){ipc_share_create(&like), another(fixture, 0), another(fixture, 1000)};
}

static void part(const struct trio *trio)
{
    session_destroy(trio->friend);
    session_destroy(trio->stranger);
}

static void only_the_same_user_finds_a_name(void **state)
{
    struct fixture *fixture = *state;
    struct trio trio = meet(fixture);
    struct ipc_item item = {trio.share, 512, 100}, found;
    struct ipc_key key, same;

    assert_int_equal(ipc_name(fixture->session, &item, &key), CUDA_SUCCESS);
    assert_int_equal(ipc_name(fixture->session, &item, &same), CUDA_SUCCESS);
    assert_memory_equal(&key, &same, sizeof(key));
    assert_int_equal(ipc_resolve(trio.stranger, IPC_MEMORY, key, &found), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(ipc_resolve(trio.friend, IPC_EVENT, key, &found), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(ipc_resolve(fixture->session, IPC_MEMORY, key, &found),
                     CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(ipc_resolve(trio.friend, IPC_MEMORY, key, &found), CUDA_SUCCESS);
    assert_true(found.share == trio.share && found.offset == 512 && found.size == 100);
    ipc_share_unref(&fixture->server, found.share);
    ipc_withdraw_all(fixture->session);
    ipc_share_unref(&fixture->server, trio.share);
    part(&trio);
}

static void the_last_reference_releases_it(void **state)
{
    struct fixture *fixture = *state;
    struct trio trio = meet(fixture);
    struct ipc_item item = {.share = trio.share}, other = {.share = trio.share, .offset = 512},
                    found;
    struct ipc_key key, other_key;

    assert_int_equal(ipc_name(fixture->session, &item, &key), CUDA_SUCCESS);
    assert_int_equal(ipc_name(fixture->session, &other, &other_key), CUDA_SUCCESS);
    ipc_withdraw_part(fixture->session, trio.share, 0);
    assert_int_equal(ipc_resolve(trio.friend, IPC_MEMORY, key, &found), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(ipc_resolve(trio.friend, IPC_MEMORY, other_key, &found), CUDA_SUCCESS);
    ipc_withdraw(fixture->session, trio.share);
    ipc_share_unref(&fixture->server, trio.share);
    assert_string_equal(fake_trace(), "");
    ipc_share_unref(&fixture->server, found.share);
    assert_string_equal(fake_trace(), "release g5; ");
    part(&trio);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_the_same_user_finds_a_name, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(the_last_reference_releases_it, fixture_setup,
                                        fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
