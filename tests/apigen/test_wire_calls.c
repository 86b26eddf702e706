/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packing and unpacking of the real wire commands, against a channel that is only a buffer. What a
 * sender writes a decoder must read; anything else it must refuse.
 */
#include <string.h>

#include "unit.h"
#include "wire_calls.h"

#define SLOT 7

/* ---- the channel ---- */

static _Alignas(16) unsigned char sent[CHANNEL_MESSAGE_MAX];
static size_t sent_size, reserved_size;
static _Alignas(8) unsigned char reply[REPLY_DATA_MAX];
static uint32_t reply_size;
static CUresult reply_status;
static bool gone, locked;
static int open_slots;

struct ring_message *channel_reserve(struct channel *channel, uint32_t size)
{
    if (gone)
        return NULL;
    memset(sent, 0xee, sizeof(sent));
    reserved_size = size;
    return (struct ring_message *)sent;
}

void channel_commit(struct channel *channel)
{
    sent_size = reserved_size;
}

void channel_lock(struct channel *channel)
{
    locked = true;
}

void channel_unlock(struct channel *channel)
{
    locked = false;
}

int channel_reply_begin(struct channel *channel)
{
    if (gone)
        return CHANNEL_NO_SLOT;
    open_slots++;
    return SLOT;
}

CUresult channel_reply_wait(struct channel *channel, int slot, const void **ret_data,
                            uint32_t *ret_size)
{
    assert_false(locked);
    *ret_data = reply;
    *ret_size = reply_size;
    return reply_status;
}

CUresult channel_failure(const struct channel *channel)
{
    return CUDA_ERROR_MPS_RPC_FAILURE;
}

void channel_reply_end(struct channel *channel, int slot)
{
    open_slots--;
}

static int setup(void **state)
{
    sent_size = reply_size = 0;
    reply_status = CUDA_SUCCESS;
    gone = locked = false;
    open_slots = 0;
    return 0;
}

/* ---- commands ---- */

static const struct wire_cuLaunchKernelEx launch = {
    .f = 0x1122334455667788,
    .shape = {1, 2, 3, 4, 5, 6, 7},
    .hStream = 0x99aabbccddeeff00,
    .attributes = "attributes!",
    .attributes_size = 11,
    .params = "parameters",
    .params_size = 10,
};

static void send_launch(void)
{
    void *place;

    assert_int_equal(wire_cuLaunchKernelEx(NULL, &launch, &place), CUDA_SUCCESS);
    memcpy(place, launch.params, launch.params_size);
    channel_commit(NULL);
}

static void placed_bytes_are_not_sent_by_themselves(void **state)
{
    void *place;

    assert_int_equal(wire_cuLaunchKernelEx(NULL, &launch, &place), CUDA_SUCCESS);
    assert_int_equal(sent_size, 0);
    assert_ptr_equal((unsigned char *)place + 16, sent + reserved_size);
    for (unsigned i = launch.params_size; i < 16; i++)
        assert_int_equal(((unsigned char *)place)[i], 0);
}

static void a_launch_arrives_as_it_was_sent(void **state)
{
    struct wire_cuLaunchKernelEx got;

    send_launch();
    assert_int_equal(((struct ring_message *)sent)->kind, WIRE_cuLaunchKernelEx);
    assert_true(decode_cuLaunchKernelEx(sent, sent_size, &got));
    assert_int_equal(got.f, launch.f);
    assert_memory_equal(got.shape, launch.shape, sizeof(got.shape));
    assert_int_equal(got.hStream, launch.hStream);
    assert_int_equal(got.attributes_size, launch.attributes_size);
    assert_memory_equal(got.attributes, launch.attributes, launch.attributes_size);
    assert_int_equal(got.params_size, launch.params_size);
    assert_memory_equal(got.params, launch.params, launch.params_size);
    assert_int_equal((uintptr_t)got.attributes % 8, 0);
    assert_int_equal((uintptr_t)got.params % 8, 0);
}

