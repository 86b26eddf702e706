/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs of the scene in independence.py. Each writes a line for what has happened and reads
 * one from standard input to go on. So the order of events is known without a clock.
 *
 *     scene long               a kernel that runs until a line has been read
 *     scene always             a kernel behind the other, each of 40 ms, until a line has been read
 *     scene flood US ...       kernels of these lengths in turn, as many as it can launch, until it
 *                              is killed
 *     scene flood-two US ...   the same in two streams
 *     scene stack BYTES        a stack of this size, used by a launch
 *     scene witness            waits for a small launch, for each line that is read
 *     scene busy               launches and waits all the time, and for each line that is read says
 *                              how many launches there were, and how long the worst took
 *     scene frees              a large array, destroyed when a line is read
 *     scene streams COUNT      so many streams, created when a line is read, and a launch
 *     scene new-client NUMBER  code that no program had before, launched, and its result
 *     scene mover NUMBER       like the witness, but before each launch it loads such code, and it
 *                              has streams, events, a graph and memory that stay the same
 *     scene wide               kernels of many blocks, one after the other, with a stream,
 *                              an event, a graph and managed memory; for each line that is
 *                              read it says whether all results were right
 *     scene fault KIND         a kernel that faults, and the error that the program gets
 */
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cuda_prototypes.h"
#include "illegal_code.h"

#define MUST(call) must((call), #call)

/* `wait` tells in words[0] that it runs and waits for words[1], and `spin` counts in words[0] after
 * 40 ms. `pause` takes so long, and so does each block of `wide`, which counts in words[0]; `add`
 * adds to words[0]. */
static const char ptx[] = ".version 7.0\n"
                          ".target sm_70\n"
                          ".address_size 64\n"
                          ".visible .entry wait(.param .u64 words)\n"
                          "{\n"
                          "    .reg .u64 %%w;\n"
                          "    .reg .u32 %%v;\n"
                          "    .reg .pred %%p;\n"
                          "    ld.param.u64 %%w, [words];\n"
                          "    mov.u32 %%v, 1;\n"
                          "    st.volatile.u32 [%%w], %%v;\n"
                          "AGAIN:\n"
                          "    nanosleep.u32 50000;\n"
                          "    ld.volatile.u32 %%v, [%%w+4];\n"
                          "    setp.eq.u32 %%p, %%v, 0;\n"
                          "    @%%p bra AGAIN;\n"
                          "    ret;\n"
                          "}\n"
                          ".visible .entry spin(.param .u64 words)\n"
                          "{\n"
                          "    .reg .u64 %%w, %%begin, %%now;\n"
                          "    .reg .u32 %%v;\n"
                          "    .reg .pred %%p;\n"
                          "    ld.param.u64 %%w, [words];\n"
                          "    mov.u64 %%begin, %%globaltimer;\n"
                          "AGAIN:\n"
                          "    nanosleep.u32 50000;\n"
                          "    mov.u64 %%now, %%globaltimer;\n"
                          "    sub.u64 %%now, %%now, %%begin;\n"
                          "    setp.lt.u64 %%p, %%now, 40000000;\n"
                          "    @%%p bra AGAIN;\n"
                          "    ld.volatile.u32 %%v, [%%w];\n"
                          "    add.u32 %%v, %%v, 1;\n"
                          "    st.volatile.u32 [%%w], %%v;\n"
                          "    ret;\n"
                          "}\n"
                          ".visible .entry pause(.param .u64 ns)\n"
                          "{\n"
                          "    .reg .u64 %%n, %%begin, %%now, %%later;\n"
                          "    .reg .pred %%p;\n"
                          "    ld.param.u64 %%n, [ns];\n"
                          "    mov.u64 %%begin, %%globaltimer;\n"
                          "AGAIN:\n"
                          "    mov.u64 %%now, %%globaltimer;\n"
                          "    sub.u64 %%now, %%now, %%begin;\n"
                          "    add.u64 %%later, %%now, 100000;\n"
                          "    setp.lt.u64 %%p, %%later, %%n;\n"
                          "    @%%p nanosleep.u32 50000;\n"
                          "    setp.lt.u64 %%p, %%now, %%n;\n"
                          "    @%%p bra AGAIN;\n"
                          "    ret;\n"
                          "}\n"
                          ".visible .entry wide(.param .u64 words, .param .u64 ns)\n"
                          "{\n"
                          "    .reg .u64 %%w, %%n, %%begin, %%now, %%later;\n"
                          "    .reg .u32 %%v;\n"
                          "    .reg .pred %%p;\n"
                          "    ld.param.u64 %%w, [words];\n"
                          "    ld.param.u64 %%n, [ns];\n"
                          "    mov.u64 %%begin, %%globaltimer;\n"
                          "AGAIN:\n"
                          "    mov.u64 %%now, %%globaltimer;\n"
                          "    sub.u64 %%now, %%now, %%begin;\n"
                          "    add.u64 %%later, %%now, 100000;\n"
                          "    setp.lt.u64 %%p, %%later, %%n;\n"
                          "    @%%p nanosleep.u32 50000;\n"
                          "    setp.lt.u64 %%p, %%now, %%n;\n"
                          "    @%%p bra AGAIN;\n"
                          "    atom.global.add.u32 %%v, [%%w], 1;\n"
                          "    ret;\n"
                          "}\n"
                          ".visible .entry add(.param .u64 words)\n"
                          "{\n"
                          "    .reg .u64 %%w;\n"
                          "    .reg .u32 %%v;\n"
                          "    ld.param.u64 %%w, [words];\n"
                          "    ld.u32 %%v, [%%w];\n"
                          "    add.u32 %%v, %%v, %u;\n"
                          "    st.u32 [%%w], %%v;\n"
                          "    ret;\n"
                          "}\n";

