/* SPDX-License-Identifier: Apache-2.0 */
/* See lane_move.h. */
#include "lane_move.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client_class.h"
#include "client_record.h"
#include "clock.h"
#include "funnel_errors.h"
#include "journal.h"
#include "lane_name.h"
#include "move_obstacle.h"
#include "pending_request.h"
#include "server_process.h"
#include "server_start.h"
#include "text.h"

/* A program that calls nothing has no idle point. */
#define ANSWER_TIMEOUT_S (7 * 24 * 3600)

#define STATUS_GONE 201 /* CUDA_ERROR_INVALID_CONTEXT */

/* A program whose work was not done in time is asked again after this time, and so often in all. */
#define GENTLE_PAUSE_NS (30 * NS_PER_SEC)
#define GENTLE_TRIES 4u

struct lane_move {
    struct list link;
    struct daemon *daemon;
    char from[SERVER_NAME_MAX], to[SERVER_NAME_MAX]; /* names of servers */
    uint32_t id;
    pid_t pid;
    uint8_t token[HELLO_TOKEN_SIZE];
    struct lane_choice before;
    bool asked;     /* the server has been */
    bool restarted; /* the other lane, which was ending */
    bool is_gentle;
    bool is_awaited; /* the program has asked for the order, and waits for it */
    enum lane_wish wish;
    uint32_t device;   /* 1 + that of the server, which stays; 0 = to another lane */
    unsigned tries;    /* of a gentle one, that have failed */
    uint64_t ask_at;   /* clock_ns(): not before */
    bool is_withdrawn; /* the program may be on its way all the same */
    lane_move_done *done;
    void *context;
};

const char *lane_move_text(int result)
{
    switch (result) {
    case LANE_MOVE_GONE:
        return "it has ended";
    case LANE_MOVE_NO_LANE:
        return "the other lane cannot be started; control.log says why";
    case LANE_MOVE_WITHDRAWN:
        return "another order came";
    case LANE_MOVE_UNKNOWN:
        return "it has no random numbers by which a server would know it again";
    case LANE_MOVE_SILENT:
        return "its server does not answer";
    }
    return move_obstacle_text((uint32_t)result);
}

/* ---- lanes ---- */

static bool is_batch_wanted(uint32_t class, enum lane_wish wish)
{
    return lane_wish_is_batch(wish) || class == CLASS_BATCH;
}

bool lane_move_choose(struct client_record *record, uint32_t class, enum lane_wish wish)
{
    if (!lane_choice_set(&record->server->daemon->lane_choices, record->token, class, wish))
        return false;
    client_record_save(record);
    return true;
}

bool lane_move_is_there(const struct client_record *record, uint32_t class, enum lane_wish wish)
{
    return lane_name_is_batch(record->server->name) == is_batch_wanted(class, wish);
}

/* ---- the end of a move ---- */

/* NULL when the program has gone. */
static struct client_record *find_record(const struct lane_move *move)
{
    struct server_process *from = server_process_find(move->daemon, move->from);

    return from ? client_record_find(from, move->id) : NULL;
}

static void free_move(struct lane_move *move)
{
    list_remove(&move->link);
    free(move);
}

static void restore_choice(const struct lane_move *move)
{
    lane_choice_set(&move->daemon->lane_choices, move->token, move->before.class,
                    (enum lane_wish)move->before.wish);
}

static void log_device(const struct lane_move *move, int result)
{
    if (result == LANE_MOVED)
        journal_with(LOG_EVENT(move->pid, 0), "Client %d has moved to device %u", (int)move->pid,
                     move->device - 1);
    else
        journal_with(LOG_EVENT(move->pid, 0), "Client %d does not move to device %u: %s",
                     (int)move->pid, move->device - 1, lane_move_text(result));
}

static void log_result(const struct lane_move *move, int result)
{
    if (move->device)
        log_device(move, result);
    else if (result == LANE_MOVED)
        journal_with(LOG_EVENT(move->pid, 0), "Client %d has moved to the server %s",
                     (int)move->pid, move->to);
    else
        journal_with(LOG_EVENT(move->pid, 0),
                     "Client %d stays in the server %s, and does not move to %s: %s",
                     (int)move->pid, move->from, move->to, lane_move_text(result));
}

/* A program whose server has died comes back in the lane that it was to move to. From the spare
 * lane it goes where it came from. */
static bool keeps_choice(const struct lane_move *move, int result)
{
    return move->wish != LANE_SPARE && (result == LANE_MOVED || result == LANE_MOVE_GONE);
}

/* A program that asked for the order waits for the answer. */
static void refuse_client(const struct lane_move *move)
{
    const struct client_record *record = find_record(move);

    if (record)
        lane_move_refuse(record);
}

static void tell_result(lane_move_done *done, void *context, int result)
{
    if (done)
        done(context, result);
}

