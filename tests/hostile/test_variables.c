/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of fnVariablesSet, which a client brings along from another server: saved_variables.h. Any
 * client may write one. What is wrong with a file is an error of the command, and nothing more. The
 * same goes for copies of variables to memory of the client (fnVariableCopy).
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fd.h"
#include "hostile.h"
#include "saved_variables.h"
#include "shm.h"
#include "sock.h"

#define SPOILED 300u

static const char text[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
                           ".visible .global .align 4 .u32 counter = 5;\n"
                           ".visible .global .align 1 .b8 bytes[13];\n"
                           ".visible .entry empty()\n{\nret;\n}\n";

/* ---- clients with variables ---- */

struct owner {
    struct peer peer;
    uint64_t stream, module;
    uint32_t seq;
};

static void start(struct owner *owner)
{
    *owner = (struct owner){0};
    hostile_attach(&owner->peer);
    owner->stream = peer_make_stream(&owner->peer, 1);
    assert_int_equal(peer_load_module(&owner->peer, text, sizeof(text), &owner->module),
                     CUDA_SUCCESS);
}

static void unload(struct owner *owner, uint64_t module)
{
    const struct wire_cuLibraryUnload in = {.library = module};

    assert_int_equal(wire_cuLibraryUnload(&owner->peer.channel, &in), CUDA_SUCCESS);
}

static uint32_t counter_of(struct owner *owner, uint64_t module)
{
    const struct wire_cuLibraryGetGlobal in = {.library = module, .name = "counter"};
    struct wire_cuLibraryGetGlobal_reply out = {0};
    uint32_t value;

    assert_int_equal(wire_cuLibraryGetGlobal(&owner->peer.channel, &in, &out), CUDA_SUCCESS);
    const struct wire_cuMemcpyAsync copy = {.dst = owner->peer.offer.staging_address,
                                            .src = out.address,
                                            .ByteCount = sizeof(value),
                                            .hStream = owner->stream,
                                            .seq = ++owner->seq};
    channel_lock(&owner->peer.channel);
    assert_int_equal(wire_cuMemcpyAsync(&owner->peer.channel, &copy), CUDA_SUCCESS);
    channel_unlock(&owner->peer.channel);
    assert_true(peer_wait_fence(&owner->peer, 1, owner->seq));
    memcpy(&value, peer_staging(&owner->peer, 0), sizeof(value));
    return value;
}

/* ---- files ---- */

struct file {
    unsigned char bytes[32768];
    size_t size;
};

static void put(struct file *file, const void *bytes, size_t size)
{
    assert_true(size <= sizeof(file->bytes) - file->size);
    memcpy(file->bytes + file->size, bytes, size);
    file->size += size;
}

/* A record for `counter`, whose header may say anything. */
static void put_record(struct file *file, uint64_t module, uint64_t name_size, uint64_t size,
                       uint64_t value)
{
    const struct saved_record head = {module, name_size, size};

    put(file, &head, sizeof(head));
    put(file, "counter", 8);
    put(file, &value, sizeof(value));
}

static void put_counter(struct file *file, uint64_t module, uint32_t value)
{
    put_record(file, module, 8, 4, value);
}

/* `fd` -1: the message comes without a descriptor. */
static CUresult set_from(struct owner *owner, int fd, uint64_t announced, uint64_t size)
{
    const struct socket_message message = {.kind = SOCKET_BLOB, .id = 90, .value = announced};
    const struct wire_fnVariablesSet in = {.blob = 90, .size = size};

    assert_int_equal(sock_send(owner->peer.socket, &message, sizeof(message), &fd, fd >= 0), 0);
    return wire_fnVariablesSet(&owner->peer.channel, &in);
}

static CUresult set(struct owner *owner, const struct file *file)
{
    _cleanup_fd_ int fd = -1;

    assert_int_equal(shm_create_read_only("variables", file->bytes, file->size, &fd), 0);
    return set_from(owner, fd, file->size, file->size);
}

/* ---- what is right ---- */

static void files_that_are_right(void **state)
{
    struct file file = {.size = 0}, many = {.size = 0};
    uint64_t second;
    struct owner owner;

    (void)state;
    start(&owner);
    assert_int_equal(peer_load_module(&owner.peer, text, sizeof(text), &second), CUDA_SUCCESS);
    put_counter(&file, owner.module, 1);
    put_counter(&file, second, 2);
    put_counter(&file, owner.module, 3);
    assert_int_equal(set(&owner, &file), CUDA_SUCCESS);
    assert_int_equal(counter_of(&owner, owner.module), 3);
    assert_int_equal(counter_of(&owner, second), 2);
    for (uint32_t i = 0; i < 700; i++) /* more than are copied together */
        put_counter(&many, second, i);
    assert_int_equal(set(&owner, &many), CUDA_SUCCESS);
    assert_int_equal(counter_of(&owner, second), 699);
    peer_leave(&owner.peer);
}

/* ---- records ---- */

static void sizes_that_lie(void **state)
{
    static const uint64_t sizes[][2] = {{0, 4},          {7, 4},          {17, 4},
                                        {UINT64_MAX, 4}, {0 - 8ull, 8},   {0 - 24ull, 4},
                                        {8, 9},          {16, 4},         {8, UINT64_MAX},
                                        {8, 0 - 6ull},   {8, 0 - 8ull},   {8, 1000},
                                        {1ull << 63, 4}, {8, 1ull << 63}, {1ull << 63, 1ull << 63},
                                        {0 - 16ull, 32}, {8, 1ull << 32}, {1ull << 32, 4},
                                        {0 - 40ull, 16}};
    struct owner owner;

    (void)state;
    start(&owner);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        struct file file = {.size = 0};

        put_record(&file, owner.module, sizes[i][0], sizes[i][1], 9);
        assert_int_equal(set(&owner, &file), CUDA_ERROR_INVALID_VALUE);
    }
    assert_int_equal(counter_of(&owner, owner.module), 5);
    peer_leave(&owner.peer);
}

