// SPDX-License-Identifier: Apache-2.0
// What the units of the program "separate" know of each other.
#pragma once

#include "check.cuh"

struct Shape {
    float width, height;
};

typedef int Step(int);

extern __device__ int table[4];
extern __device__ Step *steps[2];
extern __constant__ Shape shapes[3];
extern __managed__ int counter;

__device__ int twice(int x);
__device__ float area(const Shape &shape);
__device__ void say(int number);

// Launches a kernel of the other unit on a static variable of its own.
int count_elsewhere(int by);
