# SPDX-License-Identifier: Apache-2.0
# Toolchain file: Debian's cross compiler for aarch64. What it builds runs here under qemu-user; `ci/cross` does both.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
