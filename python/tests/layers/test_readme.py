"""What documents show works when it is pasted."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    "document, lead",
    [("README.md", "### From Python"), ("python/README.md", "# adaparam for Python"), ("book/src/python.md", "# Python")],
)
def test_the_first_lines_of_python_work_when_pasted(document, lead):
    text = (ROOT / document).read_text("utf-8")
    behind = text.split(f"{lead}\n", 1)[1]
    lines = behind.split("```python\n", 1)[1].split("```", 1)[0]
    assert len(lines.strip().splitlines()) <= 7
    names = {}
    exec(compile(lines, document, "exec"), names)
    assert names["layer"].weight.grad is not None and names["output"].shape == (35, 20, 128)
