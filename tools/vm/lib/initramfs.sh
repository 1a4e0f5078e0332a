# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# The guest's only file system. Two cpio archives, which the kernel unpacks one over the other:
#
#   base     programs, libraries, kernel modules, guest/init; in the cache, made by prepare_base
#   overlay  one run's settings, command, and programs under test; made by write_overlay
#
# Sourced after kernel.sh and siw.sh.

# Programs of the host that the guest has, each when it is installed here; busybox has the rest.
GUEST_TOOLS=(
  bash dash date ps setsid sleep timeout                    # Busybox's differ from what tests expect.
  ethtool ip rdma ss tc                                     # Network.
  ibv_devinfo ibv_rc_pingpong rping ucmatose                # rdma-core.
  ib_atomic_lat ib_read_bw ib_read_lat ib_send_bw ib_send_lat ib_write_bw ib_write_lat  # perftest.
  ucx_info ucx_perftest
  gdb strace
)

# Without these no guest comes up.
REQUIRED_TOOLS=(bash dash ip rdma setsid)

GUEST_MODULES=(
  virtio_pci virtio_console 9p 9pnet_virtio virtio_net  # The machine.
  crc32_generic crc32c_generic                          # Found by name at run time, so no dependency.
  rdma_rxe ib_uverbs rdma_ucm
  dummy veth sch_netem
  # Also siw, once it is built.
)

BASE_UNUSED_DAYS_MAX=2  # After these another version's base archive is deleted.

library_folder=/usr/lib/x86_64-linux-gnu

# libraries_of FILE...: the shared libraries that the files load at start, by the paths that the
# loader uses.
libraries_of() {
  { ldd "$@" 2>/dev/null || true; } | { grep -oE '/[^ :()]+' || true; } | sort -u |
    { grep -vxFf <(printf '%s\n' "$@") || true; }
}

