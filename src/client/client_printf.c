/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of kernels goes through the C library's streams, as with any CUDA driver, so that it falls
 * in order with what the program itself prints.
 */
#include "client_printf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

#define KEPT_MAX (1u << 20)

#define PRINT_LOCKED _cleanup_mutex_ pthread_mutex_t *print_held = mutex_hold(&client->printf_lock)

static FILE *file_of(enum region_output kind)
{
    return kind == OUTPUT_STDOUT ? stdout : stderr;
}

static size_t write_kept_locked(enum region_output kind)
{
    struct kept_output *kept = &client->kept_output[kind];
    size_t size = kept->size;

    kept->size = 0;
    return size ? fwrite(kept->bytes, 1, size, file_of(kind)) : 0;
}

static void write_out_locked(enum region_output kind)
{
    size_t size, total = write_kept_locked(kind);
    char text[4096];

    while ((size = channel_take_output(&client->channel, kind, text, sizeof(text))) > 0) {
        fwrite(text, 1, size, file_of(kind));
        total += size;
    }
    if (total)
        fflush(file_of(kind));
}

void printf_output_write_all(void)
{
    PRINT_LOCKED;

    channel_mark_output_seen(&client->channel);
    for (unsigned kind = 0; kind < OUTPUT_KINDS; kind++)
        write_out_locked(kind);
    __atomic_store_n(&client->keeps_output, false, __ATOMIC_RELAXED);
}

/* Room for more. The program itself may print in between, so lines stay whole. */
static void write_lines_locked(enum region_output kind)
{
    struct kept_output *kept = &client->kept_output[kind];
    const char *last = memrchr(kept->bytes, '\n', kept->size);
    size_t whole = last ? (size_t)(last - kept->bytes) + 1 : kept->size;

    fwrite(kept->bytes, 1, whole, file_of(kind));
    fflush(file_of(kind));
    kept->size -= whole;
    memmove(kept->bytes, kept->bytes + whole, kept->size);
}

/* What cannot be kept comes out too early, rather than never. */
static void keep_locked(enum region_output kind)
{
    struct kept_output *kept = &client->kept_output[kind];
    size_t size;

    if (!kept->bytes)
        kept->bytes = malloc(KEPT_MAX);
    if (!kept->bytes) {
        write_out_locked(kind);
        return;
    }
    do {
        if (kept->size == KEPT_MAX)
            write_lines_locked(kind);
        size = channel_take_output(&client->channel, kind, kept->bytes + kept->size,
                                 KEPT_MAX - kept->size);
        kept->size += size;
    } while (size > 0);
}

void printf_output_keep(void)
{
    PRINT_LOCKED;

    channel_mark_output_seen(&client->channel);
    __atomic_store_n(&client->keeps_output, true, __ATOMIC_RELAXED);
    for (unsigned kind = 0; kind < OUTPUT_KINDS; kind++)
        keep_locked(kind);
}
