/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for libFuzzer where there is none. It feeds a fuzz target the files it is given, or
 * else inputs from a generator that is the same in every run. Without coverage it is no fuzzer, but
 * it keeps the targets building, and repeats what a fuzzer has found.
 *
 *     replay_X [FILE...]            (a file that ends in .pack holds many inputs: corpus.py)
 *     replay_X --count INPUTS SEED      (a billion in some minutes, without a sanitizer) */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#define INPUTS 30000
#define LONGEST 600

static uint64_t random_state = 1;

static uint32_t random_number(void)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(random_state >> 33);
}

static void feed_random(void)
{
    uint8_t input[LONGEST];
    size_t size = random_number() % LONGEST;
    uint32_t zeros = random_number() % 4; /* fields are often small numbers */
    for (size_t i = 0; i < size; i++)
        input[i] = random_number() % 4 < zeros ? 0 : (uint8_t)random_number();
    LLVMFuzzerTestOneInput(input, size);
}

/* Of most inputs only some bytes are new, which costs less than the input does. */
static void feed_many(uint64_t count)
{
    static uint8_t input[LONGEST];

    for (uint64_t i = 0; i < count; i++) {
        for (unsigned changes = 1 + random_number() % 6; changes > 0; changes--)
            input[random_number() % (1u << random_number() % 10) % LONGEST] =
                random_number() % 2 ? (uint8_t)random_number() : 0;
        input[0] = (uint8_t)random_number();
        LLVMFuzzerTestOneInput(input, random_number() % (random_number() % 8 ? 160 : LONGEST));
    }
    printf("%llu inputs\n", (unsigned long long)count);
}

/* Each input has its size before it. */
static int feed_pack(FILE *file)
{
    static uint8_t input[1 << 16];
    uint32_t size;
    unsigned count = 0;

    while (fread(&size, sizeof(size), 1, file) == 1) {
        if (size > sizeof(input) || fread(input, 1, size, file) != size)
            return 1;
        LLVMFuzzerTestOneInput(input, size);
        count++;
    }
    return count == 0;
}

static bool is_pack(const char *path)
{
    const char *dot = strrchr(path, '.');

    return dot && !strcmp(dot, ".pack");
}

static int feed_file(const char *path)
{
    static uint8_t input[1 << 24];
    FILE *file = fopen(path, "rb");
    int failed = 0;

    if (!file) {
        perror(path);
        return 1;
    }
    if (is_pack(path))
        failed = feed_pack(file);
    else
        LLVMFuzzerTestOneInput(input, fread(input, 1, sizeof(input), file));
    fclose(file);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;
    if (argc == 4 && strcmp(argv[1], "--count") == 0) {
        random_state = strtoull(argv[3], NULL, 10);
        feed_many(strtoull(argv[2], NULL, 10));
        return 0;
    }
    for (int i = 1; i < argc; i++)
        failed |= feed_file(argv[i]);
    for (int i = 0; argc == 1 && i < INPUTS; i++)
        feed_random();
    return failed;
}
