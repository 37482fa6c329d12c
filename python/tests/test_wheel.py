"""The package as it was installed."""

import importlib.metadata
import sys

import pytest

from penstock import _core


def test_one_wheel_serves_python_3_12_and_later():
    try:
        installed = importlib.metadata.distribution("penstock")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("it was not installed as a package")
    own = f"cp3{sys.version_info.minor}"
    tag = "cp312-abi3" if sys.version_info >= (3, 12) else f"{own}-{own}"
    assert f"Tag: {tag}-linux_x86_64" in installed.read_text("WHEEL").splitlines()
    assert _core.__file__.endswith(".abi3.so") == (sys.version_info >= (3, 12))
