"""Libraries that are loaded when something of them is used."""

from __future__ import annotations

import pickle
import subprocess
import sys

import polars
import pyarrow

from streamgauge.sketches.core.lazy import pa, pl


def test_a_lazy_module_has_what_the_module_has_and_pickles_as_it() -> None:
    assert pl.col is polars.col and pa.Table is pyarrow.Table
    assert "LazyFrame" in dir(pl)
    assert pickle.loads(pickle.dumps(pl)) is polars


def test_what_a_library_has_not_is_said_as_by_itself() -> None:
    code = (
        "import sys; from streamgauge.sketches.core.lazy import pl; before = 'polars' in sys.modules\n"
        "try:\n    pl.nonsense\n"
        "except AttributeError as error:\n    print(before, 'polars' in sys.modules, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False True module 'polars' has no attribute 'nonsense'"
