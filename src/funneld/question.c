/* SPDX-License-Identifier: Apache-2.0 */
/* See question.h. */
#include "question.h"

#include <errno.h>
#include <stdlib.h>

#include "funneld_server.h"

struct question {
    struct list link;
    uint32_t number;
    struct event *deadline;
    struct answer answer;
};

static void end_question(struct question *question, int status,
                         const struct server_status_end *totals)
{
    struct answer answer = question->answer;

    list_remove(&question->link);
    if (question->deadline)
        event_free(question->deadline);
    free(question);
    answer.end(answer.context, status, totals);
}

static void on_silence(evutil_socket_t fd, short what, void *context)
{
    end_question(context, -ETIMEDOUT, NULL);
}

static struct question *find_question(struct server *server, uint32_t number)
{
    list_for_each(struct question, question, &server->questions, link)
    {
        if (question->number == number)
            return question;
    }
    return NULL;
}

static struct question *add_question(struct server *server, int timeout_s,
                                     const struct answer *answer)
{
    struct question *question = calloc(1, sizeof(*question));
    struct timeval patience = {.tv_sec = timeout_s};

    if (!question)
        return NULL;
    question->answer = *answer;
    question->number = ++server->last_question;
    question->deadline = evtimer_new(server->daemon->base, on_silence, question);
    if (question->deadline)
        evtimer_add(question->deadline, &patience);
    list_append(&server->questions, &question->link);
    return question;
}

void server_ask(struct server *server, void *message, enum server_message kind, int timeout_s,
                const struct answer *answer)
{
    struct question *question = add_question(server, timeout_s, answer);
    struct server_header *header = message;

    if (!question) {
        answer->end(answer->context, -ENOMEM, NULL);
        return;
    }
    *header = (struct server_header){.magic = SERVER_PROTOCOL_MAGIC,
                                     .version = SERVER_PROTOCOL_VERSION,
                                     .kind = (uint16_t)kind,
                                     .size = (uint32_t)server_message_size(kind),
                                     .request = question->number};
    if (peer_send(&server->peer, message, header->size, -1))
        end_question(question, -EPIPE, NULL);
}

void questions_end(struct server *server)
{
    list_for_each_safe(struct question, question, &server->questions, link)
        end_question(question, -EPIPE, NULL);
}

void question_row(struct server *server, const struct server_status_row *message)
{
    struct question *question = find_question(server, message->header.request);
    struct server_status_row row = *message;

    row.identity.command[sizeof(row.identity.command) - 1] = '\0';
    row.identity.space[sizeof(row.identity.space) - 1] = '\0';
    if (question && question->answer.row)
        question->answer.row(question->answer.context, &row);
}

void question_answered(struct server *server, uint32_t number, int status,
                       const struct server_status_end *totals)
{
    struct question *question = find_question(server, number);

    if (question)
        end_question(question, status, totals);
}
