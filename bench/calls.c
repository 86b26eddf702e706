/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the calls that programs make most, again and again: for instructions.py, which counts what
 * one of them takes.
 */
#include "example.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vector_add.ptx.h"

#define COPY_BYTES 64
#define QUEUE 500 /* this many are waited for together */

struct work {
    CUfunction kernel;
    CUdeviceptr memory;
    uint32_t count;
};

static void launch_kernel(struct work *work)
{
    void *parameters[] = {&work->memory, &work->memory, &work->memory, &work->count};

    CHECK(cuLaunchKernel(work->kernel, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
}

static void launch_and_wait(struct work *work)
{
    launch_kernel(work);
    CHECK(cuStreamSynchronize(NULL));
}

static void copy_bytes(struct work *work)
{
    static const unsigned char bytes[COPY_BYTES];

    CHECK(cuMemcpyHtoDAsync(work->memory, bytes, sizeof(bytes), NULL));
}

static const struct row {
    const char *name;
    void (*call)(struct work *work);
} rows[] = {{"launch", launch_kernel}, {"launch_and_wait", launch_and_wait}, {"copy", copy_bytes}};

static const struct row *find_row(const char *name)
{
    for (size_t i = 0; name && i < sizeof(rows) / sizeof(*rows); i++) {
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    }
    fprintf(stderr, "usage: calls -r TIMES launch|launch_and_wait|copy\n");
    exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
    struct example example = {.name = "calls", .size = 1, .rounds = 1};
    struct work work = {.count = 1};

    example_open(&example, argc, argv, vector_add_ptx);
    const struct row *row = find_row(argv[optind]);
    work.kernel = example_function(&example, "vector_add");
    work.memory = example_alloc(COPY_BYTES);
    for (unsigned i = 0; i < example.rounds; i++) {
        row->call(&work);
        if (i % QUEUE == 0)
            CHECK(cuCtxSynchronize());
    }
    CHECK(cuMemFree(work.memory));
    return example_close(&example, true, 0);
}
