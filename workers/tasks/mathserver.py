"""The process that compares mathematical answers with `math-verify`: one line of JSON in, one out.

A process of its own because such a comparison may run for ever or eat memory (`9^{9^{9^9}}`), and the library's own
time limit works in a main thread only. Here an alarm without a handler ends the process, also in the middle of a C
call.
"""

import json
import logging
import resource
import signal
import sys

MEMORY_MB = 4096


def equal(gold: str, answer: str) -> bool:
    """Whether `math-verify` takes the two LaTeX expressions for equal."""
    from math_verify import parse, verify

    wanted, given = (parse(rf"$\boxed{{{text}}}$", parsing_timeout=None) for text in (gold, answer))
    return bool(wanted and given and verify(wanted, given, timeout_seconds=None))


def main() -> None:
    """Answer until the input ends. The argument is the number of seconds that one comparison may take."""
    seconds = float(sys.argv[1])
    logging.disable(logging.CRITICAL)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = MEMORY_MB << 20
    resource.setrlimit(resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
    equal("1", "1")  # imports, outside of the time limit
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    print("ready", flush=True)
    for line in sys.stdin:
        gold, answer = json.loads(line)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            verdict = {"equal": equal(gold, answer), "why": ""}
        except Exception as error:
            verdict = {"equal": False, "why": f"{type(error).__name__} while comparing"}
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(json.dumps(verdict), flush=True)


if __name__ == "__main__":
    main()
