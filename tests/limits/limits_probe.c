/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells what a CUDA program sees of its limits. Each argument is a question, answered by one line:
 *
 *     sms              multiprocessors that the device says it has
 *     smid, new-smid   the multiprocessors that blocks ran on: default stream, a new stream
 *     kept-smid        the same on a stream that is made once
 *     smid=N ...       the same, where N are expected and the program cannot know that
 *     info             free and total bytes of device memory
 *     total            bytes of memory that the device says it has
 *     fill=N           pieces of N MiB that could be allocated, and the error that ended it
 *     drop             frees those
 *     lock=N           result of page-locking N MiB of host memory, which stay so
 *     context=N        a context with N multiprocessors: result, how many it got, what sms says;
 *     context3=N       made with cuCtxCreate_v4, or with _v3
 *     percent=P        CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=P, then a context
 *     close            ends that context
 *     cluster=N        clusters of N blocks: result on the default stream and on a new one,
 *                      how many run at a time, and the largest size that can be launched
 *     nothing=D        what cuDevicePrimaryCtxRetain and cuCtxCreate answer for device D; no
 *                      context is made at the start, but for each of these questions
 *     affinity         whether contexts with a number of multiprocessors are offered
 *     priorities       the least and the greatest priority of a stream
 *     device=N         how many devices there are; the next questions are about number N
 *     wait             reads a line of standard input first
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda_prototypes.h"

#define BLOCKS 512u
#define LAUNCHES 4           /* so that every SM has had a block, and none that must not have one */
#define NOTHING_ADDED_S 20.0 /* on a busy machine some threads of a software GPU may come late */
#define SMS_MAX 256u
#define PIECES_MAX 4096u
#define MIB (1ull << 20)

static const char kernel_text[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                                  ".visible .entry where(.param .u64 out, .param .u64 cycles)\n"
                                  "{\n"
                                  "    .reg .u64 %a, %b, %begin, %now, %n;\n"
                                  "    .reg .u32 %s, %c;\n"
                                  "    .reg .pred %p;\n"
                                  "    ld.param.u64 %a, [out];\n"
                                  "    cvta.to.global.u64 %a, %a;\n"
                                  "    ld.param.u64 %n, [cycles];\n"
                                  "    mov.u64 %begin, %clock64;\n"
                                  "again:\n"
                                  "    nanosleep.u32 10000;\n"
                                  "    mov.u64 %now, %clock64;\n"
                                  "    sub.u64 %now, %now, %begin;\n"
                                  "    setp.lt.u64 %p, %now, %n;\n"
                                  "    @%p bra again;\n"
                                  "    mov.u32 %s, %smid;\n"
                                  "    mov.u32 %c, %ctaid.x;\n"
                                  "    mul.wide.u32 %b, %c, 4;\n"
                                  "    add.u64 %a, %a, %b;\n"
                                  "    st.global.u32 [%a], %s;\n"
                                  "    ret;\n"
                                  "}\n";

static CUdevice device;
static CUstream kept;
static CUcontext extra;
static int extra_sms; /* what that was granted; 0 = there is none */
static CUdeviceptr pieces[PIECES_MAX];
static unsigned piece_count;

static void must(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    printf("%s: error %d\n", what, result);
    exit(1);
}

static int count_sms(void)
{
    int count = 0;

    must(cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device), "sms");
    return count;
}

static void answer_sms(void)
{
    printf("%d\n", count_sms());
}

