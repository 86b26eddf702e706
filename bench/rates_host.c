/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fma loop of rates.cu without CUDA. It is compiled by the C compiler as it stands, so that
 * neighboring elements go through the vector units together, and as an OpenCL kernel.
 *
 *   rates_host c|vectors|opencl SECONDS [THREADS]
 *
 * prints what rates.cu prints; OpenCL takes as many threads as it likes. Status 77: there is no
 * OpenCL here. OpenCL's library is looked for when it is needed, so building this takes nothing.
 */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"

#define COUNT (64 * 256)
#define ROUNDS 4000
#define STATUS_MISSING 77

static float data[COUNT] __attribute__((aligned(64)));

static void fill_data(void)
{
    for (int i = 0; i < COUNT; i++)
        data[i] = (float)i;
}

/* All end at the point that the loop leaves alone. */
static bool is_correct(void)
{
    for (int i = 0; i < COUNT; i++) {
        if (fabsf(data[i] - 50.0f) > 0.01f)
            return false;
    }
    return true;
}

/* ---- C ---- */

struct part {
    pthread_t thread;
    void (*loop)(float *from, float *to);
    float *from;
    float *to;
};

/* One element after the other, as the kernel has it. */
static void each(float *from, float *to)
{
    for (; from < to; from++) {
        float a = *from;
        for (int round = 0; round < ROUNDS; round++)
            a = fmaf(a, 0.99f, 0.5f);
        *from = a;
    }
}

/* Enough elements at a time that no fma waits for another. */
#define TOGETHER 128

static void together(float *from, float *to)
{
    for (; from < to; from += TOGETHER) {
        float a[TOGETHER];
        memcpy(a, from, sizeof(a));
        for (int round = 0; round < ROUNDS; round++) {
#pragma GCC unroll 128
            for (int i = 0; i < TOGETHER; i++)
                a[i] = fmaf(a[i], 0.99f, 0.5f);
        }
        memcpy(from, a, sizeof(a));
    }
}

static void *run_part(void *argument)
{
    struct part *part = argument;
    part->loop(part->from, part->to);
    return NULL;
}

#define MAX_THREADS 64

static void run_threads(void (*loop)(float *, float *), int threads)
{
    struct part parts[MAX_THREADS];
    for (int i = 0; i < threads; i++) {
        int first = COUNT / TOGETHER * i / threads, last = COUNT / TOGETHER * (i + 1) / threads;
        parts[i] = (struct part){
            .loop = loop, .from = data + first * TOGETHER, .to = data + last * TOGETHER};
        if (pthread_create(&parts[i].thread, NULL, run_part, &parts[i]) != 0)
            exit(2);
    }
    for (int i = 0; i < threads; i++)
        pthread_join(parts[i].thread, NULL);
}

/* ---- OpenCL, as far as it is needed; types and numbers are those of its specification ---- */

typedef void *cl_object;
#define CL_DEVICE_TYPE_ALL 0xFFFFFFFFu
#define CL_MEM_READ_WRITE 1u

static const char kernel_source[] = "__kernel void fma_kernel(__global float *data, int rounds)\n"
                                    "{\n"
                                    "    int i = get_global_id(0);\n"
                                    "    float a = data[i];\n"
                                    "    for (int round = 0; round < rounds; round++)\n"
                                    "        a = fma(a, 0.99f, 0.5f);\n"
                                    "    data[i] = a;\n"
                                    "}\n";

static cl_object queue, kernel, buffer;

static void *opencl(const char *name)
{
    static void *library;
    if (!library)
        library = dlopen("libOpenCL.so.1", RTLD_NOW);
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        fprintf(stderr, "rates_host: no OpenCL here\n");
        exit(STATUS_MISSING);
    }
    return found;
}

#define OPENCL(name, ...) ((int32_t(*)(__VA_ARGS__))opencl(#name))
#define OPENCL_OBJECT(name, ...) ((cl_object(*)(__VA_ARGS__))opencl(#name))

static void check_opencl(int32_t error, const char *what)
{
    if (error == 0)
        return;
    fprintf(stderr, "rates_host: %s: OpenCL error %d\n", what, error);
    exit(2);
}

