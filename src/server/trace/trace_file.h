/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file into which a server writes a trace (trace_format.h). Its maker can write every byte of
 * it; the server reads only counters, and bounds them.
 */
#pragma once

#include <stddef.h>

#include "trace_format.h"

struct trace_file {
    struct trace_header *header;
    uint32_t capacity; /* in records */
    uint32_t next;     /* where records are used again: the place of the next one */
};

/* Maps a file of so many records: 0, or -errno when it is none. The caller keeps `fd`. */
int trace_file_open(struct trace_file *file, int fd, uint32_t capacity);
void trace_file_close(struct trace_file *file);

/* Writes a record. From any thread where the capacity is TRACE_RECORDS_MAX, else from one. A record
 * for which there is no place is dropped, and counted. */
void trace_file_write(struct trace_file *file, unsigned kind, const struct trace_record *record);