static void records_that_are_cut_off(void **state)
{
    struct owner owner;

    (void)state;
    start(&owner);
    struct file file = {.size = 0};
    put_counter(&file, owner.module, 9);
    const size_t whole = file.size;
    for (file.size = 1; file.size < whole; file.size++)
        assert_int_equal(set(&owner, &file), CUDA_ERROR_INVALID_VALUE);
    file.size = whole;
    put(&file, "rest", 4);
    assert_int_equal(set(&owner, &file), CUDA_ERROR_INVALID_VALUE);
    peer_leave(&owner.peer);
}

/* The name takes the rest of the file. */
static void names_without_an_end(void **state)
{
    struct owner owner;

    (void)state;
    start(&owner);
    for (size_t length = 1; length <= 4096; length *= 8) {
        const struct saved_record head = {owner.module, length, 0};
        struct file file = {.size = 0};

        put(&file, &head, sizeof(head));
        memset(file.bytes + file.size, 'n', length);
        file.size += length;
        assert_int_equal(set(&owner, &file), CUDA_ERROR_INVALID_VALUE);
    }
    peer_leave(&owner.peer);
}

/* ---- modules and variables ---- */

static CUresult set_counter(struct owner *owner, uint64_t module)
{
    struct file file = {.size = 0};

    put_counter(&file, module, 9);
    return set(owner, &file);
}

