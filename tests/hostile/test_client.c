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
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach.h"
#include "channel.h"
#include "channel_server.h"
#include "clock.h"
#include "fd.h"
#include "shm.h"
#include "sock.h"
#include "unit.h"
#include "wire_calls.h"

#define ROUNDS 40u
#define CONNECTIONS 3u            /* of one victim; after these, the server is gone for good */
#define IDLE_NS (150 * NS_PER_MS) /* after which a victim waits for what will not come */
#define LIMIT_NS (120 * NS_PER_SEC)
#define WINDOW WINDOW_FIRST
#define STRIDE (1ull << 36)
#define GRANULE_FIRST (WINDOW + (1ull << 30))

enum lie {
    LIE_OFFER,
    LIE_DEVICES,
    LIE_ANSWERS,
    LIE_MEMORY,
    LIE_DESCRIPTORS,
    LIE_SUMS,
    LIE_END, /* the first servers end after their offers, the last one is honest */
    LIE_COUNT,
};

static uint64_t seed = 20261123;
static uint64_t questions; /* that the liar has answered */
static unsigned rounds = ROUNDS, only = LIE_COUNT;

static uint32_t pick(uint32_t count)
{
    return unit_random(&seed) % count;
}

/* What lies are made of. */
static uint64_t strange(void)
{
    static const uint64_t known[] = {0,
                                     1,
                                     4095,
                                     4096,
                                     1ull << 21,
                                     UINT32_MAX,
                                     1ull << 46,
                                     1ull << 47,
                                     1ull << 63,
                                     UINT64_MAX,
                                     UINT64_MAX - 4095,
                                     WINDOW,
                                     WINDOW + STRIDE};
    uint64_t number = known[pick(sizeof(known) / sizeof(*known))];

    return pick(4) ? number : (uint64_t)unit_random(&seed) << 32 | unit_random(&seed);
}

/* ---- the liar ---- */

struct liar {
    enum lie lie;
    int listener, socket;
    struct channel_server *channel;
    struct attach_offer offer;
    unsigned char *gpu;
    uint64_t next_address;
    uint64_t quiet_since;
    unsigned connections;
    bool believed; /* the victim has attached */
};

static struct attach_offer honest_offer(void)
{
    const uint64_t gpu = WINDOW + STRIDE;

    return (struct attach_offer){.welcome = {.magic = WELCOME_MAGIC},
                                 .window_base = WINDOW,
                                 .device_span = STRIDE,
                                 .device_stride = STRIDE,
                                 .host_span = WINDOW_HOST_SPAN,
                                 .region_size = REGION_SIZE,
                                 .gpu_address = gpu,
                                 .gpu_size = GPU_REGION_SIZE,
                                 .fence_address = gpu + GPU_REGION_FENCE_OFFSET,
                                 .host_wait_address = gpu + GPU_REGION_HOST_WAIT_OFFSET,
                                 .staging_address = gpu + GPU_REGION_STAGING_OFFSET,
                                 .staging_size = GPU_REGION_STAGING_SIZE,
                                 .ring_bytes = REGION_RING_BYTES,
                                 .fence_count = GPU_REGION_FENCES,
                                 .host_wait_count = GPU_REGION_HOST_WAITS,
                                 .device_count = 1,
                                 .driver_version = 13000,
                                 .sm_centipercent = 10000};
}

static void lie_in_offer(struct attach_offer *offer)
{
    uint64_t *wide = &offer->window_base;
    uint32_t *narrow = &offer->ring_bytes;

    for (unsigned i = 1 + pick(3); i > 0; i--) {
        if (pick(3))
            wide[pick(11)] = strange();
        else
            narrow[pick(6)] = (uint32_t)strange();
    }
}

/* Whose sums are beyond 2^64, so that the region comes to lie below the window. */
static void wrap_around(struct attach_offer *offer)
{
    uint64_t down = offer->device_span + (1ull << 30);

    offer->device_span = 0 - (1ull << 40);
    offer->device_stride = 1ull << 20;
    offer->host_span = (1ull << 40) + (64ull << 20);
    offer->gpu_address -= down;
    offer->fence_address -= down;
    offer->host_wait_address -= down;
    offer->staging_address -= down;
}

