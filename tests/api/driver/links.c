/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The linker: a kernel of one input calls a function of another.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADER ".version 7.0\n.target sm_75\n.address_size 64\n"

static const char caller[] = HEADER ".extern .func (.param .b32 r) triple(.param .b32 x);\n"
                                    ".visible .entry work(.param .u64 p)\n{\n"
                                    ".reg .b64 %rd<3>;\n.reg .b32 %r<3>;\n"
                                    "ld.param.u64 %rd1, [p];\ncvta.to.global.u64 %rd2, %rd1;\n"
                                    "ld.global.u32 %r1, [%rd2];\n"
                                    "{\n.param .b32 x;\n.param .b32 r;\n"
                                    "st.param.b32 [x], %r1;\n"
                                    "call.uni (r), triple, (x);\n"
                                    "ld.param.b32 %r2, [r];\n}\n"
                                    "st.global.u32 [%rd2], %r2;\nret;\n}\n";

static const char callee[] = HEADER ".visible .func (.param .b32 r) triple(.param .b32 x)\n{\n"
                                    ".reg .b32 %r<3>;\nld.param.b32 %r1, [x];\n"
                                    "mul.lo.s32 %r2, %r1, 3;\nst.param.b32 [r], %r2;\nret;\n}\n";

static const char broken[] = HEADER ".visible .entry x(";

static CUdeviceptr word;

static uint32_t run_work(CUmodule module, uint32_t value)
{
    void *parameters[] = {&word};

    MUST(cuMemcpyHtoD_v2(word, &value, sizeof(value)));
    launch_one(get_kernel(module, "work"), NULL, parameters);
    return word_at(word);
}

static CUresult add(CUlinkState state, const char *text, const char *name)
{
    return cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, (void *)text, strlen(text) + 1, name, 0, NULL,
                            NULL);
}

static void from_memory(void)
{
    CUlinkState state;
    CUmodule module;
    void *cubin = NULL, *copy;
    size_t size = 0;

    MUST(cuLinkCreate_v2(0, NULL, NULL, &state));
    EXPECT(CUDA_SUCCESS, add(state, caller, "caller"));
    EXPECT(CUDA_SUCCESS, add(state, callee, NULL));
    MUST(cuLinkComplete(state, &cubin, &size));
    IS_TRUE(cubin && size > 16);
    MUST(cuModuleLoadData(&module, cubin));
    IS_TRUE(run_work(module, 5) == 15);
    MUST(cuModuleUnload(module));
    /* It is the job's, so a program keeps a copy. */
    copy = malloc(size);
    memcpy(copy, cubin, size);
    EXPECT(CUDA_SUCCESS, cuLinkDestroy(state));
    MUST(cuModuleLoadData(&module, copy));
    IS_TRUE(run_work(module, 7) == 21);
    MUST(cuModuleUnload(module));
    free(copy);
}

/* What was linked can be linked on, and loaded as a library. */
static void result_as_a_library(void)
{
    CUlinkState state;
    CUlibrary library;
    CUkernel kernel;
    void *cubin = NULL, *parameters[] = {&word};
    uint32_t value = 9;

    MUST(cuLinkCreate_v2(0, NULL, NULL, &state));
    MUST(add(state, caller, "caller"));
    MUST(add(state, callee, "callee"));
    MUST(cuLinkComplete(state, &cubin, NULL));
    MUST(cuLibraryLoadData(&library, cubin, NULL, NULL, 0, NULL, NULL, 0));
    MUST(cuLinkDestroy(state));
    MUST(cuLibraryGetKernel(&kernel, library, "work"));
    MUST(cuMemcpyHtoD_v2(word, &value, sizeof(value)));
    launch_one((CUfunction)kernel, NULL, parameters);
    IS_TRUE(word_at(word) == 27);
    MUST(cuLibraryUnload(library));
}

