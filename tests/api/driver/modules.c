/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules and libraries from PTX text and from a fat binary; their kernels, globals and constants.
 */
#include "check.h"

#include <string.h>

#include "kernels.fatbin.h"
#include "kernels.ptx.h"

static CUdeviceptr out;

static void run_read_globals(CUfunction kernel, uint32_t *ret_words)
{
    void *parameters[] = {&out};

    launch_one(kernel, NULL, parameters);
    MUST(cuMemcpyDtoH_v2(ret_words, out, 6 * sizeof(uint32_t)));
}

static void check_module(const void *image)
{
    const uint32_t new_table[4] = {1, 2, 3, 4}, zeros[4] = {1, 1, 1, 1};
    uint32_t words[6], value = 100;
    CUmodule module;
    CUfunction kernel;
    CUdeviceptr counter, table, zeroed;
    size_t size = 0;

    MUST(cuModuleLoadData(&module, image));
    kernel = get_kernel(module, "read_globals");
    run_read_globals(kernel, words);
    IS_TRUE(words[0] == 5 && words[1] == 0 && words[2] == 10 && words[5] == 40);
    run_read_globals(kernel, words);
    IS_TRUE(words[0] == 6);

    EXPECT(CUDA_SUCCESS, cuModuleGetGlobal_v2(&counter, &size, module, "counter"));
    IS_TRUE(size == 4 && word_at(counter) == 7);
    MUST(cuMemcpyHtoD_v2(counter, &value, sizeof(value)));
    EXPECT(CUDA_SUCCESS, cuModuleGetGlobal_v2(&table, &size, module, "table"));
    IS_TRUE(size == 16);
    MUST(cuMemcpyHtoD_v2(table, new_table, sizeof(new_table)));
    EXPECT(CUDA_SUCCESS, cuModuleGetGlobal_v2(&zeroed, NULL, module, "zeroed"));
    MUST(cuMemcpyHtoD_v2(zeroed, zeros, sizeof(zeros)));
    run_read_globals(kernel, words);
    IS_TRUE(words[0] == 100 && words[1] == 4 && words[2] == 1 && words[5] == 4);
    EXPECT(CUDA_SUCCESS, cuModuleUnload(module));
}

static void ptx(void)
{
    check_module(kernels_ptx);
}

static void fat_binary(void)
{
    check_module(kernels_fatbin);
}

/* Each load has globals of its own. */
static void the_same_twice(void)
{
    CUmodule first = load_kernels(), second = load_kernels();
    uint32_t words[6];

    run_read_globals(get_kernel(first, "read_globals"), words);
    run_read_globals(get_kernel(first, "read_globals"), words);
    IS_TRUE(words[0] == 6);
    run_read_globals(get_kernel(second, "read_globals"), words);
    IS_TRUE(words[0] == 5);
    EXPECT(CUDA_SUCCESS, cuModuleUnload(first));
    run_read_globals(get_kernel(second, "read_globals"), words);
    IS_TRUE(words[0] == 6);
    EXPECT(CUDA_SUCCESS, cuModuleUnload(second));
}

static void jit_options(void)
{
    char log[1024] = "";
    CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_MAX_REGISTERS};
    void *values[] = {log, (void *)sizeof(log), (void *)64};
    CUmodule module;

    EXPECT(CUDA_SUCCESS, cuModuleLoadDataEx(&module, kernels_ptx, 3, options, values));
    get_kernel(module, "nothing");
    EXPECT(CUDA_SUCCESS, cuModuleUnload(module));
}

static void libraries(void)
{
    CUlibrary library;
    CUkernel kernel;
    CUfunction function;
    CUmodule module;
    CUdeviceptr counter;
    uint32_t words[6];
    size_t size = 0;
    unsigned count = 0;

    EXPECT(CUDA_SUCCESS, cuLibraryLoadData(&library, kernels_fatbin, NULL, NULL, 0, NULL, NULL, 0));
    EXPECT(CUDA_SUCCESS, cuLibraryGetKernel(&kernel, library, "read_globals"));
    EXPECT(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&kernel, library, "nope"));
    MUST(cuLibraryGetKernel(&kernel, library, "read_globals"));
    EXPECT(CUDA_SUCCESS, cuKernelGetFunction(&function, kernel));
    run_read_globals(function, words);
    IS_TRUE(words[0] == 5);
    /* A kernel of a library can be launched as it is. */
    run_read_globals((CUfunction)kernel, words);
    IS_TRUE(words[0] == 6);
    EXPECT(CUDA_SUCCESS, cuLibraryGetGlobal(&counter, &size, library, "counter"));
    IS_TRUE(size == 4 && word_at(counter) == 7);
    EXPECT(CUDA_SUCCESS, cuLibraryGetModule(&module, library));
    run_read_globals(get_kernel(module, "read_globals"), words);
    IS_TRUE(words[0] == 7);
    EXPECT(CUDA_SUCCESS, cuLibraryGetKernelCount(&count, library));
    IS_TRUE(count == 13);
    EXPECT(CUDA_SUCCESS, cuLibraryUnload(library));
}