static void padding_is_zero(void **state)
{
    struct wire_cuMemcpyHtoDAsync_v2 in = {.data = "x", .data_size = 1};

    assert_int_equal(wire_cuMemcpyHtoDAsync_v2(NULL, &in), CUDA_SUCCESS);
    for (size_t i = sent_size - 7; i < sent_size; i++)
        assert_int_equal(sent[i], 0);
}

static void every_shorter_message_is_refused(void **state)
{
    struct wire_cuLaunchKernelEx got;

    send_launch();
    for (size_t size = 0; size < sent_size; size++)
        assert_false(decode_cuLaunchKernelEx(sent, size, &got));
}

static void only_the_rings_own_padding_may_follow(void **state)
{
    struct wire_cuLaunchKernelEx got;

    send_launch();
    assert_true(decode_cuLaunchKernelEx(sent, sent_size + 15, &got));
    assert_false(decode_cuLaunchKernelEx(sent, sent_size + 16, &got));
}

/* The sizes of trailing fields are 32 bit words somewhere in the fixed part: lie in each. */
static void no_lie_about_a_size_gets_through(void **state)
{
    static const uint32_t lies[] = {12000, 65536, 0x7fffffff, 0xfffffff8, 0xffffffff};
    struct wire_cuLaunchKernelEx got;

    for (size_t lie = 0; lie < sizeof(lies) / sizeof(lies[0]); lie++) {
        for (size_t at = 0; at < 2; at++) {
            send_launch();
            uint32_t *sizes = (uint32_t *)(void *)(sent + 52);
            assert_int_equal(sizes[0], launch.attributes_size);
            assert_int_equal(sizes[1], launch.params_size);
            sizes[at] = lies[lie];
            assert_false(decode_cuLaunchKernelEx(sent, sent_size, &got));
        }
    }
}