static void write_file(char *path, const char *text)
{
    int fd = mkstemps(path, 4);

    IS_TRUE(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static void from_files(void)
{
    char path[] = "/tmp/funnel-linkXXXXXX.ptx";
    CUlinkState state;
    CUmodule module;
    void *cubin = NULL;

    write_file(path, callee);
    MUST(cuLinkCreate_v2(0, NULL, NULL, &state));
    MUST(add(state, caller, "caller"));
    EXPECT(CUDA_ERROR_FILE_NOT_FOUND,
           cuLinkAddFile_v2(state, CU_JIT_INPUT_PTX, "/nonexistent/x.ptx", 0, NULL, NULL));
    EXPECT(CUDA_SUCCESS, cuLinkAddFile_v2(state, CU_JIT_INPUT_PTX, path, 0, NULL, NULL));
    MUST(cuLinkComplete(state, &cubin, NULL));
    MUST(cuModuleLoadData(&module, cubin));
    IS_TRUE(run_work(module, 2) == 6);
    MUST(cuModuleUnload(module));
    MUST(cuLinkDestroy(state));
    unlink(path);
}

struct logged {
    CUlinkState state;
    char info[2048], error[2048];
    CUjit_option options[6];
    void *values[6];
};

static void create_logged(struct logged *job)
{
    const struct logged fresh = {
        .options = {CU_JIT_WALL_TIME, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                    CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                    CU_JIT_LOG_VERBOSE},
    };
    void *values[] = {
        NULL,     job->info, (void *)sizeof(job->info), job->error, (void *)sizeof(job->error),
        (void *)1};

    *job = fresh;
    memcpy(job->values, values, sizeof(values));
    MUST(cuLinkCreate_v2(6, job->options, job->values, &job->state));
}

static float milliseconds(const struct logged *job)
{
    float time;

    memcpy(&time, &job->values[0], sizeof(time));
    return time;
}

static void outputs(void)
{
    struct logged job;
    void *cubin = NULL;

    create_logged(&job);
    MUST(add(job.state, caller, "caller"));
    MUST(add(job.state, callee, "callee"));
    MUST(cuLinkComplete(job.state, &cubin, NULL));
    IS_TRUE(strlen(job.error) == 0);
    IS_TRUE(milliseconds(&job) >= 0 && milliseconds(&job) < 60000);
    MUST(cuLinkDestroy(job.state));
}

static void text_that_does_not_compile(void)
{
    struct logged job;

    create_logged(&job);
    EXPECT(CUDA_ERROR_INVALID_PTX, add(job.state, broken, "broken"));
    IS_TRUE(strlen(job.error) > 0);
    MUST(cuLinkDestroy(job.state));
}

static void function_that_nobody_defines(void)
{
    struct logged job;
    void *cubin = NULL;

    create_logged(&job);
    EXPECT(CUDA_SUCCESS, add(job.state, caller, "caller"));
    IS_TRUE(cuLinkComplete(job.state, &cubin, NULL) != CUDA_SUCCESS);
    IS_TRUE(strstr(job.error, "triple") != NULL);
    MUST(cuLinkDestroy(job.state));
}

static void jobs_side_by_side(void)
{
    CUlinkState jobs[8];
    CUmodule module;
    void *cubin;

    for (int i = 0; i < 8; i++) {
        MUST(cuLinkCreate_v2(0, NULL, NULL, &jobs[i]));
        MUST(add(jobs[i], caller, "caller"));
    }
    for (int i = 0; i < 8; i++) {
        MUST(add(jobs[i], callee, "callee"));
        MUST(cuLinkComplete(jobs[i], &cubin, NULL));
        MUST(cuModuleLoadData(&module, cubin));
        IS_TRUE(run_work(module, (uint32_t)i) == 3 * (uint32_t)i);
        MUST(cuModuleUnload(module));
        MUST(cuLinkDestroy(jobs[i]));
    }
}

static void calls_that_are_wrong(void)
{
    CUlinkState state;

    EXPECT(CUDA_ERROR_INVALID_VALUE, cuLinkCreate_v2(0, NULL, NULL, NULL));
    MUST(cuLinkCreate_v2(0, NULL, NULL, &state));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, NULL, 4, NULL, 0, NULL, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuLinkComplete(state, NULL, NULL));
    EXPECT(CUDA_SUCCESS, cuLinkDestroy(state));
}

int main(void)
{
    check_open();
    word = make_words(1, 0);
    RUN(from_memory);
    RUN(result_as_a_library);
    RUN(from_files);
    RUN(outputs);
    RUN(text_that_does_not_compile);
    RUN(function_that_nobody_defines);
    RUN(jobs_side_by_side);
    RUN(calls_that_are_wrong);
    return check_close();
}
