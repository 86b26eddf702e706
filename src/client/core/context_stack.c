/* SPDX-License-Identifier: Apache-2.0 */
/* The stack of current contexts; see context_stack.h. */
#include "context_stack.h"

#include <errno.h>
#include <stdlib.h>

void context_stack_clear(struct context_stack *stack)
{
    free(stack->items);
    *stack = (struct context_stack){0};
}

static int grow_stack(struct context_stack *stack)
{
    unsigned capacity = stack->capacity ? stack->capacity * 2 : 8;
    CUcontext *items = realloc(stack->items, capacity * sizeof(*items));

    if (!items)
        return -ENOMEM;
    stack->items = items;
    stack->capacity = capacity;
    return 0;
}

int context_stack_push(struct context_stack *stack, CUcontext context)
{
    if (stack->depth == stack->capacity && grow_stack(stack) < 0)
        return -ENOMEM;
    stack->items[stack->depth++] = context;
    return 0;
}

CUcontext context_stack_pop(struct context_stack *stack)
{
    return stack->depth ? stack->items[--stack->depth] : NULL;
}

int context_stack_replace(struct context_stack *stack, CUcontext context)
{
    if (!context) {
        context_stack_pop(stack);
        return 0;
    }
    if (stack->depth == 0)
        return context_stack_push(stack, context);
    stack->items[stack->depth - 1] = context;
    return 0;
}
