#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs unit tests under a sanitizer, in a build directory of its own.
#
#     tests/sanitize.sh thread|address BUILD_DIRECTORY [test names]
#
# thread: the parts that threads and processes share memory through. address (with undefined):
# everything that reads what a peer sends. Other names may be given: 'meson test --list'.
set -eu

kind=$1
build=$2
shift 2
case $kind in
thread) sanitizers=thread ;;
address) sanitizers=address,undefined ;;
*)
    echo "sanitize.sh: '$kind' is neither thread nor address" >&2
    exit 2
    ;;
esac

if [ $# -eq 0 ]; then
    set -- 'base handles' 'base log' 'ipc ring' 'ipc ring_hostile' 'ipc ring_stress' \
        'ipc ring_stress asleep' 'ipc sock' 'wire channel' 'wire channel asleep' \
        'wire channel_server' 'base spin' 'client call' 'client staging_ring' 'client stress' \
        'server gate' 'server unload_queue' 'server copy_load' 'server worker_pool' 'server module_cache' 'server device_printf'
    if [ "$kind" = address ]; then
        set -- "$@" 'base map' 'base ranges' 'base text' 'base fd' 'base cleanup' 'base list' \
            'ipc shm'
    fi
fi

source=$(cd "$(dirname "$0")/.." && pwd)
[ -f "$build/build.ninja" ] ||
    meson setup "$build" "$source" -Db_sanitize="$sanitizers" -Db_lundef=false >/dev/null

export TSAN_OPTIONS="halt_on_error=1:exitcode=66:${TSAN_OPTIONS:-}"
export UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1:${UBSAN_OPTIONS:-}"
"$source/tests/meson_test.py" "$build" --timeout-multiplier 10 "$@"
