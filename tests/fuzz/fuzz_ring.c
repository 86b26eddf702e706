/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the consumer of the ring. The input is a little program: each step writes something that a
 * hostile producer could write, or lets the consumer take a message. What must hold is checked
 * after each message; what must not be touched is the sanitizers' to notice. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "ring.h"
#include "shm.h"

#define PAGE 4096u
#define RING 4096u
#define CAPACITY 1024u

static struct ring_shared *shared;
static unsigned char *data;

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void map_once(void)
{
    int fd;
    void *words, *bytes;
    if (shared)
        return;
    require(shm_create("fuzz", PAGE + RING, &fd) == 0);
    require(shm_map(fd, PAGE, NULL, 0, &words) == 0);
    require(ring_map(fd, PAGE, RING, &bytes) == 0);
    close(fd);
    shared = words;
    data = bytes;
}

/* The consumer's private buffer is of exactly its size, so a sanitizer sees one byte too many. */
static void take(struct ring *consumer, bool release)
{
    unsigned char *buffer = malloc(CAPACITY);
    uint32_t cursor = consumer->cursor;
    int size = ring_next(consumer, buffer, CAPACITY);
    require(size == -EPROTO || (size >= 0 && size <= (int)CAPACITY && size % RING_ALIGNMENT == 0));
    if (size > 0) {
        require(((struct ring_message *)buffer)->size == (uint32_t)size);
        if (release) {
            ring_release(consumer);
            require(consumer->cursor == cursor + (uint32_t)size);
        }
    }
    free(buffer);
}

static uint32_t next_word(const uint8_t **input, size_t *left)
{
    uint32_t word = 0;
    size_t size = *left < sizeof(word) ? *left : sizeof(word);
    memcpy(&word, *input, size);
    *input += size;
    *left -= size;
    return word;
}

static void step(struct ring *consumer, uint8_t action, uint32_t word)
{
    uint32_t *words = (uint32_t *)data;
    switch (action % 8) {
    case 0: /* publish what looks possible */
        shared->tail = consumer->cursor + word % (RING / 8 + 8) * 8;
        break;
    case 1: /* publish anything */
        shared->tail = word;
        break;
    case 2: /* a size where the consumer will look */
        words[consumer->cursor % RING / 4] = word % (CAPACITY / 8 + 8) * 8;
        break;
    case 3: /* any size there */
        words[consumer->cursor % RING / 4] = word;
        break;
    case 4: /* any byte anywhere */
        data[word % RING] = (unsigned char)(word >> 24);
        break;
    case 5:
        shared->head = word;
        shared->sleeping = word;
        break;
    case 6:
        take(consumer, false);
        break;
    default:
        take(consumer, true);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t left)
{
    struct ring consumer;
    map_once();
    memset(data, 0, RING);
    ring_format(shared);
    ring_init(&consumer, shared, data, RING, false);
    while (left > 0) {
        uint8_t action = *input++;
        left--;
        step(&consumer, action, next_word(&input, &left));
    }
    take(&consumer, true);
    return 0;
}
