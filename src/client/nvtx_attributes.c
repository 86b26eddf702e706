/* SPDX-License-Identifier: Apache-2.0 */
/* See nvtx_attributes.h. */
#include "nvtx_attributes.h"

#include <stddef.h>
#include <string.h>

/* From nvtxEventAttributes_t of a program, which may be older than ours, and shorter. */
#define ATTRIBUTES_SIZE (offsetof(struct nvtx_attributes, message) + sizeof(void *))

const char *nvtx_message(const struct nvtx_attributes *attributes, struct nvtx_name *buffer)
{
    if (!attributes || attributes->size < ATTRIBUTES_SIZE)
        return "";
    switch (attributes->message_type) {
    case NVTX_MESSAGE_UNICODE:
        return nvtx_narrow(attributes->message, buffer);
    case NVTX_MESSAGE_ASCII:
    case NVTX_MESSAGE_REGISTERED:
        return nvtx_text(attributes->message);
    default:
        return "";
    }
}

/* ---- attributes ---- */

static void describe_payload(const struct nvtx_attributes *attributes,
                             struct profiler_mark_data *data)
{
    double real = 0;
    float narrow;

    data->payload = attributes->payload;
    switch (attributes->payload_type) {
    case NVTX_PAYLOAD_UINT32:
        data->payload = (uint32_t)attributes->payload;
        /* fall through */
    case NVTX_PAYLOAD_UINT64:
        data->payload_kind = PROFILER_UNSIGNED;
        return;
    case NVTX_PAYLOAD_INT32:
        data->payload = (uint64_t)(int64_t)(int32_t)attributes->payload;
        /* fall through */
    case NVTX_PAYLOAD_INT64:
        data->payload_kind = PROFILER_SIGNED;
        return;
    case NVTX_PAYLOAD_FLOAT:
        memcpy(&narrow, &attributes->payload, sizeof(narrow));
        real = (double)narrow;
        memcpy(&data->payload, &real, sizeof(real));
        /* fall through */
    case NVTX_PAYLOAD_DOUBLE:
        data->payload_kind = PROFILER_DOUBLE;
        return;
    default:
        data->payload = 0;
    }
}

const struct profiler_mark_data *nvtx_describe(const struct nvtx_attributes *attributes,
                                               struct profiler_mark_data *data)
{
    *data = (struct profiler_mark_data){.has_color = 0};
    if (!attributes || attributes->size < ATTRIBUTES_SIZE)
        return NULL;
    data->category = attributes->category;
    data->has_color = attributes->color_type == NVTX_COLOR_ARGB;
    data->color = data->has_color ? attributes->color : 0;
    describe_payload(attributes, data);
    return data;
}
