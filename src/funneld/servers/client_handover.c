/* SPDX-License-Identifier: Apache-2.0 */
/* How a program comes to its server: its limits, and its record there. See server_process.h.
 */
#include <string.h>

#include "client_class.h"
#include "client_record.h"
#include "control_group.h"
#include "fd.h"
#include "funnel_errors.h"
#include "group_memory.h"
#include "journal.h"
#include "lane_name.h"
#include "limits_text.h"
#include "server_process.h"
#include "service.h"
#include "sock.h"
#include "text.h"

#define NO_PARTITION 915 /* CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION */

/* The share of a namespace replaces what the program asks for; it is not only an upper bound. */
static void combine_limits(struct server_process *server, const struct mps_namespace *space,
                           const struct server_identity *identity, const struct hello *hello,
                           struct server_limits *limits)
{
    const struct daemon *daemon = server->daemon;
    struct hello wish = *hello;

    limits_of_server(&server->limits, daemon->defaults.priority, &server->ready, limits);
    if (space) {
        limit_change_apply(&space->change, &server->ready, limits);
        wish.sm_centipercent = space->change.sm_centipercent ? 0 : wish.sm_centipercent;
    }
    limit_rules_apply(&daemon->rules, identity, &server->ready, limits);
    limits_tighten(limits, &wish, &server->ready);
    limits_join_container(limits, hello, identity, &server->ready);
    limits->class = hello->class;
    /* Without a lane of its own it comes after the others. */
    if (limits->class == CLASS_BATCH && !lane_name_is_batch(server->name))
        limits->priority = 1;
}

/* That of the namespace replaces the one that the program names. */
static const struct static_partition *find_partition(struct static_partitions *partitions,
                                                     const struct mps_namespace *space,
                                                     const struct hello *hello)
{
    if (space && *space->partition)
        return static_partitions_named(partitions, space->partition, space->partition_device);
    return *hello->sm_partition ? static_partitions_find(partitions, hello->sm_partition) : NULL;
}

/* Names come from the program, or from the namespace. */
static void log_missing_partition(const struct server_identity *identity,
                                  const struct static_partitions *partitions,
                                  const struct mps_namespace *space, const struct hello *hello)
{
    const char *lister = partitions->version3 ? "sm-partition list" : "lspart";

    if (space && *space->partition)
        journal_with(LOG_EVENT(identity->pid, NO_PARTITION),
                     "Client %d of user %u cannot have a context (915): its namespace has the SM "
                     "partition %s on the "
                     "device %s, which there is not; %s shows them",
                     identity->pid, identity->uid, space->partition, space->partition_device,
                     lister);
    else
        journal_with(
            LOG_EVENT(identity->pid, NO_PARTITION),
            "Client %d of user %u cannot have a context (915): this %s has static partitions, and "
            "CUDA_MPS_SM_PARTITION is \"%.100s\", which names none of them; %s lists them",
            identity->pid, identity->uid, partitions->version3 ? "server" : "daemon",
            hello->sm_partition, lister);
}

static void log_client(const struct server_process *server, const struct server_client *message)
{
    char who[IDENTITY_TEXT_MAX], limits[LIMITS_TEXT_MAX];

    identity_describe(&message->identity, who);
    limits_describe(&message->limits, server->ready.device_count, limits);
    journal_with(LOG_ABOUT(message->identity.pid), "Client %d is of %s", message->identity.pid,
                 who);
    journal_with(LOG_ABOUT(message->identity.pid), "Client %d is handed over to server %d with %s",
                 message->identity.pid, (int)server->pid, limits);
}

/* Takes `fd`. */
static void refuse_client(const struct server_process *server,
                          const struct server_identity *identity, int fd)
{
    struct welcome welcome = {.magic = WELCOME_MAGIC,
                              .status = FUNNEL_ERROR_MPS_MAX_CONNECTIONS_REACHED};

    text_format(
        welcome.text, sizeof(welcome.text),
        "The server %s has been given %u programs and has not said that they have gone; try "
        "again when some have ended",
        server->name, server->handed_over);
    journal_with(LOG_EVENT(identity->pid, welcome.status),
                 "Client %d of user %u refused with status %d: %s", identity->pid, identity->uid,
                 welcome.status, welcome.text);
    sock_send(fd, &welcome, sizeof(welcome), NULL, 0);
    fd_close(&fd);
}

void server_process_add_client(struct server_process *server, const struct mps_namespace *space,
                               const struct server_identity *identity,
                               const struct client_program *program, const struct hello *hello,
                               const char *groups, int fd)
{
    struct static_partitions *partitions = service_partitions(server->daemon, server->service);
    struct client_record *record = client_record_add(server, identity, program);
    struct server_client message;

    if (!record) {
        refuse_client(server, identity, fd);
        return;
    }
    text_copy(record->identity.space, sizeof(record->identity.space),
              space ? space->name : NAMESPACE_DEFAULT);
    client_record_continue(record, hello);
    server_message_init(&message, SERVER_CLIENT, 0);
    message.id = record->id;
    message.is_main_lane = lane_name_is_main(server->name);
    message.identity = record->identity;
    message.hello = *hello;
    combine_limits(server, space, identity, hello, &message.limits);
    if (record->has_limits)
        own_limits_apply(&record->limits, &message.limits);
    if (groups)
        group_memory_tighten(CONTROL_GROUP_ROOT, groups, identity->uid, &server->ready,
                             &message.limits);
    if (!static_partitions_bind(partitions, &server->ready,
                                find_partition(partitions, space, hello), &message.limits))
        log_missing_partition(identity, partitions, space, hello);
    log_client(server, &message);
    client_record_save(record);
    connection_send(&server->connection, &message, sizeof(message), fd);
}
