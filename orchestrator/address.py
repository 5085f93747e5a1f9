"""Which Ray: one of our own on this machine unless an address is given; never one that only the environment names."""

import os
import socket

LOCAL = "local"
CONNECT_SECONDS = 10.0
REASON_CHARACTERS = 300


def ignored_variable() -> str:
    """A line when RAY_ADDRESS is set, which would silently redirect an ordinary start."""
    theirs = os.environ.get("RAY_ADDRESS", "")
    return f"RAY_ADDRESS={theirs} is ignored: Ray runs on this machine (--address {theirs} to use it)" if theirs else ""


def check_reachable(address: str) -> None:
    """Raise ValueError when nothing listens at `host:port`: Ray itself would try for minutes."""
    if address.startswith("ray://"):
        raise ValueError(f"address {address!r} is of Ray's client: give the cluster's own, like {address[6:]!r}")
    host, _, port = address.rpartition(":")
    if not (host and port.isdigit()):
        return
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(f"no Ray cluster answers at address {address!r}: {reason}") from None


def refusal(error: BaseException) -> str:
    """Why a cluster did not take us: a missing token is hidden in the text of a cause."""
    cause: BaseException | None = error
    while cause is not None:
        if "AuthenticationError" in f"{type(cause).__name__} {cause}":
            return "it asks for a token (set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN as the cluster has them)"
        cause = cause.__cause__ or cause.__context__
    return brief(error)


def brief(error: BaseException) -> str:
    """The first lines of a long message, as one."""
    text = " ".join(str(error).split())
    return text if len(text) <= REASON_CHARACTERS else f"{text[:REASON_CHARACTERS]}..."
