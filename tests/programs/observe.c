/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that profiles any program with CUPTI, preloaded into it. It tells what the program did
 * by kind and name, with how often and the median of how long. It runs on NVIDIA's CUPTI and on
 * Funnel's.
 *
 *     cc -shared -fPIC -I /usr/local/cuda/include -o observe.so observe.c -L /usr/local/cuda/lib64
 * -lcupti
 */
#include <cupti.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_SIZE (1u << 20)
#define NAMES_MAX 512u
#define TIMES_MAX 4096u

struct row {
    char *name;
    unsigned count;
    uint64_t *times;
};

static pthread_mutex_t rows_lock = PTHREAD_MUTEX_INITIALIZER;
static struct row rows[NAMES_MAX];
static unsigned row_count;

/* Writes a line for each kind and name to the file. */
void observe_report(const char *path);

static void count(const char *kind, const char *name, uint64_t time)
{
    struct row *row = rows;
    char whole[512];

    snprintf(whole, sizeof(whole), "%s %s", kind, name);
    while (row < rows + row_count && strcmp(row->name, whole))
        row++;
    if (row == rows + NAMES_MAX)
        return;
    if (row == rows + row_count) {
        *row = (struct row){strdup(whole), 0, calloc(TIMES_MAX, sizeof(*row->times))};
        row_count++;
    }
    row->times[row->count++ % TIMES_MAX] = time;
}

static void count_record(const CUpti_Activity *record)
{
    static const char *const ends[] = {"?",    "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                       "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
    static const char *const memories[] = {"?",     "pageable", "pinned",        "device",
                                           "array", "managed",  "device_static", "managed_static"};
    const CUpti_ActivityKernel9 *kernel = (const void *)record;
    const CUpti_ActivityMemcpy5 *copy = (const void *)record;
    const CUpti_ActivityMemset4 *set = (const void *)record;
    const CUpti_ActivityMarker2 *marker = (const void *)record;
    char name[64];

    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        count("kernel", kernel->name, kernel->end - kernel->start);
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET)
        count("memset", "", set->end - set->start);
    else if (record->kind == CUPTI_ACTIVITY_KIND_MARKER && marker->name)
        count(marker->flags == CUPTI_ACTIVITY_FLAG_MARKER_START ? "range" : "mark", marker->name,
              0);
    if (record->kind != CUPTI_ACTIVITY_KIND_MEMCPY)
        return;
    snprintf(name, sizeof(name), "%s %s to %s", ends[copy->copyKind % 11],
             memories[copy->srcKind % 8], memories[copy->dstKind % 8]);
    count("copy", name, copy->end - copy->start);
}

static void CUPTIAPI request(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *buffer = aligned_alloc(8, BUFFER_SIZE);
    *size = BUFFER_SIZE;
    *max_records = 0;
}

static void CUPTIAPI complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                              size_t valid)
{
    CUpti_Activity *record = NULL;

    pthread_mutex_lock(&rows_lock);
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        count_record(record);
    pthread_mutex_unlock(&rows_lock);
    free(buffer);
}

static int compare_times(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

    return one < other ? -1 : one > other;
}

void observe_report(const char *path)
{
    FILE *file = fopen(path, "w");

    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    pthread_mutex_lock(&rows_lock);
    for (struct row *row = rows; file && row < rows + row_count; row++) {
        unsigned times = row->count < TIMES_MAX ? row->count : TIMES_MAX;
        qsort(row->times, times, sizeof(*row->times), compare_times);
        fprintf(file, "%u %.1f %s\n", row->count, (double)row->times[times / 2] / 1000, row->name);
    }
    pthread_mutex_unlock(&rows_lock);
    if (file)
        fclose(file);
}

__attribute__((constructor)) static void begin(void)
{
    static const CUpti_ActivityKind kinds[] = {
        CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMSET,
        CUPTI_ACTIVITY_KIND_MARKER,
    };

    cuptiActivityRegisterCallbacks(request, complete);
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        cuptiActivityEnable(kinds[i]);
}
