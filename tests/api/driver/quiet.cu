// SPDX-License-Identifier: Apache-2.0
// A kernel that may print, but does not for a number above 0, as kernels of NCCL may. In another
// format than those of talk.cu. quiet.ptx is made by ./regenerate.
#include <cstdio>

// Goes on only once `word` is not 0 any more.
extern "C" __global__ void stay(int number, volatile int *word)
{
    if (number < 0)
        printf("stays for %d\n", number);
    while (*word == 0)
        continue;
}
