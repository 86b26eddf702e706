/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other server's driver puts variables elsewhere. So they can be copied only while nothing but
 * the driver knows where they are. Neither the client's memory nor the variables themselves may
 * hold an address of one. The client sees to it that the program has not asked for one.
 */
#include "leave_variables.h"

#include "address_scan.h"
#include "attach.h"
#include "log.h"
#include "saved_variables.h"
#include "session.h"
#include "shm.h"
#include "sock.h"

static enum move_obstacle refuse_address(struct session *session,
                                         const struct saved_variables *saved, uint64_t address,
                                         const char *where)
{
    const struct variable_place *place = saved_variables_place(saved, address);

    session_log(session, ": %s the address %#llx, which is %s%s", where,
                (unsigned long long)address, place ? "inside variable " : "close to a variable",
                place ? place->name : "");
    return OBSTACLE_ADDRESS;
}

static enum move_obstacle refuse_search(struct session *session, CUresult result)
{
    if (result == CUDA_ERROR_NOT_READY)
        return OBSTACLE_CALL;
    session_check(session, result);
    session_log(session, ": its memory cannot be searched for addresses of its variables: %s",
                driver_error_name(result));
    return OBSTACLE_UNSEEN;
}

static enum move_obstacle search_memory(struct session *session,
                                        const struct saved_variables *saved)
{
    struct address_spans spans = {.count = 0};
    uint64_t address = saved_variables_address(saved);

    if (address)
        return refuse_address(session, saved, address, "one of its variables holds");
    for (size_t i = 0; i < saved->count; i++)
        address_spans_add(&spans, saved->places[i].address, saved->places[i].size);
    CUresult result = spans.count ? address_scan(session, &spans, &address) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        return refuse_search(session, result);
    return address ? refuse_address(session, saved, address, "its memory holds") : OBSTACLE_NONE;
}

static enum move_obstacle write_file(struct session *session, const struct saved_variables *saved,
                                     struct leave_parcel *ret_parcel)
{
    int error =
        shm_create_read_only("funnel-variables", saved->bytes, saved->size, &ret_parcel->fd);

    if (error) {
        session_log(session, ": too little memory to copy its variables");
        return OBSTACLE_VARIABLES;
    }
    ret_parcel->size = saved->size;
    return OBSTACLE_NONE;
}

enum move_obstacle leave_variables_save(struct session *session, struct leave_parcel *ret_parcel)
{
    struct saved_variables saved;
    enum move_obstacle obstacle;

    *ret_parcel = (struct leave_parcel){.fd = -1};
    if (!session_has_variables(session))
        return OBSTACLE_NONE;
    obstacle = saved_variables_read(session, &saved);
    if (!obstacle)
        obstacle = search_memory(session, &saved);
    if (!obstacle && saved.size)
        obstacle = write_file(session, &saved, ret_parcel);
    saved_variables_fini(&saved);
    return obstacle;
}

void leave_parcel_send(struct session *session, const struct leave_parcel *parcel)
{
    const struct socket_message message = {
        .kind = SOCKET_VARIABLES, .id = parcel->device_change, .value = parcel->size};

    if (sock_send(session->socket, &message, sizeof(message), &parcel->fd, parcel->fd >= 0) < 0)
        session_log(session, " gets no file of its variables, and stays");
}
