/* SPDX-License-Identifier: Apache-2.0 */
/* Output that waits for its client: in order, as much as fits at a time, and bounded. */
#include "backlog.h"

#include <stdlib.h>
#include <string.h>

#include "channel_server.h"
#include "unit.h"

static void test_delivers_in_parts(void **state)
{
    size_t size = 2 * OUTPUT_AREA_BYTES + 10;
    char *text = malloc(size), *taken = malloc(size);
    struct channel_server *channel;
    struct backlog backlog = {0};
    uint32_t head = 0;
    size_t at = 0;

    for (size_t i = 0; i < size; i++)
        text[i] = (char)(i * 7 % 251);
    assert_int_equal(channel_server_create(&channel), 0);
    assert_true(backlog_add(&backlog, text, 100));
    assert_true(backlog_add(&backlog, text + 100, size - 100));
    for (int round = 0; !backlog_empty(&backlog); round++) {
        assert_true(round < 3);
        backlog_deliver(&backlog, channel, OUTPUT_STDOUT);
        at +=
            output_area_take(&channel->region->output[OUTPUT_STDOUT], &head, taken + at, size - at);
    }
    assert_int_equal(at, size);
    assert_memory_equal(taken, text, size);
    channel_server_destroy(channel);
    free(text);
    free(taken);
}

static void test_waits_for_a_client_that_does_not_read(void **state)
{
    char *text = calloc(1, OUTPUT_AREA_BYTES + 1);
    struct channel_server *channel;
    struct backlog backlog = {0};

    assert_int_equal(channel_server_create(&channel), 0);
    assert_true(backlog_add(&backlog, text, OUTPUT_AREA_BYTES + 1));
    backlog_deliver(&backlog, channel, OUTPUT_STDOUT);
    backlog_deliver(&backlog, channel, OUTPUT_STDOUT);
    assert_false(backlog_empty(&backlog));
    backlog_drop(&backlog);
    assert_true(backlog_empty(&backlog));
    channel_server_destroy(channel);
    free(text);
}

static void test_is_bounded(void **state)
{
    size_t size = (size_t)40 << 20;
    char *text = calloc(1, size);
    struct backlog backlog = {0};

    assert_true(backlog_add(&backlog, text, size));
    assert_false(backlog_add(&backlog, text, size));
    assert_int_equal(backlog.size, size);
    backlog_drop(&backlog);
    free(text);
}

#define CLIENTS 512

/* Also the last of many clients finds space, and all together have no more than is allowed. */
static void test_all_are_bounded(void **state)
{
    static struct backlog backlogs[CLIENTS];
    char *text = calloc(1, BACKLOG_OWN);
    size_t all = 0, one = 0;

    for (unsigned i = 0; i < CLIENTS; i++) {
        assert_true(backlog_add(&backlogs[i], text, BACKLOG_OWN));
        while (backlog_add(&backlogs[i], text, BACKLOG_OWN))
            continue;
        all += backlogs[i].capacity;
    }
    assert_true(all <= BACKLOGS_SHARED + CLIENTS * BACKLOG_OWN);
    for (unsigned i = 0; i < CLIENTS; i++)
        backlog_drop(&backlogs[i]);
    while (backlog_add(&backlogs[0], text, BACKLOG_OWN))
        one += BACKLOG_OWN;
    assert_int_equal(one, BACKLOG_MAX);
    backlog_drop(&backlogs[0]);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_delivers_in_parts),
        cmocka_unit_test(test_waits_for_a_client_that_does_not_read),
        cmocka_unit_test(test_is_bounded),
        cmocka_unit_test(test_all_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
