/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables behind cuGetExportTable, one file each.
 *
 * A table is an array of words that lives as long as the process. Word 0 is the size of the whole
 * table in bytes, every other word a function. Callers look at the size before they use a late
 * slot. (Context local storage alone has no size word.) Sizes and empty slots are those of NVIDIA's
 * driver 580, CUDA 13.0; a slot whose purpose we do not know answers CUDA_ERROR_NOT_SUPPORTED.
 */
#pragma once

#include "cudart.h"

typedef const void *table_word;

#define TABLE_SIZE(words) ((table_word)(uintptr_t)((words) * sizeof(table_word)))
#define UNKNOWN_SLOT ((table_word)cudart_unknown_slot)

extern const struct cudart_ops *cudart_ops;

CUresult cudart_unknown_slot(void);

extern const table_word cudart_interface_table[];
extern const table_word callback_hooks_table[];
extern const table_word tools_tls_table[];
extern const table_word context_local_storage_table[];
extern const table_word context_checks_table[];
extern const table_word integrity_check_table[];
extern const table_word context_table[];
extern const table_word function_table[];
extern const table_word cluster_table[];
extern const table_word compute_cache_table[];
