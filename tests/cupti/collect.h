/* SPDX-License-Identifier: Apache-2.0 */
/* The records that a program of these tests gets, and how it ends when a call fails. */
#pragma once

#include <cupti.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define BUFFER_SIZE 4096u
#define RECORDS_MAX 65536u

static CUpti_Activity *records[RECORDS_MAX];
static unsigned record_count;
static pthread_mutex_t records_lock = PTHREAD_MUTEX_INITIALIZER;

#define MUST(call) must((int)(call), #call, __LINE__)

static inline void must(int result, const char *call, int line)
{
    if (result == 0)
        return;
    printf("line %d: %s gave %d\n", line, call, result);
    fflush(stdout);
    _Exit(1);
}

static inline void check(int condition, const char *text)
{
    if (!condition)
        printf("wrong: %s\n", text);
}

static inline void CUPTIAPI request(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *buffer = aligned_alloc(8, BUFFER_SIZE);
    *size = BUFFER_SIZE;
    *max_records = 0;
}

static inline void CUPTIAPI complete(CUcontext context, uint32_t stream, uint8_t *buffer,
                                     size_t size, size_t valid)
{
    CUpti_Activity *record = NULL;

    pthread_mutex_lock(&records_lock);
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        if (record_count < RECORDS_MAX)
            records[record_count++] = record;
    pthread_mutex_unlock(&records_lock);
}

static inline void flush(void)
{
    size_t dropped = 1;

    MUST(cuptiActivityFlushAll(0));
    MUST(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
    printf("dropped %zu\n", dropped);
}

static inline unsigned count_kind(CUpti_ActivityKind kind)
{
    unsigned count = 0;

    for (unsigned i = 0; i < record_count; i++)
        count += records[i]->kind == kind;
    return count;
}
