/* SPDX-License-Identifier: Apache-2.0 */
/* A program with ranges and marks of each kind that NVTX has, over and over. It uses NVIDIA's own
 * header, and is built where that is installed. */
#include <stdio.h>
#include <wchar.h>

#include <nvtx3/nvToolsExt.h>

typedef int CUresult;
CUresult cuInit(unsigned flags);
CUresult cuDeviceGet(int *device, int ordinal);
CUresult cuDevicePrimaryCtxRetain(void **context, int device);
CUresult cuCtxSetCurrent(void *context);
CUresult cuMemAlloc_v2(unsigned long long *address, size_t size);
CUresult cuMemsetD8_v2(unsigned long long address, unsigned char value, size_t size);
CUresult cuCtxSynchronize(void);
CUresult cuProfilerStart(void);

static nvtxDomainHandle_t domain;
static nvtxEventAttributes_t attributes = {
    .version = NVTX_VERSION,
    .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
    .messageType = NVTX_MESSAGE_TYPE_REGISTERED,
};

static void play_step(unsigned long long address)
{
    nvtxRangePushA("step");
    nvtxDomainRangePushEx(domain, &attributes);
    cuMemsetD8_v2(address, 1, 1 << 20);
    cuCtxSynchronize();
    nvtxDomainRangePop(domain);
    nvtxMarkA("half");
    nvtxRangePushW(L"wide \x20ac");
    nvtxRangePop();
    cuProfilerStart();
    nvtxRangePop();
}

static CUresult begin(unsigned long long *ret_address)
{
    void *context;
    int device;
    CUresult result = cuInit(0);

    if (!result)
        result = cuDeviceGet(&device, 0);
    if (!result)
        result = cuDevicePrimaryCtxRetain(&context, device);
    if (!result)
        result = cuCtxSetCurrent(context);
    return result ? result : cuMemAlloc_v2(ret_address, 1 << 20);
}

int main(void)
{
    unsigned long long address;
    CUresult result = begin(&address);

    if (result) {
        fprintf(stderr, "error %d\n", result);
        return 1;
    }
    domain = nvtxDomainCreateA("tests");
    attributes.message.registered = nvtxDomainRegisterStringA(domain, "registered");
    for (;;) {
        nvtxRangeId_t whole = nvtxRangeStartA("whole");
        for (int i = 0; i < 10; i++)
            play_step(address);
        nvtxRangeEnd(whole);
    }
}
