/* SPDX-License-Identifier: Apache-2.0 */
/* Which commands carry copies of managed memory. */
#include "managed_batch.h"

#include "client_fixture.h"

#define DST 0x200000000000ull
#define SRC 0x300000000000ull

static struct managed_batch on_new_stream(void)
{
    return (struct managed_batch){.stream = fixture_stream(CU_STREAM_NON_BLOCKING),
                                  .together = true};
}

static void add(struct managed_batch *batch, uint64_t at, uint64_t size)
{
    channel_lock(&client->channel);
    managed_batch_add_locked(batch, DST + at, SRC + at, size);
    channel_unlock(&client->channel);
}

static void end(struct managed_batch *batch)
{
    channel_lock(&client->channel);
    managed_batch_send_locked(batch);
    channel_unlock(&client->channel);
}

static void expect_copy(const struct managed_batch *batch, uint64_t at, uint64_t size)
{
    struct wire_cuMemcpyAsync in;

    fixture_expect(cuMemcpyAsync, &in);
    assert_int_equal(in.hStream, batch->stream->handle);
    assert_int_equal(in.dst, DST + at);
    assert_int_equal(in.src, SRC + at);
    assert_int_equal(in.ByteCount, size);
    assert_int_equal(in.seq, 0);
}

static void expect_batch(const struct managed_batch *batch, uint64_t at, unsigned count)
{
    struct small_copy copies[SMALL_COPIES_MAX];
    struct wire_fnCopyBatch in;

    fixture_expect(fnCopyBatch, &in);
    assert_int_equal(in.hStream, batch->stream->handle);
    assert_int_equal(in.seq, 0);
    assert_int_equal(in.copies_size, count * sizeof(*copies));
    memcpy(copies, in.copies, in.copies_size);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(copies[i].dst, DST + at + 8 * i);
        assert_int_equal(copies[i].src, SRC + at + 8 * i);
        assert_int_equal(copies[i].size, 3);
    }
}

static void small_ones_travel_together(void **state)
{
    struct managed_batch batch = on_new_stream();

    (void)state;
    end(&batch);
    fixture_expect_nothing();
    add(&batch, 0, 3);
    add(&batch, 8, 3);
    fixture_expect_nothing();
    end(&batch);
    expect_batch(&batch, 0, 2);
    end(&batch);
    fixture_expect_nothing();
}

static void one_travels_by_itself(void **state)
{
    struct managed_batch batch = on_new_stream();

    (void)state;
    add(&batch, 40, SMALL_COPY_MAX);
    end(&batch);
    expect_copy(&batch, 40, SMALL_COPY_MAX);
    fixture_expect_nothing();
}

static void so_do_large_ones(void **state)
{
    struct managed_batch batch = on_new_stream();

    (void)state;
    add(&batch, 0, 3);
    add(&batch, 64, SMALL_COPY_MAX + 1);
    expect_copy(&batch, 64, SMALL_COPY_MAX + 1);
    add(&batch, 8, 3);
    end(&batch);
    expect_batch(&batch, 0, 2);
    fixture_expect_nothing();
}

/* What runs on the device may wait for the program, which waits for these. */
static void beside_a_kernel_none_travel_together(void **state)
{
    struct managed_batch batch = on_new_stream();

    (void)state;
    batch.together = false;
    add(&batch, 0, 3);
    expect_copy(&batch, 0, 3);
    add(&batch, 8, 3);
    expect_copy(&batch, 8, 3);
    end(&batch);
    fixture_expect_nothing();
}

static void a_command_has_room_for_so_many(void **state)
{
    struct managed_batch batch = on_new_stream();

    (void)state;
    for (unsigned i = 0; i < SMALL_COPIES_MAX + 2; i++)
        add(&batch, 8 * i, 3);
    expect_batch(&batch, 0, SMALL_COPIES_MAX);
    fixture_expect_nothing();
    end(&batch);
    expect_batch(&batch, 8 * SMALL_COPIES_MAX, 2);
    fixture_expect_nothing();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_CASE(small_ones_travel_together),
        FIXTURE_CASE(one_travels_by_itself),
        FIXTURE_CASE(so_do_large_ones),
        FIXTURE_CASE(beside_a_kernel_none_travel_together),
        FIXTURE_CASE(a_command_has_room_for_so_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
