/* SPDX-License-Identifier: Apache-2.0 */
/* Only a whole message of a known kind is valid; every kind has a size. */
#include "server_protocol.h"

#include "unit.h"

static const unsigned kinds[] = {
#define NUMBER(name, number, member, type) number,
    SERVER_MESSAGES(NUMBER)
#undef NUMBER
};

static void test_every_kind(void **state)
{
    unsigned known = 0;
    union server_any any;

    for (unsigned kind = 0; kind < 256; kind++) {
        if (!server_message_size(kind))
            continue;
        known++;
        assert_true(server_message_size(kind) <= sizeof(any));
        server_message_init(&any, kind, 5);
        assert_true(server_message_valid(&any, server_message_size(kind)));
        assert_int_equal(any.header.request, 5);
    }
    assert_int_equal(known, sizeof(kinds) / sizeof(*kinds));
}

static void test_refused(void **state)
{
    struct server_result result;
    struct server_header header = {SERVER_PROTOCOL_MAGIC, SERVER_PROTOCOL_VERSION, 99,
                                   sizeof(header), 0};

    assert_false(server_message_valid(&header, sizeof(header)));
    server_message_init(&result, SERVER_RESULT, 0);
    assert_false(server_message_valid(&result, 3));
    assert_false(server_message_valid(&result, sizeof(result) - 1));
    assert_false(server_message_valid(&result, sizeof(result) + 1));
    result.header.version++;
    assert_false(server_message_valid(&result, sizeof(result)));
    server_message_init(&result, SERVER_RESULT, 0);
    result.header.magic++;
    assert_false(server_message_valid(&result, sizeof(result)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