static void free_and_tell(struct lane_move *move, int result)
{
    lane_move_done *done = move->done;
    void *context = move->context;

    free_move(move);
    tell_result(done, context, result);
}

static void end_move(struct lane_move *move, int result)
{
    log_result(move, result);
    if (move->is_awaited && !move->asked)
        refuse_client(move);
    if (!keeps_choice(move, result))
        restore_choice(move);
    free_and_tell(move, result);
}

static int result_of(int status)
{
    if (status == -ETIMEDOUT)
        return LANE_MOVE_SILENT;
    return status < 0 || status == STATUS_GONE ? LANE_MOVE_GONE : status;
}

/* The server reports next that the client has gone. */
static void note_moved(const struct lane_move *move)
{
    struct client_record *record = find_record(move);

    if (record)
        record->has_moved = true;
}

/* Its work was not done in time, and it is asked again. One that has asked for the order itself
 * would have no reason for it by then. */
static bool postpone(struct lane_move *move, int status)
{
    if (!move->is_gentle || move->is_awaited || status != OBSTACLE_WORK ||
        ++move->tries == GENTLE_TRIES)
        return false;
    move->asked = false;
    move->ask_at = clock_ns() + GENTLE_PAUSE_NS;
    return true;
}

/* The caller that has withdrawn it hears what has become of it. */
static void end_withdrawn(struct lane_move *move, int result)
{
    if (result == LANE_MOVED)
        log_result(move, result);
    free_and_tell(move, result);
}

static void on_answer(void *context, int status, const struct server_status_end *totals)
{
    struct lane_move *move = context;

    if (status == LANE_MOVED)
        note_moved(move);
    if (move->is_withdrawn)
        end_withdrawn(move, status == LANE_MOVED ? LANE_MOVED : LANE_MOVE_WITHDRAWN);
    else if (postpone(move, status))
        return;
    else
        end_move(move, result_of(status));
}

/* ---- its beginning ---- */

static void ask_server(struct lane_move *move, struct server_process *server)
{
    struct server_move_client message = {.id = move->id,
                                         .gentle = move->is_gentle,
                                         .cheap = move->is_gentle && move->wish != LANE_OF_CLASS,
                                         .device = move->device};
    const struct response_handler handler = {NULL, on_answer, move};

    move->asked = true;
    pending_request_send(server, &message, SERVER_MOVE_CLIENT, ANSWER_TIMEOUT_S, &handler);
}

static bool is_ready(const struct server_process *server)
{
    return server->state == SERVER_ACTIVE && !server->stopping;
}

/* The lane of that name, for a program of the server: 0 or -errno. */
static int start_lane(const struct server_process *server, const char *name, pid_t pid)
{
    struct server_route route = {.uid = server->uid, .gid = server->gid, .owner = server->owner};
    struct server_process *started;

    if (server_process_find(server->daemon, name))
        return 0;
    text_copy(route.name, sizeof(route.name), name);
    text_copy(route.devices, sizeof(route.devices), server->devices);
    int error = server_process_start(server->daemon, &route, &started);

    if (error)
        journal("The server %s cannot be started, to which client %d is to move: %s", name,
                (int)pid, server_process_start_error(error));
    return error;
}

static int start_target(const struct lane_move *move, const struct server_process *server)
{
    return start_lane(server, move->to, move->pid);
}

/* A lane without programs may have been ending when the order came. */
static bool restart_target(struct lane_move *move, const struct server_process *server)
{
    if (move->restarted)
        return false;
    move->restarted = true;
    return start_target(move, server) == 0;
}

static void follow_move(struct lane_move *move)
{
    struct server_process *from = server_process_find(move->daemon, move->from);
    const struct server_process *to = server_process_find(move->daemon, move->to);

    if (move->asked || clock_ns() < move->ask_at)
        return;
    if (!from || !client_record_find(from, move->id)) {
        end_move(move, LANE_MOVE_GONE);
        return;
    }
    if (!to && restart_target(move, from))
        to = server_process_find(move->daemon, move->to);
    if (!to)
        end_move(move, LANE_MOVE_NO_LANE);
    else if (is_ready(to))
        ask_server(move, from);
}

void lane_moves_follow(struct daemon *daemon)
{
    list_for_each_safe (struct lane_move, move, &daemon->lane_moves, link)
        follow_move(move);
}

void lane_move_refuse(const struct client_record *record)
{
    struct server_move_client message;

    server_message_init(&message, SERVER_MOVE_CLIENT, 0);
    message.id = record->id;
    message.withdrawn = 1;
    connection_send(&record->server->connection, &message, sizeof(message), -1);
}

static struct lane_move *find_move(const struct client_record *record)
{
    list_for_each (struct lane_move, move, &record->server->daemon->lane_moves, link)
        if (!move->is_withdrawn && move->id == record->id &&
            !strcmp(move->from, record->server->name))
            return move;
    return NULL;
}

