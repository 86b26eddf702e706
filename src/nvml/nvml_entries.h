/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of NVML's functions below Funnel's own: those of NVIDIA's library, or where there is
 * none, those of the software GPU. It is filled by the first call of any function. All functions
 * may be called by any thread, in a child of fork(), too.
 */
#pragma once

#include <stdbool.h>

#include "nvml_functions.h"

enum nvml_index {
#define NVML_PASS(name) INDEX_##name,
#define NVML_OWN(name) INDEX_##name,
#include "nvml_names.def"
#undef NVML_PASS
#undef NVML_OWN
    NVML_NAMES
};

/* Never NULL: what NVIDIA's library lacks answers NVML_ERROR_FUNCTION_NOT_FOUND. */
void *nvml_base(enum nvml_index index);

/* The function below Funnel's own one of the same name. */
#define NVML_BASE(name) ((__typeof__(&name))nvml_base(INDEX_##name))

/* Whether the functions are those of the software GPU. */
bool nvml_is_soft(void);

/* Replaces functions in the table while it is filled. */
void nvml_entry_set(enum nvml_index index, void *function);
