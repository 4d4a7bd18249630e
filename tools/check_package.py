"""Build wheel and sdist, install each in a fresh environment, and run the demo there.

``python tools/check_package.py dist``; environments are temporary, and pip brings what they need.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TYPED = (
    "import unskew, pathlib; assert pathlib.Path(unskew.__file__).with_name('py.typed').exists()"
)


def run(*command: str | Path) -> str:
    """Return what a command prints; end if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def environment(folder: Path) -> Path:
    """Make an environment, and return its Python."""
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


def install(python: Path, *packages: str | Path) -> None:
    """Install packages, in the versions with which unskew is tested."""
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "-c", ROOT / "constraints.txt", *packages)


def main(target: str) -> None:
    """Build, install and run."""
    built = Path(target).resolve()
    with tempfile.TemporaryDirectory() as folder:
        builder, python = (environment(Path(folder) / name) for name in ("build", "install"))
        install(builder, "build")
        for old in built.glob("unskew-*"):
            old.unlink()
        run(builder, "-m", "build", "--outdir", built, ROOT)
        for package in sorted(built.glob("unskew-*")):
            install(python, package)
            run(python, "-I", "-c", TYPED)
            command = (python.with_name("unskew"), "demo", "--draws", "2")
            printed = run(*command, "-o", Path(folder) / f"weights{package.suffix}.csv")
            if "effective" not in printed:
                sys.exit(f"The demo of {package.name} printed:\n{printed}")
            print(f"{package.name} installs and runs: {run(python, '-m', 'unskew', '--version')}")
            run(python, "-m", "pip", "uninstall", "--yes", "--quiet", "unskew")


if __name__ == "__main__":
    main(*sys.argv[1:])
