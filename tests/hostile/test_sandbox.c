/* SPDX-License-Identifier: Apache-2.0 */
/* What a server has given up by the time it serves clients, as the kernel shows it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hostile.h"

/* The number behind `name` in the server's status, to the base given. */
static unsigned long long status_of(const char *name, int base)
{
    char path[64], line[256];
    unsigned long long value = ~0ull;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)hostile.server.pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file))
        if (!strncmp(line, name, strlen(name)))
            value = strtoull(line + strlen(name), NULL, base);
    fclose(file);
    return value;
}

static void no_privileges_are_left(void **state)
{
    (void)state;
    assert_int_equal(status_of("NoNewPrivs:", 10), 1);
    assert_int_equal(status_of("CapEff:", 16), 0);
    assert_int_equal(status_of("CapPrm:", 16), 0);
}

static void system_calls_are_filtered(void **state)
{
    (void)state;
    assert_int_equal(status_of("Seccomp:", 10), 2);
}

/* And programs still run there. */
static void kernels_run(void **state)
{
    (void)state;
    assert_true(witness_is_well(&hostile.witness));
}

int main(void)
{
#ifdef __SANITIZE_ADDRESS__
    return 77; /* the sanitizer's leak checker needs what is given up */
#endif
    const struct CMUnitTest tests[] = {
        HOSTILE_CASE(no_privileges_are_left),
        HOSTILE_CASE(system_calls_are_filtered),
        HOSTILE_CASE(kernels_run),
    };

    return HOSTILE_MAIN(tests);
}
