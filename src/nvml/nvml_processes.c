/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of a device. NVIDIA's library sees the server in place of its clients: lists of
 * compute processes have the clients instead, and no list has the server.
 */
#include <stdlib.h>
#include <string.h>

#include "nvml_device.h"
#include "nvml_entries.h"

#define SPARE 16 /* processes that may come between two calls */

struct process_list {
    struct nvml_process_detail *processes;
    unsigned count, capacity;
};

/* ---- what the driver knows ---- */

/* A call of NVML's that lists processes of `size` bytes each. */
struct list_call {
    int (*list)(nvml_device device, unsigned *count, void *processes);
    size_t size;
};

static bool grow_list(struct process_list *list, unsigned capacity)
{
    struct nvml_process_detail *grown =
        realloc(list->processes, (capacity ? capacity : 1) * sizeof(*grown));

    if (!grown)
        return false;
    list->processes = grown;
    list->capacity = capacity;
    return true;
}

/* Entries of the first version lack the instances. */
static struct nvml_process_detail read_process(const char *entry, size_t size)
{
    struct nvml_process process = {.gpu_instance = NVML_NO_INSTANCE,
                                   .compute_instance = NVML_NO_INSTANCE};

    memcpy(&process, entry, size);
    return (struct nvml_process_detail){process.pid, process.used_memory, process.gpu_instance,
                                        process.compute_instance, 0};
}

/* Entries are not longer than those of the list, so one array serves for both, from its end on. */
static int read_list(nvml_device device, const struct list_call *call, struct process_list *list)
{
    unsigned count = 0;
    int result = call->list(device, &count, NULL);

    while (result == NVML_ERROR_INSUFFICIENT_SIZE) {
        count += SPARE;
        if (!grow_list(list, count))
            return NVML_ERROR_MEMORY;
        result = call->list(device, &count, list->processes);
    }
    if (result != NVML_SUCCESS)
        return result;
    for (list->count = count = count < list->capacity ? count : list->capacity; count-- > 0;)
        list->processes[count] =
            read_process((const char *)list->processes + count * call->size, call->size);
    return NVML_SUCCESS;
}

/* ---- what Funnel knows ---- */

static void drop_servers(const struct facts *facts, struct process_list *list)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < list->count; i++)
        if (!facts_is_server(facts, list->processes[i].pid))
            list->processes[kept++] = list->processes[i];
    list->count = kept;
}

/* A process has one entry: it may be the client of two servers, or use the device directly, too. */
static bool add_memory(struct process_list *list, unsigned pid, uint64_t bytes)
{
    for (unsigned i = 0; i < list->count; i++) {
        if (list->processes[i].pid != pid)
            continue;
        if (list->processes[i].used_memory != NVML_MEMORY_UNKNOWN)
            list->processes[i].used_memory += bytes;
        return true;
    }
    if (list->count == list->capacity && !grow_list(list, list->count + SPARE))
        return false;
    list->processes[list->count++] =
        (struct nvml_process_detail){pid, bytes, NVML_NO_INSTANCE, NVML_NO_INSTANCE, 0};
    return true;
}

static bool add_clients(const struct facts *facts, const uint8_t uuid[16],
                        struct process_list *list)
{
    struct device_client client;
    unsigned cursor = 0;

    while (facts_next_client(facts, uuid, &cursor, &client))
        if (client.pid &&
            !add_memory(list, client.pid, client.client->row.memory_used[client.ordinal]))
            return false;
    return true;
}

