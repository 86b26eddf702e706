/* SPDX-License-Identifier: Apache-2.0 */
/* UUIDs of GPUs as CUDA and nvidia-smi write them: "GPU-302653ec-b6cc-1916-...". */
#pragma once

#include <stdint.h>

#include "server_protocol.h"

#define GPU_UUID_TEXT 41 /* bytes of the text, its end included */

void gpu_uuid_text(const uint8_t uuid[16], char ret_text[GPU_UUID_TEXT]);

static inline void device_uuid_text(const struct server_device *device,
                                    char ret_text[GPU_UUID_TEXT])
{
    gpu_uuid_text(device->uuid, ret_text);
}
