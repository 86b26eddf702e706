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

__global__ void insist(int number)
{
    assert(number == 1);
}
}