static int correct_list(nvml_device device, bool has_clients, struct process_list *list)
{
    uint8_t uuid[16];
    const struct facts *facts = device_facts(device, false, uuid);
    bool added = true;

    if (!facts)
        return NVML_SUCCESS;
    drop_servers(facts, list);
    if (has_clients)
        added = add_clients(facts, uuid, list);
    facts_end(facts);
    return added ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

/* ---- the lists ---- */

/* As NVML does: the count is told in any case, and the entries where all of them fit. */
static int write_list(const struct process_list *list, size_t size, unsigned *count,
                      char *ret_processes)
{
    bool fits = ret_processes && *count >= list->count;

    *count = list->count;
    for (unsigned i = 0; fits && i < list->count; i++) {
        const struct nvml_process_detail *detail = &list->processes[i];
        struct nvml_process process = {detail->pid, detail->used_memory, detail->gpu_instance,
                                       detail->compute_instance};

        memcpy(ret_processes + i * size, &process, size);
    }
    return fits || !list->count ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

static int answer_list(nvml_device device, const struct list_call *call, bool has_clients,
                       unsigned *count, void *ret_processes)
{
    struct process_list list = {NULL, 0, 0};
    int result;

    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    result = read_list(device, call, &list);
    if (result == NVML_SUCCESS)
        result = correct_list(device, has_clients, &list);
    if (result == NVML_SUCCESS)
        result = write_list(&list, call->size, count, ret_processes);
    free(list.processes);
    return result;
}

#define PROCESS_LIST(name, type, has_clients)                             \
    int name(nvml_device device, unsigned *count, void *processes)        \
    {                                                                     \
        const struct list_call call = {NVML_BASE(name), sizeof(type)};    \
                                                                          \
        return answer_list(device, &call, has_clients, count, processes); \
    }

PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses, struct nvml_process_v1, true)
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v2, struct nvml_process, true)
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v3, struct nvml_process, true)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses, struct nvml_process_v1, false)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, struct nvml_process, false)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, struct nvml_process, false)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses, struct nvml_process_v1, false)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, struct nvml_process, false)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, struct nvml_process, false)

/* ---- the list with details ---- */

static int read_details(nvml_device device, const struct nvml_process_details *wanted,
                        struct process_list *list)
{
    struct nvml_process_details details = {wanted->version, wanted->mode, 0, NULL};
    int result = NVML_BASE(nvmlDeviceGetRunningProcessDetailList)(device, &details);

    while (result == NVML_ERROR_INSUFFICIENT_SIZE) {
        if (!grow_list(list, details.count + SPARE))
            return NVML_ERROR_MEMORY;
        details.count = list->capacity;
        details.processes = list->processes;
        result = NVML_BASE(nvmlDeviceGetRunningProcessDetailList)(device, &details);
    }
    list->count = result == NVML_SUCCESS ? details.count : 0;
    return result;
}

static int write_details(const struct process_list *list, struct nvml_process_details *details)
{
    bool fits = details->processes && details->count >= list->count;

    details->count = list->count;
    if (fits && list->count)
        memcpy(details->processes, list->processes, list->count * sizeof(*list->processes));
    return fits || !list->count ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

int nvmlDeviceGetRunningProcessDetailList(nvml_device device, struct nvml_process_details *details)
{
    struct process_list list = {NULL, 0, 0};
    int result;

    if (!details)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (details->version != NVML_VERSION(*details, 1))
        return NVML_BASE(nvmlDeviceGetRunningProcessDetailList)(device, details);
    result = read_details(device, details, &list);
    if (result == NVML_SUCCESS)
        result = correct_list(
            device, details->mode == NVML_PROCESS_COMPUTE || details->mode == NVML_PROCESS_ALL,
            &list);
    if (result == NVML_SUCCESS)
        result = write_details(&list, details);
    free(list.processes);
    return result;
}

/* ---- names ---- */

/* The program alone, of a command line. */
static int write_name(const char *command, char *ret_name, unsigned length)
{
    size_t size = strcspn(command, " ");

    if (!ret_name || !length)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (size >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(ret_name, command, size);
    ret_name[size] = '\0';
    return NVML_SUCCESS;
}

int nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length)
{
    int result = nvml_is_soft() ? NVML_ERROR_NOT_FOUND
                                : NVML_BASE(nvmlSystemGetProcessName)(pid, name, length);
    const struct facts *facts = result == NVML_SUCCESS ? NULL : facts_begin(false);

    for (unsigned i = 0; facts && i < facts->now.client_count; i++) {
        if (!pid || facts->now.clients[i].seen_pid != (int)pid)
            continue;
        result = write_name(facts->now.clients[i].row.identity.command, name, length);
        break;
    }
    if (facts)
        facts_end(facts);
    return result;
}
