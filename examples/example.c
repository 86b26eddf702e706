/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the examples share: options, opening and closing the device, and the last line.
 */
#include "example.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define EXIT_SKIPPED 77
/* Rounds that may be queued while progress is shown: the device is not far behind what it says. */
#define SHORT_QUEUE 16

void example_check(CUresult result, const char *call)
{
    const char *name = "unknown error";

    if (result == CUDA_SUCCESS)
        return;
    cuGetErrorName(result, &name);
    fprintf(stderr, "%s: %s (%d)\n", call, name, result);
    exit(EXIT_FAILURE);
}

static unsigned parse_count(const char *text)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (*end || value == 0 || value > UINT32_MAX) {
        fprintf(stderr, "not a positive number: %s\n", text);
        exit(EXIT_FAILURE);
    }
    return (unsigned)value;
}

static void parse_options(struct example *example, int argc, char **argv)
{
    int option;

    while ((option = getopt(argc, argv, "n:r:p")) != -1) {
        switch (option) {
        case 'n':
            example->size = parse_count(optarg);
            break;
        case 'r':
            example->rounds = parse_count(optarg);
            break;
        case 'p':
            example->progress = true;
            break;
        default:
            fprintf(stderr, "usage: %s [-n SIZE] [-r ROUNDS] [-p]\n", argv[0]);
            exit(EXIT_FAILURE);
        }
    }
}

void example_open(struct example *example, int argc, char **argv, const char *ptx)
{
    CUcontext context;
    CUresult result;

    parse_options(example, argc, argv);
    result = cuInit(0);
    if (result == CUDA_ERROR_NO_DEVICE) {
        fprintf(stderr, "%s: no CUDA device\n", example->name);
        exit(EXIT_SKIPPED);
    }
    example_check(result, "cuInit");
    CHECK(cuDeviceGet(&example->device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, example->device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&example->module, ptx));
}

CUfunction example_function(const struct example *example, const char *name)
{
    CUfunction function;

    CHECK(cuModuleGetFunction(&function, example->module, name));
    return function;
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

void example_progress(struct example *example, unsigned round)
{
    if (!example->progress || round % SHORT_QUEUE != 0)
        return;
    CHECK(cuCtxSynchronize());
    if (now() - example->last_progress < 1.0)
        return;
    example->last_progress = now();
    fprintf(stderr, "%s: round %u of %u\n", example->name, round + 1, example->rounds);
}

int example_close(struct example *example, bool correct, uint64_t result)
{
    printf("%s: size %u, rounds %u, result %016" PRIx64 ", %s\n", example->name, example->size,
           example->rounds, result, correct ? "correct" : "WRONG");
    CHECK(cuModuleUnload(example->module));
    CHECK(cuDevicePrimaryCtxRelease(example->device));
    return correct ? EXIT_SUCCESS : EXIT_FAILURE;
}

CUdeviceptr example_alloc(size_t size)
{
    CUdeviceptr pointer;

    CHECK(cuMemAlloc(&pointer, size));
    return pointer;
}

CUdeviceptr example_upload(const void *data, size_t size)
{
    CUdeviceptr pointer = example_alloc(size);

    CHECK(cuMemcpyHtoD(pointer, data, size));
    return pointer;
}

void *example_buffer(size_t size)
{
    void *buffer = calloc(1, size);

    if (!buffer) {
        fprintf(stderr, "out of memory\n");
        exit(EXIT_FAILURE);
    }
    return buffer;
}

uint32_t example_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

float example_random_float(uint32_t *state)
{
    return (float)example_random(state) / (1 << 23) - 1.0f;
}

/* FNV-1a. */
uint64_t example_checksum(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    uint64_t hash = 0xcbf29ce484222325;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash;
}
