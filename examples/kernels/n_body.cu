// SPDX-License-Identifier: Apache-2.0
// All bodies attract all bodies; w is the mass. A block walks over the others in tiles of its own
// size. Divisions and roots are the exact ones, so every device computes the same orbits.
#define BLOCK 128
#define SOFTENING 0.01f

__device__ void attract(float4 me, float4 other, float3 *force)
{
    float x = other.x - me.x, y = other.y - me.y, z = other.z - me.z;
    float distance2 = x * x + y * y + z * z + SOFTENING;
    float strength = other.w / (distance2 * sqrtf(distance2));

    force->x += x * strength;
    force->y += y * strength;
    force->z += z * strength;
}

extern "C" __global__ void n_body(const float4 *from, float4 *to, float4 *velocity, unsigned n,
                                  float step)
{
    __shared__ float4 tile[BLOCK];
    unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    float4 me = from[i], speed = velocity[i];
    float3 force = {0.0f, 0.0f, 0.0f};

    for (unsigned first = 0; first < n; first += BLOCK) {
        tile[threadIdx.x] = from[first + threadIdx.x];
        __syncthreads();
        for (unsigned k = 0; k < BLOCK; k++)
            attract(me, tile[k], &force);
        __syncthreads();
    }
    speed.x += force.x * step;
    speed.y += force.y * step;
    speed.z += force.z * step;
    me.x += speed.x * step;
    me.y += speed.y * step;
    me.z += speed.z * step;
    velocity[i] = speed;
    to[i] = me;
}
