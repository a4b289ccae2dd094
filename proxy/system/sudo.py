"""Rights: what happens under sudo, and the command line that asks for a missing right."""

from __future__ import annotations

import os
import shlex
import shutil
import sys

_CAPABILITIES = "-all,+net_admin,+net_bind_service,+net_raw"
"""Linux capabilities that sniffing and transparent relaying need, in the notation of setpriv(1)."""


def _effective_user() -> int:
    """Return the effective user; in a browser there is one user only."""
    return os.geteuid() if hasattr(os, "geteuid") else os.getuid()


def invoking_user() -> tuple[int, int] | None:
    """Return the user id and group id of the user who called sudo; None without sudo."""
    if _effective_user() != 0:
        return None
    try:
        user, group = int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"])
    except (KeyError, ValueError):
        return None
    return (user, group) if user > 0 else None


def is_own_user(user: int) -> bool:
    """Return True for the id of the user who runs this process, or who called sudo for it."""
    caller = invoking_user()
    return user == _effective_user() or (caller is not None and user == caller[0])


def give_to_invoking_user(file: int | str) -> None:
    """Make a new file, given as descriptor or path, belong to the user who called sudo.

    Raises:
        OSError: The file system does not allow it.
    """
    user = invoking_user()
    if user is not None:
        os.chown(file, *user)


def continue_as_invoking_user() -> None:
    """Under sudo on Linux, execute this command again as the invoking user, with networking rights only.

    All files then belong to that user, and a fault has no more rights than needed. Without sudo, or
    without setpriv(1), this returns.
    """
    user = invoking_user()
    setpriv = shutil.which("setpriv")
    if user is None or setpriv is None or sys.platform != "linux":
        return
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SUDO_")}
    # Browsers do not have it.
    import pwd

    try:
        entry = pwd.getpwuid(user[0])
        environment |= {"HOME": entry.pw_dir, "LOGNAME": entry.pw_name, "USER": entry.pw_name}
        groups = "--init-groups"
    except KeyError:
        groups = "--clear-groups"
    os.execve(
        setpriv,
        [
            setpriv,
            *(f"--reuid={user[0]}", f"--regid={user[1]}", groups),
            *(f"--inh-caps={_CAPABILITIES}", f"--ambient-caps={_CAPABILITIES}"),
            *(sys.executable, *sys.orig_argv[1:]),
        ],
        environment,
    )


def sudo_command() -> str:
    """Return the command line of this process for sudo, with an absolute path.

    sudo searches system folders only, where neither pipx nor uv nor a virtual environment installs.
    """
    return shlex.join(["sudo", *own_command(), *sys.argv[1:]])


def own_command() -> list[str]:
    """Return the words that start this program from any folder."""
    program = sys.argv[0]
    if os.path.basename(program) == "__main__.py":
        return [sys.executable, "-m", "kiebitz"]
    return [os.path.abspath(program)]
