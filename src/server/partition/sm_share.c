/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes partitions for SM shares, and moves streams from one partition to another. A stream cannot
 * change its partition, so a new stream replaces it, which begins when the old one has finished its
 * work.
 */
#include "sm_share.h"

#include <errno.h>
#include <stdlib.h>

#include "cleanup.h"
#include "log.h"
#include "server_dispatch.h"

struct session_sm_shares {
    struct sm_share own[SERVER_MAX_DEVICES]; /* the client's as a whole, by device */
    struct list others;                      /* struct sm_share: of contexts */
    unsigned count;                          /* of `others` */
    uint32_t last;                           /* the number that was given last */
};

int server_partitions_init(struct server *server)
{
    const struct devices *devices = &server->devices;

    server->partitions = calloc(devices->count, sizeof(*server->partitions));
    if (!server->partitions)
        return -ENOMEM;
    for (unsigned i = 0; i < devices->count; i++)
        partitions_init(&server->partitions[i], &devices->device[i]);
    return 0;
}

void server_partitions_fini(struct server *server)
{
    free(server->partitions);
}

int session_sm_shares_init(struct session *session)
{
    session->sm_shares = calloc(1, sizeof(*session->sm_shares));
    if (!session->sm_shares)
        return -ENOMEM;
    list_init(&session->sm_shares->others);
    return 0;
}

void session_sm_shares_fini(struct session *session)
{
    free(session->sm_shares);
}

static struct partitions *partitions_of(struct session *session, const struct device *device)
{
    return &session->server->partitions[device->ordinal];
}

static unsigned sms_of_device(const struct device *device)
{
    return (unsigned)device->record.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
}

static unsigned sms_of_client(struct session *session, const struct device *device)
{
    const struct partition *partition = session->sm_shares->own[device->ordinal].partition;

    return partition ? partition->sm_count : sms_of_device(device);
}

/* Whether the client is in a static partition of the device, which never changes. */
static bool is_fixed(const struct session *session, unsigned device)
{
    return session->limits.fixed_count && session->limits.fixed_device == device;
}

unsigned sm_share_granted(struct server *server, const struct session_limits *limits,
                          unsigned device)
{
    if (limits->fixed_count && limits->fixed_device == device)
        return limits->fixed_count;
    return limits->fixed_only
               ? 0
               : partitions_grant(&server->partitions[device], limits->sm_centipercent);
}

const struct sm_share *sm_share_own(const struct session *session, unsigned device)
{
    return &session->sm_shares->own[device];
}

CUresult sm_share_barred(const struct session *session, unsigned device)
{
    return session->limits.fixed_only && !is_fixed(session, device)
               ? CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION
               : CUDA_SUCCESS;
}

/* Takes a partition of `sm_count` multiprocessors, or none when these are all. A client in a static
 * partition stays inside it. */
static CUresult take_partition(struct session *session, const struct device *device,
                               unsigned sm_count, struct partition **ret_partition)
{
    struct partitions *partitions = partitions_of(session, device);
    const struct session_limits *limits = &session->limits;

    if (is_fixed(session, (unsigned)device->ordinal))
        return partitions_take_within(partitions, session, limits->fixed_first, limits->fixed_count,
                                      sm_count, ret_partition);
    if (sm_count < sms_of_device(device))
        return partitions_take(partitions, session, sm_count, ret_partition);
    *ret_partition = NULL;
    return CUDA_SUCCESS;
}

/* The groups of the client's static partition, and of the chunks that it may borrow. */
static unsigned list_lent_groups(const struct session_limits *limits, unsigned step,
                                 uint8_t ret_groups[SM_GROUPS_MAX])
{
    unsigned end = (limits->fixed_first + limits->fixed_count) / step, count = 0;

    for (unsigned group = 0; group < SM_GROUPS_MAX; group++) {
        unsigned chunk = group * step / limits->borrow_chunk_sms;
        bool is_own = group >= limits->fixed_first / step && group < end;

        if (is_own || (chunk < 64 && limits->borrow_chunks >> chunk & 1))
            ret_groups[count++] = (uint8_t)group;
    }
    return count;
}

