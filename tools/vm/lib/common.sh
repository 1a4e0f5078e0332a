# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by tools/vm/prepare and tools/vm/run: where the cache is, how to speak and how to give up.

# Under Bazel the PATH has no sbin folders, where tc and modprobe are.
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
export LC_ALL=C.UTF-8

vm_folder="$(dirname "${BASH_SOURCE[0]}")/.."

# The exit status when this machine cannot have the VM, which is no error of ours.
unavailable_status=3

say() { echo "vm: $*" >&2; }

# unavailable REASON: the VM cannot be had here. The reason is one line, for a test to show.
unavailable() {
  say "$*"
  exit "$unavailable_status"
}

# cache_folder: Bazel's tests have no HOME, so the password file is asked for it.
cache_folder() {
  local home="${HOME:-}"
  [[ -n "$home" ]] || home="$(getent passwd "$(id -u)" | cut -d: -f6)"
  echo "${VERBENA_VM_CACHE:-${XDG_CACHE_HOME:-$home/.cache}/verbena-vm}"
}

readonly DEVICES="rxe siw rxepair siwpair none"

is_device() { [[ " $DEVICES " == *" $1 "* ]]; }

needs_siw() { [[ "$1" == siw* ]]; }
