/* SPDX-License-Identifier: Apache-2.0 */
/* See gpu_list.h. */
#include "gpu_list.h"

#include <string.h>

/* NULL when the list is full. */
static struct gpu_figures *find_or_add_gpu(struct gpu_list *list,
                                           const struct server_device *device)
{
    for (unsigned i = 0; i < list->count; i++)
        if (!memcmp(list->gpus[i].device->uuid, device->uuid, sizeof(device->uuid)))
            return &list->gpus[i];
    if (list->count == GPU_LIST_MAX)
        return NULL;
    list->gpus[list->count] = (struct gpu_figures){.device = device};
    sensors_init(&list->gpus[list->count].sensors);
    return &list->gpus[list->count++];
}

static void add_sensors(struct gpu_figures *gpu, const struct server_sensors *sensors)
{
    for (unsigned i = 0; i < SENSOR_COUNT; i++)
        if (gpu->sensors.value[i] == SENSOR_UNKNOWN)
            gpu->sensors.value[i] = sensors->value[i];
}

static void add_server_gpus(struct gpu_list *list, const struct command_server *server)
{
    for (unsigned i = 0; i < server->device_count; i++) {
        struct gpu_figures *gpu = find_or_add_gpu(list, &server->devices[i]);

        if (!gpu || !server->responding)
            continue;
        if (!gpu->is_known || server->memory_free[i] < gpu->memory_free)
            gpu->memory_free = server->memory_free[i];
        gpu->is_known = true;
        add_sensors(gpu, &server->sensors[i]);
    }
}

void gpu_list_read(const struct status_query *query, struct gpu_list *ret_list)
{
    ret_list->count = 0;
    for (unsigned i = 0; i < query->report_count; i++)
        add_server_gpus(ret_list, &query->reports[i].server);
}
