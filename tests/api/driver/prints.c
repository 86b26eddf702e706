/* SPDX-License-Identifier: Apache-2.0 */
/*
 * printf from the device: on the standard output of the program that launched, when it waits.
 */
#include "check.h"

#include <stdio.h>

static CUmodule module;

static void say(int number)
{
    void *parameters[] = {&number};

    launch_one(get_kernel(module, "say"), NULL, parameters);
}

int main(void)
{
    check_open();
    module = load_talk();
    puts("before");
    fflush(stdout);
    for (int i = 1; i <= 3; i++)
        say(i);
    MUST(cuCtxSynchronize());
    puts("between");
    fflush(stdout);
    say(40);
    MUST(cuCtxSynchronize());
    puts("after");
    return check_close();
}
