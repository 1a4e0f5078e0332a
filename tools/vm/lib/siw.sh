# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# siw.ko, the software iWARP device. Debian's kernel is built without it, but it needs nothing that
# is not exported: it is built here from the kernel's own source against the kernel's own headers.
# Sourced after kernel.sh.

siw_module() { echo "$kernel_folder/lib/modules/$kernel_release/kernel/drivers/infiniband/sw/siw.ko"; }

# prepare_siw: REQUIRES: prepare_kernel; the lock on the cache.
prepare_siw() {
  [[ -e "$(siw_module)" ]] && return
  local tool
  for tool in gcc-12 make strip; do
    command -v "$tool" >/dev/null || unavailable "siw cannot be built: no $tool (Debian's gcc-12, make, binutils)"
  done

  say "building siw.ko for $kernel_release (downloads 150 MB once)"
  local build="$kernel_folder/siw.partial"
  local version flavour_headers common_headers series source
  version="$(<"$kernel_folder/version")"
  series="$(cut -d. -f1,2 <<<"$kernel_release")"  # 6.1
  source="linux-source-$series"
  flavour_headers="linux-headers-$kernel_release"
  common_headers="linux-headers-${kernel_release%-*}-common"
  rm -rf "$build"
  mkdir -p "$build/headers"
  download "$build" "$source=$version" "$flavour_headers=$version" "$common_headers=$version" \
    "linux-kbuild-$series=$version"

  local package
  for package in "$build"/linux-{headers,kbuild}*.deb; do
    dpkg-deb -x "$package" "$build/headers"
  done
  # The headers' Makefile includes the common one by its installed path.
  local headers="$build/headers/usr/src/$flavour_headers"
  sed -i "s#/usr/src/#$build/headers/usr/src/#" "$headers/Makefile"

  dpkg-deb --fsys-tarfile "$build/$source"_*.deb | tar -xO "./usr/src/$source.tar.xz" | xz -dc |
    tar -x -C "$build" --strip-components=4 "$source/drivers/infiniband/sw/siw"
  make -C "$headers" M="$build/siw" CONFIG_RDMA_SIW=m modules >"$kernel_folder/siw.log" 2>&1 ||
    unavailable "siw.ko does not build: see $kernel_folder/siw.log"
  strip --strip-debug -o "$build/siw.ko" "$build/siw/siw.ko"
  mv "$build/siw.ko" "$(siw_module)"
  depmod -b "$kernel_folder" "$kernel_release"
  rm -rf "$build"
}