static void take_lent_chunks(struct session *session, struct sm_share *share)
{
    struct partitions *partitions = partitions_of(session, share->device);
    const struct session_limits *limits = &session->limits;
    uint8_t groups[SM_GROUPS_MAX];

    if (!limits->borrow_chunks || !limits->borrow_chunk_sms)
        return;
    unsigned count = list_lent_groups(limits, partitions->groups.sms, groups);
    CUresult result =
        partitions_take_groups(partitions, session, NULL, groups, count, &share->lent);

    share->may_borrow = result == CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        log_line("Client " CLIENT_FORMAT " borrows no SMs of device %d: %s", CLIENT_ARGS(session),
                 share->device->ordinal, driver_error_name(result));
}

/* What a share of a device may borrow is the whole device, and needs no partition. */
static void settle_lending(struct session *session, struct sm_share *share)
{
    if (is_fixed(session, (unsigned)share->device->ordinal))
        return;
    share->may_borrow = session->limits.may_borrow && share->partition;
}

CUresult sm_share_open(struct session *session, unsigned device, unsigned *ret_sm_count)
{
    const struct session_limits *limits = &session->limits;
    struct sm_share *share = &session->sm_shares->own[device];

    share->device = &session->server->devices.device[device];
    if (is_fixed(session, device))
        share->sm_count = limits->fixed_count;
    else
        share->sm_count = partitions_grant(partitions_of(session, share->device),
                                           session->limits.sm_centipercent);
    *ret_sm_count = share->sm_count;
    CUresult result = take_partition(session, share->device, share->sm_count, &share->partition);
    if (result == CUDA_SUCCESS && is_fixed(session, device))
        take_lent_chunks(session, share);
    settle_lending(session, share);
    return result;
}

struct sm_share *sm_share_find(struct session *session, const struct device *device,
                               uint32_t number)
{
    if (number == 0)
        return &session->sm_shares->own[device->ordinal];
    list_for_each (struct sm_share, share, &session->sm_shares->others, link) {
        if (share->number == number && share->device == device)
            return share;
    }
    return NULL;
}

/* Takes the groups of a share from the client's present groups. */
static CUresult take_groups(struct session *session, const struct sm_share *share,
                            struct partition **ret_partition)
{
    const struct partition *own = session->sm_shares->own[share->device->ordinal].partition;

    return partitions_take_groups(partitions_of(session, share->device), session, own,
                                  share->groups, share->group_count, ret_partition);
}

/* ---- following the limits ---- */

typedef void stream_mover(struct session *session, const struct sm_share *share);

static void resize(struct session *session, struct sm_share *share, unsigned sm_count,
                   stream_mover *move)
{
    struct partition *old = share->partition;
    unsigned now = old ? old->sm_count : sms_of_device(share->device);

    if (now != sm_count) {
        CUresult result = take_partition(session, share->device, sm_count, &share->partition);
        if (result != CUDA_SUCCESS) {
            session_log_event(session, 0, " keeps its %u SMs of device %d: %s", now,
                              share->device->ordinal, driver_error_name(result));
            return;
        }
        session_log(session, ": %u SMs of device %d from now on", sm_count, share->device->ordinal);
    }
    move(session, share);
    if (now != sm_count)
        partitions_put_back(partitions_of(session, share->device), old);
}

/* The groups of a share follow the client's groups. When the client has fewer now, its shares may
 * overlap. */
static void follow_own(struct session *session, struct sm_share *share, stream_mover *move)
{
    struct partition *old = share->partition;
    CUresult result = take_groups(session, share, &share->partition);

    if (result != CUDA_SUCCESS) {
        session_log_event(session, 0, " keeps %u SMs of device %d for a green context: %s",
                          old ? old->sm_count : 0, share->device->ordinal,
                          driver_error_name(result));
        return;
    }
    move(session, share);
    partitions_put_back(partitions_of(session, share->device), old);
}

