/* SPDX-License-Identifier: Apache-2.0 */
/* See liar.h. */
#include "liar.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach.h"
#include "channel.h"
#include "clock.h"
#include "fd.h"
#include "shm.h"
#include "sock.h"
#include "unit.h"
#include "wire_calls.h"

#define IDLE_NS (150 * NS_PER_MS) /* after which a victim waits for what will not come */
#define WINDOW WINDOW_FIRST
#define STRIDE (1ull << 36)
#define GRANULE_FIRST (WINDOW + (1ull << 30))

uint64_t liar_seed = 20261123;
uint64_t liar_answers;

static uint32_t pick(uint32_t count)
{
    return unit_random(&liar_seed) % count;
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

    return pick(4) ? number : (uint64_t)unit_random(&liar_seed) << 32 | unit_random(&liar_seed);
}

/* ---- the offer ---- */

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
        ((unsigned char *)bytes)[pick((uint32_t)size)] = (unsigned char)unit_random(&liar_seed);
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

void liar_hang_up(struct liar *liar)
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

void liar_accept(struct liar *liar)
{
    int socket = -1;

    if (sock_accept(liar->listener, &socket))
        return;
    liar_hang_up(liar);
    liar->socket = socket;
    liar->quiet_since = clock_ns();
    if (++liar->connections > LIAR_CONNECTIONS)
        fd_close(&liar->socket);
    else
        welcome(liar);
    if (liar->lie == LIE_END && liar->connections < LIAR_CONNECTIONS)
        liar_hang_up(liar);
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
    liar_answers++;
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

void liar_serve(struct liar *liar)
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
        liar_hang_up(liar);
}
