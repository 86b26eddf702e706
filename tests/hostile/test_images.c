/* SPDX-License-Identifier: Apache-2.0 */
/* Images that lie, and the end of the process that looks into them. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hostile.h"
#include "image_format.h"

#define IMAGES 300u
#define IMAGE_MAX 8192u

static const char text[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                           ".visible .global .align 4 .u32 counter;\n"
                           ".visible .entry empty()\n{\nret;\n}\n";

/* ---- containers that are wrong somewhere ---- */

struct image {
    unsigned char bytes[IMAGE_MAX];
    size_t size;
};

static void put(struct image *image, const void *bytes, size_t size)
{
    memcpy(image->bytes + image->size, bytes, size);
    image->size += size;
}

/* Texts, plain and so called compressed. */
static void put_entry(struct image *image, uint64_t flags)
{
    const struct image_entry_header entry = {.kind = IMAGE_PTX,
                                             .version_major = 1,
                                             .header_size = sizeof(entry),
                                             .payload_size = sizeof(text),
                                             .compressed_size = flags ? sizeof(text) : 0,
                                             .plain_size = flags ? 1u << 20 : 0,
                                             .sm = 80,
                                             .flags = flags};

    put(image, &entry, sizeof(entry));
    put(image, text, sizeof(text));
}

static struct image make_image(void)
{
    struct image_container header = {
        .magic = IMAGE_CONTAINER_MAGIC, .version = 1, .header_size = sizeof(header)};
    struct image image = {.size = sizeof(header)};

    put_entry(&image, 0);
    put_entry(&image, IMAGE_LZ4);
    put_entry(&image, IMAGE_ZSTD);
    header.size = image.size - sizeof(header);
    memcpy(image.bytes, &header, sizeof(header));
    return image;
}

static void spoil(struct image *image, uint64_t *seed)
{
    for (unsigned i = 0; i < 3; i++)
        image->bytes[unit_random(seed) % image->size] = (unsigned char)unit_random(seed);
}

static void load_and_unload(struct peer *peer, const struct image *image)
{
    uint64_t module;

    if (peer_load_module(peer, image->bytes, image->size, &module) != CUDA_SUCCESS)
        return;
    const struct wire_cuLibraryUnload in = {.library = module};
    channel_lock(&peer->channel);
    wire_cuLibraryUnload(&peer->channel, &in);
    channel_unlock(&peer->channel);
}

static void containers_that_lie(void **state)
{
    uint64_t seed = 20261123;
    struct peer peer;

    (void)state;
    assert_true(peer_attach(&peer, hostile.server.socket));
    for (unsigned i = 0; i < IMAGES; i++) {
        struct image image = make_image();

        spoil(&image, &seed);
        load_and_unload(&peer, &image);
    }
    assert_true(channel_alive(&peer.channel));
    peer_leave(&peer);
}

/* ---- the process that looks into images ---- */

static bool is_reader(const char *pid)
{
    char path[300], line[256];
    bool named = false, ours = false;

    snprintf(path, sizeof(path), "/proc/%s/status", pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file)) {
        named |= !strcmp(line, "Name:\tfunnel-reader\n");
        ours |= !strncmp(line, "PPid:", 5) && atoi(line + 5) == hostile.server.pid;
    }
    if (file)
        fclose(file);
    return named && ours;
}

static pid_t find_reader(void)
{
    DIR *processes = opendir("/proc");
    struct dirent *entry;
    pid_t found = 0;

    assert_non_null(processes);
    while ((entry = readdir(processes)))
        if (is_reader(entry->d_name))
            found = atoi(entry->d_name);
    closedir(processes);
    return found;
}

static void the_reader_is_killed(void **state)
{
    pid_t reader = find_reader();
    uint64_t module;
    struct peer peer;

    (void)state;
    assert_int_not_equal(reader, 0);
    assert_int_equal(kill(reader, SIGKILL), 0);
    assert_true(peer_attach(&peer, hostile.server.socket));
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(peer_load_module(&peer, text, sizeof(text), &module), CUDA_SUCCESS);
    peer_leave(&peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOSTILE_CASE(containers_that_lie),
        HOSTILE_CASE(the_reader_is_killed),
    };

    return HOSTILE_MAIN(tests);
}
