/* SPDX-License-Identifier: Apache-2.0 */
/* See newcomer.h. */
#include "newcomer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aftermath.h"
#include "console.h"
#include "fd.h"
#include "funneld_server.h"
#include "grammar.h"
#include "journal.h"
#include "peer.h"
#include "service.h"
#include "sock.h"
#include "text.h"

#define HELLO_TIMEOUT_S 10
#define STOPPING_TIMEOUT_S 15 /* how long a program waits for a server that ends */
#define CONNECTIONS_A_USER                                                   \
    512 /* with the daemon, not counting those with a server; refused with a \
         * sentence beyond that, and without one beyond twice that */
#define ACCEPTS_A_TURN 64

#define STATUS_CONNECTION_FAILED 805
#define STATUS_SERVER_NOT_READY 807
#define STATUS_MAX_CONNECTIONS 809

struct newcomer {
    struct list link;
    struct daemon *daemon;
    struct peer peer;
    struct event *deadline;
    struct server_identity identity;
    struct hello hello;
    struct mps_namespace *entrance; /* NULL = the daemon's own socket, and no namespace */
    bool waiting;                   /* has said hello, and waits for the server of this ... */
    struct server_route route;
};

static void newcomer_free(struct newcomer *newcomer)
{
    list_remove(&newcomer->link);
    peer_close(&newcomer->peer);
    if (newcomer->deadline)
        event_free(newcomer->deadline);
    free(newcomer);
}

/* ---- turning away ---- */

__attribute__((format(printf, 3, 4))) static void refuse(struct newcomer *newcomer, int status,
                                                         const char *format, ...)
{
    struct welcome welcome = {.magic = WELCOME_MAGIC, .status = status};
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(welcome.text, sizeof(welcome.text), format, arguments);
    va_end(arguments);
    journal("Client %d of user %u refused with status %d: %s", newcomer->identity.pid,
            newcomer->identity.uid, status, welcome.text);
    peer_send(&newcomer->peer, &welcome, sizeof(welcome), -1);
    newcomer_free(newcomer);
}

static void set_deadline(struct newcomer *newcomer, int seconds)
{
    struct timeval patience = {.tv_sec = seconds};

    evtimer_add(newcomer->deadline, &patience);
}

static void on_deadline(evutil_socket_t fd, short what, void *context)
{
    struct newcomer *newcomer = context;

    if (newcomer->waiting)
        refuse(newcomer, STATUS_SERVER_NOT_READY,
               "The server %s is ending and still has clients; try again when they are done",
               newcomer->route.name);
    else
        newcomer_free(newcomer);
}

/* ---- who it is ---- */

