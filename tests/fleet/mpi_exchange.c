/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks of an MPI program that share GPUs: mpi_exchange [--device-buffers] [--mib N]
 *
 * Each rank fills a buffer by a kernel and sends it to the next rank, and checks by a kernel what
 * the previous one sent. Then a sum over all ranks is checked. MPI gets host memory, or, with
 * --device-buffers, addresses of device memory, which takes a CUDA-aware MPI. Rank 0 prints
 * "N ranks on H hosts: exchanged and summed, X MB/s". Built by: mpicc mpi_exchange.c -ldl
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 10
#define THREADS 256

/* fill writes 3 * i + value to each word i; check counts the words that are not 3 * i + value. */
static const char kernels[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry fill(.param .u64 words, .param .u32 count, .param .u32 value) {\n"
    "  .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d<3>;\n"
    "  ld.param.u64 %d1, [words]; ld.param.u32 %r1, [count]; ld.param.u32 %r2, [value];\n"
    "  mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;\n"
    "  mad.lo.u32 %r3, %r3, %r4, %r5; setp.ge.u32 %p, %r3, %r1; @%p ret;\n"
    "  mad.lo.u32 %r4, %r3, 3, %r2; mul.wide.u32 %d2, %r3, 4; add.u64 %d1, %d1, %d2;\n"
    "  st.global.u32 [%d1], %r4; ret; }\n"
    ".visible .entry check(.param .u64 words, .param .u32 count, .param .u32 value, .param .u64 "
    "wrong) {\n"
    "  .reg .pred %p; .reg .b32 %r<7>; .reg .b64 %d<4>;\n"
    "  ld.param.u64 %d1, [words]; ld.param.u32 %r1, [count]; ld.param.u32 %r2, [value];\n"
    "  ld.param.u64 %d3, [wrong];\n"
    "  mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;\n"
    "  mad.lo.u32 %r3, %r3, %r4, %r5; setp.ge.u32 %p, %r3, %r1; @%p ret;\n"
    "  mad.lo.u32 %r4, %r3, 3, %r2; mul.wide.u32 %d2, %r3, 4; add.u64 %d1, %d1, %d2;\n"
    "  ld.global.u32 %r6, [%d1]; setp.eq.u32 %p, %r6, %r4; @%p ret;\n"
    "  red.global.add.u32 [%d3], 1; ret; }\n";

/* What MPI is given is the device memory itself, or host memory that is copied to and from it. */
struct buffer {
    uint64_t device;
    void *for_mpi;
    size_t size;
};

static void *driver;
static int rank, ranks;
static int on_device;

static void fail(const char *what, int code)
{
    fprintf(stderr, "rank %d: %s: %d\n", rank, what, code);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* The driver is looked up here, so that no CUDA toolkit is needed to build this program. */
#define CALL(name, types, ...)                         \
    do {                                               \
        int(*entry) types = (int(*) types)find(#name); \
        int result = entry(__VA_ARGS__);               \
        if (result != 0)                               \
            fail(#name, result);                       \
    } while (0)

static void *find(const char *name)
{
    void *function = dlsym(driver, name);

    if (!function)
        fail(name, -1);
    return function;
}

static void *open_device(void)
{
    int device, count;
    void *context, *module;

    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!driver)
        fail("there is no libcuda.so.1", -1);
    CALL(cuInit, (unsigned), 0);
    CALL(cuDeviceGetCount, (int *), &count);
    CALL(cuDeviceGet, (int *, int), &device, rank % count);
    CALL(cuDevicePrimaryCtxRetain, (void **, int), &context, device);
    CALL(cuCtxSetCurrent, (void *), context);
    CALL(cuModuleLoadData, (void **, const void *), &module, kernels);
    return module;
}

static struct buffer make_buffer(size_t size)
{
    struct buffer buffer = {.size = size};

    CALL(cuMemAlloc_v2, (uint64_t *, size_t), &buffer.device, size);
    if (on_device)
        buffer.for_mpi = (void *)(uintptr_t)buffer.device;
    else
        CALL(cuMemAllocHost_v2, (void **, size_t), &buffer.for_mpi, size);
    return buffer;
}

static void before_sending(struct buffer *buffer)
{
    if (on_device)
        CALL(cuCtxSynchronize, (void), );
    else
        CALL(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), buffer->for_mpi, buffer->device,
             buffer->size);
}

static void after_receiving(struct buffer *buffer)
{
    if (!on_device)
        CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), buffer->device, buffer->for_mpi,
             buffer->size);
}

static void launch(void *module, const char *name, unsigned count, void **parameters)
{
    void *function;
    unsigned blocks = (count + THREADS - 1) / THREADS;

    CALL(cuModuleGetFunction, (void **, void *, const char *), &function, module, name);
    CALL(cuLaunchKernel,
         (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
          void **, void **),
         function, blocks, 1, 1, THREADS, 1, 1, 0, NULL, parameters, NULL);
}

static void fill(void *module, struct buffer *buffer, unsigned value)
{
    unsigned count = (unsigned)(buffer->size / 4);

    launch(module, "fill", count, (void *[]){&buffer->device, &count, &value});
}

static unsigned count_wrong(void *module, struct buffer *buffer, unsigned value)
{
    unsigned count = (unsigned)(buffer->size / 4), wrong = 0;
    uint64_t counter;

    CALL(cuMemAlloc_v2, (uint64_t *, size_t), &counter, sizeof(wrong));
    CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), counter, &wrong, sizeof(wrong));
    launch(module, "check", count, (void *[]){&buffer->device, &count, &value, &counter});
    CALL(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), &wrong, counter, sizeof(wrong));
    CALL(cuMemFree_v2, (uint64_t), counter);
    return wrong;
}

