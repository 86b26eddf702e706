/* SPDX-License-Identifier: Apache-2.0 */
/* See suspend_move.h. */
#include "suspend_move.h"

#include "clock.h"
#include "eviction.h"
#include "log.h"
#include "server_module.h"
#include "suspend_result.h"
#include "swap.h"
#include "swap_slices.h"
#include "swap_transfer.h"

static void check_object(void *context, uint64_t handle, void *object)
{
    enum suspend_result *result = context;
    unsigned type = handle_type(handle);

    if (type == WIRE_ARRAY || type == WIRE_TEXTURE)
        *result = SUSPEND_ARRAYS;
}

static void check_module(void *context, uint64_t handle, void *object)
{
    enum suspend_result *result = context;

    if (handle_type(handle) == WIRE_MODULE && module_ends_with_server(object))
        *result = SUSPEND_MODULES;
}

/* A client that leaves its server goes on in another session. */
static enum suspend_result find_loss(struct session *session)
{
    enum suspend_result result = swap_is_kept(session) ? SUSPEND_OK : SUSPEND_NOT_KEPT;

    if (result == SUSPEND_OK)
        handles_for_each(&session->objects, check_module, &result);
    return result;
}

enum suspend_result suspend_obstacle(struct session *session)
{
    enum suspend_result result = swap_obstacle(session);

    if (result == SUSPEND_OK)
        handles_for_each(&session->objects, check_object, &result);
    return result == SUSPEND_OK && suspend_is_detached(session) ? find_loss(session) : result;
}

static enum suspend_result move_to_pool(struct session *session)
{
    struct program_suspend *suspend = program_suspend_of(session);
    const struct swap_part part = {suspend->part_device, suspend->part_bytes};

    if (suspend->for_others && part.bytes)
        return swap_slices_out(session, &part, &suspend->copied);
    return swap_out(session, NULL, &suspend->copied);
}

static enum suspend_result move_out(struct session *session)
{
    struct program_suspend *suspend = program_suspend_of(session);
    const struct suspend_file *file = &suspend->file;
    const struct swap_saving saving = {file->writable, file->readable,
                                       suspend_is_detached(session)};

    if (!suspend->adopted.to_file)
        return move_to_pool(session);
    return suspend_is_checkpoint(session) ? swap_checkpoint_begin(session, file->writable)
                                          : swap_out_to_file(session, &saving);
}

static const char *state_name(const struct session *session)
{
    if (suspend_is_checkpoint(session))
        return "checkpointed";
    if (suspend_is_detached(session))
        return "detached";
    return program_suspend_of(session)->evict ? "evicted" : "suspended";
}

static const char *reason_of(const struct session *session)
{
    if (!program_suspend_of(session)->for_others)
        return "";
    return rest_eviction_is_under_way(session) ? " because it rests" : " to make room for others";
}

static void log_away(const struct session *session, uint64_t ns)
{
    const struct program_suspend *suspend = program_suspend_of(session);
    uint64_t mib = swap_bytes_in_all(session) >> 20, ms = ns / NS_PER_MS;

    if (suspend->adopted.to_file)
        session_log(session, " is %s: %llu MiB are in a file, after %llu ms", state_name(session),
                    (unsigned long long)mib, (unsigned long long)ms);
    else
        session_log(session,
                    " is %s%s: %llu MiB are in host memory, %llu of them copied now, after %llu ms",
                    state_name(session), reason_of(session), (unsigned long long)mib,
                    (unsigned long long)(suspend->copied >> 20), (unsigned long long)ms);
}

static void log_leaving(const struct session *session, enum suspend_result result, uint64_t ns)
{
    if (result != SUSPEND_OK)
        session_log(session, " is not %s: %s", state_name(session), suspend_result_text(result));
    else if (suspend_is_checkpoint(session))
        session_log(session, " has stood still for a checkpoint for %llu ms",
                    (unsigned long long)(ns / NS_PER_MS));
    else
        log_away(session, ns);
}

static void tell_result(struct session *session, enum suspend_result result)
{
    program_suspend_of(session)->more = false;
    if (result == SUSPEND_OK)
        eviction_has_left(session);
    else
        eviction_has_refused(session, result);
}

enum suspend_result suspend_leave_device(struct session *session)
{
    struct program_suspend *suspend = program_suspend_of(session);
    enum suspend_result result = suspend_obstacle(session);
    uint64_t began = clock_ns(), before = swap_bytes_in_all(session);

    activity_set_stage(&session->activity, "suspend");
    if (result == SUSPEND_OK)
        result = move_out(session);
    activity_set_stage(&session->activity, NULL);
    log_leaving(session, result, clock_ns() - began);
    if (result == SUSPEND_OK && suspend_is_checkpoint(session))
        return result;
    if (result == SUSPEND_OK)
        eviction_note_leaving(session, swap_bytes_in_all(session) - before);
    if (suspend->for_others)
        tell_result(session, result);
    return result;
}

enum suspend_result suspend_end_checkpoint(struct session *session)
{
    enum suspend_result result = swap_checkpoint_end(session);

    if (result != SUSPEND_OK)
        session_log(session, " is not checkpointed: %s", suspend_result_text(result));
    return result;
}

/* An evicted program tries again and again, and says so once. */
static void log_no_return(const struct session *session, enum suspend_result result)
{
    const struct program_suspend *suspend = program_suspend_of(session);

    if (!suspend->evict || suspend->result != (int)result)
        session_log(session, " is not resumed: %s", suspend_result_text(result));
}

enum suspend_result suspend_return(struct session *session)
{
    const struct program_suspend *suspend = program_suspend_of(session);
    uint64_t bytes = swap_bytes_in_all(session), began = clock_ns();

    activity_set_stage(&session->activity, "resume");
    enum suspend_result result = suspend->evict && eviction_takes_part(session)
                                     ? (enum suspend_result)eviction_return(session)
                                     : swap_in(session, NULL);
    activity_set_stage(&session->activity, NULL);

    if (result == SUSPEND_OK) {
        eviction_note_return(session, bytes);
        session_log(session, " is resumed: %llu MiB are on the device again, after %llu ms",
                    (unsigned long long)(bytes >> 20),
                    (unsigned long long)((clock_ns() - began) / NS_PER_MS));
    } else {
        log_no_return(session, result);
    }
    return result;
}
