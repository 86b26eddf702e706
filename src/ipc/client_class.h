/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The class of a program: how much it minds waiting for the kernels of others. Critical and normal
 * programs share the main lane of their server, and batch programs have a lane of their own
 * (docs/design/lanes.md). A larger number means less of the GPU's time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum client_class {
    CLASS_UNSET = 0,
    CLASS_CRITICAL = 1,
    CLASS_NORMAL = 2,
    CLASS_BATCH = 3,
};

/* The valid classes, for messages. */
#define CLASS_EXPECTED "critical, normal or batch"

/* False when `text` names no class. */
bool client_class_parse(const char *text, uint32_t *ret_class);

/* "critical", "normal" or "batch"; "normal" for every other number. */
const char *client_class_name(uint32_t class);

/* The class of a program that asks for `asked`, where operators have set `set` for it. Theirs is
 * the highest that it may have, and the one that it has without a wish. */
uint32_t client_class_bound(uint32_t asked, uint32_t set);
