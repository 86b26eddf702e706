/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Touches of managed memory while a kernel may use it, and others that are allowed. It names
 * those that were refused; tests/api/test_managed_check.py knows those that have to be.
 */
#include "check.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define WORDS 5000u

static sigjmp_buf back;

static void refused(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    (void)context;
    siglongjmp(back, 1);
}

static void touch(const char *what, volatile uint32_t *word, bool writes)
{
    if (sigsetjmp(back, 1)) {
        printf("%s: refused\n", what);
        return;
    }
    if (writes)
        __atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
    printf("%s: %u\n", what, *word);
}

static uint32_t *make(unsigned flags)
{
    CUdeviceptr address;

    MUST(cuMemAllocManaged(&address, WORDS * 4, flags));
    memset((void *)(uintptr_t)address, 0, WORDS * 4);
    return (uint32_t *)(uintptr_t)address;
}

static CUfunction kernel;
static CUstream stream, second;
static uint32_t *shared, *own, *other;

static void make_all(void)
{
    kernel = get_kernel(load_kernels(), "fill");
    shared = make(CU_MEM_ATTACH_GLOBAL);
    own = make(CU_MEM_ATTACH_HOST);
    other = make(CU_MEM_ATTACH_GLOBAL);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamAttachMemAsync(second, (CUdeviceptr)(uintptr_t)other, 0, CU_MEM_ATTACH_SINGLE));
}

static void launch_on(uint32_t *words, uint32_t value)
{
    uint32_t n = WORDS;
    void *parameters[] = {&words, &value, &n};

    launch_one(kernel, stream, parameters);
}

static void launch(uint32_t value)
{
    launch_on(shared, value);
}

/* A kernel uses what is attached to the host, and then what was. */
static void use_attached(void)
{
    const char *name;

    MUST(cuStreamAttachMemAsync(stream, (CUdeviceptr)(uintptr_t)shared, 0, CU_MEM_ATTACH_HOST));
    MUST(cuStreamAttachMemAsync(stream, (CUdeviceptr)(uintptr_t)own, 0, CU_MEM_ATTACH_GLOBAL));
    launch_on(own, 5);
    MUST(cuStreamSynchronize(stream));
    printf("no longer the host's: %u\n", own[0]);
    launch_on(shared, 6);
    MUST(cuGetErrorName(cuStreamSynchronize(stream), &name));
    printf("the host's: %s\n", name);
}

int main(int argc, char **argv)
{
    const struct sigaction action = {.sa_sigaction = refused, .sa_flags = SA_SIGINFO};
    CUdeviceptr word;

    check_open();
    sigaction(SIGSEGV, &action, NULL);
    word = make_words(1, 0);
    make_all();
    if (argc > 1) {
        use_attached();
        return 0;
    }
    touch("before", shared, true);
    launch(3);
    MUST(cuCtxSynchronize());
    MUST(cuStreamWaitValue32_v2(stream, word, 1, CU_STREAM_WAIT_VALUE_GEQ));
    launch(4);
    touch("read", shared, false);
    touch("written", shared, true);
    touch("of the host", own, true);
    touch("of another stream", other, true);
    MUST(cuStreamWriteValue32_v2(second, word, 1, 0));
    MUST(cuCtxSynchronize());
    touch("afterwards", shared, true);
    return 0;
}
