/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver of two devices and a few contexts, whose state the tests set by hand.
 */
#pragma once

#include "cudart.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

#define FAKE_DRIVER_VERSION 13000
#define FAKE_DEVICES 2

#define FAKE_CONTEXT ((CUcontext)0x1000)
#define OTHER_CONTEXT ((CUcontext)0x2000)

extern CUcontext fake_current;
extern CUresult fake_state;     /* of FAKE_CONTEXT; OTHER_CONTEXT is always active */
extern const void *fake_loaded; /* the image that module_load last got */

/* cmocka set-up: both contexts active, none current. */
int fake_driver_setup(void **state);

/* The words of a table given by the 32 hexadecimal digits of its UUID; fails when there is none. */
void *const *fake_table(const char *uuid);
