// SPDX-License-Identifier: Apache-2.0
// How many steps each point of the picture takes to leave the circle of radius 2.
extern "C" __global__ void mandelbrot(unsigned short *steps, unsigned width, unsigned height,
                                      unsigned limit)
{
    unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned row = blockIdx.y * blockDim.y + threadIdx.y;
    float re, im, x = 0.0f, y = 0.0f;
    unsigned n = 0;

    if (column >= width || row >= height)
        return;
    re = -2.0f + 3.0f * (float)column / (float)width;
    im = -1.0f + 2.0f * (float)row / (float)height;
    while (n < limit && x * x + y * y <= 4.0f) {
        float next = x * x - y * y + re;

        y = 2.0f * x * y + im;
        x = next;
        n++;
    }
    steps[row * width + column] = n;
}
