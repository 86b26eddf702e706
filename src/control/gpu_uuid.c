/* SPDX-License-Identifier: Apache-2.0 */
/* See gpu_uuid.h. */
#include "gpu_uuid.h"

#include "text.h"

void gpu_uuid_text(const uint8_t u[16], char ret_text[GPU_UUID_TEXT])
{
    text_format(ret_text, GPU_UUID_TEXT,
                "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
                u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
                u[14], u[15]);
}