static void fields_that_are_too_long_are_not_sent(void **state)
{
    static const char data[16385];
    struct wire_cuMemcpyHtoDAsync_v2 in = {.data = data, .data_size = 16385};

    assert_int_equal(wire_cuMemcpyHtoDAsync_v2(NULL, &in), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(sent_size, 0);
    in.data_size = 16384;
    assert_int_equal(wire_cuMemcpyHtoDAsync_v2(NULL, &in), CUDA_SUCCESS);
}

static void a_string_is_exactly_one(void **state)
{
    struct wire_cuLibraryGetGlobal in = {.library = 5, .name = "counter"}, got;
    struct wire_cuLibraryGetGlobal_reply out;

    wire_cuLibraryGetGlobal(NULL, &in, &out);
    assert_int_equal(((struct ring_message *)sent)->kind,
                     channel_kind(WIRE_cuLibraryGetGlobal, SLOT));
    assert_true(decode_cuLibraryGetGlobal(sent, sent_size, &got));
    assert_string_equal(got.name, "counter");
    char *name = (char *)sent + (got.name - (const char *)sent);
    name[7] = 'x';
    assert_false(decode_cuLibraryGetGlobal(sent, sent_size, &got));
    name[7] = name[3] = '\0';
    assert_false(decode_cuLibraryGetGlobal(sent, sent_size, &got));
}

/* ---- answers ---- */

static void answer_kernel(uint32_t layout_size)
{
    struct wire_cuLibraryGetKernel_reply out;

    start_cuLibraryGetKernel_reply(reply, &out);
    assert_int_equal(out.param_count, 0);
    assert_true(out.layout_capacity >= layout_size);
    out.attributes[15] = -15;
    out.param_count = 3;
    memset(out.layout, 'L', layout_size);
    out.layout_size = layout_size;
    reply_size = encode_cuLibraryGetKernel_reply(reply, &out);
}

static CUresult get_kernel(char *layout, uint32_t capacity,
                           struct wire_cuLibraryGetKernel_reply *out)
{
    struct wire_cuLibraryGetKernel in = {.library = 1, .f = 2, .name = "kernel"};

    *out = (struct wire_cuLibraryGetKernel_reply){.layout = layout, .layout_capacity = capacity};
    return wire_cuLibraryGetKernel(NULL, &in, out);
}

static void an_answer_arrives_as_it_was_given(void **state)
{
    struct wire_cuLibraryGetKernel_reply out;
    char layout[32];

    answer_kernel(24);
    assert_int_equal(get_kernel(layout, sizeof(layout), &out), CUDA_SUCCESS);
    assert_int_equal(out.attributes[15], -15);
    assert_int_equal(out.param_count, 3);
    assert_int_equal(out.layout_size, 24);
    assert_int_equal(layout[23], 'L');
    assert_int_equal(open_slots, 0);
}

static void an_answer_is_cut_to_the_callers_room(void **state)
{
    struct wire_cuLibraryGetKernel_reply out;
    char layout[9] = "........";

    answer_kernel(24);
    assert_int_equal(get_kernel(layout, 4, &out), CUDA_SUCCESS);
    assert_int_equal(out.layout_size, 4);
    assert_string_equal(layout, "LLLL....");
    assert_int_equal(get_kernel(NULL, 0, &out), CUDA_SUCCESS);
    assert_int_equal(out.layout_size, 0);
}

static void a_failure_may_bring_bytes(void **state)
{
    struct wire_cuLibraryGetKernel_reply out;
    char layout[32];

    answer_kernel(8);
    reply_status = CUDA_ERROR_NOT_FOUND;
    assert_int_equal(get_kernel(layout, sizeof(layout), &out), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(out.layout_size, 8);
}

static void a_malformed_answer_is_a_broken_server(void **state)
{
    struct wire_cuLibraryGetKernel_reply out;
    char layout[32];

    answer_kernel(24);
    for (uint32_t size = reply_size; size > 0; size--) {
        reply_size = size - 1;
        assert_int_equal(get_kernel(layout, sizeof(layout), &out), CUDA_ERROR_MPS_RPC_FAILURE);
    }
    assert_int_equal(open_slots, 0);
}

static void a_server_that_is_gone_is_806(void **state)
{
    struct wire_cuLibraryGetKernel_reply out;
    void *place;

    gone = true;
    assert_int_equal(wire_cuLaunchKernelEx(NULL, &launch, &place), CUDA_ERROR_MPS_RPC_FAILURE);
    assert_int_equal(get_kernel(NULL, 0, &out), CUDA_ERROR_MPS_RPC_FAILURE);
    assert_int_equal(sent_size, 0);
}

static void commands_have_names(void **state)
{
    assert_string_equal(wire_op_name(WIRE_cuLaunchKernelEx), "cuLaunchKernelEx");
    assert_null(wire_op_name(0));
    assert_null(wire_op_name(0xffffffff));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_launch_arrives_as_it_was_sent, setup),
        cmocka_unit_test_setup(placed_bytes_are_not_sent_by_themselves, setup),
        cmocka_unit_test_setup(padding_is_zero, setup),
        cmocka_unit_test_setup(every_shorter_message_is_refused, setup),
        cmocka_unit_test_setup(only_the_rings_own_padding_may_follow, setup),
        cmocka_unit_test_setup(no_lie_about_a_size_gets_through, setup),
        cmocka_unit_test_setup(fields_that_are_too_long_are_not_sent, setup),
        cmocka_unit_test_setup(a_string_is_exactly_one, setup),
        cmocka_unit_test_setup(an_answer_arrives_as_it_was_given, setup),
        cmocka_unit_test_setup(an_answer_is_cut_to_the_callers_room, setup),
        cmocka_unit_test_setup(a_failure_may_bring_bytes, setup),
        cmocka_unit_test_setup(a_malformed_answer_is_a_broken_server, setup),
        cmocka_unit_test_setup(a_server_that_is_gone_is_806, setup),
        cmocka_unit_test_setup(commands_have_names, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
