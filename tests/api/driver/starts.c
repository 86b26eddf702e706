/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that start one after the other, and at once, from the same image. Each finds the
 * variables as the image says, whatever others have left in theirs, and keeps its own.
 */
#include "check.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define AT_ONCE 3

static CUdeviceptr out;

static void read_variables(CUfunction kernel, uint32_t *ret_words)
{
    void *parameters[] = {&out};

    launch_one(kernel, NULL, parameters);
    MUST(cuMemcpyDtoH_v2(ret_words, out, 6 * sizeof(uint32_t)));
}

static CUdeviceptr variable(CUmodule module, const char *name)
{
    CUdeviceptr address;

    MUST(cuModuleGetGlobal_v2(&address, NULL, module, name));
    return address;
}

static void write_variables(CUmodule module, uint32_t value)
{
    const uint32_t words[4] = {value, value, value, value};

    MUST(cuMemcpyHtoD_v2(variable(module, "counter"), words, 4));
    MUST(cuMemcpyHtoD_v2(variable(module, "zeroed"), words, 16));
    MUST(cuMemcpyHtoD_v2(variable(module, "table"), words, 16));
}

/* Says on one pipe that it has written, and waits on the other until all have. */
static void meet(const int *pipes)
{
    char byte = 0;

    IS_TRUE(write(pipes[1], &byte, 1) == 1);
    IS_TRUE(read(pipes[2], &byte, 1) == 1);
}

/* One program: 0 when all was as it should be. */
static int start(uint32_t number, bool unloads, const int *pipes)
{
    uint32_t words[6];

    check_open();
    out = make_words(6, 0);
    CUmodule module = load_kernels();
    CUfunction kernel = get_kernel(module, "read_globals");

    read_variables(kernel, words);
    IS_TRUE(words[0] == 5 && words[1] == 0 && words[2] == 10 && words[5] == 40);
    write_variables(module, number);
    if (pipes)
        meet(pipes);
    read_variables(kernel, words);
    IS_TRUE(words[0] == number && words[1] == 4 * number && words[5] == number);
    read_variables(kernel, words);
    IS_TRUE(words[0] == number + 1);
    if (unloads)
        MUST(cuModuleUnload(module));
    return check_close();
}

static pid_t spawn(uint32_t number, bool unloads, const int *pipes)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(start(number, unloads, pipes));
    return pid;
}

static void is_well(pid_t pid)
{
    int status = -1;

    waitpid(pid, &status, 0);
    IS_TRUE(status == 0);
}

static void one_after_the_other(void)
{
    is_well(spawn(100, true, NULL));
    is_well(spawn(200, false, NULL));
    is_well(spawn(300, true, NULL));
}

static void at_once(void)
{
    int up[2], down[2];
    pid_t pids[AT_ONCE];
    char bytes[AT_ONCE];

    IS_TRUE(pipe(up) == 0 && pipe(down) == 0);
    const int pipes[] = {up[0], up[1], down[0]};
    for (uint32_t i = 0; i < AT_ONCE; i++)
        pids[i] = spawn(1000 * (i + 1), i % 2, pipes);
    close(up[1]);
    for (int i = 0; i < AT_ONCE; i++)
        if (read(up[0], bytes, 1) != 1)
            break;
    IS_TRUE(write(down[1], bytes, AT_ONCE) == AT_ONCE);
    for (int i = 0; i < AT_ONCE; i++)
        is_well(pids[i]);
    close(up[0]);
    close(down[0]);
    close(down[1]);
}

/* With one image twice in one program, which ends without unloading either. */
static int start_with_two(void)
{
    uint32_t words[6];

    check_open();
    out = make_words(6, 0);
    CUmodule first = load_kernels(), second = load_kernels();

    write_variables(first, 7);
    read_variables(get_kernel(second, "read_globals"), words);
    IS_TRUE(words[0] == 5 && words[2] == 10);
    read_variables(get_kernel(first, "read_globals"), words);
    IS_TRUE(words[0] == 7 && words[2] == 7);
    return check_close();
}

static void twice_in_one(void)
{
    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();

        if (pid == 0)
            _exit(start_with_two());
        is_well(pid);
    }
}

/* ---- images that differ in one byte, far from both ends ---- */

#define LARGE (100u << 10)
#define LARGE_KERNEL                                                 \
    "\n.version 7.0\n.target sm_75\n.address_size 64\n"              \
    ".visible .entry answer(.param .u64 out)\n{\n"                   \
    ".reg .u64 %%rd<3>;\n.reg .b32 %%r<2>;\nmov.u32 %%r1, %u;\n"     \
    "ld.param.u64 %%rd1, [out];\ncvta.to.global.u64 %%rd2, %%rd1;\n" \
    "st.global.u32 [%%rd2], %%r1;\nret;\n}\n//"

static void write_large_image(char *text, unsigned answer)
{
    size_t middle = LARGE / 2;

    memset(text, 'x', LARGE);
    memcpy(text, "//", 2);
    middle += (size_t)snprintf(text + middle, LARGE - middle, LARGE_KERNEL, answer);
    text[middle] = 'x'; /* the comment goes on */
    text[LARGE - 1] = '\0';
}

static int start_large(unsigned answer)
{
    static char text[LARGE];
    CUmodule module;

    check_open();
    write_large_image(text, answer);
    out = make_words(1, 0);
    void *parameters[] = {&out};
    MUST(cuModuleLoadData(&module, text));
    launch_one(get_kernel(module, "answer"), NULL, parameters);
    IS_TRUE(word_at(out) == answer);
    return check_close();
}

static void each_runs_its_own_code(void)
{
    static const unsigned answers[] = {3, 3, 4, 4, 3, 4};

    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
        pid_t pid = fork();

        if (pid == 0)
            _exit(start_large(answers[i]));
        is_well(pid);
    }
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    RUN(one_after_the_other);
    RUN(at_once);
    RUN(one_after_the_other);
    RUN(twice_in_one);
    RUN(each_runs_its_own_code);
    return check_close();
}