/* Kernels that fault, each in its own way. */
static const char faults[] = ".version 7.0\n"
                             ".target sm_70\n"
                             ".address_size 64\n"
                             ".visible .entry address(.param .u64 words)\n"
                             "{\n"
                             "    .reg .u64 %w;\n"
                             "    mov.u64 %w, 64;\n"
                             "    st.global.u32 [%w], 1;\n"
                             "    ret;\n"
                             "}\n"
                             ".visible .entry load(.param .u64 words)\n"
                             "{\n"
                             "    .reg .u64 %w;\n"
                             "    .reg .u32 %v;\n"
                             "    mov.u64 %w, 64;\n"
                             "    ld.global.u32 %v, [%w];\n"
                             "    ld.param.u64 %w, [words];\n"
                             "    st.global.u32 [%w], %v;\n"
                             "    ret;\n"
                             "}\n"
                             ".visible .entry misaligned(.param .u64 words)\n"
                             "{\n"
                             "    .reg .u64 %w;\n"
                             "    ld.param.u64 %w, [words];\n"
                             "    st.global.u32 [%w+1], 1;\n"
                             "    ret;\n"
                             "}\n"
                             ".visible .entry shared(.param .u64 words)\n"
                             "{\n"
                             "    .reg .u32 %w;\n"
                             "    mov.u32 %w, 0xfffff0;\n"
                             "    st.shared.u32 [%w], 1;\n"
                             "    ret;\n"
                             "}\n"
                             ".visible .entry trap(.param .u64 words)\n"
                             "{\n"
                             "    trap;\n"
                             "    ret;\n"
                             "}\n"
                             /* PTX has no illegal instruction. The software GPU takes a barrier
                              * that does not exist for one; on a GPU this kernel's machine code
                              * is replaced (illegal_code.h). */
                             ".visible .entry instruction(.param .u64 words)\n"
                             "{\n"
                             "    .reg .u32 %b;\n"
                             "    mov.u32 %b, %clock;\n"
                             "    or.b32 %b, %b, 0x40000000;\n"
                             "    bar.sync %b, 32;\n"
                             "    ret;\n"
                             "}\n"
                             ".global .align 1 .b8 $str[6] = {102, 97, 108, 115, 101, 0};\n"
                             ".extern .func __assertfail(.param .b64 text, .param .b64 file, "
                             ".param .b32 line, .param .b64 function, .param .b64 size);\n"
                             ".visible .entry assertion(.param .u64 words)\n"
                             "{\n"
                             "    .reg .u64 %s;\n"
                             "    mov.u64 %s, $str;\n"
                             "    cvta.global.u64 %s, %s;\n"
                             "    {\n"
                             "    .param .b64 text;\n"
                             "    .param .b64 file;\n"
                             "    .param .b32 line;\n"
                             "    .param .b64 function;\n"
                             "    .param .b64 size;\n"
                             "    st.param.b64 [text], %s;\n"
                             "    st.param.b64 [file], %s;\n"
                             "    st.param.b32 [line], 1;\n"
                             "    st.param.b64 [function], %s;\n"
                             "    st.param.b64 [size], 1;\n"
                             "    call.uni __assertfail, (text, file, line, function, size);\n"
                             "    }\n"
                             "    ret;\n"
                             "}\n";

static CUcontext context;
static volatile uint32_t *words;
static CUdeviceptr address;

static void must(CUresult result, const char *call)
{
    if (result == CUDA_SUCCESS)
        return;
    printf("%s: error %d\n", call, result);
    fflush(stdout);
    exit(result == CUDA_ERROR_NO_DEVICE ? 77 : 1);
}

static void say(const char *what)
{
    puts(what);
    fflush(stdout);
}

static bool read_line(void)
{
    char line[64];

    return fgets(line, sizeof(line), stdin) != NULL;
}

