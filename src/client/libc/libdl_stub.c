/* SPDX-License-Identifier: Apache-2.0 */
/* Stands for libdl.so.2 when the client library is linked: only names. */
#define LIBPTHREAD(name)
#define LIBDL(name)  \
    void name(void); \
    void name(void)  \
    {                \
    }

#include "libc_split.h"
