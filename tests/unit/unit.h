/* SPDX-License-Identifier: Apache-2.0 */
/* What every unit test includes: cmocka, with the headers that it wants before its own. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A small generator whose sequence is the same on every machine and in every run. */
static inline uint32_t unit_random(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(*state >> 33);
}