static void open_device(void)
{
    void *memory;

    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuMemHostAlloc(&memory, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    memset(memory, 0, 4096);
    words = memory;
    MUST(cuMemHostGetDevicePointer_v2(&address, memory, 0));
}

/* The number makes the code of each new client another one. */
static CUfunction load(const char *name, unsigned number)
{
    char text[sizeof(ptx) + 16];
    CUmodule module;
    CUfunction function;

    snprintf(text, sizeof(text), ptx, number);
    MUST(cuModuleLoadData(&module, text));
    MUST(cuModuleGetFunction(&function, module, name));
    return function;
}

static void launch(CUfunction function)
{
    void *parameters[] = {&address};

    MUST(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
}

static void run_long(void)
{
    CUfunction function = load("wait", 1);

    launch(function);
    while (!words[0])
        ;
    say("running");
    read_line();
    words[1] = 1;
    MUST(cuCtxSynchronize());
    say("done");
}

static bool line_has_come(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

    return poll(&input, 1, 0) != 0;
}

/* Two kernels are launched before the first is waited for, so that the stream is never idle. */
static void run_always(void)
{
    CUfunction function = load("spin", 1);
    uint32_t launched = 0;

    for (; !launched || !line_has_come(); launched++) {
        launch(function);
        while (words[0] + 1 < launched)
            ;
        if (launched == 2)
            say("running");
    }
    MUST(cuCtxSynchronize());
    say(words[0] == launched ? "done" : "wrong result");
}

static void run_flood(char **lengths, unsigned count, unsigned stream_count)
{
    CUfunction function = load("pause", 1);
    CUstream streams[2] = {NULL};
    uint64_t ns;
    void *parameters[] = {&ns};

    for (unsigned i = 1; i < stream_count; i++)
        MUST(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0;; i++) {
        CUstream stream = streams[i / count % stream_count];
        ns = strtoull(lengths[i % count], NULL, 10) * 1000;
        MUST(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
        if (i == 1000)
            say("running");
    }
}

static void run_stack(unsigned bytes)
{
    CUfunction function = load("add", 1);

    MUST(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, bytes));
    launch(function);
    MUST(cuCtxSynchronize());
    say(words[0] == 1 ? "done" : "wrong result");
}

static void run_witness(void)
{
    CUfunction function = load("add", 1);
    uint32_t expected = 0;

    launch(function);
    MUST(cuCtxSynchronize());
    say("ready");
    for (expected = 2; read_line(); expected++) {
        launch(function);
        MUST(cuCtxSynchronize());
        say(words[0] == expected ? "launched" : "wrong result");
    }
}

static uint64_t now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* One launch after the other; how long it took, or 0 for a wrong result. */
static uint64_t launch_and_check(CUfunction function, uint32_t expected)
{
    uint64_t began = now_ns();

    launch(function);
    MUST(cuCtxSynchronize());
    return words[0] == expected ? now_ns() - began : 0;
}

/* Says for each line how many launches there were since the last one, and how many microseconds the
 * worst of them took. */
static void run_busy(void)
{
    CUfunction function = load("add", 1);
    uint32_t expected = 0, said = 0;
    uint64_t took, worst = 0;

    for (;;) {
        took = launch_and_check(function, ++expected);
        if (!took)
            break;
        worst = took > worst ? took : worst;
        if (expected == 1)
            say("busy");
        if (!line_has_come())
            continue;
        if (!read_line())
            return;
        printf("right %u %llu\n", expected - said, (unsigned long long)worst / 1000);
        fflush(stdout);
        said = expected;
        worst = 0;
    }
    say("wrong result");
}

/* An array too large to be kept. */
static void run_frees(void)
{
    const CUDA_ARRAY3D_DESCRIPTOR descriptor = {
        .Width = 4096, .Height = 1024, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
    CUarray array;

    MUST(cuArray3DCreate_v2(&array, &descriptor));
    say("ready");
    read_line();
    MUST(cuArrayDestroy(array));
    say("done");
}

static void run_streams(unsigned count)
{
    CUfunction function = load("add", 1);
    CUstream stream;

    launch(function);
    MUST(cuCtxSynchronize());
    say("ready");
    read_line();
    for (unsigned i = 0; i < count; i++)
        MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    launch(function);
    MUST(cuCtxSynchronize());
    say(words[0] == 2 ? "done" : "wrong result");
}

static void run_new_client(unsigned number)
{
    launch(load("add", number));
    MUST(cuCtxSynchronize());
    say(words[0] == number ? "done" : "wrong result");
}

/* What the mover has and keeps. */
static struct belongings {
    CUstream stream;
    CUevent event;
    CUfunction function;
    CUgraphExec exec;
    CUdeviceptr memory;
} own;

static CUgraphExec make_graph(CUfunction function)
{
    void *parameters[] = {&own.memory};
    CUDA_KERNEL_NODE_PARAMS node = {.func = function,
                                    .gridDimX = 1,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = 1,
                                    .blockDimY = 1,
                                    .blockDimZ = 1,
                                    .kernelParams = parameters};
    CUgraphExec exec;
    CUgraphNode made;
    CUgraph graph;

    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddKernelNode_v2(&made, graph, NULL, 0, &node));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
}

static void gather(void)
{
    own.function = load("add", 1);
    MUST(cuStreamCreate(&own.stream, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&own.event, CU_EVENT_DISABLE_TIMING));
    MUST(cuMemAlloc_v2(&own.memory, 4096));
    MUST(cuMemsetD32_v2(own.memory, 0, 1024));
    own.exec = make_graph(own.function);
}

/* Adds 1 by the function, 1 by the graph, and what `function` adds. */
static void add_all(CUfunction function)
{
    void *parameters[] = {&own.memory};

    MUST(cuLaunchKernel(own.function, 1, 1, 1, 1, 1, 1, 0, own.stream, parameters, NULL));
    MUST(cuEventRecord(own.event, own.stream));
    MUST(cuStreamWaitEvent(NULL, own.event, 0));
    MUST(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    MUST(cuGraphLaunch(own.exec, NULL));
    MUST(cuCtxSynchronize());
}

static void run_mover(unsigned number)
{
    uint32_t expected = 0, value;

    gather();
    do {
        add_all(load("add", number));
        expected += 2 + number++;
        MUST(cuMemcpyDtoH_v2(&value, own.memory, sizeof(value)));
        say(value == expected ? "moved" : "wrong result");
    } while (read_line());
}

#define WIDE_BLOCKS 64u
#define WIDE_BLOCK_NS 200000u

/* Whether the count of the blocks, in managed memory, and the sum of all additions are right. */
static bool launch_wide(CUfunction wide, CUdeviceptr blocks, unsigned round)
{
    uint64_t ns = WIDE_BLOCK_NS;
    void *parameters[] = {&blocks, &ns};
    uint32_t value;

    MUST(cuLaunchKernel(wide, WIDE_BLOCKS, 1, 1, 1, 1, 1, 0, own.stream, parameters, NULL));
    add_all(own.function);
    MUST(cuMemcpyDtoH_v2(&value, own.memory, sizeof(value)));
    return value == 3 * round && *(volatile uint32_t *)(uintptr_t)blocks == WIDE_BLOCKS * round;
}

static void run_wide(void)
{
    CUfunction wide = load("wide", 1);
    CUdeviceptr blocks;

    gather();
    MUST(cuMemAllocManaged(&blocks, 4096, CU_MEM_ATTACH_GLOBAL));
    memset((void *)(uintptr_t)blocks, 0, 4096);
    for (unsigned round = 1; launch_wide(wide, blocks, round); round++) {
        if (round == 1)
            say("wide");
        if (!line_has_come())
            continue;
        if (!read_line())
            return;
        say("right");
    }
    say("wrong result");
}

static void run_fault(const char *kind)
{
    void *parameters[] = {&address};
    const void *code = !strcmp(kind, "instruction") ? illegal_code(faults, kind) : NULL;
    CUmodule module;
    CUfunction function;

    MUST(cuModuleLoadData(&module, code ? code : faults));
    MUST(cuModuleGetFunction(&function, module, kind));
    MUST(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    printf("error %d\n", cuCtxSynchronize());
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    open_device();
    if (!strcmp(argv[1], "long"))
        run_long();
    else if (!strcmp(argv[1], "always"))
        run_always();
    else if (!strcmp(argv[1], "flood") && argc > 2)
        run_flood(argv + 2, (unsigned)argc - 2, 1);
    else if (!strcmp(argv[1], "flood-two") && argc > 2)
        run_flood(argv + 2, (unsigned)argc - 2, 2);
    else if (!strcmp(argv[1], "stack"))
        run_stack(argc > 2 ? (unsigned)atoi(argv[2]) : 4096);
    else if (!strcmp(argv[1], "witness"))
        run_witness();
    else if (!strcmp(argv[1], "busy"))
        run_busy();
    else if (!strcmp(argv[1], "frees"))
        run_frees();
    else if (!strcmp(argv[1], "streams") && argc > 2)
        run_streams((unsigned)atoi(argv[2]));
    else if (!strcmp(argv[1], "mover"))
        run_mover(argc > 2 ? (unsigned)atoi(argv[2]) : 1000);
    else if (!strcmp(argv[1], "wide"))
        run_wide();
    else if (!strcmp(argv[1], "fault"))
        run_fault(argc > 2 ? argv[2] : "address");
    else
        run_new_client(argc > 2 ? (unsigned)atoi(argv[2]) : 2);
    return 0;
}
