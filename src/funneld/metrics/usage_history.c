/* SPDX-License-Identifier: Apache-2.0 */
/* See usage_history.h. */
#include "usage_history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"

#define PERIOD_S 2u
#define ENTRIES 256u
#define NAMED_ENTRIES (ENTRIES - GPU_LIST_MAX) /* behind these there is space for the others */

struct tier {
    unsigned merged; /* so many samples of the finer tier make one of this */
    unsigned next;   /* samples so far */
    struct history_sample samples[HISTORY_SAMPLES];
};

static struct {
    struct event *timer;
    bool is_asking;
    struct tier tiers[HISTORY_RANGES];
    unsigned gpu_count;
    uint8_t gpus[GPU_LIST_MAX][16];
    double gpu_sms[GPU_LIST_MAX];
    uint32_t last_serial;
    struct history_program programs[HISTORY_PROGRAMS]; /* by serial number, modulo their number */
    uint64_t color_used[HISTORY_COLORS]; /* clock_ns() when a program of that color last ran */
} history = {.tiers = {{.merged = 1}, {.merged = 12}, {.merged = 24}}};

/* The parts of a sample, before its size is known. */
struct draft {
    unsigned count;
    struct history_entry entries[ENTRIES];
};

/* ---- programs ---- */

const struct history_program *usage_history_program(uint32_t serial)
{
    const struct history_program *program = &history.programs[serial % HISTORY_PROGRAMS];

    return serial && program->serial == serial ? program : NULL;
}

static struct history_program *find_program(pid_t server, uint32_t id, pid_t pid)
{
    for (unsigned i = 0; i < HISTORY_PROGRAMS; i++) {
        struct history_program *program = &history.programs[i];

        if (program->serial && program->server == server && program->id == id &&
            program->pid == pid)
            return program;
    }
    return NULL;
}

const struct history_program *usage_history_find(pid_t server, const struct server_status_row *row)
{
    const struct history_program *program = find_program(server, row->id, row->identity.pid);

    return program && program->is_running ? program : NULL;
}

/* The one that the fewest running programs have, and of these the one that was last seen first. */
static unsigned choose_color(void)
{
    unsigned running[HISTORY_COLORS] = {0}, best = 0;

    for (unsigned i = 0; i < HISTORY_PROGRAMS; i++)
        running[history.programs[i].color] += history.programs[i].is_running;
    for (unsigned i = 1; i < HISTORY_COLORS; i++)
        if (running[i] < running[best] ||
            (running[i] == running[best] && history.color_used[i] < history.color_used[best]))
            best = i;
    return best;
}

/* NULL while as many programs run as have a place. */
static struct history_program *find_place(void)
{
    for (unsigned i = 0; i < HISTORY_PROGRAMS; i++) {
        struct history_program *place = &history.programs[++history.last_serial % HISTORY_PROGRAMS];

        if (history.last_serial && !place->is_running)
            return place;
    }
    return NULL;
}

static struct history_program *add_program(pid_t server, const struct server_status_row *row)
{
    struct history_program *program = find_place();

    if (!program)
        return NULL;
    *program = (struct history_program){.serial = history.last_serial,
                                        .is_running = true,
                                        .server = server,
                                        .pid = row->identity.pid,
                                        .id = row->id,
                                        .uid = row->identity.uid,
                                        .color = choose_color()};
    memcpy(program->group, row->identity.group, sizeof(program->group));
    return program;
}

/* The program's use of each device since it was read before. The counters only grow, and
 * the daemon has bounded them. */
static void read_rates(struct history_program *program, const struct server_status_row *row,
                       uint64_t now, double ret_sms[SERVER_MAX_DEVICES])
{
    double elapsed = program->read_ns ? (double)(now - program->read_ns) : 0;

    for (unsigned i = 0; i < SERVER_MAX_DEVICES; i++) {
        uint64_t used = row->usage.sm_ns[i], before = program->sm_ns[i];

        ret_sms[i] = elapsed > 0 && used > before ? (double)(used - before) / elapsed : 0;
        program->sm_ns[i] = used;
    }
    program->read_ns = now;
    program->is_running = true;
    history.color_used[program->color] = now;
}

/* ---- GPUs ---- */

