/* SPDX-License-Identifier: Apache-2.0 */
/* See move_obstacle.h. */
#include "move_obstacle.h"

const char *move_obstacle_text(uint32_t obstacle)
{
    static const char *const texts[] = {
        [OBSTACLE_NONE] = "it gives no reason",
        [OBSTACLE_WORK] = "it had work in flight",
        [OBSTACLE_CALL] = "it was in the middle of a call",
        [OBSTACLE_THREADS] = "its threads were in the middle of calls",
        [OBSTACLE_SERVER] = "no other server takes it",
        [OBSTACLE_DESCRIPTORS] = "its descriptors were closed",
        [OBSTACLE_SHARED] = "it has shared something",
        [OBSTACLE_MEMORY_LIMIT] =
            "it was suspended, or it has a memory limit: only its server had its memory",
        [OBSTACLE_PHYSICAL] =
            "it has physical memory without a descriptor, or was suspended with some",
        [OBSTACLE_VARIABLES] = "it has a module with variables",
        [OBSTACLE_ARRAY] = "it has an array, a texture or a linking job",
        [OBSTACLE_TIME] = "it has recorded an event with a time",
        [OBSTACLE_OFF] = "recovery is switched off in it (FUNNEL_OFF=recovery)",
        [OBSTACLE_PINNED] =
            "it has much page-locked memory, and to lock that again takes long; an order (funnel "
            "limit --class) moves it",
        [OBSTACLE_ASKED] = "it has asked for the address of a variable",
        [OBSTACLE_ADDRESS] = "its memory holds the address of a variable; server.log says of which",
        [OBSTACLE_RELOCATED] = "it has changed a variable that holds addresses from its load",
        [OBSTACLE_POINTERS] =
            "its code calls functions through pointers, whose addresses may be in its memory",
        [OBSTACLE_UNSEEN] =
            "it has modules with variables, and memory that cannot be searched for their addresses",
        [OBSTACLE_NO_DEVICE] = "its server has no such device",
        [OBSTACLE_SAME_DEVICE] = "it is on that device",
        [OBSTACLE_DEVICES] = "it uses several devices, or has not used any; CUDA_VISIBLE_DEVICES "
                             "can leave it one",
        [OBSTACLE_OTHER_MODEL] = "that device is of another model",
        [OBSTACLE_DEVICE_SHARE] =
            "its share of the multiprocessors is static, or that device has none for it",
        [OBSTACLE_DEVICE_MEMORY] =
            "that device has too little free memory, or the program's limit there is too low",
        [OBSTACLE_COPY] = "its memory could not be copied; server.log says why",
        [OBSTACLE_MOVING] = "another order counts",
    };

    return texts[obstacle < OBSTACLE_COUNT ? obstacle : OBSTACLE_NONE];
}
