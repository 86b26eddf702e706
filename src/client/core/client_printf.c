/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device printf output goes through the C library's streams, as with any CUDA driver. So it keeps
 * its order with the output of the program itself.
 */
#include "client_printf.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "clock.h"
#include "wire_calls.h"

#define KEPT_MAX (1u << 20)

atomic_bool printf_output_is_kept;
uint64_t printf_output_empty_pause_ns = 2 * NS_PER_MS;

struct kept_output {
    char *bytes; /* NULL until output is kept for the first time */
    size_t size;
};

/* Atomic, and about: threads that ask at the same time may count once. */
static atomic_uint empty_answers;          /* since there was output */
static atomic_uint_fast64_t last_question; /* clock_ns() */

static struct {
    pthread_mutex_t lock; /* of the thread that takes and writes output */
    struct kept_output kept[OUTPUT_KINDS];
} output = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define OUTPUT_LOCKED _cleanup_mutex_ pthread_mutex_t *output_held = mutex_hold(&output.lock)

/* After a fork, only the parent writes the output that the parent has kept. */
void printf_output_init(void)
{
    pthread_mutex_init(&output.lock, NULL);
    for (unsigned kind = 0; kind < OUTPUT_KINDS; kind++)
        output.kept[kind].size = 0;
    printf_output_is_kept = false;
    empty_answers = 0;
}

/* ---- how often the server is asked ---- */

bool printf_output_is_due(void)
{
    if (atomic_load_explicit(&empty_answers, memory_order_relaxed) < PRINTF_EMPTY_MOST)
        return true;
    return clock_ns() - atomic_load_explicit(&last_question, memory_order_relaxed) >=
           printf_output_empty_pause_ns;
}

static void count_question(void)
{
    unsigned empty = atomic_load_explicit(&empty_answers, memory_order_relaxed);

    if (empty < PRINTF_EMPTY_MOST)
        atomic_store_explicit(&empty_answers, empty + 1, memory_order_relaxed);
    else
        atomic_store_explicit(&last_question, clock_ns(), memory_order_relaxed);
}

static void note_output(void)
{
    atomic_store_explicit(&empty_answers, 0, memory_order_relaxed);
}

/* ---- writing and keeping ---- */

static FILE *file_of(enum region_output kind)
{
    return kind == OUTPUT_STDOUT ? stdout : stderr;
}

static size_t write_kept_locked(enum region_output kind)
{
    struct kept_output *kept = &output.kept[kind];
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
    OUTPUT_LOCKED;

    note_output();
    channel_mark_output_seen(&client->channel);
    for (unsigned kind = 0; kind < OUTPUT_KINDS; kind++)
        write_out_locked(kind);
    atomic_store_explicit(&printf_output_is_kept, false, memory_order_relaxed);
}

/* Makes space. The program itself may print in between, so only whole lines are written. */
static void write_lines_locked(enum region_output kind)
{
    struct kept_output *kept = &output.kept[kind];
    const char *last = memrchr(kept->bytes, '\n', kept->size);
    size_t whole = last ? (size_t)(last - kept->bytes) + 1 : kept->size;

    fwrite(kept->bytes, 1, whole, file_of(kind));
    fflush(file_of(kind));
    kept->size -= whole;
    memmove(kept->bytes, kept->bytes + whole, kept->size);
}

/* Without memory to keep the output, the thread writes the output early, so that none is lost. */
static void keep_locked(enum region_output kind)
{
    struct kept_output *kept = &output.kept[kind];
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
    OUTPUT_LOCKED;

    note_output();
    channel_mark_output_seen(&client->channel);
    atomic_store_explicit(&printf_output_is_kept, true, memory_order_relaxed);
    for (unsigned kind = 0; kind < OUTPUT_KINDS; kind++)
        keep_locked(kind);
}

void printf_output_collect_all(void)
{
    struct wire_fnPrintfCollect in = {.again = 0};
    struct wire_fnPrintfCollect_reply out = {.more = 1};

    count_question();
    while (out.more && wire_fnPrintfCollect(&client->channel, &in, &out) == CUDA_SUCCESS) {
        printf_output_write();
        in.again = 1;
    }
}

void printf_output_order(void)
{
    const struct wire_fnPrintfTake in = {};

    count_question();
    channel_lock(&client->channel);
    wire_fnPrintfTake(&client->channel, &in);
    channel_unlock(&client->channel);
}

void printf_output_collect_later(void)
{
    printf_output_order();
    printf_output_write();
}
