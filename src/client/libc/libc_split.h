/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libpthread.so.0 and libdl.so.2 held before glibc 2.34 made them parts of libc.so.6. Newer
 * systems still have both, empty. So a library that asks for these functions by their old versions,
 * and for these two libraries, is at home in both.
 */
LIBPTHREAD(pthread_create)
LIBPTHREAD(pthread_detach)
LIBPTHREAD(pthread_getspecific)
LIBPTHREAD(pthread_join)
LIBPTHREAD(pthread_key_create)
LIBPTHREAD(pthread_key_delete)
LIBPTHREAD(pthread_mutex_trylock)
LIBPTHREAD(pthread_once)
LIBPTHREAD(pthread_setspecific)
LIBPTHREAD(pthread_sigmask)
LIBDL(dladdr)
LIBDL(dlclose)
LIBDL(dlerror)
LIBDL(dlopen)
LIBDL(dlsym)
