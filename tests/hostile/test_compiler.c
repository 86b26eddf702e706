/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that compiles PTX outside of the driver, and texts that its compiler does not survive.
 * The compiler is the test's own (tests/unit/image/fake_jit_link.c).
 */
#include <stdio.h>
#include <string.h>

#include "hostile.h"

static bool server_said(const char *text)
{
    static char log[1 << 16];
    FILE *file = fopen(hostile.server.log, "r");

    assert_non_null(file);
    log[fread(log, 1, sizeof(log) - 1, file)] = '\0';
    fclose(file);
    return strstr(log, text) != NULL;
}

static CUresult load(struct peer *peer, const char *text)
{
    uint64_t module;

    return peer_load_module(peer, text, strlen(text) + 1, &module);
}

/* What a witness computes was compiled there as well. */
static void texts_are_compiled(void **state)
{
    (void)state;
    assert_true(witness_is_well(&hostile.witness));
    assert_true(server_said("PTX is compiled with "));
}

static void a_crash_costs_one_load(void **state)
{
    struct peer peer;

    (void)state;
    assert_true(peer_attach(&peer, hostile.server.socket));
    assert_int_equal(load(&peer, ".version 8.0 // crash"), CUDA_ERROR_INVALID_IMAGE);
    assert_int_equal(load(&peer, ".version 8.0 // silence"), CUDA_ERROR_INVALID_IMAGE);
    assert_int_equal(load(&peer, ".version 8.0 // mistake"), CUDA_ERROR_INVALID_PTX);
    assert_int_equal(load(&peer, ".version 99.0"), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    assert_int_equal(load(&peer, witness_ptx), CUDA_SUCCESS);
    assert_true(server_said("the process that compiled the image"));
    assert_true(witness_is_well(&hostile.witness));
    peer_leave(&peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOSTILE_CASE(texts_are_compiled),
        HOSTILE_CASE(a_crash_costs_one_load),
    };

    return HOSTILE_MAIN(tests);
}
