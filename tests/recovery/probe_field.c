/* SPDX-License-Identifier: Apache-2.0 */
#include "probe_field.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_prototypes.h"

#define BLOCK 1024u
#define STRIDE 32u /* words: the kernel changes one of so many, so some of each page */

static CUfunction step_kernel;
static _Atomic uint32_t numbers; /* of all threads */

void field_use_kernel(CUfunction step)
{
    step_kernel = step;
}

uint32_t field_next_number(void)
{
    return ++numbers;
}

CUresult field_make(struct field *field, uint32_t bytes)
{
    CUresult result = cuMemAlloc_v2(&field->device, bytes);

    field->count = bytes / 4;
    field->expected = malloc(bytes);
    field->seen = malloc(bytes);
    for (uint32_t i = 0; i < field->count; i++)
        field->expected[i] = i * 2654435761u;
    if (!result)
        result = cuMemcpyHtoD_v2(field->device, field->expected, bytes);
    if (!result)
        result = cuStreamCreate(&field->stream, CU_STREAM_NON_BLOCKING);
    if (!result)
        result = cuEventCreate(&field->done, CU_EVENT_DISABLE_TIMING);
    return result;
}

void field_expect(struct field *field, uint32_t add)
{
    for (uint32_t i = 0; i < field->count; i += STRIDE)
        field->expected[i] = field->expected[i] * 3 + add;
}

CUresult field_launch(struct field *field, uint32_t add)
{
    void *parameters[] = {&field->device, &field->count, &add};
    uint32_t blocks = (field->count + STRIDE * BLOCK - 1) / (STRIDE * BLOCK);

    field_expect(field, add);
    return cuLaunchKernel(step_kernel, blocks, 1, 1, BLOCK, 1, 1, 0, field->stream, parameters,
                          NULL);
}

CUresult field_step(struct field *field)
{
    return field_launch(field, field_next_number());
}

CUresult field_check(struct field *field, bool *ret_right)
{
    CUresult result = cuMemcpyDtoH_v2(field->seen, field->device, field->count * 4ul);

    *ret_right = !result && !memcmp(field->seen, field->expected, field->count * 4ul);
    return result;
}
