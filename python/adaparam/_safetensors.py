"""Named arrays in safetensors files: a length of eight bytes, a header in JSON, the numbers."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path

import numpy as np

# The key of our own note among the metadata, and what stands for the sum of the file while it is taken.
NOTE = "adaparam"
NO_SUM = "0" * 64
# Kinds of numbers as they lie in a file. NumPy has no bf16: its bits are the upper half of those of an f32.
_KINDS = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}
_LONGEST_HEADER = 100_000_000


def parse(place: str, content: bytes) -> tuple[dict[str, np.ndarray], str | None]:
    """The arrays of a file, and its note, if it has one. ``place`` is what errors name."""

    def wrong(problem: str) -> ValueError:
        return ValueError(f"{place}: {problem}")

    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > min(len(content) - 8, _LONGEST_HEADER):
        raise wrong("this is no safetensors file")
    try:
        header = json.loads(content[8 : 8 + length])
    except ValueError as error:
        raise wrong(f"this is no safetensors file: {error}") from None
    if not isinstance(header, dict):
        raise wrong("this is no safetensors file: its header is no object")
    note = (header.pop("__metadata__", None) or {}).get(NOTE)
    data = memoryview(content)[8 + length :]
    tensors = {}
    for name, of in header.items():
        try:
            kind, shape, (start, end) = _KINDS[of["dtype"]], [int(size) for size in of["shape"]], of["data_offsets"]
        except (KeyError, TypeError, ValueError):
            raise wrong(f"{name}: must be numbers of kind {', '.join(_KINDS)} with a shape and a place") from None
        count = int(np.prod(shape, dtype=np.int64))
        if min(shape, default=0) < 0 or not 0 <= start <= end <= len(data) or end - start != count * kind.itemsize:
            raise wrong(f"{name}: has shape {shape}, which is not what is there")
        numbers = np.frombuffer(data[start:end], kind)
        if of["dtype"] == "BF16":
            numbers = (numbers.astype(np.uint32) << 16).view(np.float32)
        tensors[name] = numbers.reshape(shape).astype(np.float32)
    return tensors, note


def write(path: Path, tensors: dict[str, np.ndarray], note: dict) -> None:
    """Writes a file whose note carries the sum of all its bytes. It is whole or absent."""
    text = json.dumps({"sha256": NO_SUM, **note}, ensure_ascii=False, separators=(",", ":"))
    header: dict = {"__metadata__": {NOTE: text}}
    parts, start = [], 0
    for name, tensor in sorted(tensors.items()):
        part = np.ascontiguousarray(tensor, np.dtype("<f4")).tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [start, start + len(part)]}
        parts.append(part)
        start += len(part)
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    content = bytearray(len(head).to_bytes(8, "little") + head + b"".join(parts))
    at = content.index(NO_SUM.encode())
    content[at : at + 64] = hashlib.sha256(content).hexdigest().encode()
    folder = path.resolve().parent
    handle, beside = tempfile.mkstemp(dir=folder, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def check_sum(place: str, content: bytes, note: dict) -> None:
    """That a file is what was written, by the sum in its note."""
    wrong = ValueError(f"{place}: is not what was written, by its SHA-256: the file is damaged; bring it back, or export it again")
    found = note.get("sha256")
    if found is None:
        # Files of earlier formats have none.
        if int(note.get("format", 0)) < 3:
            return
        raise wrong
    at = content.find(str(found).encode())
    if len(str(found)) != 64 or at < 0:
        raise wrong
    blank = content[:at] + NO_SUM.encode() + content[at + 64 :]
    if hashlib.sha256(blank).hexdigest() != found:
        raise wrong