static struct device_record honest_device(void)
{
    struct device_record record = {.name = "Liar",
                                   .pci_bus_id = "0000:01:00.0",
                                   .total_memory = 1ull << 34,
                                   .shown_memory = 1ull << 34,
                                   .granularity = 2u << 20};

    for (unsigned i = 0; i < DEVICE_ATTRIBUTES_MAX; i++) {
        record.attributes[i] = 64;
        record.attributes_known[i] = 1;
    }
    return record;
}

static void scribble(void *bytes, size_t size, unsigned times)
{
    for (; times > 0; times--)
        ((unsigned char *)bytes)[pick((uint32_t)size)] = (unsigned char)unit_random(&seed);
}

/* A table without an end of any text in it. */
static int make_devices(const struct liar *liar)
{
    struct device_record record = honest_device();
    int fd = -1;

    if (liar->lie == LIE_DEVICES && pick(2)) {
        memset(record.name, 'x', sizeof(record.name));
        memset(record.pci_bus_id, 'x', sizeof(record.pci_bus_id));
    }
    if (liar->lie == LIE_DEVICES)
        scribble(&record, sizeof(record), pick(400));
    if (liar->lie == LIE_DEVICES && pick(2))
        record.granularity = strange();
    assert_int_equal(shm_create_read_only("devices", &record, sizeof(record), &fd), 0);
    return fd;
}

