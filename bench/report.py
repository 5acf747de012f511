"""How the figures are told: the machine, a table, a JSON file."""

import json
import os
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import attrs

from .pair import Row

_PACKAGES = ("harbor-async", "anyio", "trio", "attrs", "cattrs", "msgspec", "stamina")
_BUSY = 0.5


def machine() -> dict[str, Any]:
    """Return what the figures depend on."""
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "packages": {name: _version(name) for name in _PACKAGES},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def heading(facts: dict[str, Any]) -> str:
    """Return what stands above the rows: ``machine()``, a warning where others use it too, the titles."""
    packages = ", ".join(f"{name} {number}" for name, number in facts["packages"].items() if number)
    lines = [
        f"{facts['python']}, {facts['system']}, {facts['cores']} cores, {facts['processor']}".rstrip(", "),
        packages,
    ]
    if facts["load"] is not None and facts["load"] > _BUSY:
        lines.append(f"The machine is busy (load {facts['load']}): trust the ratios, not the times.")
    return "\n".join([*lines, "", _TITLES])


_TITLES = f"{'':<27}{'against':<30}{'floor':>9}{'ours':>10}{'ratio':>8}  {'95 %':<12}{'cpu':>5}  target"


def line(row: Row) -> str:
    """Return one line of the table."""
    target = ""
    if row.target is not None:
        target = f"≤ {row.target:g} {'met' if row.ratio <= row.target else 'MISSED'}"
    times = f"{_amount(row.floor, row.unit):>9}{_amount(row.ours, row.unit):>10}"
    ratio = f"{row.ratio:>8.2f}  {f'{row.low:.2f}–{row.high:.2f}':<12}{row.cpu:>5.2f}"
    return f"{row.name:<27}{row.against:<30}{times}{ratio}  {target}".rstrip()


def _amount(value: float, unit: str) -> str:
    if unit == "bytes":
        return f"{value / 1e3:.2f} kB" if value < 1e6 else f"{value / 1e6:.2f} MB"
    if value < 1e-3:
        return f"{value * 1e6:.2f} µs"
    return f"{value * 1e3:.1f} ms"


def write(path: Path, facts: dict[str, Any], rows: Iterable[Row]) -> None:
    """Write everything to a JSON file."""
    content = {"machine": facts, "rows": [attrs.asdict(row) for row in rows]}
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read(path: Path) -> tuple[dict[str, Any], list[Row]]:
    """Read such a file again."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return content["machine"], [Row(**row) for row in content["rows"]]