static void opencl_open(void)
{
    cl_object platform, device, context, program;
    const char *text = kernel_source;
    size_t work_size = sizeof(cl_object);
    int32_t rounds = ROUNDS, error = 0;
    uint32_t count = 0;
    if (OPENCL(clGetPlatformIDs, uint32_t, cl_object *, uint32_t *)(1, &platform, &count) != 0 ||
        count == 0 ||
        OPENCL(clGetDeviceIDs, cl_object, uint64_t, uint32_t, cl_object *,
               uint32_t *)(platform, CL_DEVICE_TYPE_ALL, 1, &device, &count) != 0) {
        fprintf(stderr, "rates_host: OpenCL has no device\n");
        exit(STATUS_MISSING);
    }
    context = OPENCL_OBJECT(clCreateContext, const intptr_t *, uint32_t, const cl_object *, void *,
                            void *, int32_t *)(NULL, 1, &device, NULL, NULL, &error);
    check_opencl(error, "clCreateContext");
    queue = OPENCL_OBJECT(clCreateCommandQueue, cl_object, cl_object, uint64_t,
                          int32_t *)(context, device, 0, &error);
    check_opencl(error, "clCreateCommandQueue");
    program = OPENCL_OBJECT(clCreateProgramWithSource, cl_object, uint32_t, const char **,
                            const size_t *, int32_t *)(context, 1, &text, NULL, &error);
    check_opencl(error, "clCreateProgramWithSource");
    check_opencl(OPENCL(clBuildProgram, cl_object, uint32_t, const cl_object *, const char *,
                        void *, void *)(program, 1, &device, "", NULL, NULL),
                 "clBuildProgram");
    kernel = OPENCL_OBJECT(clCreateKernel, cl_object, const char *,
                           int32_t *)(program, "fma_kernel", &error);
    check_opencl(error, "clCreateKernel");
    buffer = OPENCL_OBJECT(clCreateBuffer, cl_object, uint64_t, size_t, void *,
                           int32_t *)(context, CL_MEM_READ_WRITE, sizeof(data), NULL, &error);
    check_opencl(error, "clCreateBuffer");
    check_opencl(OPENCL(clSetKernelArg, cl_object, uint32_t, size_t,
                        const void *)(kernel, 0, work_size, &buffer),
                 "clSetKernelArg");
    check_opencl(OPENCL(clSetKernelArg, cl_object, uint32_t, size_t,
                        const void *)(kernel, 1, sizeof(rounds), &rounds),
                 "clSetKernelArg");
}

static void opencl_run(void)
{
    size_t global = COUNT, local = 256;
    check_opencl(OPENCL(clEnqueueWriteBuffer, cl_object, cl_object, uint32_t, size_t, size_t,
                        const void *, uint32_t, void *,
                        void *)(queue, buffer, 1, 0, sizeof(data), data, 0, NULL, NULL),
                 "clEnqueueWriteBuffer");
    check_opencl(OPENCL(clEnqueueNDRangeKernel, cl_object, cl_object, uint32_t, const size_t *,
                        const size_t *, const size_t *, uint32_t, void *,
                        void *)(queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL),
                 "clEnqueueNDRangeKernel");
    check_opencl(OPENCL(clFinish, cl_object)(queue), "clFinish");
    check_opencl(OPENCL(clEnqueueReadBuffer, cl_object, cl_object, uint32_t, size_t, size_t, void *,
                        uint32_t, void *,
                        void *)(queue, buffer, 1, 0, sizeof(data), data, 0, NULL, NULL),
                 "clEnqueueReadBuffer");
}

/* ---- Measuring: as in rates.cu the best run counts, by the clock and by the CPU time spent ----
 */

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void run_way(const char *way, int threads)
{
    if (strcmp(way, "opencl") == 0)
        opencl_run();
    else
        run_threads(strcmp(way, "vectors") == 0 ? together : each, threads);
}

int main(int count, char **words)
{
    int threads = count > 3 ? atoi(words[3]) : 1;
    if (count < 3 || threads < 1 || threads > MAX_THREADS) {
        fprintf(stderr, "usage: rates_host c|vectors|opencl SECONDS [THREADS]\n");
        return 2;
    }
    if (strcmp(words[1], "opencl") == 0)
        opencl_open();
    double best = 1e9, best_cpu = 1e9, units = (double)COUNT * ROUNDS;
    uint64_t end = clock_ns() + (uint64_t)(atof(words[2]) * 1e9);
    bool correct = true;
    do {
        fill_data();
        uint64_t begin = clock_ns();
        double cpu = cpu_seconds();
        run_way(words[1], threads);
        best = fmin(best, (double)(clock_ns() - begin) * 1e-9);
        best_cpu = fmin(best_cpu, cpu_seconds() - cpu);
        correct &= is_correct();
    } while (clock_ns() < end);
    printf("{\"giga\": %.6f, \"giga_a_core\": %.6f, \"correct\": %s}\n", units / best / 1e9,
           units / best_cpu / 1e9, correct ? "true" : "false");
    return correct ? 0 : 1;
}
