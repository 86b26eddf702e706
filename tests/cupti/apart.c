/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that profiles itself with CUPTI while it forks, or on two devices:
 *
 *     apart forks   children that fork again and again, as workers of a data loader; each calls
 *                   CUPTI, and none is in the profile of the parent, whose threads launch meanwhile
 *     apart peers   copies between devices
 */
#include <cupti.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect.h"

#define CHILDREN 8u
#define THREADS 2u
#define LAUNCHES 100u
#define SIZE 65536u

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry kernel()\n{\nret;\n}\n";

static CUcontext contexts[2];
static CUfunction kernel;

static void begin(void)
{
    CUmodule module;

    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&contexts[0], 0));
    MUST(cuCtxSetCurrent(contexts[0]));
    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleGetFunction(&kernel, module, "kernel"));
    MUST(cuptiActivityRegisterCallbacks(request, complete));
}

/* ---- forks ---- */

static void *launch_some(void *unused)
{
    MUST(cuCtxSetCurrent(contexts[0]));
    for (unsigned i = 0; i < LAUNCHES; i++)
        MUST(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    return NULL;
}

/* Buffers of the parent do not come back in the child. */
static void be_child(void)
{
    unsigned before = record_count;
    size_t dropped;

    MUST(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 1));
    MUST(cuptiActivityFlushAll(1));
    MUST(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
    MUST(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    _exit(record_count != before);
}

static void fork_child(void)
{
    pid_t child;
    int status = -1;

    pthread_mutex_lock(&records_lock); /* no other thread has the test's own lock */
    child = fork();
    pthread_mutex_unlock(&records_lock);
    if (child == 0)
        be_child();
    check(waitpid(child, &status, 0) == child && status == 0, "a child");
}

static void test_forks(void)
{
    pthread_t threads[THREADS];

    begin();
    MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    for (unsigned i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], NULL, launch_some, NULL));
    for (unsigned i = 0; i < CHILDREN; i++)
        fork_child();
    for (unsigned i = 0; i < THREADS; i++)
        MUST(pthread_join(threads[i], NULL));
    MUST(cuCtxSynchronize());
    flush();
    printf("%u kernels\n", count_kind(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
}

/* ---- peers ---- */

static void print_peer_copy(const CUpti_ActivityMemcpyPtoP4 *copy)
{
    uint32_t from, to;

    MUST(cuptiGetContextId(contexts[0], &from));
    MUST(cuptiGetContextId(contexts[1], &to));
    printf("copy kind %d of %llu from %u to %u\n", copy->copyKind, (unsigned long long)copy->bytes,
           copy->srcDeviceId, copy->dstDeviceId);
    check(copy->srcKind == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE &&
              copy->dstKind == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
          "the kinds of memory");
    check(copy->srcContextId == (copy->srcDeviceId ? to : from) &&
              copy->dstContextId == (copy->dstDeviceId ? to : from),
          "the contexts");
    check(copy->start && copy->start <= copy->end, "the times");
}

static void test_peers(void)
{
    CUdeviceptr first, second;

    begin();
    MUST(cuDevicePrimaryCtxRetain(&contexts[1], 1));
    MUST(cuMemAlloc(&first, SIZE));
    MUST(cuCtxSetCurrent(contexts[1]));
    MUST(cuMemAlloc(&second, SIZE));
    MUST(cuCtxSetCurrent(contexts[0]));
    MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY));
    MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY2));
    MUST(cuMemcpyPeer(second, contexts[1], first, contexts[0], SIZE));
    MUST(cuMemcpyDtoDAsync(first, second, SIZE / 2, NULL));
    MUST(cuMemcpyDtoD(first + SIZE / 2, first, SIZE / 2));
    MUST(cuCtxSynchronize());
    flush();
    for (unsigned i = 0; i < record_count; i++)
        if (records[i]->kind == CUPTI_ACTIVITY_KIND_MEMCPY2)
            print_peer_copy((const void *)records[i]);
    printf("%u others\n", count_kind(CUPTI_ACTIVITY_KIND_MEMCPY));
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "forks"))
        test_forks();
    else if (argc == 2 && !strcmp(argv[1], "peers"))
        test_peers();
    else
        fprintf(stderr, "usage: apart forks|peers\n");
    return 0;
}
