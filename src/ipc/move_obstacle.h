/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a program cannot move to another server. The client finds the obstacle and puts its number
 * into shared memory, so a number may be anything.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum move_obstacle {
    OBSTACLE_NONE = 0,
    /* These pass. */
    OBSTACLE_WORK,    /* work in flight */
    OBSTACLE_CALL,    /* a call that has not been answered */
    OBSTACLE_THREADS, /* other threads are inside the library */
    OBSTACLE_SERVER,  /* no other server takes the program */
    /* These last as long as the program has such objects. */
    OBSTACLE_DESCRIPTORS,
    OBSTACLE_SHARED,
    OBSTACLE_MEMORY_LIMIT,
    OBSTACLE_PHYSICAL,
    OBSTACLE_VARIABLES,
    OBSTACLE_ARRAY,
    OBSTACLE_TIME,
    OBSTACLE_OFF,
    OBSTACLE_PINNED,    /* no obstacle to a move that an operator orders */
    OBSTACLE_ASKED,     /* the program has the address of a variable */
    OBSTACLE_ADDRESS,   /* so has its memory */
    OBSTACLE_RELOCATED, /* a variable that the load filled with addresses has changed */
    OBSTACLE_POINTERS,  /* memory may hold addresses of functions */
    OBSTACLE_UNSEEN,    /* memory that cannot be searched for addresses */
    /* Of a move to another device. */
    OBSTACLE_NO_DEVICE,     /* the server has no such device */
    OBSTACLE_SAME_DEVICE,   /* the program is there */
    OBSTACLE_DEVICES,       /* it uses several devices, or none */
    OBSTACLE_OTHER_MODEL,   /* the device is of another model */
    OBSTACLE_DEVICE_SHARE,  /* the program may use no multiprocessors there */
    OBSTACLE_DEVICE_MEMORY, /* too little memory there, or the program's limit is below */
    OBSTACLE_COPY,          /* the driver cannot copy */
    /* Of the order. */
    OBSTACLE_MOVING, /* another one counts */
    OBSTACLE_COUNT,
};

static inline bool move_obstacle_passes(enum move_obstacle obstacle)
{
    return obstacle < OBSTACLE_DESCRIPTORS;
}

/* As a sentence without its end, such as "it has an array". */
const char *move_obstacle_text(uint32_t obstacle);
