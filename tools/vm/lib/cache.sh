# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# prepare_cache: everything a VM needs, made when it is not there. Sourced after common.sh.

# shellcheck source=tools/vm/lib/kernel.sh
source "$vm_folder/lib/kernel.sh"
# shellcheck source=tools/vm/lib/siw.sh
source "$vm_folder/lib/siw.sh"
# shellcheck source=tools/vm/lib/initramfs.sh
source "$vm_folder/lib/initramfs.sh"

# check_host: that the programs are there which no code here can replace.
check_host() {
  # The guest runs this machine's programs, so QEMU has to emulate this architecture.
  [[ "$(uname -m)" == x86_64 ]] || unavailable "VMs are for x86_64 machines only (this is $(uname -m))"
  local tool missing=()
  for tool in qemu-system-x86_64 busybox cpio modprobe xz apt-get dpkg-deb flock setpriv \
    "${REQUIRED_TOOLS[@]}"; do
    type -P "$tool" >/dev/null || missing+=("$tool")
  done
  ((${#missing[@]} == 0)) ||
    unavailable "not installed: ${missing[*]} (tools/install_dependencies has the packages)"
  local driver
  for driver in rxe siw; do
    [[ -e "/etc/libibverbs.d/$driver.driver" ]] ||
      unavailable "not installed: the verbs provider of $driver (Debian's ibverbs-providers)"
  done
}

# prepare_cache DEVICE: sets cache, kernel_folder, kernel_release and base. Only one process at a
# time makes things; the others wait for it. Exits with $unavailable_status when something cannot be
# had.
prepare_cache() {
  check_host
  cache="$(cache_folder)"
  mkdir -p "$cache" 2>/dev/null || unavailable "cannot write the cache folder $cache"
  cache="$(realpath "$cache")"
  exec {cache_lock}>"$cache/lock"
  flock "$cache_lock"
  prepare_kernel
  if needs_siw "$1"; then prepare_siw; fi
  prepare_base
  exec {cache_lock}>&-
}
