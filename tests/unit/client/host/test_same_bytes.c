/* SPDX-License-Identifier: Apache-2.0 */
/* One byte is enough, wherever it is; and nothing beyond the end counts. */
#include "same_bytes.h"

#include <stdlib.h>
#include <string.h>

#include "copy_team.h"
#include "unit.h"

#define LARGE (((size_t)5 << 20) + 3)

static char *a, *b;

static int setup(void **state)
{
    (void)state;
    copy_team_init();
    a = malloc(LARGE + 1);
    b = malloc(LARGE + 1);
    if (!a || !b)
        return -1;
    memset(a, 7, LARGE + 1);
    memset(b, 7, LARGE + 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(a);
    free(b);
    return 0;
}

static void every_byte_counts(void **state)
{
    static const size_t sizes[] = {1, 4096, (256 << 10) + 1, LARGE};

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        const size_t places[] = {0, sizes[i] / 2, sizes[i] - 1};

        assert_true(same_bytes(a, b, sizes[i]));
        for (size_t j = 0; j < 3; j++) {
            b[places[j]] ^= 1;
            assert_false(same_bytes(a, b, sizes[i]));
            b[places[j]] ^= 1;
        }
    }
}

static void the_next_byte_does_not(void **state)
{
    (void)state;
    b[LARGE] = 8;
    assert_true(same_bytes(a, b, LARGE));
    assert_false(same_bytes(a, b, LARGE + 1));
    assert_true(same_bytes(a, b, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_byte_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(the_next_byte_does_not, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