static void pass_on(struct buffer *out, struct buffer *in)
{
    before_sending(out);
    MPI_Sendrecv(out->for_mpi, (int)(out->size / 4), MPI_UINT32_T, (rank + 1) % ranks, 0,
                 in->for_mpi, (int)(in->size / 4), MPI_UINT32_T, (rank + ranks - 1) % ranks, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    after_receiving(in);
}

/* Megabytes a second that each rank sends and receives, of the fastest round. */
static double ring(void *module, struct buffer *out, struct buffer *in)
{
    unsigned previous = (unsigned)((rank + ranks - 1) % ranks);
    double best = 0;

    for (unsigned round = 0; round < ROUNDS; round++) {
        double began, rate;
        unsigned wrong;

        fill(module, out, 1000 * round + (unsigned)rank);
        MPI_Barrier(MPI_COMM_WORLD);
        began = MPI_Wtime();
        pass_on(out, in);
        rate = (double)out->size / (MPI_Wtime() - began) / 1e6;
        if (rate > best)
            best = rate;
        wrong = count_wrong(module, in, 1000 * round + previous);
        if (wrong)
            fail("words that differ from what was sent", (int)wrong);
    }
    return best;
}

/* Sums 3 * i + rank over all ranks, which is 3 * ranks * i + what the ranks add up to. */
static void sum(void *module, struct buffer *out, struct buffer *in)
{
    unsigned offset = (unsigned)(ranks * (ranks - 1) / 2), count = (unsigned)(out->size / 4);
    uint32_t *host = malloc(out->size);

    fill(module, out, (unsigned)rank);
    before_sending(out);
    MPI_Allreduce(out->for_mpi, in->for_mpi, (int)count, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);
    after_receiving(in);
    CALL(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), host, in->device, in->size);
    for (unsigned i = 0; i < count; i++) {
        if (host[i] != 3 * (unsigned)ranks * i + offset)
            fail("the sum is wrong at word", (int)i);
    }
    free(host);
}

static int count_hosts(void)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "", *all = calloc((size_t)ranks, sizeof(name));
    int length, hosts = 0;

    MPI_Get_processor_name(name, &length);
    MPI_Allgather(name, sizeof(name), MPI_CHAR, all, sizeof(name), MPI_CHAR, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++) {
        int same = 0;

        for (int j = 0; j < i; j++)
            same |= !strcmp(all + (size_t)i * sizeof(name), all + (size_t)j * sizeof(name));
        hosts += !same;
    }
    free(all);
    return hosts;
}

int main(int argc, char **argv)
{
    size_t size = 1 << 20;
    struct buffer out, in;
    double rate;
    int hosts;
    void *module;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--device-buffers"))
            on_device = 1;
        else if (!strcmp(argv[i], "--mib") && i + 1 < argc)
            size = strtoul(argv[++i], NULL, 10) << 20;
        else
            fail("usage: mpi_exchange [--device-buffers] [--mib N]; unknown argument", i);
    }
    module = open_device();
    out = make_buffer(size);
    in = make_buffer(size);
    rate = ring(module, &out, &in);
    sum(module, &out, &in);
    hosts = count_hosts();
    if (rank == 0)
        printf("%d ranks on %d host%s: exchanged and summed, %.0f MB/s\n", ranks, hosts,
               hosts == 1 ? "" : "s", rate);
    MPI_Finalize();
    return 0;
}
