/* SPDX-License-Identifier: Apache-2.0 */
/* Stands for libpthread.so.0 when the client library is linked: only names. */
#define LIBPTHREAD(name) \
    void name(void);     \
    void name(void)      \
    {                    \
    }
#define LIBDL(name)

#include "libc_split.h"
