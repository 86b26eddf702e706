/* SPDX-License-Identifier: Apache-2.0 */
/* Which clients can be moved to another server, and what is sent to it again. */
#include "recovery_rules.h"

#include <string.h>

#include "channel.h"
#include "cuda_error.h"
#include "unit.h"
#include "wire_calls.h"

struct unread {
    _Alignas(16) unsigned char bytes[512];
    uint32_t size;
    struct recovery_slots slots;
};

static void add(struct unread *unread, uint32_t op, int slot, uint32_t size)
{
    const struct ring_message header = {.size = size, .kind = channel_kind(op, slot)};

    memset(unread->bytes + unread->size, (int)op, size);
    memcpy(unread->bytes + unread->size, &header, sizeof(header));
    unread->size += size;
}

static bool sift(struct unread *unread)
{
    return recovery_sift(unread->bytes, unread->size, &unread->size, &unread->slots);
}

static uint32_t kind_at(const struct unread *unread, uint32_t at)
{
    struct ring_message header;

    memcpy(&header, unread->bytes + at, sizeof(header));
    return header.kind;
}

static void test_nothing(void **state)
{
    struct unread unread = {0};

    assert_true(sift(&unread));
    assert_int_equal(unread.size, 0);
    assert_int_equal(unread.slots.sent_again | unread.slots.repeated, 0);
}

static void test_work_is_sent_again(void **state)
{
    struct unread unread = {0};

    add(&unread, WIRE_cuStreamCreateWithPriority, CHANNEL_NO_SLOT, 48);
    add(&unread, WIRE_cuLaunchKernelEx, CHANNEL_NO_SLOT, 96);
    add(&unread, WIRE_fnGranuleRelease, CHANNEL_NO_SLOT, 16);
    add(&unread, WIRE_cuMemGetInfo_v2, 5, 16);
    add(&unread, WIRE_fnFence, CHANNEL_NO_SLOT, 32);
    assert_true(sift(&unread));
    assert_int_equal(unread.size, 96 + 16 + 32);
    assert_int_equal(unread.slots.sent_again, 1u << 5);
    assert_int_equal(unread.slots.repeated, 0);
    assert_int_equal(kind_at(&unread, 0), WIRE_cuLaunchKernelEx);
    assert_int_equal(kind_at(&unread, 96), channel_kind(WIRE_cuMemGetInfo_v2, 5));
    assert_int_equal(kind_at(&unread, 96 + 16), WIRE_fnFence);
    assert_int_equal(unread.bytes[8], WIRE_cuLaunchKernelEx);
    assert_int_equal(unread.bytes[96 + 16 + 31], WIRE_fnFence);
}

/* What has been ended is not made again, so work on it cannot be done. */
static void test_ends(void **state)
{
    struct unread unread = {0};

    add(&unread, WIRE_cuEventDestroy_v2, CHANNEL_NO_SLOT, 16);
    add(&unread, WIRE_cuLibraryUnload, CHANNEL_NO_SLOT, 16);
    assert_true(sift(&unread));
    assert_int_equal(unread.size, 0);
    add(&unread, WIRE_fnFence, CHANNEL_NO_SLOT, 32);
    add(&unread, WIRE_cuStreamDestroy_v2, CHANNEL_NO_SLOT, 16);
    assert_false(sift(&unread));
}

/* They are not about what another thread has ended. */
static void test_questions_beside_ends(void **state)
{
    struct unread unread = {0};

    add(&unread, WIRE_cuLibraryUnload, CHANNEL_NO_SLOT, 16);
    add(&unread, WIRE_cuMemGetInfo_v2, 2, 16);
    assert_true(sift(&unread));
    assert_int_equal(unread.size, 16);
    assert_int_equal(unread.slots.sent_again, 1u << 2);
}

/* Memory that was copied half way is not as it was. */
static void test_questions_read_or_unread(void **state)
{
    assert_int_equal(recovery_rule(WIRE_cuMemGetInfo_v2), RECOVERY_ASKS);
    assert_int_equal(recovery_rule(WIRE_fnPrintfCollect), RECOVERY_ASKS);
    assert_int_equal(recovery_rule(WIRE_fnGranuleMove), RECOVERY_WORK);
    assert_int_equal(recovery_rule(WIRE_cuGraphLaunch), RECOVERY_WORK);
}

/* A call may be what ends one server after the other. */
static void test_how_often_calls_are_asked_again(void **state)
{
    struct recovery_asked asked = {0};
    uint64_t now = 5 * NS_PER_SEC;

    for (unsigned i = 0; i < RECOVERY_ASKED_MAX; i++)
        assert_true(recovery_may_ask_again(&asked, now + i));
    assert_false(recovery_may_ask_again(&asked, now + RECOVERY_ASKED_NS - 1));
    assert_true(recovery_may_ask_again(&asked, now + RECOVERY_ASKED_NS));
    assert_false(recovery_may_ask_again(&asked, now + RECOVERY_ASKED_NS));
    assert_true(recovery_may_ask_again(&asked, now + RECOVERY_ASKED_NS + 1));
}

