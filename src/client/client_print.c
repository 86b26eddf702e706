/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of kernels goes through the C library's streams, as with any CUDA driver, so that it falls
 * in order with what the program itself prints.
 */
#include "client_print.h"

#include <stdio.h>

#include "cleanup.h"

static void write_out(enum region_text kind, FILE *file)
{
    char text[4096];
    size_t size, total = 0;

    while ((size = channel_take_text(&client->channel, kind, text, sizeof(text))) > 0) {
        fwrite(text, 1, size, file);
        total += size;
    }
    if (total)
        fflush(file);
}

void client_print_waiting(void)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&client->print_lock);

    channel_see_text(&client->channel);
    write_out(TEXT_OUTPUT, stdout);
    write_out(TEXT_ERROR, stderr);
}
