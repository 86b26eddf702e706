#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sets up a build with sanitizers, unless the directory has a build already.
#
#     tests/sanitized_build.sh thread|address BUILD_DIRECTORY
#
# address comes with undefined. Where clang has libFuzzer, clang compiles it, and the fuzz targets of
# tests/fuzz share the build. It is not optimized, which takes clang less than half the time.
set -eu

kind=$1
build=$2
source=$(cd "$(dirname "$0")/.." && pwd)
meson=$("$source/tools/setup" --meson)

can_fuzz() {
    echo 'int LLVMFuzzerTestOneInput(const char *data, long size) { return 0; }' |
        clang -fsanitize=fuzzer,address,undefined -x c - -o /dev/null 2>/dev/null
}

[ ! -f "$build/build.ninja" ] || exit 0
set -- -Db_lundef=false
case $kind in
thread) set -- "$@" -Db_sanitize=thread -Doptimization=1 ;;
address)
    set -- "$@" -Db_sanitize=address,undefined -Doptimization=0
    if can_fuzz; then
        export CC=clang
        set -- "$@" -Dfuzz=true
    fi
    ;;
*)
    echo "sanitized_build.sh: '$kind' is neither thread nor address" >&2
    exit 2
    ;;
esac
"$meson" setup "$build" "$source" "$@" >/dev/null
