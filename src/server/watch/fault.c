/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the client that may have caused a fault, informs all clients, and ends the server. */
#include "fault.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "assert_message.h"
#include "channel_server.h"
#include "cleanup.h"
#include "daemon_report.h"
#include "device_printf.h"
#include "driver_output.h"
#include "fence.h"
#include "launch_record.h"
#include "log.h"
#include "server_life.h"
#include "server_protocol.h"
#include "session_life.h"
#include "sock.h"
#include "text.h"

/* funneld knows this status: the server ended itself after a fault. */
#define FAULT_EXIT_STATUS 3

/* Timeout for the daemon's message that the next server is ready, which has this time to start. */
#define NEXT_SERVER_MS 120000
#define NEXT_SERVER_POLL_MS 5

static bool has_work(const struct session *session)
{
    return session->phase == SESSION_SERVING && launch_count(session) && fence_any_pending(session);
}

struct suspects {
    struct session *first;
    unsigned count;
};

/* The clients that had work. With `message`, only those whose last kernel it may name. */
static struct suspects find_suspects_locked(struct server *server, const char *message)
{
    struct suspects suspects = {0};
    char kernel[128];

    list_for_each (struct session, session, &server->sessions, link) {
        launch_last_kernel(session, kernel, sizeof(kernel));
        if (!has_work(session) || (message && !assert_message_names(message, kernel)))
            continue;
        if (!suspects.first)
            suspects.first = session;
        suspects.count++;
    }
    return suspects;
}

/* ---- messages of failed assertions ---- */

/* Longer messages are truncated. */
#define ASSERT_MESSAGE_MAX (64u << 10)

/* A driver writes the message of a failed assertion to standard error when it reports the fault. */
static const char *read_assert_message(CUresult result)
{
    static char message[ASSERT_MESSAGE_MAX + 1];

    if (result == CUDA_ERROR_ASSERT)
        driver.cuCtxSynchronize();
    message[driver_output_take_errors(message, ASSERT_MESSAGE_MAX)] = '\0';
    if (*message)
        log_line("Driver: %.1024s", message);
    return message;
}

/* The message of an assertion identifies the offender better than the list of busy clients. Only
 * the offender gets the message. */
static struct suspects find_offender_locked(struct server *server, CUresult result)
{
    const char *message = read_assert_message(result);
    struct suspects suspects = find_suspects_locked(server, NULL);

    if (*message && suspects.count > 1) {
        struct suspects named = find_suspects_locked(server, message);
        suspects = named.count == 1 ? named : suspects;
    }
    if (suspects.count == 1)
        channel_server_put_output(suspects.first->channel, OUTPUT_STDERR, message, strlen(message));
    return suspects;
}

/* ---- reporting ---- */

static void describe_fault(CUresult result, const struct suspects *suspects,
                           struct server_fault *ret_fault)
{
    struct session *first = suspects->first;
    char kernel[128];

    server_message_init(ret_fault, SERVER_FAULT, 0);
    ret_fault->status = (int32_t)result;
    if (suspects->count == 1) {
        ret_fault->id = first->id;
        launch_last_kernel(first, kernel, sizeof(kernel));
        text_format(ret_fault->text, sizeof(ret_fault->text), "%s in kernel %s of " CLIENT_FORMAT,
                    driver_error_name(result), kernel, CLIENT_ARGS(first));
    } else {
        text_format(ret_fault->text, sizeof(ret_fault->text),
                    "%s; %u clients had work on the GPU, it is not known which did it",
                    driver_error_name(result), suspects->count);
    }
}

/* Each line names the fault, because `funnel why` reads the lines of one client. */
static void fail_clients_locked(struct server *server, CUresult result, const char *fault)
{
    log_line("Fatal GPU error: %s. The following clients have a sticky error set:", fault);
    list_for_each (struct session, session, &server->sessions, link) {
        char kernel[128];
        launch_last_kernel(session, kernel, sizeof(kernel));
        log_with(LOG_EVENT(session->identity.pid, (int)result),
                 "  " CLIENT_FORMAT " last kernel %s; the fault: %s", CLIENT_ARGS(session), kernel,
                 fault);
        session_fail_locked(session, result);
    }
}

static void report_to_daemon(const struct server *server, const struct server_fault *fault)
{
    if (server->life->control_fd >= 0)
        sock_send(server->life->control_fd, fault, sizeof(*fault), NULL, 0);
}

/* The driver's shutdown takes time, and clients wait for the end of this server before they move.
 * The context is lost, so nothing can reach them; the server closes their sockets first. */
static void hang_up_locked(const struct server *server)
{
    list_for_each (struct session, session, &server->sessions, link)
        shutdown(session->socket, SHUT_RDWR);
}

/* Written by the main thread, read by the thread that raised the fault. */
static atomic_bool departing;

/* In NVIDIA's driver the destruction of a context and the creation of another block each other,
 * half a second each. So a server with clients keeps its context until the next server is ready.
 * Any unread message of the daemon, or its end, stops the wait. */
static void wait_for_next_server(const struct server *server)
{
    struct pollfd daemon = {.fd = server->life->control_fd, .events = POLLIN};

    if (daemon.fd < 0 || server->life->session_count < 2)
        return;
    for (int waited = 0; waited < NEXT_SERVER_MS; waited += NEXT_SERVER_POLL_MS)
        if (poll(&daemon, 1, NEXT_SERVER_POLL_MS) > 0 || atomic_load(&departing))
            return;
}

void fault_depart(void)
{
    atomic_store(&departing, true);
}

static void fault_raise(struct server *server, struct session *reporter, CUresult result)
{
    struct server_fault fault;

    if (atomic_exchange(&server->faulted, true))
        return;
    log_line("Server is handling a fatal GPU error.");
    if (reporter)
        log_with(LOG_EVENT(reporter->identity.pid, (int)result),
                 "%s was reported to " CLIENT_FORMAT, driver_error_name(result),
                 CLIENT_ARGS(reporter));
    pthread_mutex_lock(&server->lock);
    struct suspects suspects = find_offender_locked(server, result);
    device_printf_fault(server);
    describe_fault(result, &suspects, &fault);
    /* First: a program that starts because another one has met the fault must not come here. */
    report_to_daemon(server, &fault);
    fail_clients_locked(server, result, fault.text);
    daemon_report_clients_lost(server, result);
    hang_up_locked(server);
    wait_for_next_server(server);
    /* An orderly shutdown of the driver is not possible. */
    _exit(FAULT_EXIT_STATUS);
}

/* If another thread has raised the fault before, the result does not concern this session's call.
 * Its thread waits for the end of the process. */
void fault_on_fatal(struct server *server, struct session *reporter, CUresult result)
{
    fault_raise(server, reporter, result);
    while (reporter)
        pause();
}
