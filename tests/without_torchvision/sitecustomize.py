"""Hide a torchvision that cannot be imported beside the installed torch (see tests/tiny_model.py).

Loaded by Python itself in the processes that tests start. A torchvision that matches torch would do; none does as well.
"""

import importlib.metadata
import sys
from importlib.machinery import PathFinder


def _builds_differ():
    """Whether torch and torchvision are of different builds: `2.13.0+cpu` beside `0.28.0`."""
    try:
        versions = [importlib.metadata.version(name) for name in ("torch", "torchvision")]
    except importlib.metadata.PackageNotFoundError:
        return False
    return len({version.partition("+")[2] for version in versions}) > 1


class _WithoutTorchvision(PathFinder):
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname.partition(".")[0] == "torchvision":
            return None
        return super().find_spec(fullname, path, target)


if _builds_differ():
    sys.meta_path[:] = [_WithoutTorchvision if finder is PathFinder else finder for finder in sys.meta_path]
