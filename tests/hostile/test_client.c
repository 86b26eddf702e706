/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers that lie to the client library: in what they offer, in their tables of devices, in their
 * answers, descriptors and shared memory. The library lives in other people's programs, so it must
 * neither crash nor end nor print:
 *
 *     test_hostile_client [ROUNDS [SEED [LIE]]]
 *
 * FUNNEL_TEST_VICTIM is the path of the program beside it, FUNNEL_TEST_CLIENT the library's. A
 * round that fails prints the seed and the number of the lie that it began with.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "fd.h"
#include "liar.h"
#include "sock.h"
#include "unit.h"

#define ROUNDS 40u
#define LIMIT_NS (120 * NS_PER_SEC)

static unsigned rounds = ROUNDS, only = LIE_COUNT;

static char folder[] = "/tmp/funnel-liar-XXXXXX";

static _Noreturn void run_victim(int output)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    setenv("CUDA_MPS_PIPE_DIRECTORY", folder, 1);
    execl(getenv("FUNNEL_TEST_VICTIM"), "victim", getenv("FUNNEL_TEST_CLIENT"), (char *)NULL);
    _exit(127);
}

static int serve_until_end(struct liar *liar, pid_t victim)
{
    uint64_t end = clock_ns() + LIMIT_NS;
    int status = -1;

    while (clock_ns() < end) {
        struct pollfd poll_one = {.fd = liar->listener, .events = POLLIN};

        if (waitpid(victim, &status, WNOHANG) == victim)
            return status;
        if (poll(&poll_one, 1, 1) > 0)
            liar_accept(liar);
        liar_serve(liar);
    }
    kill(victim, SIGKILL);
    waitpid(victim, &status, 0);
    fprintf(stderr, "the victim did not end\n");
    return status;
}

static bool printed_nothing(int output)
{
    char text[4000];
    ssize_t size = pread(output, text, sizeof(text) - 1, 0);

    text[size > 0 ? size : 0] = '\0';
    if (size > 0)
        fprintf(stderr, "the victim printed: %s\n", text);
    return size == 0;
}

static bool one_round(enum lie lie, const char *path)
{
    struct liar liar = {.lie = lie, .listener = -1, .socket = -1};
    int output = memfd_create("output", MFD_CLOEXEC);
    uint64_t begun_with = liar_seed;

    assert_int_equal(sock_listen(path, 0600, &liar.listener), 0);
    pid_t victim = fork();
    if (victim == 0)
        run_victim(output);
    int status = serve_until_end(&liar, victim);
    liar_hang_up(&liar);
    fd_close(&liar.listener);
    bool well = printed_nothing(output) && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!well)
        fprintf(stderr, "lie %d, seed %llu, status %x\n", lie, (unsigned long long)begun_with,
                status);
    close(output);
    assert_true(well);
    return liar.believed;
}

/* In so many rounds: how often the victim has believed the server, which is then asked for more. */
static unsigned lies(enum lie lie, unsigned count)
{
    unsigned believed = 0;
    char path[64];

    if (only != lie)
        skip();
    snprintf(path, sizeof(path), "%s/%s", folder, HELLO_SOCKET_NAME);
    for (unsigned i = 0; i < count; i++)
        believed += one_round(lie, path);
    unlink(path);
    return believed;
}

static void offers_that_lie(void **state)
{
    (void)state;
    lies(LIE_OFFER, rounds);
}

static void devices_that_lie(void **state)
{
    (void)state;
    assert_int_not_equal(lies(LIE_DEVICES, rounds), 0);
}

static void answers_that_lie(void **state)
{
    (void)state;
    assert_int_equal(lies(LIE_ANSWERS, rounds), rounds);
}

static void memory_that_lies(void **state)
{
    (void)state;
    assert_int_not_equal(lies(LIE_MEMORY, rounds), 0);
}

static void descriptors_that_lie(void **state)
{
    (void)state;
    lies(LIE_DESCRIPTORS, rounds);
}

static void sums_that_wrap_around(void **state)
{
    (void)state;
    assert_int_equal(lies(LIE_SUMS, rounds), 0);
}

static void servers_that_end_after_their_offers(void **state)
{
    const unsigned few = (rounds + 7) / 8; /* the victim pauses before it tries again */

    (void)state;
    assert_int_equal(lies(LIE_END, few), few);
}

static int run_lies(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offers_that_lie),
        cmocka_unit_test(devices_that_lie),
        cmocka_unit_test(answers_that_lie),
        cmocka_unit_test(memory_that_lies),
        cmocka_unit_test(descriptors_that_lie),
        cmocka_unit_test(sums_that_wrap_around),
        cmocka_unit_test(servers_that_end_after_their_offers),
    };

    if (!mkdtemp(folder))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    fprintf(stderr, "%llu answers\n", (unsigned long long)liar_answers);
    return failed;
}

/* Each lie has a process of its own, as victims mostly wait. */
static int run_side_by_side(void)
{
    int failed = 0, status;

    for (only = 0; only < LIE_COUNT; only++) {
        pid_t child = fork();
        if (child == 0)
            exit(run_lies());
        failed += child < 0;
    }
    while (wait(&status) > 0)
        failed += status != 0;
    return failed;
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : ROUNDS;
    liar_seed = argc > 2 ? strtoull(argv[2], NULL, 10) : liar_seed;
    only = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : only;
    signal(SIGPIPE, SIG_IGN);
    return only < LIE_COUNT ? run_lies() : run_side_by_side();
}
