/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that are passed on. Nothing is known of their arguments, so each is a jump through
 * the table, which leaves registers and stack as they are. The first call fills the table.
 */

#if defined(__x86_64__)
#define LOAD_INDEX "movl $nvml_index, %eax\n"
#define JUMP "jmp nvml_dispatch\n"
#define DISPATCH                          \
    "nvml_dispatch:\n"                    \
    "    cmpl $0, nvml_loaded(%rip)\n"    \
    "    je 2f\n"                         \
    "1:  leaq nvml_entries(%rip), %r11\n" \
    "    jmp *(%r11,%rax,8)\n"            \
    "2:  pushq %rax\n    pushq %rdi\n"    \
    "    pushq %rsi\n    pushq %rdx\n"    \
    "    pushq %rcx\n    pushq %r8\n"     \
    "    pushq %r9\n"                     \
    "    call nvml_load\n"                \
    "    popq %r9\n    popq %r8\n"        \
    "    popq %rcx\n    popq %rdx\n"      \
    "    popq %rsi\n    popq %rdi\n"      \
    "    popq %rax\n"                     \
    "    jmp 1b\n"
#elif defined(__aarch64__)
#define LOAD_INDEX "mov w17, #nvml_index\n"
#define JUMP "b nvml_dispatch\n"
#define DISPATCH                             \
    "nvml_dispatch:\n"                       \
    "    adrp x16, nvml_loaded\n"            \
    "    add x16, x16, :lo12:nvml_loaded\n"  \
    "    ldar w16, [x16]\n"                  \
    "    cbz w16, 2f\n"                      \
    "1:  adrp x16, nvml_entries\n"           \
    "    add x16, x16, :lo12:nvml_entries\n" \
    "    ldr x16, [x16, x17, lsl #3]\n"      \
    "    br x16\n"                           \
    "2:  stp x29, x30, [sp, #-96]!\n"        \
    "    stp x0, x1, [sp, #16]\n"            \
    "    stp x2, x3, [sp, #32]\n"            \
    "    stp x4, x5, [sp, #48]\n"            \
    "    stp x6, x7, [sp, #64]\n"            \
    "    str x17, [sp, #80]\n"               \
    "    bl nvml_load\n"                     \
    "    ldr x17, [sp, #80]\n"               \
    "    ldp x6, x7, [sp, #64]\n"            \
    "    ldp x4, x5, [sp, #48]\n"            \
    "    ldp x2, x3, [sp, #32]\n"            \
    "    ldp x0, x1, [sp, #16]\n"            \
    "    ldp x29, x30, [sp], #96\n"          \
    "    b 1b\n"
#else
#error "NVML's functions need trampolines for this processor"
#endif

#define NEXT ".set nvml_index, nvml_index + 1\n"

/* clang-format off */
__asm__(".text\n"
        ".hidden nvml_loaded\n .hidden nvml_entries\n .hidden nvml_load\n"
        DISPATCH
        ".set nvml_index, 0\n"
#define NVML_PASS(name)                   \
        ".p2align 4\n"                    \
        ".globl " #name "\n"              \
        ".type " #name ", %function\n"    \
        #name ":\n" LOAD_INDEX JUMP       \
        ".size " #name ", . - " #name "\n" NEXT
#define NVML_OWN(name) NEXT
#include "nvml_names.def"
);
/* clang-format on */
