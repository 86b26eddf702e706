/* SPDX-License-Identifier: Apache-2.0 */
/* The contexts that a thread has made current, one above the other. Only handles are kept: a
 * context may be destroyed while it is in the stack of another thread. Not locked; each stack is
 * used by its thread alone. */
#pragma once

#include "cuda_abi.h"

struct context_stack {
    CUcontext *items;
    unsigned depth, capacity;
};

/* Frees the storage; the stack is empty and usable again. */
void context_stack_clear(struct context_stack *stack);

/* The current context, NULL when the stack is empty. */
static inline CUcontext context_stack_top(const struct context_stack *stack)
{
    return stack->depth ? stack->items[stack->depth - 1] : NULL;
}

/* Puts a context on top: 0 or -ENOMEM. */
int context_stack_push(struct context_stack *stack, CUcontext context);

/* Takes the top away and returns it; NULL when the stack is empty. */
CUcontext context_stack_pop(struct context_stack *stack);

/* Puts `context` in the place of the top; NULL takes the top away. 0 or -ENOMEM. */
int context_stack_replace(struct context_stack *stack, CUcontext context);