static void print_where(const bool *seen)
{
    const char *separator = "";

    for (unsigned sm = 0; sm < SMS_MAX; sm++) {
        if (!seen[sm])
            continue;
        printf("%s%u", separator, sm);
        separator = " ";
    }
    putchar('\n');
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* How many of these were not seen before. */
static int look_at(const uint32_t *smids, bool *seen)
{
    int added = 0;

    for (unsigned i = 0; i < BLOCKS; i++) {
        added += !seen[smids[i] % SMS_MAX];
        seen[smids[i] % SMS_MAX] = true;
    }
    return added;
}

/* How many SMs there will be, unless the question says it. */
static int expect_sms(void)
{
    return extra_sms ? extra_sms : count_sms();
}

static void answer_where(CUstream stream, int expected)
{
    uint32_t smids[BLOCKS];
    uint64_t cycles = 20000;
    bool seen[SMS_MAX] = {false};
    int count = 0, sms = expected ? expected : expect_sms();
    double added_at = now();
    CUmodule module;
    CUfunction where;
    CUdeviceptr out;
    void *parameters[] = {&out, &cycles};

    must(cuModuleLoadData(&module, kernel_text), "cuModuleLoadData");
    must(cuModuleGetFunction(&where, module, "where"), "cuModuleGetFunction");
    must(cuMemAlloc_v2(&out, sizeof(smids)), "cuMemAlloc");
    for (int i = 0; i < LAUNCHES || (count < sms && now() - added_at < NOTHING_ADDED_S); i++) {
        must(cuLaunchKernel(where, BLOCKS, 1, 1, 1, 1, 1, 0, stream, parameters, NULL), "launch");
        must(cuStreamSynchronize(stream), "cuStreamSynchronize");
        must(cuMemcpyDtoH_v2(smids, out, sizeof(smids)), "cuMemcpyDtoH");
        int added = look_at(smids, seen);
        count += added;
        if (added)
            added_at = now();
    }
    must(cuMemFree_v2(out), "cuMemFree");
    must(cuModuleUnload(module), "cuModuleUnload");
    print_where(seen);
}

static void answer_where_on_new_stream(int expected)
{
    CUstream stream;

    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    answer_where(stream, expected);
    must(cuStreamDestroy_v2(stream), "cuStreamDestroy");
}

static void answer_where_on_kept_stream(int expected)
{
    if (!kept)
        must(cuStreamCreate(&kept, CU_STREAM_DEFAULT), "cuStreamCreate");
    answer_where(kept, expected);
}

static const char cluster_text[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                                   ".visible .entry full_block()\n"
                                   "{\n"
                                   "    barrier.cluster.arrive.aligned;\n"
                                   "    barrier.cluster.wait.aligned;\n"
                                   "    ret;\n"
                                   "}\n";

static CUfunction get_cluster_kernel(void)
{
    CUmodule module;
    CUfunction kernel;

    must(cuModuleLoadData(&module, cluster_text), "cuModuleLoadData");
    must(cuModuleGetFunction(&kernel, module, "full_block"), "cuModuleGetFunction");
    must(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
         "cuFuncSetAttribute");
    return kernel;
}

static CUresult launch_clusters(const CUlaunchConfig *config, CUfunction kernel)
{
    CUresult result = cuLaunchKernelEx(config, kernel, NULL, NULL);

    return result ? result : cuStreamSynchronize(config->hStream);
}

static void answer_cluster(unsigned size)
{
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                   .value.clusterDim = {size, 1, 1}};
    CUlaunchConfig config = {size * 4, 1, 1, 1024, 1, 1, .attrs = &attribute, .numAttrs = 1};
    CUfunction kernel = get_cluster_kernel();
    CUresult first = launch_clusters(&config, kernel);
    int at_once = 0, largest = 0;

    must(cuStreamCreate(&config.hStream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    CUresult second = launch_clusters(&config, kernel);
    must(cuOccupancyMaxActiveClusters(&at_once, kernel, &config), "cuOccupancyMaxActiveClusters");
    config.numAttrs = 0;
    must(cuOccupancyMaxPotentialClusterSize(&largest, kernel, &config),
         "cuOccupancyMaxPotentialClusterSize");
    must(cuStreamDestroy_v2(config.hStream), "cuStreamDestroy");
    printf("%d %d %d %d\n", first, second, at_once, largest);
}

static void answer_info(void)
{
    size_t free_bytes, total;

    must(cuMemGetInfo_v2(&free_bytes, &total), "cuMemGetInfo");
    printf("%zu %zu\n", free_bytes, total);
}

static void answer_total(void)
{
    size_t bytes;

    must(cuDeviceTotalMem_v2(&bytes, device), "cuDeviceTotalMem");
    printf("%zu\n", bytes);
}

static void answer_fill(unsigned long mib)
{
    CUresult result = CUDA_SUCCESS;

    while (piece_count < PIECES_MAX && result == CUDA_SUCCESS) {
        result = cuMemAlloc_v2(&pieces[piece_count], mib * MIB);
        piece_count += result == CUDA_SUCCESS;
    }
    printf("%u %d\n", piece_count, result);
}

static void drop_pieces(void)
{
    while (piece_count)
        must(cuMemFree_v2(pieces[--piece_count]), "cuMemFree");
    puts("0");
}

static void print_new_context(CUresult result)
{
    CUexecAffinityParam affinity = {.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT};

    printf("%d", result);
    if (result == CUDA_SUCCESS) {
        must(cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT), "affinity");
        extra_sms = (int)affinity.param.smCount.val;
        printf(" %u ", affinity.param.smCount.val);
        answer_sms();
    } else {
        putchar('\n');
    }
}

static void answer_context(unsigned long count)
{
    CUexecAffinityParam affinity = {.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT,
                                    .param.smCount.val = (unsigned)count};
    CUctxCreateParams parameters = {.execAffinityParams = &affinity, .numExecAffinityParams = 1};

    print_new_context(cuCtxCreate_v4(&extra, &parameters, 0, device));
}

static void answer_context_v3(unsigned long count)
{
    CUexecAffinityParam affinity = {.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT,
                                    .param.smCount.val = (unsigned)count};

    print_new_context(cuCtxCreate_v3(&extra, &affinity, 1, 0, device));
}

static void answer_percent(const char *percent)
{
    setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percent, 1);
    print_new_context(cuCtxCreate_v2(&extra, 0, device));
}

static void close_context(void)
{
    printf("%d\n", cuCtxDestroy_v2(extra));
    extra_sms = 0;
}

static void answer_affinity(void)
{
    int offered = -1;

    must(cuDeviceGetExecAffinitySupport(&offered, CU_EXEC_AFFINITY_TYPE_SM_COUNT, device),
         "cuDeviceGetExecAffinitySupport");
    printf("%d\n", offered);
}

static void answer_contexts(CUdevice ordinal)
{
    CUcontext made;
    CUresult retained = cuDevicePrimaryCtxRetain(&made, ordinal);

    printf("%d %d\n", retained, cuCtxCreate_v2(&made, 0, ordinal));
}

static void answer_priorities(void)
{
    int least = 0, greatest = 0;

    must(cuCtxGetStreamPriorityRange(&least, &greatest), "cuCtxGetStreamPriorityRange");
    printf("%d %d\n", least, greatest);
}

static void await_line(void)
{
    char line[16];

    if (fgets(line, sizeof(line), stdin))
        puts("on");
}

static void open_context(void)
{
    CUcontext context;

    must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

static void answer_lock(size_t mib)
{
    void *memory;

    printf("%d\n", cuMemHostAlloc(&memory, mib * MIB, 0));
}

static void choose_device(int ordinal)
{
    int count = 0;

    must(cuDeviceGetCount(&count), "cuDeviceGetCount");
    must(cuDeviceGet(&device, ordinal), "cuDeviceGet");
    open_context();
    printf("%d\n", count);
}

static int answer(const char *question)
{
    const char *value = strchr(question, '=');
    size_t length = value ? (size_t)(value - question) : strlen(question);

    value = value ? value + 1 : "0";
    if (!strcmp(question, "sms"))
        answer_sms();
    else if (!strncmp(question, "smid", length))
        answer_where(NULL, (int)strtol(value, NULL, 10));
    else if (!strncmp(question, "new-smid", length))
        answer_where_on_new_stream((int)strtol(value, NULL, 10));
    else if (!strncmp(question, "kept-smid", length))
        answer_where_on_kept_stream((int)strtol(value, NULL, 10));
    else if (!strcmp(question, "info"))
        answer_info();
    else if (!strcmp(question, "total"))
        answer_total();
    else if (!strncmp(question, "fill", length))
        answer_fill(strtoul(value, NULL, 10));
    else if (!strcmp(question, "drop"))
        drop_pieces();
    else if (!strncmp(question, "lock", length))
        answer_lock(strtoul(value, NULL, 10));
    else if (!strncmp(question, "context", length))
        answer_context(strtoul(value, NULL, 10));
    else if (!strncmp(question, "context3", length))
        answer_context_v3(strtoul(value, NULL, 10));
    else if (!strncmp(question, "percent", length))
        answer_percent(value);
    else if (!strcmp(question, "close"))
        close_context();
    else if (!strncmp(question, "nothing", length))
        answer_contexts((CUdevice)strtol(value, NULL, 10));
    else if (!strncmp(question, "cluster", length))
        answer_cluster((unsigned)strtoul(value, NULL, 10));
    else if (!strcmp(question, "affinity"))
        answer_affinity();
    else if (!strcmp(question, "priorities"))
        answer_priorities();
    else if (!strncmp(question, "device", length))
        choose_device((int)strtol(value, NULL, 10));
    else if (!strcmp(question, "wait"))
        await_line();
    else
        return 1;
    return 0;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    must(cuInit(0), "cuInit");
    must(cuDeviceGet(&device, 0), "cuDeviceGet");
    if (argc < 2 || strncmp(argv[1], "nothing", strlen("nothing")))
        open_context();
    for (int i = 1; i < argc; i++)
        if (answer(argv[i])) {
            fprintf(stderr, "what is %s?\n", argv[i]);
            return 2;
        }
    return 0;
}