void sm_shares_follow_limits(struct session *session, stream_mover *move)
{
    uint32_t centipercent = session->limits.sm_centipercent;

    for (unsigned i = 0; i < session->server->devices.count; i++) {
        struct sm_share *own = &session->sm_shares->own[i];
        if (is_fixed(session, i)) {
            move(session, own); /* for the priority */
            continue;
        }
        own->sm_count = partitions_grant(partitions_of(session, own->device), centipercent);
        resize(session, own, own->sm_count, move);
        settle_lending(session, own);
    }
    list_for_each (struct sm_share, share, &session->sm_shares->others, link) {
        unsigned most = sms_of_client(session, share->device);
        if (share->listed)
            follow_own(session, share, move);
        else
            resize(session, share, share->sm_count < most ? share->sm_count : most, move);
    }
}

/* ---- shares of contexts ---- */

static CUresult count_wanted(struct session *session, const struct device *device,
                             const struct wire_fnShareCreate *in, unsigned *ret_sm_count)
{
    const struct partitions *partitions = partitions_of(session, device);
    bool fixed = is_fixed(session, in->device);
    unsigned most = fixed ? sms_of_client(session, device) : sms_of_device(device);

    if (!partitions->groups.count || in->sm_count > most)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    if (in->sm_count)
        *ret_sm_count = partitions_round_up(partitions, in->sm_count);
    else
        *ret_sm_count = fixed ? most : partitions_grant(partitions, in->sm_centipercent);
    return CUDA_SUCCESS;
}

/* A new share without a number and a partition; NULL when out of memory. */
static struct sm_share *sm_share_new(const struct device *device)
{
    struct sm_share *share = calloc(1, sizeof(*share));

    if (share)
        share->device = device;
    return share;
}

/* Adds the share, if `result`, that of taking its partition, is a success; else frees it. */
static CUresult announce_share(struct session *session, CUresult result, struct sm_share *share,
                               struct sm_share **ret_share)
{
    if (result != CUDA_SUCCESS) {
        free(share);
        return result;
    }
    share->number = ++session->sm_shares->last;
    list_append(&session->sm_shares->others, &share->link);
    session->sm_shares->count++;
    *ret_share = share;
    return CUDA_SUCCESS;
}

static CUresult sm_share_create(struct session *session, const struct device *device,
                                unsigned sm_count, struct sm_share **ret_share)
{
    unsigned most = sms_of_client(session, device);
    struct sm_share *share = sm_share_new(device);

    if (!share)
        return CUDA_ERROR_OUT_OF_MEMORY;
    share->sm_count = sm_count;
    CUresult result =
        take_partition(session, device, sm_count < most ? sm_count : most, &share->partition);
    return announce_share(session, result, share, ret_share);
}

