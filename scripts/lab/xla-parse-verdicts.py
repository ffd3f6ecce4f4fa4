"""XLA's own parser on many files: `scripts/lab/xla-parse-verdicts.py LIST`, LIST naming a file a line.

Prints path, seconds, `ok`, `reject` or `crash`, and the message, separated by tabs. XLA aborts on some texts, so the
files are read in child processes, each going on where the last one died.
"""
import os
import sys
import time


def read_all(paths, pipe):
    from jaxlib import _hlo

    for index, path in enumerate(paths):
        os.write(pipe, f"{index}\n".encode())
        start = time.perf_counter()
        try:
            with open(path, encoding="utf-8") as text:
                _hlo.hlo_module_from_text(text.read())
            verdict = "ok\t"
        except Exception as error:
            verdict = "reject\t" + " | ".join(str(error).split("\n"))[:400].replace("\t", " ")
        print(path, f"{time.perf_counter() - start:.6f}", verdict, sep="\t", flush=True)


def main():
    paths = open(sys.argv[1], encoding="utf-8").read().split("\n")
    paths = [path for path in paths if path]
    while paths:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            read_all(paths, writer)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as progress:
            begun = progress.read().split()
        _, status = os.waitpid(child, 0)
        if status == 0:
            return
        if not begun:
            raise SystemExit("the child died before its first file")
        last = int(begun[-1])
        print(paths[last], "0", "crash", "", sep="\t", flush=True)
        paths = paths[last + 1:]


main()