const uint8_t *usage_history_gpu_uuid(uint32_t gpu)
{
    return gpu < history.gpu_count ? history.gpus[gpu] : NULL;
}

static unsigned find_gpu(const uint8_t uuid[16])
{
    unsigned i = 0;

    while (i < history.gpu_count && memcmp(history.gpus[i], uuid, 16))
        i++;
    return i;
}

double usage_history_gpu_sms(const uint8_t uuid[16])
{
    unsigned gpu = find_gpu(uuid);

    return gpu < history.gpu_count ? history.gpu_sms[gpu] : -1;
}

/* GPU_LIST_MAX when there are too many. */
static unsigned find_or_add_gpu(const uint8_t uuid[16])
{
    unsigned gpu = find_gpu(uuid);

    if (gpu == history.gpu_count && gpu < GPU_LIST_MAX)
        memcpy(history.gpus[history.gpu_count++], uuid, 16);
    return gpu;
}

/* ---- samples ---- */

static struct history_entry *find_entry(struct draft *draft, uint32_t program, uint32_t gpu)
{
    for (unsigned i = 0; i < draft->count; i++)
        if (draft->entries[i].program == program && draft->entries[i].gpu == gpu)
            return &draft->entries[i];
    if (program && draft->count >= NAMED_ENTRIES)
        return find_entry(draft, 0, gpu);
    draft->entries[draft->count] = (struct history_entry){program, gpu, 0, 0};
    return &draft->entries[draft->count++];
}

static void add_entry(struct draft *draft, const struct history_entry *more, double weight)
{
    struct history_entry *entry = find_entry(draft, more->program, more->gpu);

    entry->sms += more->sms * weight;
    entry->memory += more->memory * weight;
}

/* False, and the sample is left out, when there is no memory for it. */
static bool keep_sample(struct tier *tier, const struct draft *draft, double time)
{
    struct history_sample *sample = &tier->samples[tier->next % HISTORY_SAMPLES];
    size_t size = draft->count * sizeof(*draft->entries);
    struct history_entry *entries = malloc(size ? size : 1);

    if (!entries)
        return false;
    memcpy(entries, draft->entries, size);
    free(sample->entries);
    *sample = (struct history_sample){time, draft->count, entries};
    tier->next++;
    return true;
}

/* Keeps the newest samples of the finer tier as one. */
static bool merge_samples(enum history_range range)
{
    const struct tier *finer = &history.tiers[range - 1];
    struct tier *tier = &history.tiers[range];
    struct draft draft = {.count = 0};
    const struct history_sample *sample = NULL;

    for (unsigned i = finer->next - tier->merged; i < finer->next; i++) {
        sample = &finer->samples[i % HISTORY_SAMPLES];
        for (unsigned j = 0; j < sample->count; j++)
            add_entry(&draft, &sample->entries[j], 1.0 / tier->merged);
    }
    return keep_sample(tier, &draft, sample->time);
}

/* ---- reading ---- */

static void read_client(const struct status_report *report, const struct server_status_row *row,
                        struct draft *draft, uint64_t now)
{
    double sms[SERVER_MAX_DEVICES] = {0};
    struct history_program *program = find_program(report->server.pid, row->id, row->identity.pid);

    if (!program)
        program = add_program(report->server.pid, row);
    if (program)
        read_rates(program, row, now, sms);
    for (unsigned i = 0; i < report->server.device_count; i++) {
        unsigned gpu = find_or_add_gpu(report->server.devices[i].uuid);
        struct history_entry entry = {program ? program->serial : 0, gpu, sms[i],
                                      (double)row->memory_used[i]};

        if (row->device_mask & 1ull << i && gpu < GPU_LIST_MAX)
            add_entry(draft, &entry, 1);
    }
}

/* Each server counts as if it had the GPU to itself, but the GPU runs them in turns. So together
 * they get no more than there is, each in proportion. */
static void scale_to_gpu(struct draft *draft, const struct server_device *device)
{
    unsigned gpu = find_or_add_gpu(device->uuid);
    double sum = 0, available = device->sm_count;

    if (gpu == GPU_LIST_MAX)
        return;
    for (unsigned i = 0; i < draft->count; i++)
        sum += draft->entries[i].gpu == gpu ? draft->entries[i].sms : 0;
    history.gpu_sms[gpu] = sum < available ? sum : available;
    for (unsigned i = 0; i < draft->count && sum > available; i++)
        if (draft->entries[i].gpu == gpu)
            draft->entries[i].sms *= available / sum;
}

