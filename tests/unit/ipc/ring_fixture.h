/* SPDX-License-Identifier: Apache-2.0 */
/* A small ring with both ends in this process (or, after fork(), one in each). */
#pragma once

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ring.h"
#include "shm.h"
#include "unit.h"

#define FIXTURE_PAGE 4096u
#define FIXTURE_RING 4096u

struct ring_fixture {
    struct ring_shared *shared;
    void *data;
    struct ring producer, consumer;
};

/* Starts with both cursors at `cursor`. */
static inline void ring_fixture_init(struct ring_fixture *fixture, uint32_t cursor)
{
    int fd;
    void *shared;
    assert_int_equal(shm_create("ring", FIXTURE_PAGE + FIXTURE_RING, &fd), 0);
    assert_int_equal(shm_map(fd, FIXTURE_PAGE, NULL, 0, &shared), 0);
    assert_int_equal(ring_map(fd, FIXTURE_PAGE, FIXTURE_RING, &fixture->data), 0);
    close(fd);
    fixture->shared = shared;
    ring_format(fixture->shared);
    fixture->shared->tail = fixture->shared->head = fixture->shared->seen = cursor;
    ring_init(&fixture->consumer, fixture->shared, fixture->data, FIXTURE_RING, false);
    ring_init(&fixture->producer, fixture->shared, fixture->data, FIXTURE_RING, true);
}

static inline void ring_fixture_fini(struct ring_fixture *fixture)
{
    ring_unmap(fixture->data, FIXTURE_RING);
    shm_unmap(fixture->shared, FIXTURE_PAGE);
}

/* Message number `number`: its payload can be recognized byte by byte. */
static inline void fill_message(struct ring_message *message, uint32_t size, uint32_t number)
{
    unsigned char *payload = (unsigned char *)(message + 1);
    message->size = size;
    message->kind = number;
    for (uint32_t i = 0; i < size - sizeof(*message); i++)
        payload[i] = (unsigned char)(number * 31 + i);
}

static inline bool is_message(const struct ring_message *message, uint32_t size, uint32_t number)
{
    const unsigned char *payload = (const unsigned char *)(message + 1);
    if (message->size != size || message->kind != number)
        return false;
    for (uint32_t i = 0; i < size - sizeof(*message); i++)
        if (payload[i] != (unsigned char)(number * 31 + i))
            return false;
    return true;
}
