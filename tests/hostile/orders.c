/* SPDX-License-Identifier: Apache-2.0 */
/* See orders.h. */
#include "orders.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fd.h"
#include "sock.h"
#include "unit.h"

#define WITNESS_PID 1

struct witness orders_witness;

int orders_setup(void **state)
{
    setenv("FUNNEL_SOFT_DEVICES", "2:sms=4,mem=256M", 1);
    if (daemon_setup(state))
        return -1;
    memset(&orders_witness, 0, sizeof(orders_witness));
    daemon_bring_client(*state, &orders_witness.peer, WITNESS_PID, 0, 10000);
    return witness_begin(&orders_witness) && witness_is_well(&orders_witness) ? 0 : -1;
}

int orders_teardown(void **state)
{
    bool well = witness_is_well(&orders_witness);

    witness_stop(&orders_witness);
    daemon_teardown(state);
    return well ? 0 : -1;
}

static uint32_t last_request = 100;
static uint32_t last_gone; /* the number of the client whose end came last */

/* What else the server has to say is of no interest. */
union server_any orders_next_message(const struct daemon *daemon)
{
    union server_any message;
    size_t fds = 0;
    ssize_t size = sock_recv(daemon->control, &message, sizeof(message), NULL, 0, &fds, TIMEOUT_MS);

    assert_true(size > 0);
    assert_true(server_message_valid(&message, (size_t)size));
    if (message.header.kind == SERVER_CLIENT_GONE)
        last_gone = message.client_gone.id;
    return message;
}

int orders_await_result(const struct daemon *daemon, uint32_t request)
{
    union server_any message;

    do
        message = orders_next_message(daemon);
    while (message.header.kind != SERVER_RESULT || message.header.request != request);
    return message.result.status;
}

void orders_await_client_end(const struct daemon *daemon, uint32_t id)
{
    while (last_gone != id)
        orders_next_message(daemon);
}

int orders_empty_file(void)
{
    int fd = memfd_create("swap", MFD_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

/* The end of a socket with two descriptors of a file. */
static int make_envelope(int file)
{
    const int files[2] = {file, file};
    int pair[2];

    assert_int_equal(sock_pair(pair), 0);
    assert_int_equal(sock_send(pair[0], "", 1, files, 2), 0);
    close(pair[0]);
    return pair[1];
}

uint32_t orders_send_suspend(struct daemon *daemon, enum server_suspend kind, int32_t pid)
{
    struct server_suspend_client order;
    _cleanup_fd_ int file = -1;
    _cleanup_fd_ int envelope = -1;

    server_message_init(&order, SERVER_SUSPEND_CLIENT, ++last_request);
    order.pid = pid;
    order.suspend = kind;
    if (kind == SERVER_SUSPEND_SAVE || kind == SERVER_SUSPEND_DETACH) {
        file = orders_empty_file();
        envelope = make_envelope(file);
    }
    daemon_say(daemon, &order, envelope >= 0 ? &envelope : NULL);
    return last_request;
}

int orders_suspend(struct daemon *daemon, enum server_suspend kind, int32_t pid)
{
    return orders_await_result(daemon, orders_send_suspend(daemon, kind, pid));
}

uint32_t orders_send_move(struct daemon *daemon, uint32_t id, bool withdrawn)
{
    struct server_move_client order;

    server_message_init(&order, SERVER_MOVE_CLIENT, ++last_request);
    order.id = id;
    order.withdrawn = withdrawn;
    order.device = 2; /* the second */
    daemon_say(daemon, &order, NULL);
    return last_request;
}

uint32_t orders_send_status(struct daemon *daemon)
{
    struct server_status status;

    server_message_init(&status, SERVER_STATUS, ++last_request);
    daemon_say(daemon, &status, NULL);
    return last_request;
}
