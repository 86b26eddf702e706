#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs unit tests under a sanitizer, in a build directory of its own.
#
#     tests/sanitize.sh thread|address BUILD_DIRECTORY [test names]
#
# thread: the parts that threads and processes share memory through. address (with undefined):
# everything that reads what a peer sends. Other names may be given: 'meson test --list'.
# With BUILD_ONLY=1 in the environment it builds what they need, and runs nothing.
set -eu

kind=$1
build=$2
shift 2

if [ $# -eq 0 ]; then
    set -- 'base handles' 'base log' 'ipc ring' 'ipc ring_hostile' 'ipc ring_stress' \
        'ipc ring_stress asleep' 'ipc sock' 'wire channel' 'wire channel asleep' \
        'wire channel_server' 'base spin' 'client core call' 'client copy staging_ring' \
        'client memory suballoc_stress' 'client stream fence_stress' \
        'server gate' 'server unload_queue' 'server copy_load' 'server worker_pool' \
        'server module_cache' 'server device_printf'
    if [ "$kind" = address ]; then
        set -- "$@" 'base map' 'base ranges' 'base text' 'base fd' 'base cleanup' 'base list' \
            'ipc shm'
    fi
fi

source=$(cd "$(dirname "$0")/.." && pwd)
meson=$("$source/tools/setup" --meson)
"$source/tests/sanitized_build.sh" "$kind" "$build"

# meson passes over a name that no test has.
known=$("$meson" test -C "$build" --list)
for name; do
    printf '%s\n' "$known" | grep -q " / $name\$" || {
        echo "sanitize.sh: there is no test '$name'" >&2
        exit 2
    }
done

export TSAN_OPTIONS="halt_on_error=1:exitcode=66:${TSAN_OPTIONS:-}"
export UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1:${UBSAN_OPTIONS:-}"
"$source/tests/meson_test.py" "$build" ${BUILD_ONLY:+--wrapper true} --timeout-multiplier 10 "$@"
