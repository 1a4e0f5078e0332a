# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# The virtual machine itself. Sourced by tools/vm/run, whose options and work folder it uses.

# How long the guest may take beyond the command's time, for booting and switching off. It takes
# 3 s on an idle machine.
GRACE_S=40

# Kernel parameters. panic=-1 with -no-reboot: a kernel that crashes ends QEMU. The rest is speed:
# no mitigations, no search for a timer, no self tests, and a clock that is read without leaving
# the guest.
KERNEL_PARAMETERS="console=ttyS0 quiet panic=-1 oops=panic mitigations=off nokaslr tsc=reliable
  random.trust_cpu=on no_timer_check apparmor=0 audit=0 cryptomgr.notests"

# la57: another level of page tables. erms, fsrm: with either, memcpy is one "rep movsb", which the
# emulator does byte by byte.
CPU="max,la57=off,erms=off,fsrm=off"

# netdev_of NET: QEMU's words for --net=listen:PATH and --net=connect:PATH. A stream over a Unix
# socket loses nothing, and has no Nagle's algorithm.
netdev_of() {
  local server=off
  [[ "$1" == connect:* ]] || server=on
  echo "stream,id=net,server=$server,addr.type=unix,addr.path=${1#*:}"
}

# boot INITRD: runs the machine to its end. The guest's output goes to file descriptor 3 as it
# comes, the kernel's console to $console, the result to $work/result. Returns QEMU's exit status.
boot() {
  local arguments=(
    -accel "tcg,thread=multi" -machine pc -cpu "$CPU" -smp "$cpus" -m "$memory_mib"
    -nodefaults -no-user-config -display none -no-reboot
    -kernel "$kernel_folder/vmlinux" -initrd "$1" -append "${KERNEL_PARAMETERS//$'\n'/}"
    -serial "file:$console"
    -device virtio-serial-pci
    # By the descriptor's number in a set: QEMU refuses descriptors 0 to 2 as a character device.
    -add-fd fd=3,set=1 -chardev file,id=output,path=/dev/fdset/1,append=on
    -device virtserialport,chardev=output,nr=1
    -chardev "file,id=result,path=$work/result" -device virtserialport,chardev=result,nr=2
  )
  if [[ -n "$out" ]]; then
    arguments+=(-virtfs
      "local,path=${out//,/,,},mount_tag=out,security_model=none,multidevs=remap")
  fi
  if [[ -n "$net" ]]; then
    local host="${address%/*}"
    # The two machines need two MAC addresses: the last byte is the IP address's.
    arguments+=(-netdev "$(netdev_of "$net")" -device
      "virtio-net-pci,netdev=net,mac=$(printf '52:54:00:00:00:%02x' "${host##*.}"),romfile=")
  fi
  # --pdeathsig: whatever ends this script, SIGKILL included, ends QEMU.
  setpriv --pdeathsig TERM timeout --foreground --kill-after=5 "$((timeout_s + GRACE_S))" \
    setpriv --pdeathsig KILL qemu-system-x86_64 "${arguments[@]}" </dev/null &
  qemu_pid=$!
  local status=0
  wait "$qemu_pid" || status=$?
  qemu_pid=""
  return "$status"
}

console_tail() {
  say "the end of the guest's console:"
  tail -n 60 "$console" | tr -d '\r' >&2
}

# outcome QEMU_STATUS: says what there is to say, and prints the exit status for the user.
outcome() {
  local result complaints="" status
  { tr -d '\r' <"$console" | grep -a '^vm: ' >&2; } || true
  result="$(head -n 1 "$work/result")"
  if grep -qx complaints "$work/result"; then complaints=yes; fi
  case "$result" in
    "status "*)
      status="${result#status }"
      # A failure of the command itself says more than that of the VM.
      if [[ "$status" == 0 && -n "$complaints" && -z "$allow_complaints" ]]; then
        status="$EXIT_VM_FAILED"
      fi
      ;;
    timeout)
      say "the command was still running after $timeout_s s"
      console_tail
      status="$EXIT_TIMEOUT"
      ;;
    *)
      case "$1" in
        124 | 137) say "the VM hangs: no result after $((timeout_s + GRACE_S)) s" ;;
        *) say "the VM ended without a result (QEMU's exit status is $1)" ;;
      esac
      console_tail
      status="$EXIT_VM_FAILED"
      ;;
  esac
  echo "$status"
}
