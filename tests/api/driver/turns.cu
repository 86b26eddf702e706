// SPDX-License-Identifier: Apache-2.0
// Kernels that use managed memory while the host does. turns.ptx is made by ./regenerate.

typedef unsigned int u32;

extern "C" {
__global__ void add_often(u32 *words, u32 n, u32 turns)
{
    for (u32 i = 0; i < turns; i++)
        atomicAdd_system(&words[(threadIdx.x + i) % n], 1);
}

// Ends only when the host has written to `word`.
__global__ void await_host(const volatile u32 *word, u32 *out)
{
    while (*word == 0)
        continue;
    *out += 1;
}
}
