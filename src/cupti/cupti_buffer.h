/* SPDX-License-Identifier: Apache-2.0 */
/* The program's buffers, into which records go. From any thread. */
#pragma once

#include <stdbool.h>

#include "cupti_abi.h"

/* CUPTI_ERROR_INVALID_PARAMETER when one is NULL. */
CUptiResult cupti_buffer_set_callbacks(cupti_request_buffer request,
                                       cupti_complete_buffer complete);

/* Appends a record, which begins with its kind, and asks the program for a buffer if there is no
 * capacity. The record is counted as dropped when the program gives none. */
void cupti_buffer_append(const void *record);

/* Gives full buffers back to the program, and where it has set a period that is over, the one that
 * is being filled. The caller holds no lock. */
void cupti_buffer_deliver_due(void);

/* 0 = full buffers alone. */
void cupti_buffer_set_period(uint32_t period_ms);

/* Gives the one that is being filled back, too. When it returns, no other thread gives one back. */
void cupti_buffer_deliver_all(void);

/* Records that were dropped since the last time. */
size_t cupti_buffer_take_dropped(void);

/* The size of a record of this kind; 0 for an unknown one. */
size_t cupti_record_size(uint32_t kind);

/* In a child of fork, which gets none of the parent's records. */
void cupti_buffer_after_fork(void);
