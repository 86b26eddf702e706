/* SPDX-License-Identifier: Apache-2.0 */
/* See nvml_device.h. */
#include "nvml_device.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "nvml_entries.h"

/* "GPU-" or "MIG-", and 32 digits with dashes between them. */
static bool parse_uuid(const char *text, uint8_t ret_uuid[16])
{
    unsigned digits = 0;

    if (strncmp(text, "GPU-", 4) != 0 && strncmp(text, "MIG-", 4) != 0)
        return false;
    for (text += 4; *text && digits < 32; text++) {
        char digit[] = {*text, '\0'};

        if (*text == '-')
            continue;
        if (!isxdigit((unsigned char)*text))
            return false;
        ret_uuid[digits / 2] = (uint8_t)(ret_uuid[digits / 2] << 4 | strtoul(digit, NULL, 16));
        digits++;
    }
    return digits == 32 && !*text;
}

const struct facts *device_facts(nvml_device device, bool needs_rates, uint8_t ret_uuid[16])
{
    char text[NVML_UUID_MAX] = "";
    const struct facts *facts;

    if (NVML_BASE(nvmlDeviceGetUUID)(device, text, sizeof(text)) != NVML_SUCCESS ||
        !parse_uuid(text, ret_uuid))
        return NULL;
    facts = facts_begin(needs_rates);
    if (!facts || facts_serve(facts, ret_uuid))
        return facts;
    facts_end(facts);
    return NULL;
}