static void names_that_are_not_there(void)
{
    CUmodule module = load_kernels();
    CUfunction function;
    CUdeviceptr pointer;
    size_t size;

    EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&function, module, "nope"));
    EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal_v2(&pointer, &size, module, "nope"));
    EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&function, module, "counter"));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunction(NULL, module, "nothing"));
    EXPECT(CUDA_SUCCESS, cuModuleUnload(module));
}

static void images_that_are_none(void)
{
    static const char broken[] =
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry x(";
    CUmodule module;

    EXPECT(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&module, NULL));
    EXPECT(CUDA_ERROR_INVALID_PTX, cuModuleLoadData(&module, broken));
    EXPECT(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&module, "/nonexistent/file.cubin"));
}

/* Without variables, so that it could be loaded once for everybody; the program sees two. */
static const char answer_text[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                                  ".visible .entry answer(.param .u64 p)\n{\n"
                                  ".reg .b64 %rd<3>;\n.reg .b32 %r<2>;\n"
                                  "ld.param.u64 %rd1, [p];\n"
                                  "cvta.to.global.u64 %rd2, %rd1;\n"
                                  "mov.u32 %r1, 42;\n"
                                  "st.global.u32 [%rd2], %r1;\nret;\n}\n";

static void twins_without_variables(void)
{
    const CUfunction_attribute attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    CUmodule first, second;
    CUfunction one, two;
    void *parameters[] = {&out};
    int value = 0;

    EXPECT(CUDA_SUCCESS, cuModuleLoadData(&first, answer_text));
    EXPECT(CUDA_SUCCESS, cuModuleLoadData(&second, answer_text));
    one = get_kernel(first, "answer");
    MUST(cuFuncSetAttribute(one, attribute, 60000));
    two = get_kernel(second, "answer");
    MUST(cuFuncGetAttribute(&value, attribute, two));
    IS_TRUE(value == 49152);
    MUST(cuFuncSetAttribute(two, attribute, 55000));
    MUST(cuFuncGetAttribute(&value, attribute, one));
    IS_TRUE(value == 60000);
    EXPECT(CUDA_SUCCESS, cuLaunchKernel(one, 1, 1, 1, 1, 1, 1, 60000, NULL, parameters, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuLaunchKernel(two, 1, 1, 1, 1, 1, 1, 58000, NULL, parameters, NULL));
    EXPECT(CUDA_SUCCESS, cuModuleUnload(first));
    MUST(cuMemsetD32_v2(out, 0, 1));
    launch_one(two, NULL, parameters);
    IS_TRUE(word_at(out) == 42);
    EXPECT(CUDA_SUCCESS, cuModuleUnload(second));
}

/* A kernel of another module uses the variable when its module ends, and new memory may get its
 * place. */
static void a_variable_in_use(void)
{
    static const char text[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                               ".visible .global .align 4 .u32 alone[16] = {5};\n";
    uint32_t value = 1, count = 16, turns = 100 * SLOW;
    CUmodule module, kernels = load_kernels();
    CUdeviceptr variable, memory;
    CUstream stream;
    void *parameters[] = {&variable, &value, &count, &turns};

    MUST(cuModuleLoadData(&module, text));
    MUST(cuModuleGetGlobal_v2(&variable, NULL, module, "alone"));
    IS_TRUE(word_at(variable) == 5);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    launch_one(get_kernel(kernels, "slow_add"), stream, parameters);
    MUST(cuModuleUnload(module));
    memory = make_words(16, 30);
    MUST(cuStreamSynchronize(stream));
    IS_TRUE(words_are(memory, 16, 30));
    MUST(cuMemFree_v2(memory));
    MUST(cuStreamDestroy_v2(stream));
    MUST(cuModuleUnload(kernels));
}

int main(void)
{
    check_open();
    out = make_words(16, 0);
    RUN(ptx);
    RUN(fat_binary);
    RUN(the_same_twice);
    RUN(twins_without_variables);
    RUN(jit_options);
    RUN(libraries);
    RUN(names_that_are_not_there);
    RUN(images_that_are_none);
    RUN(a_variable_in_use);
    return check_close();
}
