"""What editors and type checkers see: annotations that hold, a stub that names what the extension has, docstrings."""

import ast
import inspect
import os
import pathlib
import re
import subprocess
import sys

import pytest

import penstock as ps
from penstock import _core

PACKAGE = pathlib.Path(ps.__file__).parent

#: mypy's settings: strict, and without a look into large libraries.
SETTINGS = """
[mypy]
strict = true
[mypy-torch.*,jax.*,cupy.*,h5py.*]
ignore_missing_imports = true
follow_imports = skip
"""

PROGRAM = """
from typing import Any
import numpy as np
import penstock as ps
source = ps.Source(image="shards/*.h5:/images", label="shards/*.h5:/labels").astype(image="float32")
loader = ps.Loader(source, batch_size=256, order=ps.Shuffled(seed=42), device="cuda:0", device_memory="512MiB")
steps: int = len(loader)
for epoch in range(loader.next_epoch, 10):
    for batch in loader.epoch(epoch):
        image: Any = batch.torch("image")
        rows: int = batch.valid_rows
        shape: tuple[int, ...] = batch["label"].shape
        mask: ps.Field | None = batch.mask
names: tuple[str, ...] = loader.class_names("label")
print(loader.report(), loader.plan().as_dict()["slots"])
state: dict[str, Any] = loader.state_dict()
loader.load_state_dict(state)
small = ps.Loader(source.scaled(image=(np.float32(2), 1)), np.int64(64), held=np.uint8(2), device_memory=np.int64(1 << 20))
layouts: list[str] = [dataset.layout for dataset in ps.inspect("a.h5")]
"""

#: One mistake in each line.
MISTAKES = """
import penstock as ps
ps.Loader("a.h5:/x")
ps.Loader(ps.Source(x="a.h5:/x"), order="shuffled")
ps.Shuffled(seed="1")
ps.Source(x=3)
text: str = ps.inspect("a.h5")[0].shape
"""


def mypy(folder, *arguments):
    pytest.importorskip("mypy", reason="mypy is not installed")
    (folder / "mypy.ini").write_text(SETTINGS)
    beside = {} if "site-packages" in PACKAGE.parts else {"MYPYPATH": str(PACKAGE.parent)}
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", str(folder / "cache"), *arguments]
    done = subprocess.run(command, cwd=folder, env=os.environ | beside, capture_output=True, text=True, timeout=600)
    return done.stdout.splitlines()


def test_the_package_keeps_its_annotations(tmp_path):
    assert mypy(tmp_path, "-p", "penstock")[-1].startswith("Success: no issues found")


def test_a_program_is_checked_by_the_package_s_annotations(tmp_path):
    (tmp_path / "right.py").write_text(PROGRAM)
    (tmp_path / "wrong.py").write_text(MISTAKES)
    assert mypy(tmp_path, "right.py")[-1].startswith("Success")
    lines = [int(line.split(":")[1]) for line in mypy(tmp_path, "wrong.py") if ": error:" in line]
    assert sorted(set(lines)) == [3, 4, 5, 6, 7]


def names(body):
    functions = [node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    return {*functions, *(node.target.id for node in body if isinstance(node, ast.AnnAssign))} - {"__init__"}


def public(of):
    return {name for name in vars(of) if not name.startswith("_")}


def test_the_stub_names_what_the_extension_has():
    stub = ast.parse((PACKAGE / "_core.pyi").read_text()).body
    assert names(stub) == public(_core)
    for node in stub:
        if isinstance(node, ast.ClassDef):
            assert names(node.body) == public(getattr(_core, node.name)), node.name


def signature_in_stub(node):
    """Names, plain types and the result, as the extension knows them."""
    given = [*node.args.args, *node.args.kwonlyargs]
    return [argument.arg for argument in given], [plain(argument.annotation) for argument in given], plain(node.returns)


def plain(annotation):
    text = annotation and (annotation if isinstance(annotation, str) else ast.unparse(annotation))
    text = re.sub(r"\[.*\]", "", (text or "Any").replace("penstock._core.", ""))
    return "Any" if text == "object" else text


def signature_of(function):
    signature = function.__nb_signature__ if hasattr(function, "__nb_signature__") else function.fget.__nb_signature__
    assert len(signature) == 1
    return signature_in_stub(ast.parse(signature[0][0].replace("def (", "def _(") + ": ...").body[0])


def test_the_stub_s_signatures_are_the_extension_s():
    compared = 0
    for node in ast.parse((PACKAGE / "_core.pyi").read_text()).body:
        of = getattr(_core, node.name) if isinstance(node, ast.ClassDef) else _core
        for function in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(function, ast.FunctionDef):
                known = inspect.getattr_static(of, function.name)
                assert signature_in_stub(function) == signature_of(known), function.name
                compared += 1
    assert compared > 20


def test_everything_public_has_a_docstring():
    missing = [] if ps.__doc__ else ["penstock"]
    for name in ps.__all__:
        thing = getattr(ps, name)
        if not callable(thing):
            continue
        members = {f"{name}.{member}": value for member, value in vars(thing).items()} if inspect.isclass(thing) else {}
        for where, what in {name: thing, **members}.items():
            is_public = not where.partition(".")[2].startswith("_")
            if is_public and (callable(what) or isinstance(what, property)) and not inspect.getdoc(what):
                missing.append(where)
    assert not missing
