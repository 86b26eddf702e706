/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies that attract each other, some steps on. A round is one step; two buffers take turns, and
 * the launches are simply queued, for a stream keeps their order. The host goes the same way and
 * must arrive at the very same bits.
 */
#include "example.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "n_body.ptx.h"

#define BLOCK 128
#define SOFTENING 0.01f
#define STEP 0.001f
/* Going further on the host would take longer than anybody waits. */
#define MAX_CHECKED 50000000ULL

struct float4 {
    float x, y, z, w;
};

static void attract(const struct float4 *me, const struct float4 *other, struct float4 *force)
{
    float x = other->x - me->x, y = other->y - me->y, z = other->z - me->z;
    float distance2 = x * x + y * y + z * z + SOFTENING;
    float strength = other->w / (distance2 * sqrtf(distance2));

    force->x += x * strength;
    force->y += y * strength;
    force->z += z * strength;
}

static void move(struct float4 *me, struct float4 *speed, const struct float4 *force)
{
    speed->x += force->x * STEP;
    speed->y += force->y * STEP;
    speed->z += force->z * STEP;
    me->x += speed->x * STEP;
    me->y += speed->y * STEP;
    me->z += speed->z * STEP;
}

static void step_on_host(const struct float4 *from, struct float4 *to, struct float4 *velocity,
                         unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct float4 force = {0};

        for (unsigned k = 0; k < n; k++)
            attract(&from[i], &from[k], &force);
        to[i] = from[i];
        move(&to[i], &velocity[i], &force);
    }
}

static void step_on_device(struct example *example, const struct float4 *bodies,
                           struct float4 *ret_bodies)
{
    size_t bytes = example->size * sizeof(*bodies);
    CUfunction n_body = example_function(example, "n_body");
    CUdeviceptr from = example_upload(bodies, bytes);
    CUdeviceptr to = example_alloc(bytes);
    CUdeviceptr velocity = example_alloc(bytes);
    float step = STEP;

    CHECK(cuMemsetD32(velocity, 0, bytes / sizeof(float)));
    for (unsigned round = 0; round < example->rounds; round++) {
        void *parameters[] = {&from, &to, &velocity, &example->size, &step};
        CUdeviceptr last = from;

        CHECK(cuLaunchKernel(n_body, example->size / BLOCK, 1, 1, BLOCK, 1, 1, 0, NULL, parameters,
                             NULL));
        from = to;
        to = last;
        example_progress(example, round);
    }
    CHECK(cuMemcpyDtoH(ret_bodies, from, bytes));
    CHECK(cuMemFree(from));
    CHECK(cuMemFree(to));
    CHECK(cuMemFree(velocity));
}

static bool all_finite(const struct float4 *bodies, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (!isfinite(bodies[i].x + bodies[i].y + bodies[i].z))
            return false;
    }
    return true;
}

static bool same_on_host(const struct example *example, const struct float4 *bodies,
                         const struct float4 *moved)
{
    size_t bytes = example->size * sizeof(*bodies);
    struct float4 *from = example_buffer(bytes), *to = example_buffer(bytes);
    struct float4 *velocity = example_buffer(bytes);
    bool same;

    memcpy(from, bodies, bytes);
    for (unsigned round = 0; round < example->rounds; round++) {
        struct float4 *last = from;

        step_on_host(from, to, velocity, example->size);
        from = to;
        to = last;
    }
    same = memcmp(from, moved, bytes) == 0;
    free(from);
    free(to);
    free(velocity);
    return same;
}

static bool is_moved(const struct example *example, const struct float4 *bodies,
                     const struct float4 *moved)
{
    if ((uint64_t)example->size * example->size * example->rounds > MAX_CHECKED)
        return all_finite(moved, example->size);
    return same_on_host(example, bodies, moved);
}

int main(int argc, char **argv)
{
    struct example example = {.name = "n_body", .size = 512, .rounds = 4};
    struct float4 *bodies, *moved;
    uint32_t seed = 1;
    size_t bytes;
    int status;

    example_open(&example, argc, argv, n_body_ptx);
    if (example.size % BLOCK != 0) {
        fprintf(stderr, "n_body: the size must be a multiple of %d\n", BLOCK);
        return EXIT_FAILURE;
    }
    bytes = example.size * sizeof(*bodies);
    bodies = example_buffer(bytes);
    moved = example_buffer(bytes);
    for (unsigned i = 0; i < example.size; i++)
        bodies[i] = (struct float4){example_random_float(&seed), example_random_float(&seed),
                                    example_random_float(&seed), 1.0f / (float)example.size};

    step_on_device(&example, bodies, moved);
    status =
        example_close(&example, is_moved(&example, bodies, moved), example_checksum(moved, bytes));
    free(bodies);
    free(moved);
    return status;
}
