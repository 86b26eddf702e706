/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares: taking partitions for them, and moving their streams from one partition to another. A
 * stream can not change its partition, so it is replaced by one that begins when the old one is
 * done with what it was given.
 */
#include "sm_share.h"

#include <stdlib.h>

#include "cleanup.h"
#include "log.h"
#include "server.h"
#include "server_dispatch.h"
#include "stream.h"

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
    const struct partition *partition = session->device[device->ordinal].sm_share.partition;

    return partition ? partition->sm_count : sms_of_device(device);
}

/* In a static partition, which nothing changes. */
static bool is_fixed(const struct session *session, unsigned device)
{
    const struct server_limits *limits = &session->who.limits;

    return limits->fixed_count && limits->fixed_device == device;
}

CUresult sm_share_barred(const struct session *session, unsigned device)
{
    return session->who.limits.fixed_only && !is_fixed(session, device)
               ? CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION
               : CUDA_SUCCESS;
}

/* As many multiprocessors as that; all of them are no partition. Those who are in a static
 * partition stay in it. */
static CUresult take(struct session *session, const struct device *device, unsigned sm_count,
                     struct partition **ret_partition)
{
    struct partitions *partitions = partitions_of(session, device);
    const struct server_limits *limits = &session->who.limits;

    if (is_fixed(session, (unsigned)device->ordinal))
        return partitions_take_within(partitions, limits->fixed_first, limits->fixed_count,
                                      sm_count, ret_partition);
    if (sm_count < sms_of_device(device))
        return partitions_take(partitions, sm_count, ret_partition);
    *ret_partition = NULL;
    return CUDA_SUCCESS;
}

CUresult sm_share_open(struct session *session, unsigned device, unsigned *ret_sm_count)
{
    const struct server_limits *limits = &session->who.limits;
    struct sm_share *share = &session->device[device].sm_share;

    share->device = &session->server->devices.device[device];
    if (is_fixed(session, device))
        share->sm_count = limits->fixed_count;
    else
        share->sm_count =
            partitions_grant(partitions_of(session, share->device), session->sm_centipercent);
    *ret_sm_count = share->sm_count;
    return take(session, share->device, share->sm_count, &share->partition);
}

struct sm_share *sm_share_find(struct session *session, const struct device *device,
                               uint32_t number)
{
    if (number == 0)
        return &session->device[device->ordinal].sm_share;
    list_for_each(struct sm_share, share, &session->sm_shares, link)
    {
        if (share->number == number && share->device == device)
            return share;
    }
    return NULL;
}

/* ---- following the limits ---- */

/* The streams go over one by one. One that can not be replaced stays where it is. */
static void move_streams(struct session *session, const struct sm_share *share)
{
    CUresult result = CUDA_SUCCESS;

    list_for_each(struct stream, stream, &session->device[share->device->ordinal].streams, link)
    {
        if (stream->sm_share != share || result != CUDA_SUCCESS)
            continue;
        result = session_enter(session, share->device);
        if (result == CUDA_SUCCESS)
            result = stream_renew(stream);
    }
    if (result != CUDA_SUCCESS)
        log_line("Client " CLIENT_FORMAT ": streams keep their old limits: %s",
                 CLIENT_ARGS(session), driver_error_name(result));
}

static void resize(struct session *session, struct sm_share *share, unsigned sm_count)
{
    struct partition *old = share->partition;
    unsigned now = old ? old->sm_count : sms_of_device(share->device);

    if (now != sm_count) {
        CUresult result = take(session, share->device, sm_count, &share->partition);
        if (result != CUDA_SUCCESS) {
            log_line("Client " CLIENT_FORMAT " keeps its %u SMs of device %d: %s",
                     CLIENT_ARGS(session), now, share->device->ordinal, driver_error_name(result));
            return;
        }
        log_line("Client " CLIENT_FORMAT ": %u SMs of device %d from now on", CLIENT_ARGS(session),
                 sm_count, share->device->ordinal);
    }
    move_streams(session, share);
    if (now != sm_count)
        partitions_put_back(partitions_of(session, share->device), old);
}