/* Files that cannot be mapped, or whose pages are not there. */
static int strange_file(void)
{
    switch (pick(5)) {
    case 0:
        return open("/dev/null", O_RDWR | O_CLOEXEC);
    case 1:
        return open("/dev/zero", O_RDWR | O_CLOEXEC);
    case 2:
        return memfd_create("empty", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    default:;
        int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
        if (fd < 0 || ftruncate(fd, 64 << 20) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
            return open("/dev/null", O_RDWR | O_CLOEXEC);
        return fd;
    }
}

static void swap_file(const struct liar *liar, int *fd)
{
    if (liar->lie != LIE_DESCRIPTORS || pick(2))
        return;
    close(*fd);
    *fd = strange_file();
}

static void hang_up(struct liar *liar)
{
    if (liar->socket < 0)
        return;
    shm_unmap(liar->gpu, GPU_REGION_SIZE);
    channel_server_destroy(liar->channel);
    fd_close(&liar->socket);
}

static void welcome(struct liar *liar)
{
    int fds[ATTACH_FDS], gpu = -1;
    struct hello hello;
    size_t count = 0;

    sock_recv(liar->socket, &hello, sizeof(hello), NULL, 0, &count, 10000);
    liar->offer = honest_offer();
    liar->next_address = GRANULE_FIRST;
    if (liar->lie == LIE_OFFER)
        lie_in_offer(&liar->offer);
    if (liar->lie == LIE_SUMS)
        wrap_around(&liar->offer);
    assert_int_equal(channel_server_create(&liar->channel), 0);
    assert_int_equal(shm_create("gpu", GPU_REGION_SIZE, &gpu), 0);
    assert_int_equal(shm_map(gpu, GPU_REGION_SIZE, NULL, 0, (void **)&liar->gpu), 0);
    fds[ATTACH_FD_CONTROL] = dup(channel_server_fd(liar->channel));
    fds[ATTACH_FD_GPU] = gpu;
    fds[ATTACH_FD_DEVICES] = make_devices(liar);
    for (unsigned i = 0; i < ATTACH_FDS; i++)
        swap_file(liar, &fds[i]);
    sock_send(liar->socket, &liar->offer, sizeof(liar->offer), fds, ATTACH_FDS);
    for (unsigned i = 0; i < ATTACH_FDS; i++)
        close(fds[i]);
}

static void accept_victim(struct liar *liar)
{
    int socket = -1;

    if (sock_accept(liar->listener, &socket))
        return;
    hang_up(liar);
    liar->socket = socket;
    liar->quiet_since = clock_ns();
    if (++liar->connections > CONNECTIONS)
        fd_close(&liar->socket);
    else
        welcome(liar);
    if (liar->lie == LIE_END && liar->connections < CONNECTIONS)
        hang_up(liar);
}

/* ---- answers ---- */

static void send_file(struct liar *liar, uint32_t kind, uint64_t value, uint64_t size)
{
    const struct socket_message message = {
        .kind = liar->lie == LIE_DESCRIPTORS && !pick(4) ? pick(8) : kind, .value = value};
    int fd = -1;

    if (shm_create("granule", size && size < 1ull << 32 ? size : 4096, &fd))
        return;
    swap_file(liar, &fd);
    sock_send(liar->socket, &message, sizeof(message), &fd, 1);
    close(fd);
}

static uint64_t next_address(struct liar *liar, uint64_t base, uint64_t size)
{
    uint64_t address = base + liar->next_address;

    liar->next_address += size;
    return liar->lie == LIE_ANSWERS && !pick(3) ? strange() : address;
}

static uint32_t answer_granule(struct liar *liar, const struct ring_message *message, void *data)
{
    struct wire_fnGranuleCreate in;

    if (!decode_fnGranuleCreate(message, message->size, &in))
        return 0;
    const struct wire_fnGranuleCreate_reply out = {.address = next_address(liar, 0, in.size)};
    send_file(liar, SOCKET_GRANULE, out.address, 4096);
    return encode_fnGranuleCreate_reply(data, &out);
}

static uint32_t answer_host_granule(struct liar *liar, const struct ring_message *message,
                                    void *data)
{
    struct wire_fnHostGranuleCreate in;

    if (!decode_fnHostGranuleCreate(message, message->size, &in))
        return 0;
    struct wire_fnHostGranuleCreate_reply out = {.populate = pick(2)};
    if (pick(2)) {
        out.address = next_address(liar, STRIDE, in.size);
        send_file(liar, SOCKET_HOST_GRANULE, out.address, in.size);
    }
    return encode_fnHostGranuleCreate_reply(data, &out);
}

static uint32_t answer_host_memory(struct liar *liar, const struct ring_message *message,
                                   void *data)
{
    struct wire_fnHostGranuleBring in;

    if (!decode_fnHostGranuleBring(message, message->size, &in))
        return 0;
    const struct wire_fnHostGranuleBring_reply out = {.address =
                                                          next_address(liar, STRIDE, in.size)};
    return encode_fnHostGranuleBring_reply(data, &out);
}

/* One parameter, and what follows it is as random as the rest. */
static uint32_t answer_kernel(struct liar *liar, void *data)
{
    uint32_t layout[16] = {0, 8};
    struct wire_cuLibraryGetKernel_reply out;

    start_cuLibraryGetKernel_reply(data, &out);
    out.param_count = 1;
    out.params_size = 8;
    for (unsigned i = 0; i < 16; i++)
        out.attributes[i] = 64;
    if (liar->lie == LIE_ANSWERS && pick(2)) {
        scribble(&out.attributes, sizeof(out.attributes), pick(64));
        out.param_count = pick(2) ? pick(10) : (uint32_t)strange();
        out.params_size = pick(2) ? pick(200) : (uint32_t)strange();
        out.next = (uint32_t)strange();
        scribble(layout, sizeof(layout), pick(40));
    }
    memcpy(out.layout, layout, sizeof(layout));
    out.layout_size = liar->lie == LIE_ANSWERS ? pick(sizeof(layout)) : 8;
    return encode_cuLibraryGetKernel_reply(data, &out);
}

static uint32_t answer_reserve(struct liar *liar, void *data)
{
    const struct wire_fnReserve_reply out = {.address = liar->lie == LIE_ANSWERS ? strange()
                                                                                 : RESERVE_FIRST};

    return encode_fnReserve_reply(data, &out);
}

/* Zeros mostly: the smallest answer that some call takes, or anything. */
static uint32_t answer_anything(const struct liar *liar, unsigned char *data)
{
    uint32_t size = liar->lie == LIE_ANSWERS ? pick(200) : 8;

    memset(data, 0, REPLY_DATA_MAX);
    if (liar->lie == LIE_ANSWERS)
        scribble(data, 200, pick(100));
    for (uint32_t i = 0; liar->lie == LIE_ANSWERS && i < 3; i++) {
        uint64_t number = strange();
        memcpy(data + 8 * pick(16), &number, sizeof(number));
    }
    return liar->lie == LIE_ANSWERS && !pick(8) ? REPLY_DATA_MAX : size;
}

static uint32_t fill(struct liar *liar, const struct ring_message *message, unsigned char *data)
{
    switch (channel_kind_op(message->kind)) {
    case WIRE_fnGranuleCreate:
        return answer_granule(liar, message, data);
    case WIRE_fnHostGranuleCreate:
        return answer_host_granule(liar, message, data);
    case WIRE_fnHostGranuleBring:
        return answer_host_memory(liar, message, data);
    case WIRE_cuLibraryGetKernel:
        return answer_kernel(liar, data);
    case WIRE_fnReserve:
        return answer_reserve(liar, data);
    default:
        return answer_anything(liar, data);
    }
}

static void answer(struct liar *liar, const struct ring_message *message)
{
    static unsigned char data[REPLY_DATA_MAX];
    int slot = channel_kind_slot(message->kind);
    CUresult status = liar->lie == LIE_ANSWERS && !pick(6) ? (CUresult)strange() : CUDA_SUCCESS;

    if (slot == CHANNEL_NO_SLOT)
        return;
    questions++;
    uint32_t size = fill(liar, message, data);
    channel_server_reply(liar->channel, slot, status, data, size);
}

/* Fences are reached at once, or anyhow. The output areas are left alone, for these are printed. */
static void touch_memory(struct liar *liar)
{
    struct region *region = liar->channel->region;
    uint32_t *fences = (uint32_t *)liar->gpu;

    for (unsigned i = 0; i < GPU_REGION_FENCES; i++)
        fences[i] += 1;
    if (liar->lie != LIE_MEMORY)
        return;
    fences[pick(GPU_REGION_FENCES)] = (uint32_t)strange();
    scribble(region->slots, sizeof(region->slots), 200);
    if (!pick(20))
        scribble(&region->ring, sizeof(region->ring), pick(8));
    if (!pick(50))
        scribble(&region->sticky_error, 8, 1);
    scribble(&region->copiers, 12, 3);
}

static void drain_socket(struct liar *liar)
{
    union {
        struct socket_message blob;
        struct attach_reply reply;
    } message = {0};
    int fds[4];
    size_t count = 0;

    while (sock_recv(liar->socket, &message, sizeof(message), fds, 4, &count, 0) > 0) {
        liar->believed |=
            message.reply.magic == ATTACH_REPLY_MAGIC && message.reply.verdict == ATTACH_OK;
        while (count > 0)
            close(fds[--count]);
    }
}

static void serve(struct liar *liar)
{
    const struct ring_message *message;

    if (liar->socket < 0)
        return;
    drain_socket(liar);
    touch_memory(liar);
    while (channel_server_next(liar->channel, &message) > 0) {
        answer(liar, message);
        touch_memory(liar);
        drain_socket(liar);
        liar->quiet_since = clock_ns();
    }
    bool idle = liar->believed && clock_ns() - liar->quiet_since > IDLE_NS;
    if (idle || sock_hung_up(liar->socket))
        hang_up(liar);
}

/* ---- the victim ---- */

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
            accept_victim(liar);
        serve(liar);
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
    uint64_t begun_with = seed;

    assert_int_equal(sock_listen(path, 0600, &liar.listener), 0);
    pid_t victim = fork();
    if (victim == 0)
        run_victim(output);
    int status = serve_until_end(&liar, victim);
    hang_up(&liar);
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
    fprintf(stderr, "%llu answers\n", (unsigned long long)questions);
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
    seed = argc > 2 ? strtoull(argv[2], NULL, 10) : seed;
    only = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : only;
    signal(SIGPIPE, SIG_IGN);
    return only < LIE_COUNT ? run_lies() : run_side_by_side();
}