static void modules_of_others(void **state)
{
    uint64_t freed, stateless, others;
    struct owner owner, other;

    (void)state;
    start(&owner);
    start(&other);
    assert_int_equal(peer_load_module(&owner.peer, text, sizeof(text), &freed), CUDA_SUCCESS);
    unload(&owner, freed);
    assert_int_equal(
        peer_load_module(&owner.peer, witness_ptx, strlen(witness_ptx) + 1, &stateless),
        CUDA_SUCCESS);
    do /* of a number that the owner has not used */
        assert_int_equal(peer_load_module(&other.peer, text, sizeof(text), &others), CUDA_SUCCESS);
    while (other.peer.next_handle <= owner.peer.next_handle);
    const uint64_t handles[] = {0,         freed,     others, owner.stream, hostile.witness.stream,
                                stateless, UINT64_MAX};
    for (size_t i = 0; i < sizeof(handles) / sizeof(*handles); i++)
        assert_int_equal(set_counter(&owner, handles[i]), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(counter_of(&other, others), 5);
    assert_int_equal(counter_of(&other, other.module), 5);
    assert_int_equal(set_counter(&owner, owner.module), CUDA_SUCCESS);
    assert_int_equal(counter_of(&owner, owner.module), 9);
    assert_int_equal(counter_of(&other, other.module), 5);
    peer_leave(&other.peer);
    peer_leave(&owner.peer);
}

static CUresult set_named(struct owner *owner, const void *name, size_t name_size, uint64_t size)
{
    const struct saved_record head = {owner->module, name_size, size};
    const char contents[64] = {0};
    struct file file = {.size = 0};

    put(&file, &head, sizeof(head));
    put(&file, name, name_size);
    put(&file, contents, saved_round_up(size));
    return set(owner, &file);
}

static void variables_that_do_not_exist(void **state)
{
    static const uint64_t sizes[] = {0, 1, 3, 5, 8, 64};
    char long_name[16384] = {0};
    struct owner owner;

    (void)state;
    start(&owner);
    memset(long_name, 'n', sizeof(long_name) - 1);
    assert_int_equal(set_named(&owner, "", 1, 4), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(set_named(&owner, "empty", 6, 4), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(set_named(&owner, "counter1", 9, 4), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(set_named(&owner, "%s%n\n\033[2J", 10, 4), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(set_named(&owner, long_name, sizeof(long_name), 4), CUDA_ERROR_NOT_FOUND);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        assert_int_equal(set_named(&owner, "counter", 8, sizes[i]), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(counter_of(&owner, owner.module), 5);
    assert_int_equal(set_named(&owner, "bytes", 6, 13), CUDA_SUCCESS);
    peer_leave(&owner.peer);
}

/* ---- files that are none ---- */

static int make_file(const struct file *contents, int seals)
{
    int fd = memfd_create("file", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, contents->bytes, contents->size), (ssize_t)contents->size);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

/* The server takes no file that could shrink between the check and the copy. */
static void files_that_may_shrink(void **state)
{
    struct file file = {.size = 0};
    struct owner owner;

    (void)state;
    start(&owner);
    put_counter(&file, owner.module, 9);
    _cleanup_fd_ int open_file = make_file(&file, 0), growing = make_file(&file, F_SEAL_GROW);
    assert_int_equal(set_from(&owner, open_file, file.size, file.size), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(set_from(&owner, growing, file.size, file.size), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(ftruncate(growing, 0), 0);
    assert_int_equal(set_from(&owner, growing, file.size, file.size), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(counter_of(&owner, owner.module), 5);
    peer_leave(&owner.peer);
}

static void descriptors_of_no_file(void **state)
{
    struct file file = {.size = 0};
    struct owner owner;
    int pipes[2];

    (void)state;
    start(&owner);
    put_counter(&file, owner.module, 9);
    assert_int_equal(pipe(pipes), 0);
    _cleanup_fd_ int reader = pipes[0], writer = pipes[1], zeroes = open("/dev/zero", O_RDWR);
    const int fds[] = {reader, writer, zeroes, owner.peer.socket, -1};
    for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
        assert_int_equal(set_from(&owner, fds[i], file.size, file.size), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(counter_of(&owner, owner.module), 5);
    peer_leave(&owner.peer);
}

static void sizes_that_the_file_does_not_have(void **state)
{
    struct file file = {.size = 0};
    struct owner owner;

    (void)state;
    start(&owner);
    put_counter(&file, owner.module, 9);
    const uint64_t size = file.size, sizes[][2] = {{size + 1, size + 1},
                                                   {size, size + 1},
                                                   {size + 1, size},
                                                   {0, 0},
                                                   {0, size},
                                                   {size, 0},
                                                   {1 << 20, 1 << 20},
                                                   {1ull << 32, 1ull << 32}};
    _cleanup_fd_ int fd = make_file(&file, F_SEAL_SHRINK);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        assert_int_equal(set_from(&owner, fd, sizes[i][0], sizes[i][1]), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(counter_of(&owner, owner.module), 5);
    peer_leave(&owner.peer);
}

/* A file that were right if it were not larger than such files may be: zeros fill its name. */
static void files_that_are_too_large(void **state)
{
    const uint64_t size = SAVED_VARIABLES_MAX + 8;
    struct file file = {.size = 0};
    _cleanup_fd_ int fd = -1;
    struct owner owner;

    (void)state;
    start(&owner);
    put_record(&file, owner.module, size - sizeof(struct saved_record) - 8, 4, 0);
    assert_int_equal(shm_create("large", size, &fd), 0);
    assert_int_equal(pwrite(fd, file.bytes, file.size, 0), (ssize_t)file.size);
    assert_int_equal(set_from(&owner, fd, size, size), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(counter_of(&owner, owner.module), 5);
    peer_leave(&owner.peer);
}

/* ---- anything ---- */

static void files_that_are_spoiled(void **state)
{
    uint64_t seed = 20261128, second;
    struct owner owner, other;

    (void)state;
    start(&owner);
    start(&other);
    assert_int_equal(peer_load_module(&owner.peer, text, sizeof(text), &second), CUDA_SUCCESS);
    for (unsigned i = 0; i < SPOILED; i++) {
        struct file file = {.size = 0};

        put_counter(&file, owner.module, 7);
        put_counter(&file, second, 7);
        put_counter(&file, owner.module, 8);
        for (unsigned k = 0; k < 3; k++)
            file.bytes[unit_random(&seed) % file.size] = (unsigned char)unit_random(&seed);
        set(&owner, &file);
        assert_true(channel_alive(&owner.peer.channel));
    }
    assert_int_equal(set_counter(&owner, owner.module), CUDA_SUCCESS);
    assert_int_equal(counter_of(&owner, owner.module), 9);
    assert_int_equal(counter_of(&other, other.module), 5);
    peer_leave(&other.peer);
    peer_leave(&owner.peer);
}

/* ---- copies ---- */

static CUresult copy_to(struct owner *owner, const char *name, uint64_t to)
{
    const struct wire_fnVariableCopy in = {.library = owner->module, .name = name, .to = to};

    return wire_fnVariableCopy(&owner->peer.channel, &in);
}

static void copies_of_variables(void **state)
{
    struct owner owner, other;
    uint32_t value;

    (void)state;
    start(&owner);
    start(&other);
    assert_int_equal(counter_of(&owner, owner.module), 5);
    const uint64_t own = owner.peer.offer.staging_address;
    assert_int_equal(copy_to(&owner, "counter", own + 64), CUDA_SUCCESS);
    memcpy(&value, peer_staging(&owner.peer, 64), sizeof(value));
    assert_int_equal(value, 5);
    assert_int_equal(copy_to(&owner, "counter", 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(copy_to(&owner, "counter", UINT64_MAX - 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(copy_to(&owner, "counter", other.peer.offer.staging_address),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(copy_to(&owner, "nothing", own), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(copy_to(&owner, "", own), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(counter_of(&other, other.module), 5);
    peer_leave(&other.peer);
    peer_leave(&owner.peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOSTILE_CASE(files_that_are_right),
        HOSTILE_CASE(sizes_that_lie),
        HOSTILE_CASE(records_that_are_cut_off),
        HOSTILE_CASE(names_without_an_end),
        HOSTILE_CASE(modules_of_others),
        HOSTILE_CASE(variables_that_do_not_exist),
        HOSTILE_CASE(files_that_may_shrink),
        HOSTILE_CASE(descriptors_of_no_file),
        HOSTILE_CASE(sizes_that_the_file_does_not_have),
        HOSTILE_CASE(files_that_are_too_large),
        HOSTILE_CASE(files_that_are_spoiled),
        HOSTILE_CASE(copies_of_variables),
    };

    return HOSTILE_MAIN(tests);
}
