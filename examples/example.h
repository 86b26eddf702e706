/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the examples share: options, opening and closing the device, and the last line.
 *
 * An example prints one line on its standard output that depends only on its size and rounds, so
 * that two runs can be compared. Anything else (progress) goes to standard error.
 */
#ifndef EXAMPLES_EXAMPLE_H
#define EXAMPLES_EXAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_driver.h"

struct example {
    const char *name;
    unsigned size;   /* -n: what it counts is up to the example */
    unsigned rounds; /* -r: how often to do the whole computation */
    bool progress;   /* -p: say how far it has got, once a second */
    CUdevice device;
    CUmodule module;
    double last_progress;
};

/* Ends the program with a message when a CUDA call fails. */
#define CHECK(call) example_check((call), #call)
void example_check(CUresult result, const char *call);

/*
 * Reads the options, makes the first device's context current, and loads the kernels. Ends the
 * program with status 77 when there is no device.
 */
void example_open(struct example *example, int argc, char **argv, const char *ptx);
CUfunction example_function(const struct example *example, const char *name);
void example_progress(struct example *example, unsigned round);
/* Prints the line and returns the exit status. */
int example_close(struct example *example, bool correct, uint64_t result);

CUdeviceptr example_upload(const void *data, size_t size);
CUdeviceptr example_alloc(size_t size);
void *example_buffer(size_t size);

/* Data that is the same in every run. */
uint32_t example_random(uint32_t *state);
float example_random_float(uint32_t *state); /* in [-1, 1) */
uint64_t example_checksum(const void *data, size_t size);

#endif
