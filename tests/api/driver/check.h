/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver API programs share. A program is a list of tests; each prints its name and "ok",
 * or first what was not as expected. The output of two runs can be compared byte by byte. So no
 * test prints a time, an address or anything else that is not the same everywhere.
 */
#ifndef FUNNEL_TESTS_CHECK_H
#define FUNNEL_TESTS_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_prototypes.h"

/* Makes slow_add and step slow enough to be overtaken by work that does not wait. */
#define SLOW 20000

/* A call that the rest of the test needs: ends the program when it fails. */
#define MUST(call) check_must((call), #call, __FILE__, __LINE__)
/* A call that is to give this result. */
#define EXPECT(result, call) check_expect((result), (call), #call, __FILE__, __LINE__)
#define IS_TRUE(condition) check_true((condition), #condition, __FILE__, __LINE__)
#define RUN(test) check_run((test), #test)

void check_must(CUresult result, const char *call, const char *file, int line);
void check_expect(CUresult expected, CUresult result, const char *call, const char *file, int line);
void check_true(bool condition, const char *text, const char *file, int line);
void check_run(void (*test)(void), const char *name);

/* cuInit, and the first device; ends the program with status 77 when there is none. */
CUdevice check_init(void);
/* The same, with the primary context current. */
CUdevice check_open(void);
/* The exit status. */
int check_close(void);

CUmodule load_kernels(void);
/* Those that print. */
CUmodule load_talk(void);
CUmodule load_quiet(void);
CUfunction get_kernel(CUmodule module, const char *name);
/* One block of one thread, on this stream. */
void launch_one(CUfunction kernel, CUstream stream, void **parameters);
CUdeviceptr make_words(size_t count, uint32_t value);
bool words_are(CUdeviceptr words, size_t count, uint32_t value);
uint32_t word_at(CUdeviceptr word);
/* Has a kernel of load_kernels() write the words, and waits for it. */
void fill_words(CUmodule module, CUdeviceptr words, uint32_t value, uint32_t count);

/* Managed words that are zero. */
uint32_t *make_managed_words(size_t count);
void free_managed_words(uint32_t *words);

/* Where the device sees page-locked memory. */
CUdeviceptr seen_by_device(void *p);
bool bytes_are(const uint8_t *bytes, size_t size, uint8_t value);

#endif
