/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .global and .const variables that are declared in the body of a function. Each has memory of its
 * own, which keeps its value from launch to launch, whatever else is declared around it.
 */
#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

/* Two functions whose variables have the same names, beside a module's variable. */
static const char two_functions[] =
    HEAD ".global .u32 counter = 1000;\n"
         ".func (.param .b32 sum) other()\n{\n.reg .b32 %r<4>;\n"
         ".local .b32 unused[4];\n.global .u32 counter = 70;\n.const .u32 step = 7;\n"
         "ld.const.u32 %r1, [step];\nld.global.u32 %r2, [counter];\nadd.u32 %r2, %r2, %r1;\n"
         "st.global.u32 [counter], %r2;\nst.param.b32 [sum], %r2;\nret;\n}\n"
         ".visible .entry kernel(.param .u64 to)\n{\n"
         ".reg .b32 %r<9>;\n.reg .b64 %d<9>;\n.local .b64 pad[3];\n.shared .b32 room[8];\n"
         ".global .u32 counter = 10;\n.const .u32 step[2] = {1, 2};\n"
         ".global .u64 pointer = counter;\n"
         "ld.param.u64 %d1, [to];\nld.const.u32 %r1, [step+4];\nld.global.u32 %r2, [counter];\n"
         "add.u32 %r2, %r2, %r1;\nst.global.u32 [counter], %r2;\n"
         "ld.global.u64 %d2, [pointer];\nld.u32 %r3, [%d2];\n"
         "{\n.param .b32 sum;\ncall (sum), other, ();\nld.param.b32 %r4, [sum];\n}\n"
         "st.global.v4.u32 [%d1], {%r2, %r3, %r4, %r1};\nret;\n}\n";

static void test_values(void **state)
{
    struct machine *machine = machine_create_from(two_functions);
    uint32_t *to = machine_memory(machine, 16);
    for (uint32_t launch = 1; launch <= 3; launch++) {
        assert_int_equal(machine_launch(machine, "kernel", 1, 1, 0, (void *[]){&to}), CUDA_SUCCESS);
        assert_int_equal(to[0], 10 + 2 * launch);
        assert_int_equal(to[1], 10 + 2 * launch);
        assert_int_equal(to[2], 70 + 7 * launch);
        assert_int_equal(to[3], 2);
    }
    int index = sg_module_find_variable(machine->module, "counter");
    assert_true(index >= 0);
    uint64_t counter = sg_instance_address(machine->instance, (unsigned)index);
    assert_int_equal(*(uint32_t *)(uintptr_t)counter, 1000);
    assert_int_equal(sg_module_find_variable(machine->module, "step"), -2);
    machine_destroy(machine);
}

/* More variables than the module has, one of them larger than any frame may be. */
static void test_many(void **state)
{
    enum { COUNT = 300 };
    char *text = malloc(1 << 16);
    size_t size = (size_t)snprintf(text, 1 << 16,
                                   HEAD ".visible .entry kernel(.param .u64 to)\n{\n"
                                        ".reg .b32 %%r<4>;\n.reg .b64 %%d<4>;\n"
                                        ".global .b8 large[67108864];\n"
                                        "ld.param.u64 %%d1, [to];\n");
    for (unsigned i = 0; i < COUNT; i++)
        size += (size_t)snprintf(text + size, (1 << 16) - size,
                                 ".%s .u32 v%u = %u;\nld.%s.u32 %%r1, [v%u];\n"
                                 "st.global.u32 [%%d1+%u], %%r1;\n",
                                 i % 2 ? "const" : "global", i, 3 * i + 1,
                                 i % 2 ? "const" : "global", i, 4 * i);
    snprintf(text + size, (1 << 16) - size,
             "ld.global.u8 %%r2, [large+67108863];\nst.global.u32 [%%d1+%u], %%r2;\nret;\n}\n",
             4 * COUNT);
    struct machine *machine = machine_create_from(text);
    uint32_t *to = machine_memory(machine, 4 * (COUNT + 1));
    to[COUNT] = 1;
    assert_int_equal(machine_launch(machine, "kernel", 1, 1, 0, (void *[]){&to}), CUDA_SUCCESS);
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(to[i], 3 * i + 1);
    assert_int_equal(to[COUNT], 0);
    machine_destroy(machine);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