static void read_clients(const struct status_query *query, struct draft *draft)
{
    uint64_t now = clock_ns();

    for (unsigned i = 0; i < HISTORY_PROGRAMS; i++)
        history.programs[i].is_running = false;
    for (unsigned i = 0; i < query->report_count; i++)
        for (unsigned j = 0; j < query->reports[i].client_count; j++)
            read_client(&query->reports[i], &query->reports[i].clients[j], draft, now);
}

void usage_history_sample(const struct status_query *query)
{
    struct draft draft = {.count = 0};
    struct gpu_list list;
    struct timespec wall;

    clock_gettime(CLOCK_REALTIME, &wall);
    memset(history.gpu_sms, 0, sizeof(history.gpu_sms));
    read_clients(query, &draft);
    gpu_list_read(query, &list);
    for (unsigned i = 0; i < list.count; i++)
        scale_to_gpu(&draft, list.gpus[i].device);
    if (!keep_sample(&history.tiers[HISTORY_MINUTES], &draft,
                     (double)wall.tv_sec + (double)wall.tv_nsec / 1e9))
        return;
    for (unsigned i = HISTORY_HOUR; i < HISTORY_RANGES; i++) {
        if (history.tiers[i - 1].next % history.tiers[i].merged || !merge_samples(i))
            return;
    }
}

/* ---- asking ---- */

static void on_status(struct status_query *query, void *context)
{
    history.is_asking = false;
    if (history.timer)
        usage_history_sample(query);
}

/* Without a server on_status() is called before status_query_start() returns. */
static void on_timer(evutil_socket_t fd, short what, void *context)
{
    if (history.is_asking)
        return;
    history.is_asking = true;
    if (status_query_start(context, NULL, NULL, on_status, NULL))
        history.is_asking = false;
}

int usage_history_start(struct daemon *daemon)
{
    const struct timeval period = {.tv_sec = PERIOD_S};

    history.timer = event_new(daemon->base, -1, EV_PERSIST, on_timer, daemon);
    return history.timer && !evtimer_add(history.timer, &period) ? 0 : -ENOMEM;
}

void usage_history_stop(void)
{
    if (history.timer)
        event_free(history.timer);
    history.timer = NULL;
    for (unsigned i = 0; i < HISTORY_RANGES; i++) {
        for (unsigned j = 0; j < HISTORY_SAMPLES; j++)
            free(history.tiers[i].samples[j].entries);
        memset(history.tiers[i].samples, 0, sizeof(history.tiers[i].samples));
        history.tiers[i].next = 0;
    }
}

/* ---- what is asked of it ---- */

static const struct history_sample *newest_sample(const struct tier *tier)
{
    return tier->next ? &tier->samples[(tier->next - 1) % HISTORY_SAMPLES] : NULL;
}

unsigned usage_history_period(enum history_range range)
{
    return range == HISTORY_MINUTES ? PERIOD_S
                                    : history.tiers[range].merged * usage_history_period(range - 1);
}

static const struct history_sample *oldest_after(const struct tier *tier, double time)
{
    unsigned first = tier->next < HISTORY_SAMPLES ? 0 : tier->next - HISTORY_SAMPLES;

    for (unsigned i = first; i < tier->next; i++)
        if (tier->samples[i % HISTORY_SAMPLES].time > time)
            return &tier->samples[i % HISTORY_SAMPLES];
    return NULL;
}

const struct history_sample *usage_history_next(enum history_range range, double time)
{
    for (;; range--) {
        const struct history_sample *sample = oldest_after(&history.tiers[range], time);

        if (sample || range == HISTORY_MINUTES)
            return sample;
    }
}

double usage_history_sms(uint32_t serial, const uint8_t uuid[16])
{
    const struct history_sample *sample = newest_sample(&history.tiers[HISTORY_MINUTES]);
    unsigned gpu = find_gpu(uuid);

    for (unsigned i = 0; sample && i < sample->count; i++)
        if (sample->entries[i].program == serial && sample->entries[i].gpu == gpu)
            return sample->entries[i].sms;
    return -1;
}
