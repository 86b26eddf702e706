/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The challenge of libcudart, computed a second time from its description.
 */
#include "fake_driver.h"
#include "md2.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CUDART_TABLE "6bd5fb6c5bf4e74a8987d93912fd9df9"
#define INTEGRITY_TABLE "d4082055bde6704b8d34ba123c66e1f2"

typedef CUresult answer_function(uint32_t version, uint64_t unix_seconds, uint8_t *ret_answer);

static void add32(struct hmac_md2 *hmac, uint32_t value)
{
    hmac_md2_update(hmac, &value, sizeof(value));
}

static void add64(struct hmac_md2 *hmac, uint64_t value)
{
    hmac_md2_update(hmac, &value, sizeof(value));
}

static void expect(uint32_t version, uint64_t unix_seconds, uint8_t ret_digest[MD2_BLOCK])
{
    static const uint8_t key[MD2_BLOCK] = {0x14, 0x6a, 0xdd, 0xae, 0x53, 0xa9, 0xa7, 0x52,
                                           0xaa, 0x08, 0x41, 0x36, 0x0b, 0xf5, 0x5a, 0x9f};
    void *const *table = fake_table(INTEGRITY_TABLE);
    struct hmac_md2 hmac;

    hmac_md2_init(&hmac, key);
    add32(&hmac, FAKE_DRIVER_VERSION);
    add32(&hmac, version);
    add32(&hmac, (uint32_t)getpid());
    add32(&hmac, (uint32_t)pthread_self());
    add64(&hmac, (uintptr_t)fake_table(CUDART_TABLE));
    add64(&hmac, (uintptr_t)table);
    add64(&hmac, (uintptr_t)table[1]);
    add64(&hmac, unix_seconds);
    for (uint32_t device = 0; device < FAKE_DEVICES; device++) {
        uint8_t uuid[16];

        memset(uuid, 0xa0 + (int)device, sizeof(uuid));
        hmac_md2_update(&hmac, uuid, sizeof(uuid));
        add32(&hmac, 500 + device); /* PCI domain, attribute 50 */
        add32(&hmac, 330 + device); /* PCI bus, 33 */
        add32(&hmac, 340 + device); /* PCI device, 34 */
    }
    hmac_md2_finish(&hmac, ret_digest);
}

static void check_third_answer(void)
{
    answer_function *answer = (answer_function *)fake_table(INTEGRITY_TABLE)[1];
    uint8_t got[MD2_BLOCK], expected[MD2_BLOCK];

    expect(13002, 1763718000, expected);
    assert_int_equal(answer(13002, 1763718000, got), CUDA_SUCCESS);
    assert_memory_equal(got, expected, MD2_BLOCK);
}

static void test_third_answer(void **state)
{
    check_third_answer();
}

static void test_another_thread_has_another_answer(void **state)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, (void *(*)(void *))check_third_answer, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void test_a_forked_process_has_another_answer(void **state)
{
    answer_function *answer = (answer_function *)fake_table(INTEGRITY_TABLE)[1];
    uint8_t parent[MD2_BLOCK], child[MD2_BLOCK], expected[MD2_BLOCK];
    int status;
    pid_t pid;

    assert_int_equal(answer(13002, 5, parent), CUDA_SUCCESS);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        expect(13002, 5, expected);
        answer(13002, 5, child);
        _exit(memcmp(child, expected, MD2_BLOCK) != 0 || memcmp(child, parent, MD2_BLOCK) == 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void test_first_answers_are_constant(void **state)
{
    static const uint8_t constant[MD2_BLOCK] = {0x5c, 0x67, 0xcb, 0x03, 0x1c, 0x18, 0x41, 0x33,
                                                0xe8, 0xd1, 0x4c, 0x1f, 0xaa, 0x83, 0xd3, 0x8e};
    answer_function *answer = (answer_function *)fake_table(INTEGRITY_TABLE)[1];
    uint8_t got[MD2_BLOCK];

    assert_int_equal(answer(13000, 1, got), CUDA_SUCCESS);
    assert_memory_equal(got, constant, MD2_BLOCK);
    assert_int_equal(answer(12081, 2, got), CUDA_SUCCESS);
    assert_int_equal(got[7], 0x18);
    got[7] = 0x33;
    assert_memory_equal(got, constant, MD2_BLOCK);
    assert_int_equal(answer(13002, 1, NULL), CUDA_ERROR_INVALID_VALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_third_answer),
        cmocka_unit_test(test_another_thread_has_another_answer),
        cmocka_unit_test(test_a_forked_process_has_another_answer),
        cmocka_unit_test(test_first_answers_are_constant),
    };

    return cmocka_run_group_tests(tests, fake_driver_setup, NULL);
}
