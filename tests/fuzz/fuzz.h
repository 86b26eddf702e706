/* SPDX-License-Identifier: Apache-2.0 */
/* What a fuzz target offers: libFuzzer calls it, or replay.c where there is no libFuzzer. */
#pragma once

#include <stddef.h>
#include <stdint.h>

__attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const uint8_t *input,
                                                                  size_t left);
