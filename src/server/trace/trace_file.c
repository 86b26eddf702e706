/* SPDX-License-Identifier: Apache-2.0 */
/* See trace_file.h. */
#include "trace_file.h"

#include <string.h>

#include "shm.h"

static size_t size_of(uint32_t capacity)
{
    return sizeof(struct trace_header) + capacity * sizeof(struct trace_record);
}

int trace_file_open(struct trace_file *file, int fd, uint32_t capacity)
{
    void *address;
    int error = shm_check(fd, size_of(capacity));

    if (!error)
        error = shm_map(fd, size_of(capacity), NULL, 0, &address);
    if (!error)
        *file = (struct trace_file){.header = address, .capacity = capacity};
    return error;
}

void trace_file_close(struct trace_file *file)
{
    shm_unmap(file->header, size_of(file->capacity));
    file->header = NULL;
}

/* A place that no record had so far; NULL when there is none. */
static struct trace_record *take_fresh_place(struct trace_file *file)
{
    uint32_t at = atomic_fetch_add_explicit(&file->header->next, 1, memory_order_relaxed);

    if (at < file->capacity)
        return &trace_records(file->header)[at];
    atomic_store_explicit(&file->header->next, file->capacity + 1, memory_order_relaxed);
    return NULL;
}

/* A place whose record the reader has taken; NULL when it has not. Partner: the reader, which sets
 * the kind to 0. */
static struct trace_record *take_used_place(struct trace_file *file)
{
    struct trace_record *place = &trace_records(file->header)[file->next % file->capacity];

    if (atomic_load_explicit(&place->kind, memory_order_acquire)) {
        atomic_fetch_add_explicit(&file->header->lost, 1, memory_order_relaxed);
        return NULL;
    }
    file->next++;
    return place;
}

/* Partner: the reader, which takes a record whose kind is set as complete. */
void trace_file_write(struct trace_file *file, unsigned kind, const struct trace_record *record)
{
    struct trace_record *place =
        file->capacity == TRACE_RECORDS_MAX ? take_fresh_place(file) : take_used_place(file);

    if (!place)
        return;
    memcpy((char *)place + sizeof(place->kind), (const char *)record + sizeof(record->kind),
           sizeof(*record) - sizeof(record->kind));
    atomic_store_explicit(&place->kind, kind, memory_order_release);
}