void lane_move_take_back(const struct client_record *record, lane_move_done *done, void *context)
{
    struct lane_move *move = find_move(record);

    if (!move) {
        tell_result(done, context, LANE_MOVE_WITHDRAWN);
        return;
    }
    lane_move_done *done_before = move->done;
    void *context_before = move->context;
    move->is_withdrawn = true;
    move->done = done;
    move->context = context;
    restore_choice(move);
    if (move->asked || move->is_awaited)
        lane_move_refuse(record);
    tell_result(done_before, context_before, LANE_MOVE_WITHDRAWN);
    if (!move->asked)
        end_withdrawn(move, LANE_MOVE_WITHDRAWN);
}

void lane_move_withdraw(const struct client_record *record)
{
    lane_move_take_back(record, NULL, NULL);
}

static void name_target(const struct server_process *server, uint32_t class, enum lane_wish wish,
                        char ret_name[SERVER_NAME_MAX])
{
    if (wish == LANE_SPARE)
        lane_name(server->service, false, LANE_DOMAIN_SPARE, ret_name);
    else
        lane_name_other_class(server->name, is_batch_wanted(class, wish), ret_name);
}

/* In place of the move that the program has. NULL when there is no memory, and `done` knows. */
static struct lane_move *add_move(struct client_record *record, lane_move_done *done, void *context)
{
    const struct server_process *server = record->server;
    struct lane_move *move;

    lane_move_withdraw(record);
    move = calloc(1, sizeof(*move));
    if (!move) {
        tell_result(done, context, LANE_MOVE_NO_LANE);
        return NULL;
    }
    move->daemon = server->daemon;
    move->done = done;
    move->context = context;
    move->id = record->id;
    move->pid = record->identity.pid;
    memcpy(move->token, record->token, sizeof(move->token));
    text_copy(move->from, sizeof(move->from), server->name);
    move->before = client_record_choice(record);
    list_append(&server->daemon->lane_moves, &move->link);
    return move;
}

enum move_manner {
    MOVE_ORDERED, /* by an operator */
    MOVE_GENTLE,
    MOVE_AWAITED, /* gentle, and the program waits for the order */
};

static void begin_move(struct client_record *record, uint32_t class, enum lane_wish wish,
                       enum move_manner manner, lane_move_done *done, void *context)
{
    struct server_process *server = record->server;
    struct lane_move *move = add_move(record, done, context);

    if (!move)
        return;
    name_target(server, class, wish, move->to);
    move->is_gentle = manner != MOVE_ORDERED;
    move->is_awaited = manner == MOVE_AWAITED;
    move->wish = wish;
    if (!lane_move_choose(record, class, wish))
        end_move(move, LANE_MOVE_UNKNOWN);
    else if (start_target(move, server))
        end_move(move, LANE_MOVE_NO_LANE);
    else
        follow_move(move);
}

void lane_move_order(struct client_record *record, uint32_t class, enum lane_wish wish,
                     lane_move_done *done, void *context)
{
    begin_move(record, class, wish, MOVE_ORDERED, done, context);
}

void lane_move_order_gently(struct client_record *record, enum lane_wish wish, lane_move_done *done,
                            void *context)
{
    begin_move(record, client_record_choice(record).class, wish, MOVE_GENTLE, done, context);
}

void lane_move_answer(struct client_record *record, enum lane_wish wish)
{
    begin_move(record, client_record_choice(record).class, wish, MOVE_AWAITED, NULL, NULL);
}

bool lane_move_leads_to(const struct client_record *record, enum lane_wish wish, const char *name)
{
    uint32_t class = client_record_choice(record).class;
    char target[SERVER_NAME_MAX];

    name_target(record->server, class ? class : record->class, wish, target);
    return !strcmp(target, name);
}

void lane_move_prepare(const struct client_record *record, enum lane_wish wish)
{
    char name[SERVER_NAME_MAX];

    name_target(record->server, record->class, wish, name);
    start_lane(record->server, name, record->identity.pid);
}

void lane_move_order_device(struct client_record *record, uint32_t device, lane_move_done *done,
                            void *context)
{
    struct lane_move *move = add_move(record, done, context);

    if (!move)
        return;
    text_copy(move->to, sizeof(move->to), move->from);
    move->device = device + 1;
    if (lane_move_choose(record, move->before.class, (enum lane_wish)move->before.wish))
        follow_move(move);
    else
        end_move(move, LANE_MOVE_UNKNOWN);
}

bool lane_move_is_under_way(const struct client_record *record)
{
    return find_move(record) != NULL;
}

bool lane_move_comes_next(const struct client_record *record)
{
    const struct lane_move *move = find_move(record);

    return move && (move->asked || move->is_awaited);
}

bool lane_move_is_awaited(const struct server_process *server)
{
    list_for_each (struct lane_move, move, &server->daemon->lane_moves, link)
        if (!move->is_withdrawn && !strcmp(move->to, server->name))
            return true;
    return false;
}
