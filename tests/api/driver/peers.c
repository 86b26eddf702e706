/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two devices that reach each other's memory. Skips itself where there are no two such.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>

#define WORDS 1000
#define BYTES (WORDS * sizeof(uint32_t))

static CUcontext contexts[2];
static CUdevice devices[2];

static void use(unsigned which)
{
    MUST(cuCtxSetCurrent(contexts[which]));
}

static CUdeviceptr make_on(unsigned which, uint32_t value)
{
    CUdeviceptr words;

    use(which);
    words = make_words(WORDS, value);
    MUST(cuCtxSynchronize());
    return words;
}

static bool are_on(unsigned which, CUdeviceptr words, uint32_t value)
{
    use(which);
    MUST(cuCtxSynchronize());
    return words_are(words, WORDS, value);
}

static void free_on(unsigned which, CUdeviceptr words)
{
    use(which);
    MUST(cuMemFree_v2(words));
}

static void what_reaches_what(void)
{
    int value = 9;

    EXPECT(CUDA_SUCCESS, cuDeviceCanAccessPeer(&value, devices[0], devices[0]));
    IS_TRUE(value == 0);
    EXPECT(CUDA_SUCCESS, cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED,
                                                 devices[0], devices[1]));
    IS_TRUE(value == 1);
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDeviceCanAccessPeer(&value, devices[0], 1000));
}

/* Run directly and through Funnel, the program prints the same. */
static void what_atomics_reach(void)
{
    int all = 9, some = 9;

    EXPECT(CUDA_SUCCESS,
           cuDeviceGetP2PAttribute(&all, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED,
                                   devices[0], devices[1]));
    EXPECT(CUDA_SUCCESS, cuDeviceGetP2PAttribute(
                             &some, CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED,
                             devices[0], devices[1]));
    IS_TRUE((all == 0 || all == 1) && (some == 0 || some == 1));
    printf("atomics: %d, only some: %d\n", all, some);
}

static void what_atomics_each_device_can(void)
{
    CUatomicOperation all[CU_ATOMIC_OPERATION_MAX];
    unsigned can[CU_ATOMIC_OPERATION_MAX];

    for (unsigned i = 0; i < CU_ATOMIC_OPERATION_MAX; i++)
        all[i] = (CUatomicOperation)i;
    EXPECT(CUDA_SUCCESS, cuDeviceGetP2PAtomicCapabilities(can, all, CU_ATOMIC_OPERATION_MAX,
                                                          devices[0], devices[1]));
    for (unsigned i = 0; i < CU_ATOMIC_OPERATION_MAX; i++)
        printf("operation %u: %#x\n", i, can[i]);
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuDeviceGetP2PAtomicCapabilities(can, all, 0, devices[0], devices[1]));
    EXPECT(CUDA_ERROR_INVALID_DEVICE,
           cuDeviceGetP2PAtomicCapabilities(can, all, 1, devices[0], devices[0]));
    EXPECT(CUDA_ERROR_INVALID_DEVICE,
           cuDeviceGetP2PAtomicCapabilities(can, all, 1, devices[0], 1000));
}

static void copies_between_devices(void)
{
    CUdeviceptr here = make_on(0, 1), there = make_on(1, 2);
    CUDA_MEMCPY3D_PEER box = {
        .srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .srcDevice = there,
        .srcContext = contexts[1],
        .srcPitch = 64,
        .srcHeight = 2,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = here,
        .dstContext = contexts[0],
        .dstPitch = 64,
        .dstHeight = 2,
        .WidthInBytes = 16,
        .Height = 2,
        .Depth = 2,
    };

    use(0);
    EXPECT(CUDA_SUCCESS, cuMemcpy3DPeer(&box));
    MUST(cuCtxSynchronize());
    IS_TRUE(word_at(here) == 2 && word_at(here + 16) == 1 && word_at(here + 192) == 2);
    EXPECT(CUDA_SUCCESS, cuMemcpyPeer(there, contexts[1], here, contexts[0], 16));
    MUST(cuCtxSynchronize());
    EXPECT(CUDA_SUCCESS, cuMemcpyPeerAsync(here, contexts[0], there, contexts[1], BYTES, NULL));
    IS_TRUE(are_on(0, here, 2));
    free_on(0, here);
    free_on(1, there);
}

/* Memory that is there already and memory that comes later. */
static void kernels_touch_a_peer(void)
{
    CUdeviceptr old = make_on(1, 5), new, mine = make_on(0, 0);
    uint32_t n = WORDS;
    CUfunction copy;

    use(0);
    copy = get_kernel(load_kernels(), "copy");
    EXPECT(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(contexts[1]));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuCtxEnablePeerAccess(contexts[1], 7));
    EXPECT(CUDA_SUCCESS, cuCtxEnablePeerAccess(contexts[1], 0));
    EXPECT(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(contexts[1], 0));
    EXPECT(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, cuCtxEnablePeerAccess(contexts[0], 0));
    new = make_on(1, 6);
    use(0);
    launch_one(copy, NULL, (void *[]){&mine, &old, &n});
    IS_TRUE(are_on(0, mine, 5));
    launch_one(copy, NULL, (void *[]){&mine, &new, &n});
    IS_TRUE(are_on(0, mine, 6));
    launch_one(copy, NULL, (void *[]){&old, &mine, &n});
    MUST(cuCtxSynchronize());
    IS_TRUE(are_on(1, old, 6));
    use(0);
    EXPECT(CUDA_SUCCESS, cuCtxDisablePeerAccess(contexts[1]));
    EXPECT(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(contexts[1]));
    free_on(0, mine);
    free_on(1, old);
    free_on(1, new);
}

static bool find_pair(void)
{
    int count = 0, can = 0;

    MUST(cuDeviceGetCount(&count));
    if (count < 2)
        return false;
    MUST(cuDeviceGet(&devices[0], 0));
    MUST(cuDeviceGet(&devices[1], 1));
    MUST(cuDeviceCanAccessPeer(&can, devices[0], devices[1]));
    return can;
}

int main(void)
{
    check_init();
    if (!find_pair()) {
        puts("no two devices that reach each other");
        return 77;
    }
    for (unsigned i = 0; i < 2; i++)
        MUST(cuDevicePrimaryCtxRetain(&contexts[i], devices[i]));
    RUN(what_reaches_what);
    RUN(what_atomics_reach);
    RUN(what_atomics_each_device_can);
    RUN(copies_between_devices);
    RUN(kernels_touch_a_peer);
    for (unsigned i = 0; i < 2; i++)
        MUST(cuDevicePrimaryCtxRelease_v2(devices[i]));
    return check_close();
}
