"""lit configuration: `hloc` and LLVM's test tools on PATH, `ptxas` as a feature where it is found."""
import os
import subprocess

import lit.formats

config.name = "hloc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".hlo", ".ptx", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.hloc_build_dir, "tests", "lit", "out")
config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.hloc_build_dir, "bin"), config.llvm_tools_dir, config.environment["PATH"]])
config.environment["FILECHECK_OPTS"] = "--dump-input=fail --enable-var-scope"
config.substitutions.append(("%fake-cuda", os.path.join(config.hloc_build_dir, "tests", "libfake-cuda.so")))
config.substitutions.append(("%fake-cublaslt", os.path.join(config.hloc_build_dir, "tests", "libfake-cublaslt.so")))
config.substitutions.append(("%fake-cudnn", os.path.join(config.hloc_build_dir, "tests", "libfake-cudnn.so")))
config.substitutions.append(("%examples", os.path.join(config.hloc_source_dir, "hlo_examples")))

hloc = os.path.join(config.hloc_build_dir, "bin", "hloc")
if os.path.exists(hloc):
    doctor = subprocess.run([hloc, "--doctor"], capture_output=True, text=True)
    for tool in ("ptxas", "nvjitlink", "libdevice"):
        if any(line.startswith(tool) and "not found" not in line for line in doctor.stdout.splitlines()):
            config.available_features.add(tool)