void sm_shares_follow_limits(struct session *session)
{
    uint32_t centipercent = session->sm_centipercent;

    for (unsigned i = 0; i < session->server->devices.count; i++) {
        struct sm_share *own = &session->device[i].sm_share;
        if (is_fixed(session, i)) {
            move_streams(session, own); /* for the priority */
            continue;
        }
        own->sm_count = partitions_grant(partitions_of(session, own->device), centipercent);
        resize(session, own, own->sm_count);
    }
    list_for_each(struct sm_share, share, &session->sm_shares, link)
    {
        unsigned most = sms_of_client(session, share->device);
        resize(session, share, share->sm_count < most ? share->sm_count : most);
    }
}

/* ---- shares of contexts ---- */

static CUresult count_wanted(struct session *session, const struct device *device,
                             const struct wire_fnShareCreate *in, unsigned *ret_sm_count)
{
    const struct partitions *partitions = partitions_of(session, device);
    bool fixed = is_fixed(session, in->device);
    unsigned most = fixed ? sms_of_client(session, device) : sms_of_device(device);

    if (!partitions->group_count || in->sm_count > most)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    if (in->sm_count)
        *ret_sm_count = partitions_round_up(partitions, in->sm_count);
    else
        *ret_sm_count = fixed ? most : partitions_grant(partitions, in->sm_centipercent);
    return CUDA_SUCCESS;
}

static CUresult sm_share_create(struct session *session, const struct device *device,
                                unsigned sm_count, struct sm_share **ret_share)
{
    unsigned most = sms_of_client(session, device);
    struct sm_share *share = calloc(1, sizeof(*share));

    if (!share)
        return CUDA_ERROR_OUT_OF_MEMORY;
    share->device = device;
    share->sm_count = sm_count;
    CUresult result = take(session, device, sm_count < most ? sm_count : most, &share->partition);
    if (result != CUDA_SUCCESS) {
        free(share);
        return result;
    }
    share->number = ++session->last_sm_share;
    list_append(&session->sm_shares, &share->link);
    session->sm_share_count++;
    *ret_share = share;
    return CUDA_SUCCESS;
}

CUresult serve_fnShareCreate(struct session *session, const struct wire_fnShareCreate *in,
                             struct wire_fnShareCreate_reply *ret_out)
{
    const struct device *device = session_find_device(session, "cuCtxCreate", in->device);
    struct sm_share *share = NULL;
    unsigned sm_count = 0;

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (session->sm_share_count >= SM_SHARES_MAX) {
        session_log_error(session, "cuCtxCreate: more than %u contexts with an SM share",
                          SM_SHARES_MAX);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = sm_share_barred(session, in->device);
    if (result == CUDA_SUCCESS)
        result = session_enter(session, device);
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

static void sm_share_destroy(struct session *session, struct sm_share *share)
{
    list_remove(&share->link);
    session->sm_share_count--;
    partitions_put_back(partitions_of(session, share->device), share->partition);
    free(share);
}

static bool is_used(struct session *session, const struct sm_share *share)
{
    list_for_each(struct stream, stream, &session->device[share->device->ordinal].streams, link)
    {
        if (stream->sm_share == share)
            return true;
    }
    return false;
}

CUresult serve_fnShareDestroy(struct session *session, const struct wire_fnShareDestroy *in)
{
    list_for_each_safe(struct sm_share, share, &session->sm_shares, link)
    {
        if (share->number != in->share)
            continue;
        if (is_used(session, share)) {
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
    list_for_each_safe(struct sm_share, share, &session->sm_shares, link)
        sm_share_destroy(session, share);
    for (unsigned i = 0; i < session->server->devices.count; i++) {
        struct sm_share *own = &session->device[i].sm_share;
        partitions_put_back(&session->server->partitions[i], steal_pointer(own->partition));
        own->legacy = NULL;
    }
}