/* Whether the client may have one more share of a device; its context is current then. */
static CUresult admit(struct session *session, const char *call, const struct device *device,
                      unsigned index)
{
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (session->sm_shares->count >= SM_SHARES_MAX) {
        session_log_error(session, "%s: more than %u contexts with an SM share", call,
                          SM_SHARES_MAX);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = sm_share_barred(session, index);
    return result == CUDA_SUCCESS ? session_enter(session, device) : result;
}

CUresult serve_fnShareCreate(struct session *session, const struct wire_fnShareCreate *in,
                             struct wire_fnShareCreate_reply *ret_out)
{
    const struct device *device = session_find_device(session, "cuCtxCreate", in->device);
    struct sm_share *share = NULL;
    unsigned sm_count = 0;
    CUresult result = admit(session, "cuCtxCreate", device, in->device);

    if (result == CUDA_SUCCESS)
        result = count_wanted(session, device, in, &sm_count);
    if (result == CUDA_SUCCESS)
        result = sm_share_create(session, device, sm_count, &share);
    if (result != CUDA_SUCCESS)
        return result;
    ret_out->share = share->number;
    ret_out->sm_count = share->partition ? share->partition->sm_count : sms_of_device(device);
    return CUDA_SUCCESS;
}

/* ---- shares of the groups that a client names ---- */

CUresult serve_fnShareAsk(struct session *session, const struct wire_fnShareAsk *in,
                          struct wire_fnShareAsk_reply *ret_out)
{
    const struct device *device =
        session_find_device(session, "cuDeviceGetDevResource", in->device);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    const struct partitions *partitions = partitions_of(session, device);
    const struct partition *own = session->sm_shares->own[device->ordinal].partition;
    const struct sm_groups *groups = &partitions->groups;
    unsigned unit = groups->sms;

    if (!partitions->groups.count)
        return CUDA_ERROR_NOT_SUPPORTED;
    ret_out->sm_count = partitions_count_groups(partitions, own) * unit;
    ret_out->unit = unit;
    ret_out->least = groups->least > unit ? groups->least : unit;
    ret_out->scheduled = groups->scheduled > unit ? groups->scheduled : unit;
    ret_out->coscheduled = groups->cluster_count
                               ? partitions_count_clustered(partitions, own) * unit
                               : ret_out->sm_count / ret_out->scheduled * ret_out->scheduled;
    return CUDA_SUCCESS;
}

/* Lists the numbers of the set bits; false when one is not below `end`. */
static bool list_bits(const uint64_t *words, unsigned end, uint8_t *ret_bits, unsigned *ret_count)
{
    unsigned count = 0;

    for (unsigned bit = 0; bit < SM_GROUPS_MAX; bit++) {
        if (!(words[bit / 64] >> bit % 64 & 1))
            continue;
        if (bit >= end)
            return false;
        ret_bits[count++] = (uint8_t)bit;
    }
    *ret_count = count;
    return count > 0;
}

static CUresult sm_share_create_of(struct session *session, const struct device *device,
                                   const uint64_t *groups, struct sm_share **ret_share)
{
    const struct partition *own = session->sm_shares->own[device->ordinal].partition;
    unsigned end = partitions_count_groups(partitions_of(session, device), own);
    struct sm_share *share = sm_share_new(device);

    if (!share)
        return CUDA_ERROR_OUT_OF_MEMORY;
    share->listed = true;
    CUresult result = CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    if (list_bits(groups, end, share->groups, &share->group_count))
        result = take_groups(session, share, &share->partition);
    return announce_share(session, result, share, ret_share);
}

CUresult serve_fnShareCreateOf(struct session *session, const struct wire_fnShareCreateOf *in,
                               struct wire_fnShareCreateOf_reply *ret_out)
{
    const struct device *device = session_find_device(session, "cuGreenCtxCreate", in->device);
    struct sm_share *share = NULL;
    CUresult result = admit(session, "cuGreenCtxCreate", device, in->device);

    if (result == CUDA_SUCCESS)
        result = sm_share_create_of(session, device, in->groups, &share);
    if (result == CUDA_SUCCESS)
        ret_out->share = share->number;
    return result;
}

static void sm_share_destroy(struct session *session, struct sm_share *share)
{
    list_remove(&share->link);
    session->sm_shares->count--;
    partitions_put_back(partitions_of(session, share->device), share->partition);
    free(share);
}

CUresult serve_fnShareDestroy(struct session *session, const struct wire_fnShareDestroy *in)
{
    list_for_each_safe (struct sm_share, share, &session->sm_shares->others, link) {
        if (share->number != in->share)
            continue;
        if (share->streams) {
            session_log_error(session, "cuCtxDestroy: SM share %u still has streams", in->share);
            return CUDA_ERROR_INVALID_VALUE;
        }
        sm_share_destroy(session, share);
        return CUDA_SUCCESS;
    }
    session_log_error(session, "cuCtxDestroy: there is no SM share %u", in->share);
    return CUDA_ERROR_INVALID_VALUE;
}

void sm_shares_close_all(struct session *session)
{
    list_for_each_safe (struct sm_share, share, &session->sm_shares->others, link)
        sm_share_destroy(session, share);
    for (unsigned i = 0; i < session->server->devices.count; i++) {
        struct sm_share *own = &session->sm_shares->own[i];
        partitions_put_back(&session->server->partitions[i], steal_pointer(own->partition));
        partitions_put_back(&session->server->partitions[i], steal_pointer(own->lent));
        own->may_borrow = false;
        own->legacy = NULL;
    }
}
