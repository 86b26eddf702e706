/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash by which a client asks whether its server has an image already. It covers a part of the
 * bytes, and only says what is worth comparing: images of one key may differ, by accident or on
 * purpose. Client and server must compute the same.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Bytes; smaller images are sent without asking. */
#define IMAGE_KEY_MIN (64u << 10)

uint64_t image_key(const void *bytes, size_t size);
