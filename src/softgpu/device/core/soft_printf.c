/* SPDX-License-Identifier: Apache-2.0 */
/* See soft_printf.h. The text goes through the C library's streams, so that it falls in order with
 * what the program itself prints. */
#include "soft_printf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soft.h"

#define KEPT_MAX (1u << 20)
#define KINDS 2

struct kept {
    char *parts; /* each behind its size, a uint16_t; KEPT_MAX bytes, or NULL while none is kept */
    size_t size;
};

struct printer {
    pthread_mutex_t lock; /* held while writing, so that text keeps its order */
    struct kept kept[KINDS];
    bool any;
};

#define PRINTER_LOCKED _cleanup_mutex_ pthread_mutex_t *printer_held = mutex_hold(&printer->lock)

struct printer *printer_create(void)
{
    struct printer *printer = calloc(1, sizeof(*printer));

    if (printer)
        pthread_mutex_init(&printer->lock, NULL);
    return printer;
}

void printer_destroy(struct printer *printer)
{
    if (!printer)
        return;
    print_flush(printer);
    pthread_mutex_destroy(&printer->lock);
    free(printer);
}

static FILE *file_of(unsigned kind)
{
    return kind == SG_PRINT_OUTPUT ? stdout : stderr;
}

static void write_parts(const struct kept *kept, FILE *file)
{
    uint16_t size;

    for (size_t at = 0; at < kept->size; at += sizeof(size) + size) {
        memcpy(&size, kept->parts + at, sizeof(size));
        fwrite(kept->parts + at + sizeof(size), 1, size, file);
    }
    fflush(file);
}

static void write_out(struct printer *printer)
{
    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct kept *kept = &printer->kept[kind];

        if (kept->size == 0)
            continue;
        write_parts(kept, file_of(kind));
        free(kept->parts);
        *kept = (struct kept){0};
    }
    __atomic_store_n(&printer->any, false, __ATOMIC_RELAXED);
}

static void keep_part(struct kept *kept, const char *part, uint16_t size)
{
    memcpy(kept->parts + kept->size, &size, sizeof(size));
    memcpy(kept->parts + kept->size + sizeof(size), part, size);
    kept->size += sizeof(size) + size;
}

static size_t space_for(const struct sg_text *text)
{
    size_t space = 0;

    for (unsigned i = 0; i < text->part_count; i++)
        space += sizeof(uint16_t) + text->part_sizes[i];
    return space;
}

/* A text is much smaller than what can be kept. Where memory is short, it is lost. */
void print_keep(struct printer *printer, enum sg_print_kind kind, const struct sg_text *text)
{
    PRINTER_LOCKED;
    struct kept *kept = &printer->kept[kind];
    const char *part = text->bytes;

    if (space_for(text) > KEPT_MAX - kept->size)
        write_out(printer);
    if (!kept->parts && !(kept->parts = malloc(KEPT_MAX)))
        return;
    for (unsigned i = 0; i < text->part_count; part += text->part_sizes[i++])
        keep_part(kept, part, text->part_sizes[i]);
    __atomic_store_n(&printer->any, true, __ATOMIC_RELAXED);
}

/* A thread that has seen a kernel's end, under soft_lock, also sees that it has printed. */
static bool is_any_kept(const struct printer *printer)
{
    return __atomic_load_n(&printer->any, __ATOMIC_RELAXED);
}

void print_flush(struct printer *printer)
{
    PRINTER_LOCKED;
    write_out(printer);
}

void print_flush_locked(struct printer *printer)
{
    if (!is_any_kept(printer))
        return;
    pthread_mutex_unlock(&soft_lock);
    print_flush(printer);
    pthread_mutex_lock(&soft_lock);
}
