/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvidia-smi lists processes by functions of a table that no header describes. Where these stand
 * and what they write is known from NVIDIA's own library in the place of NVML, for release 580 of
 * the driver. It is github.com/NVIDIA/k8s-test-infra, pkg/gpu/mocknvml/bridge/internal.go. For a
 * driver of that release nvidia-smi gets a copy of the table, in which they are Funnel's.
 */
#include <pthread.h>
#include <string.h>

#include "cleanup.h"
#include "nvml_device.h"
#include "nvml_entries.h"

#define LISTS 3u
#define WORDS_MAX 4096u
#define NAME_MAX_BYTES 4096u

/* A process, with its program. */
struct table_process {
    struct nvml_process_detail detail;
    char name[NAME_MAX_BYTES];
};

_Static_assert(sizeof(struct table_process) == 4128, "as nvidia-smi has it");

/* The rest is passed on as it comes. */
typedef int list_function(nvml_device device, unsigned *count, struct table_process *processes,
                          void *more, void *still_more);

struct table_layout {
    const char *driver;  /* what its version begins with */
    unsigned first_list; /* in words of the table */
};

static const struct table_layout layouts[] = {{"580.", 213}};
static const uint8_t processes_id[16] = {0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
                                         0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER; /* to write what follows */
static uintptr_t table[WORDS_MAX];                             /* the first word is its size */
static list_function *lists[LISTS];                            /* NVIDIA's */

/* ---- a list ---- */

static bool drop_servers(const struct facts *facts, unsigned *count,
                         struct table_process *processes)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < *count; i++) {
        if (facts_is_server(facts, processes[i].detail.pid))
            continue;
        if (kept != i)
            processes[kept] = processes[i];
        kept++;
    }
    if (kept == *count)
        return false;
    *count = kept;
    return true;
}

static struct table_process *find_process(unsigned pid, unsigned count,
                                          struct table_process *processes)
{
    for (unsigned i = 0; i < count; i++)
        if (processes[i].detail.pid == pid)
            return &processes[i];
    return NULL;
}

static void describe_client(const struct device_client *client, struct table_process *ret_process)
{
    const char *command = client->client->row.identity.command;
    size_t length = strcspn(command, " ");

    length = length < NAME_MAX_BYTES ? length : NAME_MAX_BYTES - 1;
    ret_process->detail =
        (struct nvml_process_detail){client->pid, 0, NVML_NO_INSTANCE, NVML_NO_INSTANCE, 0};
    memcpy(ret_process->name, command, length);
    ret_process->name[length] = '\0';
}

/* Those that there is no capacity for are left out. */
static void add_clients(const struct facts *facts, const uint8_t uuid[16], unsigned capacity,
                        unsigned *count, struct table_process *processes)
{
    struct device_client client;
    unsigned cursor = 0;

    while (facts_next_client(facts, uuid, &cursor, &client)) {
        struct table_process *process = find_process(client.pid, *count, processes);
        if (!client.pid || (!process && *count >= capacity))
            continue;
        if (!process) {
            process = &processes[(*count)++];
            describe_client(&client, process);
        }
        process->detail.used_memory += client.client->row.memory_used[client.ordinal];
    }
}

/* The clients are in the list in which NVIDIA's library has their server. */
static void correct_list(nvml_device device, unsigned capacity, unsigned *count,
                         struct table_process *processes)
{
    uint8_t uuid[16];
    const struct facts *facts = device_facts(device, false, uuid);

    if (!facts)
        return;
    if (drop_servers(facts, count, processes))
        add_clients(facts, uuid, capacity, count, processes);
    facts_end(facts);
}

static int answer_list(unsigned list, nvml_device device, unsigned *count,
                       struct table_process *processes, void *more, void *still_more)
{
    unsigned capacity = count ? *count : 0;
    int result = lists[list](device, count, processes, more, still_more);

    if (result == NVML_SUCCESS && count && processes && *count <= capacity)
        correct_list(device, capacity, count, processes);
    return result;
}

#define TABLE_LIST(number)                                                                         \
    static int answer_list_##number(nvml_device device, unsigned *count,                           \
                                    struct table_process *processes, void *more, void *still_more) \
    {                                                                                              \
        return answer_list(number, device, count, processes, more, still_more);                    \
    }

TABLE_LIST(0)
TABLE_LIST(1)
TABLE_LIST(2)

/* ---- the table ---- */

static const struct table_layout *find_layout(void)
{
    char version[NVML_VERSION_MAX] = "";

    if (NVML_BASE(nvmlSystemGetDriverVersion)(version, sizeof(version)) != NVML_SUCCESS)
        return NULL;
    for (unsigned i = 0; i < sizeof(layouts) / sizeof(*layouts); i++)
        if (!strncmp(version, layouts[i].driver, strlen(layouts[i].driver)))
            return &layouts[i];
    return NULL;
}

/* NULL when the table is not as it should be. */
static const void *copy_table(const uintptr_t *given, const struct table_layout *layout)
{
    static list_function *const own[LISTS] = {answer_list_0, answer_list_1, answer_list_2};
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&table_lock);
    uintptr_t size = given[0];

    if (size > sizeof(table) || size < (layout->first_list + LISTS) * sizeof(*table))
        return NULL;
    memcpy(table, given, size);
    for (unsigned i = 0; i < LISTS; i++) {
        memcpy(&lists[i], &given[layout->first_list + i], sizeof(lists[i]));
        if (!lists[i])
            return NULL;
        memcpy(&table[layout->first_list + i], &own[i], sizeof(own[i]));
    }
    return table;
}

int nvmlInternalGetExportTable(const void **ret_table, const void *id)
{
    int result = NVML_BASE(nvmlInternalGetExportTable)(ret_table, id);
    const struct table_layout *layout;
    const void *copy;

    if (result != NVML_SUCCESS || !*ret_table || memcmp(id, processes_id, sizeof(processes_id)))
        return result;
    layout = find_layout();
    copy = layout ? copy_table(*ret_table, layout) : NULL;
    if (copy)
        *ret_table = copy;
    return result;
}
