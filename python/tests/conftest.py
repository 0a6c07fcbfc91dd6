"""Tests of ``adaparam.torch`` need PyTorch, and say so where it is not there."""

import pytest

try:
    import torch
except ImportError:
    torch = None

collect_ignore_glob = [] if torch else ["layers/*"]


def pytest_report_header(config):
    if torch is None:
        return "PyTorch is not installed: tests of adaparam.torch SKIPPED"
    return f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads"


@pytest.fixture(autouse=True)
def _same_draws():
    if torch is not None:
        torch.manual_seed(1)
