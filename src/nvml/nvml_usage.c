/* SPDX-License-Identifier: Apache-2.0 */
/* What processes use, in the last second and since their start. The driver counts it for the
 * server, and Funnel for each client. */
#include <stdlib.h>
#include <string.h>

#include "nvml_device.h"
#include "nvml_entries.h"

#define SPARE 16 /* processes that may come between two calls */

/* ---- samples ---- */

struct use_list {
    struct nvml_process_use *uses;
    unsigned count;
};

/* Capacity for what the driver has, and for all clients. */
static bool make_list(const struct facts *facts, unsigned capacity, struct use_list *list)
{
    capacity += (facts ? facts->now.client_count : 0) + 1;
    list->count = 0;
    list->uses = calloc(capacity, sizeof(*list->uses));
    return list->uses != NULL;
}

static void drop_servers(const struct facts *facts, struct use_list *list)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < list->count; i++)
        if (!facts_is_server(facts, list->uses[i].pid))
            list->uses[kept++] = list->uses[i];
    list->count = kept;
}

static void add_clients(const struct facts *facts, const uint8_t uuid[16], uint64_t after,
                        struct use_list *list)
{
    struct device_client client;
    unsigned cursor = 0;

    if ((uint64_t)facts->now_us <= after)
        return;
    while (facts_next_client(facts, uuid, &cursor, &client))
        if (client.pid)
            list->uses[list->count++] = (struct nvml_process_use){
                .time = (uint64_t)facts->now_us,
                .pid = client.pid,
                .sm = facts_sm_percent(facts, &client),
            };
}

/* A list of samples that is the driver's alone: what the driver has of the device, as uses. */
typedef int read_uses(nvml_device device, uint64_t after, const struct facts *facts,
                      struct use_list *list);

static int read_samples(nvml_device device, uint64_t after, const struct facts *facts,
                        struct use_list *list)
{
    unsigned count = 0;
    int result = NVML_BASE(nvmlDeviceGetProcessUtilization)(device, NULL, &count, after);
    struct nvml_process_sample *samples = NULL;

    if (result == NVML_ERROR_INSUFFICIENT_SIZE) {
        count += SPARE;
        samples = calloc(count, sizeof(*samples));
        result = samples
                     ? NVML_BASE(nvmlDeviceGetProcessUtilization)(device, samples, &count, after)
                     : NVML_ERROR_MEMORY;
    }
    if (result != NVML_SUCCESS)
        count = 0;
    if (!make_list(facts, count, list))
        result = NVML_ERROR_MEMORY;
    for (unsigned i = 0; list->uses && samples && i < count; i++)
        list->uses[list->count++] = (struct nvml_process_use){samples[i].time,
                                                              samples[i].pid,
                                                              samples[i].sm,
                                                              samples[i].memory,
                                                              samples[i].encoder,
                                                              samples[i].decoder,
                                                              0,
                                                              0};
    free(samples);
    return result;
}

static int read_infos(nvml_device device, uint64_t after, const struct facts *facts,
                      struct use_list *list)
{
    struct nvml_process_uses infos = {NVML_VERSION(infos, 1), 0, after, NULL};
    int result = NVML_BASE(nvmlDeviceGetProcessesUtilizationInfo)(device, &infos);

    if (!make_list(facts, infos.count + SPARE, list))
        return NVML_ERROR_MEMORY;
    if (result == NVML_ERROR_INSUFFICIENT_SIZE) {
        infos.count += SPARE;
        infos.uses = list->uses;
        result = NVML_BASE(nvmlDeviceGetProcessesUtilizationInfo)(device, &infos);
    }
    list->count = result == NVML_SUCCESS && infos.uses ? infos.count : 0;
    return result;
}

/* Where the driver has no sample, which is an error of NVML's, clients may have some. */
static int take_uses(nvml_device device, uint64_t after, read_uses *read, struct use_list *list)
{
    uint8_t uuid[16];
    const struct facts *facts = device_facts(device, true, uuid);
    int result = read(device, after, facts, list);

    if (!facts)
        return result;
    if (result == NVML_SUCCESS || result == NVML_ERROR_NOT_FOUND) {
        drop_servers(facts, list);
        add_clients(facts, uuid, after, list);
        result = list->count ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
    }
    facts_end(facts);
    return result;
}

static void write_sample(const struct nvml_process_use *use, struct nvml_process_sample *ret_sample)
{
    *ret_sample = (struct nvml_process_sample){use->pid,    use->time,    use->sm,
                                               use->memory, use->encoder, use->decoder};
}

int nvmlDeviceGetProcessUtilization(nvml_device device, struct nvml_process_sample *samples,
                                    unsigned *count, unsigned long long after)
{
    struct use_list list = {NULL, 0};
    int result;

    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    result = take_uses(device, after, read_samples, &list);
    if (result == NVML_SUCCESS && (!samples || *count < list.count))
        result = NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; result == NVML_SUCCESS && i < list.count; i++)
        write_sample(&list.uses[i], &samples[i]);
    if (result == NVML_SUCCESS || result == NVML_ERROR_INSUFFICIENT_SIZE)
        *count = list.count;
    free(list.uses);
    return result;
}