static ssize_t read_proc(pid_t pid, const char *name, char *data, size_t capacity)
{
    char path[64];
    _cleanup_fd_ int fd = -1;

    text_format(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : read(fd, data, capacity);
}

/* The command line for people to read: arguments joined by blanks, nothing that moves a cursor. */
static void read_command(pid_t pid, const struct hello *hello, char *command, size_t capacity)
{
    ssize_t length = pid > 0 ? read_proc(pid, "cmdline", command, capacity - 1) : 0;

    if (length <= 0) {
        text_format(command, capacity, "%.*s", (int)sizeof(hello->program), hello->program);
        length = (ssize_t)strlen(command);
    }
    while (length > 0 && command[length - 1] == '\0')
        length--;
    command[length] = '\0';
    for (ssize_t i = 0; i < length; i++)
        if (command[i] == '\0')
            command[i] = ' ';
        else if ((unsigned char)command[i] < ' ' || command[i] == 127)
            command[i] = '?';
}

static uint64_t read_pid_namespace(pid_t pid)
{
    char path[64];
    struct stat status;

    text_format(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
    return pid > 0 && !stat(path, &status) ? status.st_ino : 0;
}

static void identify(struct newcomer *newcomer)
{
    struct server_identity *identity = &newcomer->identity;

    identity->since = time(NULL);
    identity->pid_namespace = read_pid_namespace(identity->pid);
    read_command(identity->pid, &newcomer->hello, identity->command, sizeof(identity->command));
    newcomer->hello.group[sizeof(newcomer->hello.group) - 1] = '\0';
    newcomer->hello.sm_partition[sizeof(newcomer->hello.sm_partition) - 1] = '\0';
    if (grammar_is_name(newcomer->hello.group))
        text_copy(identity->group, sizeof(identity->group), newcomer->hello.group);
}

/* ---- programs ---- */

static void introduce(struct newcomer *newcomer, struct server *server)
{
    int fd = peer_release(&newcomer->peer);

    server_introduce(server, newcomer->entrance, &newcomer->identity, &newcomer->hello, fd);
    newcomer_free(newcomer);
}

static void wait_for(struct newcomer *newcomer, const struct server *server)
{
    journal("NEW CLIENT %d from user %u: Server is not ready, push client to pending list",
            newcomer->identity.pid, newcomer->identity.uid);
    newcomer->waiting = true;
    if (server->stopping)
        set_deadline(newcomer, STOPPING_TIMEOUT_S);
    else
        evtimer_del(newcomer->deadline);
}

static void place(struct newcomer *newcomer)
{
    struct server *server = server_for(newcomer->daemon, newcomer->route.name);

    if (newcomer->hello.window_base)
        aftermath_moved(newcomer->daemon, newcomer->identity.pid);
    else if (aftermath_goes_on(newcomer->daemon, newcomer->route.name)) {
        refuse(newcomer, STATUS_SERVER_NOT_READY,
               "There was a fatal GPU error, and programs that it hit have not ended yet; try "
               "again when they have, or in some seconds");
        return;
    }
    int error = server ? 0 : server_start(newcomer->daemon, &newcomer->route, &server);

    if (error)
        refuse(newcomer, STATUS_CONNECTION_FAILED, "The server could not be started: %s",
               strerror(-error));
    else if (server->stopping || server->state != SERVER_ACTIVE)
        wait_for(newcomer, server);
    else if (server_has_died(server) || server_kill_abandoned(server))
        wait_for(newcomer, server);
    else {
        journal("NEW CLIENT %d from user %u: Server already exists", newcomer->identity.pid,
                newcomer->identity.uid);
        introduce(newcomer, server);
    }
}

static void find_route(struct newcomer *newcomer)
{
    const struct daemon *daemon = newcomer->daemon;
    const struct server_identity *identity = &newcomer->identity;

    if (newcomer->entrance)
        newcomer->route = service_route(newcomer->entrance->service);
    else
        newcomer->route =
            service_route_of_user(daemon, daemon->multiuser ? daemon->uid : identity->uid,
                                  identity->gid, &newcomer->entrance);
}

static void admit_program(struct newcomer *newcomer)
{
    const struct daemon *daemon = newcomer->daemon;
    const struct service *service = newcomer->entrance ? newcomer->entrance->service : NULL;
    uid_t uid = newcomer->identity.uid;

    identify(newcomer);
    if (daemon->quitting)
        refuse(newcomer, STATUS_CONNECTION_FAILED, "The daemon is quitting");
    else if (daemon->uid != 0 && uid != daemon->uid)
        refuse(
            newcomer, STATUS_SERVER_NOT_READY,
            "The daemon at %.200s serves user %u only, not user %u; start one of your own (funnel "
            "start) or have root run one for everybody",
            daemon->paths.pipe, (unsigned)daemon->uid, (unsigned)uid);
    else if (service && !service_serves(service, uid))
        refuse(newcomer, STATUS_SERVER_NOT_READY, "The server %s serves user %u only, not user %u",
               service->name, (unsigned)service->uid, (unsigned)uid);
    else {
        if (newcomer->hello.window_base)
            journal("Client %d of user %u has lost its server, and moves to the next",
                    newcomer->identity.pid, uid);
        find_route(newcomer);
        place(newcomer);
    }
}

/* ---- front ends ---- */

static void admit_front_end(struct newcomer *newcomer)
{
    struct welcome welcome = {.magic = WELCOME_MAGIC};
    struct daemon *daemon = newcomer->daemon;
    uid_t uid = newcomer->identity.uid;

    if (daemon->uid != 0 && uid != 0 && uid != daemon->uid) {
        refuse(newcomer, STATUS_CONNECTION_FAILED,
               "The daemon at %.200s takes commands from user %u and root only", daemon->paths.pipe,
               (unsigned)daemon->uid);
        return;
    }
    if (!peer_send(&newcomer->peer, &welcome, sizeof(welcome), -1))
        console_create(daemon, peer_release(&newcomer->peer), newcomer->identity.pid, uid);
    newcomer_free(newcomer);
}

/* ---- hello ---- */

static bool more_than(const struct daemon *daemon, uid_t uid, unsigned limit)
{
    unsigned count = console_count(daemon, uid);

    list_for_each(struct newcomer, newcomer, &daemon->newcomers, link) count +=
        newcomer->identity.uid == uid;
    return uid != daemon->uid && count > limit;
}

static bool hello_is_sound(const struct hello *hello, size_t size)
{
    return size == sizeof(*hello) && hello->magic == HELLO_MAGIC &&
           hello->version == HELLO_VERSION &&
           (hello->kind == HELLO_CLIENT || hello->kind == HELLO_COMMAND);
}

static void hear(void *owner, const void *data, size_t size)
{
    struct newcomer *newcomer = owner;

    if (newcomer->waiting) {
        journal("Client %d speaks before it is welcome", newcomer->identity.pid);
        newcomer_free(newcomer);
    } else if (!hello_is_sound(data, size)) {
        refuse(newcomer, STATUS_CONNECTION_FAILED,
               "This is funneld %s, and it does not understand the client's hello; use a client "
               "library and a daemon of the same release",
               FUNNEL_VERSION);
    } else if (more_than(newcomer->daemon, newcomer->identity.uid, CONNECTIONS_A_USER)) {
        refuse(newcomer, STATUS_MAX_CONNECTIONS,
               "User %u has more than %d connections waiting at the daemon", newcomer->identity.uid,
               CONNECTIONS_A_USER);
    } else {
        newcomer->hello = *(const struct hello *)data;
        if (newcomer->hello.kind == HELLO_CLIENT)
            admit_program(newcomer);
        else
            admit_front_end(newcomer);
    }
}

static void on_message(void *owner, const void *data, size_t size)
{
    uid_t before = journal_account(((struct newcomer *)owner)->identity.uid);

    hear(owner, data, size);
    journal_account(before);
}

static void on_closed(void *owner)
{
    newcomer_free(owner);
}

static const struct peer_handlers newcomer_handlers = {on_message, on_closed};

/* ---- accepting ---- */

/* Takes `fd`. */
static void take_in(struct daemon *daemon, int fd, struct mps_namespace *entrance)
{
    struct newcomer *newcomer = calloc(1, sizeof(*newcomer));
    pid_t pid = 0;
    uid_t uid = 0;
    gid_t gid = 0;

    if (!newcomer || sock_peer(fd, &pid, &uid, &gid)) {
        fd_close(&fd);
        free(newcomer);
        return;
    }
    newcomer->daemon = daemon;
    newcomer->entrance = entrance;
    newcomer->identity.pid = pid;
    newcomer->identity.uid = uid;
    newcomer->identity.gid = gid;
    newcomer->deadline = evtimer_new(daemon->base, on_deadline, newcomer);
    list_append(&daemon->newcomers, &newcomer->link);
    if (peer_open(&newcomer->peer, daemon->base, fd, &newcomer_handlers, newcomer) ||
        !newcomer->deadline || more_than(daemon, uid, 2 * CONNECTIONS_A_USER))
        newcomer_free(newcomer);
    else
        set_deadline(newcomer, HELLO_TIMEOUT_S);
}

/* Out of descriptors: the callers wait in the kernel's queue until some are free again. */
static void pause_accepting(struct daemon *daemon, int error)
{
    struct timeval pause = {.tv_usec = 100000};

    journal("Cannot accept connections: %s", strerror(-error));
    daemon_listen(daemon, false);
    evtimer_add(daemon->accept_pause, &pause);
}

void newcomer_accept(struct daemon *daemon, int listen_fd, struct mps_namespace *entrance)
{
    for (int i = 0; i < ACCEPTS_A_TURN; i++) {
        int fd = -1;
        int error = sock_accept(listen_fd, &fd);

        if (error == -EMFILE || error == -ENFILE || error == -ENOMEM)
            pause_accepting(daemon, error);
        if (error)
            return;
        take_in(daemon, fd, entrance);
    }
}

/* ---- news of servers ---- */

void newcomer_server_ready(struct server *server)
{
    list_for_each_safe(struct newcomer, newcomer, &server->daemon->newcomers,
                       link) if (newcomer->waiting && !strcmp(newcomer->route.name, server->name))
        introduce(newcomer, server);
}

void newcomer_refuse_waiting(struct daemon *daemon, const char *name, int status, const char *text)
{
    list_for_each_safe(struct newcomer, newcomer, &daemon->newcomers,
                       link) if (newcomer->waiting && !strcmp(newcomer->route.name, name))
        refuse(newcomer, status, "%s", text);
}

void newcomer_server_gone(struct daemon *daemon, const char *name)
{
    list_for_each_safe(struct newcomer, newcomer, &daemon->newcomers, link)
    {
        if (!newcomer->waiting || strcmp(newcomer->route.name, name))
            continue;
        if (daemon->quitting)
            refuse(newcomer, STATUS_CONNECTION_FAILED, "The daemon is quitting");
        else
            place(newcomer);
    }
}

void newcomer_close_entrance(struct daemon *daemon, const struct mps_namespace *entrance)
{
    list_for_each_safe(struct newcomer, newcomer, &daemon->newcomers, link)
    {
        if (newcomer->entrance != entrance)
            continue;
        if (newcomer->waiting)
            refuse(newcomer, STATUS_CONNECTION_FAILED, "Its server has been deleted");
        else
            newcomer_free(newcomer);
    }
}

unsigned newcomer_count_waiting(const struct daemon *daemon)
{
    unsigned count = 0;

    list_for_each(struct newcomer, newcomer, &daemon->newcomers, link) count += newcomer->waiting;
    return count;
}

void newcomer_close_all(struct daemon *daemon)
{
    list_for_each_safe(struct newcomer, newcomer, &daemon->newcomers, link) newcomer_free(newcomer);
}
