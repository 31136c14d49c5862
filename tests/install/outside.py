"""What the tests of installing share: running programs, and the example that says whether the library works."""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "capi/examples"


def run(*command, fails=False, **options):
    """Output of a command that must end with 0, or with `fails` with anything else; then also what it says on stderr."""
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True, check=False, **options)
    if (done.returncode != 0) != fails:
        raise AssertionError(f"{' '.join(map(str, command))}: ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr if fails else done.stdout


def check_trains(program, folder, environment=None, needs_library=False):
    """capi/examples/train.c, compiled: trains a transformer, saves it half way, goes on to the same bits."""
    out = run(program, folder, env=environment)
    if "the same to the bit" not in out:
        raise AssertionError(f"{program} says:\n{out}")
    linked = "libcairn.so" in run("readelf", "-d", program)
    if linked != needs_library:
        raise AssertionError(f"{program} {'needs' if linked else 'does not need'} libcairn.so")
