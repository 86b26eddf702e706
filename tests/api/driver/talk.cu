// SPDX-License-Identifier: Apache-2.0
// The kernels that print. By themselves, since a module that has one is treated as printing in all
// of its kernels. talk.ptx is made by ./regenerate.
#include <cassert>
#include <cstdio>

extern "C" {
__global__ void say(int number)
{
    printf("block %d of %d says %d, %s, %.3f and %c\n", (int)blockIdx.x, (int)gridDim.x,
           number + (int)blockIdx.x, "hello", 0.5 * number, 'x');
}

// Goes on only once `word` is not 0 any more.
__global__ void say_and_wait(int number, volatile int *word)
{
    printf("block %d of %d says %d, %s, %.3f and %c\n", (int)blockIdx.x, (int)gridDim.x,
           number + (int)blockIdx.x, "hello", 0.5 * number, 'x');
    while (*word == 0)
        continue;
}

__global__ void insist(int number)
{
    assert(number == 1);
}
}
