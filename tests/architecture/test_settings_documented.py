"""Every setting has a unit and a meaning, and docs/CONFIGURATION.md tells them."""

from __future__ import annotations

import subprocess
import sys

import house


def test_the_configuration_page_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scripts.gen_config_docs", "--check"],
        cwd=house.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_every_setting_is_on_the_page_with_a_meaning() -> None:
    from memxd.config import SETTINGS

    page = house.text("docs/CONFIGURATION.md")
    for setting in SETTINGS:
        assert f"| `{setting.name}` | `{setting.env}` |" in page
        assert setting.help.strip().endswith("."), setting.name
        if setting.kind in ("int", "float") and setting.low is not None and setting.high is not None:
            assert setting.low < setting.high, setting.name


def test_every_variable_named_in_the_documents_exists() -> None:
    import re

    from memxd.config import CONFIG_NAME, SETTINGS

    known = {setting.env for setting in SETTINGS} | {CONFIG_NAME, "MEMXD_REQUIRE_EXTENSIONS", "MEMXD_DEBUG_EXTENSIONS"}
    for name in house.tracked():
        if name.endswith(".md"):
            assert set(re.findall(r"\bMEMXD_[A-Z_]+\b", house.text(name))) <= known, name
