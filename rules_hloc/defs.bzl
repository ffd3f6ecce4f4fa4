"""Rules that compile HLO with hloc: one action a module, hermetic, the same bytes on every machine.

    load("@rules_hloc//:defs.bzl", "hloc_kernels", "hloc_run_test", "hloc_golden_test")

    hloc_kernels(
        name = "gelu",
        src = "gelu.hlo",
        targets = ["sm_80", "sm_90"],
    )

An action reads its module, the program and, if they are given, NVIDIA's tools: it sees no environment, and no cache but Bazel's own,
which may be a remote one.
"""

HlocInfo = provider(
    doc = "What hloc_kernels made.",
    fields = {
        "manifests": "dict of target (`sm_90`) to the File that describes buffers, steps and launches",
        "kernels": "dict of target to the File with PTX or machine code",
    },
)

_PROGRAM = attr.label(
    default = Label("//:program"),
    allow_single_file = True,
    executable = True,
    cfg = "exec",
    doc = "The program hloc: `//:program` of this repository, which --@rules_hloc//:program=LABEL replaces.",
)

_ENVIRONMENT = {"HLOC_NO_CACHE": "1", "NO_COLOR": "1"}

def _tools(ctx):
    """NVIDIA's tools that are given: an option of hloc each, and its file."""
    tools = [("--ptxas", ctx.file.ptxas), ("--libdevice", ctx.file.libdevice)]
    return [(option, file) for option, file in tools if file]

def _hloc_kernels_impl(ctx):
    suffix = "." + ctx.attr.emit
    kernels, manifests = {}, {}
    for target in ctx.attr.targets:
        base = ctx.label.name + (".%s" % target if len(ctx.attr.targets) > 1 else "")
        output = ctx.actions.declare_file(base + suffix)
        manifest = ctx.actions.declare_file(base + ".json")
        arguments = ctx.actions.args()
        arguments.add(ctx.file.src)
        arguments.add("--target", target)
        arguments.add("--output", output)
        arguments.add("--manifest", manifest)
        arguments.add("--jobs", 1)
        for option, file in _tools(ctx):
            arguments.add(option, file)
        arguments.add_all(ctx.attr.options)
        ctx.actions.run(
            executable = ctx.executable._program,
            arguments = [arguments],
            inputs = [ctx.file.src] + [file for _, file in _tools(ctx)],
            outputs = [output, manifest],
            env = _ENVIRONMENT,
            mnemonic = "HlocCompile",
            progress_message = "Compiling %s for %s" % (ctx.file.src.short_path, target),
        )
        kernels[target] = output
        manifests[target] = manifest
    return [
        DefaultInfo(files = depset(kernels.values() + manifests.values())),
        HlocInfo(kernels = kernels, manifests = manifests),
    ]

_TOOLS = {
    "ptxas": attr.label(allow_single_file = True, doc = "NVIDIA's assembler, which cubins need."),
    "libdevice": attr.label(allow_single_file = True, doc = "libdevice.10.bc, which some kernels need."),
    "options": attr.string_list(doc = "More options of hloc, such as --f32-dots=tf32."),
    "_program": _PROGRAM,
}

hloc_kernels = rule(
    implementation = _hloc_kernels_impl,
    doc = "Compiles a module to PTX or machine code, with its description.",
    attrs = dict(
        src = attr.label(allow_single_file = [".hlo", ".txt"], mandatory = True, doc = "HLO text."),
        targets = attr.string_list(default = ["sm_90"], doc = "GPU architectures; an action each."),
        emit = attr.string(default = "ptx", values = ["ptx", "cubin"]),
        **_TOOLS
    ),
)

def _test_script(ctx, words, files):
    """A test that runs hloc with these words, and the tools and options that are given."""
    for option, file in _tools(ctx):
        words += [option, file.short_path]
        files.append(file)
    words += ctx.attr.options
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    program = ctx.executable._program.short_path
    lines = ["#!/bin/sh", "export HLOC_NO_CACHE=1", "exec ./%s %s" % (program, " ".join(words))]
    ctx.actions.write(script, "\n".join(lines) + "\n", is_executable = True)
    runfiles = ctx.runfiles(files = files + [ctx.executable._program])
    return [DefaultInfo(executable = script, runfiles = runfiles)]

def _hloc_run_test_impl(ctx):
    words = ["run", ctx.file.src.short_path, "--target", ctx.attr.target]
    return _test_script(ctx, words, [ctx.file.src])

hloc_run_test = rule(
    implementation = _hloc_run_test_impl,
    test = True,
    doc = "Executes the kernels on the CPU and compares them with the reference interpreter.",
    attrs = dict(
        src = attr.label(allow_single_file = [".hlo", ".txt"], mandatory = True, doc = "HLO text."),
        target = attr.string(default = "sm_90"),
        **_TOOLS
    ),
)

def _hloc_golden_test_impl(ctx):
    if not ctx.files.goldens:
        fail("%s has no golden file" % ctx.label)
    folder = ctx.files.goldens[0].short_path.rpartition("/")[0] or "."
    words = [ctx.file.src.short_path, "--target", ctx.attr.target, "--golden", folder]
    return _test_script(ctx, words, [ctx.file.src] + ctx.files.goldens)

hloc_golden_test = rule(
    implementation = _hloc_golden_test_impl,
    test = True,
    doc = "Compares PTX, launches and registers with a golden file; `hloc --golden=DIR --update-golden` writes it.",
    attrs = dict(
        src = attr.label(allow_single_file = [".hlo", ".txt"], mandatory = True, doc = "HLO text."),
        goldens = attr.label_list(allow_files = [".golden"], mandatory = True, doc = "Files of one folder."),
        target = attr.string(default = "sm_90"),
        **_TOOLS
    ),
)
