"""What the tests in Python share: where things are, and how to run the program."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("VLRERANK_TEST_DATA") or ROOT / ".deps" / "testdata")
PROGRAM = os.environ.get("VLRERANK", str(ROOT / "build" / "ci" / "bin" / "vlrerank"))


def test_data(relative):
    """Path of a golden file; says which script to run when it is missing."""
    path = DATA / relative
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: run scripts/unpack-test-data.sh")
    return path


def run(*arguments, ranks=0, **options):
    """Runs `vlrerank ARGUMENTS`, under mpirun when ranks > 0; returns the completed process.

    Raises AssertionError with what the program said, unless check=False.
    """
    check = options.pop("check", True)
    command = [PROGRAM, *map(str, arguments)]
    if ranks:
        command = ["mpirun", "-n", str(ranks), "--oversubscribe", "--bind-to", "none", *command]
    # mpirun refuses root unless told twice; containers and CI are root.
    environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    options.setdefault("env", environment)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, **options)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}\nexit {done.returncode}\n{done.stdout}{done.stderr}")
    return done