int nvmlDeviceGetProcessesUtilizationInfo(nvml_device device, struct nvml_process_uses *uses)
{
    struct use_list list = {NULL, 0};
    int result;

    if (!uses)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (uses->version != NVML_VERSION(*uses, 1))
        return NVML_BASE(nvmlDeviceGetProcessesUtilizationInfo)(device, uses);
    result = take_uses(device, uses->after, read_infos, &list);
    if (result == NVML_SUCCESS && (!uses->uses || uses->count < list.count))
        result = NVML_ERROR_INSUFFICIENT_SIZE;
    if (result == NVML_SUCCESS)
        memcpy(uses->uses, list.uses, list.count * sizeof(*list.uses));
    if (result == NVML_SUCCESS || result == NVML_ERROR_INSUFFICIENT_SIZE)
        uses->count = list.count;
    free(list.uses);
    return result;
}

/* ---- accounting ---- */

int nvmlDeviceGetAccountingMode(nvml_device device, int *mode)
{
    uint8_t uuid[16];
    const struct facts *facts = mode ? device_facts(device, false, uuid) : NULL;

    if (!facts)
        return NVML_BASE(nvmlDeviceGetAccountingMode)(device, mode);
    facts_end(facts);
    *mode = 1;
    return NVML_SUCCESS;
}

/* The driver's, where its accounting is on. */
static unsigned *read_accounted(nvml_device device, unsigned clients, unsigned *ret_count)
{
    unsigned count = 0;
    int result = NVML_BASE(nvmlDeviceGetAccountingPids)(device, &count, NULL);
    unsigned *pids = calloc(count + clients + SPARE, sizeof(*pids));

    if (pids && result == NVML_ERROR_INSUFFICIENT_SIZE) {
        count += SPARE;
        result = NVML_BASE(nvmlDeviceGetAccountingPids)(device, &count, pids);
    }
    *ret_count = result == NVML_SUCCESS ? count : 0;
    return pids;
}

static void correct_accounted(const struct facts *facts, const uint8_t uuid[16], unsigned *pids,
                              unsigned *count)
{
    struct device_client client;
    unsigned kept = 0, cursor = 0;

    for (unsigned i = 0; i < *count; i++)
        if (!facts_is_server(facts, pids[i]))
            pids[kept++] = pids[i];
    while (facts_next_client(facts, uuid, &cursor, &client))
        if (client.pid)
            pids[kept++] = client.pid;
    *count = kept;
}

static int write_pids(const unsigned *pids, unsigned known, unsigned *count, unsigned *ret_pids)
{
    bool fits = ret_pids && *count >= known;

    *count = known;
    if (fits && known)
        memcpy(ret_pids, pids, known * sizeof(*pids));
    return fits || !known ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

int nvmlDeviceGetAccountingPids(nvml_device device, unsigned *count, unsigned *pids)
{
    uint8_t uuid[16];
    const struct facts *facts = count ? device_facts(device, false, uuid) : NULL;
    unsigned known, *all;
    int result;

    if (!facts)
        return NVML_BASE(nvmlDeviceGetAccountingPids)(device, count, pids);
    all = read_accounted(device, facts->now.client_count, &known);
    if (all)
        correct_accounted(facts, uuid, all, &known);
    facts_end(facts);
    result = all ? write_pids(all, known, count, pids) : NVML_ERROR_MEMORY;
    free(all);
    return result;
}

static bool find_client(const struct facts *facts, const uint8_t uuid[16], unsigned pid,
                        struct device_client *ret_client)
{
    unsigned cursor = 0;

    while (facts_next_client(facts, uuid, &cursor, ret_client))
        if (pid && ret_client->pid == pid)
            return true;
    return false;
}

static void write_stats(const struct facts *facts, const struct device_client *client,
                        struct nvml_accounting *ret_stats)
{
    const struct server_status_row *row = &client->client->row;

    *ret_stats = (struct nvml_accounting){
        .gpu_percent = facts_gpu_percent_of_life(facts, client),
        .memory_peak = row->memory_peak[client->ordinal],
        .started = (uint64_t)row->identity.since * 1000000,
        .is_running = 1,
    };
}

int nvmlDeviceGetAccountingStats(nvml_device device, unsigned pid, struct nvml_accounting *stats)
{
    uint8_t uuid[16];
    const struct facts *facts = stats ? device_facts(device, false, uuid) : NULL;
    struct device_client client;
    bool found = facts && find_client(facts, uuid, pid, &client);

    if (found)
        write_stats(facts, &client, stats);
    if (facts)
        facts_end(facts);
    return found ? NVML_SUCCESS : NVML_BASE(nvmlDeviceGetAccountingStats)(device, pid, stats);
}
