/* SPDX-License-Identifier: Apache-2.0 */
/* How an order to suspend or resume a program has ended, as servers tell the daemon in RESULT. */
#pragma once

enum suspend_result {
    SUSPEND_OK = 0,
    SUSPEND_NO_CLIENT = 201,
    /* Why its memory stays on the device. */
    SUSPEND_BUSY = 1001,
    SUSPEND_ARRAYS,
    SUSPEND_ALLOCATIONS,
    SUSPEND_SHARED,
    SUSPEND_DMA_BUF,
    SUSPEND_POOL_FULL,
    SUSPEND_FAILED,
    /* Why it stays suspended. */
    SUSPEND_NO_MEMORY,
    /* Nothing was done. */
    SUSPEND_ALREADY,
    SUSPEND_NOT,
    /* Why its memory stays where it is: the file. */
    SUSPEND_FILE_FULL,
    SUSPEND_FILE_FAILED,
    SUSPEND_FILE_DAMAGED,
    SUSPEND_FILE_KIND,
    SUSPEND_SEVERAL,
    /* It would be lost: the client has no descriptor of it. */
    SUSPEND_NOT_KEPT,
    SUSPEND_MODULES,
    /* A later order counts, and this one has no result. */
    SUSPEND_REPLACED,
    /* Nothing was done: an earlier one has no result yet. */
    SUSPEND_PENDING,
};

/* A sentence without its full stop for people, or NULL for a number that is none of these. */
const char *suspend_result_text(int result);
