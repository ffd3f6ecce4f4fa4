"""Makes a manifest of one kernel claim that its output lies where its input does: claim-in-place.py FROM TO"""
import json
import sys

manifest = json.load(open(sys.argv[1]))
(kernel,), (launch,), (result,) = manifest["kernels"], manifest["steps"], manifest["results"]
source, target = launch["arguments"]
kernel["parameters"][0]["written"] = True
kernel["parameters"][1]["alias"] = 0
manifest["buffers"][source["buffer"]]["donated"] = True
launch["arguments"][1] = result["slice"] = source
manifest["buffers"].pop(target["buffer"])
json.dump(manifest, open(sys.argv[2], "w"))