# Libraries that programs load while they run, so that ldd does not see them.
loaded_libraries() {
  ls "$library_folder"/libibverbs/lib{rxe,siw}-rdmav*.so "$library_folder"/libgcc_s.so.1 \
    "$library_folder"/ucx/*.so.? 2>/dev/null || true
}

# guest_tool_paths: resolved, one a line.
guest_tool_paths() {
  local tool path paths=()
  for tool in "${GUEST_TOOLS[@]}"; do
    path="$(type -P "$tool")" && paths+=("$path")
  done
  realpath "${paths[@]}"
}

# base_key: changes with whatever the base archive is made from. Libraries are represented by the
# loader's cache, which is written anew whenever a package brings one. 30 ms, unlike asking ldd.
base_key() {
  {
    cat "$vm_folder"/lib/{initramfs,siw,kernel}.sh "$vm_folder"/guest/{init,pair}
    stat -L -c '%n %s %Y' $(guest_tool_paths) $(loaded_libraries) /etc/ld.so.cache \
      "$(type -P busybox)" "$(siw_module)" 2>/dev/null || true
    cat "$kernel_folder/version"
  } | sha256sum | cut -c1-16
}

# copy_to_root ROOT FILE...: under the same paths, contents of symbolic links instead of links.
copy_to_root() {
  local root="$1" file folder
  shift
  for file in "$@"; do
    # The folder resolved: /lib is a link to usr/lib in the guest as well.
    folder="$root$(realpath "$(dirname "$file")")"
    mkdir -p "$folder"
    cp -L --remove-destination "$file" "$folder/"
  done
}

fill_programs() {
  local root="$1" tool path
  mkdir -p "$root"/usr/{bin,sbin,lib,lib64}
  for path in bin sbin lib lib64; do
    ln -s "usr/$path" "$root/$path"
  done
  cp "$(type -P busybox)" "$root/bin/busybox"
  while read -r tool; do
    ln -sf busybox "$root/bin/$tool"
  done < <(busybox --list | grep -vx busybox)

  local files=()
  mapfile -t files < <(guest_tool_paths; loaded_libraries)
  mapfile -O "${#files[@]}" -t files < <(libraries_of "${files[@]}")
  copy_to_root "$root" "${files[@]}"
  for tool in "${GUEST_TOOLS[@]}"; do
    path="$(type -P "$tool")" || continue
    path="$(realpath "$path")"
    [[ "$path" == "/usr/bin/$tool" ]] || ln -sf "$path" "$root/bin/$tool"
  done
  # Busybox's sh would run its own ip, tc and date instead of the ones above.
  ln -sf dash "$root/bin/sh"
}

fill_modules() {
  local root="$1" modules=("${GUEST_MODULES[@]}") module
  [[ ! -e "$(siw_module)" ]] || modules+=(siw)
  mkdir "$root/modules"
  for module in "${modules[@]}"; do
    modprobe -d "$kernel_folder" -S "$kernel_release" --show-depends "$module" 2>/dev/null |
      awk '/^insmod/ { print $2 }'
  done | awk '!seen[$0]++' | while read -r module; do
    cp "$module" "$root/modules/"
    basename "$module"
  done >"$root/modules/order"
}

fill_settings() {
  local root="$1"
  mkdir -p "$root"/{dev,etc,out,proc,root,run,sys,test,tmp,var,vm}
  ln -s ../run "$root/var/run"
  mkdir -p "$root/etc/libibverbs.d"
  cp /etc/libibverbs.d/{rxe,siw}.driver "$root/etc/libibverbs.d/"
  echo 'root:x:0:0:root:/root:/bin/bash' >"$root/etc/passwd"
  echo '127.0.0.1 localhost vm' >"$root/etc/hosts"
  install -m 755 "$vm_folder/guest/init" "$root/init"
  install -m 755 "$vm_folder/guest/pair" "$root/bin/vm_pair"
}

# archive FOLDER: FOLDER's contents as the kernel wants them, on stdout.
archive() { (cd "$1" && find -L . -mindepth 1 -print0 | cpio --quiet -0 -oL -H newc); }

# prepare_base: sets base, the archive's path. REQUIRES: prepare_kernel; the lock on the cache.
prepare_base() {
  base="$cache/base-$kernel_release-$(base_key).cpio"
  if [[ -e "$base" ]]; then
    touch "$base"
    return
  fi
  say "making the guest's file system"
  find "$cache" -maxdepth 1 -name 'base-*' -mtime "+$BASE_UNUSED_DAYS_MAX" -delete
  local root="$cache/base.partial"
  rm -rf "$root" "$root.cpio"
  mkdir -p "$root"
  fill_programs "$root"
  fill_modules "$root"
  fill_settings "$root"
  (cd "$root" && find . -mindepth 1 -print0 | cpio --quiet -0 -o -H newc) >"$root.cpio"
  mv "$root.cpio" "$base"
  rm -rf "$root"
}

# is_elf FILE
is_elf() { [[ "$(head -c 4 "$1" | tr -d '\0')" == $'\x7fELF' ]]; }

# write_overlay WORK BINARIES: WORK/vm (the settings) becomes /vm, the folder BINARIES, unless it
# is empty, /test, and what its programs load is put where the loader looks for it. On stdout.
write_overlay() {
  local work="$1" binaries="$2" root="$1/overlay" file elf=() libraries=()
  mkdir "$root"
  ln -s "$work/vm" "$root/vm"
  if [[ -n "$binaries" ]]; then
    ln -s "$binaries" "$root/test"
    while IFS= read -r -d '' file; do
      is_elf "$file" && elf+=("$file")
    done < <(find -L "$binaries" -type f \( -perm -u+x -o -name '*.so*' \) -print0)
  fi
  if ((${#elf[@]} > 0)); then
    mapfile -t libraries < <(libraries_of "${elf[@]}" | { grep -vF "$binaries/" || true; })
    # Only files: a folder here would replace the guest's link of the same name, hence the copy
    # to resolved paths.
    copy_to_root "$root" "${libraries[@]}"
    { ldd "${elf[@]}" 2>/dev/null || true; } | grep 'not found' | sort -u >&2 || true
  fi
  archive "$root"
}
