// SPDX-License-Identifier: Apache-2.0
// Bodies that attract each other, computed with reciprocal square roots as such programs do. They
// are approximate, so the positions are compared and printed in fixed point, coarsely.
#include "check.cuh"

#include <cmath>

#define BLOCK 64

__global__ void step(const float4 *from, float4 *to, float4 *velocity, int n, float dt)
{
    __shared__ float4 tile[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    float4 me = from[i], v = velocity[i];
    float3 a = make_float3(0, 0, 0);

    for (int first = 0; first < n; first += BLOCK) {
        tile[threadIdx.x] = from[first + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < BLOCK; k++) {
            float x = tile[k].x - me.x, y = tile[k].y - me.y, z = tile[k].z - me.z;
            float inverse = rsqrtf(x * x + y * y + z * z + 0.05f);
            float s = tile[k].w * inverse * inverse * inverse;

            a.x += x * s;
            a.y += y * s;
            a.z += z * s;
        }
        __syncthreads();
    }
    v.x += a.x * dt;
    v.y += a.y * dt;
    v.z += a.z * dt;
    velocity[i] = v;
    to[i] = make_float4(me.x + v.x * dt, me.y + v.y * dt, me.z + v.z * dt, me.w);
}

struct body {
    double x, y, z, vx, vy, vz, mass;
};

static void step_on_host(std::vector<body> &bodies, double dt)
{
    std::vector<body> before = bodies;

    for (body &me : bodies) {
        double ax = 0, ay = 0, az = 0;

        for (const body &other : before) {
            double x = other.x - me.x, y = other.y - me.y, z = other.z - me.z;
            double s = other.mass / pow(x * x + y * y + z * z + 0.05, 1.5);

            ax += x * s;
            ay += y * s;
            az += z * s;
        }
        me.vx += ax * dt;
        me.vy += ay * dt;
        me.vz += az * dt;
    }
    for (body &me : bodies) {
        me.x += me.vx * dt;
        me.y += me.vy * dt;
        me.z += me.vz * dt;
    }
}

enum { N = 256, STEPS = 8 };
static std::vector<float4> positions(N), velocities(N, make_float4(0, 0, 0, 0));
static std::vector<body> bodies(N);

static void orbits()
{
    float4 *from = make(positions), *to = make(positions), *velocity = make(velocities);
    double worst = 0;

    for (int i = 0; i < STEPS; i++) {
        step<<<N / BLOCK, BLOCK>>>(from, to, velocity, N, 0.01f);
        std::swap(from, to);
        step_on_host(bodies, 0.01);
    }
    EXPECT(cudaSuccess, cudaDeviceSynchronize());
    positions = take(from, N);
    for (int i = 0; i < N; i++)
        worst = fmax(worst, fabs(positions[i].x - bodies[i].x) +
                                fabs(positions[i].y - bodies[i].y) +
                                fabs(positions[i].z - bodies[i].z));
    IS_TRUE(worst < 1e-4);
    MUST(cudaFree(from));
    MUST(cudaFree(to));
    MUST(cudaFree(velocity));
}

int main()
{
    uint32_t seed = 1;

    for (int i = 0; i < N; i++) {
        float x = (float)next_random(seed) / (1 << 23) - 1;
        float y = (float)next_random(seed) / (1 << 23) - 1;
        float z = (float)next_random(seed) / (1 << 23) - 1;

        positions[i] = make_float4(x, y, z, 1.0f / N);
        bodies[i] = {x, y, z, 0, 0, 0, (double)(1.0f / N)};
    }
    RUN(orbits);
    for (int i = 0; i < N; i += 64)
        printf("%d: %.2f %.2f %.2f\n", i, positions[i].x, positions[i].y, positions[i].z);
    return check_close();
}