/* The descriptor of the image went to the last server. */
static void test_a_load_is_repeated_by_its_caller(void **state)
{
    struct unread unread = {0};

    add(&unread, WIRE_cuLibraryUnload, CHANNEL_NO_SLOT, 16);
    add(&unread, WIRE_cuLibraryLoadData, 3, 32);
    assert_true(sift(&unread));
    assert_int_equal(unread.size, 0);
    assert_int_equal(unread.slots.sent_again, 0);
    assert_int_equal(unread.slots.repeated, 1u << 3);
}

/* Neither is what has been given back taken again. */
static void test_memory_that_was_given_back(void **state)
{
    const uint32_t ops[] = {WIRE_fnGranuleRelease, WIRE_cuMemUnmap, WIRE_cuMemRelease,
                            WIRE_fnUnreserve};
    struct unread unread = {0};

    add(&unread, WIRE_fnFence, CHANNEL_NO_SLOT, 32);
    for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
        add(&unread, ops[i], CHANNEL_NO_SLOT, 16);
    assert_true(sift(&unread));
    assert_int_equal(unread.size, 32);
}

static void test_commands_that_cannot_be_sent_again(void **state)
{
    const uint32_t ops[] = {
        WIRE_cuLibraryGetGlobal, WIRE_fnGraphKernelNode, WIRE_cuLinkComplete, 0, 127, 0xffff};

    for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
        struct unread unread = {0};

        add(&unread, ops[i], CHANNEL_NO_SLOT, 16);
        assert_false(sift(&unread));
    }
}

static void test_a_ring_that_makes_no_sense(void **state)
{
    struct unread unread = {0};

    add(&unread, WIRE_fnFence, CHANNEL_NO_SLOT, 32);
    unread.size -= 16;
    assert_false(sift(&unread));
    memset(&unread, 0, sizeof(unread));
    unread.size = 16;
    assert_false(sift(&unread));
}

static bool allows(uint32_t op)
{
    uint64_t used[CHANNEL_OPS / 64] = {0};

    used[0] |= 1ull << WIRE_cuLaunchKernelEx;
    used[op / 64] |= 1ull << op % 64;
    return recovery_allows(used);
}

static void test_commands_that_bind_a_client(void **state)
{
    assert_true(allows(WIRE_fnFence));
    assert_true(allows(WIRE_cuGraphLaunch));
    assert_true(allows(WIRE_fnHostGranuleAdopt));
    assert_true(allows(WIRE_fnHostFileMap));
    assert_true(allows(WIRE_cuArray3DCreate_v2)); /* perhaps it is gone: its handle tells */
    assert_true(allows(WIRE_fnReserve));
    assert_true(allows(WIRE_cuMemImportFromShareableHandle));
    assert_false(allows(WIRE_cuIpcGetMemHandle));
    assert_true(allows(WIRE_cuCtxEnablePeerAccess));
    assert_false(allows(127));
}

static void test_errors_that_another_may_have_caused(void **state)
{
    assert_true(recovery_is_possible(CUDA_SUCCESS));
    assert_true(recovery_is_possible(CUDA_ERROR_ILLEGAL_ADDRESS));
    assert_true(recovery_is_possible(CUDA_ERROR_LAUNCH_TIMEOUT));
    assert_false(recovery_is_possible(CUDA_ERROR_ECC_UNCORRECTABLE));
    assert_false(recovery_is_possible(CUDA_ERROR_MPS_CLIENT_TERMINATED));
    assert_false(recovery_is_possible(CUDA_ERROR_MPS_RPC_FAILURE));
    assert_true(cuda_error_is_fatal(CUDA_ERROR_ECC_UNCORRECTABLE));
    assert_true(cuda_error_is_fatal(CUDA_ERROR_ILLEGAL_ADDRESS));
    assert_false(cuda_error_is_fatal(CUDA_SUCCESS));
    assert_false(cuda_error_is_fatal(CUDA_ERROR_INVALID_HANDLE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_work_is_sent_again),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_questions_beside_ends),
        cmocka_unit_test(test_questions_read_or_unread),
        cmocka_unit_test(test_how_often_calls_are_asked_again),
        cmocka_unit_test(test_a_load_is_repeated_by_its_caller),
        cmocka_unit_test(test_memory_that_was_given_back),
        cmocka_unit_test(test_commands_that_cannot_be_sent_again),
        cmocka_unit_test(test_a_ring_that_makes_no_sense),
        cmocka_unit_test(test_commands_that_bind_a_client),
        cmocka_unit_test(test_errors_that_another_may_have_caused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
