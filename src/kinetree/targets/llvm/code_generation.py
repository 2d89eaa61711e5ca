"""Code generation by LLVM, here or as the program of a child process, which `target` starts.

The module imports nothing of Kinetree, so that the child starts quickly. The child reads a line of JSON with the
options and the length of the assembly, and the assembly. It writes a line with the length of the object code, and the
code. It ends with its input, and thus with the process that started it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import TypedDict


class Options(TypedDict, total=False):
    """The processor and the options of llvmlite's `create_target_machine`."""

    cpu: str
    features: str
    opt: int
    reloc: str
    codemodel: str
    abiname: str


def generate_code(assembly: str, triple: str, options: Options) -> bytes:
    """Return the object code of a module; the targets of LLVM have been initialized."""
    import llvmlite.binding as llvm  # here, since the child first sets where it is

    machine = llvm.Target.from_triple(triple).create_target_machine(**options)
    module = llvm.parse_assembly(assembly)
    module.verify()
    return machine.emit_object(module)


def main() -> None:
    """Generate code in a child process; the argument is the folder of llvmlite."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the process that started this one
    sys.path.append(sys.argv[1])
    head = json.loads(sys.stdin.buffer.readline())
    assembly = sys.stdin.buffer.read(head["length"]).decode()
    threading.Thread(target=_end_with_input, daemon=True).start()
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    code = generate_code(assembly, head["triple"], head["options"])
    sys.stdout.buffer.write(b"%d\n%b" % (len(code), code))
    sys.stdout.buffer.flush()
    os._exit(0)  # the thread still reads


def _end_with_input() -> None:
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    main()
