# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# The guest's kernel: Debian's, downloaded and unpacked in the cache, never installed. Sourced.
#
#   $cache/kernel               the package's name, such as linux-image-6.1.0-57-amd64
#   $cache/<that name>/version  the package's version, which linux-source has to match
#                      vmlinux  what QEMU boots
#                      lib/modules/<release>/
#
# A folder that is there is complete: it is made as *.partial and renamed.
#
# prepare_kernel sets kernel_folder and kernel_release. REQUIRES: cache; the lock on it.

# Options of apt-get and apt-cache once the system's package lists would not do.
apt_options=()

# use_own_lists: fetches package lists into the cache. That needs no root, and helps where the
# system's lists are missing (container images drop them) or name a kernel that is gone.
use_own_lists() {
  ((${#apt_options[@]} == 0)) || return 1
  say "fetching package lists"
  mkdir -p "$cache/apt/lists/partial" "$cache/apt/archives/partial"
  apt_options=(
    -o "Dir::State::lists=$cache/apt/lists" -o "Dir::Cache=$cache/apt"
    -o APT::Sandbox::User=root  # The user _apt cannot read a cache in a home folder.
    -o Acquire::Retries=1 -o Acquire::http::Timeout=20
    -o APT::Update::Error-Mode=any  # Else a server that does not answer is only a warning.
  )
  apt-get "${apt_options[@]}" -q update >"$cache/apt/log" 2>&1 ||
    unavailable "no package lists: $(last_error "$cache/apt/log")"
}

# last_error LOG: apt's, on one line.
last_error() { { grep '^E:' "$1" || tail -n 1 "$1"; } | head -n 1; }

# download FOLDER PACKAGE...: the packages' .deb files, PACKAGE being NAME or NAME=VERSION.
download() {
  local folder="$1"
  shift
  while ! (cd "$folder" && apt-get "${apt_options[@]}" -o APT::Sandbox::User=root \
    -q download "$@" >apt.log 2>&1); do
    use_own_lists || unavailable "cannot download $*: $(last_error "$folder/apt.log")"
  done
}

# Debian's current kernel. Asking takes 0.6 s, so the answer is kept: the kernel stays the same
# until the cache is deleted.
find_kernel_package() {
  [[ -s "$cache/kernel" ]] && return
  local name
  while true; do
    name="$(apt-cache "${apt_options[@]}" depends linux-image-amd64 2>/dev/null |
      awk '/Depends: linux-image-[0-9]/ { print $2; exit }')"
    [[ -z "$name" ]] || break
    use_own_lists || unavailable "the package lists have no linux-image-amd64 (is this Debian?)"
  done
  echo "$name" >"$cache/kernel"
}

# unpack_vmlinux VMLINUZ OUTPUT: the ELF image inside. QEMU enters it directly (PVH), which saves
# the 2.5 s that decompressing xz takes under emulation.
unpack_vmlinux() {
  local offset
  offset="$(LC_ALL=C grep -abom1 -P '\xfd7zXZ\x00' "$1" | head -n 1 | cut -d: -f1)"
  # xz complains of what follows the compressed data.
  tail -c "+$((offset + 1))" "$1" | xz -dc >"$2" 2>/dev/null || true
  [[ "$(head -c 4 "$2")" == $'\x7fELF' ]] || unavailable "cannot unpack the kernel of $1"
}

prepare_kernel() {
  find_kernel_package
  local package
  package="$(<"$cache/kernel")"
  kernel_release="${package#linux-image-}"
  kernel_folder="$cache/$package"
  [[ -d "$kernel_folder" ]] && return

  say "downloading $package (70 MB)"
  local partial="$kernel_folder.partial"
  rm -rf "$partial"
  mkdir -p "$partial"
  download "$partial" "$package"
  dpkg-deb -f "$partial"/*.deb Version >"$partial/version"
  dpkg-deb --fsys-tarfile "$partial"/*.deb | tar -x -C "$partial" ./boot ./lib/modules
  unpack_vmlinux "$partial/boot/vmlinuz-$kernel_release" "$partial/vmlinux"
  depmod -b "$partial" "$kernel_release"
  rm -r "$partial"/*.deb "$partial/boot" "$partial/apt.log"
  mv "$partial" "$kernel_folder"
}
