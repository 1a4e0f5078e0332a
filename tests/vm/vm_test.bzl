# SPDX-License-Identifier: Apache-2.0
"""Tests that run in a virtual machine with an RDMA device (tools/vm/run, docs/testing_in_a_vm.md)."""

# How the sanitizers' configurations in .bazelrc leave a test out, unless it asks to be in.
_SANITIZERS = {
    "vm_asan": "noasan",
    "vm_tsan": "notsan",
    "vm_ubsan": "noubsan",
}

# Of every test with a VM. local: QEMU needs the network once and a cache. exclusive: a VM keeps two
# cores busy. external: the kernel and the tools in it are no inputs that Bazel sees, and "no VM here"
# is nothing to remember.
_VM_TAGS = [
    "exclusive",
    "external",
    "local",
    "vm",
]

# Of one that runs VMs by itself, and of which nothing is built for a sanitizer.
HARNESS_TAGS = _VM_TAGS + _SANITIZERS.values()

def vm_test(
        name,
        device,
        binaries = [],
        script = None,
        data = [],
        timeout = "moderate",
        memory_mib = 1024,
        env = {},
        kernel_complaints_expected = False,
        tags = [],
        **kwargs):
    """Runs GoogleTest binaries, or a script, in one VM.

        load("//tests/vm:vm_test.bzl", "vm_test")

        vm_test(
            name = "rpc_rxe_test",
            binaries = [
                "//tests/integration:calls_on_verbs",
                "//tests/integration:limits_on_verbs",
            ],
            device = "rxe",
            env = {"GTEST_FILTER": "-*Slow*"},
            memory_mib = 2048,
            tags = ["vm_asan"],
        )

        vm_test(
            name = "latency_rxe_test",
            binaries = ["//tools/rpc_bench"],
            device = "rxepair",
            script = "latency.sh",
        )

    Without a script, each binary is run with --gtest_output, one after the other, and each of their
    cases counts, as "<device>.<Suite>.<Case>". The next binary runs when one fails, crashes, or
    takes more than half of the time that is left (the last one: all of it).

    With a script, bash runs it, and the test passes when its exit status is 0.

    Either is run in the folder /test, which has the script, `binaries` and `data` side by side by
    their file names, as root, with
      VERBENA_TEST_DEVICE: `device`.
      VERBENA_TEST_HOST: the address to listen on and connect to.
      /out: a folder to write to. A file figures.txt in it becomes an output of the test, and
        `tools/check --vm` prints it.
    When the guest's kernel reports a bug of its own (BUG:, WARNING:, Oops), the test fails.

    The test passes, and says SKIPPED with the reason in its log, where no VM can be had.

    Args:
      name: of the test.
      device: "rxe", "siw", "rxepair", "siwpair" or "none"; see tools/vm/run --help.
      binaries: labels of programs. A cc_test is one too, but would also run outside of the VM: a
        program for here alone is a testonly cc_binary that depends on //third_party:gtest_main.
      script: a label; or none.
      data: labels of other files for the guest.
      timeout: Bazel's; 60 s of it are the VM's own, so at least "moderate". A sanitizer makes
        programs in the VM 2 to 5 times slower.
      memory_mib: of the guest. The files above take their size from it. For AddressSanitizer at
        least 2048.
      env: environment variables in the guest. The values have no single quotes.
      kernel_complaints_expected: the kernel may report bugs.
      tags: as of any test. Only with "vm_asan", "vm_tsan" or "vm_ubsan" the test is part of the run
        with this sanitizer.
      **kwargs: as of any test.
    """
    if not script and not binaries:
        fail("vm_test '%s' has neither a script nor binaries" % name)
    if timeout == "short":
        fail("vm_test '%s': no command fits in a short timeout" % name)

    files = data + ([script] if script else [])
    args = ["--device=" + device, "--memory=%d" % memory_mib]
    args += ["'--env=%s=%s'" % (key, env[key]) for key in sorted(env)]
    if kernel_complaints_expected:
        args.append("--allow-complaints")
    if script:
        args.append("--script=$(rootpath %s)" % script)
    args += ["--data=$(rootpath %s)" % label for label in data]
    args += ["--binary=$(rootpath %s)" % label for label in binaries]

    native.sh_test(
        name = name,
        srcs = ["//tests/vm:vm_test.sh"],
        args = args,
        data = files + binaries + [
            "//tests/vm:require_vm.sh",
            "//tests/vm:run_binaries.sh",
            "//tools/lib:merge_vm_results.py",
            "//tools/vm",
        ],
        tags = tags + _VM_TAGS +
               [_SANITIZERS[tag] for tag in _SANITIZERS if tag not in tags],
        timeout = timeout,
        **kwargs
    )
