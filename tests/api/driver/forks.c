/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork: a child does not inherit the device, the parent keeps it, and a child that was made before
 * CUDA was touched may use it.
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int status_of(pid_t pid)
{
    int status = -1;

    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int use_in_child(void)
{
    CUdeviceptr words;

    check_open();
    words = make_words(100, 6);
    return words_are(words, 100, 6) ? 0 : 1;
}

static void a_child_made_before_init(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(use_in_child());
    IS_TRUE(status_of(pid) == 0);
}

static void a_child_made_after(void)
{
    CUdeviceptr words = make_words(1000, 5);
    pid_t pid = fork();

    if (pid == 0) {
        CUdeviceptr pointer;

        _exit(cuMemAlloc_v2(&pointer, 16) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
    }
    IS_TRUE(status_of(pid) == 0);
    IS_TRUE(words_are(words, 1000, 5));
    MUST(cuMemFree_v2(words));
}

/* exit in a child runs the handlers that the parent registered; they must not disturb it. */
static void a_child_that_exits(void)
{
    CUdeviceptr words = make_words(1000, 4);
    pid_t pid = fork();

    if (pid == 0)
        exit(0);
    IS_TRUE(status_of(pid) == 0);
    IS_TRUE(words_are(words, 1000, 4));
    MUST(cuMemFree_v2(words));
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    RUN(a_child_made_before_init);
    check_open();
    RUN(a_child_made_after);
    RUN(a_child_that_exits);
    return check_close();
}
