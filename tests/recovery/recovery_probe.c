/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that does what it is told, a word a line on its standard input, and says how that went.
 * It knows what its memory should hold, so the test that ends its server can ask it what has become
 * of that.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cuda_abi.h"
#include "cuda_prototypes.h"
#include "memory_acts.h"
#include "pointer_act.h"
#include "recovery_probe.h"
#include "variable_acts.h"
#include "waiting_thread.h"

#define CALLBACKS 200u
#define REQUESTS 200u
#define REQUEST_SIZE 65536u
#define QUESTIONS 1000u
#define PART 8u    /* multiprocessors */
#define BEGUN 128u /* of the words at the flag */

static const char text[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    /* data[i] = data[i] * 3 + add, in every 32nd word: probe_field.c */
    ".visible .entry step(.param .u64 data, .param .u32 count, .param .u32 add)\n{\n"
    ".reg .b32 %r<8>; .reg .b64 %d<4>; .reg .pred %p;\n"
    "ld.param.u64 %d1, [data];\nld.param.u32 %r1, [count];\nld.param.u32 %r2, [add];\n"
    "mov.u32 %r3, %tid.x;\nmov.u32 %r4, %ctaid.x;\nmov.u32 %r5, %ntid.x;\n"
    "mad.lo.u32 %r3, %r4, %r5, %r3;\nshl.b32 %r3, %r3, 5;\n"
    "setp.ge.u32 %p, %r3, %r1;\n@%p bra done;\n"
    "mul.wide.u32 %d2, %r3, 4;\nadd.u64 %d1, %d1, %d2;\nld.global.u32 %r6, [%d1];\n"
    "mad.lo.u32 %r6, %r6, 3, %r2;\nst.global.u32 [%d1], %r6;\ndone:\nret;\n}\n"
    ".visible .entry wait(.param .u64 flag)\n{\n"
    ".reg .b32 %r<2>; .reg .b64 %d<2>; .reg .pred %p;\nld.param.u64 %d1, [flag];\n"
    "red.global.sys.add.u32 [%d1 + 512], 1;\n"
    "again:\nnanosleep.u32 50000;\nld.volatile.global.u32 %r1, [%d1];\n"
    "setp.eq.u32 %p, %r1, 0;\n@%p bra again;\nret;\n}\n"
    ".visible .entry spare()\n{\nret;\n}\n"
    ".visible .entry stray()\n{\n.reg .b64 %d<2>;\nmov.u64 %d1, 0x10;\n"
    "st.global.u32 [%d1], 7;\nret;\n}\n";

static const char text_with_variable[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .global .align 4 .u32 count;\n"
    ".visible .entry count_up()\n{\n.reg .b32 %r<2>; .reg .b64 %d<2>;\nmov.u64 %d1, count;\n"
    "ld.global.u32 %r1, [%d1];\nadd.u32 %r1, %r1, 1;\nst.global.u32 [%d1], %r1;\nret;\n}\n";

static const char text_with_text[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
                                     ".global .align 1 .b8 $str[4] = {97, 62, 98, 0};\n"
                                     ".global .align 1 .b8 __unnamed_1[2] = {102, 0};\n"
                                     ".const .align 4 .b8 table[4] = {1, 2, 3, 4};\n"
                                     ".visible .entry fine()\n{\nret;\n}\n";

struct program program;

static const char *name_of(CUresult result)
{
    const char *name = NULL;

    cuGetErrorName(result, &name);
    return name ? name : "unknown error";
}

/* A kernel that the next stream waits for, and so on; then everything is compared. */
static CUresult round_of(struct field *fields, unsigned count)
{
    bool right = true;
    CUresult result = CUDA_SUCCESS;

    for (unsigned i = 0; i < count && !result; i++) {
        result = field_step(&fields[i]);
        if (!result)
            result = cuEventRecord(fields[i].done, fields[i].stream);
        if (!result)
            result = cuStreamWaitEvent(fields[(i + 1) % count].stream, fields[i].done, 0);
    }
    for (unsigned i = 0; i < count && !result; i++)
        result = cuStreamSynchronize(fields[i].stream);
    for (unsigned i = 0; i < count && !result && right; i++)
        result = field_check(&fields[i], &right);
    return result || right ? result : CUDA_ERROR_UNKNOWN;
}

/* ---- what it can be told ---- */

static CUresult do_look(void)
{
    bool right = true;
    CUresult result = CUDA_SUCCESS;

    for (unsigned i = 0; i < STREAMS && !result && right; i++)
        result = field_check(&program.fields[i], &right);
    return result || right ? result : CUDA_ERROR_UNKNOWN;
}

static CUresult do_round(void)
{
    return round_of(program.fields, STREAMS);
}

static void *thread_round(void *field)
{
    CUresult result = cuCtxSetCurrent(program.context);

    for (unsigned i = 0; i < 2 && !result; i++)
        result = round_of(field, 1);
    return (void *)(uintptr_t)result;
}

/* In as many threads as there are fields, each with its own; an error of one of them. */
static CUresult in_threads(void *(*thread)(void *field))
{
    pthread_t threads[STREAMS];
    CUresult result = CUDA_SUCCESS;

    for (unsigned i = 0; i < STREAMS; i++)
        pthread_create(&threads[i], NULL, thread, &program.fields[i]);
    for (unsigned i = 0; i < STREAMS; i++) {
        void *end;
        pthread_join(threads[i], &end);
        result = end ? (CUresult)(uintptr_t)end : result;
    }
    return result;
}

/* Threads that all notice. */
static CUresult do_threads(void)
{
    return in_threads(thread_round);
}

static CUresult wait_in(unsigned blocks)
{
    void *parameters[] = {&program.flag};

    return cuLaunchKernel(program.wait, blocks, 1, 1, 1, 1, 1, 0, program.fields[0].stream,
                          parameters, NULL);
}

static CUresult do_hold(void)
{
    return wait_in(1);
}

static void await_blocks(uint32_t count)
{
    const volatile uint32_t *begun = program.flag + BEGUN;

    while (*begun != count)
        usleep(100);
}

/* The same, and from its return on no other block of the context can begin. */
static CUresult do_fill(void)
{
    uint32_t before = program.flag[BEGUN];
    int sms, blocks;
    CUresult result = cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);

    if (!result)
        result =
            cuDeviceGetAttribute(&blocks, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 0);
    if (!result)
        result = wait_in((unsigned)(sms * blocks));
    if (!result)
        await_blocks(before + (uint32_t)(sms * blocks));
    return result;
}

/* Ends such a kernel. */
static CUresult do_release(void)
{
    *(volatile uint32_t *)program.flag = 1;
    return CUDA_SUCCESS;
}

/* Another thread waits for such a kernel, and the next word says what it was told. */
static CUresult do_await(void)
{
    return waiting_thread_begin(program.context, program.fields[0].stream);
}

static CUresult do_join(void)
{
    CUresult result = waiting_thread_join();

    *(volatile uint32_t *)program.flag = 0; /* the next kernel waits again */
    return result;
}

static CUresult do_synchronize(void)
{
    return cuCtxSynchronize();
}

/* Nothing waits for what is launched here but what is done later. */
static CUresult do_launch(void)
{
    return field_step(&program.fields[0]);
}

/* The answer says that the server has read all before. */
static CUresult do_arrive(void)
{
    size_t unused, total;

    return cuMemGetInfo_v2(&unused, &total);
}

static CUresult do_fault(void)
{
    CUresult result = cuLaunchKernel(program.stray, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);

    return result ? result : cuCtxSynchronize();
}

static CUresult do_variable(void)
{
    CUfunction counting;
    CUmodule module;
    CUresult result = cuModuleLoadData(&module, text_with_variable);

    if (!result)
        result = cuModuleGetFunction(&counting, module, "count_up");
    if (!result)
        result = cuLaunchKernel(counting, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    return result ? result : cuCtxSynchronize();
}

static void CUDA_CB count_up(void *count)
{
    ++*(int *)count;
}

static CUresult do_callback(void)
{
    static int count;
    int before = count;
    CUresult result = cuLaunchHostFunc(program.fields[0].stream, count_up, &count);

    if (!result)
        result = cuStreamSynchronize(program.fields[0].stream);
    return result || count == before + 1 ? result : CUDA_ERROR_UNKNOWN;
}

/* One is in flight nearly always. */
static CUresult do_callbacks(void)
{
    CUresult result = CUDA_SUCCESS;

    for (unsigned i = 0; i < CALLBACKS && !result; i++)
        result = do_callback();
    return result;
}

static CUresult find_step(void)
{
    CUfunction step;
    CUresult result = cuModuleGetFunction(&step, program.module, "step");

    if (!result)
        field_use_kernel(step);
    return result;
}

static CUresult do_module(void)
{
    CUresult result = cuModuleUnload(program.module);

    program.exec = NULL; /* its kernels are gone */
    if (!result)
        result = cuModuleLoadData(&program.module, text);
    if (!result)
        result = find_step();
    return result;
}

/* Captured and instantiated once, launched each time. */
static CUresult do_graph(void)
{
    struct field *field = &program.fields[1];
    const uint32_t add = 77;
    CUgraph graph;
    CUresult result = CUDA_SUCCESS;

    if (!program.exec) {
        result = cuStreamBeginCapture_v2(field->stream, CU_STREAM_CAPTURE_MODE_RELAXED);
        for (unsigned i = 0; i < 3 && !result; i++)
            result = field_launch(field, add);
        if (!result)
            result = cuStreamEndCapture(field->stream, &graph);
        if (!result)
            result = cuGraphInstantiateWithFlags(&program.exec, graph, 0);
    } else {
        for (unsigned i = 0; i < 3; i++)
            field_expect(field, add);
    }
    if (!result)
        result = cuGraphLaunch(program.exec, field->stream);
    return result ? result : cuStreamSynchronize(field->stream);
}

static CUresult do_limit(void)
{
    return cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048);
}

/* Kernels that may fail an assertion have its text for variables. */
static CUresult do_assertion(void)
{
    CUmodule module;

    return cuModuleLoadData(&module, text_with_text);
}

/* One that was not asked for before. */
static CUresult do_function(void)
{
    CUfunction spare;
    CUresult result = cuModuleGetFunction(&spare, program.module, "spare");

    return result ? result : cuLaunchKernel(spare, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

static CUresult ask(unsigned round)
{
    size_t free_bytes, total;
    CUmodule module;
    CUresult result = cuMemGetInfo_v2(&free_bytes, &total);

    if (!result && total < free_bytes)
        return CUDA_ERROR_UNKNOWN;
    if (result || round % 8)
        return result;
    result = cuModuleLoadData(&module, text);
    return result ? result : cuModuleUnload(module);
}

static void *thread_of_questions(void *unused)
{
    CUresult result = cuCtxSetCurrent(program.context);

    for (unsigned i = 0; i < QUESTIONS && !result; i++)
        result = ask(i);
    return (void *)(uintptr_t)result;
}

/* Calls that leave nothing with the server, in the middle of which it may end. */
static CUresult do_questions(void)
{
    return in_threads(thread_of_questions);
}

/* The server page-locks the memory of each, and sends a descriptor for it. */
static void *thread_of_requests(void *unused)
{
    void *pages = aligned_alloc(4096, REQUEST_SIZE);
    CUresult result = cuCtxSetCurrent(program.context);

    for (unsigned i = 0; i < REQUESTS && !result; i++) {
        result = cuMemHostRegister_v2(pages, REQUEST_SIZE, 0);
        if (!result)
            result = cuMemHostUnregister(pages);
    }
    free(pages);
    return (void *)(uintptr_t)result;
}

/* Threads that nearly always wait for each other, and one of them for the server. */
static CUresult do_requests(void)
{
    return in_threads(thread_of_requests);
}

/* Times of records that one server has seen. */
static CUresult do_time(void)
{
    static CUevent events[2];
    float milliseconds;
    CUresult result = CUDA_SUCCESS;

    for (unsigned i = 0; i < 2 && !events[1] && !result; i++) {
        result = cuEventCreate(&events[i], CU_EVENT_DEFAULT);
        if (!result)
            result = cuEventRecord(events[i], program.fields[0].stream);
    }
    if (!result)
        result = cuStreamSynchronize(program.fields[0].stream);
    return result ? result : cuEventElapsedTime_v2(&milliseconds, events[0], events[1]);
}

/* As some programs do with descriptors that they do not know. */
static CUresult do_close(void)
{
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    return CUDA_SUCCESS;
}

/* What the environment says now is for another time. */
static CUresult do_environment(void)
{
    setenv("CUDA_MPS_PIPE_DIRECTORY", "/nowhere", 1);
    return CUDA_SUCCESS;
}

static CUresult do_array(void)
{
    const CUDA_ARRAY_DESCRIPTOR description = {
        .Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    CUarray array;

    return cuArrayCreate_v2(&array, &description);
}

/* A context on some multiprocessors, with a stream, its legacy stream, and memory. */
static CUresult use_part(struct field *field)
{
    bool right = true;
    CUexecAffinityParam affinity;
    CUresult result = cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT);

    if (!result && affinity.param.smCount.val != PART)
        return CUDA_ERROR_UNKNOWN;
    if (!result)
        result = field_step(field);
    if (!result)
        result = cuStreamSynchronize(field->stream);
    if (!result)
        result = cuMemsetD8Async(field->device, 7, field->count, NULL);
    if (!result)
        result = cuStreamSynchronize(NULL);
    memset(field->expected, 7, field->count);
    if (!result)
        result = field_check(field, &right);
    return result || right ? result : CUDA_ERROR_UNKNOWN;
}

static CUresult do_part(void)
{
    static struct field field;
    static CUcontext part;
    CUexecAffinityParam affinity = {CU_EXEC_AFFINITY_TYPE_SM_COUNT, {.smCount = {PART}}};
    CUresult result = CUDA_SUCCESS;

    if (part)
        result = cuCtxSetCurrent(part);
    else {
        result = cuCtxCreate_v3(&part, &affinity, 1, 0, 0);
        if (!result)
            result = field_make(&field, SMALL);
    }
    if (!result)
        result = use_part(&field);
    cuCtxSetCurrent(program.context);
    return result;
}

/* Eight descriptors are left, whose numbers have gaps: a thread may just have closed one. */
static CUresult do_scarce(void)
{
    int left[8];
    struct rlimit limit;

    for (unsigned i = 0; i < 8; i++)
        left[i] = dup(STDIN_FILENO);
    for (unsigned i = 0; i < 8; i++)
        close(left[i]);
    if (left[7] < 0 || getrlimit(RLIMIT_NOFILE, &limit))
        return CUDA_ERROR_UNKNOWN;
    limit.rlim_cur = (rlim_t)left[7] + 1;
    return setrlimit(RLIMIT_NOFILE, &limit) ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static const struct {
    const char *word;
    CUresult (*act)(void);
} acts[] = {
    {"look", do_look},           {"round", do_round},
    {"threads", do_threads},     {"hold", do_hold},
    {"fill", do_fill},           {"release", do_release},
    {"launch", do_launch},       {"synchronize", do_synchronize},
    {"fault", do_fault},         {"variable", do_variable},
    {"allocate", act_allocate},  {"pinned", act_pinned},
    {"callback", do_callback},   {"module", do_module},
    {"register", act_register},  {"share", act_share},
    {"graph", do_graph},         {"limit", do_limit},
    {"assertion", do_assertion}, {"array", do_array},
    {"close", do_close},         {"time", do_time},
    {"function", do_function},   {"environment", do_environment},
    {"arrive", do_arrive},       {"managed", act_managed},
    {"reserved", act_reserved},  {"unmapped", act_unmapped},
    {"pool", act_pool},          {"scarce", do_scarce},
    {"part", do_part},           {"questions", do_questions},
    {"pointer", pointer_act},    {"await", do_await},
    {"join", do_join},           {"callbacks", do_callbacks},
    {"requests", do_requests},
};

static CUresult act(const char *word)
{
    for (size_t i = 0; i < sizeof(acts) / sizeof(*acts); i++)
        if (!strcmp(acts[i].word, word))
            return acts[i].act();
    return variable_act(word);
}

static CUresult open_program(void)
{
    CUdevice device;
    CUresult result = cuInit(0);

    if (!result)
        result = cuDeviceGet(&device, 0);
    if (!result)
        result = cuDevicePrimaryCtxRetain(&program.context, device);
    if (!result)
        result = cuCtxSetCurrent(program.context);
    if (!result)
        result = cuModuleLoadData(&program.module, text);
    if (!result)
        result = find_step();
    if (!result)
        result = cuModuleGetFunction(&program.wait, program.module, "wait");
    if (!result)
        result = cuModuleGetFunction(&program.stray, program.module, "stray");
    if (!result)
        result = cuMemHostAlloc((void **)&program.flag, 4096, 0);
    for (unsigned i = 0; i < STREAMS && !result; i++)
        result = field_make(&program.fields[i], i ? SMALL : LARGE);
    if (!result)
        memset(program.flag, 0, 4096);
    return result ? result : cuCtxSynchronize();
}

int main(void)
{
    char line[64];
    CUresult result = open_program();

    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("open %s\n", name_of(result));
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = '\0';
        result = act(line);
        printf("%s %s\n", line, name_of(result));
    }
    return 0;
}
