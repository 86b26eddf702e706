/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the status page, as bytes of the program. */
#pragma once

#include <stddef.h>

struct http_page_file {
    const char *path; /* by which the page asks for it */
    const char *type;
    const unsigned char *bytes;
    size_t size;
};

extern const struct http_page_file http_page_files[];
extern const size_t http_page_file_count;
