"""A cluster is only used when it is asked for, and a dead address is said at once."""

import socket
import time

import pytest

from orchestrator.address import brief, check_reachable, ignored_variable, refusal


@pytest.mark.parametrize("value", ["127.0.0.1:1", "auto", "ray://elsewhere:10001"])
def test_the_variable_is_ignored_with_its_name(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("RAY_ADDRESS", value)
    assert ignored_variable().startswith(f"RAY_ADDRESS={value} is ignored")


def test_an_empty_variable_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "")
    assert ignored_variable() == ""


def test_nobody_at_the_address_is_a_line_within_seconds() -> None:
    began = time.monotonic()
    with pytest.raises(ValueError, match=r"no Ray cluster answers at address '127\.0\.0\.1:1': Connection refused"):
        check_reachable("127.0.0.1:1")
    assert time.monotonic() - began < 5


def test_somebody_at_the_address_and_names_that_ray_resolves_pass() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_reachable(f"127.0.0.1:{server.getsockname()[1]}")
    check_reachable("auto")


def test_the_client_form_is_refused() -> None:
    with pytest.raises(ValueError, match="of Ray's client: give the cluster's own, like 'head:10001'"):
        check_reachable("ray://head:10001")


def test_a_missing_token_is_found_in_the_causes() -> None:
    error = ConnectionError("Failed to connect")
    error.__cause__ = RuntimeError("Traceback ...\nray.exceptions.AuthenticationError: token")
    assert refusal(error).startswith("it asks for a token")
    assert refusal(ConnectionError("Failed\n  to connect")) == "Failed to connect"


def test_long_messages_are_one_short_line() -> None:
    assert len(brief(ValueError("word\n" * 1000))) < 310
